"""Random changes of labeled training items: flip, crop, color; the same for all frames of a clip."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["augment"]

# Least side of a crop, as a share of the image's side.
_SMALLEST_CROP = 0.7
_COLOR = 0.3


def augment(clips: Tensor, names: Sequence[str], generator: torch.Generator) -> Tensor:
    """Clips or images [N, (T,) 3, S, S] from 0 to 1, each changed at random.

    Args:
        clips: Clips or images on the CPU.
        names: Changes to apply. ``flip``: half of the items on average are flipped left to right. ``crop``: a square
            of 70 to 100 % of the side, resized to S. ``color``: brightness, contrast and saturation times .7 to 1.3.
        generator: Source of all random numbers.
    """
    shape = clips.shape
    frames = clips if clips.ndim == 5 else clips.unsqueeze(1)
    if "flip" in names:
        mirrored = torch.rand(len(frames), generator=generator) < 0.5
        frames = torch.where(mirrored[:, None, None, None, None], frames.flip(-1), frames)
    if "crop" in names:
        side = frames.shape[-1]
        sizes = torch.rand(len(frames), generator=generator) * (1 - _SMALLEST_CROP) + _SMALLEST_CROP
        positions = torch.rand(len(frames), 2, generator=generator)
        parts = []
        for clip, size, (x, y) in zip(frames, sizes.tolist(), positions.tolist(), strict=True):
            width = max(1, round(size * side))
            left, top = round(x * (side - width)), round(y * (side - width))
            window = clip[..., top : top + width, left : left + width]
            parts.append(functional.interpolate(window, (side, side), mode="bilinear", align_corners=False))
        frames = torch.stack(parts)
    if "color" in names:
        factors = 1 + _COLOR * (2 * torch.rand(len(frames), 3, generator=generator) - 1)
        brightness, contrast, saturation = (part[:, None, None, None, None] for part in factors.unbind(1))
        changed = frames * brightness
        middle = changed.mean(dim=(1, 2, 3, 4), keepdim=True)
        changed = middle + (changed - middle) * contrast
        gray = changed.mean(dim=2, keepdim=True)
        frames = (gray + (changed - gray) * saturation).clamp(0.0, 1.0)
    return frames.reshape(shape)
