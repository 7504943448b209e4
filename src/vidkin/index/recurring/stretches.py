"""Find segments that two videos share from their stored features: similar windows vote for offsets, then lines are
fitted.

Shapes: T frames, W windows, E dimensions of a vector, L lines tried, N votes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.records import VideoRecord, find_windows, frame_vectors
from vidkin.match import frame_map
from vidkin.similarity import FrameFeatures

SHORTEST = 2.0
"""Minimum duration of a segment in seconds."""

SPEEDS = (1.0, 24 / 25, 25 / 24)
"""Speeds to try: normal, and film-to-television conversions in both directions."""

_MIN_INFORMATION = 0.05  # frames with less information are black or plain
# Calibrated similarities, 0 for unrelated and 1 for equal frames: minimum for two windows to vote for an offset;
# typical value for frames of the same footage sampled half a period apart; maximum contribution of a frame to the
# evidence for or against a segment.
_VOTE, _SAME, _GAIN = 0.55, 0.5, 0.4
_MAX_VOTES = 96  # per window
_BIN = 4.0  # votes for offsets within this many seconds form one candidate
_MAX_CANDIDATES = 40  # per pair of videos
# Once a segment is shared with this many other videos, the remaining ones are not searched for it, because they are
# already linked through those.
_ENOUGH = 24
_MARGIN = 60.0  # maximum seconds that a segment extends beyond the first and last vote
_MAX_GAP = 1.5  # maximum seconds of black or different footage within a segment
_DISTINCT = 0.5  # minimum contrast of a segment that matches at only one offset
_BLOCK = 1 << 22  # number of scores computed at a time
_MAX_CACHED = 512 << 20  # bytes


@dataclass(frozen=True, slots=True)
class RoughStretch:
    """A segment that two videos share, or that one video repeats.

    Attributes:
        first_start, first_end: Start and end in the first video, in seconds.
        second_start, second_end: Start and end in the second video, in seconds.
        score: Mean calibrated similarity of corresponding frames, in [0, 1].
        contrast: Similarity of corresponding frames minus that of other frames, in [-1, 1]; near 0 for still images and
            fixed cameras, which look similar at any offset.
    """

    first_start: float
    first_end: float
    second_start: float
    second_end: float
    score: float
    contrast: float

    def __post_init__(self) -> None:
        if not (0 <= self.first_start < self.first_end and 0 <= self.second_start < self.second_end):
            raise InvalidArgumentError(
                f"a segment must end after it starts, got [{self.first_start}, {self.first_end}] and "
                f"[{self.second_start}, {self.second_end}] s"
            )

    @property
    def first_span(self) -> tuple[float, float]:
        """Start and end in the first video."""
        return self.first_start, self.first_end

    @property
    def second_span(self) -> tuple[float, float]:
        """Start and end in the second video."""
        return self.second_start, self.second_end

    @property
    def speed(self) -> float:
        """Seconds of the second video per second of the first."""
        return (self.second_end - self.second_start) / (self.first_end - self.first_start)

    @property
    def length(self) -> float:
        """Duration in seconds in the video in which the segment is shorter."""
        return min(self.first_end - self.first_start, self.second_end - self.second_start)

    @property
    def is_distinct(self) -> bool:
        """Whether the frames match at only one offset."""
        return self.contrast >= _DISTINCT


@dataclass(frozen=True, slots=True)
class Track:
    """Features of a video, prepared for finding shared segments.

    Attributes:
        times: [T] seconds.
        vectors: [T, E] unit vectors of whole frames, in half precision.
        baseline: [T] similarity to unrelated frames.
        informative: [T] bool, False for black or plain frames.
        period: Seconds between frames.
        end: End of the video in seconds.
        windows: [W, E] one vector for each run of similar frames.
        window_times: [W] start of each window in seconds.
        window_baseline: [W] similarity to unrelated frames.
    """

    times: NDArray[np.float64]
    vectors: NDArray[np.float16]
    baseline: NDArray[np.float32]
    informative: NDArray[np.bool_]
    period: float
    end: float
    windows: NDArray[np.float16]
    window_times: NDArray[np.float64]
    window_baseline: NDArray[np.float32]

    @classmethod
    def of_features(cls, features: FrameFeatures, duration: float) -> Track:
        """Create a track from stored features.

        Args:
            features: Features from a store; only views of whole frames are used.
            duration: Duration of the video in seconds.
        """
        whole = features.views([0])
        (spans, windows), baseline = find_windows(whole), whole.baselines[:, 0].astype(np.float32)
        return cls(
            times=whole.timestamps.astype(np.float64),
            vectors=frame_vectors(whole.values)[:, 0].astype(np.float16),
            baseline=baseline,
            informative=whole.information >= _MIN_INFORMATION,
            period=whole.period,
            end=max(duration, float(features.timestamps[-1]) if len(features) else 0.0),
            windows=windows.astype(np.float16),
            window_times=whole.timestamps.astype(np.float64)[spans[:, 0]],
            window_baseline=baseline[spans[:, 0]],
        )


@dataclass(slots=True)
class Tracks:
    """Provides the tracks of indexed videos; recently used tracks are cached."""

    store: VectorStore
    _held: OrderedDict[int, Track] = field(default_factory=OrderedDict, init=False)

    def of(self, record: VideoRecord) -> Track | None:
        """Return the track of a video; None if the video was removed or has no frames."""
        track = self._held.get(record.id)
        if track is None:
            try:
                track = Track.of_features(self.store.read(record.id), record.duration)
            except NotIndexedError:
                return None
            self._held[record.id] = track
            while sum(held.vectors.nbytes for held in self._held.values()) > _MAX_CACHED and len(self._held) > 1:
                self._held.popitem(last=False)
        self._held.move_to_end(record.id)
        return track if len(track.times) else None


Votes = Mapping[int, tuple[NDArray[np.float64], NDArray[np.float64]]]
"""For each other video, by number: times [N] of windows, and times [N] of similar windows in the other video."""


@dataclass(frozen=True, slots=True)
class WindowTable:
    """Concatenated windows of many videos.

    Attributes:
        vectors: [W, E] vectors of the windows.
        videos: [W] video number of each window.
        times: [W] start of each window in seconds.
    """

    vectors: NDArray[np.float16]
    videos: NDArray[np.int64]
    times: NDArray[np.float64]

    @classmethod
    def of_tracks(cls, tracks: Iterable[Track | None]) -> WindowTable:
        """Concatenate the windows of videos, which are numbered in order; videos without a track have no windows."""
        known = [(number, track) for number, track in enumerate(tracks) if track is not None]
        dimension = known[0][1].windows.shape[1] if known else 0
        return cls(
            np.concatenate([np.zeros((0, dimension), np.float16), *(track.windows for _, track in known)]),
            np.array([number for number, track in known for _ in track.window_times], np.int64),
            np.concatenate([np.zeros(0), *(track.window_times for _, track in known)]),
        )

    def votes(self, track: Track, before: int) -> Votes:
        """Return the votes from similar windows of all videos with numbers below ``before``."""
        queries = track.windows.astype(np.float32)
        bounds = track.window_baseline + _VOTE * (1 - track.window_baseline)
        count = int(np.searchsorted(self.videos, before))
        step = max(1, _BLOCK // max(1, len(queries)))
        parts = [np.zeros((3, 0))]
        for first in range(0, count, step):
            scores = queries @ self.vectors[first : min(first + step, count)].astype(np.float32).T
            row, column = np.nonzero(scores >= bounds[:, None])
            parts.append(np.stack([row, column + first, scores[row, column]]))
        rows, columns, scores = np.concatenate(parts, axis=1)
        # Keep the best votes of each window.
        order = np.lexsort((-scores, rows))
        order = order[np.arange(len(order)) - np.searchsorted(rows[order], rows[order]) < _MAX_VOTES]
        chosen, others = rows[order].astype(np.int64), columns[order].astype(np.int64)
        return {
            int(number): (track.window_times[chosen[is_its]], self.times[others[is_its]])
            for number in np.unique(self.videos[others])
            for is_its in [self.videos[others] == number]
        }


def find_shared(
    track: Track, votes: Votes, track_of: Callable[[int], Track | None]
) -> list[tuple[int, list[RoughStretch]]]:
    """Find segments that a video shares with the videos its windows voted for, starting with the most votes.

    Once a segment is shared with :data:`_ENOUGH` videos, the rest are not searched for it: in a season of 500 episodes
    with the same opening, every episode is already linked with all others through those it was compared with.

    Args:
        track: The video.
        votes: Votes of its windows, see :meth:`WindowTable.votes`.
        track_of: Returns the track for a video number; None if the video was removed.

    Returns:
        (number of the other video, result of :func:`find_stretches`), in ascending order of numbers.
    """
    found: list[tuple[int, list[RoughStretch]]] = []
    spans: list[tuple[float, float, set[int]]] = []  # start, end, numbers of the videos that share the segment
    for number, (times, others) in sorted(votes.items(), key=lambda voted: (-len(voted[1][0]), voted[0])):
        known = [(start, end) for start, end, sharing in spans if len(sharing) >= _ENOUGH]
        other = None if _within(known, times).all() else track_of(number)
        if other is None:
            continue
        stretches = find_stretches(track, other, times, others, known)
        found.append((number, stretches))
        for stretch in stretches:
            span = stretch.first_start, stretch.first_end
            sharing = next((sharing for start, end, sharing in spans if is_same_span(span, (start, end))), None)
            if sharing is None:
                spans.append((*span, {number}))
            else:
                sharing.add(number)
    return sorted(found, key=lambda shared: shared[0])


def is_same_span(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two spans of a file are about the same: their intersection is at least 0.7 of their union."""
    shared, whole = min(one[1], other[1]) - max(one[0], other[0]), max(one[1], other[1]) - min(one[0], other[0])
    return shared >= 0.7 * whole


def find_stretches_inside(track: Track) -> list[RoughStretch]:
    """Find the segments that a video repeats, each pair of occurrences once; see :func:`find_stretches`."""
    for times, others in WindowTable.of_tracks([track]).votes(track, 1).values():
        later = others - times > SHORTEST  # exclude matches of a moment with itself
        return find_stretches(track, track, times[later], others[later])
    return []


def find_stretches(
    first: Track,
    second: Track,
    times: NDArray[np.float64],
    others: NDArray[np.float64],
    known: Sequence[tuple[float, float]] = (),
) -> list[RoughStretch]:
    """Find the segments that two videos share.

    Offsets are tried in descending order of votes. Around each offset, the best line is searched for, at normal speed
    and at film-to-television speeds. Votes explained by a segment are not used again.

    Args:
        first, second: The videos; pass the same video twice to find repetitions within it.
        times, others: [N] times of similar windows in the first and second video.
        known: Start and end in seconds of known segments of the first video; votes within them are ignored.

    Returns:
        Segments of at least :data:`SHORTEST` seconds, longest first. Within one video, each pair is found once.
    """
    found: list[RoughStretch] = []
    asks = ~_within(known, times)
    times, others = times[asks], others[asks]
    for _ in range(_MAX_CANDIDATES):
        if len(times) == 0:
            break
        bins, counts = np.unique(np.floor((others - times) / _BIN), return_counts=True)
        explained = np.floor((others - times) / _BIN) == bins[np.argmax(counts)]
        stretch = _best_line(first, second, times[explained], others[explained], found)
        if stretch is not None:
            found.append(stretch)
            predicted = stretch.second_start + (times - stretch.first_start) * stretch.speed
            along = (times >= stretch.first_start - _BIN) & (times <= stretch.first_end + _BIN)
            along &= np.abs(others - predicted) <= 2 * _BIN
            # Other votes in this bin may be for a different segment. A line without votes of its own explains the bin.
            explained = along if known or (along & explained).any() else explained
        times, others = times[~explained], others[~explained]
    return sorted(found, key=lambda stretch: stretch.first_start - stretch.first_end)


def _within(spans: Sequence[tuple[float, float]], times: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mask of the times whose windows lie within any of the spans."""
    inside = np.zeros(len(times), np.bool_)
    for start, end in spans:
        inside |= (times >= start - SHORTEST / 2) & (times < end)
    return inside


def _best_line(
    first: Track,
    second: Track,
    times: NDArray[np.float64],
    others: NDArray[np.float64],
    known: Sequence[RoughStretch],
) -> RoughStretch | None:
    """Return the best segment near the offset of these votes, excluding known segments; None if there is none."""
    offset, anchor = float(np.median(others - times)), float(np.median(times))
    rows = np.flatnonzero((first.times >= times.min() - _MARGIN) & (first.times <= times.max() + _MARGIN))
    shown, margin = first.times[rows], 2 * _BIN + _MARGIN * (SPEEDS[2] - 1)
    columns = np.flatnonzero(
        (second.times >= shown[0] + offset - margin) & (second.times <= shown[-1] + offset + margin)
    )
    if len(columns) < 2:
        return None
    similarity = frame_map(
        first.vectors[rows].astype(np.float32), second.vectors[columns].astype(np.float32),
        first.baseline[rows], second.baseline[columns],
    )  # fmt: skip
    there, period = second.times[columns], max(first.period, second.period)
    shifts = np.arange(-_BIN, _BIN + 1e-9, period / 2)
    # Map each frame of the first video to a time [L, T] in the second, and use the more similar of the two frames
    # around it.
    starts = np.tile(shifts, len(SPEEDS)) + anchor + offset
    mapped = starts[:, None] + (shown - anchor)[None] * np.repeat(SPEEDS, len(shifts))[:, None]
    right, positions = np.searchsorted(there, mapped).clip(1, len(there) - 1), np.arange(len(rows))
    values = np.maximum(similarity[positions, right - 1], similarity[positions, right])
    informative = second.informative[columns]
    counted = first.informative[rows][None] & (informative[right - 1] | informative[right])
    if first is second:
        counted &= np.abs(mapped - shown[None]) > SHORTEST
    gains = np.where(counted, (values - _SAME).clip(-_GAIN, _GAIN), 0.0)
    gains[_gaps(counted & (values >= _SAME - _GAIN / 2), period) > _MAX_GAP] = -np.inf
    for stretch in known:
        line = stretch.second_start + (shown - stretch.first_start) * stretch.speed
        along = (shown >= stretch.first_start) & (shown < stretch.first_end)
        gains[along[None] & (np.abs(mapped - line[None]) <= _BIN)] = -np.inf
    # A segment cannot continue beyond the ends of the second video.
    gains[(mapped < there[0] - period) | (mapped > there[-1] + period)] = -np.inf
    best, begin, end = _best_run(np.maximum(gains, -len(rows) * _GAIN))
    run, at, counts = rows[begin:end], mapped[best, begin:end], counted[best, begin:end]
    if int(counts.sum()) < 2:
        return None
    score = float(values[best, begin:end][counts].mean().clip(0, 1))
    times_of = _clip_times(first, second, run, at)
    if min(times_of[1] - times_of[0], times_of[3] - times_of[2]) < SHORTEST:
        return None
    # Compare with frames at other times of the same segment to compute the contrast.
    elsewhere = (np.abs(there[None] - at[:, None]) >= _MAX_GAP) & counts[:, None]
    elsewhere &= ((there >= times_of[2]) & (there <= times_of[3]))[None]
    unlike = similarity[begin:end][elsewhere].clip(0, 1)
    return RoughStretch(*times_of, score, score - float(unlike.mean()) if len(unlike) else 0.0)


def _gaps(good: NDArray[np.bool_], period: float) -> NDArray[np.float64]:
    """Duration [L, T] in seconds of the run of bad frames around each frame; 0 for good frames."""
    count = good.shape[1]
    positions = np.arange(count)[None]
    before = np.maximum.accumulate(np.where(good, positions, -1), axis=1)
    after = np.minimum.accumulate(np.where(good, positions, count)[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.where(good, 0.0, (after - before - 1) * period))


def _best_run(gains: NDArray[np.floating[Any]]) -> tuple[int, int, int]:
    """Line, start and end (exclusive) of the run with the largest sum in ``gains`` [L, T]; the shortest if tied."""
    sums = np.concatenate([np.zeros((len(gains), 1)), np.cumsum(gains, axis=1)], axis=1)
    line, end = np.unravel_index(np.argmax(sums - np.minimum.accumulate(sums, axis=1)), sums.shape)
    begin = int(end - np.argmin(sums[line, : end + 1][::-1]))
    return int(line), begin, begin + int(np.argmax(sums[line, begin : end + 1] >= sums[line, end] - 1e-9))


def _clip_times(
    first: Track, second: Track, rows: NDArray[np.int64], mapped: NDArray[np.float64]
) -> tuple[float, float, float, float]:
    """Start and end of a run of frames in both videos, clipped to the ends of the videos."""
    start, end = float(first.times[rows[0]]), min(float(first.times[rows[-1]]) + first.period, first.end)
    speed = float((mapped[-1] - mapped[0]) / (first.times[rows[-1]] - first.times[rows[0]]))
    early = max(0.0, -float(mapped[0]))
    start, other_start = start + early / speed, float(mapped[0]) + early
    late = max(0.0, other_start + (end - start) * speed - second.end)
    end, other_end = end - late / speed, other_start + (end - start) * speed - late
    return start, end, other_start, other_end
