"""Sample shots for composition: clip excerpts, camera moves over photographs, and title cards, with distractors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin_research.made.footage import Clip, Footage

__all__ = ["ShotMaker", "ShotPictures", "mirrored"]

ShotPictures = NDArray[np.float32]
"""[T, 3, H, W] luma and chroma, 0 to 255."""

_NEUTRAL = 128.0


@dataclass(frozen=True, slots=True)
class _Chances:
    """Probability of each property of a shot; if clips and photographs do not add up to 1, the rest are title cards."""

    again: float = 0.12
    clip: float = 0.55
    photograph: float = 0.38
    shaken: float = 0.15
    panned: float = 0.2
    dark: float = 0.25
    exposure: float = 0.15
    flashes: float = 0.25
    zoom_jump: float = 0.06
    crossed: float = 0.4


class ShotMaker:
    """Samples random shots; the same generator gives the same shots.

    Shots contain events that look like cuts: flashes, sudden zooms, shake, pans, objects that cross the frame, exposure
    changes and fast motion (clips at up to five times their speed). One in eight shots continues the previous clip with
    another position and scale, so that not every cut changes the scene.
    """

    def __init__(self, footage: Footage, random: np.random.Generator) -> None:
        self._footage = footage
        self._random = random
        self._last: Clip | None = None
        self._chances = _Chances()

    def draw(self, length: int) -> ShotPictures:
        """Return a shot of ``length`` frames."""
        random, chances = self._random, self._chances
        kind = random.random()
        again = self._last is not None and random.random() < chances.again
        photographs = self._footage.photographs
        share = chances.photograph if photographs else 0.0
        if again or kind < chances.clip + (0.0 if photographs else chances.photograph):
            pictures = self._excerpt(length, again=again)
        elif kind < chances.clip + share:
            pictures = self._camera(length)
            self._last = None
        else:
            self._last = None
            return self._card(length)
        self._grade(pictures)
        if length > 14 and random.random() < chances.flashes:
            self._flash(pictures)
        return pictures

    def _excerpt(self, length: int, *, again: bool) -> ShotPictures:
        random, height, width = self._random, self._footage.height, self._footage.width
        clips = self._footage.clips
        clip = self._last if again and self._last is not None else clips[random.integers(len(clips))]
        self._last = clip
        speed = random.choice([0.5, 1.0, 2.0, 3.0, 5.0], p=[0.1, 0.65, 0.1, 0.1, 0.05])
        first = random.integers(0, max(1, len(clip) - int(length * speed) - 2))
        # Frame numbers of a clip played forward and backward.
        whole = len(clip)
        around = (first + np.arange(length) * speed).astype(np.int64) % (2 * (whole - 1))
        numbers = np.where(around >= whole, 2 * (whole - 1) - around, around)
        scale = np.full(length, random.uniform(0.45, 1.0) if random.random() < 0.6 else 1.0)
        if again:
            scale[:] = random.uniform(0.3, 0.6)
        top, left = random.uniform(0, 1 - scale[0], size=2) * (height, width)
        down, across = np.full(length, top), np.full(length, left)
        if random.random() < self._chances.shaken:
            down, across = down + self._shake(length), across + self._shake(length)
        if random.random() < self._chances.panned:
            across = across + self._walk(length, random.uniform(0.04, 0.5) * width * min(1, length / 30), length)
        if length > 12 and random.random() < self._chances.zoom_jump:
            scale[random.integers(5, length - 5) :] /= random.uniform(1.15, 1.5)
        rows = (down[:, None] + np.arange(height) * scale[:, None]).astype(np.int64)
        columns = (across[:, None] + np.arange(width) * scale[:, None]).astype(np.int64)
        if random.random() < 0.5:
            columns = columns[:, ::-1]
        return _sample(clip.pictures(numbers), rows.clip(0, height - 1), columns.clip(0, width - 1))

    def _camera(self, length: int) -> ShotPictures:
        random, height, width = self._random, self._footage.height, self._footage.width
        photographs = self._footage.photographs
        picture = photographs[random.integers(len(photographs))]
        rows, columns = picture.shape[1:]
        zoom = np.exp(self._walk(length, random.choice([0.02, 0.15, 0.4]) * random.random(), length))
        zoom *= random.uniform(0.35, 0.6)
        if length > 12 and random.random() < self._chances.zoom_jump:
            zoom[random.integers(5, length - 5) :] /= random.uniform(1.15, 1.5)
        speed = random.choice([0, 0.05, 0.15, 0.5, 1.2], p=[0.2, 0.3, 0.25, 0.15, 0.1]) * min(1, length / 40)
        down, across = (
            side * (0.5 + random.uniform(-0.15, 0.15))
            + self._walk(length, speed * side * 0.5, random.choice([5, length / 2 + 3]))
            for side in (rows, columns)
        )
        if random.random() < self._chances.shaken:
            down, across = down + self._shake(length), across + self._shake(length)
        step = zoom[:, None] * rows / height
        pictures = _sample(
            np.broadcast_to(picture, (length, *picture.shape)),
            mirrored(down[:, None] + (np.arange(height) - height / 2) * step, rows),
            mirrored(across[:, None] + (np.arange(width) - width / 2) * step, columns),
        )
        if random.random() < self._chances.crossed:
            self._cross(pictures)
        return pictures

    def _cross(self, pictures: ShotPictures) -> None:
        """Move a piece of another photograph through the frame."""
        random, (length, _, height, width) = self._random, pictures.shape
        photographs = self._footage.photographs
        source = photographs[random.integers(len(photographs))][:, ::2, ::2]
        thing = source[:, : int(random.uniform(0.14, 0.6) * height), : int(random.uniform(0.08, 0.47) * width)]
        rows, columns = thing.shape[1:]
        down = random.uniform(0, height - rows) + self._walk(length, random.uniform(0.03, 0.4) * height, length)
        across = random.uniform(-0.15, 1) * width + self._walk(length, random.uniform(0.04, 1) * width, length)
        for frame, top, left in zip(pictures, down.astype(int), across.astype(int), strict=True):
            bottom, right = min(height, top + rows), min(width, left + columns)
            first, start = max(0, top), max(0, left)
            if bottom > first and right > start:
                frame[:, first:bottom, start:right] = thing[:, first - top : bottom - top, start - left : right - left]

    def _card(self, length: int) -> ShotPictures:
        """Draw a still card: a plain background, often black, usually with text-like lines."""
        random, height, width = self._random, self._footage.height, self._footage.width
        ground = float(random.choice(np.array([0, 0, 0, 255, random.integers(0, 255)])))
        card = np.full((3, height, width), _NEUTRAL, np.float32)
        card[0] = ground
        if random.random() < 0.3:
            card[1:] += (random.normal(size=2) * 20)[:, None, None]
        ink = random.uniform(150, 255) if ground < 128 else random.uniform(0, 80)
        lines = random.integers(1, 4) if random.random() < 0.8 else 0
        for _ in range(lines):
            rows, columns = int(random.uniform(0.04, 0.17) * height), int(random.uniform(0.15, 0.8) * width)
            top = random.integers(0, height - rows)
            left = random.integers(0, width - columns)
            block = card[0, top : top + rows, left : left + columns]
            block[random.random(block.shape) < 0.5] = ink
        return np.repeat(card[None], length, 0)

    def _grade(self, pictures: ShotPictures) -> None:
        random = self._random
        gain, lift = random.uniform(0.4, 1.3), random.uniform(-30, 30) if random.random() < 0.5 else 0.0
        if random.random() < self._chances.dark:
            gain, lift = gain * 0.4, random.uniform(0, 20)
        pictures[:, 0] = ((pictures[:, 0] - 128) * gain + 128 * min(gain, 1) + lift).clip(0, 255)
        saturation = random.uniform(0, 1.4) if random.random() < 0.7 else 0.0
        tint = random.normal(size=2) * 8
        pictures[:, 1:] = (pictures[:, 1:] - _NEUTRAL) * saturation + _NEUTRAL + tint[:, None, None]
        if random.random() < self._chances.exposure:
            length = len(pictures)
            change = np.exp(self._walk(length, random.uniform(0.1, 0.5), max(4, length / 3)))
            pictures[:, 0] = (pictures[:, 0] * change[:, None, None]).clip(0, 255)

    def _flash(self, pictures: ShotPictures) -> None:
        random = self._random
        for _ in range(random.integers(1, 4)):
            start, length, strength = (
                random.integers(3, len(pictures) - 7),
                random.integers(1, 4),
                random.uniform(0.3, 1),
            )
            course = np.linspace(1, 0, length + 3)[: length + 2] if random.random() < 0.5 else np.ones(length)
            for number, part in enumerate(course * strength):
                frame = pictures[start + number]
                frame[0] = frame[0] * (1 - part) + 255 * part
                frame[1:] = (frame[1:] - _NEUTRAL) * (1 - part) + _NEUTRAL

    def _shake(self, length: int) -> NDArray[np.float64]:
        return self._random.normal(size=length) * self._random.uniform(0.007, 0.06) * self._footage.height

    def _walk(self, length: int, reach: float, span: float) -> NDArray[np.float64]:
        """Return a random walk from 0 with amplitude ``reach``, smoothed over ``span`` frames."""
        course = np.cumsum(self._random.normal(size=length))
        window = np.hanning(max(3, int(span)))
        padded = np.pad(course, len(window), mode="edge")
        course = np.convolve(padded, window / window.sum(), "same")[len(window) : -len(window)]
        course -= course[0]
        walk: NDArray[np.float64] = reach * course / (np.abs(course).max() + 1e-6)
        return walk


def _sample(pictures: NDArray[np.generic], rows: NDArray[np.int64], columns: NDArray[np.int64]) -> ShotPictures:
    """Sample frames [T, 3, h, w] at rows [T, H] and columns [T, W]."""
    frames = [
        picture[:, row[:, None], column[None]] for picture, row, column in zip(pictures, rows, columns, strict=True)
    ]
    return np.stack(frames).astype(np.float32)


def mirrored(positions: NDArray[np.float64], length: int) -> NDArray[np.int64]:
    """Map positions to pixel indices of an image that is mirrored beyond its edges."""
    around = np.abs(np.floor(positions)).astype(np.int64) % (2 * length)
    return np.where(around >= length, 2 * length - 1 - around, around)
