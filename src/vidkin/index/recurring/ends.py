"""Find the exact frames at which two files start and stop matching, by decoding them around the ends of a segment.

Shapes: N, M frames of clips; H, W height and width in pixels; G cells of a downscaled image; S shifts.
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
"""Seconds of a clip on either side of its middle."""

# Clips are centered on a grid with this spacing in seconds, so that they can be reused: the ends of an occurrence
# differ slightly from pair to pair.
_GRID = 2.0
_MAX_CACHED = 256  # clips
# Shorter side of decoded frames in pixels, and number of rows and columns of cells.
_SHORT_SIDE, _ROWS, _COLUMNS = 48, 12, 20
_BAR = 28  # maximum gray level of a black bar
_FLAT = 2.0  # minimum standard deviation of the cells in gray levels; images with less have no content
_BOUND = 0.5  # minimum correlation of frames that may be the same; a lower correlation to the previous frame is a cut
_LOOKALIKE = 0.04  # minimum drop in correlation where footage only looks similar
_SHIFT, _STEP = 1.6, 0.02  # maximum error of stored times, and step between shifts, in seconds
_NEAR_CUT = 0.5  # maximum distance in seconds by which an end is moved to a cut
# Minimum correlation of the changes in two videos to count as the same footage, and to be certain of it.
_SAME_CHANGES, _SURE = 0.75, 0.95
_MIN_STILL_RATIO = 0.75  # minimum fraction of similar frames in a title card or a shot from a fixed camera
_MIN_CHANGE = 1.0  # minimum RMS change in gray levels
_MIN_LENGTH = 1.9  # minimum seconds of a segment after its ends were found
# Maximum fraction of the cells covered by a title, and minimum change of a covered cell in gray levels.
_MAX_COVERED, _MIN_COVERING = 0.2, 8.0


class Cells(NamedTuple):
    """Images downscaled to cells.

    Attributes:
        means: [N, G] gray levels.
        units: [N, G] normalized gray levels, see :func:`_normalize`.
    """

    means: Floats
    units: Floats


@dataclass(frozen=True, eq=False)
class Clip:
    """Small grayscale images of consecutive frames.

    Attributes:
        times: [N] seconds.
        images: [N, H, W] uint8 luma.
        end: Time in seconds at which the last frame leaves the screen.
        is_first: Whether the clip starts with the first frame of the file.
        is_last: Whether the clip ends with the last frame of the file.
    """

    times: NDArray[np.float64]
    images: NDArray[np.uint8]
    end: float
    is_first: bool
    is_last: bool
    _cells: dict[float | None, Cells] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def step(self) -> float:
        """Median seconds between frames."""
        return _step(self.times)

    @cached_property
    def aspect(self) -> float:
        """Median aspect ratio (width / height) of the frames without black bars."""
        return float(np.median([aspect for first, end, aspect, _ in self._shots for _ in range(first, end)]))

    @cached_property
    def _shots(self) -> list[tuple[int, int, float, NDArray[np.uint8]]]:
        """First frame, end (exclusive), aspect ratio and images of each shot, without black bars, which may vary within
        a file. Dark shots are not cropped."""
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
        """Divide each image into cells, after cropping it to this aspect ratio; None for no cropping."""
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
    """Normalize images [N, G] to zero mean and unit length; images without content become zero."""
    centered = cells - cells.mean(axis=1, keepdims=True)
    size = np.linalg.norm(centered, axis=1, keepdims=True)
    return np.asarray(
        np.where(size > _FLAT * np.sqrt(cells.shape[1]), centered / np.maximum(size, 1e-6), 0), np.float32
    )


def _step(times: NDArray[np.float64]) -> float:
    return float(np.median(np.diff(times))) if len(times) > 1 else 0.04


def _cell_weights(length: int, fraction: float, cells: int) -> Floats:
    """Weights [cells, length] of the pixels in each cell; the cells cover the central ``fraction`` of the length."""
    borders = length * (0.5 + fraction * (np.arange(cells + 1) / cells - 0.5))
    pixels = np.arange(length)[None]
    covered = (np.minimum(borders[1:, None], pixels + 1) - np.maximum(borders[:-1, None], pixels)).clip(0)
    return np.asarray(covered / covered.sum(axis=1, keepdims=True), np.float32)


@dataclass(slots=True)
class Clips:
    """Reads frames around given times, and caches recent clips, because the ends in a file are often close together."""

    _held: OrderedDict[tuple[str, float], Clip] = field(default_factory=OrderedDict, init=False)

    def around(self, record: VideoRecord, time: float) -> Clip:
        """Return all frames from at least two seconds before a time to at least two seconds after it.

        Raises:
            MediaError: The file cannot be read there.
        """
        middle = _GRID * round(min(max(0.0, time), record.duration) / _GRID)
        clip = self._held.get((record.path, middle))
        if clip is None:
            clip = self._held[record.path, middle] = _read_clip(record.path, max(0.0, middle - REACH), middle + REACH)
            if len(self._held) > _MAX_CACHED:
                self._held.popitem(last=False)
        self._held.move_to_end((record.path, middle))
        return clip


def _read_clip(path: str, start: float, end: float) -> Clip:
    times, images = read_gray(path, start=start, end=end, short_side=_SHORT_SIDE, threads=2)
    step = _step(times)
    # The next frame, which is not read, starts at the end or slightly later.
    leaves = float(times[-1]) + step
    return Clip(times, images, leaves, start <= 0, leaves < end - 1.5 * step)


class TimeLine(NamedTuple):
    """A line that maps times in the first video to times in the second.

    Attributes:
        first, second: Corresponding times in both videos, in seconds.
        speed: Seconds of the second video per second of the first.
    """

    first: float
    second: float
    speed: float

    def at(self, first: float) -> float:
        """Convert a time in the first video to a time in the second."""
        return self.second + (first - self.first) * self.speed

    def swapped(self) -> TimeLine:
        """Return the inverse line, from the second video to the first."""
        return TimeLine(self.second, self.first, 1 / self.speed)

    def shifted(self, seconds: float) -> TimeLine:
        """Return the line with times in the second video shifted."""
        return self._replace(second=self.second + seconds)


class EndFit(NamedTuple):
    """The start or end of a shared segment.

    Attributes:
        first, second: Times in the two videos, in seconds.
        match: Mean correlation of the frames inside, in [-1, 1].
        goes_on: Whether the videos still match at the edge of the decoded clips, although neither file ends there.
    """

    first: float
    second: float
    match: float
    goes_on: bool = False


class FittedStretch(NamedTuple):
    """A shared segment with exact ends, confirmed by its frames.

    Attributes:
        first_start, first_end: Start and end in the first video, in seconds.
        second_start, second_end: Start and end in the second video, in seconds.
        score: Similarity of the features, in [0, 1].
        match: Similarity of the frames near the ends, in [0, 1].
        covered: Fraction of the frame that is covered in only one of the videos, for example by a title, near both
            ends; otherwise 0.
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
        """Return the segment with the two videos exchanged."""
        first, second = (self.first_start, self.first_end), (self.second_start, self.second_end)
        return FittedStretch(*second, *first, self.score, self.match, self.covered, self.speed and 1 / self.speed)


Files = tuple[VideoRecord, VideoRecord]


def try_fit(clips: Clips, first: VideoRecord, second: VideoRecord, stretch: RoughStretch) -> FittedStretch | None:
    """Call :func:`fit_stretch`; if a file cannot be read, fall back to the ends from stored features."""
    try:
        return fit_stretch(clips, first, second, stretch)
    except MediaError as error:
        _logger.warning("%s; using the ends found from stored features", error)
    times = stretch.first_start, stretch.first_end, stretch.second_start, stretch.second_end
    return FittedStretch(*times, stretch.score, 0.0) if stretch.is_distinct else None


def fit_stretch(clips: Clips, first: VideoRecord, second: VideoRecord, stretch: RoughStretch) -> FittedStretch | None:
    """Find both ends of a shared segment with frame accuracy; return None if the frames do not confirm the segment.

    Raises:
        MediaError: A file cannot be read around an end.
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
    if min(lengths) < _MIN_LENGTH or abs(lengths[0] * line.speed - lengths[1]) > _SHIFT:
        return None
    inside = [_pairs_inside(clips, files, time, (starts, ends)) for time in (starts, ends)]
    inside = [pairs for pairs in inside if len(pairs[0][0])]
    correlations = [_correlate(_center(one), _center(other)) for pairs in inside for one, other in pairs]
    correlation = max((each for each in correlations if each is not None), default=None)
    is_sure = min(starts.match, ends.match) >= _SURE
    if correlation is None:
        # Without any motion, frames must agree well or match for several seconds.
        if not stretch.is_distinct or not (is_sure or min(lengths) >= 4 * _MIN_LENGTH):
            return None
    elif _is_still(np.concatenate([pairs[0][0] for pairs in inside])):
        if correlation < _SURE:
            return None
    elif correlation < (_BOUND if stretch.is_distinct else _SAME_CHANGES):
        return None
    covered = min(map(covered_fraction, inside), default=0.0)
    times = starts.first, ends.first, starts.second, ends.second
    return FittedStretch(*times, stretch.score, max(0.0, starts.match, ends.match), covered, line.speed)


def _align(clips: Clips, files: Files, stretch: RoughStretch) -> TimeLine | None:
    """Find the line along which most frames around both ends agree; None if none do."""
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
        # Prefer small shifts and normal speed, because nearly still frames agree at any shift and speed.
        totals = (totals - 1e-3 * np.abs(shifts)) * (1.0 if speed == 1.0 else 0.9)
        if totals.max() > best:
            best, found = float(totals.max()), line.shifted(float(shifts[np.argmax(totals)]))
    return found


def _fit(clips: Clips, files: Files, time: float, line: TimeLine, side: StretchEnd) -> EndFit | None:
    """Find the start or end near ``time``: search outward while both files still match, otherwise inward."""
    outwards = -1.0 if side == "start" else 1.0
    fit: EndFit | None = None
    for _ in range(3):
        both = clips.around(files[0], time), clips.around(files[1], line.at(time))
        found = find_end(*both, line, side)
        if fit is not None and (
            found is None or (found.first - fit.first) * outwards < 0 or found.match < fit.match - 4 * _LOOKALIKE
        ):
            return fit  # the clip farther out agrees less
        if found is None:
            time -= outwards * REACH
            continue
        fit = found
        if not fit.goes_on:
            return fit
        time = fit.first + outwards * _GRID
    return fit


class _View(NamedTuple):
    """A clip and the cells that are compared with those of another clip."""

    clip: Clip
    cells: Cells


def _views(first: Clip, second: Clip) -> list[tuple[_View, _View]]:
    """Return pairs of views: both clips uncropped and, if the aspect ratios differ, each cropped to the other's."""
    pairs = [(_View(first, first.cells()), _View(second, second.cells()))]
    if abs(first.aspect / second.aspect - 1) > 0.04:
        pairs.append((_View(first, first.cells(second.aspect)), pairs[0][1]))
        pairs.append((pairs[0][0], _View(second, second.cells(first.aspect))))
    return pairs


def find_end(first: Clip, second: Clip, line: TimeLine, side: StretchEnd) -> EndFit | None:
    """Find where two clips start or stop matching.

    The end is the position with the largest sum of (correlation - bound) over the frames inside, along the line. An end
    near a cut is moved to the cut.

    Args:
        first, second: Frames around the end in both videos.
        line: Maps times in the first video to times in the second.
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
    # If the clips still match where decoding stopped, a cut shortly before is not the end.
    times = [_frame_time(clip, at if side == "start" else at + 1, to_cut=all(stops)) for clip, at in borders]
    return EndFit(times[0], times[1], forward[1], bool(stops) and not any(stops))


def _totals(
    one: _View, other: _View, line: TimeLine, side: StretchEnd, shifts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Largest sum [S] of evidence over the frames inside an end, for each shift of the second clip in seconds."""
    times, clip = one.clip.times, other.clip
    mapped = line.at(0.0) + shifts[:, None] + times[None] * line.speed
    agreement = one.cells.units @ other.cells.units.T
    values = agreement[np.arange(len(times))[None], _find_nearest(clip.times, mapped)]
    is_outside = (mapped < clip.times[0] - clip.step) | (mapped >= clip.end + 0.5 * clip.step)
    # Use a logarithmic scale, so that small differences between very similar frames count: nearly still frames are
    # similar at any shift.
    gains = np.where((values == 0) | is_outside, 0.0, np.log10((1.01 - _BOUND) / (1.01 - values)))
    if side == "start":
        gains, is_outside = gains[:, ::-1], is_outside[:, ::-1]
    # Frames missing from the second clip count as average, so that shifts with more overlap are not preferred.
    present = np.cumsum(~is_outside, axis=1) / np.arange(1, len(times) + 1)
    return np.asarray((np.cumsum(gains, axis=1) / np.maximum(present, 0.1)).max(axis=1))


def _find_nearest(times: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    right = np.searchsorted(times, wanted).clip(1, len(times) - 1)
    return np.asarray(np.where(wanted - times[right - 1] <= times[right] - wanted, right - 1, right))


def _inside(one: _View, other: _View, line: TimeLine, side: StretchEnd) -> tuple[int, float] | None:
    """Return the position of the outermost frame inside an end, and the mean correlation of the frames inside except
    fades; None if no frames agree."""
    clip, mapped = other.clip, line.at(0.0) + one.clip.times * line.speed
    # Up to half a frame beyond its end, the other clip still shows its last frame.
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
        # Versions with other titles agree less, so set the bound between the typical agreement here and that of
        # unrelated frames.
        bound = max(0.8 * _BOUND, float(np.median(values[:count][is_shown[:count]])) / 2 + 0.05)
    cells, others = one.cells.means[rows], other.cells.means[columns]
    count = _count_without_lookalike(values[:count], cells, others)
    dim = extend_by_dim_frames(count, cells, others, one.clip.step)
    return int(rows[dim - 1]), float(values[:count].mean())


def _count_without_lookalike(values: Floats, cells: Floats, others: Floats) -> int:
    """Return the number of leading frames that agree clearly better than the rest, provided that the rest changes
    differently in both videos.

    Two skies look similar, but less so than two copies of the same sky, and their clouds move differently.
    """
    count, sizes = len(values), np.arange(1, len(values))
    sums = np.cumsum(values, dtype=np.float64)
    inner, outer = sums[:-1] / sizes, (sums[-1] - sums[:-1]) / (count - sizes)
    if count < 6:
        return count
    at = int(np.argmax((inner - outer) * np.sqrt(sizes * (count - sizes))))
    if 1 - outer[at] < 3 * (1 - inner[at]) + _LOOKALIKE:
        return count
    correlation = _correlate(_center(cells[at + 1 : count]), _center(others[at + 1 : count]))
    return count if correlation is not None and correlation >= _BOUND else at + 1


def _frame_time(clip: Clip, border: int, *, to_cut: bool) -> float:
    """Return the time at which a frame appears or, with ``to_cut``, the time of the nearest cut if one is close."""
    units = clip.cells().units
    alike: Floats = np.vecdot(units[1:], units[:-1])
    cuts = np.flatnonzero(alike < _BOUND) + 1
    if to_cut and len(cuts):
        cut = int(cuts[np.argmin(np.abs(cuts - border))])
        # At a cut, frames on the same side are similar; this rules out fast motion and fades.
        around = np.concatenate([alike[max(0, cut - 4) : cut - 1], alike[cut : cut + 3]])
        if abs(cut - border) * clip.step <= _NEAR_CUT and (around > _BOUND).all():
            border = cut
    return float(clip.times[border]) if border < len(clip.times) else clip.end


def _pairs_inside(clips: Clips, files: Files, end: EndFit, ends: tuple[EndFit, EndFit]) -> list[tuple[Floats, Floats]]:
    """Cells [N, G] of both files at the same moments near an end, for each pair of views."""
    starts, stops = ends
    line = TimeLine(starts.first, starts.second, (stops.second - starts.second) / (stops.first - starts.first))
    clip, other = clips.around(files[0], end.first), clips.around(files[1], end.second)
    mapped = line.at(0.0) + clip.times * line.speed
    inside = ~is_before(clip.times, starts.first) & is_before(clip.times, stops.first)
    rows = np.flatnonzero(inside & (mapped >= other.times[0] - other.step) & (mapped < other.end))
    columns = _find_nearest(other.times, mapped[rows])
    return [(one.cells.means[rows], two.cells.means[columns]) for one, two in _views(clip, other)]


def _center(cells: Floats) -> Floats:
    """Subtract from images [N, G] their brightness and their mean image, which leaves what moves in front of a fixed
    camera."""
    shown = cells - cells.mean(axis=1, keepdims=True)
    return np.asarray(shown - shown.mean(axis=0))


def _correlate(first: Floats, second: Floats) -> float | None:
    """Correlation of the changes in two clips; 0 if one is much smaller, None if both are negligible."""
    sizes = [float(np.sqrt((change**2).mean())) for change in (first, second)]
    if max(sizes) < _MIN_CHANGE:
        return None
    return float((first * second).mean() / (sizes[0] * sizes[1])) if min(sizes) >= 0.3 * max(sizes) else 0.0


def _is_still(cells: Floats) -> bool:
    """Whether images [N, G] mostly show a title card or come from a fixed camera."""
    units = _normalize(cells)
    return bool((units @ units.T >= _SURE).mean(axis=1).max() >= _MIN_STILL_RATIO)


def _compare_common(cells: Floats, others: Floats) -> tuple[Floats, Floats, Floats]:
    """Compare images [N, G], ignoring the fifth of the cells that differs most.

    Returns:
        The lower and higher contrast [2, N] of each pair, the correlations [N], and the difference [N, G] of each cell
        after a linear fit.
    """
    apart = others - cells
    apart = np.abs(apart - np.median(apart, axis=1, keepdims=True))
    kept = apart <= np.quantile(apart, 1 - _MAX_COVERED, axis=1, keepdims=True)
    sizes = kept.sum(axis=1)
    one, two = (each - (np.where(kept, each, 0).sum(axis=1) / sizes)[:, None] for each in (cells, others))
    squares, other_squares, products = (
        np.where(kept, product, 0).sum(axis=1) / sizes for product in (one * one, two * two, one * two)
    )
    alike = products / np.maximum(np.sqrt(squares * other_squares), 1e-6)
    left = two - (products / np.maximum(squares, 1.0))[:, None] * one
    return np.sqrt(np.sort([squares, other_squares], axis=0)), alike, left


def covered_fraction(pairs: Sequence[tuple[Floats, Floats]]) -> float:
    """Return the fraction of the frame, in [0, 1], that is covered in only one of two clips, for example by a title.

    Args:
        pairs: Cells [N, G] of both clips at the same moments, for each pair of views.

    Returns:
        The fraction; 0 if it is below 0.04, or if the rest of the frame does not agree.
    """
    found = []
    for cells, others in pairs:
        _, alike, left = _compare_common(cells, others)
        found.append((float(np.median(alike)), float((np.abs(np.median(left, axis=0)) > _MIN_COVERING).mean())))
    agreement, fraction = max(found)
    return fraction if agreement >= 0.9 and fraction >= 1 / 25 else 0.0


def extend_by_dim_frames(count: int, cells: Floats, others: Floats, step: float) -> int:
    """Extend a number of matching frames by following frames that match but are too dim to be recognized by themselves.

    Args:
        count: Number of matching frames, going outward.
        cells, others: [N, G] images of both files.
        step: Seconds between frames.

    Returns:
        ``count``, or more if the next frames are a fade, or black or white, possibly with a title in one of the files;
        the fifth of the cells that differs most is ignored.
    """
    # Frames with less contrast than those inside: black, a fade, or a title over either.
    spreads = np.stack([cells.std(axis=1), others.std(axis=1)])
    is_dim: NDArray[np.bool_] = spreads[:, count:].min(axis=0) < max(12.0, 0.3 * float(spreads[:, :count].max()))
    if not is_dim[:1].any():
        return count
    levels = np.abs(np.median(others[count:] - cells[count:], axis=1))
    (lower, higher), alike, _ = _compare_common(cells[count:], others[count:])
    is_plain = (higher < 1.6) & (levels < 12.0)
    last, unlike = 0, 0
    for position in range(len(levels)):
        # After plain or different frames, only frames that agree well belong to the same shot.
        least = 0.9 if unlike or (position - last) * step > 0.2 else _SAME_CHANGES
        if is_dim[position] and lower[position] >= max(0.4, 0.6 * higher[position]) and alike[position] >= least:
            last, unlike = position + 1, 0
            continue
        unlike += not is_plain[position]
        # Tolerate a single different frame, which occurs at sudden changes if the frame rates differ.
        if unlike * step > 0.09 or (position + 1 - last) * step > 1.0:
            break
    return count + last
