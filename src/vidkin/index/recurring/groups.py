"""Groups of recurring segments: which segments belong together, their kind, and their exact times in each file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from vidkin._base.arguments import check_constructor
from vidkin._base.values import Result, check_choice, check_not_negative, check_positive, check_share
from vidkin.errors import InvalidArgumentError
from vidkin.index.recurring.ends import FittedStretch
from vidkin.index.recurring.stretches import SPEEDS
from vidkin.index.storage.decisions import overlaps
from vidkin.index.storage.records import VideoRecord
from vidkin.media.notebook import Card, cards_html, data_frame, shown_name

RecurringKind = Literal["opening", "recap", "closing", "inside", "copy"]
"""Kind of a group by its position in the files: at the beginning, at the beginning with footage from an earlier file,
at the end, or elsewhere. ``copy`` is a group of whole files that are copies."""

LONGEST_NAME = 80
"""Maximum number of characters in the name of a group."""

_ADJACENT = 1.0  # maximum seconds between parts of one occurrence
_MIN_INSIDE_RATIO = 0.9  # minimum fraction of an occurrence inside another that contains it
# Relative positions in a file: an opening starts before the first and ends before the second, a closing starts after
# the first and ends after the second.
_EARLY, _LATE = 0.35, 0.65
_MAX_REPEATED = 0.2  # maximum fraction of the files that show an opening or closing twice
_MIN_DISTANCE = 0.15  # minimum distance between a recap and its source in relative position
_AGREE = 0.1  # maximum difference in seconds of times that agree
_LACKING = 0.25  # minimum seconds missing; smaller differences are within the accuracy of fades
_RECAP_GAP = 4.0  # maximum seconds between two recognized pieces of a recap


@check_constructor
@dataclass(frozen=True, slots=True)
class Occurrence(Result):
    """One occurrence of a recurring segment.

    Attributes:
        path: Path of the file.
        start, end: Start and end in seconds; ``end`` is when the last frame leaves the screen.
        score: Similarity to the other occurrences, in [0, 1].
        speed: Speed relative to the first occurrence: 0.96 for film slowed down from 25 to 24 frames per second.
        shorter: Seconds by which it is shorter than the longest occurrence, at the same speed.
        without_middle: Seconds missing between two of its parts, as in a different edit.
        titled: Whether its titles or other overlays differ from those of most occurrences.
        other_sound: Whether its sound differs from that of most occurrences, for example another language; only if the
            index has audio fingerprints.
        source: Whether it is the original footage that a recap repeats.
        picture, sound: Similarity to the other occurrences by picture alone and by sound alone, in [0, 1]; None if
            unknown.
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
        """Duration in seconds."""
        return self.end - self.start


@check_constructor
@dataclass(frozen=True, slots=True)
class RecurringGroup(Result):
    """A segment that several files share, or that one file repeats.

    Attributes:
        occurrences: Occurrences, sorted by file name in natural order and by time.
        kind: Kind of the group, by its position in the files.
        files: Number of files searched.
        name: Name given by the user; otherwise empty.
        is_confirmed: Whether the user has confirmed the group with these ends.
        found_by: ``sound`` if the group was found by sound, because the picture was not used or does not recur.
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
        """Duration of the longest occurrence in seconds."""
        return max(occurrence.duration for occurrence in self.occurrences)

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files with occurrences, without duplicates."""
        return tuple(dict.fromkeys(occurrence.path for occurrence in self.occurrences))

    def cards(self, path: str = "") -> list[Card]:
        """One frame from the middle of each occurrence, for display in a notebook."""
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
        """One row per occurrence, with the kind and name of the group."""
        return [{"kind": self.kind, "name": self.name, **one.to_dict()} for one in self.occurrences]

    def to_pandas(self) -> Any:
        """Return the occurrences as a pandas DataFrame.

        Raises:
            MissingPartError: pandas is not installed.
        """
        return data_frame(self.table_rows())

    def _repr_html_(self) -> str:
        return cards_html(self.cards(), self.name or self.kind)


@dataclass(frozen=True, slots=True)
class SharedByFiles:
    """A segment that two files share.

    Attributes:
        first, second: Paths of the files.
        link: The segment.
    """

    first: str
    second: str
    link: FittedStretch


class Sets:
    """Disjoint sets of numbers (union-find); each set is identified by its smallest number.

    Args:
        parents: Parent of each number, for example those of another instance.
    """

    def __init__(self, parents: Iterable[int]) -> None:
        self.parents = [*parents]

    def add(self) -> int:
        """Add a new number as a set of its own; return the number."""
        self.parents.append(len(self.parents))
        return len(self.parents) - 1

    def find(self, number: int) -> int:
        """Return the smallest number in the set of this number."""
        while self.parents[number] != number:
            self.parents[number] = self.parents[self.parents[number]]
            number = self.parents[number]
        return number

    def join(self, one: int, other: int) -> None:
        """Merge the sets of two numbers."""
        low, high = sorted((self.find(one), self.find(other)))
        self.parents[high] = low


class _Span(NamedTuple):
    """A segment of a file, with its links to other files; spans with the same ``look`` have the same titles."""

    path: str
    start: float
    end: float
    links: tuple[tuple[str, FittedStretch], ...]
    look: int = -1


def build_groups(links: Sequence[SharedByFiles], lengths: Mapping[str, float]) -> list[RecurringGroup]:
    """Group linked segments.

    Args:
        links: Shared segments with exact ends.
        lengths: Duration in seconds of every file searched, keyed by path.

    Returns:
        Openings, recaps, closings, then other segments, each kind sorted by its earliest start.
    """
    links = _join_overlapping(links)
    # Link i has the segments 2 i and 2 i + 1; segments of the same file that mostly overlap are merged.
    sets, spans = _join_spans(links)
    names, looks = Sets(sets.parents), Sets(sets.parents)
    plain: dict[tuple[int, int], tuple[float, bool]] = {}
    for number, each in enumerate(links):
        names.join(2 * number, 2 * number + 1)
        pair, length = (sets.find(2 * number), sets.find(2 * number + 1)), each.link.first_end - each.link.first_start
        plain[pair] = max(plain.get(pair, (0.0, True)), (length, not each.link.covered))
    for pair, (_, is_plain) in plain.items():
        if is_plain:  # by the longest link between the two spans
            looks.join(*pair)
    members: dict[int, list[_Span]] = {}
    for number, span in sorted(spans.items()):
        members.setdefault(names.find(number), []).append(span._replace(look=looks.find(number)))
    speeds = _speeds(links)
    order = {path: position for position, path in enumerate(sorted(lengths, key=natural_order))}
    parts = [_to_occurrences(group, speeds, order) for group in members.values()]
    parts = _drop_parts(_join_variants([part for part in parts if len(part) > 1]))
    recaps, rest = _find_recaps(parts, lengths, order)
    groups = recaps + [_classify(part, lengths) for part in rest]
    # A group that is merely part of another opening or closing is not one itself.
    return sort_groups(
        replace(group, kind="inside")
        if group.kind in ("opening", "closing")
        and any(
            group is not other and group.kind == other.kind and count_inside(group.occurrences, other.occurrences) > 1
            for other in groups
        )
        else group
        for group in groups
    )


def sort_groups(groups: Iterable[RecurringGroup]) -> list[RecurringGroup]:
    """Sort groups: openings, recaps, closings, other segments, copies; each kind by its earliest start."""
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
    """Sort key that compares numbers in names by value: ``episode 2`` before ``episode 10``.

    >>> sorted(["e10", "e2"], key=natural_order)
    ['e2', 'e10']
    """
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]+", str(Path(path)).casefold())
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def _join_overlapping(links: Sequence[SharedByFiles]) -> list[SharedByFiles]:
    """Merge overlapping links between the same two files that are on the same line.

    A segment with a long plain passage is found in two parts, and each may extend beyond the passage.
    """
    joined: dict[tuple[str, str], list[FittedStretch]] = {}
    for each in links:
        held = joined.setdefault((each.first, each.second), [])
        for position, known in enumerate(held):
            one, other = sorted((known, each.link))
            there = one.second_start + (other.first_start - one.first_start) * (
                (one.second_end - one.second_start) / (one.first_end - one.first_start)
            )
            # A link inside another may recur elsewhere, so it is kept separate.
            beyond = other.first_start - one.first_start, one.first_end - other.first_start
            if min(*beyond, other.first_end - one.first_end) >= 2 * _LACKING and (
                abs(there - other.second_start) <= 2 * _AGREE
            ):
                held[position] = one._replace(first_end=other.first_end, second_end=other.second_end)
                break
        else:
            held.append(each.link)
    return [SharedByFiles(*files, link) for files, held in joined.items() for link in held]


def _join_spans(links: Sequence[SharedByFiles]) -> tuple[Sets, dict[int, _Span]]:
    """Merge segments of the same file that overlap; return the sets of segments, and the spans keyed by the smallest
    number in their set."""
    sets, files = Sets(range(2 * len(links))), dict[str, dict[int, _Span]]()
    sides = [
        side
        for each in links
        for side in ((each.first, each.second, each.link), (each.second, each.first, each.link.swapped()))
    ]
    for number, (path, other, link) in enumerate(sides):
        span, spans = _Span(path, link.first_start, link.first_end, ((other, link),)), files.setdefault(path, {})
        for root, known in [*spans.items()]:
            if overlaps(span[1:3], known[1:3]):
                links_of = span.links + known.links
                start = _find_agreed_time([link.first_start for _, link in links_of])
                span = _Span(path, start, -_find_agreed_time([-link.first_end for _, link in links_of]), links_of)
                sets.join(number, root)
                del spans[root]
        spans[sets.find(number)] = span
    return sets, {number: span for spans in files.values() for number, span in spans.items()}


def _find_agreed_time(times: Sequence[float]) -> float:
    """Return the earliest time on which at least two links agree.

    The earliest is used because a shortened occurrence lacks shots that belong to the segment.
    """
    support = [sum(abs(other - time) <= _AGREE for other in times) for time in times]
    best = min(zip(times, support, strict=True), key=lambda each: (-min(2, each[1]), each[0]))[0]
    return float(np.median([time for time in times if abs(time - best) <= _AGREE]))


def _speeds(links: Sequence[SharedByFiles]) -> dict[str, float]:
    """Speed of each file relative to the first file it is linked with, from the longest segments."""
    speeds: dict[str, float] = {}
    ordered = sorted(links, key=lambda each: each.link.first_start - each.link.first_end)
    for path in sorted({path for each in links for path in (each.first, each.second)}, key=natural_order):
        speeds.setdefault(path, 1.0)
        while new := next((each for each in ordered if (each.first in speeds) != (each.second in speeds)), None):
            speed = _known_speed(new.link)
            if new.first in speeds:
                speeds[new.second] = speeds[new.first] * speed
            else:
                speeds[new.first] = speeds[new.second] / speed
    return speeds


def _known_speed(link: FittedStretch) -> float:
    """Speed of the second file. If the durations agree within the accuracy of the ends, it is 1 or a film-to-television
    speed; for less accurate ends in fades, the speed at which frames agree."""
    length, other = link.first_end - link.first_start, link.second_end - link.second_start
    nearest = min(SPEEDS, key=lambda known: abs(known * other - length))
    if abs(other - length) <= _AGREE:
        return 1.0
    if abs(nearest * other - length) <= max(_AGREE, 0.005 * length):
        return nearest
    return 1 / link.speed if link.speed and abs(other / link.speed - length) <= 2 * _LACKING else length / other


def follow_link(one: Occurrence, link: FittedStretch, other: VideoRecord) -> Occurrence | None:
    """The same moments as an occurrence, in the second file of a link; None if they are beyond its ends."""
    speed = _known_speed(link)
    start, end = (link.second_start + (time - link.first_start) / speed for time in (one.start, one.end))
    start, end = max(0.0, start), min(end, other.duration)
    if start >= end:
        return None
    return replace(one, path=other.path, start=round(start, 6), end=round(end, 6), speed=round(one.speed * speed, 4))


def _to_occurrences(spans: Sequence[_Span], speeds: Mapping[str, float], order: Mapping[str, int]) -> list[Occurrence]:
    """Convert the spans of a group to occurrences, joining consecutive parts."""
    joined: list[tuple[_Span, float]] = []  # spans with the seconds missing between their parts
    for span in sorted(spans, key=lambda span: (order[span.path], span.start)):
        last, lack = joined[-1] if joined else (span, 0.0)
        if joined and last.path == span.path and span.start - last.end <= _ADJACENT:
            whole = last._replace(end=max(last.end, span.end), links=last.links + span.links)
            joined[-1] = whole, lack + _measure_missing(last, span, speeds)
        else:
            joined.append((span, 0.0))
    counts = Counter(span.look for span, _ in joined)
    usual = max((span.look for span, _ in joined), key=lambda look: counts[look])  # ties go to the first
    return [
        Occurrence(
            span.path,
            max(0.0, span.start),
            span.end,
            round(float(np.mean([link.score for _, link in span.links]).clip(0, 1)), 4),
            round(speeds[span.path] / speeds[joined[0][0].path], 4),
            titled=span.look != usual,
            without_middle=round(lack, 3),
        )
        for span, lack in joined
    ]


def _measure_missing(before: _Span, after: _Span, speeds: Mapping[str, float]) -> float:
    """Seconds of footage that other files have between two parts that are adjacent here, at the speed of this file."""
    here = after.start - before.end
    # Ignore implausible gaps, because other links may be to other occurrences of the same parts.
    gaps = [
        (two.second_start - one.second_end) * speeds[other] / speeds[before.path] - here
        for other, one in before.links
        for another, two in after.links
        if other == another != before.path
    ]
    lack = max((gap for gap in gaps if gap <= _max_between(before, after)), default=0.0)
    return lack if lack > _LACKING else 0.0


def _max_between(one: _Span | Occurrence, other: _Span | Occurrence) -> float:
    """Maximum seconds missing between two parts; segments farther apart do not belong together."""
    return 2 * min(one.end - one.start, other.end - other.start)


def _join_variants(parts: Sequence[list[Occurrence]]) -> list[list[Occurrence]]:
    """Join groups that are adjacent in at least one file and separated by additional footage in others."""
    joined: list[list[Occurrence]] = []
    for part in sorted(parts, key=lambda part: part[0].start):
        for position, before in enumerate(joined):
            pairs = list(zip(before, part, strict=False))
            gaps = [after.start - one.end for one, after in pairs]
            if (
                [one.path for one in before] == [one.path for one in part]
                and min(gaps) <= _ADJACENT
                and all(-_ADJACENT <= gap <= _max_between(*pair) for gap, pair in zip(gaps, pairs, strict=True))
            ):
                joined[position] = [_join(*pair, max(gap * pair[0].speed for gap in gaps)) for pair in pairs]
                break
        else:
            joined.append(part)
    return joined


def _join(one: Occurrence, other: Occurrence, widest: float) -> Occurrence:
    """Join two parts; if they are closer together than in other files, footage is missing between them."""
    lack = widest / one.speed - (other.start - one.end)
    lack = one.without_middle + other.without_middle + (lack if lack > _LACKING else 0.0)
    score = (one.score * one.duration + other.score * other.duration) / (one.duration + other.duration)
    titled = one.titled or other.titled
    return replace(one, end=other.end, score=round(score, 4), titled=titled, without_middle=round(lack, 3))


def count_inside(part: Sequence[Occurrence], group: Sequence[Occurrence], ratio: float = _MIN_INSIDE_RATIO) -> int:
    """Count the occurrences of ``part`` that lie, by at least this fraction, in an occurrence of ``group``."""
    return sum(
        any(
            one.path == other.path
            and one.duration <= other.duration / ratio
            and min(one.end, other.end) - max(one.start, other.start) >= ratio * one.duration
            for other in group
        )
        for one in part
    )


def covers(group: Sequence[Occurrence], part: Sequence[Occurrence], ratio: float) -> bool:
    """Whether at least this fraction of each occurrence of ``part`` lies in an occurrence of ``group``."""
    return count_inside(part, group, ratio) == len(part)


def _drop_parts(parts: Sequence[list[Occurrence]]) -> list[list[Occurrence]]:
    """Drop groups that are merely part of another group, or only look similar to such a part.

    Footage from an opening that is also shown elsewhere matches the openings of all files. Footage that matches the
    opening of only one file is probably another moment of the same scene; such a group is kept only if it has more than
    a third as many occurrences as the opening.
    """
    kept: list[list[Occurrence]] = []
    for part in sorted(parts, key=lambda part: -max(one.duration for one in part)):
        inside = [(count_inside(part, group), len(group)) for group in kept]
        if not any(count == len(part) or (count and 3 * len(part) <= size) for count, size in inside):
            kept.append(part)
    return kept


def _find_recaps(
    parts: Sequence[list[Occurrence]], lengths: Mapping[str, float], order: Mapping[str, int]
) -> tuple[list[RecurringGroup], list[list[Occurrence]]]:
    """Split groups into recaps and others.

    A recap is a run of pieces at the beginning of a file that occur at different times in an earlier file of its
    season. The files in a folder are a season, so an opening made from a film in another folder is not a recap. In a
    season of two files, the longest piece at the beginning of both is the opening.
    """
    seasons = Counter(Path(path).parent for path in lengths)
    pieces: dict[str, list[tuple[Occurrence, Occurrence, int]]] = {}
    for number, part in enumerate(parts):
        paths, season = {one.path for one in part}, seasons[Path(part[0].path).parent]
        source, *later = sorted(part, key=lambda one: order[one.path])
        if (
            len({Path(path).parent for path in paths}) == 1
            and 2 <= len(paths) == len(part) <= max(2, season // 3)
            and all(one.start <= (_EARLY - 0.05) * lengths[one.path] for one in later)
        ):
            for one in later:
                pieces.setdefault(one.path, []).append((one, source, number))

    def distance(one: Occurrence, source: Occurrence) -> float:
        return source.start / lengths[source.path] - one.start / lengths[one.path]

    groups, used = [], set[int]()
    for path in sorted(pieces, key=order.__getitem__):
        held, season = sorted(pieces[path], key=lambda piece: piece[0].start), seasons[Path(path).parent]
        both = [(one.duration, one) for one, source, _ in held if distance(one, source) < _MIN_DISTANCE]
        both = [each for each in both if season == 2]
        opening = max(both, key=lambda each: each[0], default=(0.0, None))[1]
        runs: list[list[tuple[Occurrence, Occurrence, int]]] = []
        for piece in (piece for piece in held if piece[0] is not opening):
            if runs and piece[0].start - runs[-1][-1][0].end <= _RECAP_GAP:
                runs[-1].append(piece)
            else:
                runs.append([piece])
        for run in runs:
            offsets = [source.start - one.start for one, source, _ in run]
            is_elsewhere = any(
                distance(one, source) >= _MIN_DISTANCE
                or (season > 2 and abs(distance(one, source)) >= _MIN_DISTANCE / 3)
                for one, source, _ in run
            )
            if is_elsewhere or max(offsets) - min(offsets) > _RECAP_GAP / 2:
                groups.append(_recap(run, len(lengths)))
                used |= {number for *_, number in run}
    return groups, [part for number, part in enumerate(parts) if number not in used]


def _recap(run: Sequence[tuple[Occurrence, Occurrence, int]], files: int) -> RecurringGroup:
    shown = [one for one, _, _ in run]
    score = round(sum(one.score for one in shown) / len(shown), 4)
    whole = Occurrence(shown[0].path, shown[0].start, max(shown[0].end, shown[-1].end), score, picture=shown[0].picture)
    sources = {Occurrence(source.path, source.start, source.end, source.score, source=True) for _, source, _ in run}
    ordered = sorted(sources, key=lambda one: (natural_order(one.path), one.start))
    return RecurringGroup((whole, *ordered), "recap", files)


def _classify(part: Sequence[Occurrence], lengths: Mapping[str, float]) -> RecurringGroup:
    """Determine the kind of a group from its positions: openings are early and closings late in the files, and both
    occur once in nearly every file."""
    of_file: dict[str, list[Occurrence]] = {}
    for one in sorted(part, key=lambda one: -one.duration):
        of_file.setdefault(one.path, []).append(one)
    # Ignore short repetitions, because a single shot of an opening may recur later.
    repeated = sum(len(held) > 1 and held[1].duration >= held[0].duration / 2 for held in of_file.values())
    starts = np.median([held[0].start / lengths[path] for path, held in of_file.items()])
    ends = np.median([held[0].end / lengths[path] for path, held in of_file.items()])
    kind: RecurringKind = "inside"
    if len(of_file) > 1 and repeated <= _MAX_REPEATED * len(of_file):
        if starts <= _EARLY and ends <= _LATE:
            kind = "opening"
        elif ends >= _LATE and starts > _EARLY:
            kind = "closing"
    return RecurringGroup(set_shortfalls(part), kind, len(lengths))


def set_shortfalls(part: Sequence[Occurrence]) -> tuple[Occurrence, ...]:
    """Set ``shorter`` for each occurrence: how many seconds it lacks compared with the longest one."""
    longest = max(one.duration * one.speed for one in part)
    lacking = [longest / one.speed - one.duration for one in part]
    return tuple(
        replace(one, shorter=round(lack, 3) if lack > _LACKING else 0.0)
        for one, lack in zip(part, lacking, strict=True)
    )
