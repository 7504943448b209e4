"""A video decoded once into small frames on disk, so that hours of video need little memory."""

from __future__ import annotations

import tempfile
import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import PathLike
from vidkin.media.decode import iter_frames

SHORT_SIDE = 54
"""Length of the shorter side in pixels; a line of subtitles is then still one or two pixels high."""
RATE = 10.0
"""Frames per second for a kept file, dense enough that motion between frames stays small."""
REMOVED_RATE = 5.0
"""Frames per second for a removed file; lower, because no times between its frames are searched."""
# Width in pixels of the cells in which color is compared; neither eyes nor encoders resolve color more finely.
_COLOR_CELL = 3
# Weights of red and blue in the luma of the two common matrices (ITU-R BT.601, BT.709).
_BT601, _BT709 = (0.299, 0.114), (0.2126, 0.0722)
# Gray levels of (blue - luma) and (red - luma) per level of Cb and Cr (ITU-R BT.601).
_BLUE_AND_RED = (1.772, 1.402)
# Frames per block (a few seconds), and number of blocks to keep in memory.
_BLOCK = 64
_MAX_BLOCKS = 4
# Frames after this many bytes (about 15 minutes) are compressed: speed matters for short files, space for long ones.
_MAX_PLAIN = 64 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Stills:
    """Luma and color of consecutive small frames.

    Attributes:
        luma: [T, H, W] float32, 0 to 255, computed with the color matrix of the file.
        color: [T, 2, H', W'] float32, blue minus luma and red minus luma, in cells of three pixels.
    """

    luma: NDArray[np.float32]
    color: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.luma)

    def by_matrix(self, matrix: NDArray[np.float32]) -> Stills:
        """Convert to another color matrix: luma, blue and red = matrix [3, 3] @ (luma, blue, red)."""
        height, width = self.luma.shape[1:]
        down, across = pool(self.color.shape[2], height), pool(self.color.shape[3], width)
        shift = down @ np.einsum("c,tchw->thw", matrix[0, 1:], self.color) @ across.T
        return Stills(np.asarray(self.luma + shift, np.float32), np.einsum("dc,tchw->tdhw", matrix[1:, 1:], self.color))


class SmallFrames:
    """The frames of a video, downscaled to at most 54 pixels on the shorter side.

    Args:
        path: The video.
        rate: Frames per second.
        threads: Decoding threads; 0 for one per processor.
        on_read: Callback that receives the number of seconds read so far.

    Attributes:
        path: The file.
        rate: Requested frames per second.
        times: [T] timestamps in seconds from the first frame.
        size: H, W of the frames.
        damage: Description of the parts that cannot be decoded; empty if there are none.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        rate: float = RATE,
        threads: int = 0,
        on_read: Callable[[float], None] | None = None,
    ) -> None:
        self.rate = rate
        self.path = path
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="vidkin-proof-")  # noqa: SIM115 - until close()
        self._starts: list[tuple[int, int]] = []
        self._blocks_in_memory: OrderedDict[int, Stills] = OrderedDict()
        times: list[NDArray[np.float64]] = []
        damage: list[str] = []
        self.size = (0, 0)
        try:
            for batch in iter_frames(
                path,
                rate=rate,
                short_side=SHORT_SIDE,
                batch=_BLOCK,
                threads=threads,
                coded=True,
                on_damage=damage.append,
            ):
                times.append(batch.timestamps)
                self.size = batch.images.shape[1:3]
                self._write(batch.images)
                if on_read is not None:
                    on_read(float(batch.timestamps[-1]))
        except BaseException:  # even after an interrupt, the temporary file must not stay
            self._file.close()
            raise
        self.damage = "; ".join(damage)
        self.times = np.concatenate(times)
        # Batches of large frames can be shorter than _BLOCK.
        self._firsts = np.cumsum([0, *(len(part) for part in times)])

    def __len__(self) -> int:
        return len(self.times)

    @property
    def color_size(self) -> tuple[int, int]:
        """H', W' of the color cells."""
        return max(1, self.size[0] // _COLOR_CELL), max(1, self.size[1] // _COLOR_CELL)

    @property
    def period(self) -> float:
        """Median interval between frames in seconds; 0 for a single frame."""
        return float(np.median(np.diff(self.times))) if len(self) > 1 else 0.0

    def read(self, rows: NDArray[np.intp]) -> Stills:
        """Return the frames at these positions, in the given order."""
        blocks = np.searchsorted(self._firsts, rows, side="right") - 1
        luma: list[NDArray[np.float32]] = []
        color: list[NDArray[np.float32]] = []
        for row, block in zip(rows.tolist(), blocks.tolist(), strict=True):
            held = self._load_block(block)
            luma.append(held.luma[row - self._firsts[block]])
            color.append(held.color[row - self._firsts[block]])
        return Stills(np.stack(luma), np.stack(color))

    def close(self) -> None:
        """Remove the frames from disk."""
        self._file.close()
        self._blocks_in_memory.clear()

    def read_every(self, start: float, end: float) -> tuple[NDArray[np.float64], Stills]:
        """Decode every frame between two times, or the last frames of the file, again; return times [T] and frames."""
        start = min(max(start, 0.0), float(self.times[-1]))
        end = max(end, start + 1.0)
        batches = list(iter_frames(self.path, rate=None, start=start, end=end, short_side=SHORT_SIDE, coded=True))
        stills = [self._split(batch.images) for batch in batches]
        joined = Stills(np.concatenate([part.luma for part in stills]), np.concatenate([part.color for part in stills]))
        return np.concatenate([batch.timestamps for batch in batches]), joined

    def _split(self, images: NDArray[np.uint8]) -> Stills:
        height, width = self.color_size
        across, down = pool(self.size[1], width), pool(self.size[0], height)
        color = [down @ images[..., channel] @ across.T for channel in (1, 2)]
        scale = np.array(_BLUE_AND_RED, np.float32)[:, None, None]
        return Stills(
            images[..., 0].astype(np.float32), np.asarray((np.stack(color, axis=1) - 128) * scale, np.float32)
        )

    def _write(self, images: NDArray[np.uint8]) -> None:
        stills = self._split(images)
        # Color differences from -255 to 255 are halved to fit into a byte; encoders lose more precision than that.
        packed = (
            np.rint(stills.luma).astype(np.uint8).tobytes()
            + np.clip(np.rint(stills.color / 2) + 128, 0, 255).astype(np.uint8).tobytes()
        )
        start = self._file.tell()
        data = packed if start < _MAX_PLAIN else zlib.compress(packed, 1)
        self._file.write(data)
        self._starts.append((start, len(data)))

    def _load_block(self, number: int) -> Stills:
        if number in self._blocks_in_memory:
            self._blocks_in_memory.move_to_end(number)
            return self._blocks_in_memory[number]
        start, length = self._starts[number]
        self._file.seek(start)
        data = self._file.read(length)
        packed = np.frombuffer(data if start < _MAX_PLAIN else zlib.decompress(data), np.uint8)
        count = int(self._firsts[number + 1] - self._firsts[number])
        height, width = self.size
        luma = packed[: count * height * width].reshape(count, height, width)
        color = packed[count * height * width :].reshape(count, 2, *self.color_size)
        stills = Stills(luma.astype(np.float32), (color.astype(np.float32) - 128) * 2)
        self._blocks_in_memory[number] = stills
        if len(self._blocks_in_memory) > _MAX_BLOCKS:
            self._blocks_in_memory.popitem(last=False)
        return stills


def pool(source: int, target: int) -> NDArray[np.float32]:
    """Return weights [target, source] that average equal parts of a row of pixels."""
    return stretch(source, target, 1.0, 0.0)


def stretch(source: int, target: int, scale: float, shift: float) -> NDArray[np.float32]:
    """Return weights [target, source] that resample a row of pixels: source = scale * target + shift, as fractions.

    Each target pixel averages the source pixels that it covers, or interpolates linearly if it covers less than one.
    Beyond the ends, the outermost pixel is repeated.
    """
    centers = (scale * (np.arange(target) + 0.5) / target + shift) * source - 0.5
    radius = max(1.0, scale * source / target)
    weights = np.maximum(0.0, 1.0 - np.abs(np.arange(-1, source + 1)[None] - centers[:, None]) / radius)
    # Beyond the ends, only the outermost pixel counts.
    below, above = np.clip(-1 - centers, 0, None) > 0, np.clip(centers - source, 0, None) > 0
    weights[below, 0] = 1.0
    weights[above, -1] = 1.0
    weights[:, 1] += weights[:, 0]
    weights[:, -2] += weights[:, -1]
    inner = weights[:, 1:-1]
    return np.asarray(inner / np.maximum(inner.sum(axis=1, keepdims=True), 1e-9), np.float32)


def _make_conversion(red: float, blue: float, other_red: float, other_blue: float) -> NDArray[np.float32]:
    """Return the matrix [3, 3] that converts luma, blue and red, as in `Stills`, from one color matrix to another."""
    green = 1 - red - blue
    # Blue, red and green minus luma under the first matrix, per stored level.
    to_blue = np.array([0.0, 2 * (1 - blue) / _BLUE_AND_RED[0], 0.0])
    to_red = np.array([0.0, 0.0, 2 * (1 - red) / _BLUE_AND_RED[1]])
    to_green = -(red * to_red + blue * to_blue) / green
    luma = other_red * to_red + other_blue * to_blue + (1 - other_red - other_blue) * to_green
    stored = [
        np.array([1.0, 0.0, 0.0]) + luma,
        (to_blue - luma) * _BLUE_AND_RED[0] / (2 * (1 - other_blue)),
        (to_red - luma) * _BLUE_AND_RED[1] / (2 * (1 - other_red)),
    ]
    return np.array(stored, np.float32)


MATRICES = (_make_conversion(*_BT709, *_BT601), _make_conversion(*_BT601, *_BT709))
"""Conversions that resizing may have applied: high definition and standard definition use different color matrices."""
