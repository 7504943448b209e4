"""Textons in a spatial pyramid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch.nn import functional

from vidkin._base.values import check_positive
from vidkin.errors import InvalidArgumentError
from vidkin_research.features.feature import Image, in_chunks, l1_distances, sample_rows, sketch, squares
from vidkin_research.features.words import cluster

__all__ = ["TextonPyramid"]

_SIDE, _STEP = 128, 4
_RESPONSES = 27
_NEAREST = 5
_LEVELS = ((1, 0.25), (2, 0.25), (4, 0.5))
_EACH, _MOST = 200, 100_000
_EMBEDDED = 4096
_BASIS = functional.normalize(
    torch.cos(torch.pi * (torch.arange(3) + 0.5) * torch.arange(3)[:, None] / 3), dim=1
)
# [27, 1, 3, 3]: the orthonormal cosine transform of 3 x 3 pixels for each of three channels.
_FILTERS = torch.einsum("ar,bc->abrc", _BASIS, _BASIS).reshape(9, 1, 3, 3).repeat(3, 1, 1, 1)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextonPyramid:
    """SPMK texton: how strongly each of K textons is present in the cells of a pyramid, [T, 21 K]; 1 - intersection.

    Source: Wang et al., deep ranking, supplement, section 4 (3 x 3 textons, 1,024 of them, max pooling); Lazebnik,
    Schmid and Ponce, CVPR 2006, for the kernel; Yang et al., CVPR 2009, for max pooling. Pictures are squeezed to
    128 x 128; one pixel of every 4 x 4 is described by the 9 filters of a 3 x 3 cosine transform of Y, I and Q. A pixel
    belongs to its 5 nearest textons, with weights that fall with the squared distance; a cell of the pyramid (1 x 1,
    2 x 2, 4 x 4) has each texton's largest weight. (The filters and the soft weights are not in the publication; with
    hard weights the largest one would only say whether a texton occurs.) Each level is scaled to sum 1 and weighted by
    1/4, 1/4, 1/2, so the intersection of a picture with itself is 1.

    Attributes:
        scale: [27] float32, divisor of the filter responses.
        textons: [K, 27] float32, the textons.
        sharpness: Factor in the weights ``exp(-sharpness * distance^2)``, which are divided by their sum.
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
        """Fit textons to up to 100,000 pixels from a few hundred pictures.

        Raises:
            InvalidArgumentError: There are fewer pixels than textons, or fewer than 5 textons.
        """
        rows = sample_rows(_responses(images), each=_EACH, most=_MOST, seed=seed)
        scale = rows.std(dim=0, correction=0).clamp_min(1e-3)
        rows = rows / scale
        centers = cluster(rows, textons, seed=seed)
        # Half of all pixels are at most this far from a texton; at this distance a weight falls to exp(-1).
        nearest = torch.cdist(rows[:4096], centers).amin(dim=1).square()
        return cls(scale, centers, 1 / max(float(nearest.median()), 1e-6))

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Weighted pyramids [T, 21 K] float32, each with sum 1."""
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
        """1 - intersection kernel, [N, M] in [0, 1]; for rows with sum 1 the intersection is 1 - L1 / 2."""
        return l1_distances(first, second) / 2

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """Square roots of the weights, sketched."""
        return functional.normalize(sketch(descriptors.sqrt(), _EMBEDDED), dim=1)


def _responses(images: Iterable[Image]) -> Iterator[torch.Tensor]:
    """Filter responses [1024, 27] of one picture after another, row by row."""
    from skimage.color import rgb2yiq

    for chunk in in_chunks(images):
        channels = torch.from_numpy(rgb2yiq(squares(chunk, _SIDE))).float().movedim(-1, 1)
        padded = functional.pad(channels, (1, 1, 1, 1), mode="reflect")
        maps = functional.conv2d(padded, _FILTERS, groups=3, stride=_STEP)
        yield from maps.flatten(2).transpose(1, 2)
