"""Every frame of a video as a few samples of its decoded planes: what looking for cuts needs, at hardly any cost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.media.decoding.container import open_video
from vidkin.media.decoding.reader import PictureReader

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from av.video.plane import VideoPlane

__all__ = ["PLANE_HEIGHT", "PLANE_WIDTH", "FramePlanes", "iter_planes"]

PLANE_HEIGHT, PLANE_WIDTH = 36, 64
"""Default grid: fine enough to tell shots apart, small enough to cost next to nothing."""

_BLOCK = 128
# Frames that no other is predicted from are left with the edges of their blocks: a tenth of the time of decoding, and
# nothing that shows in samples.
_DECODER = {"skip_loop_filter": "noref"}


@dataclass(frozen=True, slots=True)
class FramePlanes:
    """Samples of consecutive frames. The whole picture is covered whatever its shape; it is not turned upright.

    Attributes:
        luma: [T, H, W] uint8.
        chroma: [T, 2, H/2, W/2] uint8, blue and red difference; 128 where there is no colour.
        timestamps: [T] float64, seconds from the first frame of the video, strictly increasing.
        end: When the last of these frames leaves the screen, as far as the file says; None if it was not read from one.
    """

    luma: NDArray[np.uint8]
    chroma: NDArray[np.uint8]
    timestamps: NDArray[np.float64]
    end: float | None = None

    def __post_init__(self) -> None:
        length = len(self.timestamps)
        height, width = self.luma.shape[1:] if self.luma.ndim == 3 else (0, 0)
        for name, shape in (
            ("luma", (length, height, width)),
            ("chroma", (length, 2, height // 2, width // 2)),
        ):
            given = getattr(self, name)
            if given.shape != shape or given.dtype != np.uint8:
                raise InvalidArgumentError(
                    f"{name} must be {list(shape)} uint8, given is {list(given.shape)} {given.dtype}"
                )

    def __len__(self) -> int:
        return len(self.timestamps)

    def __repr__(self) -> str:
        return f"FramePlanes(luma={list(self.luma.shape)})"


def iter_planes(
    path: str | os.PathLike[str],
    *,
    height: int = PLANE_HEIGHT,
    width: int = PLANE_WIDTH,
    block: int = _BLOCK,
    threads: int = 0,
) -> Iterator[FramePlanes]:
    """All frames of a video in the order of their times, a block at a time.

    Single pixels of the decoded planes are taken in a fixed grid, without conversion, scaling and the last smoothing of
    frames that no other depends on; formats that are not planar luma and chroma of 8 to 16 bits are converted by FFmpeg
    at the size of the grid.

    Args:
        path: The video.
        height: H of the grid, an even number.
        width: W of the grid, an even number.
        block: Frames at a time; only the last block is shorter.
        threads: Of the decoder; 0 is one a core.

    Raises:
        MediaError: The file cannot be read as video.
        InvalidArgumentError: ``block`` is not positive, or the grid not even.
    """
    if min(height, width) < 2 or height % 2 or width % 2:
        raise InvalidArgumentError(f"the grid is {height} x {width}, allowed are even numbers from 2 on")
    if block < 1:
        raise InvalidArgumentError(f"block is {block}, allowed is a positive number of frames")
    with open_video(path, threads=threads) as (container, stream):
        stream.codec_context.options = _DECODER
        reader = PictureReader(os.fspath(path), container, stream)
        sampler = _Sampler(height, width)
        held = _Held(block, height, width)
        for time, frame in reader.pictures():
            held.add((time - (reader.base or 0)) * reader.tick, frame, sampler)
            if held.count == block:
                yield held.taken(reader.length)
                held = _Held(block, height, width)
        if held.count:
            yield held.taken(reader.length)


class _Held:
    """A block that is being filled."""

    def __init__(self, block: int, height: int, width: int) -> None:
        self.count = 0
        self._shape = (height, width)
        self._luma = np.empty((block, height * width), np.uint8)
        self._chroma = np.full((block, 2, height * width // 4), 128, np.uint8)
        self._times = np.empty(block)

    def add(self, time: float, frame: VideoFrame, sampler: _Sampler) -> None:
        self._times[self.count] = time
        sampler.sample(frame, self._luma[self.count], self._chroma[self.count])
        self.count += 1

    def taken(self, end: float) -> FramePlanes:
        count, (height, width) = self.count, self._shape
        return FramePlanes(
            self._luma[:count].reshape(count, height, width),
            self._chroma[:count].reshape(count, 2, height // 2, width // 2),
            self._times[:count],
            end,
        )


class _Sampler:
    """Takes a grid of samples from frames; where they lie is worked out once for frames that are laid out alike."""

    def __init__(self, height: int, width: int) -> None:
        self._height, self._width = height, width
        self._laid_out: tuple[object, ...] = ()
        self._bits = 8
        self._grids: list[NDArray[np.intp]] = []

    def sample(self, frame: VideoFrame, luma: NDArray[np.uint8], chroma: NDArray[np.uint8]) -> None:
        """Fill ``luma`` [height * width] and ``chroma`` [2, height * width / 4]; the latter only where there is any."""
        name = frame.format.name
        if not _bits(name):
            name = "yuv420p"
            frame = frame.reformat(width=self._width, height=self._height, format=name)
        planes = frame.planes
        lines = [plane.line_size for plane in planes[:3]]
        laid_out = (name, frame.width, frame.height, *lines)
        if laid_out != self._laid_out:
            self._laid_out, self._bits = laid_out, _bits(name)
            self._grids = self._places(planes)
        outs = (luma, *chroma)
        for plane, grid, out in zip(planes, self._grids, outs, strict=False):
            if self._bits == 8:
                np.frombuffer(memoryview(plane), np.uint8).take(grid, out=out, mode="clip")
            else:
                out[:] = np.frombuffer(memoryview(plane), np.uint16).take(grid) >> (self._bits - 8)

    def _places(self, planes: tuple[VideoPlane, ...]) -> list[NDArray[np.intp]]:
        """Where the grid's points lie in the memory of each plane."""
        halves = (self._height // 2, self._width // 2)
        sizes = [(self._height, self._width), halves, halves][: 3 if len(planes) >= 3 else 1]
        item = 1 if self._bits == 8 else 2
        return [
            _points(plane.height, plane.width, plane.line_size // item, *size)
            for plane, size in zip(planes, sizes, strict=False)
        ]


@lru_cache(maxsize=64)
def _bits(name: str) -> int:
    """Bits a sample of a pixel format whose planes are luma and chroma that can be read as they lie; 0 of others."""
    family = name.removesuffix("le")
    if name.endswith("be") or not family.startswith(("yuv4", "yuvj4", "yuva4", "gray")):
        return 0
    depth = family.rpartition("p" if family.startswith("yuv") else "y")[2]
    if depth == "":
        return 8
    return int(depth) if depth.isdecimal() and 8 < int(depth) <= 16 else 0


def _points(rows: int, columns: int, line: int, height: int, width: int) -> NDArray[np.intp]:
    """The middle pixels of the cells of a grid, as numbers in memory whose lines are ``line`` samples long."""
    down = ((np.arange(height) + 0.5) * rows / height).astype(np.intp)
    across = ((np.arange(width) + 0.5) * columns / width).astype(np.intp)
    return (down[:, None] * line + across).ravel()
