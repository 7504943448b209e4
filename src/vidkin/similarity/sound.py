"""Audio fingerprints (spectral landmarks), and matching the parts of two sounds that are the same recording.

A landmark is a local peak of the spectrogram at a time and a pitch (Wang, An industrial-strength audio search
algorithm, 2003). Two sounds are the same recording where many landmarks lie on a line: target time = speed * query time
+ offset, with the pitch unchanged (time stretching) or shifted according to the speed (tape or sample rate). Candidate
lines are found with pairs of landmarks and verified with all landmarks.

Pitches are in steps of 1/32 octave from 250 Hz, times in steps of 16 ms.
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
"""Revision of the fingerprints. Increment it whenever landmarks or scores change, so that stored ones are rebuilt."""

SOUND_RATE = 8000
"""Sample rate in Hz of the audio from which landmarks are computed."""

STEP = 128
"""Number of samples per time step."""

STEPS_A_SECOND = SOUND_RATE / STEP

STEPS_AN_OCTAVE, PITCHES = 32, 126
"""Number of pitch steps per octave, and in total."""

# Pairs of strong landmarks: number of partners per landmark, minimum and maximum distance in time steps, and maximum
# distance in pitch steps.
_FAN, _NEAREST, _FARTHEST, _WIDEST = 4, 2, 48, 32
_TIMES_OF_PAIRS = (_FARTHEST + 2) // 2
_KEYS = PITCHES * (2 * _WIDEST + 1) * _TIMES_OF_PAIRS


@check_constructor
@dataclass(frozen=True, slots=True)
class SoundFeatures:
    """The landmarks of a sound track.

    Attributes:
        times: [N] int32, in steps of 16 ms, in increasing order.
        pitches: [N] uint8, in steps of 1/32 octave.
        strong: [N] bool, whether the landmark is used in pairs.
        length: Duration of the track in seconds.
        language: Language stated in the file; empty if unknown.
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
        """[N] landmarks encoded as 128 * time + pitch, in increasing order."""
        if not self._codes:
            self._codes.append(np.sort(128 * self.times.astype(np.int64) + self.pitches))
        return self._codes[0]

    def between(self, start: float, end: float) -> SoundFeatures:
        """Select the landmarks between two times in seconds; their times are unchanged."""
        inside = slice(*np.searchsorted(self.times, [start * STEPS_A_SECOND, end * STEPS_A_SECOND]).tolist())
        columns = self.times[inside], self.pitches[inside], self.strong[inside]
        return SoundFeatures(*columns, min(self.length, end), self.language, self.is_default)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A hypothesis about the speed and pitch of the target relative to the query.

    Attributes:
        speed: Seconds of target per second of query.
        shift: Pitch steps to add to the query's pitches.
    """

    speed: float
    shift: int


@cache
def hypotheses() -> tuple[Hypothesis, ...]:
    """Return all hypotheses: no change first, then speeds from 1/2 to 2, with unchanged and with shifted pitch."""
    count = round(math.log(2.0) / math.log(_SPEED_STEP))
    speeds = [_SPEED_STEP**step for step in range(-count, count + 1) if step]
    changed = [Hypothesis(speed, -round(math.log2(speed) * STEPS_AN_OCTAVE)) for speed in speeds]
    return (Hypothesis(1.0, 0), *(Hypothesis(speed, 0) for speed in speeds), *changed)


_SPEED_STEP = 2 ** (1 / 20)


@dataclass(frozen=True, slots=True)
class _Neighbors:
    """Pairs [P] of nearby strong landmarks: row of the first landmark, distance in time and in pitch, and an order that
    groups the pairs by first landmark."""

    first: NDArray[np.int64]
    apart: NDArray[np.int64]
    wide: NDArray[np.int64]
    together: NDArray[np.int64]

    @classmethod
    def of(cls, times: NDArray[np.int64], pitches: NDArray[np.int64], reach: int) -> _Neighbors:
        """Pair landmarks [N] that are at most ``reach`` time steps apart; pairs of direct neighbors come first."""
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
    """Compute, for each hypothesis (default: no change), the key of each pair of strong landmarks in the target, and
    the time step of its first landmark.

    A key encodes the two pitches and their distance in time in steps of 32 ms.
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
        # Keep the first few valid pairs of each landmark, but more if the target runs faster: every second of sound has
        # the same number of strong landmarks, so a second of the query has fewer of the target's.
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
    """Evidence that two sounds are the same recording.

    Attributes:
        score: Score in [0, 1], on the scale of visual scores: 1 for identical sounds, at least 0.7 for certain matches,
            below 0.2 for unrelated sounds.
        segments: Matching segments, most certain first; only times and speed are meaningful, boxes are the full frame.
    """

    score: float
    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class SoundSettings:
    """Constants of the sound score.

    Attributes:
        near_time, near_pitch: Maximum distance in steps between a matching landmark and the line.
        agreement: Fraction of landmarks that match in a copy of medium quality.
        least_chance: Minimum fraction of landmarks assumed to match by chance.
        longest_gap: Maximum gap in seconds between matching landmarks within a segment.
        shortest: Minimum duration of a segment in seconds.
        unrelated, same: Evidence (natural log odds) at which the score is `UNRELATED` and `SURE`.
        lines: Maximum number of candidate lines to verify per pair of sounds.
        votes: Minimum number of landmark pairs on a line.
        spread, same_pitch: In a copy, the standard deviation of matching landmarks from the line in steps (half of it
            is proportional to the speed), and the fraction with exactly the same pitch. Chance matches are distributed
            uniformly around the line.
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
    """Return a fingerprint of everything that scores depend on besides the landmarks of the two sounds."""
    return repr((SOUND_REVISION, _FAN, _NEAREST, _FARTHEST, _WIDEST, settings))


@dataclass(frozen=True, slots=True)
class SoundLine:
    """A candidate line for the landmarks of two sounds.

    Attributes:
        hypothesis: Approximate speed and pitch shift.
        middle: Time step in the query that corresponds to ``target``.
        target: Time step in the target.
        votes: Number of landmark pairs on the line.
    """

    hypothesis: Hypothesis
    middle: float
    target: float
    votes: int

    def swapped(self) -> SoundLine:
        """Return the line with query and target swapped."""
        back = Hypothesis(1 / self.hypothesis.speed, -self.hypothesis.shift)
        return SoundLine(back, self.target, self.middle, self.votes)


# Votes are counted per span of the query, short enough to limit the drift at speeds between two hypotheses, and per bin
# of offsets. Lengths in time steps.
_SPAN, _BIN = 16 * 62, 16


def expand(first: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the positions in ranges that start at ``first`` with lengths ``counts``: (range numbers, positions)."""
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
    """Find lines supported by at least ``least`` pairs.

    Args:
        times: [N], time step of each pair in the query.
        positions: [N], time step of each pair in the target.
        hypothesis: Speed and pitch shift of the pairs.
        least: Minimum number of pairs on a line.
        most: Maximum number of lines, the best ones; None sets no limit.
    """
    if len(times) < least:
        return []
    spans = times // _SPAN
    offsets = positions - hypothesis.speed * (times - (spans + 0.5) * _SPAN)
    # Use two grids, shifted by half a bin, so that no line is split between two bins; one sort by half bins is enough.
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
            # An error in the speed has the least effect at the mean of the votes.
            at = float(times[of_line].sum()) / count
            inner = np.sort(offsets[of_line])
            median = float(inner[(count - 1) // 2] + inner[count // 2]) / 2
            lines.append(SoundLine(hypothesis, at, median + hypothesis.speed * (at - middle), count))
    return lines


@dataclass(frozen=True, slots=True)
class PairTable:
    """Inverted index of the landmark pairs in several tracks, by key.

    Attributes:
        offsets: [KEYS + 1] uint32, start and end of each key's entries in ``positions``.
        positions: [P] uint32, time step of the first landmark of each pair; tracks are concatenated.
        starts: [tracks + 1] int64, start of each track in time steps, in increasing order, and the end of the last
            track.
    """

    offsets: NDArray[np.uint32]
    positions: NDArray[np.uint32]
    starts: NDArray[np.int64]

    def check(self) -> None:
        """Raise ValueError unless offsets and starts are valid, so that a search cannot read beyond the end."""
        ends = len(self.offsets) == _KEYS + 1 and not self.offsets[0] and int(self.offsets[-1]) == len(self.positions)
        grows = (self.offsets[1:] >= self.offsets[:-1]).all() and (np.diff(self.starts) >= 0).all()
        if not (ends and grows and len(self.starts)):
            raise ValueError("its offsets are invalid")

    @classmethod
    def of(cls, tracks: Sequence[SoundFeatures]) -> PairTable:
        """Build a table of these tracks."""
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
        """Find lines in this table, as :meth:`PairTables.lines` does in several."""
        one = PairTables.of([self], [np.arange(len(self.starts) - 1)])
        return one.lines(query, limit=limit, settings=settings, tried=tried)


def _starts_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Compute the start of each track with these lengths in time steps, and the end of the last track."""
    # Gaps prevent lines from continuing in the next track. Starts are multiples of a bin, so that a track's votes do
    # not depend on its start.
    bins = -(-(lengths + ROOM) // _BIN)
    return np.concatenate([[0], np.cumsum(bins)]).astype(np.int64) * _BIN


@dataclass(frozen=True, slots=True)
class PairTables:
    """Several tables searched together, with the same results as a single table of all tracks in order of number.

    Attributes:
        tables: The tables.
        starts: [all tracks + 1] int64, start of each track in the equivalent single table.
        shifts: For each table, the offset to add to the time steps of each track; None if all offsets are 0.
    """

    tables: tuple[PairTable, ...]
    starts: NDArray[np.int64]
    shifts: tuple[NDArray[np.int64] | None, ...]

    @classmethod
    def of(cls, tables: Sequence[PairTable], numbers: Sequence[NDArray[np.int64]]) -> PairTables:
        """Combine tables.

        Args:
            tables: The tables.
            numbers: For each table, the numbers of its tracks, or -1 to exclude a track. All numbers together must be
                0, 1, 2, etc.
        """
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
        """Find the most promising lines in at most ``limit`` tracks, by track number.

        Args:
            query: The sound to search for.
            limit: Maximum number of tracks.
            settings: Constants of the score.
            tried: Hypotheses to try; None for all.
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
            # Use rare keys first, because they are the most informative, and common ones are the most expensive.
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
        """Look up keys in a table; return the time step in the query and the combined time step of each pair found."""
        table, shift = self.tables[number], self.shifts[number]
        rows, entries = expand(first[order], counts[order])
        steps, positions = times[order][rows], table.positions[entries].astype(np.int64)
        if shift is None:
            return steps, positions
        moves = shift[np.searchsorted(table.starts[1:-1], positions, side="right")]
        is_there = moves > _LEFT_OUT
        return steps[is_there], (positions + moves)[is_there]


# Gap between tracks in time steps; maximum number of pairs to look up per span of the query, for no change and for
# other hypotheses; maximum number of lines per hypothesis.
ROOM, _HITS, _HITS_CHANGED, _LINES = 2 * _SPAN, 20_000, 4_000, 64
# Shift that marks excluded tracks.
_LEFT_OUT = -(1 << 50)


def compare_sounds(
    query: SoundFeatures,
    target: SoundFeatures,
    lines: Sequence[SoundLine] | None = None,
    settings: SoundSettings = SETTINGS,
) -> SoundScore:
    """Compute the score and segments of two sounds; the score is symmetric except for the rounding of landmarks.

    Args:
        query, target: The sounds.
        lines: Candidate lines to verify; None to find them.
        settings: Constants of the score.
    """
    if min(len(query), len(target)) == 0:
        return SoundScore(0.0)
    if lines is None:
        table = PairTable.of([target])
        # Most copies have the original speed, and trying only that takes a fraction of the time.
        unchanged = table.lines(query, limit=1, settings=settings, tried=hypotheses()[:1]).get(0, [])
        result = compare_sounds(query, target, unchanged, settings)
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
            # Both sounds have the same number of landmarks per second, so the slower one contains all landmarks of the
            # faster one, but not vice versa. Therefore, look up the landmarks of the faster one.
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
    """Return the best score over all pairs of tracks that are not silent; None if either side has none."""
    scores = [compare_sounds(one, other) for one in first for other in second if len(one) and len(other)]
    return max(scores, key=lambda score: score.score, default=None)


def _score(evidence: float, settings: SoundSettings) -> float:
    """Convert evidence to a score with a logistic curve through the points `UNRELATED` and `SURE`."""
    low, high = (math.log(point / (1 - point)) for point in (UNRELATED, SURE))
    slope = (high - low) / (settings.same - settings.unrelated)
    return round(1 / (1 + math.exp(-min(low + slope * (evidence - settings.unrelated), 50.0))), 4)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Part of a line on which landmarks match, in time steps of the query."""

    start: float
    end: float
    speed: float
    offset: float
    shift: int
    evidence: float

    def explains(self, line: SoundLine) -> bool:
        """Whether a line is approximately the same as this one."""
        return (
            self.start - _SPAN / 4 <= line.middle <= self.end + _SPAN / 4
            and abs(self.speed * line.middle + self.offset - line.target) <= 2 * _BIN
        )

    def swapped(self) -> _Stretch:
        """Return this part with query and target swapped."""
        start, end = (max(0.0, self.speed * time + self.offset) for time in (self.start, self.end))
        return _Stretch(start, end, 1 / self.speed, -self.offset / self.speed, -self.shift, self.evidence)

    def segment(self, settings: SoundSettings) -> Segment:
        start, end, offset = (steps / STEPS_A_SECOND for steps in (self.start, self.end, self.offset))
        begins, ends = (max(0.0, self.speed * time + offset) for time in (start, end))
        return Segment(start, end, begins, ends, _score(self.evidence, settings), self.speed)


def _fit_line(query: SoundFeatures, target: SoundFeatures, line: SoundLine, settings: SoundSettings) -> list[_Stretch]:
    """Fit the speed and offset of a line to the landmarks, from its middle outward, and return the matching parts."""
    speed, shift = line.hypothesis.speed, line.hypothesis.shift
    offset = line.target - speed * line.middle
    reach = _SPAN / 3
    end = float(query.times[-1])
    near = 2 * settings.near_time + 2
    # Start with a loose tolerance near the votes, then tighten it and widen the range.
    while True:
        inside = np.abs(query.times - line.middle) <= reach
        rows, errors, _ = _fits(query, target, inside, (speed, offset, shift), (near, settings.near_pitch))
        if len(rows) < 6:
            return []
        times = query.times[rows].astype(np.float64)
        # Weighted linear regression of the errors, with higher weights for landmarks near the line.
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


# Score at which no other speeds are tried; maximum deviation from 1 of an unchanged speed; fraction of the matches in a
# copy that are not due to chance.
_SURE, _SAME_SPEED, _TRUST = 0.9, 0.0015, 0.95


def _fits(
    query: SoundFeatures,
    target: SoundFeatures,
    inside: NDArray[np.bool_],
    line: tuple[float, float, int],
    near: tuple[int, int],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Find query landmarks that match the target near a line; return their rows and the target's deviation in time and
    pitch steps."""
    speed, offset, shift = line
    pitch = query.pitches.astype(np.int64) + shift
    rows = np.flatnonzero(inside & (pitch >= 0) & (pitch < PITCHES))
    expected = speed * query.times[rows] + offset
    later, higher = _errors(target, expected, pitch[rows], near)
    fits = np.isfinite(later)
    return rows[fits], later[fits], higher[fits]


def _errors(
    target: SoundFeatures, expected: NDArray[np.floating], pitch: NDArray[np.int64], near: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Find the target's nearest landmark with approximately each pitch; return by how many time steps it is later than
    expected [N] (infinity if there is none), and by how many pitch steps it is higher [N]."""
    near_time, near_pitch = near
    at = np.rint(expected).astype(np.int64)
    low, high = 128 * at + np.maximum(pitch - near_pitch, 0), 128 * at + np.minimum(pitch + near_pitch, 127)
    codes = np.append(target.codes, np.iinfo(np.int64).max)
    later, higher = np.full(len(at), np.inf), np.zeros(len(at), np.int64)
    left = np.arange(len(at))
    for lag in sorted(range(-near_time, near_time + 1), key=abs):
        codes_there = codes[np.searchsorted(codes, low[left] + 128 * lag)]
        has = codes_there <= high[left] + 128 * lag
        rows = left[has]
        later[rows] = at[rows] + lag - expected[rows]
        higher[rows] = codes_there[has] - (128 * (at[rows] + lag) + pitch[rows])
        left = left[~has]
    return later, higher


# Offsets in time steps at which chance matches are measured. There are more for changed speeds, because any two pieces
# of music share a beat at some speed.
_ELSEWHERE = (-187, -131, -89, -53, 59, 97, 139, 191)
_MANY = tuple(sign * step for step in range(11, 200, 4) for sign in (-1, 1))


def _find_stretches(
    query: SoundFeatures, target: SoundFeatures, speed: float, offset: float, shift: int, settings: SoundSettings
) -> list[_Stretch]:
    """Find the parts of a line where landmarks match better than along shifted copies of the line."""
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
    fractions = sorted((np.isfinite(others).reshape(len(lags), count).sum(axis=1) / count).tolist())
    # Use the second highest of 8, or the fifth highest of 96: rhythms and sustained notes match at many offsets.
    chance = min(max(settings.least_chance, fractions[-2 - len(lags) // 32]), 0.6)
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
            # A part that includes the first (or last) landmark extends to where both sounds begin (or end).
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
    """Compute the log-likelihood ratio (copy versus chance) of matching landmarks' deviations [N] from the line."""
    width, others = 2 * settings.near_time + 1, 2 * settings.near_pitch
    bell = np.exp(-0.5 * (later / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
    pitch_ratio = np.where(higher == 0, settings.same_pitch, (1 - settings.same_pitch) / others) * (others + 1)
    return np.asarray(np.log((_TRUST * bell * width + 1 - _TRUST) * pitch_ratio))


def _find_runs(values: NDArray[np.float64], breaks: NDArray[np.bool_], least: float) -> Iterator[tuple[int, int]]:
    """Yield the first and last row of each of the disjoint runs with the largest sums."""
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
    """Sort parts by evidence, and drop those that mostly overlap a better one."""
    kept: list[_Stretch] = []
    for stretch in sorted(stretches, key=lambda item: -item.evidence):
        length = stretch.end - stretch.start
        if all(min(stretch.end, other.end) - max(stretch.start, other.start) <= length / 2 for other in kept):
            kept.append(stretch)
    return kept
