"""Small frames of videos with their transitions: what the network sees and learns from."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike, replace_file
from vidkin.media import iter_planes
from vidkin.shots.network import GRID, shrink_planes

__all__ = ["GRADUAL", "Join", "Piece", "read_piece", "read_pieces", "shrink", "write_pieces"]

Frames = NDArray[np.uint8]

GRADUAL = ("dissolve", "fade", "wipe")


class Join(NamedTuple):
    """Where one shot follows another.

    Attributes:
        kind: ``hard``, ``jump``, one of `GRADUAL`, or ``cut`` if nobody knows whether it is a jump.
        start, end: First and last frame of the transition; of a cut, both are the first frame of the new shot.
    """

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Small frames with all their transitions.

    Attributes:
        luma: [T, 32, 64] uint8.
        chroma: [T, 2, 16, 32] uint8.
        joins: Transitions in order of frames.
    """

    luma: Frames
    chroma: Frames
    joins: tuple[Join, ...] = ()

    def __len__(self) -> int:
        return len(self.luma)

    def pick(self, numbers: NDArray[np.int64]) -> Piece:
        """The frames with these numbers, which do not decrease: parts, other speeds, frames left out or repeated.

        A gradual transition of which at most one frame is left is a cut.
        """
        joins = []
        for kind, start, end in self.joins:
            first = int(np.searchsorted(numbers, start))
            last = int(np.searchsorted(numbers, end, side="right")) - 1
            if kind not in GRADUAL:
                if 0 < first < len(numbers):
                    joins.append(Join(kind, first, first))
            elif last > first:
                joins.append(Join(kind, first, last))
            elif 0 < first < len(numbers):
                joins.append(Join("cut", first, first))
        return Piece(self.luma[numbers], self.chroma[numbers], _in_order(joins))

    def reverse(self) -> Piece:
        """The frames from last to first."""
        count = len(self)
        joins = [
            Join(kind, count - 1 - end, count - 1 - start)
            if kind in GRADUAL
            else Join(kind, count - start, count - start)
            for kind, start, end in self.joins
        ]
        return Piece(self.luma[::-1], self.chroma[::-1], _in_order(joins))

    def shots(self, fewest: int) -> list[tuple[int, int]]:
        """First frame and number of frames of the stretches of at least this length that no transition touches."""
        begins = [0, *(join.end + (join.kind in GRADUAL) for join in self.joins)]
        ends = [*(join.start for join in self.joins), len(self)]
        return [(first, end - first) for first, end in zip(begins, ends, strict=True) if end - first >= fewest]


def _in_order(joins: Sequence[Join]) -> tuple[Join, ...]:
    return tuple(sorted(joins, key=lambda join: join.start))


def read_piece(path: PathLike, joins: Sequence[Join] = (), *, most: int = 1 << 30) -> Piece:
    """The first ``most`` frames of a video.

    Raises:
        MediaError: The file cannot be read as video.
    """
    parts, count = [], 0
    for planes in iter_planes(path, height=GRID[0], width=GRID[1], threads=1):
        parts.append(shrink_planes(planes)[:2])
        count += len(planes)
        if count >= most:
            break
    luma, chroma = (np.concatenate(rows)[:most] for rows in zip(*parts, strict=True))
    return Piece(luma, chroma, tuple(joins))


def shrink(frames: Frames) -> tuple[Frames, Frames]:
    """Luma and chroma of a piece from YCbCr frames [T, 3, 64, 128]; chroma is sampled from every second pixel."""
    values = frames.reshape(len(frames), 3, GRID[0] // 2, 2, GRID[1] // 2, 2).mean((3, 5))
    chroma = frames[:, 1:, ::2, ::2]
    chroma = chroma.reshape(len(frames), 2, GRID[0] // 4, 2, GRID[1] // 4, 2).mean((3, 5))
    return (values[:, 0] + 0.5).astype(np.uint8), (chroma + 0.5).astype(np.uint8)


def write_pieces(path: Path, pieces: Sequence[Piece]) -> None:
    """Store pieces as one NumPy archive."""
    joins = json.dumps([piece.joins for piece in pieces])
    with replace_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(
            file,
            luma=np.concatenate([piece.luma for piece in pieces]),
            chroma=np.concatenate([piece.chroma for piece in pieces]),
            lengths=np.array([len(piece) for piece in pieces]),
            joins=np.frombuffer(joins.encode(), np.uint8),
        )


def read_pieces(path: PathLike) -> list[Piece]:
    """The pieces of an archive that `write_pieces` stored."""
    with np.load(os.fspath(path)) as stored:
        luma, chroma, lengths = stored["luma"], stored["chroma"], stored["lengths"]
        joins = json.loads(stored["joins"].tobytes())
    ends = np.cumsum(lengths)
    return [
        Piece(luma[end - length : end], chroma[end - length : end], tuple(Join(*join) for join in own))
        for end, length, own in zip(ends.tolist(), lengths.tolist(), joins, strict=True)
    ]
