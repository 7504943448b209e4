"""Sparse samples of the decoded planes of each frame: enough to find cuts at almost no cost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import PathLike
from vidkin._base.values import check_at_least
from vidkin.errors import InvalidArgumentError
from vidkin.media.frames import Frames
from vidkin.media.reader import PictureReader, open_video

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from av.video.plane import VideoPlane

PLANE_HEIGHT, PLANE_WIDTH = 36, 64
"""Default grid: fine enough to distinguish shots, small enough to add almost no cost."""

_BLOCK_LENGTH = 128
# Skip the deblocking of frames that no other frame references: this saves a tenth of the decoding time and has no
# visible effect on the samples.
_DECODER = {"skip_loop_filter": "noref"}


@check_constructor
@dataclass(frozen=True, slots=True)
class FramePlanes:
    """Samples of consecutive frames, which cover the whole frame in its stored orientation and any aspect ratio.

    Attributes:
        luma: [T, H, W] uint8 luma samples.
        chroma: [T, 2, H/2, W/2] uint8, blue and red differences; 128 if there is no color.
        timestamps: [T] float64 times in seconds from the first frame of the video, strictly increasing.
        end: End of the last of these frames in seconds, according to the file; None if there is no file.
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
            plane = getattr(self, name)
            if plane.shape != shape or plane.dtype != np.uint8:
                raise InvalidArgumentError(f"{name} must be {list(shape)} uint8, got {list(plane.shape)} {plane.dtype}")

    def __len__(self) -> int:
        return len(self.timestamps)

    def __getitem__(self, part: slice) -> FramePlanes:
        """Select consecutive frames."""
        return FramePlanes(self.luma[part], self.chroma[part], self.timestamps[part])

    def __repr__(self) -> str:
        return f"FramePlanes(luma={list(self.luma.shape)})"


@check_arguments
def iter_planes(
    path: PathLike,
    *,
    height: int = PLANE_HEIGHT,
    width: int = PLANE_WIDTH,
    block: int = _BLOCK_LENGTH,
    threads: int = 0,
    stream: int | None = None,
) -> Iterator[FramePlanes]:
    """Yield all frames of a video in order of time, in blocks.

    A sample is one pixel of a decoded plane on a fixed grid, without conversion, scaling, or deblocking of unreferenced
    frames. Formats other than planar luma and chroma with 8 to 16 bits are converted by FFmpeg at the size of the grid.
    Interlaced frames are sampled in one field, so that a cut between the two fields of a frame becomes a cut between
    frames.

    Args:
        path: The video.
        height: H of the grid, an even number.
        width: W of the grid, an even number.
        block: Number of frames per block; only the last block is shorter.
        threads: Decoder threads; 0 is one per core.
        stream: Index of the video stream, as in `vidkin.media.iter_frames`.

    Raises:
        MediaError: The file cannot be read as video.
        InvalidArgumentError: ``block`` is below 1, or the grid is not even.
    """
    if min(height, width) < 2 or height % 2 or width % 2:
        raise InvalidArgumentError(f"height and width must be even and at least 2, got {height} and {width}")
    check_at_least(1, block=block)
    with open_video(path, threads=threads, stream=stream) as (container, video):
        video.codec_context.options |= _DECODER
        reader = PictureReader(os.fspath(path), container, video)
        sampler = _Sampler(height, width)
        block_buffer = _Block(block, height, width)
        for time, frame in reader.pictures():
            block_buffer.add(reader.ticks.seconds(time), frame, sampler)
            if block_buffer.count == block:
                yield block_buffer.finish(reader.length)
                block_buffer = _Block(block, height, width)
        if block_buffer.count:
            yield block_buffer.finish(reader.length)


@check_arguments
def sample_planes(frames: Frames, *, height: int = PLANE_HEIGHT, width: int = PLANE_WIDTH) -> FramePlanes:
    """Sample frames in memory in the same way as `iter_planes` samples a file with these frames.

    Args:
        frames: The frames; their times become the times of the samples.
        height, width: Size of the grid, even numbers.
    """
    from av.video.frame import VideoFrame

    block_buffer, sampler = _Block(max(1, len(frames)), height, width), _Sampler(height, width)
    for image, time in zip(frames.images, frames.timestamps.tolist(), strict=True):
        picture = VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
        # Convert at full size and sample single pixels, as for a file; scaling would average many pixels.
        block_buffer.add(time, picture.reformat(format="yuv420p"), sampler)
    return block_buffer.finish(None)


class _Block:
    """A block of frames that is being filled."""

    def __init__(self, block: int, height: int, width: int) -> None:
        self.count = 0
        self._luma = np.empty((block, height, width), np.uint8)
        self._chroma = np.empty((block, 2, height // 2, width // 2), np.uint8)
        self._times = np.empty(block)

    def add(self, time: float, frame: VideoFrame, sampler: _Sampler) -> None:
        self._times[self.count] = time
        sampler.sample(frame, self._luma[self.count], self._chroma[self.count])
        self.count += 1

    def finish(self, end: float | None) -> FramePlanes:
        count = self.count
        return FramePlanes(self._luma[:count], self._chroma[:count], self._times[:count], end)


class _Grid:
    """Sample positions in a plane, computed once for planes with the same layout.

    Whole lines are copied first, because processors prefetch them, and samples are taken from the copies; random access
    across a large frame takes twice as long.
    """

    def __init__(
        self, plane: VideoPlane, height: int, width: int, kind: type[np.unsignedinteger[Any]], *, one_field: bool
    ) -> None:
        self._line = plane.line_size // np.dtype(kind).itemsize  # may be longer than the frame is wide
        self._kind = kind
        # Center pixels of the cells; in interlaced frames, only lines of the upper field.
        self._down = ((np.arange(height) + 0.5) * plane.height / height).astype(np.intp)
        if one_field:
            self._down &= ~1
        across = ((np.arange(width) + 0.5) * plane.width / width).astype(np.intp)
        step = plane.width // width
        self._lines = np.empty((height, self._line), kind)
        self._across = across
        self._strided: NDArray[Any] | None = None
        if step and plane.width % width == 0:
            self._strided = self._lines[:, across[0] :: step][:, :width]

    def take(self, plane: VideoPlane, out: NDArray[np.uint8], bits: int) -> None:
        """Fill ``out`` [height, width] with the eight most significant bits of the samples."""
        whole: NDArray[Any] = np.frombuffer(memoryview(plane), self._kind)
        lines = whole[: len(whole) // self._line * self._line].reshape(-1, self._line)
        lines.take(self._down, axis=0, out=self._lines, mode="clip")
        if self._strided is None and bits == 8:
            self._lines.take(self._across, axis=1, out=out, mode="clip")
            return
        samples = self._lines.take(self._across, axis=1) if self._strided is None else self._strided
        out[:] = samples if bits == 8 else samples >> (bits - 8)


class _Sampler:
    """Samples frames on a grid."""

    def __init__(self, height: int, width: int) -> None:
        self._height, self._width = height, width
        self._layout: tuple[object, ...] = ()
        self._sample_bits = 8
        self._is_interlaced = False
        self._grids: list[_Grid] = []

    def sample(self, frame: VideoFrame, luma: NDArray[np.uint8], chroma: NDArray[np.uint8]) -> None:
        """Fill ``luma`` [height, width] and ``chroma`` [2, height / 2, width / 2]; chroma is 128 if the frame has
        none."""
        name = frame.format.name
        # After one interlaced frame, treat all as interlaced, so that samples do not move in frames marked progressive.
        self._is_interlaced = self._is_interlaced or frame.interlaced_frame
        if not _sample_bits(name):
            name = "yuv420p"
            frame = frame.reformat(width=self._width, height=self._height, format=name)
        planes = frame.planes
        lines = [plane.line_size for plane in planes[:3]]
        layout = (name, frame.width, frame.height, self._is_interlaced, *lines)
        if layout != self._layout:
            self._layout, self._sample_bits = layout, _sample_bits(name)
            kind = np.uint8 if self._sample_bits == 8 else np.uint16
            halves = (self._height // 2, self._width // 2)
            sizes = [(self._height, self._width), halves, halves][: 3 if len(planes) >= 3 else 1]
            self._grids = [
                _Grid(plane, *size, kind, one_field=self._is_interlaced)
                for plane, size in zip(planes, sizes, strict=False)
            ]
        if len(planes) < 3:
            chroma.fill(128)
        for plane, grid, out in zip(planes, self._grids, (luma, *chroma), strict=False):
            grid.take(plane, out, self._sample_bits)


@lru_cache(maxsize=64)
def _sample_bits(name: str) -> int:
    """Return the bits per sample of a format whose planes can be read directly as luma and chroma; 0 for others."""
    family = name.removesuffix("le")
    if name.endswith("be") or not family.startswith(("yuv4", "yuvj4", "yuva4", "gray")):
        return 0
    depth = family.rpartition("p" if family.startswith("yuv") else "y")[2]
    if depth == "":
        return 8
    return int(depth) if depth.isdecimal() and 8 < int(depth) <= 16 else 0
