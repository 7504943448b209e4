"""Texture features: textons in a spatial pyramid, and the largest coefficients of a wavelet decomposition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from vidkin._base.values import check_at_least, check_positive
from vidkin.errors import InvalidArgumentError
from vidkin_research.features.feature import (
    CHUNK,
    Image,
    iter_chunks,
    l1_distances,
    sample_rows,
    sketch,
    squares,
)
from vidkin_research.features.words import cluster

__all__ = ["TextonPyramid", "WaveletSignature"]

_SIDE, _STEP = 128, 4

_RESPONSES = 27

_NEAREST = 5

_LEVELS = ((1, 0.25), (2, 0.25), (4, 0.5))

_EACH, _MOST = 200, 100_000

_EMBEDDED = 4096

_BASIS = functional.normalize(torch.cos(torch.pi * (torch.arange(3) + 0.5) * torch.arange(3)[:, None] / 3), dim=1)

# [27, 1, 3, 3]: the orthonormal cosine transform of 3 x 3 pixels for each of three channels.
_FILTERS = torch.einsum("ar,bc->abrc", _BASIS, _BASIS).reshape(9, 1, 3, 3).repeat(3, 1, 1, 1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextonPyramid:
    """SPMK texton: weights of K textons in the cells of a pyramid, [T, 21 K]; the distance is 1 - intersection.

    Source: Wang et al., deep ranking, supplement, section 4 (3 x 3 textons, 1,024 of them, max pooling); Lazebnik,
    Schmid and Ponce, CVPR 2006, for the kernel; Yang et al., CVPR 2009, for max pooling. Images are resized to 128 x
    128; one pixel of every 4 x 4 is described by the 9 filters of a 3 x 3 cosine transform of Y, I and Q. A pixel is
    assigned to its 5 nearest textons, with weights that decrease with the squared distance; a cell of the pyramid (1 x
    1, 2 x 2, 4 x 4) contains each texton's largest weight. (The filters and soft weights are not in the publication;
    with hard weights, the maximum would only tell whether a texton occurs.) Each level is scaled to sum 1 and weighted
    by 1/4, 1/4 and 1/2, so the intersection of an image with itself is 1.

    Attributes:
        scale: [27] float32, divisors of the filter responses.
        textons: [K, 27] float32, the textons.
        sharpness: Factor in the weights ``exp(-sharpness * distance^2)``, which are normalized to sum 1.
    """

    name: ClassVar[str] = "textons"
    scale: torch.Tensor
    textons: torch.Tensor
    sharpness: float

    def __post_init__(self) -> None:
        check_positive(sharpness=self.sharpness)
        if self.textons.ndim != 2 or self.textons.shape[1] != _RESPONSES or len(self.textons) < _NEAREST:
            raise InvalidArgumentError(
                f"textons must be [K, {_RESPONSES}] with K at least {_NEAREST}, got {list(self.textons.shape)}"
            )
        if tuple(self.scale.shape) != (_RESPONSES,) or bool((self.scale <= 0).any()):
            raise InvalidArgumentError(f"scale must be [{_RESPONSES}] numbers above 0")

    @classmethod
    def fit(cls, images: Iterable[Image], *, textons: int = 1024, seed: int = 0) -> Self:
        """Fit textons to up to 100,000 pixels from a few hundred images.

        Raises:
            InvalidArgumentError: There are fewer pixels than textons, or fewer than 5 textons.
        """
        rows = sample_rows(_responses(images), each=_EACH, most=_MOST, seed=seed)
        scale = rows.std(dim=0, correction=0).clamp_min(1e-3)
        rows = rows / scale
        centers = cluster(rows, textons, seed=seed)
        # Choose the sharpness so that the weight at the median distance to the nearest texton is exp(-1).
        nearest = torch.cdist(rows[:4096], centers).amin(dim=1).square()
        return cls(scale, centers, 1 / max(float(nearest.median()), 1e-6))

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Return weighted pyramids [T, 21 K] float32, each with sum 1."""
        count = len(self.textons)
        result = torch.zeros(len(images), sum(side**2 for side, _ in _LEVELS) * count)
        side = _SIDE // _STEP
        for row, responses in zip(result, _responses(images), strict=True):
            squared = torch.cdist(responses / self.scale, self.textons).square()
            near, places = squared.topk(_NEAREST, dim=1, largest=False)
            weights = (-self.sharpness * near).softmax(dim=1)
            maps = torch.zeros_like(squared).scatter_(1, places, weights).T.reshape(1, count, side, side)
            levels = []
            for cells, share in _LEVELS:
                pooled = functional.max_pool2d(maps, side // cells).flatten()
                levels.append(pooled * (share / pooled.sum()))
            row[:] = torch.cat(levels)
        return result

    def distances(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return 1 - intersection, [N, M] in [0, 1]; for rows with sum 1 the intersection is 1 - L1 / 2."""
        return l1_distances(first, second) / 2

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """Return the square roots of the weights, sketched."""
        return functional.normalize(sketch(descriptors.sqrt(), _EMBEDDED), dim=1)


def _responses(images: Iterable[Image]) -> Iterator[torch.Tensor]:
    """Yield the filter responses [1024, 27] of each image, row by row."""
    from skimage.color import rgb2yiq

    for chunk in iter_chunks(images):
        channels = torch.from_numpy(rgb2yiq(squares(chunk, _SIDE))).float().movedim(-1, 1)
        padded = functional.pad(channels, (1, 1, 1, 1), mode="reflect")
        maps = functional.conv2d(padded, _FILTERS, groups=3, stride=_STEP)
        yield from maps.flatten(2).transpose(1, 2)


# Signs of the largest coefficients of a Haar wavelet decomposition.


_WAVELET_SIDE = 128

_POSITIONS = _WAVELET_SIDE * _WAVELET_SIDE

# Weights for scanned queries (Jacobs, Finkelstein and Salesin): bin (0 for the mean) x channel Y, I, Q.
_WEIGHTS = torch.tensor([
    [5.00, 19.21, 34.37], [0.83, 1.26, 0.36], [1.01, 0.44, 0.45], [0.52, 0.53, 0.14], [0.47, 0.28, 0.18],
    [0.30, 0.14, 0.27],
])  # fmt: skip

# Minimum and maximum of the channel means of Y, I and Q.
_MEANS = ((0.0, 1.0), (-0.596, 0.596), (-0.523, 0.523))

# Smaller coefficients are rounding errors, as in an image of one color.
_NOISE = 1e-6

_WAVELET_LEVELS = 64


@dataclass(frozen=True, slots=True)
class WaveletSignature:
    """Wavelet signature: channel means, and positions and signs of the largest Haar coefficients, [T, 3 + 3 * largest].

    Source: Jacobs, Finkelstein and Salesin, "Fast multiresolution image querying", SIGGRAPH 1995. Images are resized
    to 128 x 128, converted to YIQ and decomposed (standard decomposition: rows fully, then columns fully). A descriptor
    contains three means, then for each channel sign * position of its largest coefficients, position = 128 i + j, in
    decreasing order of magnitude, padded with 0.

    ``distance = sum of w_0 |mean - mean'| - sum of w_bin over coefficients of equal position and sign``,
    ``bin = min(max(i, j), 5)``, with the published weights for scanned queries. The distance can be negative.

    Attributes:
        largest: Number of coefficients per channel (40 in the paper).
    """

    name: ClassVar[str] = "wavelet"
    largest: int = 40

    def __post_init__(self) -> None:
        check_at_least(1, largest=self.largest)

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Return signatures [T, 3 + 3 * largest] float32."""
        parts = [torch.zeros(0, 3 + 3 * self.largest)]
        for first in range(0, len(images), CHUNK):
            coefficients = decompose(squares(images[first : first + CHUNK], _WAVELET_SIDE))
            means = torch.from_numpy(coefficients[:, :, 0].copy())
            coefficients[:, :, 0] = 0
            # A stable sort keeps equal coefficients in order of position.
            order = np.argsort(-np.abs(coefficients), axis=2, kind="stable")[:, :, : self.largest]
            values = np.take_along_axis(coefficients, order, axis=2)
            signed = np.where(np.abs(values) > _NOISE, np.sign(values) * order, 0)
            parts.append(torch.cat([means, torch.from_numpy(signed).flatten(1)], dim=1).float())
        return torch.cat(parts)

    def distances(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return distances [N, M]; they are symmetric, because both sides have the same weights."""
        result = (first[:, None, :3] - second[None, :, :3]).abs() @ _WEIGHTS[0]
        left, right = self._bits(first), self._bits(second)
        return result - torch.from_numpy((left @ right.T).toarray()).to(result.dtype)

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """Return sketched coefficients and quantized means; their inner product is a constant minus the distance."""
        parts = [sketch(torch.from_numpy(self._bits(descriptors[:0]).toarray()), _EMBEDDED)]
        for first in range(0, len(descriptors), CHUNK):
            bits = self._bits(descriptors[first : first + CHUNK]).toarray()
            parts.append(sketch(torch.from_numpy(bits), _EMBEDDED))
        for channel, (low, high) in enumerate(_MEANS):
            levels = low + (torch.arange(_WAVELET_LEVELS) + 0.5) * (high - low) / _WAVELET_LEVELS
            above = (descriptors[:, channel, None] > levels).float() * 2 - 1
            # Means differ by one level per (high - low) / levels; each level adds 2 to the squared distance.
            steps = above * (_WEIGHTS[0, channel] * (high - low) / (2 * _WAVELET_LEVELS)).sqrt()
            parts.append(steps)
        return torch.nn.functional.normalize(torch.cat([torch.cat(parts[:-3]), *parts[-3:]], dim=1), dim=1)

    def _bits(self, descriptors: torch.Tensor) -> Any:
        """Return a sparse [T, 3 * 2 * 128^2] array: sqrt(w_bin) at each coefficient's channel, sign and position."""
        from scipy.sparse import csr_matrix

        signed = descriptors[:, 3:].reshape(len(descriptors), 3, self.largest).long()
        row, channel, _ = signed.nonzero(as_tuple=True)
        value = signed[signed != 0]
        position = value.abs()
        column = (channel * 2 + (value < 0)) * _POSITIONS + position
        bins = torch.maximum(position // _WAVELET_SIDE, position % _WAVELET_SIDE).clamp(max=5)
        weight = _WEIGHTS[bins, channel].sqrt()
        return csr_matrix((weight.numpy(), (row.numpy(), column.numpy())), shape=(len(descriptors), 6 * _POSITIONS))


def decompose(images: NDArray[np.float32]) -> NDArray[np.float64]:
    """Decompose RGB images [T, S, S, 3] in [0, 1] into Haar coefficients [T, 3, S * S] of Y, I and Q, mean first."""
    import pywt
    from skimage.color import rgb2yiq

    channels = np.moveaxis(rgb2yiq(images.astype(np.float64)), -1, 1)
    coefficients: NDArray[np.float64] = pywt.fswavedecn(channels, "haar", axes=(-2, -1)).coeffs
    scaled: NDArray[np.float64] = coefficients.reshape(*coefficients.shape[:2], -1) / images.shape[1]
    return scaled
