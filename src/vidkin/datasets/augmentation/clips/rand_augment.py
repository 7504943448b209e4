"""RandAugment for clips: a few of fourteen plain operations, with the same strength in all frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch.nn import functional

from vidkin.datasets.augmentation.color import luminance
from vidkin.datasets.augmentation.geometry import rotations, warp
from vidkin.errors import InvalidArgumentError

__all__ = ["OPERATIONS", "rand_augment"]

_STEPS = 30
_LEVELS = 256


def rand_augment(
    clip: torch.Tensor, generator: torch.Generator, *, count: int = 2, magnitude: int = 9
) -> torch.Tensor:
    """The clip after ``count`` random operations (Cubuk et al., NeurIPS 2020), each the same for all frames.

    Args:
        clip: [T, 3, S, S] in 0..1.
        generator: Source of all random numbers.
        count: Number of operations, drawn with replacement.
        magnitude: Strength of the operations, from 0 to 30.

    Raises:
        InvalidArgumentError: The magnitude or the count is out of range.
    """
    if not 0 <= magnitude <= _STEPS or count < 0:
        raise InvalidArgumentError(
            f"magnitude must be from 0 to {_STEPS} and count at least 0, got {magnitude} and {count}"
        )
    names = tuple(OPERATIONS)
    for _ in range(count):
        name = names[int(torch.randint(len(names), (), generator=generator))]
        sign = 1.0 if bool(torch.rand((), generator=generator) < 0.5) else -1.0
        clip = OPERATIONS[name](clip, magnitude / _STEPS * sign)
    return clip


def _toward(clip: torch.Tensor, plain: torch.Tensor, strength: float) -> torch.Tensor:
    """The clip moved away from a plain form of it (or toward it, below 0) by up to nine tenths."""
    return (plain + (clip - plain) * (1.0 + 0.9 * strength)).clamp(0, 1)


def _autocontrast(clip: torch.Tensor, strength: float) -> torch.Tensor:
    low, high = clip.amin((0, 2, 3), keepdim=True), clip.amax((0, 2, 3), keepdim=True)
    return torch.where(high > low, (clip - low) / (high - low).clamp(min=1e-6), clip)


def _equalize(clip: torch.Tensor, strength: float) -> torch.Tensor:
    """Values in the order of their rank, channel by channel."""
    levels = (clip * (_LEVELS - 1)).round().long().clamp(0, _LEVELS - 1)
    result = torch.empty_like(clip)
    for channel in range(3):
        counts = torch.bincount(levels[:, channel].flatten(), minlength=_LEVELS).float()
        ranks = (counts.cumsum(0) - counts / 2) / counts.sum()
        result[:, channel] = ranks.to(clip.dtype)[levels[:, channel]]
    return result


def _posterize(clip: torch.Tensor, strength: float) -> torch.Tensor:
    steps = float(2 ** (8 - round(4 * abs(strength))) - 1)
    return (clip * steps).round() / steps


def _sharpness(clip: torch.Tensor, strength: float) -> torch.Tensor:
    padded = functional.pad(clip, (1, 1, 1, 1), "replicate")
    rows = padded[..., :-2] + padded[..., 1:-1] + padded[..., 2:]
    smooth = (rows[..., :-2, :] + rows[..., 1:-1, :] + rows[..., 2:, :]) / 9
    return _toward(clip, smooth, strength)


def _moved(clip: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """The clip through one matrix [3, 3], black around it."""
    return warp(clip, matrix.expand(len(clip), 3, 3), clip.shape[-1], padding="zeros")


def _sheared(clip: torch.Tensor, strength: float, row: int, column: int) -> torch.Tensor:
    """Slanted along one axis by up to .3 of the other."""
    matrix = torch.eye(3)
    matrix[row, column] = 0.3 * strength
    return _moved(clip, matrix)


def _shifted(clip: torch.Tensor, strength: float) -> torch.Tensor:
    """Moved by whole pixels, up to .45 of the width."""
    shift = round(0.45 * strength * clip.shape[-1])
    return functional.pad(clip, (shift, -shift))


def _rotate(clip: torch.Tensor, strength: float) -> torch.Tensor:
    return _moved(clip, rotations(torch.tensor([strength * torch.pi / 6]))[0])


OPERATIONS: Mapping[str, Callable[[torch.Tensor, float], torch.Tensor]] = {
    "identity": lambda clip, strength: clip,
    "autocontrast": _autocontrast,
    "equalize": _equalize,
    "rotate": _rotate,
    "solarize": lambda clip, strength: torch.where(clip < 1.0 - abs(strength), clip, 1.0 - clip),
    "color": lambda clip, strength: _toward(clip, luminance(clip).expand_as(clip), strength),
    "posterize": _posterize,
    "contrast": lambda clip, strength: _toward(clip, luminance(clip).mean().expand_as(clip), strength),
    "brightness": lambda clip, strength: _toward(clip, torch.zeros_like(clip), strength),
    "sharpness": _sharpness,
    "shear_x": lambda clip, strength: _sheared(clip, strength, 0, 1),
    "shear_y": lambda clip, strength: _sheared(clip, strength, 1, 0),
    "translate_x": lambda clip, strength: _shifted(clip, strength),
    "translate_y": lambda clip, strength: _shifted(clip.mT, strength).mT,
}
"""Name -> operation on (clip, strength from -1 to 1)."""
