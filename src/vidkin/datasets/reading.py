"""Read items as square images of one size."""

from __future__ import annotations

import io
import math
import os
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from vidkin._base.checks import check_at_least, check_choice
from vidkin.datasets.labelled import Kind, LabelledItem
from vidkin.datasets.readers.strokes import draw_strokes, parse_strokes
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin.media import Frames, iter_frames, probe, read_frames
from vidkin.media.squares import Fit, fit_to_square
from vidkin.media.time import SAME_TIME

__all__ = ["Fit", "read_item"]

# A larger member of an archive is not read, because labeled images and drawings are small.
_LARGEST_MEMBER = 256 * 2**20


def read_item(
    item: LabelledItem,
    kind: Kind,
    *,
    size: int,
    frames: int | None = None,
    rate: float | None = None,
    fit: Fit = "letterbox",
    threads: int = 1,
) -> NDArray[np.uint8]:
    """Read an item as square images. The same arguments give the same numbers.

    Args:
        item: The item.
        kind: Kind of the item's set.
        size: Side of the images, in pixels.
        frames: For videos and strokes: exactly this many frames, at the middles of as many equal parts of the item
            (strokes: from the first touch to the finished drawing); frames of a shorter video are repeated. With
            ``rate``: at most this many frames from the start.
        rate: Frames per second, sampled from the start. If both this and ``frames`` are None, every frame of a video
            is read, and 10 frames per second of strokes.
        fit: How images are made square. ``"letterbox"`` shows the whole image between black bars: the default, because
            the labeled object can be anywhere, small, or as large as the image. ``"crop"`` cuts out the middle square,
            as is usual for networks trained on photographs. ``"stretch"`` changes the aspect ratio.
        threads: Decoder threads; use more than 1 only if files are read one at a time.

    Returns:
        [size, size, 3] for an image, [T, size, size, 3] for videos and strokes, uint8 RGB.

    Raises:
        InvalidArgumentError: An argument is out of range.
        MediaError: The file cannot be read.
        DatasetError: The archive lacks the member, or the strokes are malformed.
    """
    check_at_least(1, size=size, frames=1 if frames is None else frames)
    if rate is not None and not (rate > 0 and math.isfinite(rate)):
        raise InvalidArgumentError(f"rate must be above 0 frames a second, got {rate}")
    check_choice("fit", fit, get_args(Fit))
    check_choice("kind", kind, get_args(Kind))
    if kind == "image":
        return _read_image(item, size, fit)
    if kind == "video":
        return _read_video(item, size, frames, rate, fit, threads)
    drawing = parse_strokes(_content(item).decode("utf-8", errors="replace"), name=item.key())
    if frames is not None and rate is None:
        times = np.linspace(0.0, drawing.duration, frames) if frames > 1 else np.array([drawing.duration])
    else:
        rate = rate or 10.0
        # The last picture shows the finished drawing.
        times = np.arange(math.ceil(drawing.duration * rate - 1e-9) + 1) / rate
        times = times[:frames]
    return draw_strokes(drawing, times, size=size)


def _read_image(item: LabelledItem, size: int, fit: Fit) -> NDArray[np.uint8]:
    source = io.BytesIO(_content(item)) if item.member else item.path
    try:
        with Image.open(source) as picture:
            upright = ImageOps.exif_transpose(picture)
            if upright.mode in ("P", "PA", "LA", "RGBA"):
                # Transparent parts become white rather than the color hidden in them.
                upright = upright.convert("RGBA")
                white = Image.new("RGBA", upright.size, "white")
                upright = Image.alpha_composite(white, upright)
            return fit_to_square(upright.convert("RGB"), size, fit)
    except FileNotFoundError as error:
        raise MediaError(item.path, "there is no such file") from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        # Pillow raises SyntaxError for a broken PNG.
        raise MediaError(item.key(), f"cannot be read as an image: {error}") from error


def _read_video(
    item: LabelledItem, size: int, frames: int | None, rate: float | None, fit: Fit, threads: int
) -> NDArray[np.uint8]:
    if item.member:
        raise InvalidArgumentError(f"{item.key()}: is inside an archive; unpack the videos to read them")
    if frames is not None and rate is None:
        # Exactly ``frames`` images at the middles of equal parts.
        info = probe(item.path)
        end = info.duration if item.end is None else min(item.end, info.duration)
        # The reader reports an item beyond the end of its file; to get there, a length above 0 is needed.
        step = max(end - item.start, info.duration / 1000) / frames
        times = item.start + (np.arange(frames) + 0.5) * step
        decoded = read_frames(
            item.path,
            rate=1.0 / step,
            start=float(times[0]),
            end=float(times[-1] + step / 4),
            short_side=size,
            threads=threads,
        )
        decoded = _without_earlier(decoded, item.start)
        # The reader returns no frame twice, and fewer frames if the file ends early: each moment gets the frame on
        # screen.
        shown = np.searchsorted(decoded.timestamps, times + SAME_TIME, side="right") - 1
        unique = [fit_to_square(image, size, fit) for image in decoded.images]
        return np.stack([unique[index] for index in np.clip(shown, 0, len(unique) - 1)])
    pictures: list[NDArray[np.uint8]] = []
    for part in iter_frames(
        item.path, rate=rate, start=item.start, end=item.end, short_side=size, threads=threads
    ):
        part = part if pictures else _without_earlier(part, item.start)
        pictures += [fit_to_square(image, size, fit) for image in part.images]
        if frames is not None and len(pictures) >= frames:
            break
    return np.stack(pictures[:frames])


def _without_earlier(frames: Frames, start: float) -> Frames:
    """Without the frame that was already on screen at the start, if there are others: an excerpt shows nothing of the
    one before it."""
    earlier = frames.timestamps < start - SAME_TIME
    return frames[~earlier] if earlier.any() and not earlier.all() else frames


def _content(item: LabelledItem) -> bytes:
    """The bytes of a file, or of a member of an archive."""
    if not item.member:
        try:
            return item.path.read_bytes()
        except OSError as error:
            raise MediaError(item.path, f"cannot be read: {error.strerror}") from error
    try:
        state = os.stat(item.path)
        archive = _archive(item.path, state.st_mtime_ns, state.st_size)
        entry = archive.getinfo(item.member)
        if entry.file_size > _LARGEST_MEMBER:
            raise MediaError(item.key(), f"is too large to be read: {entry.file_size:,} bytes unpacked")
        return archive.read(entry)
    except KeyError as error:
        raise DatasetError(f"{item.path}: has no member {item.member}") from error
    except (OSError, zipfile.BadZipFile) as error:
        raise MediaError(item.key(), f"the archive cannot be read: {error}") from error


@lru_cache(maxsize=8)
def _archive(path: Path, modified: int, size: int) -> zipfile.ZipFile:
    # In memory rather than as an open file: worker processes that share a file would move each other's position in it.
    del modified, size  # part of the key, so that a replaced archive is read again
    return zipfile.ZipFile(io.BytesIO(path.read_bytes()))
