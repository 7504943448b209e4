"""Random sampling and checks shared by the augmentations; they use a generator, never the global random state."""

from __future__ import annotations

from collections.abc import Callable

import torch

from vidkin._base.values import check_share
from vidkin.errors import InvalidArgumentError

Range = tuple[float, float]


def make_generator(seed: int | torch.Generator) -> torch.Generator:
    """Return a generator for a seed; an existing generator is returned unchanged, so that several calls can share
    it."""
    if isinstance(seed, torch.Generator):
        return seed
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


def sample_uniform(count: int, limits: Range, generator: torch.Generator, *, width: int = 1) -> torch.Tensor:
    """Return [count, width] float32 sampled uniformly between the limits."""
    low, high = limits
    return low + (high - low) * torch.rand(count, width, generator=generator)


def sample_flags(count: int, share: float, generator: torch.Generator) -> torch.Tensor:
    """Return [count] bool, each True with probability ``share``."""
    return torch.rand(count, generator=generator) < share


def apply_to_share(
    images: torch.Tensor,
    share: float,
    generator: torch.Generator,
    function: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Apply ``function`` to a random ``share`` of the images [N, 3, H, W]; leave the others unchanged.

    Only the chosen images are processed, so that an expensive edit with a small share is cheap.
    """
    check_share(share=share)
    chosen = sample_flags(len(images), share, generator).nonzero().flatten()
    if len(chosen) == 0:
        return images
    if len(chosen) == len(images):
        return function(images)
    return images.index_copy(0, chosen, function(images[chosen]))


def apply_within(
    images: torch.Tensor,
    generator: torch.Generator,
    function: Callable[[torch.Tensor], torch.Tensor],
    *,
    share: float,
    **limits: Range,
) -> torch.Tensor:
    """Apply an edit as `apply_to_share` does, checking its named strength limits; a limit (0, 0) changes nothing.

    Raises:
        InvalidArgumentError: The images, the limits or the share are invalid.
    """
    check_images(images)
    for name, values in limits.items():
        check_limits(name, values)
        if values[1] == 0.0:
            return images
    return apply_to_share(images, share, generator, function)


def check_images(images: torch.Tensor) -> None:
    """Raise :class:`InvalidArgumentError` unless ``images`` are [N, 3, H, W] floating point."""
    if images.ndim != 4 or images.shape[1] != 3 or not images.is_floating_point():
        raise InvalidArgumentError(
            f"images must be [N, 3, H, W] floating point, got {list(images.shape)} {images.dtype}"
        )


def check_limits(name: str, limits: Range, *, lowest: float = 0.0) -> None:
    """Raise :class:`InvalidArgumentError` if the limits are out of order or below ``lowest``."""
    low, high = limits
    if not lowest <= low <= high:
        raise InvalidArgumentError(f"{name} must be (low, high) with {lowest} <= low <= high, got {limits}")
