"""Open videos that FFmpeg cannot read directly: videos in motion photos, and animated WebP."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import IO, TYPE_CHECKING, Any, cast

from vidkin._base.files import open_regular_file
from vidkin._base.moving_pictures import find_motion, is_animated
from vidkin.errors import MediaError

if TYPE_CHECKING:
    from PIL import Image

# Maximum number of frames of an animated image, and maximum size in bytes of its lossless video.
_MAX_FRAMES, _MAX_BYTES = 20_000, 1 << 29
_MILLISECONDS = Fraction(1, 1000)
# Milliseconds for which browsers show a frame that states no duration.
_DEFAULT_DURATION = 100


class _FileTail(io.RawIOBase):
    """The part of a file after an offset, as a file object."""

    def __init__(self, file: IO[bytes], start: int) -> None:
        self._file, self._start = file, start
        file.seek(start)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def tell(self) -> int:
        return self._file.tell() - self._start

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset + self._start if whence == os.SEEK_SET else offset, whence) - self._start


@contextmanager
def open_inside(name: str, max_pixels: int) -> Iterator[IO[bytes] | None]:
    """Open the video in a motion photo, or an animated WebP as lossless video; yield None for any other file.

    Args:
        name: The file.
        max_pixels: Maximum number of pixels per frame.

    Raises:
        MediaError: The animated image cannot be read or is too large.
    """
    start = find_motion(name)
    if start is not None:
        with open_regular_file(name) as file:
            yield cast("IO[bytes]", io.BufferedReader(_FileTail(file, start)))
    elif name.lower().endswith(".webp") and is_animated(name):
        yield _encode_webp(name, max_pixels)
    else:
        yield None


def _encode_webp(name: str, max_pixels: int) -> io.BytesIO:
    from PIL import Image

    made = io.BytesIO()
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(name, formats=["WEBP"]) as picture:
            if picture.width * picture.height > max_pixels:
                raise MediaError(name, "its frames have too many pixels")
            _encode(picture, made, name)
    except MediaError:
        raise
    except Exception as error:  # on damaged files, Pillow can raise anything
        raise MediaError(name, f"the animated image is damaged ({error})") from error
    made.seek(0)
    return made


def _encode(picture: Image.Image, made: io.BytesIO, name: str) -> None:
    import av
    import numpy as np

    count = getattr(picture, "n_frames", 1)
    if count > _MAX_FRAMES:
        raise MediaError(name, f"animated images must have at most {_MAX_FRAMES:,} frames, got {count:,}")
    with av.open(made, "w", format="matroska") as output:
        stream = output.add_stream("ffv1", rate=Fraction(1000, _DEFAULT_DURATION))
        stream.width, stream.height, stream.pix_fmt = picture.width, picture.height, "bgr0"
        stream.time_base = stream.codec_context.time_base = _MILLISECONDS
        time = 0
        for number in range(count):
            picture.seek(number)
            pixels = np.asarray(picture.convert("RGB"))
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format="bgr0")
            frame.pts, frame.time_base = time, _MILLISECONDS
            duration = int(picture.info.get("duration") or _DEFAULT_DURATION)
            time += duration
            for packet in stream.encode(frame):
                packet.duration = duration
                output.mux(packet)
            if made.tell() > _MAX_BYTES:
                raise MediaError(name, "its frames need too much memory")
        output.mux(stream.encode(None))
