"""Edits of color and light on batches: gray, contrast, brightness, gamma, color cast, saturation.

All take images [N, 3, H, W] with values in 0..1 and return the same shape and range; random numbers are drawn once for
each image. A strength of 0 (or a share of 0) returns the images unchanged.
"""

from __future__ import annotations

import math

import torch

from vidkin._base.values import check_share
from vidkin.datasets.augmentation.draws import (
    Range,
    apply_to_share,
    check_images,
    check_limits,
    draw_flags,
    draw_uniform,
)
from vidkin.errors import InvalidArgumentError
from vidkin.media.frames import LUMINANCE


def luminance(images: torch.Tensor) -> torch.Tensor:
    """[N, 1, H, W]: brightness of each pixel as the eye sees it."""
    red, green, blue = LUMINANCE
    return red * images[:, :1] + green * images[:, 1:2] + blue * images[:, 2:]


def to_gray(images: torch.Tensor, generator: torch.Generator, *, share: float) -> torch.Tensor:
    """Remove the color from a ``share`` of the images."""
    check_images(images)
    check_share(share=share)
    chosen = draw_flags(len(images), share, generator)
    if not bool(chosen.any()):
        return images
    return torch.where(chosen[:, None, None, None], luminance(images), images)


def change_contrast(images: torch.Tensor, generator: torch.Generator, *, factors: Range) -> torch.Tensor:
    """Multiply differences from the image's mean brightness by a factor between the given two; clipped to 0..1."""
    check_images(images)
    check_limits("factors", factors)
    if factors == (1.0, 1.0):
        return images
    factor = draw_uniform(len(images), factors, generator)[:, :, None, None].to(images.dtype)
    middle = images.mean(dim=(1, 2, 3), keepdim=True)
    return torch.lerp(middle, images, factor).clamp_(0.0, 1.0)


def change_brightness(
    images: torch.Tensor, generator: torch.Generator, *, shift: float = 0.0, factors: Range = (1.0, 1.0)
) -> torch.Tensor:
    """Multiply values by a factor within ``factors`` and shift them by up to ``shift`` either way; clipped to 0..1."""
    check_images(images)
    check_limits("factors", factors)
    if shift < 0.0:
        raise InvalidArgumentError(f"shift must be at least 0, got {shift}")
    if shift == 0.0 and factors == (1.0, 1.0):
        return images
    factor = draw_uniform(len(images), factors, generator)[:, :, None, None].to(images.dtype)
    offset = draw_uniform(len(images), (-shift, shift), generator)[:, :, None, None].to(images.dtype)
    return torch.addcmul(offset, images, factor).clamp_(0.0, 1.0)


def change_gamma(
    images: torch.Tensor, generator: torch.Generator, *, strength: float, share: float = 1.0
) -> torch.Tensor:
    """Raise values to the power g in a ``share`` of the images; g lies between 1 / (1 + strength) and 1 + strength."""
    check_images(images)
    if strength < 0.0:
        raise InvalidArgumentError(f"strength must be at least 0, got {strength}")
    if strength == 0.0:
        return images

    def bend(chosen: torch.Tensor) -> torch.Tensor:
        limit = math.log1p(strength)
        power = draw_uniform(len(chosen), (-limit, limit), generator).exp()[:, :, None, None]
        return chosen.clamp(0.0, 1.0).pow(power.to(chosen.dtype))

    return apply_to_share(images, share, generator, bend)


def tint(images: torch.Tensor, generator: torch.Generator, *, strength: float, share: float = 1.0) -> torch.Tensor:
    """Add a color cast to a ``share`` of the images: each channel times its own factor within ``strength`` of 1;
    clipped to 0..1."""
    check_images(images)
    check_share(share=share)
    if strength < 0.0:
        raise InvalidArgumentError(f"strength must be at least 0, got {strength}")
    if strength == 0.0 or share == 0.0:
        return images
    factors = draw_uniform(len(images), (1.0 - strength, 1.0 + strength), generator, width=3)
    chosen = draw_flags(len(images), share, generator)[:, None]
    factors = torch.where(chosen, factors, torch.ones_like(factors))
    return (images * factors[:, :, None, None].to(images.dtype)).clamp_(0.0, 1.0)
