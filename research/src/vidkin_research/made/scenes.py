"""Scenes that can be rendered at any time and with any framing, for cuts within a scene."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin_research.made.footage import Clip

__all__ = ["ClipScene", "Course", "Framing", "Scene", "ShotPictures", "Sprite", "StageScene", "draw_sprite"]

ShotPictures = NDArray[np.float32]
"""[T, 3, H, W] luma and chroma, 0 to 255."""
Times = NDArray[np.float64]
"""[T] times in frames since the start of the scene; any real numbers."""

_NEUTRAL = 128.0


@dataclass(frozen=True, slots=True)
class Framing:
    """The visible part of a scene, and its brightness.

    Attributes:
        scale: Visible fraction of the scene's height and width, in (0, 1].
        down: Vertical position of the visible part, from 0 (top) to 1 (bottom).
        across: Horizontal position, from 0 (left) to 1 (right).
        gain: Factor applied to luma.
        lift: Constant added to luma.
        tint: Constants added to the two chroma planes.
    """

    scale: float = 1.0
    down: float = 0.5
    across: float = 0.5
    gain: float = 1.0
    lift: float = 0.0
    tint: tuple[float, float] = (0.0, 0.0)


class Scene(Protocol):
    """A scene that can be filmed."""

    def pictures(self, times: Times, framing: Framing) -> ShotPictures:
        """Render frames [T, 3, H, W] at these times, color-graded by the framing."""


@dataclass(frozen=True, slots=True)
class Course:
    """A smooth motion over time: a sum of waves, a steady drift that reverses at its ends, and a quick move.

    Attributes:
        reach: Amplitude of each wave.
        period: Period of each wave in frames.
        phase: Phase of each wave in radians.
        drift: Distance of the drift before it reverses.
        span: Duration of the drift in one direction, in frames.
        start: Offset of the drift in frames.
        step: Distance of a single quick move.
        step_at: Frame at which the quick move starts.
        step_span: Duration of the quick move in frames.
    """

    reach: tuple[float, ...] = ()
    period: tuple[float, ...] = ()
    phase: tuple[float, ...] = ()
    drift: float = 0.0
    span: float = 100.0
    start: float = 0.0
    step: float = 0.0
    step_at: float = 0.0
    step_span: float = 1.0

    def at(self, times: Times) -> NDArray[np.float64]:
        """Return the values at these times."""
        values = np.zeros(len(times))
        for reach, period, phase in zip(self.reach, self.period, self.phase, strict=True):
            values += reach * np.sin(2 * np.pi * times / period + phase)
        part = ((times + self.start) / self.span) % 2
        values += self.drift * np.where(part > 1, 2 - part, part)
        moved = np.clip((times - self.step_at) / self.step_span, 0, 1)
        values += self.step * moved**2 * (3 - 2 * moved)
        return values

    @classmethod
    def draw(cls, random: np.random.Generator, reach: float, *, fastest: float = 20, slowest: float = 300) -> Course:
        """Sample three waves with random periods and amplitudes that add up to ``reach``."""
        periods = np.exp(random.uniform(np.log(fastest), np.log(slowest), 3))
        reaches = random.dirichlet(np.ones(3)) * reach
        return cls(tuple(reaches), tuple(periods), tuple(random.uniform(0, 2 * np.pi, 3)))


@dataclass(frozen=True, slots=True, eq=False)
class ClipScene:
    """A real clip, played forward and backward.

    Attributes:
        clip: A clip without cuts.
        speed: Frames of the clip per frame of the scene.
        mirrored: Whether the clip is mirrored horizontally.
        shake: Camera shake (down, across) relative to the height.
    """

    clip: Clip
    speed: float = 1.0
    mirrored: bool = False
    shake: tuple[Course, Course] = (Course(), Course())

    def pictures(self, times: Times, framing: Framing) -> ShotPictures:
        height, width = self.clip.luma.shape[1:]
        length = len(self.clip)
        around = (times * self.speed).astype(np.int64) % (2 * (length - 1))
        numbers = np.where(around >= length, 2 * (length - 1) - around, around)
        rows, columns = _grid(times, framing, (height, width), (height, width), self.shake)
        if self.mirrored:
            columns = width - 1 - columns
        seen = [
            picture[:, row[:, None], column[None]]
            for picture, row, column in zip(self.clip.pictures(numbers), rows, columns, strict=True)
        ]
        return _grade(np.stack(seen), framing)


@dataclass(frozen=True, slots=True, eq=False)
class Sprite:
    """An object or person that moves in front of a background.

    Attributes:
        image: [3, h, w] uint8 image of the sprite.
        mask: [h, w], where the sprite is visible.
        down: Position of its top edge, relative to the background's height.
        across: Position of its left edge, relative to the background's width.
    """

    image: NDArray[np.uint8]
    mask: NDArray[np.bool_]
    down: Course
    across: Course


@dataclass(frozen=True, slots=True, eq=False)
class StageScene:
    """A photograph as background, moving sprites in front of it, and a camera.

    Attributes:
        background: [3, h, w] uint8.
        size: Height and width of the frames.
        sprites: The sprites; later ones are in front.
        camera: Camera movement (down, across) relative to the background's height.
        zoom: Logarithm of the zoom factor.
        blur: Whether fast camera moves blur the frames horizontally.
    """

    background: NDArray[np.uint8]
    size: tuple[int, int]
    sprites: tuple[Sprite, ...] = ()
    camera: tuple[Course, Course] = (Course(), Course())
    zoom: Course = field(default_factory=Course)
    blur: bool = False

    def pictures(self, times: Times, framing: Framing) -> ShotPictures:
        sides = self.background.shape[1:]
        rows, columns = _grid(times, framing, sides, self.size, self.camera, np.exp(-self.zoom.at(times)))
        seen = np.empty((len(times), 3, *self.size), np.float32)
        for frame, (row, column) in enumerate(zip(rows, columns, strict=True)):
            seen[frame] = self.background[:, row[:, None], column[None]]
        for sprite in self.sprites:
            tops = (sprite.down.at(times) * sides[0]).astype(np.int64)
            lefts = (sprite.across.at(times) * sides[1]).astype(np.int64)
            for frame, (top, left) in enumerate(zip(tops, lefts, strict=True)):
                draw_sprite(seen[frame], sprite, rows[frame] - top, columns[frame] - left)
        if self.blur:
            # Blur each frame horizontally by half of the camera's movement.
            step = np.abs(np.diff(columns, axis=1)).mean() + 1e-6
            shifts = np.abs(np.gradient(columns.mean(1))) if len(times) > 1 else np.zeros(1)
            for picture, moved in zip(seen, shifts, strict=True):
                width = int(min(moved / step / 2, picture.shape[2] / 4))
                if width >= 2:
                    total = np.cumsum(np.pad(picture, ((0, 0), (0, 0), (width, 0)), mode="edge"), axis=2)
                    picture[:] = (total[:, :, width:] - total[:, :, :-width]) / width
        return _grade(seen, framing)


def draw_sprite(
    picture: NDArray[np.float32], sprite: Sprite, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> None:
    """Draw a sprite into an image [3, H, W], given the sprite's row and column at each row and column of the image."""
    height, width = sprite.mask.shape
    down = np.flatnonzero((rows >= 0) & (rows < height))
    across = np.flatnonzero((columns >= 0) & (columns < width))
    if not len(down) or not len(across):
        return
    area = slice(down[0], down[-1] + 1), slice(across[0], across[-1] + 1)
    taken = rows[area[0]].clip(0, height - 1)[:, None], columns[area[1]].clip(0, width - 1)[None]
    # If the background is mirrored, the sprite appears twice; the area in between is not part of it.
    seen = (rows[area[0]] == taken[0][:, 0])[:, None] & (columns[area[1]] == taken[1][0])[None]
    part = picture[:, area[0], area[1]]
    np.copyto(part, sprite.image[:, taken[0], taken[1]], where=sprite.mask[taken] & seen)


def _grid(
    times: Times,
    framing: Framing,
    sides: tuple[int, ...],
    size: tuple[int, int],
    camera: tuple[Course, Course],
    factor: NDArray[np.float64] | float = 1.0,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the visible rows [T, H] and columns [T, W] of the source, which is mirrored beyond its edges."""
    grid = []
    # The visible part has the aspect ratio of the frame and fits into the source.
    step = min(sides[0] / size[0], sides[1] / size[1])
    scales = np.broadcast_to(framing.scale * factor, times.shape)
    for side, count, where, course in zip(sides, size, (framing.down, framing.across), camera, strict=True):
        length = scales * step * count
        start = (side - length) * where + course.at(times) * sides[0]
        indices = (start[:, None] + (np.arange(count) + 0.5) * (length / count)[:, None]).astype(np.int64)
        indices = np.abs(indices) % (2 * side)
        grid.append(np.where(indices >= side, 2 * side - 1 - indices, indices))
    return grid[0], grid[1]


def _grade(pictures: ShotPictures, framing: Framing) -> ShotPictures:
    pictures[:, 0] = pictures[:, 0] * framing.gain + framing.lift
    pictures[:, 1] += framing.tint[0]
    pictures[:, 2] += framing.tint[1]
    return pictures.clip(0, 255, out=pictures)
