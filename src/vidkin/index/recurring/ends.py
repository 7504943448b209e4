"""Find the exact frame at which two files stop matching, by decoding them around the ends of a shared segment.

Shape legend: N, M frames of clips, H and W their sides in pixels, G cells of a small image, S shifts.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import MediaError
from vidkin.index.recurring.stretches import SPEEDS, RoughStretch
from vidkin.index.storage.records import VideoRecord
from vidkin.media.decode import read_gray
from vidkin.media.frames import is_before

_logger = logging.getLogger(__name__)

StretchEnd = Literal["start", "end"]
Floats = NDArray[np.float32]

REACH = 3.0
"""Seconds of a clip on both sides of its middle."""

# Seconds between middles of clips, because the ends of one occurrence differ a little from pair to pair.
_GRID = 2.0
_HELD_CLIPS = 256
# Shorter side of decoded frames in pixels, and number of cells compared.
_SHORT_SIDE, _ROWS, _COLUMNS = 48, 12, 20
_BAR = 28  # maximum gray level of a black bar
_FLAT = 2.0  # gray levels; cells that differ by less have no content
_BOUND = 0.5  # minimum correlation of frames that may be the same; below it, a frame begins a shot
_LOOKALIKE = 0.04  # minimum drop in correlation of footage that only looks similar
_SHIFT, _STEP = 1.6, 0.02  # maximum error of stored times in seconds, and step of the shifts tried
_NEAR_CUT = 0.5  # maximum seconds by which an end is moved to a cut
# Minimum correlation of the deviations of two videos from their mean frames, if both show the same; and if that is
# certain.
_SAME_COURSE, _SURE = 0.75, 0.95
_MOST_OF_STILL = 0.75  # minimum share of agreeing frames in a card or a shot from a fixed camera
_MIN_CHANGE = 1.0  # gray levels
_SHORTEST_LINK = 1.9  # seconds
# Maximum share of the cells that a title covers, and minimum change of a covered cell in gray levels.
_UNEQUAL, _COVERS = 0.2, 8.0


class Cells(NamedTuple):
    """Small images.

    Attributes:
        means: [N, G] gray levels.
        units: [N, G] see :func:`_normalize`.
    """

    means: Floats
    units: Floats


@dataclass(frozen=True, eq=False)
class Clip:
    """Small gray images of consecutive frames.

    Attributes:
        times: [N] seconds. images: [N, H, W] uint8 luma.
        end: Time at which the last frame leaves the screen, seconds.
        is_first, is_last: Whether the first image is the file's first frame, and the last its last frame.
    """

    times: NDArray[np.float64]
    images: NDArray[np.uint8]
    end: float
    is_first: bool
    is_last: bool
    _cells: dict[float | None, Cells] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def step(self) -> float:
        """Seconds between frames."""
        return _step(self.times)

    @cached_property
    def aspect(self) -> float:
        """Width by height of most frames, without black bars."""
        return float(np.median([aspect for first, end, aspect, _ in self._shots for _ in range(first, end)]))

    @cached_property
    def _shots(self) -> list[tuple[int, int, float, NDArray[np.uint8]]]:
        """First and last frame (exclusive), aspect and images of each shot without bars, which may vary within a file.
        Dark shots are not cropped."""
        small = self.images[:, ::4, ::4].reshape(len(self.images), -1).astype(np.float32)
        cuts = np.flatnonzero(np.vecdot(_normalize(small[1:]), _normalize(small[:-1])) < _BOUND) + 1
        shots = []
        for first, end in zip([0, *cuts], [*cuts, len(small)], strict=True):
            images = self.images[first:end]
            rows, columns = (np.flatnonzero(images.max(axis=(0, axis)) > _BAR) for axis in (2, 1))
            height, width = images.shape[1:]
            if len(rows) and rows[-1] - rows[0] >= 0.4 * height and columns[-1] - columns[0] >= 0.4 * width:
                images = images[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            shots.append((int(first), int(end), images.shape[2] / images.shape[1], images))
        return shots

    def cells(self, aspect: float | None = None) -> Cells:
        """Divide each image into cells, without the borders that an image of another aspect lacks."""
        if aspect not in self._cells:
            parts = []
            for _, _, shown, images in self._shots:
                ratio = 1.0 if aspect is None else aspect / shown
                rows = _cell_weights(images.shape[1], min(1.0, 1 / ratio), _ROWS)
                columns = _cell_weights(images.shape[2], min(1.0, ratio), _COLUMNS)
                parts.append((rows @ images.astype(np.float32) @ columns.T).reshape(len(images), -1))
            means = np.concatenate(parts)
            self._cells[aspect] = Cells(means, _normalize(means))
        return self._cells[aspect]


def _normalize(cells: Floats) -> Floats:
    """Images [N, G] with zero mean and unit length; zeros for images without content."""
    centered = cells - cells.mean(axis=1, keepdims=True)
    size = np.linalg.norm(centered, axis=1, keepdims=True)
    return np.asarray(
        np.where(size > _FLAT * np.sqrt(cells.shape[1]), centered / np.maximum(size, 1e-6), 0), np.float32
    )


def _step(times: NDArray[np.float64]) -> float:
    return float(np.median(np.diff(times))) if len(times) > 1 else 0.04


def _cell_weights(length: int, share: float, cells: int) -> Floats:
    """Weights [cells, length] of the pixels of each cell; the cells cover the middle of the length, to this share of
    it."""
    borders = length * (0.5 + share * (np.arange(cells + 1) / cells - 0.5))
    pixels = np.arange(length)[None]
    covered = (np.minimum(borders[1:, None], pixels + 1) - np.maximum(borders[:-1, None], pixels)).clip(0)
    return np.asarray(covered / covered.sum(axis=1, keepdims=True), np.float32)


@dataclass(slots=True)
class Clips:
    """Reads frames around given times, and caches the latest clips, because ends in one file are often close
    together."""

    _held: OrderedDict[tuple[str, float], Clip] = field(default_factory=OrderedDict, init=False)

    def around(self, record: VideoRecord, time: float) -> Clip:
        """All frames from at least two seconds before a time to at least two seconds after it.

        Raises:
            MediaError: The file cannot be read there.
        """
        middle = _GRID * round(min(max(0.0, time), record.duration) / _GRID)
        clip = self._held.get((record.path, middle))
        if clip is None:
            clip = self._held[record.path, middle] = _read_clip(record.path, max(0.0, middle - REACH), middle + REACH)
            if len(self._held) > _HELD_CLIPS:
                self._held.popitem(last=False)
        self._held.move_to_end((record.path, middle))
        return clip


def _read_clip(path: str, start: float, end: float) -> Clip:
    times, images = read_gray(path, start=start, end=end, short_side=_SHORT_SIDE, threads=2)
    step = _step(times)
    # The frame on screen at the end is not read; the next frame begins there or a little later.
    leaves = float(times[-1]) + step
    return Clip(times, images, leaves, start <= 0, leaves < end - 1.5 * step)


class TimeLine(NamedTuple):
    """Maps each moment of the first video to the moment of the second that shows the same.

    Attributes:
        first, second: Corresponding moments of both, in seconds.
        speed: Seconds of the second video per second of the first.
    """

    first: float
    second: float
    speed: float

    def at(self, first: float) -> float:
        """Convert a time of the first video to a time of the second."""
        return self.second + (first - self.first) * self.speed

    def swapped(self) -> TimeLine:
        """Swap the two videos."""
        return TimeLine(self.second, self.first, 1 / self.speed)

    def shifted(self, seconds: float) -> TimeLine:
        """Shift the times of the second video."""
        return self._replace(second=self.second + seconds)


class EndFit(NamedTuple):
    """An end of a shared stretch.

    Attributes:
        first, second: Time of the end in both videos, in seconds.
        match: Mean correlation of the frames inside, in [-1, 1].
        goes_on: Whether the videos still match where decoding stopped, in the middle of both files.
    """

    first: float
    second: float
    match: float
    goes_on: bool = False


class FittedStretch(NamedTuple):
    """A shared segment with exact ends, confirmed by its frames.

    Attributes:
        first_start, first_end, second_start, second_end: Seconds.
        score: Similarity of the features, in [0, 1].
        match: Similarity of the frames at the ends, in [0, 1].
        covered: Share of the frame covered in only one of the videos, such as by a title; 0 unless that is so at both
            ends.
        speed: Seconds of the second video per second of the first at which most frames agree; 0 if unknown.
    """

    first_start: float
    first_end: float
    second_start: float
    second_end: float
    score: float
    match: float
    covered: float = 0.0
    speed: float = 0.0

    def swapped(self) -> FittedStretch:
        """Swap the two videos."""
        first, second = (self.first_start, self.first_end), (self.second_start, self.second_end)
        return FittedStretch(*second, *first, self.score, self.match, self.covered, self.speed and 1 / self.speed)


Files = tuple[VideoRecord, VideoRecord]


def try_fit(clips: Clips, first: VideoRecord, second: VideoRecord, stretch: RoughStretch) -> FittedStretch | None:
    """Call :func:`fit_stretch`; if a file cannot be read there, use the ends from stored features."""
    try:
        return fit_stretch(clips, first, second, stretch)
    except MediaError as error:
        _logger.warning("%s; the ends are those of its stored features", error)
    times = stretch.first_start, stretch.first_end, stretch.second_start, stretch.second_end
    return FittedStretch(*times, stretch.score, 0.0) if stretch.is_distinct else None


def fit_stretch(clips: Clips, first: VideoRecord, second: VideoRecord, stretch: RoughStretch) -> FittedStretch | None:
    """Find both ends of a shared segment to the frame; None if the frames show that nothing is shared.

    Raises:
        MediaError: One of the files cannot be read there.
    """
    files = first, second
    line = _align(clips, files, stretch)
    if line is None:
        return None
    starts = _fit(clips, files, stretch.first_start, line, "start")
    ends = _fit(clips, files, stretch.first_end, line, "end")
    if starts is None or ends is None:
        return None
    lengths = ends.first - starts.first, ends.second - starts.second
    if min(lengths) < _SHORTEST_LINK or abs(lengths[0] * line.speed - lengths[1]) > _SHIFT:
        return None
    inside = [_pairs_inside(clips, files, time, (starts, ends)) for time in (starts, ends)]
    inside = [pairs for pairs in inside if len(pairs[0][0])]
    courses = [_correlate(_departures(one), _departures(other)) for pairs in inside for one, other in pairs]
    course = max((each for each in courses if each is not None), default=None)
    is_sure = min(starts.match, ends.match) >= _SURE
    if course is None:
        # Still frames must all agree well, or match for some seconds.
        if not stretch.is_distinct or not (is_sure or min(lengths) >= 4 * _SHORTEST_LINK):
            return None
    elif _is_still(np.concatenate([pairs[0][0] for pairs in inside])):
        if course < _SURE:
            return None
    elif course < (_BOUND if stretch.is_distinct else _SAME_COURSE):
        return None
    covered = min(map(share_covered, inside), default=0.0)
    times = starts.first, ends.first, starts.second, ends.second
    return FittedStretch(*times, stretch.score, max(0.0, starts.match, ends.match), covered, line.speed)


def _align(clips: Clips, files: Files, stretch: RoughStretch) -> TimeLine | None:
    """Find the line along which most frames around both ends agree; None if no frames do."""
    middle = (stretch.first_start + stretch.first_end) / 2, (stretch.second_start + stretch.second_end) / 2
    shifts = np.arange(-_SHIFT, _SHIFT + 1e-9, _STEP)
    ends: tuple[tuple[StretchEnd, float, float], ...] = (
        ("start", stretch.first_start, stretch.second_start),
        ("end", stretch.first_end, stretch.second_end),
    )
    best, found = 0.0, None
    views = [(side, _views(clips.around(files[0], one), clips.around(files[1], other))) for side, one, other in ends]
    for speed in SPEEDS:
        line = TimeLine(*middle, speed)
        totals = np.sum(
            [np.max([_totals(*pair, line, side, shifts) for pair in pairs], axis=0) for side, pairs in views], axis=0
        )
        # Prefer the shortest shift and normal speed, because nearly still frames agree at any speed.
        totals = (totals - 1e-3 * np.abs(shifts)) * (1.0 if speed == 1.0 else 0.9)
        if totals.max() > best:
            best, found = float(totals.max()), line.shifted(float(shifts[np.argmax(totals)]))
    return found


def _fit(clips: Clips, files: Files, time: float, line: TimeLine, side: StretchEnd) -> EndFit | None:
    """Find the end, starting from ``time``: search outwards while both files still match there, otherwise inwards."""
    outwards = -1.0 if side == "start" else 1.0
    fit: EndFit | None = None
    for _ in range(3):
        both = clips.around(files[0], time), clips.around(files[1], line.at(time))
        found = find_end(*both, line, side)
        if fit is not None and (
            found is None or (found.first - fit.first) * outwards < 0 or found.match < fit.match - 4 * _LOOKALIKE
        ):
            return fit  # the clip farther out shows less of the segment
        if found is None:
            time -= outwards * REACH
            continue
        fit = found
        if not fit.goes_on:
            return fit
        time = fit.first + outwards * _GRID
    return fit


class _View(NamedTuple):
    """A clip divided into the cells that are compared with those of another clip."""

    clip: Clip
    cells: Cells


def _views(first: Clip, second: Clip) -> list[tuple[_View, _View]]:
    """Both clips unchanged, and cropped to the aspect of the other clip."""
    pairs = [(_View(first, first.cells()), _View(second, second.cells()))]
    if abs(first.aspect / second.aspect - 1) > 0.04:
        pairs.append((_View(first, first.cells(second.aspect)), pairs[0][1]))
        pairs.append((pairs[0][0], _View(second, second.cells(first.aspect))))
    return pairs


def find_end(first: Clip, second: Clip, line: TimeLine, side: StretchEnd) -> EndFit | None:
    """Find where two clips stop (or begin) to show the same.

    The end is where frames stop agreeing along the line: the position with the largest sum of (correlation - bound) on
    the inside. An end near a cut is moved to that cut.

    Args:
        first, second: Frames around the end in both videos.
        line: Maps moments of the first to moments of the second.
        side: Which end of the segment to find.

    Returns:
        The end; None if no frames agree.
    """
    if min(len(first.times), len(second.times)) < 2:
        return None
    shifts = np.arange(-6 * _STEP, 6 * _STEP + 1e-9, _STEP / 2)
    best, chosen = 0.0, None
    for pair in _views(first, second):
        totals = _totals(*pair, line, side, shifts) - 1e-3 * np.abs(shifts)
        if totals.max() > best:
            best, chosen = float(totals.max()), (*pair, line.shifted(float(shifts[np.argmax(totals)])))
    if chosen is None:
        return None
    one, other, line = chosen
    forward, backward = _inside(one, other, line, side), _inside(other, one, line.swapped(), side)
    if forward is None or backward is None:
        return None
    borders = [(one.clip, forward[0]), (other.clip, backward[0])]
    if side == "start":
        stops = [clip.is_first for clip, border in borders if border <= 1]
    else:
        stops = [clip.is_last for clip, border in borders if border >= len(clip.times) - 2]
    # A cut shortly before where decoding stopped is not the end.
    times = [_time_of(clip, at if side == "start" else at + 1, to_cut=all(stops)) for clip, at in borders]
    return EndFit(times[0], times[1], forward[1], bool(stops) and not any(stops))


def _totals(
    one: _View, other: _View, line: TimeLine, side: StretchEnd, shifts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Largest sum [S] of evidence from the frames inside an end, for each shift of the second clip in seconds."""
    times, clip = one.clip.times, other.clip
    mapped = line.at(0.0) + shifts[:, None] + times[None] * line.speed
    agreement = one.cells.units @ other.cells.units.T
    values = agreement[np.arange(len(times))[None], _find_nearest(clip.times, mapped)]
    is_outside = (mapped < clip.times[0] - clip.step) | (mapped >= clip.end + 0.5 * clip.step)
    # The more similar frames are, the more each step counts, because nearly still frames are similar at any shift.
    gains = np.where((values == 0) | is_outside, 0.0, np.log10((1.01 - _BOUND) / (1.01 - values)))
    if side == "start":
        gains, is_outside = gains[:, ::-1], is_outside[:, ::-1]
    # Frames that the second clip lacks count like the average, so that a shift is not preferred for a larger overlap.
    present = np.cumsum(~is_outside, axis=1) / np.arange(1, len(times) + 1)
    return np.asarray((np.cumsum(gains, axis=1) / np.maximum(present, 0.1)).max(axis=1))


def _find_nearest(times: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    right = np.searchsorted(times, wanted).clip(1, len(times) - 1)
    return np.asarray(np.where(wanted - times[right - 1] <= times[right] - wanted, right - 1, right))


def _inside(one: _View, other: _View, line: TimeLine, side: StretchEnd) -> tuple[int, float] | None:
    """Position of the outermost frame inside an end, and mean correlation of all frames outside of fades."""
    clip, mapped = other.clip, line.at(0.0) + one.clip.times * line.speed
    # Up to half a frame beyond the border, the other clip still shows its last frame.
    rows = np.flatnonzero((mapped > clip.times[0] - 0.6 * clip.step) & (mapped < clip.end - 0.4 * clip.step))
    rows = rows[::-1] if side == "start" else rows
    if len(rows) == 0:
        return None
    columns = _find_nearest(clip.times, mapped[rows])
    units, targets = one.cells.units[rows], other.cells.units[columns]
    values: Floats = np.vecdot(units, targets)
    is_shown: NDArray[np.bool_] = np.logical_and(np.any(units, axis=1), np.any(targets, axis=1))
    bound, count = _BOUND, 0
    for _ in range(2):
        sums = np.cumsum(np.where(is_shown, values - bound, 0.0))
        count = int(np.argmax(sums)) + 1
        if sums[count - 1] <= 0:
            return None
        # Titles and other versions agree less, so the bound is between the usual agreement here and that of unrelated
        # frames.
        bound = max(0.8 * _BOUND, float(np.median(values[:count][is_shown[:count]])) / 2 + 0.05)
    cells, others = one.cells.means[rows], other.cells.means[columns]
    count = _count_without_lookalike(values[:count], cells, others)
    dim = count_with_dim(count, cells, others, one.clip.step)
    return int(rows[dim - 1]), float(values[:count].mean())


def _count_without_lookalike(values: Floats, cells: Floats, others: Floats) -> int:
    """Number of leading frames that agree clearly better than the rest, if the rest changes differently in both videos.

    Two skies look similar, but less so than two copies of one sky, and their clouds drift apart.
    """
    count, sizes = len(values), np.arange(1, len(values))
    sums = np.cumsum(values, dtype=np.float64)
    inner, outer = sums[:-1] / sizes, (sums[-1] - sums[:-1]) / (count - sizes)
    if count < 6:
        return count
    at = int(np.argmax((inner - outer) * np.sqrt(sizes * (count - sizes))))
    if 1 - outer[at] < 3 * (1 - inner[at]) + _LOOKALIKE:
        return count
    course = _correlate(_departures(cells[at + 1 : count]), _departures(others[at + 1 : count]))
    return count if course is not None and course >= _BOUND else at + 1


def _time_of(clip: Clip, border: int, *, to_cut: bool) -> float:
    """Time at which a frame begins, or the time of the nearest cut if one is close."""
    units = clip.cells().units
    alike: Floats = np.vecdot(units[1:], units[:-1])
    cuts = np.flatnonzero(alike < _BOUND) + 1
    if to_cut and len(cuts):
        cut = int(cuts[np.argmin(np.abs(cuts - border))])
        # Frames on the same side of a cut are similar; fast motion and fades are not cuts.
        around = np.concatenate([alike[max(0, cut - 4) : cut - 1], alike[cut : cut + 3]])
        if abs(cut - border) * clip.step <= _NEAR_CUT and (around > _BOUND).all():
            border = cut
    return float(clip.times[border]) if border < len(clip.times) else clip.end


def _pairs_inside(clips: Clips, files: Files, end: EndFit, ends: tuple[EndFit, EndFit]) -> list[tuple[Floats, Floats]]:
    """Cells [N, G] of the same moments of both files near an end, for each aspect at which they can be compared."""
    starts, stops = ends
    line = TimeLine(starts.first, starts.second, (stops.second - starts.second) / (stops.first - starts.first))
    clip, other = clips.around(files[0], end.first), clips.around(files[1], end.second)
    mapped = line.at(0.0) + clip.times * line.speed
    inside = ~is_before(clip.times, starts.first) & is_before(clip.times, stops.first)
    rows = np.flatnonzero(inside & (mapped >= other.times[0] - other.step) & (mapped < other.end))
    columns = _find_nearest(other.times, mapped[rows])
    return [(one.cells.means[rows], two.cells.means[columns]) for one, two in _views(clip, other)]


def _departures(cells: Floats) -> Floats:
    """Deviations of images [N, G] from their brightness and their mean; for a fixed camera, these show what moves past
    it."""
    shown = cells - cells.mean(axis=1, keepdims=True)
    return np.asarray(shown - shown.mean(axis=0))


def _correlate(first: Floats, second: Floats) -> float | None:
    """Correlation of two changes; 0 if one is far smaller, None if both are too small to see."""
    sizes = [float(np.sqrt((change**2).mean())) for change in (first, second)]
    if max(sizes) < _MIN_CHANGE:
        return None
    return float((first * second).mean() / (sizes[0] * sizes[1])) if min(sizes) >= 0.3 * max(sizes) else 0.0


def _is_still(cells: Floats) -> bool:
    """Whether images [N, G] show a card or come from a fixed camera, except for a short part."""
    units = _normalize(cells)
    return bool((units @ units.T >= _SURE).mean(axis=1).max() >= _MOST_OF_STILL)


def _compare_most(cells: Floats, others: Floats) -> tuple[Floats, Floats, Floats]:
    """Lower and higher contrast [2, N] of both, their correlations [N], and the difference [N, G] of each cell after
    scaling ``others`` to fit; all computed from the cells that differ least."""
    apart = others - cells
    apart = np.abs(apart - np.median(apart, axis=1, keepdims=True))
    kept = apart <= np.quantile(apart, 1 - _UNEQUAL, axis=1, keepdims=True)
    sizes = kept.sum(axis=1)
    one, two = (each - (np.where(kept, each, 0).sum(axis=1) / sizes)[:, None] for each in (cells, others))
    squares, other_squares, products = (
        np.where(kept, product, 0).sum(axis=1) / sizes for product in (one * one, two * two, one * two)
    )
    alike = products / np.maximum(np.sqrt(squares * other_squares), 1e-6)
    left = two - (products / np.maximum(squares, 1.0))[:, None] * one
    return np.sqrt(np.sort([squares, other_squares], axis=0)), alike, left


def share_covered(pairs: Sequence[tuple[Floats, Floats]]) -> float:
    """Share of the frame, in [0, 1], that is covered in only one of two clips, such as by a title.

    Args:
        pairs: Cells [N, G] of the same moments of both clips, for each aspect at which they can be compared. Returns:
        The share; 0 if it is less than a twenty-fifth, or if the rest does not agree.
    """
    found = []
    for cells, others in pairs:
        _, alike, left = _compare_most(cells, others)
        found.append((float(np.median(alike)), float((np.abs(np.median(left, axis=0)) > _COVERS).mean())))
    alike_most, share = max(found)
    return share if alike_most >= 0.9 and share >= 1 / 25 else 0.0


def count_with_dim(count: int, cells: Floats, others: Floats, step: float) -> int:
    """Extend a number of leading frames by matching frames beyond them that are too dim to be recognized alone.

    Args:
        count: Number of agreeing frames, from the inside outwards.
        cells, others: [N, G] images of both files.
        step: Seconds between frames.

    Returns:
        ``count``, or more if the next frames are a fade, or black or white with a title in one of the files; the fifth
        of the cells that differs most is ignored.
    """
    # Dimmer than the frames inside: black, a fade, or a title over either.
    spreads = np.stack([cells.std(axis=1), others.std(axis=1)])
    is_dim: NDArray[np.bool_] = spreads[:, count:].min(axis=0) < max(12.0, 0.3 * float(spreads[:, :count].max()))
    if not is_dim[:1].any():
        return count
    levels = np.abs(np.median(others[count:] - cells[count:], axis=1))
    (lower, higher), alike, _ = _compare_most(cells[count:], others[count:])
    is_plain = (higher < 1.6) & (levels < 12.0)
    last, unlike = 0, 0
    for place in range(len(levels)):
        # After plain or different frames, only frames that agree well belong to the same shot.
        least = 0.9 if unlike or (place - last) * step > 0.2 else _SAME_COURSE
        if is_dim[place] and lower[place] >= max(0.4, 0.6 * higher[place]) and alike[place] >= least:
            last, unlike = place + 1, 0
            continue
        unlike += not is_plain[place]
        # With different frame rates, frames differ once at a sudden change in the dark.
        if unlike * step > 0.09 or (place + 1 - last) * step > 1.0:
            break
    return count + last
