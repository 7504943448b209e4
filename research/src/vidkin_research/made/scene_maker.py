"""Sample random scenes and framings from footage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vidkin_research.made.footage import Footage
from vidkin_research.made.scenes import ClipScene, Course, Framing, Scene, Sprite, StageScene

__all__ = ["SCENE_KINDS", "SceneMaker"]

SCENE_KINDS = ("any", "fast", "walkers", "hand-held", "whip pan", "turntable", "people")

"""Kinds of scenes; ``any`` samples from all kinds."""

_TURNTABLES = ("axis",)


class SceneMaker:
    """Samples scenes; the same generator gives the same scenes.

    Clips whose names start with ``axis`` show turntables and are not cropped.
    """

    def __init__(self, footage: Footage, random: np.random.Generator) -> None:
        self._footage = footage
        self._random = random
        self._tables = [clip for clip in footage.clips if clip.name.startswith(_TURNTABLES)]
        self._clips = [clip for clip in footage.clips if not clip.name.startswith(_TURNTABLES)]

    def scene(self, kind: str = "any") -> Scene:
        """Sample a scene of this kind, or of any kind if the footage has no such scene."""
        random = self._random
        stage = bool(self._footage.photographs)
        if kind == "people" and stage:
            return draw_person(self._footage.photographs, (self._footage.height, self._footage.width), random)
        if kind == "turntable" and self._tables:
            return ClipScene(self._tables[random.integers(len(self._tables))])
        if self._clips and (not stage or (kind in ("any", "fast", "hand-held") and random.random() < 0.4)):
            clip = self._clips[random.integers(len(self._clips))]
            speed = random.uniform(2.5, 6) if kind == "fast" else float(random.choice([0.4, 1.0, 1.5]))
            shaken = kind == "hand-held" or random.random() < 0.2
            shake = (self._shake(0.04), self._shake(0.04)) if shaken else (Course(), Course())
            return ClipScene(clip, speed, bool(random.random() < 0.5), shake)
        if not stage:
            return ClipScene(self._footage.clips[random.integers(len(self._footage.clips))])
        return self._stage(kind)

    def framing(self, *, widest: float = 1.0, closest: float = 0.35) -> Framing:
        """Sample a framing with random brightness and color."""
        random = self._random
        dark = random.random() < 0.2
        return Framing(
            scale=float(random.uniform(closest, widest)),
            down=float(random.random()),
            across=float(random.random()),
            gain=float(random.uniform(0.2, 0.45) if dark else random.uniform(0.6, 1.15)),
            lift=float(random.uniform(0, 25)),
            tint=(float(random.normal() * 6), float(random.normal() * 6)),
        )

    def reframe(self, framing: Framing) -> Framing:
        """Sample the framing of another camera, or of the same one a moment later: closer, shifted and perhaps slightly
        brighter."""
        random = self._random
        factor = float(np.exp(random.uniform(np.log(0.45), np.log(1.6))))
        return replace(
            framing,
            scale=min(1.0, max(0.25, framing.scale * factor)),
            down=float(np.clip(framing.down + random.normal() * 0.25, 0, 1)),
            across=float(np.clip(framing.across + random.normal() * 0.3, 0, 1)),
            gain=framing.gain * float(np.exp(random.normal() * 0.06)),
            lift=framing.lift + float(random.normal() * 3),
            tint=(framing.tint[0] + float(random.normal() * 2), framing.tint[1] + float(random.normal() * 2)),
        )

    def _stage(self, kind: str) -> StageScene:
        random, photographs = self._random, self._footage.photographs
        still, idle = Course(), (Course(), Course())
        camera, zoom, blur = idle, still, False
        if kind == "whip pan":
            reach = float(random.choice([-1, 1]) * random.uniform(0.4, 1.3))
            whip = Course(step=reach, step_at=float(random.uniform(8, 40)), step_span=float(random.uniform(4, 14)))
            camera = (self._shake(0.005), whip)
            blur = bool(random.random() < 0.7)
        elif kind == "hand-held":
            camera = (self._shake(0.05), self._shake(0.05))
        elif kind == "fast":
            camera = (Course.draw(random, 0.3), Course.draw(random, 1.0, fastest=25, slowest=80))
            zoom = Course.draw(random, 0.3)
        elif kind == "any" and random.random() < 0.5:
            camera = (Course.draw(random, 0.1), Course.draw(random, float(random.choice([0.1, 0.4]))))
            zoom = Course.draw(random, float(random.choice([0.0, 0.15])))
        count = int(random.integers(1, 4)) if kind == "walkers" else int(random.integers(0, 4))
        sprites = tuple(self._sprite(fast=kind == "fast") for _ in range(count))
        return StageScene(
            photographs[random.integers(len(photographs))],
            (self._footage.height, self._footage.width),
            sprites,
            camera,
            zoom,
            blur,
        )

    def _sprite(self, *, fast: bool) -> Sprite:
        random, photographs = self._random, self._footage.photographs
        source = photographs[random.integers(len(photographs))]
        rows = int(random.uniform(0.2, 0.9) * min(source.shape[1:]))
        columns = max(4, int(rows * random.uniform(0.3, 0.9)))
        top = int(random.integers(0, source.shape[1] - rows + 1))
        left = int(random.integers(0, source.shape[2] - columns + 1))
        image = source[:, top : top + rows, left : left + columns]
        swaying = Course.draw(random, 0.08)
        if random.random() < 0.5:  # cross the frame and come back
            span = float(random.uniform(15, 60) if fast else random.uniform(40, 250))
            across = Course(drift=1.4, span=span, start=float(random.uniform(0, 2 * span)))
            across = replace(across, reach=(-0.4,), period=(1e9,), phase=(np.pi / 2,))
        else:  # move around a fixed position
            position = float(random.uniform(0, 0.7))
            waves = Course.draw(random, 0.3 if fast else 0.15, fastest=15 if fast else 30)
            across = Course((*waves.reach, position), (*waves.period, 1e9), (*waves.phase, np.pi / 2))
        base = float(random.uniform(0.1, 0.6))
        down = Course((*swaying.reach, base), (*swaying.period, 1e9), (*swaying.phase, np.pi / 2))
        y = (np.arange(rows) + 0.5) / rows * 2 - 1
        x = (np.arange(columns) + 0.5) / columns * 2 - 1
        inside: NDArray[np.bool_] = np.abs(y[:, None]) ** 3 + np.abs(x[None]) ** 3 <= 1
        return Sprite(np.ascontiguousarray(image), inside, down, across)

    def _shake(self, reach: float) -> Course:
        return Course.draw(self._random, reach * self._random.uniform(0.3, 1), fastest=4, slowest=40)


# A person in front of a fixed camera: a slightly swaying body, with a moving head and hands.


Photograph = NDArray[np.uint8]


def draw_person(photographs: tuple[Photograph, ...], size: tuple[int, int], random: np.random.Generator) -> StageScene:
    """Create a scene of one or two people in front of a wall, where a jump cut changes little of the frame.

    Args:
        photographs: [3, h, w] uint8 textures for the background and the people.
        size: Height and width of the frames.
        random: Random generator.
    """
    background = _soften(photographs[random.integers(len(photographs))], random, coarse=True)
    people: list[Sprite] = []
    for _ in range(1 if random.random() < 0.75 else 2):
        people += _person(photographs, random)
    return StageScene(background, size, tuple(people))


def _person(photographs: tuple[Photograph, ...], random: np.random.Generator) -> list[Sprite]:
    """Create a body, a head and two hands, sized relative to the background's height."""
    height = float(random.uniform(0.35, 0.8))
    top, left = float(random.uniform(0.25, 0.75 - height / 3)), float(random.uniform(0.1, 0.8))
    width, sway = height * float(random.uniform(0.45, 0.8)), float(random.uniform(0, 0.04))
    slow = Course.draw(random, sway, fastest=30, slowest=200)
    head, hand = width * float(random.uniform(0.3, 0.5)), width * float(random.uniform(0.15, 0.35))
    parts = [
        _part(photographs, random, (height, width), (Course(), slow), (top, left)),
        _part(
            photographs,
            random,
            (head * 1.3, head),
            (slow, slow),
            (top - head * 1.2, left + (width - head) / 2),
        ),
    ]
    reach = float(random.uniform(0.02, 0.5)) * height
    for side in (-0.1, 0.75):
        moves = tuple(Course.draw(random, reach, fastest=12, slowest=90) for _ in range(2))
        center = top + height * float(random.uniform(0.1, 0.7)), left + width * side
        long = hand * float(random.uniform(1, 2.5))
        parts.append(_part(photographs, random, (long, hand), (moves[0], moves[1]), center))
    return parts


def _part(
    photographs: tuple[Photograph, ...],
    random: np.random.Generator,
    sides: tuple[float, float],
    moves: tuple[Course, Course],
    center: tuple[float, float],
) -> Sprite:
    source = photographs[random.integers(len(photographs))]
    rows, columns = (
        max(4, min(int(side * source.shape[1]), whole)) for side, whole in zip(sides, source.shape[1:], strict=True)
    )
    top = int(random.integers(0, source.shape[1] - rows + 1))
    left = int(random.integers(0, source.shape[2] - columns + 1))
    image = _soften(source[:, top : top + rows, left : left + columns], random)
    y = (np.arange(rows) + 0.5) / rows * 2 - 1
    x = (np.arange(columns) + 0.5) / columns * 2 - 1
    mask: NDArray[np.bool_] = np.abs(y[:, None]) ** 3 + np.abs(x[None]) ** 3 <= 1
    # A wave with an infinite period is a constant, which sets the center of a course.
    courses = [
        replace(move, reach=(*move.reach, at), period=(*move.period, 1e9), phase=(*move.phase, np.pi / 2))
        for move, at in zip(moves, center, strict=True)
    ]
    return Sprite(image, mask, *courses)


def _soften(image: Photograph, random: np.random.Generator, *, coarse: bool = False) -> Photograph:
    """Reduce the contrast to that of cloth, skin and walls; with ``coarse``, also reduce the detail."""
    values = image.astype(np.float32)
    if coarse and random.random() < 0.7:
        step = int(random.integers(4, 24))
        values = values[:, ::step, ::step].repeat(step, 1).repeat(step, 2)[:, : image.shape[1], : image.shape[2]]
    mean = values.mean((1, 2), keepdims=True)
    share = np.float32(random.uniform(0.15, 1.0))
    soft: Photograph = (mean + (values - mean) * share).clip(0, 255).astype(np.uint8)
    return soft
