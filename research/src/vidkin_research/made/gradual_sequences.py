"""Sequences that teach a network transitions of any length and shape, and what looks like one but is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vidkin_research.made.disturbances import DISTURBANCES, disturb
from vidkin_research.made.footage import Footage
from vidkin_research.made.sequences import Composition, degrade_pictures
from vidkin_research.made.takes import ShotMaker, ShotPictures

__all__ = ["WIPE_SHAPES", "compose_gradual"]

_NEUTRAL = 128.0
_LONGEST = 125
_KINDS = {"hard": 0.22, "dissolve": 0.34, "fade": 0.18, "wipe": 0.26}
_DISTURBED = 0.06

Field = NDArray[np.floating]
"""[H, W] in 0..1: the progress at which each pixel changes."""

WIPE_SHAPES: dict[str, Callable[[Field, Field], Field]] = {
    "left": lambda down, across: across,
    "right": lambda down, across: 1 - across,
    "down": lambda down, across: down,
    "corner": lambda down, across: (1 - down + across) / 2,
    "circle": lambda down, across: np.hypot(down - 0.5, across - 0.5) / np.float32(0.71),
    "split": lambda down, across: abs(2 * down - 1),
    "doors": lambda down, across: 1 - abs(2 * across - 1),
    "product": lambda down, across: np.sqrt(down * across),
    "slices": lambda down, across: (across + (across * 8) % 1) / 2,
}
"""Shapes of wipes, from rows and columns in 0..1. Those of the families that are held back
(`vidkin_research.made.transitions`) must not be among them: from the top, closing irises, clocks."""


def compose_gradual(footage: Footage, length: int, *, seed: int) -> Composition:
    """Compose a sequence: shots of 24 to 190 frames, three in four joined by a gradual transition.

    Dissolves take 4 to 125 frames, half of them long; wipes of many shapes with hard and soft edges, slides
    and covers 5 to 60; fades up to 50 each way. One sequence in six is a single shot. Shots have the distractors of
    `ShotMaker`, disturbances, whip pans, and rectangles that show something else.

    Args:
        footage: Footage to compose the sequence from.
        length: T, number of frames.
        seed: The same seed gives the same sequence.
    """
    composer = _GradualComposer(footage, np.random.default_rng(seed), length)
    while composer.end < length:
        composer.add_shot()
    return composer.finish()


class _GradualComposer:
    def __init__(self, footage: Footage, random: np.random.Generator, length: int) -> None:
        self._random, self._length = random, length
        self._maker = ShotMaker(footage, random)
        self._footage = footage
        self._pictures = np.zeros((length + 400, 3, footage.height, footage.width), np.float32)
        self._hard: list[int] = []
        self._gradual: list[tuple[int, int, str]] = []
        self._free = 0  # frames before this one belong to a transition
        self.end = 0
        self._single = random.random() < 1 / 6

    def add_shot(self) -> None:
        random = self._random
        whole = int(np.exp(random.uniform(np.log(24), np.log(190)))) if not self._single else self._length
        if self.end == 0:
            shot = self._shot(whole)
            if random.random() < 0.2:
                self._fade_in(shot, self._ground())
            self._append(shot)
            return
        kind = str(random.choice(list(_KINDS), p=list(_KINDS.values())))
        free = self.end - self._free - 4
        if kind == "hard" or free < 5:
            self._hard.append(self.end)
            self._free = self.end
            self._append(self._shot(whole))
        elif kind == "fade":
            self._fade(self._shot(whole), free)
        else:
            self._mix(kind, whole, free)

    def finish(self) -> Composition:
        """The sequence, cut to length, as an encoder would leave it."""
        pictures = degrade_pictures(self._pictures[: self._length], self._random)
        last = self._length - 1
        gradual = [(first, min(end, last), kind) for first, end, kind in self._gradual if first <= last]
        return Composition(
            pictures.clip(0, 255).astype(np.uint8),
            tuple(cut for cut in self._hard if cut <= last),
            tuple((first, end) for first, end, _ in gradual),
            tuple(kind for _, _, kind in gradual),
        )

    def _append(self, pictures: ShotPictures) -> None:
        room = len(self._pictures) - self.end
        self._pictures[self.end : self.end + len(pictures)] = pictures[:room]
        self.end += min(len(pictures), room)

    def _shot(self, length: int) -> ShotPictures:
        random = self._random
        shot = self._maker.draw(length)
        for name in DISTURBANCES:
            if random.random() < _DISTURBED:
                shot = disturb(shot, name, random)
        if length > 40 and random.random() < _DISTURBED:
            self._whip(shot)
        if length > 30 and random.random() < 2 * _DISTURBED:
            self._inset(shot)
        if length > 40 and random.random() < 2 * _DISTURBED:
            self._letters(shot)
        return shot

    def _mix(self, kind: str, whole: int, free: int) -> None:
        random = self._random
        longest = min(_LONGEST if kind == "dissolve" else 60, free)
        span = longest
        if longest > 5:
            span = int(np.exp(random.uniform(np.log(4), np.log(longest + 1))))
            if kind == "dissolve" and random.random() < 0.5:
                span = int(random.uniform(min(20, longest), longest + 1))
        before = self._pictures[self.end - span : self.end]
        shot = self._shot(whole + span)
        if kind == "dissolve" and random.random() < 0.25:
            # From a take to itself, a little closer.
            shot = _closer(self._pictures[max(0, self.end - whole - span) : self.end][::-1], random.uniform(0.6, 0.95))
            span = min(span, len(shot) - 4)
            before = self._pictures[self.end - span : self.end]
        course = ((np.arange(span) + 1) / (span + 1)).astype(np.float32)
        shape = random.random() if kind == "wipe" else 1.0
        if kind == "dissolve":
            if random.random() < 0.3:
                course = course**2 * (3 - 2 * course)
            before[:] = before + (shot[:span] - before) * course[:, None, None, None]
        elif shape < 0.62:
            self._wipe(before, shot[:span], course)
        elif shape < 0.82:
            self._slide(before, shot[:span], course, moves_out=shape < 0.72)
        else:
            self._squeeze(before, shot[:span], course)
        self._gradual.append((self.end - span, self.end - 1, kind))
        self._free = self.end
        self._append(shot[span:])

    def _wipe(self, before: ShotPictures, after: ShotPictures, course: NDArray[np.float32]) -> None:
        random, (height, width) = self._random, before.shape[2:]
        down = ((np.arange(height, dtype=np.float32) + 0.5) / height)[:, None] + np.zeros((1, width), np.float32)
        across = ((np.arange(width, dtype=np.float32) + 0.5) / width)[None] + np.zeros((height, 1), np.float32)
        field = WIPE_SHAPES[str(random.choice(list(WIPE_SHAPES)))](down, across)
        soft = float(random.choice([0.01, 0.05, 0.3, 0.6, 1.0], p=[0.5, 0.1, 0.15, 0.15, 0.1]))
        for frame, following, part in zip(before, after, course, strict=True):
            mask = ((part * (1 + soft) - field) / soft).clip(0, 1)
            mask = mask * mask * (3 - 2 * mask)
            frame += (following - frame) * mask

    def _slide(
        self, before: ShotPictures, after: ShotPictures, course: NDArray[np.float32], *, moves_out: bool
    ) -> None:
        """The new shot comes in from a side and pushes the old one out, or covers it."""
        axis = int(self._random.integers(1, 3))
        side, way = before.shape[1 + axis], 1 if axis == 1 or self._random.random() < 0.5 else -1
        for frame, following, part in zip(before, after, course, strict=True):
            old, new = frame.copy(), following
            if way < 0:
                old, new = np.flip(old, axis), np.flip(new, axis)
            edge = round(float(part) * side)
            shown = [slice(None)] * 3
            rest = [slice(None)] * 3
            shown[axis], rest[axis] = slice(side - edge, side), slice(0, side - edge)
            kept = old[tuple(rest)] if moves_out else np.flip(np.flip(old, axis)[tuple(rest)], axis)
            joined = np.concatenate([new[tuple(shown)], kept], axis)
            frame[:] = np.flip(joined, axis) if way < 0 else joined

    def _squeeze(self, before: ShotPictures, after: ShotPictures, course: NDArray[np.float32]) -> None:
        """The old shot shrinks to a line over the new one."""
        height = before.shape[2]
        for frame, following, part in zip(before, after, course, strict=True):
            rows = (np.arange(height) + 0.5 - height / 2) / max(1 - float(part), 0.02) + height / 2
            inside = (rows >= 0) & (rows < height)
            old = frame.copy()
            frame[:] = following
            frame[:, inside] = old[:, rows[inside].astype(int)]

    def _fade(self, shot: ShotPictures, free: int) -> None:
        random = self._random
        ground = self._ground()
        out = int(random.integers(3, min(50, free) + 1))
        course = ((np.arange(out) + 1) / (out + 1)).astype(np.float32)[:, None, None, None]
        faded = self._pictures[self.end - out : self.end]
        faded[:] = faded * (1 - course) + ground * course
        begin = self.end - out
        hold = int(random.integers(0, 10) if random.random() < 0.75 else random.integers(10, 50))
        self._append(np.repeat(ground[None], hold + 1, 0))
        middle = self.end
        self._fade_in(shot, ground)
        first, last, _ = self._gradual[-1]
        if hold <= 10:
            self._gradual[-1] = (begin, last, "fade")
        else:
            self._gradual[-1:] = [(begin, middle - hold - 1, "fade"), (first, last, "fade")]
        self._append(shot)

    def _fade_in(self, shot: ShotPictures, ground: NDArray[np.float32]) -> None:
        span = int(self._random.integers(3, min(50, len(shot) - 2)))
        course = ((np.arange(span) + 1) / (span + 1)).astype(np.float32)[:, None, None, None]
        shot[:span] = ground + (shot[:span] - ground) * course
        self._gradual.append((self.end, self.end + span - 1, "fade"))
        self._free = self.end + span

    def _ground(self) -> NDArray[np.float32]:
        random = self._random
        luma = 0.0 if random.random() < 0.6 else 255.0 if random.random() < 0.7 else float(random.integers(0, 255))
        ground = np.full(self._pictures.shape[1:], _NEUTRAL, np.float32)
        ground[0] = luma
        return ground

    def _whip(self, shot: ShotPictures) -> None:
        random, width = self._random, shot.shape[3]
        span = int(random.integers(5, 16))
        start = int(random.integers(8, len(shot) - span - 8))
        course = ((np.arange(len(shot)) - start) / span).clip(0, 1)
        course = course**2 * (3 - 2 * course) * width * random.uniform(0.8, 2.2)
        speed = np.gradient(course)
        for frame, left, blur in zip(shot, course, speed, strict=True):
            wide = np.concatenate([frame, frame[:, :, ::-1], frame], 2)
            steps = [left + blur * share for share in (-0.25, -0.1, 0.1, 0.25)] if blur > 2 else [left]
            frame[:] = np.mean([np.roll(wide, -int(step), 2)[:, :, :width] for step in steps], 0)

    def _inset(self, shot: ShotPictures) -> None:
        """A screen in the picture shows something else, from some frame on."""
        random, (height, width) = self._random, shot.shape[2:]
        other = self._maker.draw(len(shot))
        tall, wide = (int(side * random.uniform(0.25, 0.55)) for side in (height, width))
        top, left = int(random.integers(0, height - tall)), int(random.integers(0, width - wide))
        start = int(random.integers(0, len(shot)))
        shot[start:, :, top : top + tall, left : left + wide] = other[start:, :, :tall, :wide]

    def _letters(self, shot: ShotPictures) -> None:
        """Letters or a band that fade in, stay and fade out."""
        random, (height, width) = self._random, shot.shape[2:]
        span = int(random.integers(15, min(len(shot), 80)))
        start, edge = int(random.integers(0, len(shot) - span + 1)), int(random.integers(1, 14))
        area = np.zeros((height, width), bool)
        top = int(random.integers(0, height - 20))
        line = slice(top, top + int(random.integers(6, 20)))
        if random.random() < 0.5:
            area[line] = True
        else:
            area[line, 10:-10] = np.repeat(random.random((1, width - 20)) < 0.6, line.stop - line.start, 0)
        for place in range(span):
            part = min(1.0, (place + 1) / edge, (span - place) / edge)
            shot[start + place, 0][area] += (235 - shot[start + place, 0][area]) * part


def _closer(pictures: ShotPictures, share: float) -> ShotPictures:
    height, width = pictures.shape[2:]
    rows, columns = ((np.arange(side) * share + side * (1 - share) / 2).astype(int) for side in (height, width))
    return pictures[:, :, rows[:, None], columns[None]].copy()
