"""The last frames of a film, and vectors of requested frames."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.shots.regions import (
    PictureBlocks,
    halved_sums,
)

GRID = (128, 128)

"""Rows and columns of sampled luma: four samples for each pixel that the encoder sees."""

# Rows and columns of luma used by the band.
_BAND = (36, 64)

_BATCH = 16


class VectorNetwork(Protocol):
    """A network from squares to vectors (`vidkin.features.sessions.SquareEncoder`)."""

    def encode(self, squares: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors of unit length [N, D] of squares [N, 3, 64, 64] in 0..255."""
        ...


class BandGrid:
    """Selects the samples of the band from the finer samples of the encoder."""

    def __init__(self) -> None:
        self._luma = _places(_BAND, GRID)
        self._chroma = _places((_BAND[0] // 2, _BAND[1] // 2), (GRID[0] // 2, GRID[1] // 2))

    def thin(self, planes: FramePlanes) -> FramePlanes:
        """The frames at 36 x 64."""
        luma = planes.luma.reshape(len(planes), -1).take(self._luma, axis=1)
        chroma = planes.chroma.reshape(2 * len(planes), -1).take(self._chroma, axis=1)
        return FramePlanes(
            luma.reshape(-1, *_BAND),
            chroma.reshape(-1, 2, _BAND[0] // 2, _BAND[1] // 2),
            planes.timestamps,
            planes.end,
        )


class FrameVectors:
    """Vectors of frames by number; only the last ``room`` frames are available.

    Args:
        network: The encoder.
        room: Number of frames held in memory, 24 KiB each.

    Attributes:
        count: Number of frames pushed.
        encoded: Number of frames that went through the network so far.
    """

    def __init__(self, network: VectorNetwork, room: int) -> None:
        self.count = 0
        self.encoded = 0
        self._network, self._room = network, room
        # Pieces as they were pushed, and the number of the first frame of each: copying them would cost as much as
        # comparing their frames.
        self._pieces: list[FramePlanes] = []
        self._starts: list[int] = []
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self._blocks: dict[int, PictureBlocks] = {}

    @property
    def first(self) -> int:
        """The first frame still in memory."""
        return max(0, self.count - self._room)

    def push(self, planes: FramePlanes) -> None:
        """Add the next frames, which must not be changed afterwards."""
        self._pieces.append(planes)
        self._starts.append(self.count)
        self.count += len(planes)
        gone = bisect_right(self._starts, self.first) - 1
        del self._pieces[:gone], self._starts[:gone]
        held: dict[int, Any]
        for held in (self._vectors, self._blocks):
            for frame in [frame for frame in held if frame < self.first]:
                del held[frame]

    def encode(self, frames: Iterable[int]) -> None:
        """Compute at once the missing vectors of these frames, as far as the frames are in memory."""
        wanted = sorted({f for f in frames if self.first <= f < self.count} - self._vectors.keys())
        for start in range(0, len(wanted), _BATCH):
            part = wanted[start : start + _BATCH]
            places = [self._place(frame) for frame in part]
            luma = np.stack([piece.luma[row] for piece, row in places])
            chroma = np.stack([piece.chroma[row] for piece, row in places])
            vectors = self._network.encode(squares_of_planes(luma, chroma))
            self._vectors.update(zip(part, vectors, strict=True))
            self.encoded += len(part)

    def hold(self, frame: int) -> int:
        """The nearest frame in memory."""
        return min(max(frame, self.first), self.count - 1)

    def luma(self, frame: int) -> NDArray[np.uint8]:
        """Luma [128, 128] of the frame, or of the nearest one in memory."""
        piece, row = self._place(self.hold(frame))
        luma: NDArray[np.uint8] = piece.luma[row]
        return luma

    def blocks(self, frame: int) -> PictureBlocks:
        """Blocks of the frame's luma, or of that of the nearest one in memory; computed once a frame."""
        frame = self.hold(frame)
        if frame not in self._blocks:
            self._blocks[frame] = PictureBlocks(self.luma(frame))
        return self._blocks[frame]

    def distance(self, one: int, other: int) -> float:
        """1 - cosine of two frames; for frames no longer in memory, the nearest one is used."""
        one, other = self.hold(one), self.hold(other)
        vectors = self._vectors
        if one not in vectors or other not in vectors:
            self.encode((one, other))
        return max(0.0, 1.0 - float(vectors[one] @ vectors[other]))

    def _place(self, frame: int) -> tuple[FramePlanes, int]:
        """The piece that holds a frame in memory, and its row there."""
        number = bisect_right(self._starts, frame) - 1
        return self._pieces[number], frame - self._starts[number]


def squares_of_planes(luma: NDArray[np.uint8], chroma: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Squares [N, 3, 64, 64] RGB in 0..255 from samples [N, 128, 128] and [N, 2, 64, 64] in limited range."""
    squares = np.empty((len(luma), 3, GRID[0] // 2, GRID[1] // 2), np.float32)
    bright = halved_sums(luma).astype(np.float32)
    # 219 steps of luma and 224 of chroma are the whole range.
    bright *= np.float32(255 / 219 / 4)
    bright -= np.float32(16 * 255 / 219)
    color = chroma.astype(np.float32)
    color -= np.float32(128)
    color *= np.float32(255 / 224)
    blue, red = color[:, 0], color[:, 1]
    np.multiply(red, np.float32(1.402), out=squares[:, 0])
    np.multiply(blue, np.float32(-0.344136), out=squares[:, 1])
    np.multiply(blue, np.float32(1.772), out=squares[:, 2])
    red *= np.float32(0.714136)
    squares[:, 1] -= red
    squares += bright[:, None]
    np.maximum(squares, np.float32(0), out=squares)
    return np.minimum(squares, np.float32(255), out=squares)


def _places(few: tuple[int, int], many: tuple[int, int]) -> NDArray[np.intp]:
    rows, columns = (
        ((np.arange(count) + 0.5) * whole / count).astype(np.intp) for count, whole in zip(few, many, strict=True)
    )
    return (rows[:, None] * many[1] + columns).ravel()
