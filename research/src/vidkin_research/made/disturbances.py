"""Disturbances within a shot that look like cuts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vidkin.errors import InvalidArgumentError
from vidkin_research.made.scenes import ShotPictures

__all__ = ["DISTURBANCES", "disturb"]

DISTURBANCES = ("flash", "compression", "dropped", "repeated", "pop-up", "logo fade", "exposure")

_NEUTRAL = 128.0
_MIN_LENGTH = 12


def disturb(pictures: ShotPictures, kind: str, random: np.random.Generator) -> ShotPictures:
    """Add a disturbance of this kind to frames [T, 3, H, W]; shots with fewer than 12 frames are unchanged.

    Raises:
        InvalidArgumentError: The kind is not in `DISTURBANCES`.
    """
    if kind not in DISTURBANCES:
        raise InvalidArgumentError(f"kind must be one of {', '.join(DISTURBANCES)}, got {kind!r}")
    if len(pictures) < _MIN_LENGTH:
        return pictures
    return _DISTURB[kind](pictures, random)


def _flash(pictures: ShotPictures, random: np.random.Generator) -> ShotPictures:
    for _ in range(random.integers(1, 4)):
        length = int(random.integers(1, 4))
        start = int(random.integers(3, len(pictures) - 7))
        strength = random.uniform(0.3, 1)
        parts = np.linspace(1, 0, length + 3)[: length + 2] if random.random() < 0.5 else np.ones(length)
        luma = 255.0 if random.random() < 0.85 else 0.0
        for frame, part in zip(pictures[start:], parts * strength, strict=False):
            frame[0] += (luma - frame[0]) * part
            frame[1:] += (_NEUTRAL - frame[1:]) * part
    return pictures


def _compression(pictures: ShotPictures, random: np.random.Generator) -> ShotPictures:
    """Lose detail in coarse blocks between key frames, and regain it at each key frame."""
    period = int(random.integers(8, 40))
    phase = int(random.integers(period))
    strength = random.uniform(0.4, 1)
    height, width = (side // 4 * 4 for side in pictures.shape[2:])
    coarse = pictures.copy()
    blocks = pictures[:, :, :height, :width].reshape(len(pictures), 3, height // 4, 4, width // 4, 4).mean((3, 5))
    blocks = np.round(blocks / 8) * 8
    coarse[:, :, :height, :width] = blocks.repeat(4, 2).repeat(4, 3)
    parts = strength * ((np.arange(len(pictures)) + phase) % period / period)
    lost = parts.astype(np.float32)[:, None, None, None]
    mixed: ShotPictures = pictures * (1 - lost) + coarse * lost
    return mixed


def _dropped(pictures: ShotPictures, random: np.random.Generator) -> ShotPictures:
    """Drop two to five frames at one to three positions; the last frame is repeated to keep the length."""
    numbers = np.arange(len(pictures))
    for _ in range(random.integers(1, 4)):
        numbers[int(random.integers(3, len(pictures))) :] += int(random.integers(2, 6))
    kept: ShotPictures = pictures[numbers.clip(max=len(pictures) - 1)]
    return kept


def _repeated(pictures: ShotPictures, random: np.random.Generator) -> ShotPictures:
    """Repeat every frame two to four times, or freeze briefly and then catch up."""
    numbers = np.arange(len(pictures))
    if random.random() < 0.5:
        held = int(random.integers(2, 5))
        return pictures[numbers // held * held]
    span = int(random.integers(3, 10))
    start = int(random.integers(1, len(pictures) - span))
    numbers[start : start + span] = start
    return pictures[numbers]


def _overlay(pictures: ShotPictures, random: np.random.Generator, edge: int) -> ShotPictures:
    # The box and luma of a caption, logo or panel.
    shape = pictures.shape[2:]
    height, width = shape
    area = np.zeros(shape, np.bool_)
    rows, columns = int(height * random.uniform(0.1, 0.4)), int(width * random.uniform(0.15, 0.7))
    top, left = int(random.integers(0, height - rows + 1)), int(random.integers(0, width - columns + 1))
    covered = area[top : top + rows, left : left + columns]
    covered[:] = True if random.random() < 0.4 else random.random(covered.shape) < 0.5
    luma = float(random.choice([16, 200, 235, random.uniform(16, 235)]))
    start = int(random.integers(2, len(pictures) - 6))
    end = min(len(pictures), start + int(random.integers(8, 80)))
    numbers = np.arange(len(pictures), dtype=np.float32)
    shown = np.minimum((numbers - start + 1) / edge, (end - numbers) / edge).clip(0, 1)
    layer = np.array([luma, _NEUTRAL, _NEUTRAL], np.float32)[:, None]
    for frame, part in zip(pictures, shown, strict=True):
        if part:
            frame[:, area] += (layer - frame[:, area]) * part
    return pictures


def _exposure(pictures: ShotPictures, random: np.random.Generator) -> ShotPictures:
    """Change the exposure over several frames."""
    start, span = int(random.integers(1, len(pictures) - 4)), int(random.integers(2, 20))
    course = ((np.arange(len(pictures)) - start) / span).clip(0, 1)
    gain = np.exp(random.uniform(-0.6, 0.6) * course).astype(np.float32)
    pictures[:, 0] = (pictures[:, 0] * gain[:, None, None]).clip(0, 255)
    return pictures


_DISTURB: dict[str, Callable[[ShotPictures, np.random.Generator], ShotPictures]] = {
    "flash": _flash,
    "compression": _compression,
    "dropped": _dropped,
    "repeated": _repeated,
    "pop-up": lambda pictures, random: _overlay(pictures, random, 1),
    "logo fade": lambda pictures, random: _overlay(pictures, random, int(random.integers(5, 20))),
    "exposure": _exposure,
}
