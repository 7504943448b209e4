"""Audio fingerprints (landmarks of the spectrum), and the stretches where two sounds are the same recording.

A landmark is a moment and a pitch at which the spectrum stands out from its neighborhood (Wang, An industrial-strength
audio search algorithm, 2003). Two sounds are the same recording where many landmarks of one lie on a line of time in
the other: target time = speed * query time + offset, with the pitch unchanged (time stretching) or shifted according to
the speed (tape or sample rate). Pairs of landmarks find candidate lines; all landmarks decide.

Pitches are steps of 1/32 octave from 250 Hz up, times are steps of 16 ms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin.errors import InvalidArgumentError
from vidkin.similarity.contracts import Segment
from vidkin.similarity.scale import SURE, UNRELATED

SOUND_REVISION = 4
"""Increase it whenever the same sounds get other landmarks or another score, so that stored ones are rebuilt."""

SOUND_RATE = 8000
"""Sample rate in Hz of the sound that landmarks are computed from."""

STEP = 128
"""Samples per time step."""

STEPS_A_SECOND = SOUND_RATE / STEP

STEPS_AN_OCTAVE, PITCHES = 32, 126
"""Pitch steps per octave, and in total."""

# Pairs of strong landmarks: the number of partners of each, their minimum and maximum distance in time steps, and their
# maximum distance in pitch steps.
_FAN, _NEAREST, _FARTHEST, _WIDEST = 4, 2, 48, 32
_TIMES_OF_PAIRS = (_FARTHEST + 2) // 2
_KEYS = PITCHES * (2 * _WIDEST + 1) * _TIMES_OF_PAIRS


@check_constructor
@dataclass(frozen=True, slots=True)
class SoundFeatures:
    """The landmarks of one sound track.

    Attributes:
        times: [N] int32, in steps of 16 ms, in order.
        pitches: [N] uint8, in steps of 1/32 octave.
        strong: [N] bool, whether the landmark forms pairs.
        length: Duration of the track in seconds.
        language: Language as stated in the file; empty if unknown.
        is_default: Whether players play this track by default.
    """

    times: NDArray[np.int32]
    pitches: NDArray[np.uint8]
    strong: NDArray[np.bool_]
    length: float = 0.0
    language: str = ""
    is_default: bool = True
    _codes: list[NDArray[np.int64]] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (self.times.ndim == 1 and self.times.shape == self.pitches.shape == self.strong.shape):
            raise InvalidArgumentError(
                f"times, pitches and strong must be [N] each, got {list(self.times.shape)}, "
                f"{list(self.pitches.shape)} and {list(self.strong.shape)}"
            )

    def __len__(self) -> int:
        return len(self.times)

    @property
    def codes(self) -> NDArray[np.int64]:
        """[N] in increasing order: 128 * time + pitch."""
        if not self._codes:
            self._codes.append(np.sort(128 * self.times.astype(np.int64) + self.pitches))
        return self._codes[0]

    def between(self, start: float, end: float) -> SoundFeatures:
        """The landmarks between two times in seconds; times are not shifted."""
        inside = slice(*np.searchsorted(self.times, [start * STEPS_A_SECOND, end * STEPS_A_SECOND]).tolist())
        columns = self.times[inside], self.pitches[inside], self.strong[inside]
        return SoundFeatures(*columns, min(self.length, end), self.language, self.is_default)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One way in which the target may differ from the query.

    Attributes:
        speed: Seconds of the target per second of the query.
        shift: Added to pitches of the query.
    """

    speed: float
    shift: int


@cache
def hypotheses() -> tuple[Hypothesis, ...]:
    """All hypotheses, the unchanged one first: speeds from 1/2 to 2, with the pitch unchanged and changed."""
    count = round(math.log(2.0) / math.log(_SPEED_STEP))
    speeds = [_SPEED_STEP**step for step in range(-count, count + 1) if step]
    changed = [Hypothesis(speed, -round(math.log2(speed) * STEPS_AN_OCTAVE)) for speed in speeds]
    return (Hypothesis(1.0, 0), *(Hypothesis(speed, 0) for speed in speeds), *changed)


_SPEED_STEP = 2 ** (1 / 20)


@dataclass(frozen=True, slots=True)
class _Neighbors:
    """Pairs [P] of nearby strong landmarks: row of the first, distance in time and in pitch, and an order that groups
    pairs by their first landmark."""

    first: NDArray[np.int64]
    apart: NDArray[np.int64]
    wide: NDArray[np.int64]
    together: NDArray[np.int64]

    @classmethod
    def of(cls, times: NDArray[np.int64], pitches: NDArray[np.int64], reach: int) -> _Neighbors:
        """Pair landmarks [N] at most ``reach`` time steps apart; pairs of direct successors come first."""
        firsts, aparts, wides = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for lag in range(1, len(times)):
            apart = times[lag:] - times[:-lag]
            if apart.min() > reach:
                break
            wide = pitches[lag:] - pitches[:-lag]
            rows = np.flatnonzero((apart <= reach) & (np.abs(wide) <= _WIDEST))
            firsts.append(rows)
            aparts.append(apart[rows])
            wides.append(wide[rows])
        first = np.concatenate(firsts)
        return cls(first, np.concatenate(aparts), np.concatenate(wides), np.argsort(first, kind="stable"))


def pair_keys(
    sound: SoundFeatures, tried: Sequence[Hypothesis] | None = None, *, fan: int = _FAN
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For each hypothesis (default: no change), the key that each pair of strong landmarks has in the target, and the
    step of its first landmark.

    A key encodes both pitches and, in steps of 32 ms, their distance in time.
    """
    tried = hypotheses()[:1] if tried is None else tried
    times, pitches = sound.times[sound.strong].astype(np.int64), sound.pitches[sound.strong].astype(np.int64)
    slowest = min((hypothesis.speed for hypothesis in tried), default=1.0)
    near = _Neighbors.of(times, pitches, math.ceil((_FARTHEST + 0.5) / slowest))
    lows, begins = pitches[near.first], times[near.first]
    result = []
    for hypothesis in tried:
        apart = np.rint(near.apart * hypothesis.speed).astype(np.int64)
        low = lows + hypothesis.shift
        fits = (apart >= _NEAREST) & (apart <= _FARTHEST) & (low >= 0) & (low < PITCHES)
        # The first few pairs of each landmark that fit; more if the target runs faster, because every second of sound
        # has equally many strong landmarks, so a second of the query has fewer of the target's.
        most = math.ceil(min(1.5 * fan, fan / min(1.0, hypothesis.speed)))
        rows = near.together[fits[near.together]]
        of = near.first[rows]
        before = np.searchsorted(of, of)
        rows = np.sort(rows[np.arange(len(rows)) - before < most])
        keys = (low[rows] * (2 * _WIDEST + 1) + near.wide[rows] + _WIDEST) * _TIMES_OF_PAIRS + apart[rows] // 2
        result.append((keys, begins[rows]))
    return result


@dataclass(frozen=True, slots=True)
class SoundScore:
    """Evidence that two sounds are one recording.

    Attributes:
        score: In [0, 1], on the scale of frame scores: 1 identical, .7 surely the same recording, below .2 unrelated.
        segments: Matching stretches, most certain first; only times and speed are meaningful, boxes are the full frame.
    """

    score: float
    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class SoundSettings:
    """Constants of the score.

    Attributes:
        near_time, near_pitch: Maximum distance of a landmark from a line, in steps.
        agreement: Share of the landmarks that fit in a copy of medium quality.
        least_chance: Minimum share assumed to fit by chance.
        longest_gap: Maximum seconds within a segment without a fitting landmark.
        shortest: Minimum duration of a segment in seconds.
        unrelated, same: Evidence (natural logarithm of odds) at which the score is `UNRELATED` and `SURE`.
        lines: Maximum number of lines to follow for a pair.
        votes: Minimum number of landmark pairs on a line.
        spread, same_pitch: In a copy, the standard deviation in steps of fitting landmarks from the line (half of it
            grows with the speed), and the share with exactly the same pitch. Chance fits are spread evenly around the
            line.
    """

    near_time: int = 2
    near_pitch: int = 1
    agreement: float = 0.35
    least_chance: float = 0.08
    longest_gap: float = 3.0
    shortest: float = 1.5
    unrelated: float = 50.0
    same: float = 75.0
    lines: int = 6
    votes: int = 3
    spread: float = 0.7
    same_pitch: float = 0.8


SETTINGS = SoundSettings()


def fingerprint_of_sound(settings: SoundSettings = SETTINGS) -> str:
    """Fingerprint of everything that scores depend on besides the landmarks of two sounds."""
    return repr((SOUND_REVISION, _FAN, _NEAREST, _FARTHEST, _WIDEST, settings))


@dataclass(frozen=True, slots=True)
class SoundLine:
    """A candidate line for the landmarks of two sounds.

    Attributes:
        hypothesis: Approximate difference of speed and pitch.
        middle: Step of the query that corresponds to ``target``.
        target: Step of the target.
        votes: Number of landmark pairs on the line.
    """

    hypothesis: Hypothesis
    middle: float
    target: float
    votes: int

    def swapped(self) -> SoundLine:
        """The same line with query and target exchanged."""
        back = Hypothesis(1 / self.hypothesis.speed, -self.hypothesis.shift)
        return SoundLine(back, self.target, self.middle, self.votes)


# Votes are counted in spans of the query, short enough that a speed between two hypotheses drifts little, and in bins
# of offsets; both in steps.
_SPAN, _BIN = 16 * 62, 16


def expand(first: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List every position of stretches that begin at ``first`` and have ``counts`` positions: stretch numbers,
    positions."""
    rows = np.repeat(np.arange(len(first)), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return rows, np.arange(len(rows)) - before + np.repeat(first, counts)


def vote(
    times: NDArray[np.int64],
    positions: NDArray[np.int64],
    hypothesis: Hypothesis,
    least: int,
    *,
    most: int | None = None,
) -> list[SoundLine]:
    """Find the lines that at least ``least`` pairs [N] support, given the query and target step of each; at most the
    best ``most``."""
    if len(times) < least:
        return []
    spans = times // _SPAN
    offsets = positions - hypothesis.speed * (times - (spans + 0.5) * _SPAN)
    # Two grids, shifted by half a bin, so that no line falls between two bins; one sort by half bins serves both.
    halves = spans * (1 << 41) + np.floor(offsets / (_BIN / 2)).astype(np.int64) + (1 << 39)
    order = np.argsort(halves)
    halves = halves[order]
    lines = []
    for grid in (0, 1):
        code = (halves + grid) >> 1
        begins = np.flatnonzero(np.diff(code, prepend=-1))
        counts = np.diff(begins, append=len(code))
        chosen = np.flatnonzero(counts >= least)
        if most is not None and len(chosen) > most:
            chosen = chosen[np.argsort(-counts[chosen], kind="stable")[:most]]
        for number in chosen.tolist():
            count = int(counts[number])
            of_line = order[begins[number] : begins[number] + count]
            middle = (int(spans[of_line[0]]) + 0.5) * _SPAN
            # At the mean of the votes, an error of the speed matters least.
            at = float(times[of_line].sum()) / count
            inner = np.sort(offsets[of_line])
            median = float(inner[(count - 1) // 2] + inner[count // 2]) / 2
            lines.append(SoundLine(hypothesis, at, median + hypothesis.speed * (at - middle), count))
    return lines


@dataclass(frozen=True, slots=True)
class PairTable:
    """Index of the landmark pairs of several tracks by key.

    Attributes:
        offsets: [KEYS + 1] uint32: where the positions of each key begin and end.
        positions: [P] uint32: step of the first landmark of each pair; tracks follow one another.
        starts: [tracks + 1] int64 increasing, the step at which each track starts, and the end of the last.
    """

    offsets: NDArray[np.uint32]
    positions: NDArray[np.uint32]
    starts: NDArray[np.int64]

    def check(self) -> None:
        """Raise ValueError unless offsets and starts are valid: otherwise a search would read beyond the end."""
        ends = len(self.offsets) == _KEYS + 1 and not self.offsets[0] and int(self.offsets[-1]) == len(self.positions)
        grows = (self.offsets[1:] >= self.offsets[:-1]).all() and (np.diff(self.starts) >= 0).all()
        if not (ends and grows and len(self.starts)):
            raise ValueError("its offsets are not valid")

    @classmethod
    def of(cls, tracks: Sequence[SoundFeatures]) -> PairTable:
        """Build the table of these tracks."""
        starts = _starts_of(np.array([int(track.times[-1]) + 1 if len(track) else 0 for track in tracks], np.int64))
        pairs = [pair_keys(track)[0] for track in tracks]
        keys = np.concatenate([each[0] for each in pairs]) if pairs else np.zeros(0, np.int64)
        steps = [each[1] + start for each, start in zip(pairs, starts[:-1].tolist(), strict=True)]
        positions = np.concatenate(steps).astype(np.uint32) if steps else np.zeros(0, np.uint32)
        order = np.argsort(keys, kind="stable")
        counts = np.bincount(keys, minlength=_KEYS)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
        return cls(offsets, positions[order], starts)

    def lines(
        self,
        query: SoundFeatures,
        *,
        limit: int,
        settings: SoundSettings = SETTINGS,
        tried: Sequence[Hypothesis] | None = None,
    ) -> dict[int, list[SoundLine]]:
        """Find lines as :meth:`PairTables.lines`, in this table alone."""
        one = PairTables.of([self], [np.arange(len(self.starts) - 1)])
        return one.lines(query, limit=limit, settings=settings, tried=tried)


def _starts_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Start of each track with these lengths in steps, and the end of the last."""
    # A gap keeps lines from leading from one track into the next; starts are multiples of a bin, so that votes of a
    # track do not depend on its start.
    bins = -(-(lengths + ROOM) // _BIN)
    return np.concatenate([[0], np.cumsum(bins)]).astype(np.int64) * _BIN


@dataclass(frozen=True, slots=True)
class PairTables:
    """Several tables searched as one, with the same results as one table of all tracks in order of number.

    Attributes:
        tables: The tables.
        starts: [all tracks + 1] int64: where each track would start in one table.
        shifts: For each table, the offset added to the steps of each track; None if all are 0.
    """

    tables: tuple[PairTable, ...]
    starts: NDArray[np.int64]
    shifts: tuple[NDArray[np.int64] | None, ...]

    @classmethod
    def of(cls, tables: Sequence[PairTable], numbers: Sequence[NDArray[np.int64]]) -> PairTables:
        """Combine tables, given the numbers of their tracks: together 0, 1, 2 and so on; -1 leaves a track out."""
        count = sum(int((rows >= 0).sum()) for rows in numbers)
        lengths = np.zeros(count, np.int64)
        for table, rows in zip(tables, numbers, strict=True):
            lengths[rows[rows >= 0]] = np.diff(table.starts)[rows >= 0] - ROOM
        starts = _starts_of(lengths)
        shifts: list[NDArray[np.int64] | None] = []
        for table, rows in zip(tables, numbers, strict=True):
            shift = np.where(rows >= 0, starts[rows] - table.starts[:-1], _LEFT_OUT)
            shifts.append(shift if shift.any() else None)
        return cls(tuple(tables), starts, tuple(shifts))

    def lines(
        self,
        query: SoundFeatures,
        *,
        limit: int,
        settings: SoundSettings = SETTINGS,
        tried: Sequence[Hypothesis] | None = None,
    ) -> dict[int, list[SoundLine]]:
        """Find the most promising lines of at most ``limit`` tracks: track number -> lines.

        Args:
            query: The sound to search for.
            limit: Maximum number of tracks.
            settings: Constants.
            tried: Hypotheses to try; None tries all.
        """
        if not self.tables:
            return {}
        found: list[SoundLine] = []
        spans = 1 + (int(query.times[-1]) // _SPAN if len(query) else 0)
        tried = hypotheses() if tried is None else tried
        for number, (hypothesis, (keys, times)) in enumerate(zip(tried, pair_keys(query, tried), strict=True)):
            firsts = [table.offsets[keys].astype(np.int64) for table in self.tables]
            ends = [table.offsets[keys + 1].astype(np.int64) for table in self.tables]
            counts = [end - first for end, first in zip(ends, firsts, strict=True)]
            # Rare pairs are the most informative, common ones the most expensive.
            total = np.array(counts, np.int64).reshape(len(counts), len(keys)).sum(axis=0)
            order = np.argsort(total, kind="stable")
            most = spans * (_HITS if number == 0 else _HITS_CHANGED)
            order = order[np.cumsum(total[order]) <= most]
            hits = [self._hits(*each, order, times) for each in zip(range(len(firsts)), firsts, counts, strict=True)]
            steps, positions = (np.concatenate(each) for each in zip(*hits, strict=True))
            least = settings.votes if len(self.starts) == 2 else settings.votes + (1 if number == 0 else 2)
            found += vote(steps, positions, hypothesis, least, most=_LINES)
        found.sort(key=lambda line: -line.votes)
        lines: dict[int, list[SoundLine]] = {}
        for line in found:
            track = int(np.searchsorted(self.starts, line.target, side="right")) - 1
            if not 0 <= track < len(self.starts) - 1 or (track not in lines and len(lines) >= limit):
                continue
            moved = replace(line, target=line.target - float(self.starts[track]))
            lines.setdefault(track, []).append(moved)
        return lines

    def _hits(
        self,
        number: int,
        first: NDArray[np.int64],
        counts: NDArray[np.int64],
        order: NDArray[np.int64],
        times: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Query step and combined step of each pair that a table has for these keys."""
        table, shift = self.tables[number], self.shifts[number]
        rows, entries = expand(first[order], counts[order])
        steps, positions = times[order][rows], table.positions[entries].astype(np.int64)
        if shift is None:
            return steps, positions
        moves = shift[np.searchsorted(table.starts[1:-1], positions, side="right")]
        is_there = moves > _LEFT_OUT
        return steps[is_there], (positions + moves)[is_there]


# Steps between tracks; pairs examined per span of the query, unchanged and for other hypotheses; lines kept per
# hypothesis.
ROOM, _HITS, _HITS_CHANGED, _LINES = 2 * _SPAN, 20_000, 4_000, 64
# Marks tracks that are left out.
_LEFT_OUT = -(1 << 50)


def compare_sounds(
    query: SoundFeatures,
    target: SoundFeatures,
    lines: Sequence[SoundLine] | None = None,
    settings: SoundSettings = SETTINGS,
) -> SoundScore:
    """Score and segments of two sounds; the score is symmetric up to the rounding of landmarks.

    Args:
        query, target: The sounds.
        lines: Lines to follow; None finds them.
        settings: Constants.
    """
    if min(len(query), len(target)) == 0:
        return SoundScore(0.0)
    if lines is None:
        table = PairTable.of([target])
        # Most recordings match at their own speed; trying only that takes a fraction of the time.
        usual = table.lines(query, limit=1, settings=settings, tried=hypotheses()[:1]).get(0, [])
        result = compare_sounds(query, target, usual, settings)
        if result.score >= _SURE:
            return result
        lines = table.lines(query, limit=1, settings=settings).get(0, [])
    best: list[_Stretch] = []
    tried = 0
    for line in lines:
        if any(stretch.explains(line) for stretch in best):
            continue
        tried += 1
        if tried > settings.lines:
            break
        if line.hypothesis.speed < 1:
            # Both sounds have the same number of landmarks per second, so only the slower one has all landmarks of the
            # other: look up the landmarks of the faster one.
            best += [part.swapped() for part in _fit_line(target, query, line.swapped(), settings)]
        else:
            best += _fit_line(query, target, line, settings)
    stretches = _drop_overlaps(best)
    if not stretches:
        return SoundScore(0.0)
    evidence = sum(s.evidence for s in stretches if s.evidence > settings.unrelated) or stretches[0].evidence
    segments = tuple(s.segment(settings) for s in stretches if s.evidence >= settings.unrelated / 2)
    return SoundScore(_score(evidence, settings), segments)


def best_of_tracks(first: Sequence[SoundFeatures], second: Sequence[SoundFeatures]) -> SoundScore | None:
    """The best score of any two tracks that are not silent; None if a side has none."""
    scores = [compare_sounds(one, other) for one in first for other in second if len(one) and len(other)]
    return max(scores, key=lambda score: score.score, default=None)


def _score(evidence: float, settings: SoundSettings) -> float:
    """Logistic curve through the points `UNRELATED` and `SURE`; 0 without evidence."""
    low, high = (math.log(point / (1 - point)) for point in (UNRELATED, SURE))
    slope = (high - low) / (settings.same - settings.unrelated)
    return round(1 / (1 + math.exp(-min(low + slope * (evidence - settings.unrelated), 50.0))), 4)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Stretch of a line on which landmarks fit, in steps of the query."""

    start: float
    end: float
    speed: float
    offset: float
    shift: int
    evidence: float

    def explains(self, line: SoundLine) -> bool:
        """Whether a line is about the same as this one."""
        return (
            self.start - _SPAN / 4 <= line.middle <= self.end + _SPAN / 4
            and abs(self.speed * line.middle + self.offset - line.target) <= 2 * _BIN
        )

    def swapped(self) -> _Stretch:
        """The same stretch with query and target exchanged."""
        start, end = (max(0.0, self.speed * time + self.offset) for time in (self.start, self.end))
        return _Stretch(start, end, 1 / self.speed, -self.offset / self.speed, -self.shift, self.evidence)

    def segment(self, settings: SoundSettings) -> Segment:
        start, end, offset = (steps / STEPS_A_SECOND for steps in (self.start, self.end, self.offset))
        begins, ends = (max(0.0, self.speed * time + offset) for time in (start, end))
        return Segment(start, end, begins, ends, _score(self.evidence, settings), self.speed)


def _fit_line(query: SoundFeatures, target: SoundFeatures, line: SoundLine, settings: SoundSettings) -> list[_Stretch]:
    """Fit speed and offset of a line to the landmarks, from its middle outwards, and return its stretches."""
    speed, shift = line.hypothesis.speed, line.hypothesis.shift
    offset = line.target - speed * line.middle
    reach = _SPAN / 3
    end = float(query.times[-1])
    near = 2 * settings.near_time + 2
    # Start with a loose fit near the votes; then tighten it, and widen the range.
    while True:
        inside = np.abs(query.times - line.middle) <= reach
        rows, errors, _ = _fits(query, target, inside, (speed, offset, shift), (near, settings.near_pitch))
        if len(rows) < 6:
            return []
        times = query.times[rows].astype(np.float64)
        # Weighted linear regression of the errors; landmarks near the line count more.
        weights = np.maximum(1 - (errors / (near + 1)) ** 2, 0.05)
        shiftless = times - line.middle
        mean = float((weights * errors).sum() / weights.sum())
        centered = shiftless - (weights * shiftless).sum() / weights.sum()
        slope = float((weights * centered * errors).sum() / max((weights * centered**2).sum(), 1e-9))
        if abs(slope) > 0.03:
            slope = 0.0
        at = float((weights * times).sum() / weights.sum())
        speed += slope
        offset += mean - slope * at
        if near <= settings.near_time and reach >= max(line.middle, end - line.middle):
            break
        if near <= settings.near_time:
            reach *= 2
        near = max(settings.near_time, near - 2)
    if shift:
        shift = -round(math.log2(speed) * STEPS_AN_OCTAVE)
    elif abs(speed - 1) < _SAME_SPEED:
        offset += (speed - 1) * line.middle
        speed = 1.0
    return _find_stretches(query, target, speed, offset, shift, settings)


# Score from which no other speed is tried; difference from 1 up to which a speed is 1; share of a copy's fits that are
# not by chance.
_SURE, _SAME_SPEED, _TRUST = 0.9, 0.0015, 0.95


def _fits(
    query: SoundFeatures,
    target: SoundFeatures,
    inside: NDArray[np.bool_],
    line: tuple[float, float, int],
    near: tuple[int, int],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Rows of query landmarks that the target has near a line, and by how many steps they are later and higher."""
    speed, offset, shift = line
    pitch = query.pitches.astype(np.int64) + shift
    rows = np.flatnonzero(inside & (pitch >= 0) & (pitch < PITCHES))
    expected = speed * query.times[rows] + offset
    found, higher = _errors(target, expected, pitch[rows], near)
    fits = np.isfinite(found)
    return rows[fits], found[fits], higher[fits]


def _errors(
    target: SoundFeatures, expected: NDArray[np.floating], pitch: NDArray[np.int64], near: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """By how many steps the target's nearest landmark of about this pitch is later than expected [N] (infinite if there
    is none), and by how many it is higher."""
    near_time, near_pitch = near
    at = np.rint(expected).astype(np.int64)
    low, high = 128 * at + np.maximum(pitch - near_pitch, 0), 128 * at + np.minimum(pitch + near_pitch, 127)
    codes = np.append(target.codes, np.iinfo(np.int64).max)
    found, higher = np.full(len(at), np.inf), np.zeros(len(at), np.int64)
    left = np.arange(len(at))
    for lag in sorted(range(-near_time, near_time + 1), key=abs):
        codes_there = codes[np.searchsorted(codes, low[left] + 128 * lag)]
        has = codes_there <= high[left] + 128 * lag
        rows = left[has]
        found[rows] = at[rows] + lag - expected[rows]
        higher[rows] = codes_there[has] - (128 * (at[rows] + lag) + pitch[rows])
        left = left[~has]
    return found, higher


# Offsets in steps at which chance fits are measured; many if the speed differs, as two pieces share a beat at some
# speed.
_ELSEWHERE = (-187, -131, -89, -53, 59, 97, 139, 191)
_MANY = tuple(sign * step for step in range(11, 200, 4) for sign in (-1, 1))


def _find_stretches(
    query: SoundFeatures, target: SoundFeatures, speed: float, offset: float, shift: int, settings: SoundSettings
) -> list[_Stretch]:
    """Find the stretches where landmarks fit a line better than shifted copies of it."""
    pitch = query.pitches.astype(np.int64) + shift
    expected = speed * query.times + offset
    inside = (pitch >= 0) & (pitch < PITCHES) & (expected >= 0) & (expected <= target.times[-1] + settings.near_time)
    if (count := int(inside.sum())) < 6:
        return []
    near = settings.near_time, settings.near_pitch
    rows, later, higher = _fits(query, target, inside, (speed, offset, shift), near)
    lags = _ELSEWHERE if speed == 1.0 else _MANY
    elsewhere = np.concatenate([expected[inside] + lag for lag in lags])
    others, _ = _errors(target, elsewhere, np.tile(pitch[inside], len(lags)), near)
    shares = sorted((np.isfinite(others).reshape(len(lags), count).sum(axis=1) / count).tolist())
    # The second highest of 8, the fifth of 96: rhythms and held notes fit at many offsets.
    chance = min(max(settings.least_chance, shares[-2 - len(lags) // 32]), 0.6)
    fitting = max(settings.agreement, chance + 0.15)
    gain, loss = math.log(fitting / chance), math.log((1 - fitting) / (1 - chance))
    values = np.full(len(query), loss)
    values[rows] = gain + _precision_evidence(later, higher, settings.spread * (1 + speed) / 2, settings)
    values = values[inside]
    times = query.times[inside].astype(np.float64)
    gaps = np.diff(times, prepend=times[:1]) > settings.longest_gap * STEPS_A_SECOND
    result = []
    for first, last in _find_runs(values, gaps, settings.unrelated / 3):
        start, end = times[first], times[last]
        if end - start >= settings.shortest * STEPS_A_SECOND:
            # A stretch from the first landmark on (or to the last) extends to where both sounds begin (or end).
            begin = max(0.0, -offset / speed)
            stop = min(query.length * STEPS_A_SECOND, (target.length * STEPS_A_SECOND - offset) / speed)
            if first == 0 and start - begin <= STEPS_A_SECOND:
                start = max(begin, 0.0)
            if last == len(times) - 1 and stop - end <= STEPS_A_SECOND:
                end = max(stop, end)
            evidence = float(values[first : last + 1].sum())
            result.append(_Stretch(float(start), float(end), speed, offset, shift, evidence))
    return result


def _precision_evidence(
    later: NDArray[np.float64], higher: NDArray[np.int64], spread: float, settings: SoundSettings
) -> NDArray[np.float64]:
    """Log-likelihood ratio (copy versus chance) of the distances [N] of matching landmarks from the fitted line."""
    width, others = 2 * settings.near_time + 1, 2 * settings.near_pitch
    bell = np.exp(-0.5 * (later / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
    share = np.where(higher == 0, settings.same_pitch, (1 - settings.same_pitch) / others) * (others + 1)
    return np.asarray(np.log((_TRUST * bell * width + 1 - _TRUST) * share))


def _find_runs(values: NDArray[np.float64], breaks: NDArray[np.bool_], least: float) -> Iterator[tuple[int, int]]:
    """Yield the first and last row of separate stretches with the largest sums."""
    best, total, start, peak = 0.0, 0.0, 0, -1
    for row, (value, is_break) in enumerate(zip(values.tolist(), breaks.tolist(), strict=True)):
        if total <= 0.0 or best - total > least or is_break:
            if best >= least and peak >= start:
                yield start, peak
            best, total, start, peak = 0.0, 0.0, row, -1
        total += value
        if total > best:
            best, peak = total, row
    if best >= least and peak >= start:
        yield start, peak


def _drop_overlaps(stretches: Sequence[_Stretch]) -> list[_Stretch]:
    """The stretches by evidence, without those that mostly overlap a better one."""
    kept: list[_Stretch] = []
    for stretch in sorted(stretches, key=lambda item: -item.evidence):
        length = stretch.end - stretch.start
        if all(min(stretch.end, other.end) - max(stretch.start, other.start) <= length / 2 for other in kept):
            kept.append(stretch)
    return kept
