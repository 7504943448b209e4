"""Compose sequences of single shots with cuts, dissolves, fades and wipes at exactly known frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin_research.made.footage import Footage
from vidkin_research.made.takes import ShotMaker, ShotPictures

__all__ = ["Composition", "compose"]

_MAX_DISSOLVE = 30
_MAX_FADE = 45
# Extra frames per shot, so that a transition has frames from both sides.
_SPARE = 35
# A fade-out and a fade-in are one transition if the background between them lasts at most this many frames.
_ONE_FADE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """Frames with their cuts and transitions.

    Attributes:
        pictures: [T, 3, H, W] uint8, luma and chroma.
        hard: First frames of new shots after hard cuts.
        gradual: First and last frame of each gradual transition.
        kinds: ``dissolve``, ``fade`` or ``wipe`` for each gradual transition.
    """

    pictures: NDArray[np.uint8]
    hard: tuple[int, ...]
    gradual: tuple[tuple[int, int], ...]
    kinds: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.pictures)


def compose(footage: Footage, length: int, *, seed: int, degrade: bool = True) -> Composition:
    """Compose a sequence: shots of 3 to 110 frames, one in six shorter than 14; over half of the cuts are hard.

    Args:
        footage: Footage to compose the sequence from.
        length: T, number of frames.
        seed: Random seed; the same seed gives the same sequence.
        degrade: Whether to add noise, bars, logos, limited range and loss of detail between key frames, as in encoded
            video; use False if the frames will be encoded.

    Returns:
        The sequence. Dissolves and wipes take 2 to 30 frames; fades to and from black, white or another color take up
        to 45 frames each way. Disturbances from `ShotMaker` (flashes, zooms, shake, crossing objects) are not labeled.
    """
    if length < 2:
        raise InvalidArgumentError(f"length must be at least 2 frames, got {length}")
    composer = _SequenceComposer(footage, np.random.default_rng(seed), length)
    while composer.end < length:
        composer.add_shot()
    return composer.finish(degrade=degrade)


class _SequenceComposer:
    def __init__(self, footage: Footage, random: np.random.Generator, length: int) -> None:
        self._random = random
        self._maker = ShotMaker(footage, random)
        self._length = length
        self._pictures = np.zeros((length + 300, 3, footage.height, footage.width), np.float32)
        self._hard: list[int] = []
        self._gradual: list[tuple[int, int]] = []
        # First frame -> kind of transition, except fades.
        self._mixed: dict[int, str] = {}
        self.end = 0

    def add_shot(self) -> None:
        """Append a shot and the transition before it."""
        random = self._random
        length = int(random.integers(3, 14) if random.random() < 0.18 else random.integers(14, 110))
        shot = self._maker.draw(length + _SPARE)
        if self.end == 0:
            self._fade_in(shot, length) if random.random() < 0.3 else self._append(shot[:length])
            return
        kind = random.choice(["hard", "dissolve", "wipe", "fade", "fade in"], p=[0.55, 0.17, 0.07, 0.14, 0.07])
        if kind in ("dissolve", "wipe"):
            span = min(int(random.integers(2, _MAX_DISSOLVE + 1)), self._free(), length - 3)
            if span >= 2:
                wipe = kind == "wipe"
                start = self.end - span
                course = (np.arange(span, dtype=np.float32) + 1) / (span + 1)
                before = self._pictures[start : self.end]
                if wipe:
                    way = int(self._random.integers(4))
                    for frame, following, part in zip(before, shot, course, strict=False):
                        area = _wipe_area(frame.shape[1:], way, float(part))
                        frame[:, area] = following[:, area]
                else:
                    if self._random.random() < 0.3:
                        course = course**2 * (3 - 2 * course)
                    before[:] = _blend(before, shot[:span], course)
                self._gradual.append((start, self.end - 1))
                self._mixed[start] = "wipe" if wipe else "dissolve"
                self._append(shot[span:length])
                return
        elif kind == "fade":
            self._fade_through(shot, length)
            return
        elif kind == "fade in":
            self._hard.append(self.end)  # a cut to the background from which the next shot fades in
            self._append(self._make_background(int(random.integers(3, 25))))
            self._fade_in(shot, length)
            return
        self._hard.append(self.end)
        self._append(shot[:length])

    def finish(self, *, degrade: bool) -> Composition:
        """Return the composed sequence, trimmed to its length."""
        pictures = self._pictures[: self._length]
        if degrade:
            pictures = degrade_pictures(pictures, self._random)
        gradual = [(first, min(last, self._length - 1)) for first, last in self._gradual if first < self._length]
        return Composition(
            pictures.clip(0, 255).astype(np.uint8),
            tuple(cut for cut in self._hard if cut < self._length),
            tuple(gradual),
            tuple(self._mixed.get(first, "fade") for first, _ in gradual),
        )

    def _free(self) -> int:
        """Return the number of frames at the end that are not part of a transition, minus two."""
        touched = [*self._hard, *(last + 1 for _, last in self._gradual)]
        return self.end - max(touched, default=0) - 2

    def _append(self, pictures: ShotPictures) -> None:
        self._pictures[self.end : self.end + len(pictures)] = pictures
        self.end += len(pictures)

    def _fade_through(self, shot: ShotPictures, length: int) -> None:
        """Fade out to a plain background, then fade in or cut to the shot."""
        random = self._random
        out = min(int(random.integers(3, _MAX_FADE)), self._free())
        if out < 2:
            self._hard.append(self.end)
            self._append(shot[:length])
            return
        ground = self._make_background(1)[0]
        course = (np.arange(out, dtype=np.float32) + 1) / out
        faded = self._pictures[self.end - out : self.end]
        faded[:] = _blend(faded, ground[None], course)
        hold = int(random.integers(0, 12) if random.random() < 0.6 else random.integers(0, 40))
        begin = self.end - out
        self._append(np.repeat(ground[None], hold, 0))
        if random.random() < 0.2:
            self._gradual.append((begin, begin + out - 1))
            self._hard.append(self.end)
            self._append(shot[:length])
            return
        self._fade_in(shot, length, ground=ground)
        if hold <= _ONE_FADE:
            self._gradual[-1] = (begin, self._gradual[-1][1])
        else:
            self._gradual.insert(-1, (begin, begin + out - 1))

    def _fade_in(self, shot: ShotPictures, length: int, *, ground: ShotPictures | None = None) -> None:
        span = min(int(self._random.integers(3, _MAX_FADE)), length - 1)
        if ground is None:
            ground = self._pictures[self.end - 1] if self.end else self._make_background(1)[0]
        course = np.arange(span, dtype=np.float32) / span
        shot[:span] = _blend(ground[None], shot[:span], course)
        self._gradual.append((self.end, self.end + span - 1))
        self._append(shot[:length])

    def _make_background(self, length: int) -> ShotPictures:
        random = self._random
        kind = random.random()
        luma = 0.0 if kind < 0.7 else 255.0 if kind < 0.9 else float(random.integers(0, 255))
        ground = np.full((length, *self._pictures.shape[1:]), 128.0, np.float32)
        ground[:, 0] = luma
        return ground


def _blend(one: ShotPictures, other: ShotPictures, course: NDArray[np.floating]) -> ShotPictures:
    part = course.astype(np.float32)[:, None, None, None]
    mixed: ShotPictures = one * (1 - part) + other * part
    return mixed


def _wipe_area(shape: tuple[int, ...], way: int, part: float) -> NDArray[np.bool_]:
    """Return the area [H, W] that shows the new shot, growing from one of the four sides."""
    area = np.zeros(shape, np.bool_)
    rows, columns = round(part * shape[0]), round(part * shape[1])
    if way == 0:
        area[:, :columns] = True
    elif way == 1:
        area[:, shape[1] - columns :] = True
    elif way == 2:
        area[:rows] = True
    else:
        area[shape[0] - rows :] = True
    return area


def degrade_pictures(pictures: ShotPictures, random: np.random.Generator) -> ShotPictures:
    """Degrade a film with bars, a logo, limited range, noise, and loss of detail between key frames."""
    length, _, height, width = pictures.shape
    pictures = pictures.copy()
    if random.random() < 0.3:
        bar = int(random.uniform(0.04, 0.15) * height)
        for rows in (slice(None, bar), slice(height - bar, None)):
            pictures[:, 0, rows], pictures[:, 1:, rows] = 16, 128
    if random.random() < 0.2:
        corner = slice(height // 18, height // 6), slice(round(0.78 * width), round(0.97 * width))
        pictures[:, 0, corner[0], corner[1]] = random.integers(0, 255)
    if random.random() < 0.5:
        pictures[:, 0] = pictures[:, 0] * (219 / 255) + 16
    pictures += random.normal(size=pictures.shape).astype(np.float32) * random.uniform(0, 3)
    if random.random() < 0.5:
        period = random.integers(6, 60)
        lost = (0.5 * (np.arange(length) % period) / period)[:, None, None, None].astype(np.float32)
        coarse = pictures[:, :, ::2, ::2].repeat(2, 2).repeat(2, 3)
        pictures = pictures * (1 - lost) + coarse * lost
    return pictures
