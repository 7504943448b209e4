"""Sequences for training, drawn from pieces: parts in a row, and their shots with new transitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vidkin.shots.network import SMALL
from vidkin_research.cut_network.effects import dip, grade, light, title
from vidkin_research.cut_network.pieces import GRADUAL, Join, Piece
from vidkin_research.made.gradual_sequences import COURSES, WIPE_SHAPES

__all__ = ["Pool", "targets"]

Small = NDArray[np.float32]

# Fewest frames of a shot that takes part in a new transition.
_SHOT = 14
_KINDS = {"hard": 0.36, "jump": 0.12, "dissolve": 0.19, "fade": 0.12, "wipe": 0.21}
_LONGEST = {"dissolve": 100, "fade": 50, "wipe": 70}


class Pool:
    """Draws sequences from pieces, the same ones for the same generator.

    Args:
        groups: Pieces by group.
        shares: How often each group is drawn from.
    """

    def __init__(self, groups: Mapping[str, Sequence[Piece]], shares: Mapping[str, float]) -> None:
        self._groups = [list(groups[name]) for name in shares]
        weights = np.array([shares[name] for name in shares])
        self._weights = weights / weights.sum()
        self._shots = [
            [(piece, first, count) for piece in pieces for first, count in piece.shots(_SHOT)]
            for pieces in self._groups
        ]

    def draw(
        self,
        length: int,
        random: np.random.Generator,
        *,
        spliced: float = 0.45,
        lit: float = 0.0,
        dips: float = 0.0,
        titles: float = 0.0,
    ) -> Piece:
        """A sequence of ``length`` frames, with the changes that films go through as a whole.

        Args:
            length: Number of frames.
            random: Source of everything random.
            spliced: Share of sequences with new transitions between shots.
            lit: Share of sequences under stage lights.
            dips: Share of sequences with a dip to a plain color within a shot.
            titles: Share of sequences with titles that come and go.
        """
        # Frames left out and repeated need more frames, or fewer.
        numbers = _speeds(length, random)
        whole = int(numbers[-1]) + 1
        piece = self._splice(whole, random) if random.random() < spliced else self._string(whole, random)
        piece = piece.pick(numbers)
        if random.random() < 0.3:
            piece = piece.reverse()
        if random.random() < lit:
            piece = light(piece, random)
        if random.random() < dips:
            piece = dip(piece, random)
        if random.random() < titles:
            piece = title(piece, random)
        return grade(piece, random)

    def _string(self, length: int, random: np.random.Generator) -> Piece:
        """Pieces or parts of them, one after the other, with hard cuts between."""
        parts: list[Piece] = []
        count = 0
        while count < length:
            group = self._groups[int(random.choice(len(self._groups), p=self._weights))]
            piece = group[int(random.integers(len(group)))]
            room = length - count
            if len(piece) > room:
                start = int(random.integers(len(piece) - room + 1))
                piece = piece.pick(np.arange(start, start + room))
            parts.append(_trim(piece, is_first=not parts, is_last=count + len(piece) >= length))
            count += len(piece)
        return _concatenate(parts)

    def _splice(self, length: int, random: np.random.Generator) -> Piece:
        """Shots of pieces with new transitions."""
        film = _Splice(length, random)
        while film.end < length:
            group = self._shots[int(random.choice(len(self._shots), p=self._weights))]
            piece, first, count = group[int(random.integers(len(group)))]
            film.add(piece, first, count)
        return film.finish()


def _speeds(length: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Numbers of the frames shown: mostly all of them, or every few; some left out, or repeated."""
    draw = random.random()
    places = np.arange(length)
    if draw < 0.22:
        return places * int(random.choice([2, 3, 4, 5, 6], p=[0.35, 0.3, 0.15, 0.12, 0.08]))  # cameras of low rates
    if draw < 0.25:
        return places // 4 * 8  # a frame or three a second, held
    if draw < 0.29:
        return places // 2 * (1 if random.random() < 0.5 else 2)  # films of half the rate
    if draw < 0.35:
        period = int(random.integers(4, 13))
        return places + places // period  # every so many left out, as at a variable rate
    if draw < 0.39:
        period = int(random.integers(4, 13))
        repeated: NDArray[np.int64] = np.maximum(places - (places % period == 0), 0)  # every so many shown twice
        return repeated
    return places


def _trim(piece: Piece, *, is_first: bool, is_last: bool) -> Piece:
    """Fades that reach the ends of a piece begin and end with a picture where it is not at the end of the film."""
    joins = []
    for kind, start, end in piece.joins:
        if kind == "fade":
            shown = np.flatnonzero(piece.luma[start : end + 1].reshape(end + 1 - start, -1).std(1) >= 1.0)
            if start == 0 and not is_first and len(shown):
                start += min(int(shown[0]), end - start - 1)
            if end == len(piece) - 1 and not is_last and len(shown):
                end = max(start + 1, min(end, start + int(shown[-1]) + 1))
        joins.append(Join(kind, start, end))
    return Piece(piece.luma, piece.chroma, tuple(joins))


def _concatenate(parts: Sequence[Piece]) -> Piece:
    joins: list[Join] = []
    count = 0
    for part in parts:
        if count:
            joins.append(Join("hard", count, count))
        joins += [Join(kind, start + count, end + count) for kind, start, end in part.joins]
        count += len(part)
    luma, chroma = (np.concatenate([getattr(part, name) for part in parts]) for name in ("luma", "chroma"))
    return Piece(luma, chroma, tuple(joins))


class _Splice:
    def __init__(self, length: int, random: np.random.Generator) -> None:
        self._random, self._length = random, length
        self._luma = np.zeros((length + 400, *SMALL), np.float32)
        self._chroma = np.full((length + 400, 2, SMALL[0] // 2, SMALL[1] // 2), 128, np.float32)
        self._joins: list[Join] = []
        self._free = 0
        self._last: tuple[Piece, int, int, int] | None = None
        self._look = _looks(random)
        self.end = 0

    def add(self, piece: Piece, first: int, count: int) -> None:
        random = self._random
        kind = str(random.choice(list(_KINDS), p=list(_KINDS.values()))) if self.end else "hard"
        whole = min(count, _shot_length(random))
        start = first + int(random.integers(count - whole + 1))
        if kind == "jump":
            again = self._again()
            if again is None:
                kind = "hard"
            else:
                piece, first, count, start = again
                whole = min(first + count - start, _shot_length(random))
        look = _looks(random) if kind != "jump" else self._look
        luma, chroma = look(piece.luma[start : start + whole], piece.chroma[start : start + whole])
        free = self.end - self._free - 3
        span = min(_LONGEST.get(kind, 0), free, whole - 4)
        if kind in GRADUAL and span >= 4:
            span = int(np.exp(random.uniform(np.log(4), np.log(span + 1))))
            self._mix(kind, luma, chroma, span)
        else:
            if self.end:
                self._joins.append(Join("jump" if kind == "jump" else "hard", self.end, self.end))
                self._free = self.end
            self._append(luma, chroma)
        self._look = look
        self._last = (piece, first, count, start + whole)

    def finish(self) -> Piece:
        last = self._length - 1
        joins = [
            Join(kind, start, min(end, last))
            for kind, start, end in self._joins
            if start <= last and (kind not in GRADUAL or min(end, last) > start)
        ]
        luma, chroma = (
            rows[: self._length].round().clip(0, 255).astype(np.uint8) for rows in (self._luma, self._chroma)
        )
        return Piece(luma, chroma, tuple(joins))

    def _again(self) -> tuple[Piece, int, int, int] | None:
        """The shot before, and where a later part of it begins, if it looks different there."""
        if self._last is None:
            return None
        piece, first, count, end = self._last
        room = first + count - end - 10
        if room < _SHOT:
            return None
        start = end + 10 + int(self._random.integers(min(60, room - 8)))
        old, new = (piece.luma[place].astype(np.float32) for place in (end - 1, start))
        near = piece.luma[max(first, end - 2)].astype(np.float32)
        change, usual = np.abs(old - new).mean(), np.abs(old - near).mean()
        # What cannot be told from movement is no jump.
        if change < 3 or change < 2.5 * usual:
            return None
        return piece, first, count, start

    def _append(self, luma: Small, chroma: Small) -> None:
        count = min(len(luma), len(self._luma) - self.end)
        self._luma[self.end : self.end + count] = luma[:count]
        self._chroma[self.end : self.end + count] = chroma[:count]
        self.end += count

    def _mix(self, kind: str, luma: Small, chroma: Small, span: int) -> None:
        random = self._random
        course = ((np.arange(span) + 1) / (span + 1)).astype(np.float32)
        if random.random() < 0.35:
            course = COURSES[str(random.choice(list(COURSES)))](course)
        if kind == "fade":
            self._fade(luma, chroma, course)
            return
        begin = self.end - span
        old = self._luma[begin : self.end].copy(), self._chroma[begin : self.end].copy()
        new = luma[:span], chroma[:span]
        if kind == "dissolve":
            parts = course[:, None, None]
            mixed = old[0] + (new[0] - old[0]) * parts, old[1] + (new[1] - old[1]) * parts[..., None]
        else:
            mixed = _wipe(old, new, course, random)
        self._luma[begin : self.end], self._chroma[begin : self.end] = mixed
        rows = [np.abs(mixed[0] - shot[0]).mean((1, 2)) for shot in (old, new)]
        apart = np.abs(old[0] - new[0]).mean((1, 2))
        inside = np.flatnonzero((np.array(rows) > np.maximum(0.01 * apart, 0.05)).all(0))
        first, last = (int(inside[0]), int(inside[-1])) if len(inside) > 1 else (0, span - 1)
        self._joins.append(Join(kind, begin + first, begin + last))
        self._free = self.end
        self._append(luma[span:], chroma[span:])

    def _fade(self, luma: Small, chroma: Small, course: Small) -> None:
        """Out to a plain background, a moment of it, and in again; or one of both, with a cut."""
        random, span = self._random, len(course)
        ground = float(random.choice([0, 16, 255, 235, random.uniform(0, 255)], p=[0.3, 0.35, 0.1, 0.15, 0.1]))
        ways = random.choice(3, p=[0.7, 0.15, 0.15])
        begin = self.end
        if ways != 2:
            begin -= span
            parts = course[:, None, None]
            self._luma[begin : self.end] += (ground - self._luma[begin : self.end]) * parts
            self._chroma[begin : self.end] += (128 - self._chroma[begin : self.end]) * parts[..., None]
        hold = int(random.integers(0, 12) if random.random() < 0.7 else random.integers(12, 45))
        plain = np.full((hold, *SMALL), ground, np.float32), np.full((hold, *self._chroma.shape[1:]), 128, np.float32)
        middle = self.end
        self._append(*plain)
        into = min(span, len(luma) - 3) if ways != 1 else 0
        if into > 1:
            parts = course[::-1][:into][:, None, None]
            luma[:into] += (ground - luma[:into]) * parts
            chroma[:into] += (128 - chroma[:into]) * parts[..., None]
        end = self.end + max(0, into - 1)
        if ways == 1:
            self._joins += [Join("fade", begin, middle - 1), Join("hard", self.end, self.end)]
        elif ways == 2:
            self._joins += [Join("hard", middle, middle)] if hold > 1 else []
            self._joins.append(Join("fade", self.end, end))
        elif hold <= 25:
            self._joins.append(Join("fade", begin, end))
        else:
            self._joins += [Join("fade", begin, middle - 1), Join("fade", self.end, end)]
        self._append(luma, chroma)
        self._free = end + 1


def _shot_length(random: np.random.Generator) -> int:
    return int(np.exp(random.uniform(np.log(8), np.log(170))))


def _looks(random: np.random.Generator) -> Callable[..., tuple[Small, Small]]:
    """A look of a shot: gain, lift, saturation and side."""
    gain, lift = float(random.uniform(0.6, 1.2)), float(random.uniform(-12, 12))
    if random.random() < 0.12:
        gain *= 0.35
    saturation = float(random.uniform(0.3, 1.3)) if random.random() < 0.9 else 0.0
    flips = bool(random.random() < 0.5)

    def look(luma: NDArray[np.uint8], chroma: NDArray[np.uint8]) -> tuple[Small, Small]:
        if flips:
            luma, chroma = luma[..., ::-1], chroma[..., ::-1]
        values = (luma.astype(np.float32) * gain + lift).clip(0, 255)
        return values, (chroma.astype(np.float32) - 128) * saturation + 128

    return look


def _wipe(
    old: tuple[Small, Small], new: tuple[Small, Small], course: Small, random: np.random.Generator
) -> tuple[Small, Small]:
    """The new shot over the old one: by a mask of some shape, or moved in from a side."""
    height, width = SMALL
    if random.random() < 0.72:
        down = ((np.arange(height, dtype=np.float32) + 0.5) / height)[:, None] + np.zeros((1, width), np.float32)
        across = ((np.arange(width, dtype=np.float32) + 0.5) / width)[None] + np.zeros((height, 1), np.float32)
        field = WIPE_SHAPES[str(random.choice(list(WIPE_SHAPES)))](down, across)
        soft = float(random.choice([0.02, 0.1, 0.3, 0.6, 1.0], p=[0.55, 0.1, 0.15, 0.1, 0.1]))
        mask = ((course[:, None, None] * (1 + soft) - field) / soft).clip(0, 1).astype(np.float32)
        mask = mask * mask * (3 - 2 * mask)
        small = mask.reshape(len(mask), height // 2, 2, width // 2, 2).mean((2, 4))[:, None]
        return old[0] + (new[0] - old[0]) * mask, old[1] + (new[1] - old[1]) * small
    # From the right or from the top: the other sides are held back.
    axis, pushes = (2 if random.random() < 0.5 else 1), bool(random.random() < 0.5)
    mixed = old[0].copy(), old[1].copy()
    for place, part in enumerate(course):
        for whole, before, after in zip(mixed, old, new, strict=True):
            own = axis - 3  # rows and columns are the last two
            side = whole.shape[own]
            edge = round(float(part) * side)
            frame, first, second = (np.moveaxis(rows[place], own, -1) for rows in (whole, before, after))
            if axis == 2:
                frame[..., side - edge :] = second[..., :edge]
                if pushes:
                    frame[..., : side - edge] = first[..., edge:]
            else:
                frame[..., :edge] = second[..., side - edge :]
                if pushes:
                    frame[..., edge:] = first[..., : side - edge]
    return mixed


def targets(piece: Piece) -> NDArray[np.float32]:
    """[T, 8] in the order of answers; kinds outside of gradual transitions, and whether an unknown cut or none is a
    jump, are -1, and so are the distances outside of gradual transitions."""
    wanted = np.zeros((len(piece), 8), np.float32)
    wanted[:, [1, 3, 4, 5, 6, 7]] = -1
    for kind, start, end in piece.joins:
        if kind in GRADUAL:
            frames = np.arange(start, end + 1)
            wanted[start : end + 1, 2] = 1
            wanted[start : end + 1, 3:6] = 0
            wanted[start : end + 1, 3 + GRADUAL.index(kind)] = 1
            wanted[start : end + 1, 6] = np.log1p(frames - start)
            wanted[start : end + 1, 7] = np.log1p(end - frames)
        else:
            wanted[start, 0] = 1
            if kind != "cut":
                wanted[start, 1] = kind == "jump"
    return wanted
