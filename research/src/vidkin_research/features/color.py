"""Color histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch

from vidkin._base.values import check_at_least, check_choice
from vidkin_research.features.feature import Image, as_rgb, l1_distances, sketch

__all__ = ["ColorHistogram", "ColorSpace"]

ColorSpace = Literal["lab", "hsv", "rgb"]

# First and last value of each channel.
_RANGES: dict[str, tuple[tuple[float, float], ...]] = {
    "lab": ((0, 100), (-128, 127), (-128, 127)),
    "hsv": ((0, 1), (0, 1), (0, 1)),
    "rgb": ((0, 1), (0, 1), (0, 1)),
}
_EMBEDDED = 4096


@dataclass(frozen=True, slots=True)
class ColorHistogram:
    """Color histogram with ``bins`` x ``bins`` x ``bins`` bins, [T, bins^3]; the distance is L1, from 0 to 2.

    Source: Wang et al., "Learning fine-grained image similarity with deep ranking", supplement, section 4 (LAB, 4,096
    bins; HSV and RGB were worse). L ranges from 0 to 100, a and b from -128 to 127 (D65). The cosine
    of two embeddings is the Bhattacharyya coefficient of the histograms.

    Attributes:
        space: Color space: ``lab``, ``hsv`` or ``rgb``.
        bins: Number of bins per channel.

    Raises:
        InvalidArgumentError: The color space is unknown, or ``bins`` is below 1.
    """

    name: ClassVar[str] = "color"
    space: ColorSpace = "lab"
    bins: int = 16

    def __post_init__(self) -> None:
        check_choice("space", self.space, _RANGES)
        check_at_least(1, bins=self.bins)

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Return histograms [T, bins^3] float32, each with sum 1."""
        from skimage import color

        convert = {"rgb": lambda rgb: rgb / np.float32(255), "lab": color.rgb2lab, "hsv": color.rgb2hsv}[self.space]
        result = torch.zeros(len(images), self.bins**3)
        for row, image in zip(result, images, strict=True):
            pixels = convert(as_rgb(image))
            places = np.zeros(image.shape[0] * image.shape[1], dtype=np.int64)
            for channel, (low, high) in enumerate(_RANGES[self.space]):
                step = np.floor((pixels[..., channel].ravel() - low) / (high - low) * self.bins)
                places = places * self.bins + step.clip(0, self.bins - 1).astype(np.int64)
            counts = np.bincount(places, minlength=self.bins**3)
            row[:] = torch.from_numpy(counts / counts.sum())
        return result

    def distances(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return L1 distances [N, M] in [0, 2]."""
        return l1_distances(first, second)

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """Return the square roots of the histograms, sketched if they are long."""
        return torch.nn.functional.normalize(sketch(descriptors.sqrt(), _EMBEDDED), dim=1)
