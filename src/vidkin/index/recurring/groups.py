"""Groups of stretches that recur: which belong together, what they are, and where exactly they are in each file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from vidkin._base.arguments import check_constructor
from vidkin._base.values import Result, check_choice, check_not_negative, check_positive, check_share
from vidkin.errors import InvalidArgumentError
from vidkin.index.recurring.ends import FittedStretch
from vidkin.media.notebook import Card, cards_html, data_frame, shown_name

RecurringKind = Literal["opening", "recap", "closing", "inside", "copy"]
"""What a group is by its place: at the begin of files, footage of an earlier file, at their end, or anywhere else.
``copy`` is the whole of several files, in which nothing else is looked for."""

LONGEST_NAME = 80
"""Characters of the name of a group."""

_ADJACENT = 1.0  # seconds between parts of one occurrence
_SAME_SPAN = 0.5  # share of the shorter of two spans of one file that makes them one
_LEAST_VARIANT = 0.25  # of the longer one: a single shot of an opening is no version of it
_PART_SHARE = 0.9
_LEAST_WITNESSES = 3  # times as many occurrences tell whether something is shown by all of them
_EARLY, _LATE = 0.35, 0.65  # shares of a file: an opening starts before, a closing after
_RECAP_STARTS = 0.3
_MOST_REPEATED = 0.2  # share of the files that may show an opening twice
_APART = 0.15  # share of the files by which places of a recap and of its source differ
_AGREE = 0.1  # seconds
_IN_FADES = 0.5  # seconds by which both ends together may be off in fades
_OVERLAP = 0.5  # seconds that two stretches of two files have in common if they are one
_LACKING = 0.25  # seconds: less is the accuracy of fades
_KNOWN_SPEEDS = (24 / 25, 1.0, 25 / 24)


@check_constructor
@dataclass(frozen=True, slots=True)
class Occurrence(Result):
    """Where a group occurs in a file.

    Attributes:
        path: The file.
        start, end: Seconds; ``end`` is when its last frame leaves the screen.
        score: How similar it is to the others of its group, in [0, 1].
        speed: How fast it runs compared with the first of its group: 0.96 for film that was slowed from 25 to 24 frames
            per second.
        shorter: Seconds by which it is shorter than the longest of its group, at the same speed: what was left out.
        without_middle: Seconds left out inside of it, between two parts that it has: it is another cut.
        titled: It shows other titles, or something else over the picture, than most of its group.
        other_sound: It has other sound than most of its group, such as another language; only where the index knows the
            sound.
        source: It is the footage that a recap shows again, not the recap.
        picture, sound: What each of them says alone, in [0, 1], of it and the others; None where that is not known.
    """

    path: str
    start: float
    end: float
    score: float
    speed: float = 1.0
    shorter: float = 0.0
    source: bool = False
    titled: bool = False
    other_sound: bool = False
    picture: float | None = None
    sound: float | None = None
    without_middle: float = 0.0

    def __post_init__(self) -> None:
        check_not_negative(start=self.start, shorter=self.shorter, without_middle=self.without_middle)
        check_share(score=self.score)
        check_positive(speed=self.speed)
        if not self.start < self.end:
            raise InvalidArgumentError(f"an occurrence must end after it starts, got [{self.start}, {self.end}] s")

    @property
    def duration(self) -> float:
        """Its length in seconds."""
        return self.end - self.start


@check_constructor
@dataclass(frozen=True, slots=True)
class RecurringGroup(Result):
    """A stretch that several files share, or that one file shows again.

    Attributes:
        occurrences: Where it is, in the order of the files' names (numbers by value) and of time.
        kind: What it is, by its place in the files.
        files: Number of files that were looked at.
        name: What a person called it; empty if nobody did.
        is_confirmed: Whether a person confirmed it, with its ends as they are here.
        found_by: ``sound`` if the pictures alone do not show that it recurs, or were not asked: it is heard again,
            whatever is seen.
    """

    occurrences: tuple[Occurrence, ...]
    kind: RecurringKind
    files: int
    name: str = ""
    is_confirmed: bool = False
    found_by: Literal["picture", "sound"] = "picture"

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(RecurringKind))
        check_choice("found_by", self.found_by, ("picture", "sound"))
        if len(self.occurrences) < 2:
            raise InvalidArgumentError(f"a group must have at least 2 occurrences, got {len(self.occurrences)}")
        if len(self.name) > LONGEST_NAME or not self.name.isprintable():
            raise InvalidArgumentError(
                f"the name of a group must have at most {LONGEST_NAME} printable characters, got {self.name!r:.90}"
            )

    @property
    def duration(self) -> float:
        """Length of the longest occurrence in seconds."""
        return max(occurrence.duration for occurrence in self.occurrences)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files in which it occurs, each once."""
        return tuple(dict.fromkeys(occurrence.path for occurrence in self.occurrences))

    def cards(self, path: str = "") -> list[Card]:
        """A picture from the middle of each occurrence, for a notebook."""
        title = self.name or self.kind
        return [
            Card(
                one.path,
                (one.start + one.end) / 2,
                f"{title}: {shown_name(one.path)}",
                f"{one.start:.2f} - {one.end:.2f} s, score {one.score:.2f}",
            )
            for one in self.occurrences
        ]

    def table_rows(self) -> list[dict[str, Any]]:
        """One row an occurrence, with the kind and the name of the group."""
        return [{"kind": self.kind, "name": self.name, **one.to_dict()} for one in self.occurrences]

    def to_pandas(self) -> Any:
        """The occurrences as a pandas DataFrame; :class:`vidkin.errors.MissingPartError` where it is not installed."""
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        return cards_html(self.cards(), self.name or self.kind)


@dataclass(frozen=True, slots=True)
class SharedByFiles:
    """A shared stretch and the two files that share it.

    Attributes:
        first, second: Paths.
        link: The stretch.
    """

    first: str
    second: str
    link: FittedStretch


class _SeenSpan(NamedTuple):
    """A stretch of a file as one link sees it: its ends and score, and the stretch of the other file."""

    start: float
    end: float
    score: float
    other: str
    other_start: float
    other_end: float


@dataclass(slots=True)
class _Span:
    """A stretch of a file as links see it."""

    path: str
    start: float
    end: float
    links: list[_SeenSpan] = field(default_factory=list)
    group: int = -1
    look: int = -1  # spans of one look have the same titles over them


def build_groups(links: Sequence[SharedByFiles], lengths: Mapping[str, float]) -> list[RecurringGroup]:
    """Put linked stretches into groups.

    Args:
        links: Shared stretches with exact ends.
        lengths: Seconds of every file that was looked at, by path.

    Returns:
        Openings, recaps, closings, then what is inside, each kind by its earliest place in a file.
    """
    links = _join_overlapping(links)
    spans = _Spans()
    joined = [
        (spans.add(each.first, each.link, each.second), spans.add(each.second, each.link.swapped(), each.first))
        for each in links
    ]
    names = _components(len(spans.all), [(spans.find(one), spans.find(other)) for one, other in joined])
    looks = _looks(spans, links, joined)
    members: dict[int, list[_Span]] = {}
    for number in spans.roots():
        members.setdefault(names[number], []).append(replace(spans.all[number], look=looks[number]))
    speeds = _speeds(links)
    order = {path: place for place, path in enumerate(sorted(lengths, key=natural_order))}
    parts = [_occurrences(group, speeds, order) for group in members.values()]
    parts = _without_lookalikes(_without_parts(_join_variants([part for part in parts if len(part) > 1])))
    recaps, rest = _find_recaps(parts, lengths, order)
    groups = recaps + [_plain(part, lengths) for part in rest]
    return sort_groups(replace(group, kind="inside") if _is_part(group, groups) else group for group in groups)


def _is_part(group: RecurringGroup, groups: Sequence[RecurringGroup]) -> bool:
    """Whether it is a shot of another one in two files at least: of an opening, that another file has for itself."""

    def is_within(one: Occurrence, other: Occurrence) -> bool:
        shared = min(one.end, other.end) - max(one.start, other.start)
        return one.path == other.path and _PART_SHARE * one.duration <= shared <= _PART_SHARE * other.duration

    return group.kind in ("opening", "closing") and any(
        sum(any(is_within(one, whole) for whole in other.occurrences) for one in group.occurrences) > 1
        for other in groups
        if other.kind == group.kind
    )


def sort_groups(groups: Iterable[RecurringGroup]) -> list[RecurringGroup]:
    """Openings, recaps, closings, then what is inside, copies last; each kind by its earliest place in a file."""
    kinds = get_args(RecurringKind)
    return sorted(
        groups,
        key=lambda group: (
            kinds.index(group.kind),
            min(one.start for one in group.occurrences),
            natural_order(group.occurrences[0].path),
        ),
    )


def natural_order(path: str) -> tuple[tuple[int, int, str], ...]:
    """Key that sorts names as people count: ``episode 2`` before ``episode 10``.

    >>> sorted(["e10", "e2"], key=natural_order)
    ['e2', 'e10']
    """
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]+", str(Path(path)).casefold())
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def _join_overlapping(links: Sequence[SharedByFiles]) -> list[SharedByFiles]:
    """The links, those of two files joined that overlap and show the same moments side by side.

    Where something plain lasts inside of what two files share, it is found in two parts, and each may reach beyond it.
    """
    joined: list[SharedByFiles] = []
    of_files: dict[tuple[str, str], list[int]] = {}
    for each in links:
        places = of_files.setdefault((each.first, each.second), [])
        for place in places:
            one, other = sorted((joined[place].link, each.link))
            if _overlaps(one, other):
                whole = FittedStretch(
                    one.first_start, other.first_end, one.second_start, other.second_end,
                    min(one.score, other.score), max(one.match, other.match), min(one.covered, other.covered),
                    one.speed,
                )  # fmt: skip
                joined[place] = replace(each, link=whole)
                break
        else:
            places.append(len(joined))
            joined.append(each)
    return joined


def _overlaps(one: FittedStretch, other: FittedStretch) -> bool:
    """Whether a stretch begins inside of an earlier one of the same two files, where that shows the same, and goes on
    beyond it: a part of it may be shown again elsewhere, and stays one of its own."""
    speed = (one.second_end - one.second_start) / (one.first_end - one.first_start)
    there = one.second_start + (other.first_start - one.first_start) * speed
    overlap, beyond = one.first_end - other.first_start, other.first_end - one.first_end
    return (
        min(overlap, beyond, other.first_start - one.first_start) >= _OVERLAP
        and abs(there - other.second_start) <= 2 * _AGREE
    )


def _looks(spans: _Spans, links: Sequence[SharedByFiles], joined: Sequence[tuple[int, int]]) -> list[int]:
    """For each span the smallest number of one that shows the same titles; the longest link of two spans tells."""
    longest: dict[tuple[int, int], tuple[float, float]] = {}
    for each, (one, other) in zip(links, joined, strict=True):
        pair = spans.find(one), spans.find(other)
        said = each.link.first_end - each.link.first_start, each.link.covered
        longest[pair] = max(longest.get(pair, said), said)
    return _components(len(spans.all), [pair for pair, (_, covered) in longest.items() if not covered])


class _Spans:
    """Spans of files; those that mostly overlap are one."""

    def __init__(self) -> None:
        self.all: list[_Span] = []
        self._parents: list[int] = []
        self._of_file: dict[str, list[int]] = {}

    def add(self, path: str, link: FittedStretch, other_path: str) -> int:
        """Number of the span of one side of a link."""
        seen = _SeenSpan(link.first_start, link.first_end, link.score, other_path, link.second_start, link.second_end)
        number = len(self.all)
        self.all.append(_Span(path, seen.start, seen.end, [seen]))
        self._parents.append(number)
        for other in self._of_file.setdefault(path, []):
            root = self.find(other)
            if root != number and self._is_one(self.all[number], self.all[root]):
                self._merge(number, root)
        self._of_file[path] = [each for each in self._of_file[path] if self.find(each) == each]
        self._of_file[path].append(number)
        return number

    def find(self, number: int) -> int:
        while self._parents[number] != number:
            number = self._parents[number]
        return number

    def roots(self) -> list[int]:
        return [number for number in range(len(self.all)) if self.find(number) == number]

    @staticmethod
    def _is_one(one: _Span, other: _Span) -> bool:
        shared = min(one.end, other.end) - max(one.start, other.start)
        shorter, longer = sorted((one.end - one.start, other.end - other.start))
        return shared >= _SAME_SPAN * shorter and shorter >= _LEAST_VARIANT * longer

    def _merge(self, number: int, root: int) -> None:
        kept, gone = self.all[number], self.all[root]
        self._parents[root] = number
        kept.links += gone.links
        kept.start, kept.end = _ends(kept.links)


def _ends(links: Sequence[_SeenSpan]) -> tuple[float, float]:
    """Start and end that most links agree on; of equally many the longer stretch."""
    starts, ends = [link.start for link in links], [link.end for link in links]

    def support(values: Sequence[float], value: float) -> int:
        return sum(abs(other - value) <= _AGREE for other in values)

    # A shortened copy shows fewer shots: what two links agree on outside of it is there.
    start = min(starts, key=lambda value: (-min(2, support(starts, value)), value))
    end = max(ends, key=lambda value: (min(2, support(ends, value)), value))
    near_start = [value for value in starts if abs(value - start) <= _AGREE]
    near_end = [value for value in ends if abs(value - end) <= _AGREE]
    return float(np.median(near_start)), float(np.median(near_end))


def _components(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """For each of ``count`` numbers the smallest one that pairs connect it with."""
    names = list(range(count))

    def name(number: int) -> int:
        while names[number] != number:
            names[number] = names[names[number]]
            number = names[number]
        return number

    for one, other in pairs:
        first, second = sorted((name(one), name(other)))
        names[second] = first
    return [name(number) for number in range(count)]


def _speeds(links: Sequence[SharedByFiles]) -> dict[str, float]:
    """How fast each file runs compared with the first of those that are linked with it, by the longest stretches."""
    speeds: dict[str, float] = {}
    partners: dict[str, list[tuple[float, float, str]]] = {}
    for each in links:
        link = each.link
        length = link.first_end - link.first_start
        speed = _known_speed(length, link.second_end - link.second_start, link.speed)
        partners.setdefault(each.first, []).append((-length, speed, each.second))
        partners.setdefault(each.second, []).append((-length, 1 / speed, each.first))
    for path in sorted(partners, key=natural_order):
        if path in speeds:
            continue
        speeds[path] = 1.0
        # The longest stretch between what is known and what is not, again and again.
        todo = [(length, 1.0, speed, other) for length, speed, other in partners[path]]
        heapify(todo)
        while todo:
            _, base, speed, other = heappop(todo)
            if other not in speeds:
                speeds[other] = base * speed
                for further in partners[other]:
                    heappush(todo, (further[0], speeds[other], *further[1:]))
    return speeds


def _known_speed(length: float, other: float, seen: float) -> float:
    """How fast something runs that takes ``other`` seconds instead of ``length``: that of film on television, or the
    same, where the difference is within the accuracy of ends; of ends in fades where its pictures run so, too."""
    nearest = min(_KNOWN_SPEEDS, key=lambda known: abs(known * other - length))
    if abs(other - length) <= _AGREE:
        return 1.0
    if abs(nearest * other - length) <= max(_AGREE, 0.005 * length):
        return nearest
    return 1 / seen if seen and abs(other / seen - length) <= _IN_FADES else length / other


def _occurrences(spans: Sequence[_Span], speeds: Mapping[str, float], order: Mapping[str, int]) -> list[Occurrence]:
    """The spans of a group as occurrences: parts of one that follow each other joined."""
    joined: list[_Span] = []
    lacks: list[float] = []  # seconds left out inside
    for span in sorted(spans, key=lambda span: (order[span.path], span.start)):
        last = joined[-1] if joined else None
        if last is not None and last.path == span.path and span.start - last.end <= _ADJACENT:
            lacks[-1] += _left_out(last, span, speeds)
            joined[-1] = _Span(span.path, last.start, max(last.end, span.end), last.links + span.links, look=last.look)
        else:
            joined.append(span)
            lacks.append(0.0)
    base = speeds[joined[0].path]
    counts = Counter(span.look for span in joined)
    usual = max((span.look for span in joined), key=lambda look: counts[look])  # the first of equally many
    found = []
    for span, lack in zip(joined, lacks, strict=True):
        scores = [link.score for link in span.links]
        found.append(
            Occurrence(
                span.path,
                max(0.0, span.start),
                span.end,
                round(min(1.0, max(0.0, sum(scores) / len(scores))), 4),
                round(speeds[span.path] / base, 4),
                titled=span.look != usual,
                without_middle=round(lack, 3),
            )
        )
    return found


def _left_out(before: _Span, after: _Span, speeds: Mapping[str, float]) -> float:
    """Seconds that another file has between two parts that follow each other here, at the speed of this file."""
    here = after.start - before.end
    # Seen from the last part before and the first part after: other links may be of the same parts elsewhere.
    gaps = [
        (two.other_start - one.other_end) * speeds[one.other] / speeds[before.path] - here
        for one in before.links
        for two in after.links
        if one.other == two.other and one.other != before.path
    ]
    lack = max((gap for gap in gaps if gap <= _most_between(before, after)), default=0.0)
    return lack if lack > _LACKING else 0.0


def _join_variants(parts: list[list[Occurrence]]) -> list[list[Occurrence]]:
    """Join groups that are neighbors in one file and have only something left out between them in the others."""
    parts = sorted(parts, key=lambda part: part[0].start)
    joined: list[list[Occurrence]] = []
    for part in parts:
        for place, before in enumerate(joined):
            if _are_parts(before, part):
                joined[place] = _join(before, part)
                break
        else:
            joined.append(part)
    return joined


def _without_parts(parts: list[list[Occurrence]]) -> list[list[Occurrence]]:
    """Groups without those that are nothing but a part of another one."""

    def is_inside(one: Occurrence, group: Sequence[Occurrence]) -> bool:
        shared = [min(one.end, other.end) - max(one.start, other.start) for other in group if other.path == one.path]
        return max(shared, default=0.0) >= _PART_SHARE * one.duration

    ordered = sorted(parts, key=lambda part: -max(one.duration for one in part))
    kept: list[list[Occurrence]] = []
    for part in ordered:
        if not any(all(is_inside(one, group) for one in part) for group in kept):
            kept.append(part)
    return kept


def _without_lookalikes(parts: Sequence[list[Occurrence]]) -> list[list[Occurrence]]:
    """Groups without those that only resemble a part of a larger group.

    What is shown elsewhere as well as in an opening is as similar to the openings of all files. What resembles that of
    one file alone is another moment of the same scene.
    """

    def is_part(one: Occurrence, group: Sequence[Occurrence]) -> bool:
        return any(
            other.path == one.path
            and min(one.end, other.end) - max(one.start, other.start) >= _PART_SHARE * one.duration
            for other in group
        )

    def resembles(part: Sequence[Occurrence], group: Sequence[Occurrence]) -> bool:
        inside = sum(is_part(one, group) for one in part)
        return 0 < inside < len(part) <= len(group) / _LEAST_WITNESSES

    return [part for part in parts if not any(resembles(part, group) for group in parts if group is not part)]


def _are_parts(before: Sequence[Occurrence], after: Sequence[Occurrence]) -> bool:
    if [one.path for one in before] != [one.path for one in after]:
        return False
    gaps = [other.start - one.end for one, other in zip(before, after, strict=True)]
    # What lies far from a short shot was not left out of something that it is a part of.
    most = [_most_between(one, other) for one, other in zip(before, after, strict=True)]
    fits = all(-_ADJACENT <= gap <= length for gap, length in zip(gaps, most, strict=True))
    return fits and min(gaps) <= _ADJACENT


def _most_between(one: _Span | Occurrence, other: _Span | Occurrence) -> float:
    return 2 * min(one.end - one.start, other.end - other.start)


def _join(before: Sequence[Occurrence], after: Sequence[Occurrence]) -> list[Occurrence]:
    """Two groups as one; where the parts are nearer to each other than elsewhere, something was left out."""
    pairs = list(zip(before, after, strict=True))
    widest = max((other.start - one.end) * one.speed for one, other in pairs)
    joined = []
    for one, other in pairs:
        score = (one.score * one.duration + other.score * other.duration) / (one.duration + other.duration)
        lack = widest / one.speed - (other.start - one.end)
        lack = one.without_middle + other.without_middle + (lack if lack > _LACKING else 0.0)
        joined.append(
            replace(
                one,
                end=other.end,
                score=round(score, 4),
                titled=one.titled or other.titled,
                without_middle=round(lack, 3),
            )
        )
    return joined


_RECAP_GAP = 4.0  # seconds of a recap between two pieces that were recognized
_SCATTERED = 2.0  # seconds by which the places of pieces differ: those of a shared stretch do not


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch that an earlier file has, too, at the begin of a file.

    Attributes:
        part: Number of its group.
        shown: Where it is in the later file.
        source: Where it is in the earlier one.
        is_elsewhere: The earlier file has it at another place, by the length of the files.
        may_open: Both files have it at their begin: in a season of two, one such piece is the opening.
    """

    part: int
    shown: Occurrence
    source: Occurrence
    is_elsewhere: bool
    may_open: bool


def _find_recaps(
    parts: Sequence[list[Occurrence]], lengths: Mapping[str, float], order: Mapping[str, int]
) -> tuple[list[RecurringGroup], list[list[Occurrence]]]:
    """Recaps, and the groups that are none.

    A recap is a run of pieces at the begin of a file that an earlier file of its season has at other places. A season
    are the files of a folder: what an opening shares with the film that it is made of is no recap of that.
    """
    seasons = Counter(_folder(path) for path in lengths)
    pieces: dict[str, list[_Piece]] = {}
    for number, part in enumerate(parts):
        folder = _folder(part[0].path)
        if all(_folder(one.path) == folder for one in part):
            for piece in _pieces(number, part, lengths, order, seasons[folder]):
                pieces.setdefault(piece.shown.path, []).append(piece)
    groups, used = [], set()
    for path in sorted(pieces, key=order.__getitem__):
        if seasons[_folder(path)] == 2:
            opening = max((p for p in pieces[path] if p.may_open), key=lambda p: p.shown.duration, default=None)
            pieces[path] = [piece for piece in pieces[path] if piece is not opening]
        for run in _runs(sorted(pieces[path], key=lambda piece: piece.shown.start)):
            offsets = [piece.source.start - piece.shown.start for piece in run]
            if any(piece.is_elsewhere for piece in run) or max(offsets) - min(offsets) > _SCATTERED:
                groups.append(_recap([(piece.shown, piece.source) for piece in run], len(lengths)))
                used |= {piece.part for piece in run}
    return groups, [part for number, part in enumerate(parts) if number not in used]


def _folder(path: str) -> str:
    return str(Path(path).parent)


def _pieces(
    number: int, part: Sequence[Occurrence], lengths: Mapping[str, float], order: Mapping[str, int], season: int
) -> Iterator[_Piece]:
    """What each later file has of a group at its begin; nothing if many files of the season have it, or one has it
    twice."""
    paths = {one.path for one in part}
    if not 2 <= len(paths) == len(part) <= max(2, season // 3):
        return
    source, *later = sorted(part, key=lambda one: order[one.path])
    place = source.start / lengths[source.path]
    starts = [one.start / lengths[one.path] for one in later]
    if max(starts) <= _RECAP_STARTS:
        for one, start in zip(later, starts, strict=True):
            apart = place - start >= _APART or (season > 2 and abs(place - start) >= _APART / 3)
            yield _Piece(number, one, source, apart, not apart and place <= _RECAP_STARTS)


def _runs(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Pieces that follow each other within seconds."""
    run: list[_Piece] = []
    for piece in pieces:
        if run and piece.shown.start - run[-1].shown.end > _RECAP_GAP:
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def _recap(pieces: Sequence[tuple[Occurrence, Occurrence]], files: int) -> RecurringGroup:
    first, last = pieces[0][0], pieces[-1][0]
    score = sum(piece.score for piece, _ in pieces) / len(pieces)

    def plain(one: Occurrence) -> Occurrence:
        return replace(one, speed=1.0, shorter=0.0, titled=False, without_middle=0.0)

    whole = replace(plain(first), end=max(last.end, first.end), score=round(score, 4))
    sources = sorted(
        {replace(plain(source), source=True) for _, source in pieces},
        key=lambda one: (natural_order(one.path), one.start),
    )
    return RecurringGroup((whole, *sources), "recap", files)


def _plain(part: Sequence[Occurrence], lengths: Mapping[str, float]) -> RecurringGroup:
    """A group with its kind by the places in the files: openings are early, closings late, once in nearly each file."""
    of_file: dict[str, list[Occurrence]] = {}
    for one in sorted(part, key=lambda one: -one.duration):
        of_file.setdefault(one.path, []).append(one)
    # A single shot of an opening may be shown again later.
    repeated = sum(len(held) > 1 and held[1].duration >= held[0].duration / 2 for held in of_file.values())
    starts = np.median([held[0].start / lengths[path] for path, held in of_file.items()])
    ends = np.median([held[0].end / lengths[path] for path, held in of_file.items()])
    kind: RecurringKind = "inside"
    if len(of_file) > 1 and repeated <= _MOST_REPEATED * len(of_file):
        if starts <= _EARLY and ends <= _LATE:
            kind = "opening"
        elif ends >= _LATE and starts > _EARLY:
            kind = "closing"
    return RecurringGroup(with_lengths(part), kind, len(lengths))


def with_lengths(part: Sequence[Occurrence]) -> tuple[Occurrence, ...]:
    """The occurrences of a group, each with what it lacks of the longest."""
    longest = max(one.duration * one.speed for one in part)
    lacking = [longest / one.speed - one.duration for one in part]
    return tuple(
        replace(one, shorter=round(lack, 3) if lack > _LACKING else 0.0)
        for one, lack in zip(part, lacking, strict=True)
    )
