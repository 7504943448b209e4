"""Whether the larger of two copies has more detail, or is an enlargement of the smaller one.

Three measurements are added up as evidence, all of them made where the frames have detail:

* *Detail beyond the smaller grid*: what the larger frame shows in frequencies that the smaller one cannot carry, less
  everything that a linear enlargement of the smaller frame would show there. Noise, which is the same in flat areas, is
  subtracted. A source has such detail; an enlargement has only what its encoder left there.
* *Detail that the smaller copy has lost*: how much stronger the fine detail is in the larger frame on the smaller grid.
  An encoder removes detail, so a source has more than its copy. Interpolation and an encoder weaken it in an
  enlargement.
* *Sharpening*: the slope of the larger frame's fine detail on the smaller one's. The detail that an encoder leaves has
  the strength it had, so the slope of a source on its copy is at most about one. Sharpening makes it larger.

Added noise fakes the second measurement, but not the first; sharpening fakes it as well, but not the third. Encoders
blur all three, and a soft source has hardly anything to measure, which is why there is a wide range without a verdict.

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
"""Copies whose sizes differ by a smaller factor have no band of frequencies that only one of them can carry."""

# More moments, or more pixels of a side of the smaller copy, cost time and add little evidence.
_MAX_MOMENTS, _MAX_SIDE = 6, 384

# Side of the blocks in which detail is measured, pixels of the smaller copy: as large as a block of an encoder.
_BLOCK = 8

# Variance of fine detail of the smaller copy, gray levels squared, in the blocks that have detail. Rounding to eight
# bits and the noise of encoders are as strong as detail below it: silhouettes and blank pages stay without a verdict.
_MIN_DETAIL = 50.0

# A block has detail if it has this many times the mean: blocks along the clearest edges decide. It is flat if it has
# this share of the mean.
_MIN_TIMES_MEAN, _MAX_TIMES_MEAN = 2.0, 0.5

# Encoders remove noise from the flattest and the darkest blocks, but never add any: this share of the flat blocks has
# less of it than the blocks with detail have.
_NOISE_SHARE = 0.7

# A moment with less than this share of the fine detail that the best moment has in common shows different frames: where
# a camera stands still, only what moves tells the time of a frame.
_MIN_SHARE_OF_BEST = 0.7

# Less of the fine detail is common in frames that are not aligned or do not show the same.
_MIN_COMMON, _MIN_COMMON_OF_ENLARGED = 0.3, 0.6

# Logarithm of the odds of "more": weights of the three measurements and a constant, by logistic regression on copies
# and enlargements of recordings, rounded. The measurements are natural logarithms, limited so that none outvotes the
# others.
_BEYOND_WEIGHT, _LOST_WEIGHT, _SHARPENED_WEIGHT, _CONSTANT = 2.2, 9.0, -31.0, 4.9
_MIN_BEYOND, _MIN_LOST, _MAX_LOST, _MAX_SHARPENED = -4.0, -0.5, 1.0, 0.5

# "More" needs odds of more than four to one. "Enlarged" says that the larger file is the worse one, and soft sources
# look like enlargements: it needs odds of more than fifty to one.
_MIN_SCORE, _MAX_SCORE_OF_ENLARGED = 1.5, -4.0

# Shares of white and black at which a sensor or a sharpening filter clips.
_BLACK, _WHITE = 8.0, 247.0

# Gray levels a pixel: weaker edges say little about sharpness. In frames with many edges the strongest fifth is used.
_MIN_EDGE, _EDGES = 4.0, 0.8


@dataclass(frozen=True, slots=True)
class DetailVerdict(Result):
    """Whether the larger of two copies has more detail than the smaller one.

    Attributes:
        verdict: "more" if the larger copy is the source of the smaller one or a better generation of it, "enlarged" if
            it is an enlargement, "unsure" if the frames do not show which.
        certainty: Probability of the more likely of the two answers, in [0.5, 1).
        ratio: How much larger the frames are, as a factor of their sides.
        beyond: Logarithm of the detail beyond the smaller grid, as a share of the finest detail that it carries.
        kept: Logarithm of the share of the larger copy's fine detail that the smaller one has kept.
        gain: Logarithm of the strength of fine detail in the larger copy where the smaller one has it, too.
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
    """Judge whether the larger of two copies has more detail than the smaller one or is an enlargement of it.

    Args:
        large: T frames [H, W] or [H, W, 3] of the copy with more pixels, upright and cropped to the area that both
            copies show. Six to twelve moments spread over the video are enough.
        small: T frames [h, w] or [h, w, 3] of the other copy at the same moments. Frames may be shifted by about a
            pixel against each other. Moments at which the copies show different frames are left out.

    Raises:
        InvalidArgumentError: There are no frames, their numbers differ, or the first copy is not the larger one.
    """
    if not large or len(large) != len(small):
        raise InvalidArgumentError(
            f"large and small must have the same number of frames, at least one, got {len(large)} and {len(small)}"
        )
    (height, width), (low, narrow) = large[0].shape[:2], small[0].shape[:2]
    if height * width < low * narrow:
        raise InvalidArgumentError(f"large must have more pixels than small, got {width}x{height} and {narrow}x{low}")
    if min(low, narrow) < 4 * _BLOCK:
        raise InvalidArgumentError(f"frames must have at least {4 * _BLOCK} pixels a side, got {narrow}x{low}")
    ratio = float(np.sqrt(height * width / (low * narrow)))
    moments = np.unique(np.linspace(0, len(large) - 1, min(len(large), _MAX_MOMENTS)).round().astype(int))
    window = _CenterWindow.of_center((low, narrow), (height, width))
    pairs = [(_gray(large[moment]), window.cut(_gray(small[moment]))) for moment in moments]
    common = [_common(_sum_up(_measure_blocks(one, other, window), ratio)) for one, other in pairs]
    pairs = [pair for pair, share in zip(pairs, common, strict=True) if share >= _MIN_SHARE_OF_BEST * max(common)]
    window = window.register(pairs)
    blocks = np.concatenate([_measure_blocks(one, other, window) for one, other in pairs], axis=1)
    return _weigh(_sum_up(blocks, ratio), ratio)


def _weigh(measured: tuple[float, float, float, float], ratio: float) -> DetailVerdict:
    """The verdict on ``beyond``, ``kept``, ``gain`` and ``detail``."""
    beyond, kept, gain, detail = measured
    score = (
        _BEYOND_WEIGHT * max(beyond, _MIN_BEYOND)
        + _LOST_WEIGHT * min(max(gain - kept, _MIN_LOST), _MAX_LOST)
        + _SHARPENED_WEIGHT * min(max(gain, 0.0), _MAX_SHARPENED)
        + _CONSTANT
    )
    common = _common(measured)
    verdict: EnlargementVerdict = "unsure"
    if ratio >= MIN_RATIO and detail >= _MIN_DETAIL:
        if score >= _MIN_SCORE and common >= _MIN_COMMON:
            verdict = "more"
        elif score <= _MAX_SCORE_OF_ENLARGED and common >= _MIN_COMMON_OF_ENLARGED:
            verdict = "enlarged"
    certainty = 1.0 / (1.0 + float(np.exp(-min(abs(score), 30.0))))
    return DetailVerdict(verdict, certainty, ratio, beyond, kept, gain, detail)


def _common(measured: tuple[float, float, float, float]) -> float:
    """Share of the fine detail, 0 to 1, that both copies have in common: the square of its correlation."""
    _, kept, gain, _ = measured
    return float(np.exp(kept + gain))


@dataclass(frozen=True, slots=True)
class _CenterWindow:
    """A part of the smaller frame and where it is in the larger one.

    Attributes:
        rows, columns: First and last + 1 row and column of the smaller frame.
        box: Left, top, right and bottom edge in the larger frame, in pixels.
        size: Height and width of the larger frame.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    box: tuple[float, float, float, float]
    size: tuple[int, int]

    @classmethod
    def of_center(cls, small: tuple[int, int], large: tuple[int, int]) -> _CenterWindow:
        """The middle of frames of these heights and widths."""
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
        """The window of the smaller frame."""
        return small[slice(*self.rows), slice(*self.columns)]

    def register(self, pairs: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> _CenterWindow:
        """The window where the larger frames match the smaller ones best: shifted and scaled by fractions of pixels.

        Least squares over all moments (Lucas and Kanade), with a common gain and offset of the gray levels.
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
            # Frames without detail have no position: the ridge keeps them where they are.
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
    """[4, blocks]: mean square fine detail of both copies on the smaller grid, mean product of both, and mean square
    detail of the larger copy beyond the smaller grid."""
    shrunk = _resize(large, small.shape, Image.Resampling.LANCZOS, window.box)
    fine, fine_shrunk = small - _blur(small), shrunk - _blur(shrunk)
    # The part of the larger frame inside of the window, in whole pixels, and that part in the smaller frame.
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
    beyond = _above(part, small.shape)
    enlargements = []
    for kernel in (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC, Image.Resampling.LANCZOS):
        image = _above(_resize(small, part.shape, kernel, box), small.shape)
        # With its own fine part, a sum of both can stand for the kernel with any sharpening.
        enlargements += [image, image - _blur(image)]
    by_row, by_column = np.gradient(part - beyond)
    edges = np.hypot(by_row, by_column)
    used = (edges > max(float(np.quantile(edges, _EDGES)), _MIN_EDGE)) & (part > _BLACK) & (part < _WHITE)
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
    """``beyond``, ``kept``, ``gain`` and ``detail`` of the blocks of all moments."""
    small, large, both, beyond = blocks
    total = small + large
    has_detail = total >= _MIN_TIMES_MEAN * total.mean()
    flat = total <= max(_MAX_TIMES_MEAN * float(total.mean()), float(np.quantile(total, 1 / 3)))
    in_small, in_large = float(small[has_detail].mean()), float(large[has_detail].mean())
    common = max(float(both[has_detail].mean()), 1e-6)
    noise = float(np.quantile(beyond[flat], _NOISE_SHARE))
    # Spectra of edges fall with the square of the frequency: the band that only the larger grid carries holds this
    # share of what comes above the smaller grid's limit.
    share = max(1 - 1 / ratio, 1e-3)
    new = max(float(beyond[has_detail].mean()) - noise, 1e-3) / max(in_large * share, 1e-6)
    return (
        float(np.log(new)),
        float(np.log(common / max(in_large, 1e-6))),
        float(np.log(common / max(in_small, 1e-6))),
        in_small,
    )


def _above(image: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """What an image loses when it is reduced to this height and width."""
    lanczos = Image.Resampling.LANCZOS
    return image - _resize(_resize(image, shape, lanczos), image.shape, lanczos)


def _gray(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """[H, W]: luminance."""
    if image.ndim == 2:
        return image.astype(np.float32)
    return np.asarray(image @ np.array(LUMINANCE, dtype=np.float32), dtype=np.float32)


def _resize(
    image: NDArray[np.float32],
    shape: tuple[int, ...],
    kernel: Image.Resampling,
    box: tuple[float, float, float, float] | None = None,
) -> NDArray[np.float32]:
    """This part of an image in this height and width."""
    resized = Image.fromarray(np.ascontiguousarray(image)).resize((shape[1], shape[0]), kernel, box)
    return np.asarray(resized, dtype=np.float32)


def _blur(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """An image smoothed by a binomial kernel of five pixels, which leaves the coarser half of the frequencies."""
    weights = np.array([1, 4, 6, 4, 1], dtype=np.float32) / 16
    height, width = image.shape
    padded = np.pad(image, 2, mode="edge")
    across = np.asarray(sum(weight * padded[:, start : start + width] for start, weight in enumerate(weights)))
    return np.asarray(
        sum((weight * across[start : start + height] for start, weight in enumerate(weights)), np.float32(0)),
        dtype=np.float32,
    )
