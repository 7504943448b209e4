"""The place of one video's frames in another's: where a crop, a border or another aspect ratio has moved them.

Shapes: N frames; H, W pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin.files.small_frames import stretch

Images = NDArray[np.float32]
WHOLE = (0.0, 0.0, 1.0, 1.0)

# Corner of a place and its opposite are moved until they move less than this share of a frame.
_STILL = 3e-4
_ROUNDS = 12
# A border is rows or columns that are nearly flat in every frame: their gray levels deviate by less than this.
_FLAT = 5.0
# Blocks along each side that are correlated by themselves, so that a caption cannot decide, and the deviation from
# which on a block tells anything.
_BLOCKS, _TEXTURE = 4, 4.0
# Share of a frame that has to lie inside the other one to tell anything.
_LEAST_SHARED = 0.1
# Scales at which a crop is searched for in the whole, and the share of a frame it covers at least.
_SCALES = np.geomspace(0.3, 1.0, 15)


@dataclass(frozen=True, slots=True)
class FramePlace:
    """Where a frame lies in another one, in shares of the sides: x of the other = scale * x + shift.

    Attributes:
        scale, shift: Of x and y. A scale below 1 is a crop of the other frame, above 1 it has something around.
    """

    scale: tuple[float, float] = (1.0, 1.0)
    shift: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def between(cls, own: Sequence[float], other: Sequence[float]) -> FramePlace:
        """The place that lays the box ``own`` (left, top, right, bottom) on the box ``other``."""
        scale = [(other[axis + 2] - other[axis]) / (own[axis + 2] - own[axis]) for axis in (0, 1)]
        shift = [other[axis] - scale[axis] * own[axis] for axis in (0, 1)]
        return cls((scale[0], scale[1]), (shift[0], shift[1]))

    @property
    def shown(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of the part of the frame that lies inside the other one."""
        low = [max(0.0, -self.shift[axis] / self.scale[axis]) for axis in (0, 1)]
        high = [min(1.0, (1.0 - self.shift[axis]) / self.scale[axis]) for axis in (0, 1)]
        return low[0], low[1], high[0], high[1]

    @property
    def seen(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of the part of the other frame that lies under this one."""
        low = [max(0.0, self.shift[axis]) for axis in (0, 1)]
        high = [min(1.0, self.scale[axis] + self.shift[axis]) for axis in (0, 1)]
        return low[0], low[1], high[0], high[1]

    def lay(self, others: Images, size: tuple[int, int]) -> Images:
        """The other frames [..., H', W'] as they are seen in frames of this size (H, W)."""
        down = stretch(others.shape[-2], size[0], self.scale[1], self.shift[1])
        across = stretch(others.shape[-1], size[1], self.scale[0], self.shift[0])
        return np.asarray(down @ others @ across.T, np.float32)

    def covered(
        self, size: tuple[int, int], others: tuple[int, int], box: tuple[float, float, float, float] = WHOLE
    ) -> NDArray[np.bool_]:
        """[H, W] whether each pixel of a frame of this size lies inside a box of the other one.

        Along an edge within a frame, a pixel of either frame mixes what is on both sides of it: one more is left out
        there. Where the edges of both frames coincide nothing is mixed.

        Args:
            size: H, W of the frame.
            others: H, W of the other frame.
            box: Left, top, right, bottom of the part of the other frame that counts.
        """
        sides = []
        for axis in (1, 0):
            count = size[1 - axis]
            edges = self.scale[axis] * np.arange(count + 1) / count + self.shift[axis]
            pixel = self.scale[axis] / count
            mixed = max(pixel, 1.0 / others[1 - axis])
            low, high = box[axis], box[axis + 2]
            least = low + mixed if low > 0 or edges[0] < -0.5 * pixel else -0.25 * pixel
            most = high - mixed if high < 1 or edges[-1] > 1 + 0.5 * pixel else 1 + 0.25 * pixel
            sides.append((edges[:-1] >= least) & (edges[1:] <= most))
        return np.asarray(sides[0][:, None] & sides[1][None])


AS_IT_IS = FramePlace()
"""The place of a frame that lies on the whole of the other one."""


def turn(images: NDArray[np.float32], *, mirrored: bool, turned: int) -> NDArray[np.float32]:
    """Frames [..., H, W] turned clockwise by degrees, and then mirrored left to right."""
    images = np.rot90(images, -turned // 90 % 4, axes=(-2, -1))
    return np.ascontiguousarray(images[..., ::-1] if mirrored else images)


def find_borders(images: Images) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of what is inside of flat borders, in shares; everything if nothing would be left."""
    box = []
    for axis in (2, 1):
        # The deviation along a row or column of each frame; a border is flat in all of them.
        flat = images.std(axis=3 - axis).max(axis=0) < _FLAT
        inner = np.flatnonzero(~flat)
        count = len(flat)
        box.append((inner[0] / count, (inner[-1] + 1) / count) if len(inner) > count // 5 else (0.0, 1.0))
    (left, right), (top, bottom) = box
    return float(left), float(top), float(right), float(bottom)


def agreement(ones: Images, others: Images) -> NDArray[np.float64]:
    """[N] median correlation of the blocks of frames laid on each other; what covers less than half does not count."""
    result = np.zeros(len(ones))
    for row, (one, other) in enumerate(zip(ones, others, strict=True)):
        values = []
        for first, second in zip(_cells(one), _cells(other), strict=True):
            spreads = first.std(), second.std()
            if max(spreads) > _TEXTURE:
                shared = ((first - first.mean()) * (second - second.mean())).mean()
                values.append(shared / max(spreads[0] * spreads[1], 1.0))
        result[row] = np.median(values) if values else np.nan
    return result


def lay_frames(ones: Images, others: Images) -> tuple[FramePlace, float]:
    """Find where frames lie in others of the same moments.

    Args:
        ones: [N, H, W] frames, upright as the others are.
        others: [N, H', W'].

    Returns:
        The place, and how well they agree there: the median correlation of their blocks, in [-1, 1]; nan if there is
        hardly anything to see in them.
    """
    best, found = FramePlace(), -np.inf
    box = find_borders(others)
    for guess in _guesses(ones, others):
        # Least squares can be led away from a place by other colors or brightness: blocks correlate better there.
        for place in (guess, _refine(ones, others, guess, box)):
            value = _agreement_inside(ones, others, place)
            if np.isnan(value):
                return FramePlace(), np.nan
            if value > found + (0.005 if place is guess else 0.0):
                best, found = place, value
        if found > 0.97:
            break
    return best, found


def _agreement_inside(ones: Images, others: Images, place: FramePlace) -> float:
    """How well frames agree where both show something; their borders and what one of them lacks do not count."""
    height, width = ones.shape[1:]
    left, top, right, bottom = place.shown
    rows = slice(int(np.ceil(top * height - 0.25)), int(np.floor(bottom * height + 0.25)))
    columns = slice(int(np.ceil(left * width - 0.25)), int(np.floor(right * width + 0.25)))
    laid = place.lay(others, (height, width))[:, rows, columns]
    if laid[:1].size < _LEAST_SHARED * height * width:
        return -1.0
    values = agreement(ones[:, rows, columns], laid)
    return float(np.nanmedian(values)) if np.isfinite(values).any() else float("nan")


def _guesses(ones: Images, others: Images) -> Iterator[FramePlace]:
    own, other = find_borders(ones), find_borders(others)
    yield from dict.fromkeys(
        [
            FramePlace(),
            FramePlace.between(own, other),
            FramePlace.between(own, WHOLE),
            FramePlace.between(WHOLE, other),
        ]
    )
    yield _search(others, ones)
    inverse = _search(ones, others)
    yield FramePlace(
        (1 / inverse.scale[0], 1 / inverse.scale[1]),
        (-inverse.shift[0] / inverse.scale[0], -inverse.shift[1] / inverse.scale[1]),
    )


def _search(outer: Images, inner: Images) -> FramePlace:
    """The place of the most textured inner frame in the outer one, by normalized correlation at many scales."""
    row = int(np.argmax(inner.std(axis=(1, 2))))
    whole, part = outer[row], inner[row]
    best, found = FramePlace(), -1.0
    shape = whole.shape[0] + part.shape[0], whole.shape[1] + part.shape[1]
    sums = [np.pad(np.cumsum(np.cumsum(values, 0), 1), ((1, 0), (1, 0))) for values in (whole, whole * whole)]
    spectrum = np.fft.rfft2(whole, shape)
    # Square pixels in both: the part keeps its aspect ratio.
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
            best = FramePlace(
                (size[1] / whole.shape[1], size[0] / whole.shape[0]),
                (float(at[1]) / whole.shape[1], float(at[0]) / whole.shape[0]),
            )
    return best


def _refine(ones: Images, others: Images, place: FramePlace, box: tuple[float, float, float, float]) -> FramePlace:
    """Move the place so that the frames differ least, by least squares that leave out what only one of them has."""
    size = ones.shape[1:]
    down = ((np.arange(size[0], dtype=np.float32) + 0.5) / size[0])[:, None]
    across = (np.arange(size[1], dtype=np.float32) + 0.5) / size[1]
    for _ in range(_ROUNDS):
        laid = place.lay(others, size)
        inside = place.covered(size, others.shape[1:], box).astype(np.float32)
        if inside.sum() < 16:
            return place
        residual, weights, gain = _residual(ones, laid, inside)
        slope_down, slope_across = np.gradient(gain[:, None, None] * laid, axis=(1, 2))
        slope_across = slope_across * size[1]
        slope_down = slope_down * size[0]
        # A change of scale moves what is far from the left and top, one of shift all of it; in shares of the frame.
        moved = np.stack([slope_across * across, slope_down * down, slope_across + 0 * down, slope_down + 0 * across])
        moved = moved.reshape(4, -1)
        normal = ((moved * weights.reshape(-1)) @ moved.T).astype(np.float64)
        right = (moved @ (weights * residual).reshape(-1)).astype(np.float64)
        change = np.linalg.solve(normal + (1e-4 * np.trace(normal) / 4 + 1e-6) * np.eye(4), right)
        change = np.clip(change, -0.1, 0.1)
        # One step in shares of this frame is `scale` steps in shares of the other one.
        scale = (
            place.scale[0] * (1 + float(change[0])),
            place.scale[1] * (1 + float(change[1])),
        )
        shift = (
            place.shift[0] + place.scale[0] * float(change[2]),
            place.shift[1] + place.scale[1] * float(change[3]),
        )
        if min(scale) < 0.15 or max(scale) > 7:
            return place
        place = FramePlace(scale, shift)
        if np.abs(change).max() < _STILL:
            break
    return place


def _residual(ones: Images, laid: Images, inside: Images) -> tuple[Images, Images, NDArray[np.float32]]:
    """What a gain for each frame leaves unexplained [N, H, W], how much each pixel counts, and the gains [N]."""
    weights = np.broadcast_to(inside, ones.shape)
    gain = np.ones(len(ones), np.float32)
    residual = ones - laid
    for _ in range(3):
        total = weights.sum(axis=(1, 2), keepdims=True) + 1e-6
        means = [(weights * images).sum(axis=(1, 2), keepdims=True) / total for images in (ones, laid)]
        first, second = ones - means[0], laid - means[1]
        energy = (weights * second * second).sum(axis=(1, 2))
        gain = np.where(energy > 1, (weights * first * second).sum(axis=(1, 2)) / np.maximum(energy, 1), 1.0)
        gain = np.clip(gain, 0.1, 10.0).astype(np.float32)
        residual = first - gain[:, None, None] * second
        middle = np.median(np.abs(residual[:, inside > 0]), axis=1)[:, None, None]
        scale = 2.0 + 2.0 * middle
        weights = inside / np.square(1.0 + np.square(residual / scale))
    return residual, np.asarray(weights, np.float32), gain


def _cells(image: Images) -> list[Images]:
    return [cell for rows in np.array_split(image, _BLOCKS, axis=0) for cell in np.array_split(rows, _BLOCKS, axis=1)]
