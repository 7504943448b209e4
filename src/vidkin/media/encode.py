"""Writing video and pictures: whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

import av
import av.error
import numpy as np
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError, MediaError

if TYPE_CHECKING:
    from av.video.stream import VideoStream

__all__ = ["write_video"]

_CONTENT_RATE = ("libx264", "libx265", "libvpx-vp9", "libaom-av1", "libsvtav1")


def write_video(
    path: str | os.PathLike[str],
    frames: Iterable[NDArray[np.uint8]],
    *,
    rate: float | Fraction,
    codec: str = "libx264",
    crf: int | None = 23,
    preset: str | None = "veryfast",
    pixel_format: str = "yuv420p",
    options: Mapping[str, str] | None = None,
    threads: int = 0,
) -> int:
    """Encode frames as a video file, the format by the name's ending.

    The file appears under its name only when it is complete; a failure leaves nothing behind, and what was there
    before stays. Odd sizes are padded by repeating the last column or row, as most pixel formats need even ones.

    Args:
        path: Where to write, as ``"clip.mp4"``; an existing file is replaced.
        frames: [H, W, 3] uint8 RGB pictures, all of one size, taken one at a time.
        rate: Frames a second.
        codec: FFmpeg's name of the encoder.
        crf: Constant quality, for x264 from 0 (best) to 51; None where the encoder knows none.
        preset: Effort of the x264 and x265 encoders; None leaves it to them.
        pixel_format: Stored format of the pixels; ``"yuv444p"`` keeps all of the colour, and odd sizes.
        options: More options of the encoder.
        threads: Threads of the encoder, 0 is as it likes.

    Returns:
        The number of frames written.

    Raises:
        InvalidArgumentError: There are no frames, they differ in size, or an argument is out of range.
        MediaError: The file cannot be written.
    """
    if not rate > 0:
        raise InvalidArgumentError(f"rate must be above 0 frames a second, given is {rate}")
    settings = dict(options or {})
    if crf is not None and codec in _CONTENT_RATE:
        settings.setdefault("crf", str(crf))
    if preset is not None and codec in ("libx264", "libx265"):
        settings.setdefault("preset", preset)
    with whole_file(path) as partial:
        return _encode(
            partial,
            iter(frames),
            Fraction(rate).limit_denominator(1001 * 60),
            codec,
            settings,
            pixel_format,
            threads,
        )


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside ``path``, with the same ending, that becomes ``path`` if the block succeeds.

    Raises:
        MediaError: Writing failed inside the block; nothing is left behind.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise MediaError(target, f"the folder {target.parent} to write it in does not exist")
    partial = target.with_name(f".{target.stem}.{os.getpid()}.part{target.suffix}")
    try:
        yield partial
        partial.replace(target)
    except (av.error.FFmpegError, OSError) as error:
        raise MediaError(
            target, f"it cannot be written ({getattr(error, 'strerror', None) or error})"
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def _encode(
    path: Path,
    frames: Iterator[NDArray[np.uint8]],
    rate: Fraction,
    codec: str,
    settings: dict[str, str],
    pixel_format: str,
    threads: int,
) -> int:
    first = next(frames, None)
    if first is None:
        raise InvalidArgumentError("there are no frames to write")
    shape = first.shape
    pad = pixel_format_needs_even(pixel_format)
    with av.open(f"file:{path}", "w") as container:
        stream = cast("VideoStream", container.add_stream(codec, rate=rate, options=settings))
        stream.height = shape[0] + (shape[0] % 2 if pad else 0)
        stream.width = shape[1] + (shape[1] % 2 if pad else 0)
        stream.pix_fmt = pixel_format
        stream.codec_context.thread_count = threads
        stream.codec_context.time_base = 1 / rate
        image: NDArray[np.uint8] | None = first
        count = 0
        while image is not None:
            picture = _picture(image, shape, stream.height, stream.width)
            picture.pts = count
            picture.time_base = 1 / rate
            container.mux(stream.encode(picture))
            count += 1
            image = next(frames, None)
        container.mux(stream.encode(None))
    return count


def pixel_format_needs_even(name: str) -> bool:
    """Whether this format stores colour for blocks of two pixels."""
    part = av.VideoFormat(name, 64, 64).components[-1]
    return part.width != 64 or part.height != 64


def _picture(image: NDArray[np.uint8], shape: tuple[int, ...], height: int, width: int) -> av.VideoFrame:
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise InvalidArgumentError(
            f"frames must be [H, W, 3] uint8, given is {list(image.shape)} {image.dtype}"
        )
    if image.shape != shape:
        raise InvalidArgumentError(
            f"frames must all have the size of the first, {list(shape)}, given is {list(image.shape)}"
        )
    if image.shape[:2] != (height, width):
        image = np.pad(image, ((0, height - shape[0]), (0, width - shape[1]), (0, 0)), mode="edge")
    return av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
