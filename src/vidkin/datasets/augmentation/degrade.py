"""Edits of color and brightness, and quality degradation, for batches of images.

Gray, contrast, brightness, gamma, tint; blur, down-sampling, noise, and strong compression.

All functions take images [N, 3, H, W] in 0..1 and return the same shape and range; a ``share`` of 0 changes nothing.
"""

from __future__ import annotations

import math
from functools import cache

import torch
from torch.nn import functional

from vidkin._base.values import check_share
from vidkin.datasets.augmentation.geometry import multiply_columns, multiply_rows
from vidkin.datasets.augmentation.sampling import (
    Range,
    apply_to_share,
    apply_within,
    check_images,
    check_limits,
    sample_flags,
    sample_uniform,
)
from vidkin.errors import InvalidArgumentError
from vidkin.media.frames import LUMINANCE

_BLOCK = 8

# Smaller blur weights are far too small to change an 8-bit value.
_MIN_WEIGHT = 1e-12

# Quantization steps from the JPEG standard (Annex K.1, luminance), for values 0..255 at quality 50.
_STEPS = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)

# Converts red, green, blue to luminance and two color differences (ITU-R BT.601, full range).
_TO_YCC = (LUMINANCE, (-0.168736, -0.331264, 0.5), (0.5, -0.418688, -0.081312))


def blur(images: torch.Tensor, generator: torch.Generator, *, sigma: Range, share: float) -> torch.Tensor:
    """Apply a Gaussian blur to a ``share`` of the images, with standard deviations in pixels sampled from ``sigma``."""

    def soften(chosen: torch.Tensor) -> torch.Tensor:
        radius = max(1, math.ceil(2.5 * sigma[1]))
        offset = torch.arange(-radius, radius + 1, dtype=torch.float32)
        width = sample_uniform(len(chosen), sigma, generator).clamp(min=1e-3)
        kernels = (-0.5 * (offset / width).square()).exp()
        kernels = (kernels / kernels.sum(dim=1, keepdim=True)).to(chosen.dtype)
        kernels = kernels.repeat_interleave(3, dim=0)[:, None]
        count, height, wide = len(chosen) * 3, chosen.shape[2], chosen.shape[3]
        flat = chosen.reshape(1, count, height, wide)
        flat = functional.pad(flat, (radius, radius, radius, radius), mode="replicate")
        flat = functional.conv2d(flat, kernels[..., None], groups=count)
        flat = functional.conv2d(flat, kernels[:, :, None], groups=count)
        return flat.view_as(chosen)

    return apply_within(images, generator, soften, share=share, sigma=sigma)


def blur_clip(clip: torch.Tensor, sigma: float) -> torch.Tensor:
    """Blur all frames of a clip [T, 3, S, S] with the same Gaussian kernel, whose standard deviation is in pixels.

    For frames this small, two matrix products are several times faster than a convolution. Pixels outside the frame
    have no weight, whereas `blur` repeats the edge.
    """
    axis = torch.arange(clip.shape[-1], dtype=clip.dtype)
    kernel = torch.exp(-(axis[:, None] - axis).square() / (2 * sigma**2))
    kernel = kernel / kernel.sum(1, keepdim=True)
    # Multiplying denormal numbers, which occur far from the middle, can be a hundred times slower.
    kernel = kernel.where(kernel > _MIN_WEIGHT, 0.0)
    return multiply_columns(multiply_rows(clip, kernel), kernel)


def down_sample(images: torch.Tensor, generator: torch.Generator, *, lowest: float, share: float) -> torch.Tensor:
    """Scale a ``share`` of the images down by a factor from ``lowest`` to 1, and up again.

    A factor is sampled for each eighth of the chosen images, not for each image, because images that are scaled in one
    batch must have the same size.
    """
    check_images(images)
    if not 0.0 < lowest <= 1.0:
        raise InvalidArgumentError(f"lowest must be above 0 and at most 1, got {lowest}")

    def shrink(chosen: torch.Tensor) -> torch.Tensor:
        height, width = chosen.shape[2:]
        groups = chosen.chunk(8)
        factors = sample_uniform(len(groups), (lowest, 1.0), generator)[:, 0].tolist()
        parts = []
        for group, factor in zip(groups, factors, strict=True):
            size = (max(1, round(height * factor)), max(1, round(width * factor)))
            small = functional.adaptive_avg_pool2d(group, size)
            parts.append(functional.interpolate(small, (height, width), mode="bilinear", align_corners=False))
        return torch.cat(parts)

    return images if lowest == 1.0 else apply_to_share(images, share, generator, shrink)


def add_noise(images: torch.Tensor, generator: torch.Generator, *, deviation: Range, share: float) -> torch.Tensor:
    """Add Gaussian noise to a ``share`` of the images, with standard deviations sampled from ``deviation``; clip to
    0..1."""
    check_share(share=share)

    def disturb(chosen: torch.Tensor) -> torch.Tensor:
        amount = sample_uniform(len(chosen), deviation, generator)[:, :, None, None].to(chosen.dtype)
        noise = torch.empty_like(chosen).normal_(generator=generator)
        return torch.addcmul(chosen, noise, amount).clamp_(0.0, 1.0)

    return apply_within(images, generator, disturb, share=share, deviation=deviation)


def compress(images: torch.Tensor, generator: torch.Generator, *, quality: Range, share: float) -> torch.Tensor:
    """Apply strong compression to a ``share`` of the images: 8 x 8 cosine blocks, quantized as in JPEG.

    The block grid starts at a random offset, as in a copy that was cropped after an earlier compression.

    Args:
        images: [N, 3, H, W] in 0..1.
        generator: Random number generator.
        quality: Range of the JPEG quality, from 1 (worst) to 100.
        share: Fraction of the images to compress.

    Raises:
        InvalidArgumentError: An argument is out of range.
    """
    check_images(images)
    check_limits("quality", quality, lowest=1.0)
    if quality[1] > 100.0:
        raise InvalidArgumentError(f"quality must be at most 100, got {quality}")

    def quantize(chosen: torch.Tensor) -> torch.Tensor:
        level = sample_uniform(len(chosen), quality, generator)
        scale = torch.where(level < 50.0, 50.0 / level, 2.0 - level / 50.0).clamp(min=0.02)
        steps = torch.tensor(_STEPS, dtype=torch.float32) / 255.0
        top, left = (int(torch.randint(_BLOCK, (), generator=generator)) for _ in range(2))
        return _quantize_blocks(chosen, (scale[:, :, None] * steps).to(chosen.dtype), top, left)

    return apply_to_share(images, share, generator, quantize)


def _quantize_blocks(images: torch.Tensor, steps: torch.Tensor, top: int, left: int) -> torch.Tensor:
    """Quantize the block coefficients of images [N, 3, H, W] with steps [N, 8, 8]."""
    count, _, height, width = images.shape
    bottom, right = -(height + top) % _BLOCK, -(width + left) % _BLOCK
    colors = torch.tensor(_TO_YCC, dtype=images.dtype)
    planes = torch.einsum("kc,nchw->nkhw", colors, images)
    planes = functional.pad(planes, (left, right, top, bottom), mode="replicate")
    rows, columns = planes.shape[2] // _BLOCK, planes.shape[3] // _BLOCK
    cosines = _cosines().to(images.dtype)
    blocks = planes.view(count, 3, rows, _BLOCK, columns, _BLOCK).transpose(3, 4)
    coefficients = cosines @ blocks @ cosines.T
    # Codecs store color differences at about half the precision of the luminance.
    widths = steps[:, None] * torch.tensor([1.0, 2.0, 2.0], dtype=images.dtype)[None, :, None, None]
    widths = widths[:, :, None, None]
    coefficients = (coefficients / widths).round_() * widths
    blocks = (cosines.T @ coefficients @ cosines).transpose(3, 4)
    planes = blocks.reshape(count, 3, rows * _BLOCK, columns * _BLOCK)
    planes = planes[:, :, top : top + height, left : left + width]
    return torch.einsum("ck,nkhw->nchw", torch.linalg.inv(colors), planes).clamp_(0.0, 1.0)


@cache
def _cosines() -> torch.Tensor:
    """Return the matrix [8, 8] of the orthonormal discrete cosine transform, with one row per frequency."""
    index = torch.arange(_BLOCK, dtype=torch.float32)
    rows = torch.cos(math.pi / _BLOCK * (index + 0.5) * index[:, None]) * math.sqrt(2.0 / _BLOCK)
    rows[0] /= math.sqrt(2.0)
    return rows


def luminance(images: torch.Tensor) -> torch.Tensor:
    """Compute the luminance of each pixel, [N, 1, H, W]."""
    red, green, blue = LUMINANCE
    return red * images[:, :1] + green * images[:, 1:2] + blue * images[:, 2:]


def to_gray(images: torch.Tensor, generator: torch.Generator, *, share: float) -> torch.Tensor:
    """Remove the color from a ``share`` of the images."""
    check_images(images)
    check_share(share=share)
    chosen = sample_flags(len(images), share, generator)
    if not bool(chosen.any()):
        return images
    return torch.where(chosen[:, None, None, None], luminance(images), images)


def change_contrast(images: torch.Tensor, generator: torch.Generator, *, factors: Range) -> torch.Tensor:
    """Scale the differences from each image's mean by a factor within ``factors``; clip to 0..1."""
    check_images(images)
    check_limits("factors", factors)
    if factors == (1.0, 1.0):
        return images
    factor = sample_uniform(len(images), factors, generator)[:, :, None, None].to(images.dtype)
    middle = images.mean(dim=(1, 2, 3), keepdim=True)
    return torch.lerp(middle, images, factor).clamp_(0.0, 1.0)


def change_brightness(
    images: torch.Tensor, generator: torch.Generator, *, shift: float = 0.0, factors: Range = (1.0, 1.0)
) -> torch.Tensor:
    """Multiply values by a factor within ``factors`` and shift them by up to ``shift`` in either direction; clip to
    0..1."""
    check_images(images)
    check_limits("factors", factors)
    if shift < 0.0:
        raise InvalidArgumentError(f"shift must be at least 0, got {shift}")
    if shift == 0.0 and factors == (1.0, 1.0):
        return images
    factor = sample_uniform(len(images), factors, generator)[:, :, None, None].to(images.dtype)
    offset = sample_uniform(len(images), (-shift, shift), generator)[:, :, None, None].to(images.dtype)
    return torch.addcmul(offset, images, factor).clamp_(0.0, 1.0)


def change_gamma(
    images: torch.Tensor, generator: torch.Generator, *, strength: float, share: float = 1.0
) -> torch.Tensor:
    """Raise the values of a ``share`` of the images to a power between 1 / (1 + strength) and 1 + strength."""
    check_images(images)
    if strength < 0.0:
        raise InvalidArgumentError(f"strength must be at least 0, got {strength}")
    if strength == 0.0:
        return images

    def bend(chosen: torch.Tensor) -> torch.Tensor:
        limit = math.log1p(strength)
        power = sample_uniform(len(chosen), (-limit, limit), generator).exp()[:, :, None, None]
        return chosen.clamp(0.0, 1.0).pow(power.to(chosen.dtype))

    return apply_to_share(images, share, generator, bend)


def tint(images: torch.Tensor, generator: torch.Generator, *, strength: float, share: float = 1.0) -> torch.Tensor:
    """Add a color cast to a ``share`` of the images: multiply each channel by a factor within ``strength`` of 1.

    The result is clipped to 0..1.
    """
    check_images(images)
    check_share(share=share)
    if strength < 0.0:
        raise InvalidArgumentError(f"strength must be at least 0, got {strength}")
    if strength == 0.0 or share == 0.0:
        return images
    factors = sample_uniform(len(images), (1.0 - strength, 1.0 + strength), generator, width=3)
    chosen = sample_flags(len(images), share, generator)[:, None]
    factors = torch.where(chosen, factors, torch.ones_like(factors))
    return (images * factors[:, :, None, None].to(images.dtype)).clamp_(0.0, 1.0)
