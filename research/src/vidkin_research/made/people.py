"""A person in front of a fixed camera: a body that sways a little, and a head and hands that move."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vidkin_research.made.scenes import Course, Sprite, StageScene

__all__ = ["draw_person"]

Photograph = NDArray[np.uint8]


def draw_person(
    photographs: tuple[Photograph, ...], size: tuple[int, int], random: np.random.Generator
) -> StageScene:
    """A scene of one or two people in front of a wall: a jump cut in it leaves most of the picture as it is.

    Args:
        photographs: [3, h, w] uint8, textures for background and people.
        size: H and W of the pictures.
        random: Source of all random numbers.
    """
    background = _soften(photographs[random.integers(len(photographs))], random, coarse=True)
    people: list[Sprite] = []
    for _ in range(1 if random.random() < 0.75 else 2):
        people += _person(photographs, random)
    return StageScene(background, size, tuple(people))


def _person(photographs: tuple[Photograph, ...], random: np.random.Generator) -> list[Sprite]:
    """A body, a head and two hands, in shares of the background's height."""
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
        place = top + height * float(random.uniform(0.1, 0.7)), left + width * side
        long = hand * float(random.uniform(1, 2.5))
        parts.append(_part(photographs, random, (long, hand), (moves[0], moves[1]), place))
    return parts


def _part(
    photographs: tuple[Photograph, ...],
    random: np.random.Generator,
    sides: tuple[float, float],
    moves: tuple[Course, Course],
    place: tuple[float, float],
) -> Sprite:
    source = photographs[random.integers(len(photographs))]
    rows, columns = (
        max(4, min(int(side * source.shape[1]), whole))
        for side, whole in zip(sides, source.shape[1:], strict=True)
    )
    top = int(random.integers(0, source.shape[1] - rows + 1))
    left = int(random.integers(0, source.shape[2] - columns + 1))
    image = _soften(source[:, top : top + rows, left : left + columns], random)
    y = (np.arange(rows) + 0.5) / rows * 2 - 1
    x = (np.arange(columns) + 0.5) / columns * 2 - 1
    mask: NDArray[np.bool_] = np.abs(y[:, None]) ** 3 + np.abs(x[None]) ** 3 <= 1
    # A wave without end adds the place that a course goes about.
    courses = [
        replace(move, reach=(*move.reach, at), period=(*move.period, 1e9), phase=(*move.phase, np.pi / 2))
        for move, at in zip(moves, place, strict=True)
    ]
    return Sprite(image, mask, *courses)


def _soften(image: Photograph, random: np.random.Generator, *, coarse: bool = False) -> Photograph:
    """The image with less contrast, as cloth, skin and walls have; a coarse one loses its detail as well."""
    values = image.astype(np.float32)
    if coarse and random.random() < 0.7:
        step = int(random.integers(4, 24))
        values = (
            values[:, ::step, ::step].repeat(step, 1).repeat(step, 2)[:, : image.shape[1], : image.shape[2]]
        )
    mean = values.mean((1, 2), keepdims=True)
    share = np.float32(random.uniform(0.15, 1.0))
    soft: Photograph = (mean + (values - mean) * share).clip(0, 255).astype(np.uint8)
    return soft
