"""Protocol of classical image features, and conversion of images to their input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.media.frames import fit_to_square

__all__ = [
    "CHUNK",
    "Image",
    "ImageFeature",
    "as_rgb",
    "iter_chunks",
    "l1_distances",
    "sample_rows",
    "sketch",
    "squares",
]

Image = NDArray[np.uint8]

CHUNK = 32
"""Number of images processed at a time, so that memory use does not grow with the number of images."""


class ImageFeature(Protocol):
    """An image descriptor with its own distance; implement a new one as a frozen dataclass in a separate file.

    Its fields are settings (numbers and strings), fitted tensors or other features;
    :func:`vidkin_research.features.save_feature` stores all of them.
    """

    name: ClassVar[str]
    """Name that follows ``classical:``."""

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Compute descriptors [T, D] of T images of any size; see :func:`as_rgb`."""
        ...

    def distances(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Compute the published distances [N, M] between descriptors [N, D] and [M, D]; lower is more similar."""
        ...

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """Convert descriptors to unit vectors [T, E], or zeros, whose cosines replace the distances in an index."""
        ...


def as_rgb(image: Image) -> Image:
    """Convert an image to RGB [H, W, 3].

    Accepts gray [H, W] or [H, W, 1], color [H, W, 3], or color with alpha [H, W, 4], which is blended over white.

    Raises:
        InvalidArgumentError: The image is not uint8, has no pixels, or has another shape.
    """
    channels = image.shape[2] if image.ndim == 3 else 1
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or image.size == 0 or channels not in (1, 3, 4):
        raise InvalidArgumentError(
            f"an image must be [H, W], [H, W, 1], [H, W, 3] or [H, W, 4] uint8 with pixels, got {list(image.shape)} "
            f"{image.dtype}"
        )
    if channels == 1:
        return np.repeat(image.reshape(*image.shape[:2], 1), 3, axis=2)
    if channels == 4:
        alpha = image[..., 3:].astype(np.uint16)
        over_white = image[..., :3] * alpha + 255 * (255 - alpha)
        return ((over_white + 127) // 255).astype(np.uint8)
    return image


def squares(images: Sequence[Image], side: int) -> NDArray[np.float32]:
    """Resize images to squares, ignoring the aspect ratio: [T, side, side, 3] from 0 to 1."""
    result = np.empty((len(images), side, side, 3), dtype=np.float32)
    for row, image in enumerate(images):
        result[row] = fit_to_square(as_rgb(image), side, "stretch")
    return result / np.float32(255)


def l1_distances(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return L1 distances [N, M] between rows [N, D] and [M, D]."""
    return torch.cdist(first.float(), second.float(), p=1)


def sketch(values: torch.Tensor, length: int, *, seed: int = 0) -> torch.Tensor:
    """Count sketch: shorten rows [T, D] to [T, length], nearly preserving inner products; shorter rows are unchanged.

    Every column is added to a random column with a random sign (Charikar, Chen and Farach-Colton, 2002), so that inner
    products are unbiased, with an error of about the product of the two norms / sqrt(``length``).
    """
    if values.shape[1] <= length:
        return values
    generator = np.random.default_rng(seed)
    places = torch.from_numpy(generator.integers(length, size=values.shape[1]))
    signs = torch.from_numpy(generator.integers(2, size=values.shape[1]) * 2.0 - 1).to(values.dtype)
    return values.new_zeros(len(values), length).index_add_(1, places, values * signs)


def sample_rows(groups: Iterable[torch.Tensor], *, each: int, most: int, seed: int) -> torch.Tensor:
    """Sample at most ``each`` nonzero rows from every group [P, D], and at most ``most`` rows in total.

    Raises:
        InvalidArgumentError: All rows are zero.
    """
    generator = torch.Generator().manual_seed(seed)
    kept: list[torch.Tensor] = []
    for rows in groups:
        content = rows[rows.abs().amax(dim=1) > 0]
        kept.append(content[torch.randperm(len(content), generator=generator)[:each]])
    if not any(map(len, kept)):
        raise InvalidArgumentError(
            "a feature must be fitted on images with content, got only blank images; use photographs or video frames"
        )
    every = torch.cat(kept)
    return every[torch.randperm(len(every), generator=generator)[:most]]


def iter_chunks(images: Iterable[Image]) -> Iterator[Sequence[Image]]:
    """Yield images in chunks of :data:`CHUNK`."""
    iterator = iter(images)
    while chunk := tuple(image for _, image in zip(range(CHUNK), iterator, strict=False)):
        yield chunk
