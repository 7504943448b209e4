"""Judge whether the larger of two copies has more detail or is an enlargement of the smaller one.

Three measurements, all made in areas with detail, are combined as evidence:

* *Detail beyond the smaller grid*: the energy of the larger frame at frequencies that the smaller frame cannot
  represent, minus everything that a linear enlargement of the smaller frame would have there. Noise, estimated in flat
  areas, is subtracted. A source has such detail; an enlargement has only the artifacts of its encoder.
* *Detail lost in the smaller copy*: how much stronger fine detail is in the larger frame, measured on the smaller grid.
  Encoders remove detail, so a source has more of it than its copy. In an enlargement, interpolation and encoding weaken
  it.
* *Sharpening*: the slope of a regression of the larger frame's fine detail on the smaller frame's. Detail that survives
  encoding keeps its strength, so the slope of a source on its copy is at most about one. Sharpening increases it.

Added noise can fake the second measurement but not the first; sharpening can fake the second but shows in the third.
Encoders weaken all three, and a soft source offers little to measure, so there is a wide range without a verdict.

Shapes: T moments; H, W pixels; h, w pixels of the smaller copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin._base.values import Result
from vidkin.errors import InvalidArgumentError
from vidkin.media.frames import LUMINANCE

EnlargementVerdict = Literal["more", "enlarged", "unsure"]

MIN_RATIO = 1.1
"""If the sizes of two copies differ by less than this factor, neither has a frequency band that the other lacks."""

# Limits on moments and on pixels per side of the smaller copy; more would cost time and add little evidence.
_MAX_MOMENTS, _MAX_SIDE = 6, 384

# Side of the blocks in which detail is measured, in pixels of the smaller copy; common encoders use this block size.
_BLOCK = 8

# Minimum variance of fine detail for a verdict, in gray levels squared, in blocks of the smaller copy with detail.
# Below this, rounding and encoder noise are as strong as detail, as in silhouettes and blank pages.
_MIN_DETAIL = 50.0

# Multiples of the mean energy: blocks above the first have detail (the clearest edges decide), blocks below the second
# are flat.
_MIN_DETAIL_RATIO, _MAX_FLAT_RATIO = 2.0, 0.5

# Quantile of the flat blocks from which the noise of blocks with detail is estimated. It is high because encoders
# remove noise from the flattest and darkest blocks.
_NOISE_QUANTILE = 0.7

# Moments with less than this fraction of the common detail of the best moment are dropped as mismatched frames: with a
# static camera, frames at slightly different times differ only where something moves.
_MIN_RATIO_TO_BEST = 0.7

# Minimum common fraction of fine detail for each verdict; misaligned or different frames have less.
_MIN_COMMON, _MIN_COMMON_OF_ENLARGED = 0.3, 0.6

# Log odds of "more": weights of the three measurements and a constant, from a logistic regression on copies and
# enlargements of recordings, rounded. Measurements are natural logarithms, clipped so that none dominates the others.
_BEYOND_WEIGHT, _LOST_WEIGHT, _SHARPENED_WEIGHT, _CONSTANT = 2.2, 9.0, -31.0, 4.9
_MIN_BEYOND, _MIN_LOST, _MAX_LOST, _MAX_SHARPENED = -4.0, -0.5, 1.0, 0.5

# "More" requires odds above four to one. "Enlarged" requires odds above fifty to one, because it means that the larger
# file is the worse one, and because soft sources look like enlargements.
_MIN_SCORE, _MAX_SCORE_OF_ENLARGED = 1.5, -4.0

# Gray levels at which sensors and sharpening filters clip.
_BLACK, _WHITE = 8.0, 247.0

# Gradient in gray levels per pixel below which edges say little about sharpness. If many edges are stronger, only the
# strongest fifth is used.
_MIN_EDGE, _EDGE_QUANTILE = 4.0, 0.8


@dataclass(frozen=True, slots=True)
class DetailVerdict(Result):
    """Whether the larger of two copies has more detail than the smaller one.

    Attributes:
        verdict: "more" if the larger copy is the source of the smaller one or an earlier generation, "enlarged" if it
            is an enlargement, "unsure" if the frames do not settle it.
        certainty: Probability of the likelier of the first two verdicts, in [0.5, 1).
        ratio: Ratio of the side lengths.
        beyond: Logarithm of the detail beyond the smaller grid, relative to the finest detail on that grid.
        kept: Logarithm of the fraction of the larger copy's fine detail that the smaller one has kept.
        gain: Logarithm of the strength of fine detail in the larger copy relative to the smaller one.
        detail: Variance of the smaller copy's fine detail, in gray levels squared.
    """

    verdict: EnlargementVerdict
    certainty: float
    ratio: float
    beyond: float
    kept: float
    gain: float
    detail: float

    def __post_init__(self) -> None:
        if self.verdict not in get_args(EnlargementVerdict):
            raise InvalidArgumentError(
                f"verdict must be one of {', '.join(get_args(EnlargementVerdict))}, got {self.verdict!r}"
            )
        if not 0.5 <= self.certainty <= 1.0:
            raise InvalidArgumentError(f"certainty must be from 0.5 to 1, got {self.certainty}")


def judge_detail(large: Sequence[NDArray[np.uint8]], small: Sequence[NDArray[np.uint8]]) -> DetailVerdict:
    """Judge whether the larger of two copies has more detail than the smaller one, or is an enlargement of it.

    Args:
        large: T frames [H, W] or [H, W, 3] of the copy with more pixels, upright and cropped to the area that both
            copies show. Six to twelve moments spread over the video are enough.
        small: T frames [h, w] or [h, w, 3] of the other copy at the same moments, misaligned by at most about a pixel.
            Moments at which the copies show different frames are ignored.

    Raises:
        InvalidArgumentError: There are no frames, the numbers of frames differ, or ``large`` has fewer pixels.
    """
    if not large or len(large) != len(small):
        raise InvalidArgumentError(
            f"large and small must have the same number of frames, at least one, got {len(large)} and {len(small)}"
        )
    (height, width), (low, narrow) = large[0].shape[:2], small[0].shape[:2]
    if height * width < low * narrow:
        raise InvalidArgumentError(f"large must have more pixels than small, got {width}x{height} and {narrow}x{low}")
    if min(low, narrow) < 4 * _BLOCK:
        raise InvalidArgumentError(f"frames must have at least {4 * _BLOCK} pixels per side, got {narrow}x{low}")
    ratio = float(np.sqrt(height * width / (low * narrow)))
    moments = np.unique(np.linspace(0, len(large) - 1, min(len(large), _MAX_MOMENTS)).round().astype(int))
    window = _CenterWindow.of_center((low, narrow), (height, width))
    pairs = [(_to_gray(large[moment]), window.cut(_to_gray(small[moment]))) for moment in moments]
    common = [_measure_common(_sum_up(_measure_blocks(one, other, window), ratio)) for one, other in pairs]
    pairs = [pair for pair, share in zip(pairs, common, strict=True) if share >= _MIN_RATIO_TO_BEST * max(common)]
    window = window.register(pairs)
    blocks = np.concatenate([_measure_blocks(one, other, window) for one, other in pairs], axis=1)
    return _weigh(_sum_up(blocks, ratio), ratio)


def _weigh(measured: tuple[float, float, float, float], ratio: float) -> DetailVerdict:
    """Combine ``beyond``, ``kept``, ``gain`` and ``detail`` into a verdict."""
    beyond, kept, gain, detail = measured
    score = (
        _BEYOND_WEIGHT * max(beyond, _MIN_BEYOND)
        + _LOST_WEIGHT * min(max(gain - kept, _MIN_LOST), _MAX_LOST)
        + _SHARPENED_WEIGHT * min(max(gain, 0.0), _MAX_SHARPENED)
        + _CONSTANT
    )
    common = _measure_common(measured)
    verdict: EnlargementVerdict = "unsure"
    if ratio >= MIN_RATIO and detail >= _MIN_DETAIL:
        if score >= _MIN_SCORE and common >= _MIN_COMMON:
            verdict = "more"
        elif score <= _MAX_SCORE_OF_ENLARGED and common >= _MIN_COMMON_OF_ENLARGED:
            verdict = "enlarged"
    certainty = 1.0 / (1.0 + float(np.exp(-min(abs(score), 30.0))))
    return DetailVerdict(verdict, certainty, ratio, beyond, kept, gain, detail)


def _measure_common(measured: tuple[float, float, float, float]) -> float:
    """Return the fraction of fine detail that both copies share, 0 to 1: the square of its correlation."""
    _, kept, gain, _ = measured
    return float(np.exp(kept + gain))


@dataclass(frozen=True, slots=True)
class _CenterWindow:
    """Part of the smaller frame, and its box in the larger frame.

    Attributes:
        rows, columns: Start and end (exclusive) in the smaller frame.
        box: Left, top, right and bottom edges in the larger frame, in pixels.
        size: Height and width of the larger frame.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    box: tuple[float, float, float, float]
    size: tuple[int, int]

    @classmethod
    def of_center(cls, small: tuple[int, int], large: tuple[int, int]) -> _CenterWindow:
        """Return the center window of frames with these heights and widths."""
        sides = [min(side, _MAX_SIDE) // _BLOCK * _BLOCK for side in small]
        starts = [(side - kept) // 2 for side, kept in zip(small, sides, strict=True)]
        down, across = large[0] / small[0], large[1] / small[1]
        box = (
            starts[1] * across,
            starts[0] * down,
            (starts[1] + sides[1]) * across,
            (starts[0] + sides[0]) * down,
        )
        return cls((starts[0], starts[0] + sides[0]), (starts[1], starts[1] + sides[1]), box, large)

    def cut(self, small: NDArray[np.float32]) -> NDArray[np.float32]:
        """Crop the smaller frame to the window."""
        return small[slice(*self.rows), slice(*self.columns)]

    def register(self, pairs: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> _CenterWindow:
        """Shift and scale the box with subpixel precision so that the larger frames best match the smaller ones.

        This minimizes squared errors over all moments (Lucas-Kanade), with a common gain and offset of gray levels.
        """
        height, width = pairs[0][1].shape
        down, across = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
        window = self
        for _ in range(3):
            normal, right = np.zeros((6, 6)), np.zeros(6)
            for large, small in pairs:
                shrunk = _blur(_resize(large, small.shape, Image.Resampling.BICUBIC, window.box))
                by_row, by_column = np.gradient(shrunk)
                terms = (by_column, by_column * across, by_row, by_row * down, shrunk - shrunk.mean())
                inside = (slice(4, -4), slice(4, -4))
                design = np.stack([*(np.asarray(term)[inside].ravel() for term in terms), np.ones(shrunk[inside].size)])
                normal += design @ design.T
                right += design @ (_blur(small) - shrunk)[inside].ravel()
            # Frames without detail have no defined position; the ridge term keeps them in place.
            moved, widened, lowered, heightened = np.linalg.solve(
                normal + np.eye(6) * (np.trace(normal) * 1e-7 + 1e-6), right
            )[:4]
            left, top, end, bottom = window.box
            horizontal, vertical = (end - left) / width, (bottom - top) / height
            box = (
                max(left + (moved - widened) * horizontal, 0.0),
                max(top + (lowered - heightened) * vertical, 0.0),
                min(end + (moved + widened) * horizontal, float(self.size[1])),
                min(bottom + (lowered + heightened) * vertical, float(self.size[0])),
            )
            window = _CenterWindow(self.rows, self.columns, box, self.size)
        return window


def _measure_blocks(
    large: NDArray[np.float32], small: NDArray[np.float32], window: _CenterWindow
) -> NDArray[np.float64]:
    """Compute [4, blocks]: mean square fine detail of the smaller and of the larger copy on the smaller grid, the mean
    product of both, and mean square detail of the larger copy beyond the smaller grid."""
    shrunk = _resize(large, small.shape, Image.Resampling.LANCZOS, window.box)
    fine, fine_shrunk = small - _blur(small), shrunk - _blur(shrunk)
    # Whole pixels of the larger frame inside the window, and the corresponding box in the smaller frame.
    left, top, right, bottom = (
        int(np.ceil(window.box[0])),
        int(np.ceil(window.box[1])),
        int(np.floor(window.box[2])),
        int(np.floor(window.box[3])),
    )
    part = large[top:bottom, left:right]
    across = small.shape[1] / (window.box[2] - window.box[0])
    down = small.shape[0] / (window.box[3] - window.box[1])
    box = (
        (left - window.box[0]) * across,
        (top - window.box[1]) * down,
        min((right - window.box[0]) * across, float(small.shape[1])),
        min((bottom - window.box[1]) * down, float(small.shape[0])),
    )
    beyond = _find_residual(part, small.shape)
    enlargements = []
    for kernel in (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC, Image.Resampling.LANCZOS):
        image = _find_residual(_resize(small, part.shape, kernel, box), small.shape)
        # Weighted sums of an image and its fine detail can represent the kernel with any amount of sharpening.
        enlargements += [image, image - _blur(image)]
    by_row, by_column = np.gradient(part - beyond)
    edges = np.hypot(by_row, by_column)
    used = (edges > max(float(np.quantile(edges, _EDGE_QUANTILE)), _MIN_EDGE)) & (part > _BLACK) & (part < _WHITE)
    if used.any():
        design = np.stack([image[used] for image in enlargements]).astype(np.float64)
        normal = design @ design.T
        normal += np.eye(len(normal)) * (np.trace(normal) * 1e-5 + 1e-9)
        shares = np.linalg.solve(normal, design @ beyond[used])
        beyond = beyond - sum(
            np.float32(share) * image for share, image in zip(shares.tolist(), enlargements, strict=True)
        )
    rows, columns = small.shape[0] // _BLOCK, small.shape[1] // _BLOCK
    blocks = [
        _resize(values, (rows, columns), Image.Resampling.BOX)
        for values in (np.square(fine), np.square(fine_shrunk), fine * fine_shrunk, np.square(beyond))
    ]
    return np.stack(blocks).reshape(4, -1).astype(np.float64)


def _sum_up(blocks: NDArray[np.float64], ratio: float) -> tuple[float, float, float, float]:
    """Compute ``beyond``, ``kept``, ``gain`` and ``detail`` from the blocks of all moments."""
    small, large, both, beyond = blocks
    total = small + large
    has_detail = total >= _MIN_DETAIL_RATIO * total.mean()
    flat = total <= max(_MAX_FLAT_RATIO * float(total.mean()), float(np.quantile(total, 1 / 3)))
    in_small, in_large = float(small[has_detail].mean()), float(large[has_detail].mean())
    common = max(float(both[has_detail].mean()), 1e-6)
    noise = float(np.quantile(beyond[flat], _NOISE_QUANTILE))
    # The spectra of edges fall with the square of the frequency, so of the energy above the limit of the smaller grid,
    # this fraction is in the band that only the larger grid can represent.
    share = max(1 - 1 / ratio, 1e-3)
    new = max(float(beyond[has_detail].mean()) - noise, 1e-3) / max(in_large * share, 1e-6)
    return (
        float(np.log(new)),
        float(np.log(common / max(in_large, 1e-6))),
        float(np.log(common / max(in_small, 1e-6))),
        in_small,
    )


def _find_residual(image: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the detail that an image loses when it is downscaled to this height and width."""
    lanczos = Image.Resampling.LANCZOS
    return image - _resize(_resize(image, shape, lanczos), image.shape, lanczos)


def _to_gray(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Convert an image to luminance [H, W]."""
    if image.ndim == 2:
        return image.astype(np.float32)
    return np.asarray(image @ np.array(LUMINANCE, dtype=np.float32), dtype=np.float32)


def _resize(
    image: NDArray[np.float32],
    shape: tuple[int, ...],
    kernel: Image.Resampling,
    box: tuple[float, float, float, float] | None = None,
) -> NDArray[np.float32]:
    """Resize a box of an image to this height and width."""
    resized = Image.fromarray(np.ascontiguousarray(image)).resize((shape[1], shape[0]), kernel, box)
    return np.asarray(resized, dtype=np.float32)


def _blur(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """Smooth with a five-tap binomial kernel, which preserves the lower half of the frequencies."""
    weights = np.array([1, 4, 6, 4, 1], dtype=np.float32) / 16
    height, width = image.shape
    padded = np.pad(image, 2, mode="edge")
    across = np.asarray(sum(weight * padded[:, start : start + width] for start, weight in enumerate(weights)))
    return np.asarray(
        sum((weight * across[start : start + height] for start, weight in enumerate(weights)), np.float32(0)),
        dtype=np.float32,
    )
