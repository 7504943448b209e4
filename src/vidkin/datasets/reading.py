"""Items as pictures of one size."""

from __future__ import annotations

import io
import math
import os
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from vidkin.datasets.labelled import Kind, LabelledItem
from vidkin.datasets.readers.strokes import draw_strokes, parse_strokes
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin.media import Frames, iter_frames, probe, read_frames

__all__ = ["Fit", "read_item"]

Fit = Literal["letterbox", "crop", "stretch"]

# A member of an archive that says it is larger is not read: labelled pictures and drawings are small.
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
    """Read an item as square pictures. The same arguments give the same numbers.

    Args:
        item: The item.
        kind: What it is, as the set that it comes from says.
        size: Side of the pictures, pixels.
        frames: Of videos and strokes: exactly this many, at the middles of as many equal parts of the item (strokes:
            from the first touch to the finished drawing), of a shorter video some twice. With ``rate``: the first ones,
            at most this many.
        rate: Frames a second, sampled from the start. None with ``frames`` None gives every frame of a video, and 10 a
            second of strokes.
        fit: How pictures that are not square become so. ``"letterbox"`` shows all of the picture between black bars:
            the default, as the labelled thing may be anywhere, small, or as large as the picture. ``"crop"`` cuts the
            middle square, the usual way of networks that were trained on photographs. ``"stretch"`` changes the aspect.
        threads: Threads of the decoder; more than 1 only where files are read one at a time.

    Returns:
        [size, size, 3] of an image, [T, size, size, 3] of videos and strokes, uint8 RGB.

    Raises:
        InvalidArgumentError: An argument is out of range.
        MediaError: The file cannot be read.
        DatasetError: The archive lacks the member, or the strokes are not in their format.
    """
    for name, value in (("size", size), ("frames", 1 if frames is None else frames)):
        if value < 1:
            raise InvalidArgumentError(f"{name} must be at least 1, given is {value}")
    if rate is not None and not (rate > 0 and math.isfinite(rate)):
        raise InvalidArgumentError(f"rate must be above 0 frames a second, given is {rate}")
    if fit not in ("letterbox", "crop", "stretch"):
        raise InvalidArgumentError(f"fit is {fit!r}, allowed are letterbox, crop and stretch")
    if kind == "image":
        return _read_image(item, size, fit)
    if kind == "video":
        return _read_video(item, size, frames, rate, fit, threads)
    if kind == "strokes":
        drawing = parse_strokes(_content(item).decode("utf-8", errors="replace"), name=item.key())
        if frames is not None and rate is None:
            times = np.linspace(0.0, drawing.duration, frames) if frames > 1 else np.array([drawing.duration])
        else:
            rate = rate or 10.0
            # The last picture shows the finished drawing.
            times = np.arange(math.ceil(drawing.duration * rate - 1e-9) + 1) / rate
            times = times[:frames]
        return draw_strokes(drawing, times, size=size)
    raise InvalidArgumentError(f"kind is {kind!r}, allowed are image, video and strokes")


def _read_image(item: LabelledItem, size: int, fit: Fit) -> NDArray[np.uint8]:
    source = io.BytesIO(_content(item)) if item.member else item.path
    try:
        with Image.open(source) as picture:
            upright = ImageOps.exif_transpose(picture)
            if upright.mode in ("P", "PA", "LA", "RGBA"):
                # What is transparent becomes white paper, not whatever colour hides beneath.
                upright = upright.convert("RGBA")
                paper = Image.new("RGBA", upright.size, "white")
                upright = Image.alpha_composite(paper, upright)
            return _fitted(upright.convert("RGB"), size, fit)
    except FileNotFoundError as error:
        raise MediaError(item.path, "there is no such file") from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        # SyntaxError is Pillow's word for a broken PNG.
        raise MediaError(item.key(), f"not readable as an image: {error}") from error


def _read_video(
    item: LabelledItem, size: int, frames: int | None, rate: float | None, fit: Fit, threads: int
) -> NDArray[np.uint8]:
    if item.member:
        raise InvalidArgumentError(f"{item.key()} is inside an archive; unpack the videos to read them")
    if frames is not None and rate is None:
        # Exactly ``frames`` pictures at the middles of equal parts.
        info = probe(item.path)
        end = info.duration if item.end is None else min(item.end, info.duration)
        # Of an item beyond the end of its file the reader tells; a length is needed to get there.
        step = max(end - item.start, info.duration / 1000) / frames
        times = item.start + (np.arange(frames) + 0.5) * step
        found = read_frames(
            item.path,
            rate=1.0 / step,
            start=float(times[0]),
            end=float(times[-1] + step / 4),
            short_side=size,
            threads=threads,
        )
        found = _begun(found, item.start)
        # The reader gives no frame twice, and fewer where the file ends early: each moment takes the one on screen.
        shown = np.searchsorted(found.timestamps, times + 1e-6, side="right") - 1
        unique = [_fitted(Image.fromarray(image), size, fit) for image in found.images]
        return np.stack([unique[index] for index in np.clip(shown, 0, len(unique) - 1)])
    pictures: list[NDArray[np.uint8]] = []
    for part in iter_frames(
        item.path, rate=rate, start=item.start, end=item.end, short_side=size, threads=threads
    ):
        part = part if pictures else _begun(part, item.start)
        pictures += [_fitted(Image.fromarray(image), size, fit) for image in part.images]
        if frames is not None and len(pictures) >= frames:
            break
    return np.stack(pictures[:frames])


def _begun(found: Frames, start: float) -> Frames:
    """Without the frame that was on screen at the start already, if there are others: an excerpt shows nothing of
    the one before it."""
    late = found.timestamps < start - 1e-6
    return found[~late] if late.any() and not late.all() else found


def _fitted(picture: Image.Image, size: int, fit: Fit) -> NDArray[np.uint8]:
    width, height = picture.size
    if fit == "crop" and width != height:
        side = min(width, height)
        left, top = (width - side) // 2, (height - side) // 2
        picture = picture.crop((left, top, left + side, top + side))
    inner = (size, size)
    if fit == "letterbox":
        scale = size / max(width, height)
        inner = (max(1, round(width * scale)), max(1, round(height * scale)))
    if picture.size != inner:
        picture = picture.resize(inner, Image.Resampling.BILINEAR)
    if inner != (size, size):
        square = Image.new("RGB", (size, size))
        square.paste(picture, ((size - inner[0]) // 2, (size - inner[1]) // 2))
        picture = square
    return np.asarray(picture)


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
            raise MediaError(item.key(), f"unpacks to {entry.file_size:,} bytes, more than is read")
        return archive.read(entry)
    except KeyError as error:
        raise DatasetError(f"{item.path} has no member {item.member}") from error
    except (OSError, zipfile.BadZipFile) as error:
        raise MediaError(item.key(), f"the archive cannot be read: {error}") from error


@lru_cache(maxsize=8)
def _archive(path: Path, modified: int, size: int) -> zipfile.ZipFile:
    # Held in memory and not as an open file: worker processes that share a file would move each other's place in it.
    del modified, size  # they are in the key so that a replaced archive is read anew
    return zipfile.ZipFile(io.BytesIO(path.read_bytes()))
