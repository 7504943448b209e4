"""Find what recurs in the videos of an index; findings are kept, so that only a new video is compared again."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from vidkin._base.values import LONG_JSON_LIMITS, check_at_least, parse_json
from vidkin.errors import CollectionError, InvalidArgumentError, NotIndexedError, VidkinError
from vidkin.index.duplicates.comparisons import content_of
from vidkin.index.recurring.clips import Clips
from vidkin.index.recurring.ends import FittedStretch, StretchEnd, try_fit, try_fit_copy
from vidkin.index.recurring.groups import Occurrence, RecurringGroup, SharedByFiles, build_groups, natural_order
from vidkin.index.recurring.recaps import RecapShots
from vidkin.index.recurring.stretches import (
    SHORTEST,
    RoughStretch,
    StretchJob,
    Track,
    Tracks,
    WindowTable,
    find_shared,
    find_stretches_inside,
)
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.files import write_whole
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.tasks import Mapper, Task

_logger = logging.getLogger(__name__)

_PAUSE = 20.0  # seconds between writes: the work lost if the process is killed
# Raise it when two videos would get other stretches or other ends.
_REVISION = 8
# Two files are copies if this share of both is the same.
_COPY_SHARE = 0.8
# Frames that differ less than this from others of the file say nothing: the pictures tell.
_CONTRAST_OF_COPY = 0.5
# Ends of stored features are off by up to this much: shorter ones may be long enough when they are known to the frame.
_SLACK, _SURE = 1.5, 0.75
# A stretch of a file is compared with this many others picture by picture.
_LINKS = 2
# A still card in all files resembles itself in each pair: so many pairs are looked at before its place is given up.
_TRIES = 5
_SAME_SPAN = 0.7
# Seconds between the ends of stored features of two stretches that follow each other.
_ADJOINING = 1.5
# Seconds by which lengths of groups may differ that may be one.
_ONE_LENGTH = 0.1
# So many pairs are looked at together: what they need of each file is read in one go, while those before them are
# looked at.
_AHEAD = 32

# So many ends are looked for ahead by each process that does.
_FITS_AHEAD = 4

_SharedPair = tuple[str, str, RoughStretch]
_Shared = tuple[str, list[tuple[str, list[RoughStretch]]]]


@dataclass(slots=True)
class Findings:
    """Shared stretches of pairs of contents; a content is identified by the hash of its bytes.

    Attributes:
        place: Place of the index; None stores nothing.
        state: Identifies what the findings depend on besides the files; those of another state are dropped.
        searched: Sets of contents of which all were compared with each other.
        searched_inside: Contents that were compared with themselves.
    """

    FILE = "recurring.json"

    place: Place | None = None
    state: str = ""
    searched: list[set[str]] = field(default_factory=list)
    searched_inside: set[str] = field(default_factory=set)
    _stretches: dict[tuple[str, str], tuple[RoughStretch, ...]] = field(default_factory=dict)
    _links: dict[tuple[str, str, RoughStretch], FittedStretch | None] = field(default_factory=dict)
    _neighbors: dict[tuple[str, str, float, str], FittedStretch | None] = field(default_factory=dict)
    _written: float = field(default_factory=time.monotonic)

    def put(self, first: str, second: str, stretches: Sequence[RoughStretch]) -> None:
        """Remember what two contents share, unless that is known."""
        if (second, first) not in self._stretches:
            self._stretches.setdefault((first, second), tuple(stretches))

    def add(self, first: str, second: str, stretch: RoughStretch) -> _SharedPair:
        """Remember one more stretch that two contents may share; returns it in the order in which it is remembered."""
        if (second, first) in self._stretches:
            first, second, stretch = second, first, stretch.swapped()
        known = self._stretches.get((first, second), ())
        if stretch not in known:
            self._stretches[first, second] = (*known, stretch)
        return first, second, stretch

    def begin(self, contents: Iterable[str]) -> set[str]:
        """The most of these contents that were compared with each other: others are added when they are, too."""
        wanted = set(contents)
        known = max((wanted & held for held in self.searched), key=len, default=set())
        self.searched.append(known)
        return known

    def _largest(self) -> list[set[str]]:
        """The sets that are not part of another."""
        kept: list[set[str]] = []
        for held in sorted(self.searched, key=len, reverse=True):
            if held and not any(held <= other for other in kept):
                kept.append(held)
        return kept

    def pairs(self) -> Iterator[tuple[str, str, RoughStretch]]:
        """(first content, second content, stretch) of all that was found."""
        for (first, second), stretches in sorted(self._stretches.items(), key=lambda entry: entry[0]):
            for stretch in stretches:
                yield first, second, stretch

    def link(
        self, first: str, second: str, stretch: RoughStretch, fit: Callable[[], FittedStretch | None]
    ) -> FittedStretch | None:
        """The exact ends of a stretch; found with ``fit`` if they are not known yet."""
        key = first, second, stretch
        if key not in self._links:
            self._links[key] = fit()
        return self._links[key]

    def neighbor(
        self, first: str, second: str, edge: float, side: StretchEnd, fit: Callable[[], FittedStretch | None]
    ) -> FittedStretch | None:
        """The shot beside an end of a recap; found with ``fit`` if it is not known yet."""
        key = first, second, round(edge, 3), side
        if key not in self._neighbors:
            self._neighbors[key] = fit()
        return self._neighbors[key]

    def knows(self, first: str, second: str, stretch: RoughStretch) -> bool:
        """Whether the exact ends of a stretch are known, or that it has none."""
        return (first, second, stretch) in self._links

    @classmethod
    def open(cls, place: Place, state: str) -> Findings:
        """Load the findings of an index; none if they are of another state or cannot be read."""
        state = f"{state} {_REVISION}"
        findings = cls(place, state)
        try:
            content = place.read(cls.FILE)
            if content is None:
                return findings
            table = parse_json(content, LONG_JSON_LIMITS)
            if table["state"] != state:
                return findings
            names = [str(name) for name in table["contents"]]
            for first, second, rows in table["pairs"]:
                key = names[first], names[second]
                stretches = [RoughStretch(*_numbers(row[0])) for row in rows]
                for row, stretch in zip(rows, stretches, strict=True):
                    if len(row) > 1:
                        findings._links[*key, stretch] = None if row[1] is None else _link(row[1])
                findings.put(*key, stretches)
            for first, second, edge, side, row in table["neighbors"]:
                key_of_end = names[first], names[second], *_numbers([edge]), str(side)
                findings._neighbors[key_of_end] = None if row is None else _link(row)
            findings.searched = [{names[at] for at in held} for held in table["searched"]]
            findings.searched_inside = {names[at] for at in table["searched_inside"]}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, VidkinError) as error:
            _logger.info("%s: %s; all videos are compared again", place.address(cls.FILE), error)
            return cls(place, state)
        return findings

    def save_now_and_then(self) -> None:
        """:meth:`save`, unless that was done recently."""
        if time.monotonic() - self._written >= _PAUSE:
            self.save()

    def save(self) -> None:
        """Write whole or not at all; a failure only costs time later."""
        if self.place is None:
            return
        searched = self._largest()
        pairs = [*self._stretches, *(key[:2] for key in self._neighbors)]
        names = sorted({name for pair in pairs for name in pair}.union(self.searched_inside, *searched))
        places = {name: place for place, name in enumerate(names)}
        rows: list[Any] = []
        for (first, second), stretches in sorted(self._stretches.items(), key=lambda entry: entry[0]):
            held: list[Any] = []
            for stretch in stretches:
                row: list[Any] = [astuple(stretch)]
                if (first, second, stretch) in self._links:
                    row.append(self._links[first, second, stretch])
                held.append(row)
            rows.append([places[first], places[second], held])
        table = {
            "state": self.state,
            "contents": names,
            "searched": [sorted(places[name] for name in held) for held in searched],
            "searched_inside": sorted(places[name] for name in self.searched_inside),
            "pairs": rows,
            "neighbors": [
                [places[first], places[second], edge, side, link]
                for (first, second, edge, side), link in sorted(self._neighbors.items(), key=lambda entry: entry[0])
            ],
        }
        try:
            write_whole(self.place, self.FILE, json.dumps(table, separators=(",", ":")).encode())
        except CollectionError as error:
            _logger.info("%s", error)
        self._written = time.monotonic()


def _numbers(row: Sequence[Any]) -> list[float]:
    """The numbers of a stretch; ValueError unless all are finite and none is before the start of a video."""
    numbers = [float(value) for value in row]
    if not all(map(math.isfinite, numbers)) or min(numbers[:4]) < 0:
        raise ValueError(f"{row} is no stretch")
    return numbers


def _link(row: Sequence[Any]) -> FittedStretch:
    link = FittedStretch(*_numbers(row))
    if not (link.first_start < link.first_end and link.second_start < link.second_end):
        raise ValueError(f"{row} is no stretch")
    return link


@dataclass(frozen=True, slots=True)
class RecurringOptions:
    """What is looked for.

    Attributes:
        least: Number of files that have it at least; with ``inside`` number of times in one file.
        shortest, longest: Seconds of its longest occurrence; a ``longest`` of None is any length.
        inside: Look for what one file shows again, file by file, and not for what files share.
    """

    least: int = 2
    shortest: float = 3.0
    longest: float | None = None
    inside: bool = False

    def __post_init__(self) -> None:
        if self.least < 2:
            raise InvalidArgumentError(f"least must be at least 2, got {self.least}")
        check_at_least(SHORTEST, shortest=self.shortest)
        if self.longest is not None and not self.longest >= self.shortest:
            raise InvalidArgumentError(
                f"longest must be at least shortest, {self.shortest:g} s, got {self.longest:g} s"
            )

    def accepts(self, group: RecurringGroup) -> bool:
        """Whether a group is one of those."""
        places = len(group.occurrences) if self.inside else len(group.paths)
        return places >= self.least and self.shortest <= group.duration <= (self.longest or float("inf"))


def find_recurring(
    records: Sequence[VideoRecord],
    store: VectorStore,
    findings: Findings,
    options: RecurringOptions,
    *,
    on_progress: Callable[[int, int], None] | None = None,
    mapper: Mapper | None = None,
) -> list[RecurringGroup]:
    """Find what recurs in videos.

    Args:
        records: Videos with features whose files exist.
        store: Store of the index.
        findings: Receives what was found; known pairs are not compared again.
        options: What is looked for.
        on_progress: Called with (steps done, steps in all).
        mapper: Compares videos and finds ends where it wants; None does all in this process.

    Returns:
        The groups; those of whole copies last.
    """
    by_content: dict[str, list[VideoRecord]] = {}
    for record in sorted(records, key=lambda record: natural_order(record.path)):
        by_content.setdefault(content_of(record), []).append(record)
    videos = {content: same[0] for content, same in by_content.items()}
    clips = Clips()
    search = _StretchSearch(videos, Tracks(store), store, findings, options.inside, on_progress, clips, mapper)
    try:
        with clips:
            search.compare()
            copies = {} if options.inside else search.copies()
            links = search.fit(set(copies), options)
            lengths = {record.path: record.duration for content, record in videos.items() if content not in copies}
            if not options.inside:
                links += search.groups_of_one_length(build_groups(links, lengths))
                links += search.shots_of_recaps(build_groups(links, lengths), links)
            search.tell()
    finally:
        findings.save()
    if options.inside:
        each = (
            build_groups([link for link in links if link.first == path], {path: length})
            for path, length in lengths.items()
        )
        groups = [group for found in each for group in found]
    else:
        groups = build_groups(links, lengths)
    whole = [] if options.inside else _copy_groups(by_content, copies, len(records))
    return [group for group in groups if options.accepts(group)] + whole


@dataclass(slots=True)
class _StretchSearch:
    """Compares videos by features, then the ends of what they share by pictures."""

    videos: dict[str, VideoRecord]
    tracks: Tracks
    store: VectorStore
    findings: Findings
    inside: bool
    on_progress: Callable[[int, int], None] | None
    clips: Clips
    mapper: Mapper | None = None
    _job: StretchJob = field(default_factory=StretchJob)
    _fits: dict[_SharedPair, FittedStretch | None] = field(default_factory=dict)
    _done: int = 0
    _total: int = 0

    def compare(self) -> None:
        """Compare the videos that were not compared yet, with those that were and with each other."""
        searched = self.findings.searched_inside if self.inside else self.findings.begin(self.videos)
        new = [content for content in self.videos if content not in searched]
        self._total = 2 * len(new)
        compared = (
            self._compare_here(searched, new)
            if self.mapper is None
            else self._compare_elsewhere(searched, new, self.mapper)
        )
        for content, shared in compared:
            for other, stretches in shared:
                if stretches:
                    self.findings.put(content, other, stretches)
            searched.add(content)
            self._advance()

    def _compare_here(self, searched: set[str], new: Sequence[str]) -> Iterator[_Shared]:
        """New videos, and what each shares with those that are known and with those before it; inside, with itself."""
        table: WindowTable | None = None
        numbered: list[str] = []
        known = [] if self.inside else [each for each in self.videos if each in searched]
        # Known videos are only in the table; a new one is compared with all that are in it.
        for content in [*known, *new] if new else ():
            track = self._track(content)
            if self.inside:
                yield content, [] if track is None else [(content, find_stretches_inside(track))]
                continue
            if track is None:
                continue
            if table is None:
                table = WindowTable(track.vectors.shape[1])
            if content not in searched:
                found = find_shared(track, table.votes(track), lambda number: self._track(numbered[number]))
                yield content, [(numbered[number], stretches) for number, stretches in found]
            table.add(len(numbered), track)
            numbered.append(content)

    def _compare_elsewhere(self, searched: set[str], new: Sequence[str], mapper: Mapper) -> Iterator[_Shared]:
        """The same, each video where its features are; only the windows of all come here."""
        if not new:
            return
        names = [*new] if self.inside else [*(each for each in self.videos if each in searched), *new]
        records = [self.videos[content] for content in names]
        if self.inside:
            found = mapper.run(StretchJob(), [Task("inside", (one,), one.id, one.path) for one in records])
            yield from ((content, [(content, stretches)]) for content, stretches in zip(names, found, strict=True))
            return
        tracks = mapper.run(StretchJob(), [Task("windows", (one,), one.id, one.path) for one in records])
        present = [(content, track) for content, track in zip(names, tracks, strict=True) if track is not None]
        if not present:
            return
        table, counts = WindowTable(present[0][1].windows.shape[1]), []
        for number, (_, track) in enumerate(present):
            counts.append(table.count)
            table.add(number, track)
        numbered = [content for content, _ in present]
        job = StretchJob(table, counts, [self.videos[content] for content in numbered])
        asked = [(number, content) for number, content in enumerate(numbered) if content not in searched]
        tasks = [Task("shared", (number,), self.videos[name].id, self.videos[name].path) for number, name in asked]
        for (_, content), shared in zip(asked, mapper.run(job, tasks), strict=True):
            if shared is not None:
                yield content, [(numbered[number], stretches) for number, stretches in shared]

    def _track(self, content: str) -> Track | None:
        try:
            track = self.tracks.of(self.videos[content])
        except NotIndexedError:
            return None  # removed by another process meanwhile
        return track if len(track.times) else None

    def copies(self) -> dict[str, str]:
        """Contents that are copies of another one, and that one."""
        shared: dict[tuple[str, str], list[RoughStretch]] = {}
        for first, second, stretch in self.findings.pairs():
            if first != second and first in self.videos and second in self.videos:
                shared.setdefault((first, second), []).append(stretch)
        order = {content: place for place, content in enumerate(self.videos)}
        copies: dict[str, str] = {}
        for (first, second), stretches in sorted(shared.items()):
            one = _covered([(stretch.first_start, stretch.first_end) for stretch in stretches])
            other = _covered([(stretch.second_start, stretch.second_end) for stretch in stretches])
            lengths = self.videos[first].duration, self.videos[second].duration
            if one < _COPY_SHARE * lengths[0] or other < _COPY_SHARE * lengths[1]:
                continue
            kept, copy = sorted((first, second), key=order.__getitem__)
            while kept in copies:
                kept = copies[kept]
            if kept != copy and self._is_copy(first, second, stretches):
                copies.setdefault(copy, kept)
        return copies

    def _is_copy(self, first: str, second: str, stretches: Sequence[RoughStretch]) -> bool:
        """Whether contents that are alike are the same: a card and a camera that stands still always are alike."""
        longest = max(stretches, key=lambda stretch: stretch.first_end - stretch.first_start)
        if longest.contrast >= _CONTRAST_OF_COPY:
            return True
        files = self.videos[first], self.videos[second]
        fit = partial(try_fit_copy, self.clips, *files, longest)
        return self.findings.link(first, second, longest, fit) is not None

    def fit(self, left_out: set[str], options: RecurringOptions) -> list[SharedByFiles]:
        """Find the exact ends of enough stretches to connect all files that share one.

        Each stretch of a file is compared with a few others, the longest and most similar first. What is too short to
        be looked at for itself is looked at where it adjoins what two files share: a shot of a recap.
        """
        pairs = [
            (first, second, stretch)
            for first, second, stretch in self.findings.pairs()
            if first in self.videos and second in self.videos and not left_out & {first, second}
            if (first == second) == self.inside
        ]
        pairs.sort(key=lambda pair: -(pair[2].first_end - pair[2].first_start) * pair[2].score)
        worth = [_is_worth_reading(stretch, options.shortest) for _, _, stretch in pairs]
        self._total = self._done + len(pairs)
        places = _Places()
        links = self._fit_pairs([pair for pair, is_worth in zip(pairs, worth, strict=True) if is_worth], places)
        short = [pair for pair, is_worth in zip(pairs, worth, strict=True) if not is_worth]
        adjoining = _Adjoining(self.videos, links)
        near = [pair for pair in short if adjoining.has(*pair)]
        self._done += len(short) - len(near)
        return links + self._fit_pairs(near, places)

    def _fit_pairs(self, pairs: Sequence[_SharedPair], places: _Places) -> list[SharedByFiles]:
        """The stretches of these pairs that the pictures confirm, as far as they say something new."""
        numbers = [
            (
                places.number(first, stretch.first_start, stretch.first_end),
                places.number(second, stretch.second_start, stretch.second_end),
            )
            for first, second, stretch in pairs
        ]
        links = []
        for begin in range(0, len(pairs), _AHEAD):
            middle, end = begin + _AHEAD, begin + 2 * _AHEAD
            if self.mapper is None:
                # What the pairs before the middle need is being read since the last time.
                needed = self._needed(pairs[begin:end], numbers[begin:end], places)
                ahead = [pair for place, pair in needed if begin == 0 or begin + place >= middle]
                self.clips.read_ahead(wanted for pair in ahead for wanted in self._ends(pair))
            for place, pair in enumerate(pairs[begin:middle], start=begin):
                both = numbers[place]
                if places.needs(*both):
                    if self.mapper is not None:
                        self._fit_ahead(pairs[place:end], numbers[place:end], places, self.mapper)
                    link = self._link(*pair)
                    if link is None:
                        places.refuse(*both)
                    else:
                        places.connect(*both)
                        links.append(link)
                self._advance()
        return links

    def _needed(
        self, pairs: Sequence[_SharedPair], numbers: Sequence[tuple[int, int]], places: _Places
    ) -> Iterator[tuple[int, _SharedPair]]:
        """The pairs that must be looked at if the pictures confirm all before them, with their places."""
        guess = places.copy()
        for place, (pair, both) in enumerate(zip(pairs, numbers, strict=True)):
            if guess.needs(*both):
                guess.connect(*both)
                if not self.findings.knows(*pair):
                    yield place, pair

    def _link(self, first: str, second: str, stretch: RoughStretch) -> SharedByFiles | None:
        """A stretch with its exact ends; None if the pictures differ."""
        records, pair = (self.videos[first], self.videos[second]), (first, second, stretch)

        def fit() -> FittedStretch | None:
            return self._fits.pop(pair) if pair in self._fits else try_fit(self.clips, *records, stretch)

        link = self.findings.link(*pair, fit)
        return None if link is None else SharedByFiles(records[0].path, records[1].path, link)

    def _fit_ahead(
        self, pairs: Sequence[_SharedPair], numbers: Sequence[tuple[int, int]], places: _Places, mapper: Mapper
    ) -> None:
        """Have the ends of the next pairs found, unless those of the first are: of the pairs that will be needed if
        the pictures confirm all before them."""
        if self.findings.knows(*pairs[0]) or pairs[0] in self._fits:
            return
        needed = (pair for _, pair in self._needed(pairs, numbers, places) if pair not in self._fits)
        asked = list(islice(needed, _FITS_AHEAD * mapper.width))
        records = [(self.videos[one], self.videos[other], stretch) for one, other, stretch in asked]
        tasks = [Task("fit", (try_fit, *words), about=words[0].path) for words in records]
        self._fits.update(zip(asked, mapper.run(self._job, tasks), strict=True))

    def groups_of_one_length(self, groups: Sequence[RecurringGroup]) -> list[SharedByFiles]:
        """Links between groups that are one: what is shown twice in each of two files is found once with the one and
        once with the other, if stored features show no more."""
        contents = {record.path: content for content, record in self.videos.items()}
        # What is shown early in the later file, and late in the earlier one, looks like a recap.
        plain = [group for group in groups if group.kind != "recap" or len(group.occurrences) == 2]
        links = []
        for place, group in enumerate(plain):
            for other in plain[place + 1 :]:
                if abs(group.duration - other.duration) > _ONE_LENGTH:
                    continue
                both = ((one, two) for one in group.occurrences for two in other.occurrences if one.path != two.path)
                pair = next(both, None)
                if pair is None:
                    continue
                first, second = (contents[one.path] for one in pair)
                spans = (pair[0].start, pair[0].end, pair[1].start, pair[1].end)
                # How much its frames differ is not known: nothing is said of stills.
                stretch = RoughStretch(*spans, score=min(one.score for one in pair), contrast=0.0)
                link = self._link(*self.findings.add(first, second, stretch))
                links += [] if link is None else [link]
        return links

    def shots_of_recaps(self, groups: Sequence[RecurringGroup], links: Sequence[SharedByFiles]) -> list[SharedByFiles]:
        """Shots beside those by which recaps are known, which stored features do not show."""
        contents = {record.path: content for content, record in self.videos.items()}

        def remember(
            files: tuple[str, str], edge: float, side: StretchEnd, fit: Callable[[], FittedStretch | None]
        ) -> FittedStretch | None:
            self._total += 1
            link = self.findings.neighbor(contents[files[0]], contents[files[1]], edge, side, fit)
            self._advance()
            return link

        records = {record.path: record for record in self.videos.values()}
        return RecapShots(records, self.tracks, self.clips, remember).find(groups, links)

    def _ends(self, pair: _SharedPair) -> list[tuple[VideoRecord, float]]:
        first, second, stretch = pair
        one, other = self.videos[first], self.videos[second]
        return [
            *((one, time) for time in (stretch.first_start, stretch.first_end)),
            *((other, time) for time in (stretch.second_start, stretch.second_end)),
        ]

    def _advance(self) -> None:
        self._done += 1
        self.findings.save_now_and_then()
        self.tell()

    def tell(self) -> None:
        """Say how far the work is."""
        if self.on_progress is not None:
            self.on_progress(self._done, self._total)


def _is_worth_reading(stretch: RoughStretch, shortest: float) -> bool:
    """Whether a stretch may be long enough; one that seems too short must be similar."""
    length = min(stretch.first_end - stretch.first_start, stretch.second_end - stretch.second_start)
    return length >= shortest or (length >= min(shortest, 3.0) - _SLACK and stretch.score >= _SURE)


class _Adjoining:
    """Tells which stretches begin or end where something ends or begins that the same two files share."""

    def __init__(self, videos: Mapping[str, VideoRecord], links: Iterable[SharedByFiles]) -> None:
        self._paths = {content: record.path for content, record in videos.items()}
        self._ends: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for each in links:
            link = each.link
            self._ends.setdefault((each.first, each.second), []).append((link.first_start, link.first_end))
            self._ends.setdefault((each.second, each.first), []).append((link.second_start, link.second_end))

    def has(self, first: str, second: str, stretch: RoughStretch) -> bool:
        """Whether a stretch is one of those, in one of both files."""
        one, other = self._paths[first], self._paths[second]
        return self._touches((one, other), stretch.first_start, stretch.first_end) or self._touches(
            (other, one), stretch.second_start, stretch.second_end
        )

    def _touches(self, files: tuple[str, str], start: float, end: float) -> bool:
        known = self._ends.get(files, [])
        return any(min(abs(start - other[1]), abs(end - other[0])) <= _ADJOINING for other in known)


class _Places:
    """Stretches of files, those at about the same place as one, and which of them are connected."""

    def __init__(self) -> None:
        self._spans: dict[str, list[tuple[float, float, int]]] = {}
        self._parents: list[int] = []
        self._links: list[int] = []
        self._refused: list[int] = []

    def copy(self) -> _Places:
        """The same, for guesses about what is connected."""
        places = _Places()
        places._parents, places._links, places._refused = [*self._parents], [*self._links], [*self._refused]
        return places

    def number(self, content: str, start: float, end: float) -> int:
        """The number of a stretch."""
        spans = self._spans.setdefault(content, [])
        for other_start, other_end, number in spans:
            shared = min(end, other_end) - max(start, other_start)
            if shared >= _SAME_SPAN * (max(end, other_end) - min(start, other_start)):
                return number
        spans.append((start, end, len(self._parents)))
        self._parents.append(len(self._parents))
        self._links.append(0)
        self._refused.append(0)
        return len(self._parents) - 1

    def needs(self, one: int, other: int) -> bool:
        """Whether a link of these two says something new, and may exist."""
        if any(self._refused[place] >= _TRIES and not self._links[place] for place in (one, other)):
            return False
        return self._root(one) != self._root(other) or min(self._links[one], self._links[other]) < _LINKS

    def refuse(self, one: int, other: int) -> None:
        """Remember that the pictures of two stretches differ."""
        self._refused[one] += 1
        self._refused[other] += 1

    def connect(self, one: int, other: int) -> None:
        """Remember that the pictures of two stretches are the same."""
        self._parents[self._root(one)] = self._root(other)
        self._links[one] += 1
        self._links[other] += 1

    def _root(self, number: int) -> int:
        while self._parents[number] != number:
            self._parents[number] = self._parents[self._parents[number]]
            number = self._parents[number]
        return number


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """Seconds that spans cover together."""
    covered, last = 0.0, 0.0
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, last))
        last = max(last, end)
    return covered


def _copy_groups(by_content: dict[str, list[VideoRecord]], copies: dict[str, str], files: int) -> list[RecurringGroup]:
    groups: dict[str, list[VideoRecord]] = {}
    for content, same in by_content.items():
        kept = content
        while kept in copies:
            kept = copies[kept]
        groups.setdefault(kept, []).extend(same)
    return [
        RecurringGroup(
            tuple(Occurrence(record.path, 0.0, max(record.duration, 1e-3), 1.0) for record in same), "copy", files
        )
        for same in groups.values()
        if len(same) > 1
    ]
