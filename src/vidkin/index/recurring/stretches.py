"""Find stretches that two videos share, from their stored features: votes of similar windows for an offset, then lines.

Shape legend: T frames, W windows, E dimension of a vector, L lines that are tried.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index.recurring.clips import Clips
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord, frame_vectors, window_vectors
from vidkin.index.storage.tasks import check_files_here
from vidkin.similarity import FrameFeatures

SHORTEST = 2.0
"""Seconds of the shortest stretch that is looked for."""

# Calibrated similarities: 0 is that of unrelated frames, 1 of equal ones.
_VOTE = 0.55  # of two windows that vote for their offset
_SAME = 0.5  # of two frames that show the same, sampled half a period apart
_GAIN, _LOSS = 0.35, 0.45  # most that one frame counts for and against a stretch
# Votes of a window for windows of one video, and for those of all.
_VOTES_A_VIDEO, _VOTES = 4, 96
_BIN = 4.0  # seconds: votes for offsets this near are one candidate
_CANDIDATES_A_PAIR = 40
# With so many others a stretch of a video is enough known: each of the rest has it in common with as many. Spans with
# this share in common are one; seconds before a span in which windows begin that belong to it.
_ENOUGH, _SAME_SPAN, _BEFORE = 24, 0.7, 1.0
_SPEEDS = (1.0, 24 / 25, 25 / 24)  # film shown on television, and back
_REACH, _STEP = 4.0, 0.5  # seconds: offsets tried around a candidate, in periods: their distance
_MARGIN = 60.0  # seconds that a stretch may go on before the first and after the last vote
_LEAST_INFORMATION = 0.05
# Seconds of black, or of something else, that end a stretch, and what each of their frames counts against it.
_LONGEST_GAP, _BREAK = 1.5, 2.0
_APART = 1.5  # seconds from the line at which other frames tell how alike the stretch is to itself
_BLOCK = 1 << 22  # scores computed at a time
_HELD_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class RoughStretch:
    """A stretch that two videos share, or two places of one.

    Attributes:
        first_start, first_end: Where it is in the first video, seconds.
        second_start, second_end: Where it is in the second.
        score: Mean calibrated similarity of its frames, in [0, 1].
        contrast: How much more similar frames at the same place of the stretch are than others, in [-1, 1]: near 0
            for a still picture and a fixed camera, which look alike at any offset.
    """

    first_start: float
    first_end: float
    second_start: float
    second_end: float
    score: float
    contrast: float

    def __post_init__(self) -> None:
        if not (self.first_start < self.first_end and self.second_start < self.second_end):
            raise InvalidArgumentError(
                f"a stretch must end after it starts, got [{self.first_start}, {self.first_end}] and "
                f"[{self.second_start}, {self.second_end}] s"
            )

    @property
    def speed(self) -> float:
        """Seconds of the second video per second of the first."""
        return (self.second_end - self.second_start) / (self.first_end - self.first_start)

    def swapped(self) -> RoughStretch:
        """The same with the second video first."""
        return RoughStretch(
            self.second_start, self.second_end, self.first_start, self.first_end, self.score, self.contrast
        )


@dataclass(frozen=True, slots=True)
class Track:
    """What finding shared stretches needs of a video.

    Attributes:
        times: [T] seconds.
        vectors: [T, E] unit vectors of the whole picture, half precision.
        baseline: [T] similarity of unrelated frames.
        informative: [T] bool: not black, not without content.
        period: Seconds between frames.
        end: End of the video in seconds.
        windows: [W, E] one vector for each run of similar frames.
        window_times: [W] start of each, seconds.
        window_baseline: [W] similarity of unrelated frames.
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

    @property
    def nbytes(self) -> int:
        return self.vectors.nbytes + self.windows.nbytes + self.times.nbytes

    @classmethod
    def of_features(cls, features: FrameFeatures, duration: float) -> Track:
        """The track of stored features.

        Args:
            features: As a store returns them; parts of the picture are not used.
            duration: Seconds of the video.
        """
        whole = features.views([0])
        windows = window_vectors(whole)
        baseline = whole.baselines[:, 0].astype(np.float32)
        last = float(features.timestamps[-1]) if len(features) else 0.0
        return cls(
            times=whole.timestamps.astype(np.float64),
            vectors=frame_vectors(whole.values)[:, 0].astype(np.float16),
            baseline=baseline,
            informative=whole.information >= _LEAST_INFORMATION,
            period=whole.period,
            end=max(duration, last),
            windows=windows.vectors.astype(np.float16),
            window_times=windows.starts,
            window_baseline=baseline[windows.first_frames],
        )


@dataclass(slots=True)
class Tracks:
    """Tracks of the videos of an index, those used last in memory."""

    store: VectorStore
    _held: OrderedDict[int, Track] = field(default_factory=OrderedDict, init=False)
    _bytes: int = field(default=0, init=False)

    def of(self, record: VideoRecord) -> Track:
        """The track of a video; :class:`NotIndexedError` if it was removed."""
        track = self._held.get(record.id)
        if track is None:
            track = Track.of_features(self.store.read(record.id), record.duration)
            self._held[record.id] = track
            self._bytes += track.nbytes
            while self._bytes > _HELD_BYTES and len(self._held) > 1:
                self._bytes -= self._held.popitem(last=False)[1].nbytes
        self._held.move_to_end(record.id)
        return track


@dataclass(slots=True)
class WindowTable:
    """Windows of many videos below each other, filled video by video.

    Attributes:
        count: Number of rows in use.
    """

    dimension: int
    count: int = 0
    _vectors: NDArray[np.float16] = field(init=False)
    _videos: NDArray[np.int64] = field(init=False)
    _times: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self._vectors = np.zeros((1024, self.dimension), np.float16)
        self._videos = np.zeros(1024, np.int64)
        self._times = np.zeros(1024)

    def add(self, video: int, track: Track) -> None:
        """Add the windows of a video under a number."""
        new = self.count + len(track.windows)
        if new > len(self._vectors):
            size = max(new, 2 * len(self._vectors))
            for name in ("_vectors", "_videos", "_times"):
                held = getattr(self, name)
                grown = np.zeros((size, *held.shape[1:]), held.dtype)
                grown[: self.count] = held[: self.count]
                setattr(self, name, grown)
        self._vectors[self.count : new] = track.windows
        self._videos[self.count : new] = video
        self._times[self.count : new] = track.window_times
        self.count = new

    def first(self, count: int) -> WindowTable:
        """The table as it was when it had so many rows."""
        table = copy(self)
        table.count = count
        return table

    def votes(self, track: Track) -> Votes:
        """What similar windows of the table say about a video: the best votes of each of its windows."""
        queries = track.windows.astype(np.float32)
        bounds = track.window_baseline + _VOTE * (1 - track.window_baseline)
        rows, columns, values = [], [], []
        step = max(1, _BLOCK // max(1, len(queries)))
        for first in range(0, self.count, step):
            block = self._vectors[first : min(first + step, self.count)].astype(np.float32)
            scores = queries @ block.T
            found = np.flatnonzero(scores >= bounds[:, None])
            row, column = np.divmod(found, scores.shape[1])
            rows.append(row)
            columns.append(column + first)
            values.append(scores.ravel()[found])
        row, column, value = (np.concatenate(parts) if parts else np.zeros(0) for parts in (rows, columns, values))
        row, column = row.astype(np.int64), column.astype(np.int64)
        kept = _best_votes(row, self._videos[column], value)
        row, column = row[kept], column[kept]
        return Votes(self._videos[column], track.window_times[row], self._times[column])


def _best_votes(
    windows: NDArray[np.int64], videos: NDArray[np.int64], scores: NDArray[np.floating]
) -> NDArray[np.int64]:
    """Places of the best votes of each window for a video, and of those the best for all videos."""
    order = np.lexsort((-scores, videos, windows))
    order = order[_rank_in_runs(windows[order], videos[order]) < _VOTES_A_VIDEO]
    order = order[np.lexsort((-scores[order], windows[order]))]
    return order[_rank_in_runs(windows[order]) < _VOTES]


def _rank_in_runs(*keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place of each element in its run of equal keys."""
    count = len(keys[0])
    if count == 0:
        return np.zeros(0, np.int64)
    begins = np.ones(count, np.bool_)
    begins[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    starts = np.flatnonzero(begins)
    return np.arange(count) - np.repeat(starts, np.diff(np.append(starts, count)))


@dataclass(frozen=True, slots=True)
class Votes:
    """Pairs of similar windows of one video and others.

    Attributes:
        videos: [N] number of the other video.
        times: [N] start of the window in the video, seconds.
        others: [N] start of the similar window in the other.
    """

    videos: NDArray[np.int64]
    times: NDArray[np.float64]
    others: NDArray[np.float64]

    def by_video(self) -> Iterator[tuple[int, NDArray[np.float64], NDArray[np.float64]]]:
        """(number of the other video, times, times in the other) for each video with a vote."""
        if len(self.videos) == 0:
            return
        order = np.argsort(self.videos, kind="stable")
        numbers, starts = np.unique(self.videos[order], return_index=True)
        for number, places in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            yield number, self.times[places], self.others[places]


def find_stretches(
    first: Track,
    second: Track,
    times: NDArray[np.float64],
    others: NDArray[np.float64],
    known: Sequence[tuple[float, float]] = (),
) -> list[RoughStretch]:
    """Find the stretches that two videos share.

    The votes are counted by offset, those with most votes first; around each offset the line of frames that are most
    similar is looked for, at the speed of the video and of film shown on television. Votes that a stretch explains do
    not ask for another.

    Args:
        first, second: The videos; the same one for what recurs inside it.
        times, others: [N] times of similar windows in the first and in the second.
        known: Start and end of what need not be found in the first video, seconds: votes for it are left out.

    Returns:
        Stretches of at least :data:`SHORTEST` seconds, the longest first. Of one video with itself each is found once.
    """
    inside = first is second
    found: list[RoughStretch] = []
    asks = ~_within(known, times)
    times, others = times[asks], others[asks]
    for _ in range(_CANDIDATES_A_PAIR):
        if len(times) == 0:
            break
        bins, counts = np.unique(np.floor((others - times) / _BIN), return_counts=True)
        best = np.floor((others - times) / _BIN) == bins[np.argmax(counts)]
        stretch = _best_line(first, second, times[best], others[best], found, inside=inside)
        explained = best
        if stretch is not None:
            found.append(stretch)
            # Other votes of this bin may be for another stretch.
            explained = _is_near(stretch, times, others)
            # A known stretch of nearly the same offset is found though none votes for it: look beside it.
            is_known = bool(_within(known, np.array([(stretch.first_start + stretch.first_end) / 2]))[0])
            explained = explained if is_known or (explained & best).any() else best
        times, others = times[~explained], others[~explained]
    return sorted(found, key=lambda stretch: stretch.first_start - stretch.first_end)


def find_shared(
    track: Track, votes: Votes, track_of: Callable[[int], Track | None]
) -> list[tuple[int, list[RoughStretch]]]:
    """Find what a video shares with the others that its windows voted for, those with most votes first.

    What it shares with :data:`_ENOUGH` of them is not looked for in the rest: in a season of 500 episodes with one
    opening, each is connected with all by those that it was compared with.

    Args:
        track: The video.
        votes: Of its windows; see :meth:`WindowTable.votes`.
        track_of: Gives the track of a number; None if the video was removed.

    Returns:
        (number of the other video, :func:`find_stretches` of both) in the order of the numbers.
    """
    found: list[tuple[int, list[RoughStretch]]] = []
    spans: list[tuple[float, float, set[int]]] = []  # start, end, numbers of the others that share it
    by_video = list(votes.by_video())
    for number, times, others in sorted(by_video, key=lambda voted: (-len(voted[1]), voted[0])):
        known = [(start, end) for start, end, sharing in spans if len(sharing) >= _ENOUGH]
        other = None if _within(known, times).all() else track_of(number)
        if other is None:
            continue
        stretches = find_stretches(track, other, times, others, known)
        found.append((number, stretches))
        for stretch in stretches:
            _note(spans, stretch.first_start, stretch.first_end, number)
    return sorted(found, key=lambda shared: shared[0])


def _note(spans: list[tuple[float, float, set[int]]], start: float, end: float, number: int) -> None:
    """Note that one more shares a span; one that shows it several times counts once."""
    for known_start, known_end, sharing in spans:
        shared = min(end, known_end) - max(start, known_start)
        if shared >= _SAME_SPAN * (max(end, known_end) - min(start, known_start)):
            sharing.add(number)
            return
    spans.append((start, end, {number}))


def find_stretches_inside(track: Track) -> list[RoughStretch]:
    """The stretches that a video shows again, each pair of places once; see :func:`find_stretches`."""
    table = WindowTable(track.vectors.shape[1])
    table.add(0, track)
    for _, times, others in table.votes(track).by_video():
        later = others - times > SHORTEST  # and none with itself
        return find_stretches(track, track, times[later], others[later])
    return []


def _within(spans: Sequence[tuple[float, float]], times: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which windows that begin at these times belong to one of the spans."""
    inside = np.zeros(len(times), np.bool_)
    for start, end in spans:
        inside |= (times >= start - _BEFORE) & (times < end)
    return inside


def _is_near(stretch: RoughStretch, times: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Votes that lie along a stretch."""
    predicted = stretch.second_start + (times - stretch.first_start) * stretch.speed
    along = (times >= stretch.first_start - _BIN) & (times <= stretch.first_end + _BIN)
    near: NDArray[np.bool_] = along & (np.abs(others - predicted) <= 2 * _BIN)
    return near


def _best_line(
    first: Track,
    second: Track,
    times: NDArray[np.float64],
    others: NDArray[np.float64],
    known: Sequence[RoughStretch],
    *,
    inside: bool,
) -> RoughStretch | None:
    """The best stretch along one offset besides the known ones; None if there is none."""
    offset = float(np.median(others - times))
    rows = np.flatnonzero((first.times >= times.min() - _MARGIN) & (first.times <= times.max() + _MARGIN))
    low, high = first.times[rows[0]] + offset - 2 * _REACH, first.times[rows[-1]] + offset + 2 * _REACH
    margin = _MARGIN * 0.05
    columns = np.flatnonzero((second.times >= low - margin) & (second.times <= high + margin))
    if len(columns) < 2:
        return None
    similarity = first.vectors[rows].astype(np.float32) @ second.vectors[columns].astype(np.float32).T
    base = np.maximum(first.baseline[rows][:, None], second.baseline[columns][None])
    similarity = (similarity - base) / np.maximum(1 - base, 1e-3)
    anchor = float(np.median(times))
    period = max(first.period, second.period)
    shifts = np.arange(-_REACH, _REACH + 1e-9, _STEP * period)
    speeds = np.repeat(_SPEEDS, len(shifts))
    starts = np.tile(shifts, len(_SPEEDS)) + anchor + offset
    # [L, rows] time in the second video of each frame of the first.
    mapped = starts[:, None] + (first.times[rows] - anchor)[None] * speeds[:, None]
    values, counted = _along(similarity, mapped, first, second, rows, columns)
    if inside:
        counted &= np.abs(mapped - first.times[rows][None]) > SHORTEST
    gains = np.where(counted, (values - _SAME).clip(-_LOSS, _GAIN), 0.0)
    gains[_gaps(counted & (values >= _SAME - _GAIN / 2), period) > _LONGEST_GAP] = -_BREAK
    for stretch in known:
        along = (first.times[rows] >= stretch.first_start) & (first.times[rows] < stretch.first_end)
        line = stretch.second_start + (first.times[rows] - stretch.first_start) * stretch.speed
        gains[along[None] & (np.abs(mapped - line[None]) <= _BIN)] = -_LOSS
    # Beyond the ends of the second video nothing goes on.
    gains[(mapped < second.times[columns[0]] - period) | (mapped > second.times[columns[-1]] + period)] = -_LOSS
    best, begin, end = _best_run(gains)
    return _stretch_of(
        first, second, rows[begin:end], mapped[best, begin:end], values[best, begin:end], counted[best, begin:end],
        similarity[begin:end], columns,
    )  # fmt: skip


def _along(
    similarity: NDArray[np.float32],
    mapped: NDArray[np.float64],
    first: Track,
    second: Track,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Similarity [L, rows] along each line with the nearer of the two frames around it, and whether it counts."""
    times = second.times[columns]
    right = np.searchsorted(times, mapped).clip(1, len(times) - 1)
    row = np.arange(len(rows))[None]
    values: NDArray[np.float32] = np.maximum(similarity[row, right - 1], similarity[row, right])
    shown = second.informative[columns]
    counted: NDArray[np.bool_] = first.informative[rows][None] & (shown[right - 1] | shown[right])
    return values, counted


def _gaps(good: NDArray[np.bool_], period: float) -> NDArray[np.float64]:
    """Seconds [L, N] of the run of frames that are not good around each of them; 0 for good ones."""
    count = good.shape[1]
    places = np.arange(count)[None]
    before = np.maximum.accumulate(np.where(good, places, -1), axis=1)
    after = np.minimum.accumulate(np.where(good, places, count)[:, ::-1], axis=1)[:, ::-1]
    gaps: NDArray[np.float64] = np.where(good, 0.0, (after - before - 1) * period)
    return gaps


def _best_run(gains: NDArray[np.floating]) -> tuple[int, int, int]:
    """TimeLine, first and last place (exclusive) of the run with the largest sum of [L, N]."""
    sums = np.concatenate([np.zeros((len(gains), 1)), np.cumsum(gains, axis=1)], axis=1)
    lowest = np.minimum.accumulate(sums, axis=1)
    line, end = np.unravel_index(np.argmax(sums - lowest), sums.shape)
    # The latest of equal starts: no run begins with frames that do not count.
    before = sums[line, : end + 1]
    begin = int(end - np.argmin(before[::-1]))
    # And the earliest of equal ends.
    return int(line), begin, begin + int(np.argmax(sums[line, begin : end + 1] >= sums[line, end] - 1e-9))


def _stretch_of(
    first: Track,
    second: Track,
    rows: NDArray[np.int64],
    mapped: NDArray[np.float64],
    values: NDArray[np.float32],
    counted: NDArray[np.bool_],
    similarity: NDArray[np.float32],
    columns: NDArray[np.int64],
) -> RoughStretch | None:
    """The stretch of a run of frames; None if it is too short, or would look alike at any offset."""
    if int(counted.sum()) < 2:
        return None
    start, end = float(first.times[rows[0]]), min(float(first.times[rows[-1]]) + first.period, first.end)
    speed = float((mapped[-1] - mapped[0]) / (first.times[rows[-1]] - first.times[rows[0]]))
    # Where one of the two videos begins or ends before the other, so does what they share, in both.
    early = max(0.0, -float(mapped[0]))
    start, other_start = start + early / speed, float(mapped[0]) + early
    late = max(0.0, other_start + (end - start) * speed - second.end)
    end, other_end = end - late / speed, other_start + (end - start) * speed - late
    if min(end - start, other_end - other_start) < SHORTEST:
        return None
    score = float(values[counted].mean().clip(0, 1))
    # Frames that the second video shows elsewhere in the same stretch.
    apart = np.abs(second.times[columns][None] - mapped[:, None]) >= _APART
    within = (second.times[columns] >= other_start) & (second.times[columns] <= other_end)
    others = similarity[apart & within[None] & counted[:, None]]
    contrast = score - float(others.clip(0, 1).mean()) if len(others) else 0.0
    return RoughStretch(start, end, other_start, other_end, score, contrast)


FindEnds = Callable[[Clips, VideoRecord, VideoRecord, RoughStretch], Any]


@dataclass(frozen=True, slots=True)
class StretchJob:
    """A :class:`~vidkin.index.storage.tasks.MappedJob` that compares videos and finds the ends of what they share.

    Attributes:
        table: Windows of all videos.
        counts: Number of windows before those of each.
        records: The videos in the order of the table.
    """

    table: WindowTable | None = None
    counts: Sequence[int] = ()
    records: Sequence[VideoRecord] = ()

    def start(self, place: Place, store: VectorStore) -> _StretchWorker:
        return _StretchWorker(self, Tracks(store))


@dataclass(frozen=True, slots=True)
class _StretchWorker:
    """Does the tasks of such a job in one process. What was removed meanwhile has no answer."""

    job: StretchJob
    tracks: Tracks
    clips: Clips = field(default_factory=Clips)

    def windows(self, record: VideoRecord) -> Track | None:
        """The windows of a video, without its frames."""
        track = self._track(record)
        return None if track is None else replace(track, vectors=track.vectors[:0])

    def inside(self, record: VideoRecord) -> list[RoughStretch]:
        """What recurs in a video."""
        track = self._track(record)
        return [] if track is None else find_stretches_inside(track)

    def shared(self, number: int) -> list[tuple[int, list[RoughStretch]]] | None:
        """What a video shares with those before it in the table, by their numbers."""
        track = self._track(self.job.records[number])
        if track is None or self.job.table is None:
            return None
        votes = self.job.table.first(self.job.counts[number]).votes(track)
        return find_shared(track, votes, lambda other: self._track(self.job.records[other]))

    def fit(self, find_ends: FindEnds, first: VideoRecord, second: VideoRecord, stretch: RoughStretch) -> Any:
        """What finds the exact ends of a stretch says of one."""
        check_files_here([first.path, second.path])
        return find_ends(self.clips, first, second, stretch)

    def _track(self, record: VideoRecord) -> Track | None:
        try:
            track = self.tracks.of(record)
        except NotIndexedError:
            return None
        return track if len(track.times) else None
