"""The largest coefficients of a Haar wavelet decomposition, as signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin._base.values import check_at_least
from vidkin_research.features.feature import CHUNK, Image, sketch, squares

__all__ = ["WaveletSignature"]

_SIDE = 128
_PLACES = _SIDE * _SIDE
# Jacobs, Finkelstein and Salesin, table of weights for scanned queries: bin (0 is the mean) x channel Y, I, Q.
_WEIGHTS = torch.tensor([
    [5.00, 19.21, 34.37], [0.83, 1.26, 0.36], [1.01, 0.44, 0.45], [0.52, 0.53, 0.14], [0.47, 0.28, 0.18],
    [0.30, 0.14, 0.27],
])  # fmt: skip
# Smallest and largest possible mean of the channels Y, I, Q.
_MEANS = ((0.0, 1.0), (-0.596, 0.596), (-0.523, 0.523))
# The coefficients of a picture of one color are rounding errors.
_NOISE = 1e-6
_LEVELS = 64
_EMBEDDED = 4096


@dataclass(frozen=True, slots=True)
class WaveletSignature:
    """Wavelet: means of Y, I and Q and the places and signs of their largest Haar coefficients, [T, 3 + 3 * largest].

    Source: Jacobs, Finkelstein and Salesin, "Fast multiresolution image querying", SIGGRAPH 1995. Pictures are squeezed
    to 128 x 128, converted to YIQ and decomposed (standard decomposition: rows fully, then columns fully). A descriptor
    holds three means, then for each channel sign * place of its largest coefficients, place = 128 i + j, in decreasing
    order of their size; 0 if there are fewer.

    ``distance = sum of w_0 |mean - mean'| - sum of w_bin over coefficients of equal place and sign``,
    ``bin = min(max(i, j), 5)``, with the published weights for scanned queries. The distance can be below 0.

    Attributes:
        largest: Coefficients kept per channel (40 in the paper).
    """

    name: ClassVar[str] = "wavelet"
    largest: int = 40

    def __post_init__(self) -> None:
        check_at_least(1, largest=self.largest)

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Signatures [T, 3 + 3 * largest] float32."""
        parts = [torch.zeros(0, 3 + 3 * self.largest)]
        for first in range(0, len(images), CHUNK):
            coefficients = decompose(squares(images[first : first + CHUNK], _SIDE))
            means = torch.from_numpy(coefficients[:, :, 0].copy())
            coefficients[:, :, 0] = 0
            # Stable, so that equal coefficients are kept in the order of their places.
            order = np.argsort(-np.abs(coefficients), axis=2, kind="stable")[:, :, : self.largest]
            values = np.take_along_axis(coefficients, order, axis=2)
            signed = np.where(np.abs(values) > _NOISE, np.sign(values) * order, 0)
            parts.append(torch.cat([means, torch.from_numpy(signed).flatten(1)], dim=1).float())
        return torch.cat(parts)

    def distances(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Distances [N, M]; the weights are the same for both sides, so it does not matter which is the query."""
        result = (first[:, None, :3] - second[None, :, :3]).abs() @ _WEIGHTS[0]
        left, right = self._bits(first), self._bits(second)
        return result - torch.from_numpy((left @ right.T).toarray()).to(result.dtype)

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """Weighted coefficients, sketched, and quantized means; inner products are a constant minus the distance."""
        parts = [sketch(torch.from_numpy(self._bits(descriptors[:0]).toarray()), _EMBEDDED)]
        for first in range(0, len(descriptors), CHUNK):
            bits = self._bits(descriptors[first : first + CHUNK]).toarray()
            parts.append(sketch(torch.from_numpy(bits), _EMBEDDED))
        for channel, (low, high) in enumerate(_MEANS):
            levels = low + (torch.arange(_LEVELS) + 0.5) * (high - low) / _LEVELS
            above = (descriptors[:, channel, None] > levels).float() * 2 - 1
            # Two means differ by one level for every (high - low) / levels between them, and each level costs 2.
            steps = above * (_WEIGHTS[0, channel] * (high - low) / (2 * _LEVELS)).sqrt()
            parts.append(steps)
        return torch.nn.functional.normalize(torch.cat([torch.cat(parts[:-3]), *parts[-3:]], dim=1), dim=1)

    def _bits(self, descriptors: torch.Tensor) -> Any:
        """Sparse [T, 3 * 2 * 128^2]: sqrt(w_bin) where a channel has a coefficient with the sign and place."""
        from scipy.sparse import csr_matrix

        signed = descriptors[:, 3:].reshape(len(descriptors), 3, self.largest).long()
        row, channel, _ = signed.nonzero(as_tuple=True)
        value = signed[signed != 0]
        place = value.abs()
        column = (channel * 2 + (value < 0)) * _PLACES + place
        bins = torch.maximum(place // _SIDE, place % _SIDE).clamp(max=5)
        weight = _WEIGHTS[bins, channel].sqrt()
        return csr_matrix(
            (weight.numpy(), (row.numpy(), column.numpy())), shape=(len(descriptors), 6 * _PLACES)
        )


def decompose(images: NDArray[np.float32]) -> NDArray[np.float64]:
    """Standard Haar decomposition of Y, I and Q: [T, S, S, 3] from 0 to 1 to [T, 3, S * S], the mean first."""
    import pywt
    from skimage.color import rgb2yiq

    channels = np.moveaxis(rgb2yiq(images.astype(np.float64)), -1, 1)
    coefficients: NDArray[np.float64] = pywt.fswavedecn(channels, "haar", axes=(-2, -1)).coeffs
    scaled: NDArray[np.float64] = coefficients.reshape(*coefficients.shape[:2], -1) / images.shape[1]
    return scaled
