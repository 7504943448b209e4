"""Find recurring segments in the videos of an index; findings are saved, so that later searches compare only new
videos."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace

import numpy as np

from vidkin._base.values import LONG_JSON_LIMITS, check_at_least, parse_json
from vidkin.errors import CollectionError, InvalidArgumentError, VidkinError
from vidkin.index.duplicates.comparisons import content_of
from vidkin.index.recurring.ends import Clips, FittedStretch, try_fit
from vidkin.index.recurring.groups import (
    Occurrence,
    RecurringGroup,
    Sets,
    SharedByFiles,
    build_groups,
    follow_link,
    natural_order,
)
from vidkin.index.recurring.stretches import (
    SHORTEST,
    RoughStretch,
    Track,
    Tracks,
    WindowTable,
    find_shared,
    find_stretches_inside,
    is_same_span,
)
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.files import write_atomically
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord
from vidkin.index.storage.tasks import MapHere, Mapper, Task, check_files_here

_logger = logging.getLogger(__name__)

_PAUSE = 20.0  # minimum seconds between writes; at most this much work is lost if the process is killed
# Increment when a change results in different segments or ends for the same two videos.
_REVISION = 9
# Two files are copies if their shared segments cover at least this fraction of each.
_MIN_COPY_RATIO = 0.8
# Number of other segments with which a segment is compared frame by frame, and maximum number of failed attempts, which
# is limited because a still title card in all files would otherwise be tried in every pair.
_LINKS, _MAX_FAILURES = 2, 5

_SharedPair = tuple[str, str, RoughStretch]


@dataclass(slots=True)
class Findings:
    """Shared segments of pairs of contents; a content is identified by the hash of its bytes.

    Attributes:
        place: Location of the index; None to save nothing.
        state: Identifies what the findings depend on apart from the files; findings with a different state are
            discarded.
        searched: Sets of contents in which each was compared with all others.
        searched_inside: Contents that were compared with themselves.
        stretches: The segments found, keyed by pair of contents.
        links: The exact ends of each segment; None if the frames do not confirm it.
    """

    FILE = "recurring.json"

    place: Place | None = None
    state: str = ""
    searched: list[set[str]] = field(default_factory=list)
    searched_inside: set[str] = field(default_factory=set)
    stretches: dict[tuple[str, str], tuple[RoughStretch, ...]] = field(default_factory=dict)
    links: dict[_SharedPair, FittedStretch | None] = field(default_factory=dict)
    _written: float = field(default_factory=time.monotonic)

    def add(self, first: str, second: str, stretches: Iterable[RoughStretch]) -> None:
        """Add segments that two contents share."""
        known = self.stretches.get((first, second), ())
        self.stretches[first, second] = tuple(dict.fromkeys([*known, *stretches]))

    def begin(self, contents: Iterable[str]) -> set[str]:
        """Return the largest set of these contents that were all compared with each other, to which the caller adds the
        others once they are compared."""
        wanted = set(contents)
        known = max((wanted & held for held in self.searched), key=len, default=set())
        # Drop subsets of the returned set, which are redundant.
        self.searched = [held for held in self.searched if not held <= known] + [known]
        return known

    def pairs(self) -> Iterator[_SharedPair]:
        """Yield all findings as (first content, second content, segment)."""
        for (first, second), stretches in sorted(self.stretches.items(), key=lambda entry: entry[0]):
            yield from ((first, second, stretch) for stretch in stretches)

    @classmethod
    def open(cls, place: Place, state: str) -> Findings:
        """Load the findings of an index; empty if they have a different state or cannot be read."""
        findings = cls(place, f"{state} {_REVISION}")
        try:
            content = place.read(cls.FILE)
            if content is None:
                return findings
            table = parse_json(content, LONG_JSON_LIMITS)
            if table["state"] != findings.state:
                return findings
            names = [str(name) for name in table["contents"]]
            for first, second, rows in table["pairs"]:
                for numbers, *link in rows:
                    pair = names[first], names[second], RoughStretch(*map(float, numbers))
                    findings.add(*pair[:2], pair[2:])
                    if link:
                        findings.links[pair] = None if link[0] is None else _parse_link(link[0])
            findings.searched = [{names[at] for at in held} for held in table["searched"]]
            findings.searched_inside = {names[at] for at in table["searched_inside"]}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, VidkinError) as error:
            _logger.info("%s: %s; comparing all videos again", place.address(cls.FILE), error)
            return cls(place, f"{state} {_REVISION}")
        return findings

    def save(self, pause: float = 0.0) -> None:
        """Save the findings atomically, unless they were saved less than ``pause`` seconds ago; failures are only
        logged, because the videos can be compared again."""
        if self.place is None or time.monotonic() - self._written < pause:
            return
        names = sorted(self.searched_inside.union(*self.searched, *self.stretches))
        numbers = {name: number for number, name in enumerate(names)}
        rows: dict[tuple[int, int], list[list[object]]] = {}
        for pair in self.pairs():
            row: list[object] = [astuple(pair[2]), *([self.links[pair]] if pair in self.links else [])]
            rows.setdefault((numbers[pair[0]], numbers[pair[1]]), []).append(row)
        table = {
            "state": self.state,
            "contents": names,
            "searched": [sorted(numbers[name] for name in held) for held in self.searched],
            "searched_inside": sorted(numbers[name] for name in self.searched_inside),
            "pairs": [[*pair, held] for pair, held in rows.items()],
        }
        try:
            write_atomically(self.place, self.FILE, json.dumps(table, separators=(",", ":")).encode())
        except CollectionError as error:
            _logger.info("%s", error)
        self._written = time.monotonic()


def _parse_link(row: Sequence[float]) -> FittedStretch:
    """Parse a stored row.

    Raises:
        InvalidArgumentError: The row is not a valid segment.
    """
    link = FittedStretch(*map(float, row))
    RoughStretch(*link[:4], score=link.score, contrast=0.0)
    return link


@dataclass(frozen=True, slots=True)
class RecurringOptions:
    """Options for finding recurring segments.

    Attributes:
        least: Minimum number of files that share a segment; with ``inside``, minimum number of occurrences in a file.
        shortest, longest: Bounds on the duration of the longest occurrence in seconds; None for no upper bound.
        inside: Find segments repeated within a file instead of segments shared by several files.
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
                f"longest must be at least shortest ({self.shortest:g} s), got {self.longest:g} s"
            )

    def accepts(self, group: RecurringGroup) -> bool:
        """Whether a group satisfies the options."""
        count = len(group.occurrences) if self.inside else len(group.paths)
        return count >= self.least and self.shortest <= group.duration <= (self.longest or float("inf"))


@dataclass(frozen=True, slots=True)
class StretchJob:
    """A :class:`~vidkin.index.storage.tasks.MappedJob` that compares videos and finds the ends of shared segments.

    Attributes:
        records: Videos to compare.
        table: Windows of these videos, numbered by position; None to compare each video with itself.
        is_remote: Whether the job may run on another machine, which must be able to access the files.
    """

    records: Sequence[VideoRecord] = ()
    table: WindowTable | None = None
    is_remote: bool = False

    def start(self, place: Place, store: VectorStore) -> _StretchWorker:
        return _StretchWorker(self, Tracks(store))


@dataclass(frozen=True, slots=True)
class _StretchWorker:
    """Performs the tasks of a :class:`StretchJob` in one process; videos removed in the meantime give None."""

    job: StretchJob
    tracks: Tracks
    clips: Clips = field(default_factory=Clips)

    def track(self, record: VideoRecord) -> Track | None:
        """Return the windows of a video, without its frames."""
        track = self.tracks.of(record)
        return None if track is None else replace(track, vectors=track.vectors[:0])

    def shared(self, number: int) -> list[tuple[int, list[RoughStretch]]] | None:
        """Return the segments that a video shares with videos before it, or repeats, as (number of the other video,
        segments)."""
        track = self.tracks.of(self.job.records[number])
        if track is None:
            return None
        if self.job.table is None:
            return [(number, find_stretches_inside(track))]
        votes = self.job.table.votes(track, number)
        return find_shared(track, votes, lambda other: self.tracks.of(self.job.records[other]))

    def fit(self, first: VideoRecord, second: VideoRecord, stretch: RoughStretch) -> FittedStretch | None:
        """Find the exact ends of a segment."""
        if self.job.is_remote:
            check_files_here([first.path, second.path])
        return try_fit(self.clips, first, second, stretch)


@dataclass(slots=True)
class _StretchSearch:
    """State shared by the steps of a search.

    Attributes:
        videos: Videos keyed by content.
        findings: Receives the segments found.
        mapper: Runs the tasks.
        on_progress: Callback that receives (steps done, total number of steps).
        job: Job that finds the ends.
        done, total: Number of steps done, and total number of steps.
    """

    videos: Mapping[str, VideoRecord]
    findings: Findings
    mapper: Mapper
    on_progress: Callable[[int, int], None] | None
    job: StretchJob
    done: int = 0
    total: int = 0

    def advance(self, steps: int = 1) -> None:
        """Report finished steps, and save occasionally."""
        self.done += steps
        self.findings.save(_PAUSE)
        if self.on_progress is not None:
            self.on_progress(self.done, self.total)

    def fit(self, pairs: Sequence[_SharedPair]) -> Iterator[FittedStretch | None]:
        """Yield the exact ends of segments in order, reusing known ends."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self.findings.links]
        tasks = [
            Task("fit", (self.videos[first], self.videos[second], stretch), about=self.videos[first].path)
            for first, second, stretch in new
        ]
        fitted = self.mapper.run(self.job, tasks) if tasks else iter(())
        for pair in pairs:
            if pair not in self.findings.links:
                self.findings.links[pair] = next(fitted)
            self.advance()
            yield self.findings.links[pair]


def find_recurring(
    records: Sequence[VideoRecord],
    store: VectorStore,
    findings: Findings,
    options: RecurringOptions,
    mapper: Mapper,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[RecurringGroup]:
    """Find recurring segments in videos.

    Args:
        records: Videos with features whose files exist.
        store: Store of the index.
        findings: Cache of segments; known pairs are not compared again.
        options: Search options.
        mapper: Compares videos and finds ends, possibly on other machines.
        on_progress: Callback that receives (steps done, total number of steps).

    Returns:
        The groups; those of whole copies come last.
    """
    by_content: dict[str, list[VideoRecord]] = {}
    for record in sorted(records, key=lambda record: natural_order(record.path)):
        by_content.setdefault(content_of(record), []).append(record)
    videos = {content: same[0] for content, same in by_content.items()}
    job = StretchJob(is_remote=not isinstance(mapper, MapHere))
    search = _StretchSearch(videos, findings, mapper, on_progress, job)
    try:
        _compare(search, inside=options.inside)
        joined: list[tuple[str, str]] = []
        copies = {} if options.inside else _find_copies(search, joined)
        lengths = {record.path: record.duration for content, record in videos.items() if content not in copies}
        links = _find_links(search, copies, inside=options.inside)
        if not options.inside:
            links += _extend_recaps(search, Tracks(store), build_groups(links, lengths))
        parts = [lengths] if not options.inside else [{path: length} for path, length in lengths.items()]
        groups = [each for part in parts for each in build_groups([link for link in links if link.first in part], part)]
        groups = [_with_copies(search, group, joined) for group in groups if options.accepts(group)]
        search.total = search.done
        search.advance(0)
    finally:
        findings.save()
    return groups + _copy_groups(by_content, copies, len(records))


def _compare(search: _StretchSearch, *, inside: bool) -> None:
    """Compare new videos with earlier ones and with each other or, with ``inside``, each with itself."""
    videos, findings = search.videos, search.findings
    searched = findings.searched_inside if inside else findings.begin(videos)
    new = [name for name in videos if name not in searched]
    names = new if inside else [*(name for name in videos if name in searched), *new]
    search.total = 2 * len(new)
    if not new:
        return
    records = [videos[name] for name in names]
    table = None
    if not inside:
        tasks = [Task("track", (record,), record.id, record.path) for record in records]
        table = WindowTable.of_tracks(search.mapper.run(StretchJob(), tasks))
    first = len(names) - len(new)
    tasks = [Task("shared", (number,), records[number].id, records[number].path) for number in range(first, len(names))]
    for name, shared in zip(new, search.mapper.run(StretchJob(records, table), tasks), strict=True):
        for number, stretches in shared or ():
            if stretches and (names[number], name) not in findings.stretches:
                findings.add(name, names[number], stretches)
        if shared is not None:
            searched.add(name)
        search.advance()


def _find_copies(search: _StretchSearch, joined: list[tuple[str, str]]) -> dict[str, str]:
    """Map each content that is a copy to its original; shared segments cover most of both.

    Args:
        search: The search.
        joined: Receives the pairs of contents that connect each copy with its original, as few as possible.
    """
    shared: dict[tuple[str, str], list[RoughStretch]] = {}
    for first, second, stretch in search.findings.pairs():
        if first != second and first in search.videos and second in search.videos:
            shared.setdefault((first, second), []).append(stretch)
    names = list(search.videos)
    order, sets = {content: position for position, content in enumerate(names)}, Sets(range(len(names)))
    for (first, second), stretches in shared.items():
        covered = (
            _covered([each.first_span for each in stretches]) / search.videos[first].duration,
            _covered([each.second_span for each in stretches]) / search.videos[second].duration,
        )
        longest = max(stretches, key=lambda stretch: stretch.length)
        if min(covered) < _MIN_COPY_RATIO or sets.find(order[first]) == sets.find(order[second]):
            continue
        # Title cards and shots from a fixed camera always look similar, so confirm them frame by frame.
        if longest.is_distinct or next(search.fit([(first, second, longest)])) is not None:
            sets.join(order[first], order[second])
            joined.append((first, second))
    return {name: names[kept] for at, name in enumerate(names) if (kept := sets.find(at)) != at}


def _with_copies(search: _StretchSearch, group: RecurringGroup, joined: Sequence[tuple[str, str]]) -> RecurringGroup:
    """Add the occurrences in copies of the files of a group: a copy shows what its original shows."""
    if not joined:
        return group
    contents = {record.path: content for content, record in search.videos.items()}
    occurrences = []
    for one in group.occurrences:
        seen, waiting = {contents[one.path]}, [one]
        while waiting:
            known = waiting.pop()
            occurrences.append(known)
            name = contents[known.path]
            for other in {each for pair in joined if name in pair for each in pair} - seen:
                seen.add(other)
                copied = _copied(search, known, name, other)
                waiting += [] if copied is None else [copied]
    occurrences.sort(key=lambda one: (one.source, natural_order(one.path), one.start))
    return replace(group, occurrences=tuple(occurrences), files=len(search.videos))


def _copied(search: _StretchSearch, one: Occurrence, content: str, other: str) -> Occurrence | None:
    """The same occurrence in a copy of its file; None if the copy lacks it."""
    shared = [
        (pair, pair[2].first_span if pair[0] == content else pair[2].second_span)
        for pair in search.findings.pairs()
        if set(pair[:2]) == {content, other}
    ]
    overlaps_of = [min(one.end, end) - max(one.start, start) for _, (start, end) in shared]
    best = int(np.argmax(overlaps_of))
    if overlaps_of[best] < _MIN_COPY_RATIO * one.duration:
        return None
    pair = shared[best][0]
    search.total += 1
    link = next(search.fit([pair])) or FittedStretch(*pair[2].first_span, *pair[2].second_span, pair[2].score, 0.0)
    return follow_link(one, link if pair[0] == content else link.swapped(), search.videos[other])


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """Total seconds covered by spans, which may overlap."""
    covered, last = 0.0, 0.0
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, last))
        last = max(last, end)
    return covered


def _find_links(search: _StretchSearch, left_out: Collection[str], *, inside: bool) -> list[SharedByFiles]:
    """Find the exact ends of enough segments to connect all files that share them.

    Each segment of a file is compared with a few others, longest and most similar first. A segment is in at most one
    pair per round, so that the pairs of a round are independent of each other.
    """
    pairs = [
        pair
        for pair in search.findings.pairs()
        if all(name in search.videos and name not in left_out for name in pair[:2]) and (pair[0] == pair[1]) == inside
    ]
    pairs.sort(key=lambda pair: -pair[2].length * pair[2].score)
    sets, spans = Sets(()), dict[str, list[tuple[tuple[float, float], int]]]()

    def number(content: str, start: float, end: float) -> int:
        known = spans.setdefault(content, [])
        same = next((number for span, number in known if is_same_span(span, (start, end))), None)
        if same is None:
            same = sets.add()
            known.append(((start, end), same))
        return same

    left = {pair: (number(pair[0], *pair[2].first_span), number(pair[1], *pair[2].second_span)) for pair in pairs}
    linked, refused = Counter[int](), Counter[int]()
    links: list[SharedByFiles] = []
    while left:
        asked, busy = dict[_SharedPair, tuple[int, int]](), set[int]()
        for pair, both in [*left.items()]:
            is_known = sets.find(both[0]) == sets.find(both[1]) and min(linked[at] for at in both) >= _LINKS
            # Give up on segments such as title cards, which match in every pair but are never confirmed.
            if is_known or any(refused[at] >= _MAX_FAILURES and not linked[at] for at in both):
                del left[pair]
            elif busy.isdisjoint(both):
                asked[pair] = left.pop(pair)
                busy.update(both)
        search.total = search.done + len(asked) + len(left)
        for (pair, both), link in zip(asked.items(), search.fit([*asked]), strict=True):
            (refused if link is None else linked).update(both)
            if link is not None:
                sets.join(*both)
                links.append(SharedByFiles(search.videos[pair[0]].path, search.videos[pair[1]].path, link))
    return links


_MOMENTS = 4  # number of moments in the earlier file to try for each shot of a recap


def _extend_recaps(search: _StretchSearch, tracks: Tracks, groups: Sequence[RecurringGroup]) -> list[SharedByFiles]:
    """Find further shots of recaps next to known ones.

    Stored features miss them, because a shot of two seconds has only two frames in the index, sampled at different
    moments than the shot it repeats.
    """
    contents = {record.path: content for content, record in search.videos.items()}
    found: list[SharedByFiles] = []
    for group in groups:
        shown, *sources = sorted(group.occurrences, key=lambda one: one.source)
        for source in dict.fromkeys(one.path for one in sources if one.source):
            names = contents[shown.path], contents[source]
            for edge, outwards in ((shown.start, -1), (shown.end, 1)):
                link = _next_shot(search, tracks, names, edge, outwards)
                while link is not None:
                    found.append(SharedByFiles(shown.path, source, link))
                    edge = link.first_start if outwards < 0 else link.first_end
                    link = _next_shot(search, tracks, names, edge, outwards)
    return found


def _next_shot(
    search: _StretchSearch, tracks: Tracks, names: tuple[str, str], edge: float, outwards: int
) -> FittedStretch | None:
    """Find the shot of a recap that continues at ``edge``, by trying the most similar moments of the earlier file."""
    first, second = (tracks.of(search.videos[name]) for name in names)
    if first is None or second is None:
        return None
    distances = (first.times - edge) * outwards
    nearby = np.flatnonzero((distances > 0) & (distances <= SHORTEST))
    if len(nearby) == 0:
        return None
    row = int(nearby[np.argmin(distances[nearby])])
    scores = second.vectors.astype(np.float32) @ first.vectors[row].astype(np.float32)
    pairs: list[_SharedPair] = []
    for at in np.argsort(-scores).tolist():
        shift = float(second.times[at] - first.times[row])
        start, end = sorted((edge, edge + outwards * SHORTEST))
        start = max(start, -shift, 0.0)
        is_new = all(abs(shift - other.second_start + other.first_start) >= SHORTEST for *_, other in pairs)
        if is_new and start < end:
            stretch = RoughStretch(start, end, start + shift, end + shift, float(scores[at].clip(0, 1)), 0.0)
            pairs.append((*names, stretch))
        if len(pairs) == _MOMENTS:
            break
    for pair in pairs:
        search.findings.add(*pair[:2], pair[2:])
    search.total += len(pairs)
    best: FittedStretch | None = None
    for link in search.fit(pairs):
        if link is None or (best is not None and link.match <= best.match):
            continue
        if abs((link.first_end if outwards < 0 else link.first_start) - edge) <= 0.1:
            best = link
    return best


def _copy_groups(
    by_content: Mapping[str, Sequence[VideoRecord]], copies: Mapping[str, str], files: int
) -> list[RecurringGroup]:
    groups: dict[str, list[VideoRecord]] = {}
    for content, same in by_content.items():
        groups.setdefault(copies.get(content, content), []).extend(same)
    return [
        RecurringGroup(
            tuple(Occurrence(record.path, 0.0, max(record.duration, 1e-3), 1.0) for record in same), "copy", files
        )
        for same in groups.values()
        if len(same) > 1
    ]
