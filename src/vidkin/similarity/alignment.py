"""From a map of frame similarities to the segments that match, in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError
from vidkin.similarity.contracts import Segment, lower_median
from vidkin.similarity.lines import (
    PREFERENCE,
    EvidenceMap,
    Line,
    LineSearch,
    NearestFrame,
    Run,
    best_run,
    best_sums,
    check_times,
    clear_adjoining,
    run_of,
)

SPEEDS = (0.5, 0.667, 0.8, 1.0, 1.25, 1.5, 2.0)

# Seconds of unrelated frames that split a match into two.
_LONGEST_GAP = 5.0

# How far the map must be above the threshold, on average over the minimum duration.
_LEAST_EXCESS = 0.1

# Columns on either side of a line that are searched for its cells while it is fitted.
_FIT_REACH = 2

_BESIDE = np.arange(-_FIT_REACH, _FIT_REACH + 1)

_FIT_ROUNDS = 8

_FEWEST_FOR_SPEED = 4

# Lines between the given speeds: a factor of up to exp(.2), in steps of a hundredth.
_LARGEST_TURN = 0.2

_TURNS = 41

# Factor of the speed and shift in periods of the target, of every line that is tried.
_EACH_TURN = np.repeat(np.exp(np.linspace(-_LARGEST_TURN, _LARGEST_TURN, _TURNS)), 3)
_EACH_SHIFT = np.tile([-0.5, 0.0, 0.5], _TURNS)

# Maps of up to this many columns have whole rows examined before lines are turned.
_LOOKS = 1024

# Frames of videos of which what the times tell is kept.
_MOST_KEPT = 512

# Isolated bright cells are cleared one by one, at most this many per requested segment.
_ATTEMPTS = 8

# Share of the evidence at full weight that a run of frames with little weight needs.
_LEAST_WEIGHT = 0.25


@check_arguments
def align(
    similarity: NDArray[np.floating],
    query_times: NDArray[np.floating],
    target_times: NDArray[np.floating],
    *,
    query_weights: NDArray[np.floating] | None = None,
    target_weights: NDArray[np.floating] | None = None,
    threshold: float = 0.3,
    speeds: Sequence[float] = SPEEDS,
    maximum_segments: int = 8,
    minimum_duration: float = 2.0,
    mirrored: bool = False,
) -> list[Segment]:
    """Find stretches of the query that appear in the target: straight lines in the map, strongest first.

    With ``e[x, y] = (map[x, y] - threshold) * min(w_x, w_y) * seconds of x``: over all lines ``target time =
    offset + speed * query time`` (speeds as given, offsets half a target period apart) and all runs on them,
    the largest ``min(1, speed) * sum of e`` is taken, cells being the nearest target frame to the line in
    seconds. Speeds other than 1 must win by 5 %. The line is then fitted to the brightest cells beside it,
    which finds speeds between the given ones. The cells it explains are cleared (its own, and those above the
    threshold that adjoin them along either axis: a static scene is a block), and the search continues. One part of the
    query can thus match several places of the target, and vice versa.

    Args:
        similarity: [Tq, Tt] calibrated similarities, unrelated frames near 0 to 0.2, copies 0.4 to 1.
        query_times: [Tq] times in seconds, increasing; they can be irregular and have another rate than the target's.
        target_times: [Tt] times in seconds, increasing.
        query_weights: [Tq] in [0, 1], how much each frame counts; frames of weight 0 are bridged without loss. None if
            all count fully.
        target_weights: [Tt] in [0, 1], the same for the target.
        threshold: Least similarity at which frames speak for a match. Lower values find more and longer segments.
        speeds: Speeds to look for, in seconds of target per second of query.
        maximum_segments: Maximum number of segments to return.
        minimum_duration: Duration in seconds below which runs are dropped, unless everything that one of the videos
            shows is shorter (black frames show nothing).
        mirrored: Stored in the segments.

    Gaps of more than a minute between frames are shortened first if they make the videos too long to align.

    Returns:
        Segments whose ends lie half a sampling period of the query beyond the first and the last matching
        frame (on both sides of the line), within [first frame, last frame + period] of each video; a match with no
        frame between it and the start or end of a video extends to that point. The score is the weighted mean of the
        map along the segment. Empty if nothing matches.

    Raises:
        InvalidArgumentError: Shapes do not match, the map is empty, times do not increase, or a number is out of
            range.
    """
    if not 0.0 < threshold < 1.0:
        raise InvalidArgumentError(f"threshold must be above 0 and below 1, got {threshold}")
    if not speeds or min(speeds) <= 0.0:
        raise InvalidArgumentError(f"speeds must be one or more numbers above 0, got {tuple(speeds)}")
    if maximum_segments < 1:
        raise InvalidArgumentError(f"maximum_segments must be at least 1, got {maximum_segments}")
    if not minimum_duration >= 0.0:
        raise InvalidArgumentError(f"minimum_duration must be at least 0 s, got {minimum_duration}")
    similarity, query_times, target_times = (np.asarray(item) for item in (similarity, query_times, target_times))
    times = shorten_gaps(query_times, target_times, speeds)
    evidence, weights = _evidence(similarity, times.query, times.target, query_weights, target_weights, threshold)
    shortest = min(
        minimum_duration,
        _duration(weights[0], evidence.query_period),
        _duration(weights[1], evidence.target_period),
    )
    # Weights below 1 do not make a run that is long enough less credible, but a fourth must remain.
    lightest = float(min(weights[0].min(), weights[1].min()))
    least = _LEAST_EXCESS * shortest * max(lightest, _LEAST_WEIGHT)
    if _most_evidence(evidence) < least:
        return []
    # A line fitted to its cells explains more than the line that was found, but not twice as much.
    search = LineSearch(evidence, speeds, max(_LEAST_EXCESS * shortest * _LEAST_WEIGHT, least / 2))
    segments: list[Segment] = []
    against = -threshold * evidence.query_period
    for _ in range(_ATTEMPTS * maximum_segments):
        best = search.best(longest_gap=_LONGEST_GAP * threshold)
        if best is None:
            break
        run = _fitted(evidence, best, speeds, _LONGEST_GAP * threshold)
        rows, columns = run.cells()
        counted = np.minimum(weights[0][rows], weights[1][columns])
        explained = _Stretch(run, rows, columns, counted)
        part = _trimmed(evidence, explained, threshold)
        if _is_believable(evidence, part, shortest):
            segments.append(_segment(evidence, part, similarity, mirrored))
            if len(segments) == maximum_segments:
                break
            positive = evidence.excess > 0
            values = np.minimum(evidence.at(explained.rows, explained.columns), against)
            evidence.excess[explained.rows, explained.columns] = values
            # Often nothing is left already, and there is no need to examine the cells beside the line.
            if search.is_exhausted():
                break
            clear_adjoining(evidence, positive, explained.rows, explained.columns, against)
        else:
            # Remove the evidence of a run, and nothing else.
            if bool((evidence.at(explained.rows, explained.columns) < against).any()):
                search.forget()
            evidence.excess[explained.rows, explained.columns] = against
    return [times.restore(segment) for segment in segments]


def _evidence(
    similarity: NDArray[np.floating],
    query_times: NDArray[np.floating],
    target_times: NDArray[np.floating],
    query_weights: NDArray[np.floating] | None,
    target_weights: NDArray[np.floating] | None,
    threshold: float,
) -> tuple[EvidenceMap, tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """The evidence map, and the weights of query (times seconds) and target frames."""
    if similarity.ndim != 2 or 0 in similarity.shape or not np.issubdtype(similarity.dtype, np.floating):
        raise InvalidArgumentError(
            f"similarity must be [Tq, Tt] floating point with at least one frame on both sides, got "
            f"{list(similarity.shape)} {similarity.dtype}"
        )
    query = _clock_of("query_times", query_times, similarity.shape[0])
    target = _clock_of("target_times", target_times, similarity.shape[1])
    # A single frame takes the other side's period, two single ones take a second.
    query_period, target_period = query.period or target.period or 1.0, target.period or query.period or 1.0
    query_times, target_times = query.times, target.times
    sides = []
    for name, given, times in (
        ("query_weights", query_weights, query_times),
        ("target_weights", target_weights, target_times),
    ):
        if given is None:
            sides.append(np.ones(times.shape, np.float32))
            continue
        given = np.asarray(given)
        if given.shape != times.shape:
            raise InvalidArgumentError(f"{name} must be {list(times.shape)}, got {list(given.shape)}")
        sides.append(np.ascontiguousarray(given, np.float32))
    excess = np.array(similarity, np.float32, order="C")
    excess -= threshold
    if query_weights is not None or target_weights is not None:
        excess *= np.minimum(sides[0][:, None], sides[1])
    seconds = np.full(1, query_period, np.float32) if query.seconds is None else query.seconds
    excess *= seconds[:, None]
    nearest = target.nearest or NearestFrame(target_times, target_period)
    return (
        EvidenceMap(
            excess,
            query_times,
            target_times,
            query_seconds=seconds,
            query_period=query_period,
            target_period=target_period,
            nearest=nearest,
        ),
        (sides[0], sides[1]),
    )


@dataclass(frozen=True, slots=True)
class _Clock:
    """What the times of the frames of one video tell; nothing but the times if it has a single frame.

    Attributes:
        times: [T] float64 seconds.
        period: Median distance of frames.
        seconds: [T] float32, how long each frame is shown: half the distance to its neighbors, without gaps.
        nearest: Finds frames by time.
    """

    times: NDArray[np.float64]
    period: float | None = None
    seconds: NDArray[np.float32] | None = None
    nearest: NearestFrame | None = None

    @classmethod
    def of(cls, times: NDArray[np.float64]) -> _Clock:
        """That of frames at these times, which increase."""
        if len(times) == 1:
            return cls(times)
        gaps = np.diff(times)
        period = lower_median(gaps)
        gaps = np.minimum(gaps, 2 * period)
        seconds = ((np.append(period, gaps) + np.append(gaps, period)) / 2).astype(np.float32)
        return cls(times, period, seconds, NearestFrame(times, period))


def _clock_of(name: str, times: NDArray[np.floating], length: int) -> _Clock:
    """The clock of one side, kept if it is short: a query is aligned with one video after the other."""
    if len(times) > _MOST_KEPT or times.shape != (length,):
        return _Clock.of(check_times(name, times, length))
    return _kept_clock(name, np.ascontiguousarray(times, np.float64).tobytes())


@lru_cache(maxsize=256)
def _kept_clock(name: str, content: bytes) -> _Clock:
    times = np.frombuffer(content, np.float64)
    return _Clock.of(check_times(name, times, len(times)))


def _most_evidence(evidence: EvidenceMap) -> float:
    """An upper bound on the evidence of any line: the brightest cell of each query frame, or of each target frame for
    as long as it is shown."""
    columns = float(np.maximum(evidence.excess.max(0), 0.0).sum())
    return min(evidence.most_of_rows(), columns * (1 + evidence.target_period / evidence.query_period))


def _duration(weights: NDArray[np.float32], period: float) -> float:
    """Seconds of a video that show something: a video that fades to black early cannot have a longer match."""
    return max(1.0, float(np.minimum(weights / _LEAST_WEIGHT, 1.0).sum())) * period


def _fitted(evidence: EvidenceMap, run: Run, speeds: Sequence[float], longest_gap: float) -> Run:
    """Fit the line to the cells beside it and take its best run; repeat while that explains more."""
    best = run
    rows, columns = evidence.excess.shape
    # Turning the line cannot make the run longer if one video ends before it and the other after it.
    starts = best.first == 0 or int(best.trace.columns[best.first]) == 0
    if not starts or not (best.last == rows - 1 or int(best.trace.columns[best.last]) == columns - 1):
        best = _turned(evidence, best, longest_gap)
    for _ in range(_FIT_ROUNDS):
        line = _fitted_line(evidence, best, speeds)
        if line == best.line:
            break
        fitted = best_run(evidence, evidence.trace(line), longest_gap=longest_gap)
        # A line through the middle of its cells can lose a cell or two to rounding and is still the more accurate one.
        if fitted is None or fitted.evidence < 0.98 * best.evidence:
            break
        best = fitted
    return best


def _turned(evidence: EvidenceMap, run: Run, longest_gap: float) -> Run:
    """The best of lines turned a little about the middle of a run: speeds between those searched for.

    Read at whole frames, a line of speed 1.1 is ten frames of speed 1, then a step, which no fit to a run detects.
    """
    # Nor can it if there is not that much evidence anywhere, which takes a single pass over the map.
    few = evidence.excess.shape[1] <= _LOOKS
    if few and evidence.most_of_rows() <= run.evidence / PREFERENCE:
        return run
    middle = float(evidence.query_times[run.first] + evidence.query_times[run.last]) / 2
    speeds = run.line.speed * _EACH_TURN
    height = run.line.offset + run.line.speed * middle + _EACH_SHIFT * evidence.target_period
    offsets = height - speeds * middle
    totals = best_sums(evidence.along(speeds, offsets))
    leader = int(totals.argmax())
    if totals[leader] <= run.evidence / PREFERENCE:
        return run
    line = Line(float(speeds[leader]), float(offsets[leader]))
    turned = best_run(evidence, evidence.trace(line), longest_gap=longest_gap)
    return turned if turned is not None and turned.evidence > run.evidence / PREFERENCE else run


def _fitted_line(evidence: EvidenceMap, run: Run, speeds: Sequence[float]) -> Line:
    """Weighted least squares through the brightest cell beside the line at each query frame of a run."""
    line, stretch = run.line, slice(run.first, run.last + 1)
    times = evidence.query_times[stretch]
    columns = run.trace.columns[stretch, None] + _BESIDE
    places = np.minimum(np.maximum(columns, 0), evidence.excess.shape[1] - 1)
    outside = columns != places
    outside |= ~run.trace.near[stretch, None]
    seconds = evidence.target_times.take(places)
    rows = np.arange(run.first, run.last + 1)[:, None]
    values = evidence.at(rows, places).astype(np.float64)
    values[outside] = -np.inf
    # Among equally bright cells, take the one nearest to the line.
    distance = np.abs(seconds - (line.offset + line.speed * times)[:, None])
    chosen = (values - distance * 1e-6).argmax(1)
    chosen += np.arange(0, values.size, len(_BESIDE))
    weight = np.maximum(values.take(chosen), 0.0)
    place = seconds.take(chosen)
    weight /= weight.sum()
    speed = line.speed
    if np.count_nonzero(weight) >= _FEWEST_FOR_SPEED:
        centered = times - float(weight @ times)
        weighed = weight * centered
        speed = float(weighed @ place) / float(weighed @ centered)
        speed = min(max(speed, 0.8 * min(speeds)), 1.25 * max(speeds))
        span = float(times[-1] - times[0])
        # Speed 1, or the nearest given speed, if the run is too short to distinguish it from the fitted one.
        for known in (1.0, min(speeds, key=lambda item: abs(item - speed))):
            if abs(speed - known) * span <= max(evidence.target_period, known * evidence.query_period) / 2:
                speed = known
                break
    # Counted from one of them: where all cells lie on the line, its offset is exact.
    offsets = place - speed * times
    first = float(offsets[0])
    return Line(speed, first + float(weight @ (offsets - first)))


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A run and its cells: query and target frames and the smaller of their weights, [n] each."""

    run: Run
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    weight: NDArray[np.float32]


def _trimmed(evidence: EvidenceMap, stretch: _Stretch, threshold: float) -> _Stretch:
    """Cut off the ends of a run that are below half of its mean: frames next to a match still look alike."""
    run, rows, columns = stretch.run, stretch.rows, stretch.columns
    weight = stretch.weight * evidence.query_seconds[rows]
    values = evidence.at(rows, columns)
    mean = threshold + float(values.sum()) / max(float(weight.sum()), 1e-9)
    if mean <= 2 * threshold:
        return stretch
    _, first, last = run_of((values - weight * (mean / 2 - threshold)).tolist())
    kept = slice(first, last + 1)
    rows = rows[kept]
    total = float(values[kept].sum()) * run.line.weight
    cut = replace(run, first=int(rows[0]), last=int(rows[-1]), evidence=total)
    return _Stretch(cut, rows, columns[kept], stretch.weight[kept])


def _is_believable(evidence: EvidenceMap, stretch: _Stretch, shortest: float) -> bool:
    """Whether a run is long enough on both sides, and similar enough given the weight of its frames."""
    run, times = stretch.run, evidence.query_times
    length = float(times[run.last] - times[run.first]) + evidence.query_period
    if length * run.line.weight < shortest * 0.999 - 1e-6:
        return False
    weight = float(stretch.weight.mean()) if len(stretch.rows) else 0.0
    return run.evidence >= _LEAST_EXCESS * shortest * max(weight, _LEAST_WEIGHT) * run.line.weight


def _segment(evidence: EvidenceMap, stretch: _Stretch, similarity: NDArray[np.floating], mirrored: bool) -> Segment:
    line = stretch.run.line
    start, end = _span(evidence, stretch.run)
    weight = stretch.weight.astype(np.float64)
    score = float(weight @ similarity[stretch.rows, stretch.columns].astype(np.float64)) / float(weight.sum())
    return Segment(
        query_start=start,
        query_end=max(start, end),
        target_start=max(0.0, line.offset + line.speed * start),
        target_end=max(0.0, line.offset + line.speed * max(start, end)),
        score=min(1.0, max(0.0, score)),
        speed=line.speed,
        mirrored=mirrored,
    )


def _span(evidence: EvidenceMap, run: Run) -> tuple[float, float]:
    """Start and end of a run in seconds of the query; both sides are cut together to stay on the line.

    A run extends half a period beyond its outermost matching frames, but all the way to the start or end of a video if
    there is no frame in between to contradict that.
    """
    line, half = run.line, evidence.query_period / 2
    times, targets = evidence.query_times.tolist(), evidence.target_times
    first = max(times[0], (float(targets[0]) - line.offset) / line.speed)
    last = min(
        times[-1] + evidence.query_period,
        (float(targets[-1]) + evidence.target_period - line.offset) / line.speed,
    )
    start, end = max(first, times[run.first] - half), min(last, times[run.last] + half)
    # Frames of a finer target in the added stretch can still contradict it.
    if start > first and (run.first == 0 or times[run.first - 1] < first):
        unlike = ((targets - line.offset) / line.speed)[evidence.excess[run.first] < 0]
        unlike = unlike[(unlike > first) & (unlike <= start)]
        start = float(unlike[-1]) if len(unlike) else first
    if end < last and (run.last == len(times) - 1 or times[run.last + 1] >= last):
        unlike = ((targets - line.offset) / line.speed)[evidence.excess[run.last] < 0]
        unlike = unlike[(unlike >= end) & (unlike < last)]
        end = float(unlike[0]) if len(unlike) else last
    return start, end


# Times that jump: gaps without frames are shortened for the alignment, because its work grows with video length.
#
# A file of a few frames can claim that months lie between two of them.


# Number of lines above which gaps are shortened: two twelve-hour videos at one frame per second have 1.4 million.
_MANY_LINES = 1 << 23

# Seconds to which a longer gap is shortened.
_LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class ShortenedTimes:
    """Times of two videos without their long gaps, or unchanged.

    Attributes:
        query, target: [T] seconds, increasing.
        query_before, target_before: Times of the same frames with the gaps.
    """

    query: NDArray[np.floating]
    target: NDArray[np.floating]
    query_before: NDArray[np.floating]
    target_before: NDArray[np.floating]

    def restore(self, segment: Segment) -> Segment:
        """Convert a segment from shortened times to the times of the files."""
        if self.query is self.query_before:
            return segment
        return replace(
            segment,
            query_start=_restore(segment.query_start, self.query, self.query_before),
            query_end=_restore(segment.query_end, self.query, self.query_before),
            target_start=_restore(segment.target_start, self.target, self.target_before),
            target_end=_restore(segment.target_end, self.target, self.target_before),
        )


def shorten_gaps(query: NDArray[np.floating], target: NDArray[np.floating], speeds: Sequence[float]) -> ShortenedTimes:
    """The times with no gap of more than a minute; unchanged if the alignment can handle them.

    Args:
        query, target: [T] seconds, increasing.
        speeds: Speeds of the lines to search for.
    """
    unchanged = ShortenedTimes(query, target, query, target)
    if query.ndim != 1 or target.ndim != 1 or not query.size or not target.size:
        return unchanged
    # No gap is longer than the whole.
    if max(abs(float(side[-1]) - float(side[0])) for side in (query, target)) <= _LONGEST_PAUSE:
        return unchanged
    times = query.astype(np.float64), target.astype(np.float64)
    gaps = [np.diff(side) for side in times]
    steps = [lower_median(gap) for gap in reversed(gaps) if gap.size]
    spans = [float(side[-1] - side[0]) for side in times]
    if not steps or not sum(speeds) * spans[0] + len(speeds) * spans[1] > _MANY_LINES * steps[0] / 2:
        return unchanged
    if not any(bool((gap > _LONGEST_PAUSE).any()) for gap in gaps):
        return unchanged
    first, second = (
        np.append(side[:1], side[0] + np.cumsum(np.minimum(gap, _LONGEST_PAUSE)))
        for side, gap in zip(times, gaps, strict=True)
    )
    return ShortenedTimes(first, second, *times)


def _restore(seconds: float, times: NDArray[np.floating], before: NDArray[np.floating]) -> float:
    """Ends lie within half a period of a frame and move with it."""
    nearest = int(np.abs(times - seconds).argmin())
    return float(before[nearest]) + (seconds - float(times[nearest]))
