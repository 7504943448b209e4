"""Provide any video or image source as a file: paths, bytes, open files, and frames in memory."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vidkin._base.stopping import check_wanted
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media.encode import write_video
from vidkin.media.frames import Frames

if TYPE_CHECKING:
    from PIL import Image

    Picture: TypeAlias = Image.Image | NDArray[np.uint8]
    Source: TypeAlias = (
        str
        | os.PathLike[str]
        | bytes
        | bytearray
        | memoryview
        | IO[bytes]
        | Image.Image
        | NDArray[np.uint8]
        | Frames
        | Iterable[Image.Image | NDArray[np.uint8] | Frames]
    )
else:
    Source = Any
    """Accepted by every function that takes a video: a path, ``bytes``, an open binary file, a PIL image, an array
    [H, W, 3] or [T, H, W, 3] of uint8 RGB, `Frames`, or an iterator of such frames."""

ACCEPTED = (
    "a path, bytes, an open binary file, a PIL image, Frames, an array [H, W, 3] or [T, H, W, 3] of uint8 RGB, "
    "or an iterator of such frames"
)

_CHUNK = 1 << 20


@contextmanager
def open_source(
    source: Source, frame_rate: float | None = None, *, name: str = "source"
) -> Iterator[str | os.PathLike[str]]:
    """Yield the file of a source, or a temporary lossless file if the source has no file.

    Frames in memory are therefore read, sampled and described exactly like a file with these frames.

    Args:
        source: A video or an image; see :data:`Source`. Images are rotated according to their EXIF data. Times of
            `Frames` count from the first frame.
        frame_rate: Frames per second, for an array or an iterator of several frames without times.
        name: Name of the argument, for messages.

    Raises:
        InvalidArgumentError: The source has another type, or there are several frames but no frame rate.
        MediaError: Raised in the block; in errors about the temporary file, the path is replaced with the kind of
            source.
    """
    if frame_rate is not None and not 0 < frame_rate < math.inf:
        raise InvalidArgumentError(f"frame_rate must be above 0 frames per second, got {frame_rate}")
    path = _find_path(source)
    if path is not None:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="vidkin-") as folder:
        kind, written = _write(source, Path(folder), frame_rate, name)
        try:
            yield written
        except MediaError as error:
            if Path(error.path) != written:
                raise
            raise MediaError(kind, error.cause, error.temporary) from None


def source_name(source: Source) -> str:
    """Return the path of a source; empty if it has none, as for frames in memory."""
    path = _find_path(source)
    return "" if path is None else os.fspath(path)


def _find_path(source: Source) -> str | os.PathLike[str] | None:
    """Return the path of a source; this includes file objects that were opened by path and have not been read yet."""
    if isinstance(source, str | os.PathLike):
        return source
    file: Any = source
    name = getattr(file, "name", None)
    if not isinstance(name, str) or not hasattr(file, "fileno"):
        return None
    try:
        is_same = os.path.samestat(os.fstat(file.fileno()), os.stat(name))
        return os.path.abspath(name) if is_same and file.tell() == 0 else None
    except (OSError, ValueError):  # closed, or not a file on disk
        return None


def _write(source: Any, folder: Path, frame_rate: float | None, name: str) -> tuple[str, Path]:
    """Write a source to a new file; return the kind of source and the file."""
    if isinstance(source, bytes | bytearray | memoryview):
        path = folder / "bytes"
        path.write_bytes(source)
        return "bytes", path
    if hasattr(source, "read"):
        path = folder / "file"
        _copy(source, path, name)
        return "open file", path
    frames = _iter_frames(source, name)
    start = list(islice(frames, 2))
    if not start:
        raise InvalidArgumentError(f"{name} must have at least one frame, got none; accepted is {ACCEPTED}")
    if len(start) == 1:
        from PIL import Image

        path = folder / "picture.png"
        Image.fromarray(start[0][0]).save(path, compress_level=1)
        return "picture", path
    has_times = start[0][1] is not None
    if not has_times and frame_rate is None:
        raise InvalidArgumentError(
            f"{name} has several frames, so frame_rate must be above 0 frames per second, got {frame_rate}"
        )
    if has_times and start[1][1] is not None and start[0][1] is not None and start[1][1] > start[0][1]:
        # The last frame stays on screen as long as the first.
        frame_rate = 1 / (start[1][1] - start[0][1])
    path, times = folder / "frames.mkv", list[float]()
    write_video(
        path,
        _collect_times(chain(start, frames), times, name),
        rate=frame_rate or 25,
        times=_iter_times(times) if has_times else None,
        codec="ffv1",
        crf=None,
        preset=None,
        pixel_format="bgr0",
    )
    return "frames", path


def _copy(file: Any, path: Path, name: str) -> None:
    try:
        with path.open("wb") as copy:
            while chunk := file.read(_CHUNK):
                check_wanted()
                if not isinstance(chunk, bytes | bytearray | memoryview):
                    raise InvalidArgumentError(f"{name} must be opened as a binary file (mode 'rb'), got {file!r}")
                copy.write(chunk)
    except (OSError, ValueError, TypeError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(f"{name} cannot be read as a file ({error}); accepted is {ACCEPTED}") from error


def _iter_frames(source: Any, name: str) -> Iterator[tuple[NDArray[np.uint8], float | None]]:
    """Yield images [H, W, 3], each with its time, if any."""
    from PIL import Image, ImageOps

    if isinstance(source, Frames):
        yield from zip(source.images, source.timestamps.tolist(), strict=True)
    elif isinstance(source, Image.Image):
        try:
            yield np.asarray(ImageOps.exif_transpose(source).convert("RGB")), None
        except (OSError, ValueError) as error:
            raise MediaError("picture", f"the image cannot be decoded ({error})") from error
    elif isinstance(source, np.ndarray):
        if source.dtype != np.uint8 or source.ndim not in (3, 4) or source.shape[-1] != 3 or 0 in source.shape[1:]:
            raise _refused_error(name, f"an array {list(source.shape)} {source.dtype}")
        yield from ((image, None) for image in (source[None] if source.ndim == 3 else source))
    elif isinstance(source, Iterable) and not isinstance(source, dict | set | frozenset):
        for part in source:
            check_wanted()
            if not isinstance(part, Frames | Image.Image | np.ndarray):
                raise _refused_error(f"each frame of {name}", type(part).__name__)
            yield from _iter_frames(part, name)
    else:
        raise _refused_error(name, type(source).__name__)


def _refused_error(name: str, given: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{name} must be {ACCEPTED}, got {given}")


def _collect_times(
    frames: Iterable[tuple[NDArray[np.uint8], float | None]], times: list[float], name: str
) -> Iterator[NDArray[np.uint8]]:
    """Yield the images; append the time of each, if any, relative to the first, to a list."""
    first: float | None = None
    for number, (image, time) in enumerate(frames):
        if number and (first is None) != (time is None):
            raise InvalidArgumentError(f"{name} must have times for all of its frames or for none")
        if time is not None:
            first = time if first is None else first
            times.append(time - first)
        yield image


def _iter_times(times: list[float]) -> Iterator[float]:
    while True:
        yield times.pop(0)
