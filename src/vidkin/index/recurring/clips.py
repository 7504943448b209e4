"""Small gray pictures of all frames of a video around chosen times, read in few runs and held for a while, and how two
files are compared by them.

Shape legend: N frames of a clip, H and W its sides in pixels, G cells of a small picture.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import MediaError
from vidkin.index.storage.records import VideoRecord
from vidkin.media.decode import read_gray

REACH = 2.25
"""Seconds read on both sides of a time."""

_SHORT_SIDE = 48
_ROWS, _COLUMNS = 12, 20  # cells of the small pictures that are compared
_BAR = 28.0  # gray level up to which a border is a black bar
_HELD_BYTES, _LONGEST_BYTES, _HELD_CLIPS = 256 << 20, 32 << 20, 400
# Seconds between two stretches that are read in one go: about what is decoded from the last key frame on.
_NEAR_RUN = 4.0
# Seconds read beyond both ends: what is looked at next is often a little further out, and most of what it takes to read
# a few seconds is to get there.
_MARGIN = 1.0
_READERS = 2


class Cells(NamedTuple):
    """Small pictures.

    Attributes:
        means: [N, G] gray levels.
        units: [N, G] the same without their mean and of unit length; see :func:`unit`.
    """

    means: NDArray[np.float32]
    units: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """Small gray pictures of consecutive frames, without black bars.

    Attributes:
        times: [N] seconds.
        images: [N, H, W] uint8 luma.
        end: Time at which the last frame leaves the screen, seconds.
        is_first, is_last: Whether the file has no frame before the first, and none after the last.
        step: Seconds from frame to frame.
    """

    times: NDArray[np.float64]
    images: NDArray[np.uint8]
    end: float
    is_first: bool
    is_last: bool
    step: float = field(init=False)
    _cells: dict[float | None, Cells] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        step = float(np.median(np.diff(self.times))) if len(self.times) > 1 else 0.04
        object.__setattr__(self, "step", step)

    @property
    def aspect(self) -> float:
        """Width by height."""
        return float(self.images.shape[2] / self.images.shape[1])

    def cells(self, aspect: float | None = None) -> Cells:
        """Each picture in cells, without the borders that a picture of another aspect lacks."""
        if aspect in self._cells:
            return self._cells[aspect]
        height, width = self.images.shape[1:]
        across = down = 1.0
        if aspect is not None:
            across, down = min(1.0, aspect / self.aspect), min(1.0, self.aspect / aspect)
        rows, columns = _cell_weights(height, down, _ROWS), _cell_weights(width, across, _COLUMNS)
        small: NDArray[np.float32] = rows @ self.images.astype(np.float32) @ columns.T
        means = small.reshape(len(small), -1)
        return self._cells.setdefault(aspect, Cells(means, unit(means)))


def _cell_weights(length: int, share: float, cells: int) -> NDArray[np.float32]:
    """[cells, length] weights of the pixels of each cell; cells cover this share of the length, around its middle."""
    borders = length * (0.5 + share * (np.arange(cells + 1) / cells - 0.5))
    pixels = np.arange(length)[None]
    low, high = borders[:-1, None], borders[1:, None]
    covered = (np.minimum(high, pixels + 1) - np.maximum(low, pixels)).clip(0)
    weights: NDArray[np.float32] = (covered / covered.sum(axis=1, keepdims=True)).astype(np.float32)
    return weights


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Small gray pictures of all frames of a stretch of a file.

    Attributes:
        start, end: Seconds that were read; the file may end before.
        times: [N] seconds.
        images: [N, H, W] uint8 luma.
    """

    start: float
    end: float
    times: NDArray[np.float64]
    images: NDArray[np.uint8]

    def cut(self, start: float, end: float) -> Clip | None:
        """The clip of some seconds; None if only a part of them was read."""
        if not (self.start <= start and end <= self.end):
            return None
        first, last = np.searchsorted(self.times, (start, end)).tolist()
        if last == first:  # the frame on screen, where none begins
            first, last = max(0, first - 1), max(1, first)
        times = self.times[first:last]
        step = float(np.median(np.diff(times))) if len(times) > 1 else 0.04
        # The frame on screen at the end is not read: the next one begins there or a little later.
        leaves = float(times[-1]) + step
        return Clip(times, _without_bars(self.images[first:last]), leaves, start <= 0, leaves < end - 1.5 * step)

    def joined(self, other: _Run) -> _Run:
        """This and one that it touches or overlaps."""
        first, second = sorted((self, other), key=lambda run: run.start)
        # Where no frame begins, the one on screen was read again.
        new = np.searchsorted(second.times, first.times[-1], side="right")
        times = np.concatenate([first.times, second.times[new:]])
        images = np.concatenate([first.images, second.images[new:]])
        return _Run(first.start, max(first.end, second.end), times, images)


@dataclass(slots=True)
class Clips:
    """Reads frames around ends; what was read last is held: ends of one file are often near each other.

    A context manager: on leaving it nothing is read any more.
    """

    _runs: OrderedDict[tuple[str, float], _Run] = field(default_factory=OrderedDict, init=False)
    _bytes: int = field(default=0, init=False)
    _held: OrderedDict[tuple[str, float], Clip] = field(default_factory=OrderedDict, init=False)
    _readers: ThreadPoolExecutor | None = field(default=None, init=False)
    # What is being read: path, start and end in seconds.
    _ahead: dict[tuple[str, float, float], Future[_Run]] = field(default_factory=dict, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._readers is not None:
            self._readers.shutdown(cancel_futures=True)
            self._readers = None
        self._ahead.clear()

    def around(self, record: VideoRecord, time: float) -> Clip:
        """Every frame from about :data:`REACH` seconds before a time to as long after it.

        Raises:
            MediaError: The file cannot be read there.
        """
        middle = _middle(time)
        clip = self._held.get((record.path, middle))
        if clip is None:
            clip = self._find(record.path, middle)
            if clip is None:
                clip = self._read(record.path, middle)
            self._held[record.path, middle] = clip
            while len(self._held) > _HELD_CLIPS:
                self._held.popitem(last=False)
        self._held.move_to_end((record.path, middle))
        return clip

    def read_ahead(self, wanted: Iterable[tuple[VideoRecord, float]]) -> None:
        """Begin to read what :meth:`around` will be asked for, each file in few runs and several files at a time.

        What cannot be read is left to :meth:`around`, which says why.
        """
        for key in [key for key, reading in self._ahead.items() if reading.done()]:
            self._take(key)
        spans: dict[str, list[tuple[float, float]]] = {}
        for path, middle in sorted({(record.path, _middle(time)) for record, time in wanted}):
            if (path, middle) in self._held or self._missing(path, *_span(middle)) is None:
                continue
            missing = self._missing(path, *_span(middle, _MARGIN))
            assert missing is not None  # of a longer span
            of_file = spans.setdefault(path, [])
            if of_file and missing[0] - of_file[-1][1] <= _NEAR_RUN:
                of_file[-1] = of_file[-1][0], max(of_file[-1][1], missing[1])
            else:
                of_file.append(missing)
        if spans and self._readers is None:
            # Decoding leaves the interpreter to other threads.
            self._readers = ThreadPoolExecutor(min(_READERS, os.cpu_count() or 1), "vidkin ends")
        for path, of_file in spans.items():
            for span in of_file:
                assert self._readers is not None
                self._ahead[path, *span] = self._readers.submit(_read_run, path, *span)

    def _find(self, path: str, middle: float) -> Clip | None:
        start, end = _span(middle)
        for reading in [key for key in self._ahead if key[0] == path and key[1] < end and start < key[2]]:
            self._take(reading)
        for key, run in self._runs.items():
            if key[0] == path and (clip := run.cut(start, end)) is not None:
                self._runs.move_to_end(key)
                return clip
        return None

    def _missing(self, path: str, start: float, end: float) -> tuple[float, float] | None:
        """What of these seconds is neither held nor being read, but for what lies between two parts that are missing;
        None if nothing is."""
        known = [(run.start, run.end) for key, run in self._runs.items() if key[0] == path]
        for begun, stopped in sorted(known + [key[1:] for key in self._ahead if key[0] == path]):
            if begun <= start < stopped:
                start = stopped
            if start >= end:
                return None
            if begun < end <= stopped:
                end = begun
        return start, end

    def _read(self, path: str, middle: float) -> Clip:
        """Read what is missing of a clip; all of it if that part has nothing, or is held apart from the rest."""
        span = _span(middle, _MARGIN)
        missing = self._missing(path, *span)
        if missing is not None and missing != span:
            with suppress(MediaError):
                self._hold(path, _read_run(path, *missing, threads=_READERS))
                if (clip := self._find(path, middle)) is not None:
                    return clip
        run = _read_run(path, *span, threads=_READERS)
        self._hold(path, run)
        clip = run.cut(*_span(middle))
        assert clip is not None  # the span has a margin on both sides
        return clip

    def _take(self, key: tuple[str, float, float]) -> None:
        """Wait for what is being read, and hold it."""
        with suppress(MediaError):
            self._hold(key[0], self._ahead.pop(key).result())

    def _hold(self, path: str, run: _Run) -> None:
        for key in [key for key in self._runs if key[0] == path]:
            other = self._runs[key]
            if other.start <= run.start and run.end <= other.end:
                return
            if other.start <= run.end and run.start <= other.end:
                joined = other.joined(run)
                if joined.images.nbytes > _LONGEST_BYTES and not (run.start <= other.start and other.end <= run.end):
                    continue
                self._bytes -= self._runs.pop(key).images.nbytes
                run = joined
        self._runs[path, run.start] = run
        self._bytes += run.images.nbytes
        while self._bytes > _HELD_BYTES and len(self._runs) > 1:
            self._bytes -= self._runs.popitem(last=False)[1].images.nbytes


def _middle(time: float) -> float:
    """The middle of the clip around a time: ends of one occurrence differ by a little from pair to pair."""
    return float(round(time))


def _span(middle: float, margin: float = 0.0) -> tuple[float, float]:
    return max(0.0, middle - REACH - margin), middle + REACH + margin


def _read_run(path: str, start: float, end: float, threads: int = 1) -> _Run:
    return _Run(start, end, *read_gray(path, start=start, end=end, short_side=_SHORT_SIDE, threads=threads))


def _without_bars(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The pictures without borders that are black in all of them; a black clip as it is."""
    brightest = images.max(axis=0)
    rows, columns = (np.flatnonzero(brightest.max(axis=axis) > _BAR) for axis in (1, 0))
    height, width = brightest.shape
    if len(rows) == 0 or rows[-1] - rows[0] < 0.4 * height or columns[-1] - columns[0] < 0.4 * width:
        return images
    return images[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


MomentPairs = list[tuple[NDArray[np.float32], NDArray[np.float32]]]
"""Cells [N, G] of the same moments of two clips, for each aspect in which they can be compared."""

_FLAT = 2.0  # gray levels: cells of a picture that differ by less show nothing
# Correlation of the pictures of a stretch from which it is still; of those of two files from which they are the same.
STILL, SURE_MATCH = 0.95, 0.95

# Share of the cells that is left out: those that differ most.
_UNEQUAL = 0.2
# Share of the cells that show something else in most pictures, gray levels by which they do, correlation of the others.
_LEAST_COVERED, _COVERS, _BESIDE_IT = 0.04, 8.0, 0.9


def _compare_most(
    cells: NDArray[np.float32], others: NDArray[np.float32]
) -> tuple[tuple[NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32], NDArray[np.float32]]:
    """The contrasts [N] of both, their correlations [N], and what each cell of the others differs by [N, G] if theirs
    are scaled to agree; all from the cells that differ least."""
    apart = others - cells
    apart = np.abs(apart - np.median(apart, axis=1, keepdims=True))
    kept = apart <= np.quantile(apart, 1 - _UNEQUAL, axis=1, keepdims=True)
    sizes = kept.sum(axis=1)
    one, two = (pictures - (np.where(kept, pictures, 0).sum(axis=1) / sizes)[:, None] for pictures in (cells, others))
    squares, other_squares, products = (
        np.where(kept, product, 0).sum(axis=1) / sizes for product in (one * one, two * two, one * two)
    )
    alike = products / np.maximum(np.sqrt(squares * other_squares), 1e-6)
    left = two - (products / np.maximum(squares, 1.0))[:, None] * one
    return (np.sqrt(squares), np.sqrt(other_squares)), alike.astype(np.float32), left.astype(np.float32)


def unit(cells: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cells without their mean and of unit length; zeros for pictures that show nothing."""
    centered = cells - cells.mean(axis=1, keepdims=True)
    size = np.linalg.norm(centered, axis=1, keepdims=True)
    shown = size > _FLAT * np.sqrt(cells.shape[1])
    units: NDArray[np.float32] = np.where(shown, centered / np.maximum(size, 1e-6), 0.0)
    return units


def agree_beside(still: NDArray[np.float32], inside: Sequence[MomentPairs]) -> bool:
    """Whether both files show the same in what is not the still picture; also if that is nothing.

    Behind a card that all files have, two shots may resemble each other by chance.
    """
    for pairs in inside:
        beside = unit(pairs[0][0]) @ still < STILL
        if beside.any():
            best = max(float((unit(one) * unit(two)).sum(axis=1)[beside].mean()) for one, two in pairs)
            if best < SURE_MATCH:
                return False
    return True


def share_covered(pairs: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> float:
    """Share of the pictures, in [0, 1], over which only one of two clips shows something, such as a title.

    Args:
        pairs: Cells [N, G] of the same moments of both clips, for each aspect in which they can be compared.

    Returns:
        The share; 0 where it is less than a twenty-fifth, or the rest does not agree.
    """
    found = []
    for cells, others in pairs:
        _, alike, left = _compare_most(cells, others)
        found.append((float(np.median(alike)), float((np.abs(np.median(left, axis=0)) > _COVERS).mean())))
    alike_most, share = max(found)
    return share if alike_most >= _BESIDE_IT and share >= _LEAST_COVERED else 0.0


# Contrasts of the others, in gray levels: from which they may be the same, below which they may be plain, below which a
# frame is dim; and below which it is, as a share of those inside. Levels by which plain pictures may differ.
_SHOWN, _PLAIN, _DARK, _DIM, _PLAIN_APART = 0.4, 1.6, 12.0, 0.7, 12.0
# Correlation of copies, and of copies behind plain pictures: other pictures may be behind them, and somewhat alike.
_SAME, _SURELY_SAME = 0.75, 0.9
# Seconds of plain pictures that two shots of one part may have between them, and from which they separate two shots; of
# pictures that differ: at other rates the frames of a sudden change in the dark differ once.
_GAP, _SEPARATES, _UNLIKE = 1.0, 0.2, 0.09


def count_with_dim(count: int, cells: NDArray[np.float32], others: NDArray[np.float32], step: float) -> int:
    """Number of the first frames with those beyond that are the same, but too dim to be told from others as they are.

    Args:
        count: Number of frames that agree, from the inside outwards.
        cells, others: [N, G] pictures of both files.
        step: Seconds from frame to frame.

    Returns:
        ``count``, or more where the next frames are a fade, or black or white with a title over it in one of both
        files: the fifth of the cells that differs most is left out.
    """
    if count == len(cells):
        return count
    inside = max(cells[:count].std(axis=1).max(), others[:count].std(axis=1).max())
    if min(cells[count].std(), others[count].std()) >= max(_DARK, _DIM * float(inside)):
        return count
    beyond, others_beyond = cells[count:], others[count:]
    levels = np.median(others_beyond - beyond, axis=1)
    contrasts, alike, _ = _compare_most(beyond, others_beyond)
    is_plain = (np.maximum(*contrasts) < _PLAIN) & (np.abs(levels) < _PLAIN_APART)
    is_same = (np.minimum(*contrasts) >= _SHOWN) & (alike >= _SAME)
    last, unlike = 0, 0
    for place in range(len(beyond)):
        is_another = unlike > 0 or (place - last) * step > _SEPARATES
        if is_same[place] and (not is_another or alike[place] >= _SURELY_SAME):
            last, unlike = place + 1, 0
            continue
        unlike += not is_plain[place]
        # At other rates the frames of a sudden change in the dark differ once.
        if unlike * step > _UNLIKE or (place + 1 - last) * step > _GAP:
            break
    return count + last
