"""The last frames of a film, and vectors of requested frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin.media import FramePlanes
from vidkin.shots.band.network import one_thread

__all__ = ["GRID", "BandGrid", "FrameVectors", "VectorNetwork", "squares_of_planes"]

GRID = (128, 128)
"""Rows and columns of sampled luma: four samples for each pixel that the encoder sees."""

# Rows and columns of luma used by the band.
_BAND = (36, 64)
_BATCH = 16


class VectorNetwork(Protocol):
    """A network from squares to vectors (`features.frame_encoder.FrameEncoder`)."""

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Vectors of unit length [N, D] of squares [N, 3, 64, 64] in 0..1."""


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
        network: The encoder, in eval mode.
        room: Number of frames held in memory, 24 KiB each.

    Attributes:
        count: Number of frames pushed.
        encoded: Number of frames that went through the network so far.
    """

    def __init__(self, network: VectorNetwork, room: int) -> None:
        self.count = 0
        self.encoded = 0
        self._network, self._room = network, room
        self._luma = np.empty((room, *GRID), np.uint8)
        self._chroma = np.empty((room, 2, GRID[0] // 2, GRID[1] // 2), np.uint8)
        self._vectors: dict[int, NDArray[np.float32]] = {}

    @property
    def first(self) -> int:
        """The first frame still in memory."""
        return max(0, self.count - self._room)

    def push(self, planes: FramePlanes) -> None:
        """Add the next frames, at most as many as there is room for."""
        places = np.arange(self.count, self.count + len(planes)) % self._room
        self._luma[places], self._chroma[places] = planes.luma, planes.chroma
        self.count += len(planes)
        for frame in [frame for frame in self._vectors if frame < self.first]:
            del self._vectors[frame]

    def encode(self, frames: Iterable[int]) -> None:
        """Compute at once the missing vectors of these frames, as far as the frames are in memory."""
        wanted = sorted({f for f in frames if self.first <= f < self.count} - self._vectors.keys())
        for start in range(0, len(wanted), _BATCH):
            part = wanted[start : start + _BATCH]
            places = np.array(part) % self._room
            squares = torch.from_numpy(squares_of_planes(self._luma[places], self._chroma[places]))
            with one_thread(), torch.inference_mode():
                vectors = self._network(squares.contiguous(memory_format=torch.channels_last)).numpy()
            self._vectors.update(zip(part, vectors, strict=True))
            self.encoded += len(part)

    def hold(self, frame: int) -> int:
        """The nearest frame in memory."""
        return min(max(frame, self.first), self.count - 1)

    def luma(self, frame: int) -> NDArray[np.uint8]:
        """Luma [128, 128] of the frame, or of the nearest one in memory."""
        luma: NDArray[np.uint8] = self._luma[self.hold(frame) % self._room]
        return luma

    def distance(self, one: int, other: int) -> float:
        """1 - cosine of two frames; for frames no longer in memory, the nearest one is used."""
        one, other = self.hold(one), self.hold(other)
        self.encode((one, other))
        return max(0.0, 1.0 - float(self._vectors[one] @ self._vectors[other]))


def squares_of_planes(luma: NDArray[np.uint8], chroma: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Squares [N, 3, 64, 64] RGB in 0..1 from samples [N, 128, 128] and [N, 2, 64, 64] in limited range."""
    halves = GRID[0] // 2, GRID[1] // 2
    total = luma.reshape(-1, halves[0], 2, GRID[1]).astype(np.uint16).sum(2)
    total = total[:, :, ::2] + total[:, :, 1::2]
    bright = (total.astype(np.float32) / 4 - 16) / 219
    blue, red = np.moveaxis((chroma.astype(np.float32) - 128) / 224, 1, 0)
    squares = np.stack(
        [bright + 1.402 * red, bright - 0.344136 * blue - 0.714136 * red, bright + 1.772 * blue], 1
    )
    return squares.clip(0, 1, out=squares)


def _places(few: tuple[int, int], many: tuple[int, int]) -> NDArray[np.intp]:
    rows, columns = (
        ((np.arange(count) + 0.5) * whole / count).astype(np.intp)
        for count, whole in zip(few, many, strict=True)
    )
    return (rows[:, None] * many[1] + columns).ravel()
