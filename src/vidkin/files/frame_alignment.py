"""Align the frames of one video with those of another, undoing crops, borders and changed aspect ratios.

Shapes: N frames; H, W pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin.files.small_frames import stretch

Images = NDArray[np.float32]
Box = tuple[float, float, float, float]
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)

# Refinement stops when no coefficient changes by more than this fraction of a frame.
_MIN_MOVE = 3e-4
_ROUNDS = 12
# Standard deviation in gray levels below which rows and columns are flat; a border must be flat in every frame.
_FLAT = 5.0
# Blocks per side, which are correlated separately so that a caption affects only some of them, and the minimum standard
# deviation for a block to have enough texture.
_BLOCKS, _TEXTURE = 4, 4.0
# Minimum common area for a comparison, as a fraction of a frame.
_MIN_SHARED = 0.1
# Scales at which to search for a crop.
_SCALES = np.geomspace(0.3, 1.0, 15)


@dataclass(frozen=True, slots=True)
class FrameAlignment:
    """Position of a frame in another frame, in fractions of the sides: other x = scale * x + shift.

    Attributes:
        scale, shift: Values for x and y. With a scale below 1, the frame is a crop of the other; above 1, it shows
            more.
    """

    scale: tuple[float, float] = (1.0, 1.0)
    shift: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def between(cls, own: Sequence[float], other: Sequence[float]) -> FrameAlignment:
        """Align a box ``own`` (left, top, right, bottom) with a box ``other``."""
        scale = [(other[axis + 2] - other[axis]) / (own[axis + 2] - own[axis]) for axis in (0, 1)]
        shift = [other[axis] - scale[axis] * own[axis] for axis in (0, 1)]
        return cls((scale[0], scale[1]), (shift[0], shift[1]))

    @property
    def inside_box(self) -> Box:
        """Left, top, right, bottom of the part of this frame that lies inside the other frame."""
        low = [max(0.0, -self.shift[axis] / self.scale[axis]) for axis in (0, 1)]
        high = [min(1.0, (1.0 - self.shift[axis]) / self.scale[axis]) for axis in (0, 1)]
        return low[0], low[1], high[0], high[1]

    @property
    def covered_box(self) -> Box:
        """Left, top, right, bottom of the part of the other frame that this frame covers."""
        low = [max(0.0, self.shift[axis]) for axis in (0, 1)]
        high = [min(1.0, self.scale[axis] + self.shift[axis]) for axis in (0, 1)]
        return low[0], low[1], high[0], high[1]

    def resample(self, others: Images, size: tuple[int, int]) -> Images:
        """Resample the other frames [..., H', W'] to the coordinates of this frame at size (H, W)."""
        down = stretch(others.shape[-2], size[0], self.scale[1], self.shift[1])
        across = stretch(others.shape[-1], size[1], self.scale[0], self.shift[0])
        return np.asarray(down @ others @ across.T, np.float32)

    def find_inside(self, size: tuple[int, int], others: tuple[int, int], box: Box = WHOLE) -> NDArray[np.bool_]:
        """Return whether each pixel of a frame of this size lies inside a box of the other frame, [H, W].

        At an edge within a frame, pixels mix both sides of the edge, so one more pixel is excluded. Where the edges of
        both frames coincide, no pixels are mixed.

        Args:
            size: H, W of the frame.
            others: H, W of the other frame.
            box: Left, top, right, bottom in the other frame.
        """
        sides = []
        for axis in (1, 0):
            count = size[1 - axis]
            edges = self.scale[axis] * np.arange(count + 1) / count + self.shift[axis]
            pixel = self.scale[axis] / count
            mixed = max(pixel, 1.0 / others[1 - axis])
            low, high = box[axis], box[axis + 2]
            lowest = low + mixed if low > 0 or edges[0] < -0.5 * pixel else -0.25 * pixel
            highest = high - mixed if high < 1 or edges[-1] > 1 + 0.5 * pixel else 1 + 0.25 * pixel
            sides.append((edges[:-1] >= lowest) & (edges[1:] <= highest))
        return np.asarray(sides[0][:, None] & sides[1][None])


IDENTITY = FrameAlignment()
"""Alignment of two frames that show the same area."""


def find_borders(images: Images) -> Box:
    """Find the area inside flat borders (left, top, right, bottom as fractions); a whole side if too little remains."""
    box = []
    for axis in (2, 1):
        # A border is flat along its rows or columns in all frames.
        flat = images.std(axis=3 - axis).max(axis=0) < _FLAT
        inner = np.flatnonzero(~flat)
        count = len(flat)
        box.append((inner[0] / count, (inner[-1] + 1) / count) if len(inner) > count // 5 else (0.0, 1.0))
    (left, right), (top, bottom) = box
    return float(left), float(top), float(right), float(bottom)


def measure_agreement(ones: Images, others: Images) -> NDArray[np.float64]:
    """Compute the median correlation [N] of the blocks of aligned frames; overlays on fewer than half of the blocks do
    not affect it."""
    result = np.zeros(len(ones))
    for row, (one, other) in enumerate(zip(ones, others, strict=True)):
        values = []
        for first, second in zip(_split_into_cells(one), _split_into_cells(other), strict=True):
            spreads = first.std(), second.std()
            if max(spreads) > _TEXTURE:
                shared = ((first - first.mean()) * (second - second.mean())).mean()
                values.append(shared / max(spreads[0] * spreads[1], 1.0))
        result[row] = np.median(values) if values else np.nan
    return result


def align_frames(ones: Images, others: Images) -> tuple[FrameAlignment, float]:
    """Align frames with other frames at the same moments.

    Args:
        ones: [N, H, W] frames, in the same orientation as the others.
        others: [N, H', W'] other frames.

    Returns:
        The alignment and its agreement: the median correlation of blocks in [-1, 1], or NaN if the frames have almost
        no content.
    """
    best, found = FrameAlignment(), -np.inf
    box = find_borders(others)
    for guess in _iter_guesses(ones, others):
        # Changes of color or brightness can mislead least squares, so keep the guess if its blocks correlate better.
        for alignment in (guess, _refine(ones, others, guess, box)):
            value = _measure_agreement_inside(ones, others, alignment)
            if np.isnan(value):
                return FrameAlignment(), np.nan
            if value > found + (0.005 if alignment is guess else 0.0):
                best, found = alignment, value
        if found > 0.97:
            break
    return best, found


def _measure_agreement_inside(ones: Images, others: Images, alignment: FrameAlignment) -> float:
    """Measure the agreement within the area that both frames show."""
    height, width = ones.shape[1:]
    left, top, right, bottom = alignment.inside_box
    rows = slice(int(np.ceil(top * height - 0.25)), int(np.floor(bottom * height + 0.25)))
    columns = slice(int(np.ceil(left * width - 0.25)), int(np.floor(right * width + 0.25)))
    aligned = alignment.resample(others, (height, width))[:, rows, columns]
    if aligned[:1].size < _MIN_SHARED * height * width:
        return -1.0
    values = measure_agreement(ones[:, rows, columns], aligned)
    return float(np.nanmedian(values)) if np.isfinite(values).any() else float("nan")


def _iter_guesses(ones: Images, others: Images) -> Iterator[FrameAlignment]:
    own, other = find_borders(ones), find_borders(others)
    yield from dict.fromkeys(
        [
            FrameAlignment(),
            FrameAlignment.between(own, other),
            FrameAlignment.between(own, WHOLE),
            FrameAlignment.between(WHOLE, other),
        ]
    )
    yield _search(others, ones)
    inverse = _search(ones, others)
    yield FrameAlignment(
        (1 / inverse.scale[0], 1 / inverse.scale[1]),
        (-inverse.shift[0] / inverse.scale[0], -inverse.shift[1] / inverse.scale[1]),
    )


def _search(outer: Images, inner: Images) -> FrameAlignment:
    """Find the most textured inner frame within its outer frame, by normalized correlation at many scales."""
    row = int(np.argmax(inner.std(axis=(1, 2))))
    whole, part = outer[row], inner[row]
    best, found = FrameAlignment(), -1.0
    shape = whole.shape[0] + part.shape[0], whole.shape[1] + part.shape[1]
    sums = [np.pad(np.cumsum(np.cumsum(values, 0), 1), ((1, 0), (1, 0))) for values in (whole, whole * whole)]
    spectrum = np.fft.rfft2(whole, shape)
    # Pixels are square in both frames, so the part keeps its aspect ratio.
    for scale in _SCALES:
        fit = min(whole.shape[0] / part.shape[0], whole.shape[1] / part.shape[1]) * scale
        size = max(4, round(part.shape[0] * fit)), max(4, round(part.shape[1] * fit))
        if size[0] > whole.shape[0] or size[1] > whole.shape[1]:
            continue
        small = stretch(part.shape[0], size[0], 1, 0) @ part @ stretch(part.shape[1], size[1], 1, 0).T
        small = small - small.mean()
        shared = np.fft.irfft2(spectrum * np.conj(np.fft.rfft2(small, shape)), shape)
        rows, columns = whole.shape[0] - size[0] + 1, whole.shape[1] - size[1] + 1
        mean, square = (
            (
                total[size[0] :, size[1] :]
                - total[:rows, size[1] :]
                - total[size[0] :, :columns]
                + total[:rows, :columns]
            )
            / small.size
            for total in sums
        )
        spread = np.sqrt(np.maximum(square - mean * mean, 1.0) * small.size)
        value = shared[:rows, :columns] / spread / max(float(np.linalg.norm(small)), 1.0)
        at = np.unravel_index(int(np.argmax(value)), value.shape)
        if value[at] > found:
            found = float(value[at])
            best = FrameAlignment(
                (size[1] / whole.shape[1], size[0] / whole.shape[0]),
                (float(at[1]) / whole.shape[1], float(at[0]) / whole.shape[0]),
            )
    return best


def _refine(ones: Images, others: Images, alignment: FrameAlignment, box: Box) -> FrameAlignment:
    """Refine an alignment by robust least squares, which ignores content that only one of the videos has."""
    size = ones.shape[1:]
    down = ((np.arange(size[0], dtype=np.float32) + 0.5) / size[0])[:, None]
    across = (np.arange(size[1], dtype=np.float32) + 0.5) / size[1]
    for _ in range(_ROUNDS):
        aligned = alignment.resample(others, size)
        inside = alignment.find_inside(size, others.shape[1:], box).astype(np.float32)
        if inside.sum() < 16:
            return alignment
        residual, weights, gain = _fit_gains(ones, aligned, inside)
        slope_down, slope_across = np.gradient(gain[:, None, None] * aligned, axis=(1, 2))
        slope_across = slope_across * size[1]
        slope_down = slope_down * size[0]
        # A change of scale moves pixels in proportion to their position; a change of shift moves all pixels equally.
        moved = np.stack([slope_across * across, slope_down * down, slope_across + 0 * down, slope_down + 0 * across])
        moved = moved.reshape(4, -1)
        normal = ((moved * weights.reshape(-1)) @ moved.T).astype(np.float64)
        right = (moved @ (weights * residual).reshape(-1)).astype(np.float64)
        change = np.linalg.solve(normal + (1e-4 * np.trace(normal) / 4 + 1e-6) * np.eye(4), right)
        change = np.clip(change, -0.1, 0.1)
        # A step in fractions of this frame is `scale` times as large in fractions of the other frame.
        scale = (
            alignment.scale[0] * (1 + float(change[0])),
            alignment.scale[1] * (1 + float(change[1])),
        )
        shift = (
            alignment.shift[0] + alignment.scale[0] * float(change[2]),
            alignment.shift[1] + alignment.scale[1] * float(change[3]),
        )
        if min(scale) < 0.15 or max(scale) > 7:
            return alignment
        alignment = FrameAlignment(scale, shift)
        if np.abs(change).max() < _MIN_MOVE:
            break
    return alignment


def _fit_gains(ones: Images, aligned: Images, inside: Images) -> tuple[Images, Images, NDArray[np.float32]]:
    """Fit a gain per frame; return residuals [N, H, W], pixel weights [N, H, W] and gains [N]."""
    weights = np.broadcast_to(inside, ones.shape)
    gain = np.ones(len(ones), np.float32)
    residual = ones - aligned
    for _ in range(3):
        total = weights.sum(axis=(1, 2), keepdims=True) + 1e-6
        means = [(weights * images).sum(axis=(1, 2), keepdims=True) / total for images in (ones, aligned)]
        first, second = ones - means[0], aligned - means[1]
        energy = (weights * second * second).sum(axis=(1, 2))
        gain = np.where(energy > 1, (weights * first * second).sum(axis=(1, 2)) / np.maximum(energy, 1), 1.0)
        gain = np.clip(gain, 0.1, 10.0).astype(np.float32)
        residual = first - gain[:, None, None] * second
        middle = np.median(np.abs(residual[:, inside > 0]), axis=1)[:, None, None]
        scale = 2.0 + 2.0 * middle
        weights = inside / np.square(1.0 + np.square(residual / scale))
    return residual, np.asarray(weights, np.float32), gain


def _split_into_cells(image: Images) -> list[Images]:
    return [cell for rows in np.array_split(image, _BLOCKS, axis=0) for cell in np.array_split(rows, _BLOCKS, axis=1)]
