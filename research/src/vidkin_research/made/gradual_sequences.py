"""Compose training sequences with transitions of any length and shape, and with look-alike events."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vidkin_research.made.disturbances import DISTURBANCES, disturb
from vidkin_research.made.footage import Footage
from vidkin_research.made.sequences import Composition, degrade_pictures
from vidkin_research.made.takes import ShotMaker, ShotPictures, mirrored

__all__ = ["WIPE_SHAPES", "compose_gradual"]

_NEUTRAL = 128.0
_LONGEST = 125
_KINDS = {"hard": 0.2, "dissolve": 0.3, "fade": 0.14, "wipe": 0.36}
_DISTURBED = 0.06

# Fraction of shots in which a camera moves over an image, or rotates, and of wipes with a colored line at the edge.
_WANDERED, _TURNED, _LINED = 0.14, 0.06, 0.15

# A transition starts at the first frame whose difference from the old shot is at least this fraction of the difference
# between the two shots.
_MIN_VISIBLE = 0.01

Field = NDArray[np.floating]
"""[H, W] in [0, 1]: the progress at which each pixel changes."""

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
    "diamond": lambda down, across: abs(down - 0.5) + abs(across - 0.5),
    "rectangle": lambda down, across: 2 * np.maximum(abs(down - 0.5), abs(across - 0.5)),
    "ellipse": lambda down, across: np.hypot(down - 0.5, 2 * across - 1) / np.float32(1.12),
    "blinds": lambda down, across: (down * 6) % 1,
    "columns": lambda down, across: (across * 5) % 1,
    "checks": lambda down, across: ((across * 4) % 1 + np.floor(down * 6) % 2) / 2,
    "waves": lambda down, across: (across + 0.12 * np.sin(9 * down) + 0.12) / np.float32(1.24),
    "steps": lambda down, across: (np.floor(down * 5) / 5 + across) / np.float32(1.8),
}
"""Wipe shapes as functions of the row and column in [0, 1]. They must not include shapes of held-out families
(`vidkin_research.made.transitions`): from the top, closing irises, clocks."""

COURSES: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "even": lambda part: part,
    "slow at both ends": lambda part: part**2 * (3 - 2 * part),
    "faster": lambda part: part**2,
    "slower": lambda part: 1 - (1 - part) ** 2,
}
"""Progress of a transition as a function of the elapsed fraction of its duration."""


def compose_gradual(footage: Footage, length: int, *, seed: int) -> Composition:
    """Compose a sequence: shots of 24 to 190 frames, three in four joined by a gradual transition.

    Dissolves take 4 to 125 frames, and half of them are long. Wipes of many shapes and speeds with hard and soft edges,
    slides, covers, and shots that shrink or grow take 5 to 75 frames; fades take up to 50 frames each way. One sequence
    in six is a single shot. Shots have the distractors of `ShotMaker`, disturbances, cameras that move over an image,
    rotate or whip, screens with changing content, and text and bands that appear or move.

    Args:
        footage: Footage to compose the sequence from.
        length: T, number of frames.
        seed: Random seed; the same seed gives the same sequence.
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
                self._fade_in(shot, self._make_background())
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
        """Return the sequence, trimmed to its length and degraded as if encoded."""
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
        wandered = random.random() < _WANDERED
        shot = self._wander(length) if wandered else self._maker.draw(length)
        if not wandered and length > 20 and random.random() < _TURNED:
            shot = self._rotate(shot)
        for name in DISTURBANCES:
            if random.random() < _DISTURBED:
                shot = disturb(shot, name, random)
        if length > 40 and random.random() < _DISTURBED:
            self._whip(shot)
        if length > 30 and random.random() < 2 * _DISTURBED:
            self._inset(shot)
        if length > 40 and random.random() < 3 * _DISTURBED:
            (self._move_letters if random.random() < 0.4 else self._fade_letters)(shot)
        return shot

    def _mix(self, kind: str, whole: int, free: int) -> None:
        random = self._random
        longest = min(_LONGEST if kind == "dissolve" else 75, free)
        span = longest
        if longest > 5:
            span = int(np.exp(random.uniform(np.log(4), np.log(longest + 1))))
            if kind == "dissolve" and random.random() < 0.5:
                span = int(random.uniform(min(20, longest), longest + 1))
        before = self._pictures[self.end - span : self.end]
        shot = self._shot(whole + span)
        if kind == "dissolve" and random.random() < 0.4:
            # Join a take with a slightly closer view of the same take.
            shot = _zoom(self._pictures[max(0, self.end - whole - span) : self.end][::-1], random.uniform(0.6, 0.95))
            span = min(span, len(shot) - 4)
            before = self._pictures[self.end - span : self.end]
        old = before.copy()
        course = ((np.arange(span) + 1) / (span + 1)).astype(np.float32)
        if random.random() < 0.35:
            course = COURSES[str(random.choice(list(COURSES)))](course)
        if kind == "dissolve":
            before[:] = before + (shot[:span] - before) * course[:, None, None, None]
        else:
            self._cover(before, shot[:span], course)
        first, last = _visible_range(before, old, shot[:span])
        self._gradual.append((self.end - span + first, self.end - span + last, kind))
        self._free = self.end
        self._append(shot[span:])

    def _cover(self, before: ShotPictures, after: ShotPictures, course: NDArray[np.float32]) -> None:
        """Cover the old shot with the new one in a random way: wipe, slide or resize."""
        shape = self._random.random()
        if shape < 0.6:
            self._wipe(before, after, course)
        elif shape < 0.82:
            self._slide(before, after, course, moves_out=shape < 0.72)
        else:
            self._resize(before, after, course)

    def _wipe(self, before: ShotPictures, after: ShotPictures, course: NDArray[np.float32]) -> None:
        random, (height, width) = self._random, before.shape[2:]
        down = ((np.arange(height, dtype=np.float32) + 0.5) / height)[:, None] + np.zeros((1, width), np.float32)
        across = ((np.arange(width, dtype=np.float32) + 0.5) / width)[None] + np.zeros((height, 1), np.float32)
        field = WIPE_SHAPES[str(random.choice(list(WIPE_SHAPES)))](down, across)
        soft = float(random.choice([0.01, 0.05, 0.3, 0.6, 1.0], p=[0.5, 0.1, 0.15, 0.15, 0.1]))
        luma = float(random.choice([0, 255])) if random.random() < _LINED else None
        for frame, following, part in zip(before, after, course, strict=True):
            mask = ((part * (1 + soft) - field) / soft).clip(0, 1)
            mask = mask * mask * (3 - 2 * mask)
            frame += (following - frame) * mask
            if luma is not None:
                frame[0][abs(field - part) < 0.02] = luma

    def _slide(
        self, before: ShotPictures, after: ShotPictures, course: NDArray[np.float32], *, moves_out: bool
    ) -> None:
        """Slide the new shot in from a side; it pushes the old one out or covers it."""
        axis = int(self._random.integers(1, 3))
        # Only to the left and down, because the other directions are held out.
        side, way = before.shape[1 + axis], 1 if axis == 1 else -1
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

    def _resize(self, before: ShotPictures, after: ShotPictures, course: NDArray[np.float32]) -> None:
        """Shrink the old shot over the new one, or grow the new one over the old one."""
        random, (height, width) = self._random, before.shape[2:]
        shrinks, lines = random.random() < 0.6, random.random() < 0.7
        for frame, following, part in zip(before, after, course, strict=True):
            share = max(1 - float(part) if shrinks else float(part), 0.02)
            small, ground = (frame.copy(), following) if shrinks else (following, frame.copy())
            rows = (np.arange(height) + 0.5 - height / 2) / share + height / 2
            columns = np.arange(width) + 0.5 if lines else (np.arange(width) + 0.5 - width / 2) / share + width / 2
            down, across = (rows >= 0) & (rows < height), (columns >= 0) & (columns < width)
            frame[:] = ground
            places = np.ix_(np.arange(3), np.flatnonzero(down), np.flatnonzero(across))
            frame[places] = small[:, rows[down].astype(int)[:, None], columns[across].astype(int)[None]]

    def _fade(self, shot: ShotPictures, free: int) -> None:
        random = self._random
        ground = self._make_background()
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

    def _make_background(self) -> NDArray[np.float32]:
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
        """Change the content of a screen within the frame twice."""
        random, (height, width) = self._random, shot.shape[2:]
        tall, wide = (int(side * random.uniform(0.25, 0.6)) for side in (height, width))
        top, left = int(random.integers(0, height - tall)), int(random.integers(0, width - wide))
        rows, columns = (np.linspace(0, side - 1, own).astype(int) for side, own in ((height, tall), (width, wide)))
        starts = sorted(random.integers(0, len(shot), int(random.integers(1, 5))).tolist())
        screen = shot[:, :, top : top + tall, left : left + wide]
        for start in starts:
            shown = self._maker.draw(len(shot) - start)[:, :, rows[:, None], columns[None]]
            edge = int(random.integers(2, 25)) if random.random() < 0.4 else 0
            part = ((np.arange(len(shown)) + 1) / (edge + 1)).clip(0, 1).astype(np.float32)[:, None, None, None]
            if edge and random.random() < 0.5:
                # Slide in instead of dissolving.
                part = (np.linspace(0, 1, wide, dtype=np.float32)[None, None, None] <= part).astype(np.float32)
            screen[start:] += (shown - screen[start:]) * part

    def _wander(self, length: int) -> ShotPictures:
        """Move a camera smoothly over one image for the whole shot."""
        random, footage = self._random, self._footage
        height, width = footage.height, footage.width
        if footage.photographs and random.random() < 0.7:
            picture = footage.photographs[random.integers(len(footage.photographs))]
        else:
            clip = footage.clips[random.integers(len(footage.clips))]
            picture = clip.pictures(np.array([random.integers(len(clip))]))[0]
        rows, columns = picture.shape[1:]
        near, far = np.log(random.uniform(0.2, 0.6, 2)).tolist()
        share = np.exp(np.linspace(near, far, length))
        part = np.linspace(0, min(1.0, length / random.uniform(50, 200)), length)
        down, across = (
            _make_curve(random.uniform(0.3, 0.7, 3) if random.random() < 0.3 else random.uniform(0.1, 0.9, 3), part)
            for _ in range(2)
        )
        frames = np.empty((length, 3, height, width), np.float32)
        for frame, own, row, column in zip(frames, share, down, across, strict=True):
            places = []
            for side, count, middle in ((rows, height, row), (columns, width, column)):
                reach = own * side
                first = (side - reach) * middle
                places.append((first + (np.arange(count) + 0.5) * reach / count).clip(0, side - 1.001))
            frame[:] = _interpolate(picture, *places)
        return frames

    def _rotate(self, shot: ShotPictures) -> ShotPictures:
        """Rotate the camera around its optical axis; the image is mirrored beyond its edges."""
        random, (height, width) = self._random, shot.shape[2:]
        angles = np.deg2rad(np.linspace(0, random.uniform(0.2, 2.0) * len(shot) * random.choice([-1, 1]), len(shot)))
        down, across = np.arange(height)[:, None] - height / 2, np.arange(width)[None] - width / 2
        turned = np.empty_like(shot)
        for frame, old, angle in zip(turned, shot, angles.tolist(), strict=True):
            rows = np.cos(angle) * down - np.sin(angle) * across + height / 2
            columns = np.sin(angle) * down + np.cos(angle) * across + width / 2
            frame[:] = old[:, mirrored(rows, height), mirrored(columns, width)]
        return turned

    def _move_letters(self, shot: ShotPictures) -> None:
        """Add lines of text that roll or crawl through the frame, or a band that enters from a side and leaves."""
        random, (height, width) = self._random, shot.shape[2:]
        span = int(random.integers(25, min(len(shot), 110)))
        start = int(random.integers(0, len(shot) - span + 1))
        luma, crawls = float(random.choice([16, 120, 200, 235])), random.random() < 0.5
        layer = np.zeros((2 * height, 2 * width), bool)
        for _ in range(int(random.integers(1, 5))):
            top, tall = int(random.integers(0, height - 12)), int(random.integers(4, 12))
            left, wide = int(random.integers(0, width // 2)), int(random.integers(width // 4, width))
            ink = random.random((1, wide)) < 0.6 if random.random() < 0.7 else np.ones((1, wide), bool)
            layer[top : top + tall, left : left + wide] = np.repeat(ink, 3, 1)[:, :wide]
        edge, stays = int(random.integers(3, 15)), random.random() < 0.5
        for step in range(span):
            part = 1 - 2 * (step + 1) / (span + 1)
            if stays:
                part = 1 - min(1.0, (step + 1) / edge, (span - step) / edge)
            shift = int(part * (width if crawls else height))
            area = np.roll(layer, shift, 1 if crawls else 0)[:height, :width]
            shot[start + step, 0][area] = luma

    def _fade_letters(self, shot: ShotPictures) -> None:
        """Add text or a band that fades in, holds and fades out."""
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
        for step in range(span):
            part = min(1.0, (step + 1) / edge, (span - step) / edge)
            shot[start + step, 0][area] += (235 - shot[start + step, 0][area]) * part


def _zoom(pictures: ShotPictures, share: float) -> ShotPictures:
    height, width = pictures.shape[2:]
    rows, columns = ((np.arange(side) * share + side * (1 - share) / 2).astype(int) for side in (height, width))
    return pictures[:, :, rows[:, None], columns[None]].copy()


def _visible_range(mixed: ShotPictures, one: ShotPictures, other: ShotPictures) -> tuple[int, int]:
    """Return the first and last frame that visibly differ from both shots, as composed videos are labeled."""
    away, left = (abs(mixed[:, 0] - shot[:, 0]).mean((1, 2)) for shot in (one, other))
    least = np.maximum(_MIN_VISIBLE * abs(one[:, 0] - other[:, 0]).mean((1, 2)), 0.05)
    inside = np.flatnonzero((away > least) & (left > least))
    return (int(inside[0]), int(inside[-1])) if len(inside) else (0, len(mixed) - 1)


def _make_curve(points: NDArray[np.float64], part: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a curve from the first of three positions to the last, bent toward the second."""
    first, middle, last = points.tolist()
    curve: NDArray[np.float64] = (1 - part) ** 2 * first + 2 * part * (1 - part) * middle + part**2 * last
    return curve


def _interpolate(picture: NDArray[np.generic], rows: NDArray[np.float64], columns: NDArray[np.float64]) -> ShotPictures:
    """Sample an image [3, h, w] with bilinear interpolation: [3, len(rows), len(columns)]."""
    row, column = rows.astype(int), columns.astype(int)
    down, across = (rows - row).astype(np.float32)[:, None], (columns - column).astype(np.float32)[None]
    below, right = (row + 1).clip(max=picture.shape[1] - 1), (column + 1).clip(max=picture.shape[2] - 1)
    top = picture[:, row[:, None], column] * (1 - across) + picture[:, row[:, None], right] * across
    bottom = picture[:, below[:, None], column] * (1 - across) + picture[:, below[:, None], right] * across
    mixed: ShotPictures = (top * (1 - down) + bottom * down).astype(np.float32)
    return mixed
