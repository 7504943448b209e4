"""Read items as square images, and cut excerpts from labeled videos."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from vidkin._base.arguments import check_arguments
from vidkin._base.files import read_regular_file
from vidkin._base.registry import Registry
from vidkin._base.values import check_at_least, check_choice
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin.media import Frames, iter_frames, probe, read_frames
from vidkin.media.frames import Fit, fit_to_square, is_before, shown_at

# Larger files and archive members are rejected; labeled images are small.
_MAX_BYTES = 256 * 2**20
# Archives are read into memory, so their size is limited as well.
_MAX_ARCHIVE_BYTES = 8 * 2**30

ReadKind = Callable[[LabelledItem, int, int | None, float | None], NDArray[np.uint8]]
"""Function that reads an item of a registered kind: (item, size, frames, rate), as in :func:`read_item`, to
[T, size, size, 3]."""

_KINDS: Registry[ReadKind] = Registry("kind of items", {})


@check_arguments
def register_kind(kind: str, read: ReadKind) -> None:
    """Register a kind of item in addition to ``image`` and ``video``; its items are treated like videos.

    Raises:
        InvalidArgumentError: The name is malformed or in use.
    """
    _KINDS.register(kind, read)


@check_arguments
def read_item(
    item: LabelledItem,
    kind: str,
    *,
    size: int,
    frames: int | None = None,
    rate: float | None = None,
    fit: Fit = "letterbox",
    threads: int = 1,
) -> NDArray[np.uint8]:
    """Read an item as square images. The same arguments give the same pixels.

    Args:
        item: The item.
        kind: Kind of the set that the item belongs to.
        size: Side of the images in pixels.
        frames: For videos, the exact number of frames to read, at the middles of equal parts of the item; frames of
            short videos are repeated. With ``rate``, the maximum number of frames from the start.
        rate: Frames per second to sample from the start. If both ``rate`` and ``frames`` are None, every frame of the
            video is read.
        fit: How images are made square. ``"letterbox"``, the default, shows the whole image between black bars, because
            the labeled object can be anywhere, and small or as large as the image. ``"crop"`` cuts out the central
            square, as is usual for networks trained on photographs. ``"stretch"`` changes the aspect ratio.
        threads: Number of decoder threads; use more than 1 only if files are read one at a time.

    Returns:
        uint8 RGB: [size, size, 3] for an image, [T, size, size, 3] for a video.

    Raises:
        InvalidArgumentError: An argument is out of range.
        MediaError: The file cannot be read.
        DatasetError: The archive lacks the member.
    """
    check_at_least(1, size=size, frames=1 if frames is None else frames)
    if rate is not None and not (rate > 0 and math.isfinite(rate)):
        raise InvalidArgumentError(f"rate must be above 0 frames per second, got {rate}")
    check_choice("fit", fit, get_args(Fit))
    other = _KINDS.find(kind)
    if other is not None:
        return other(item, size, frames, rate)
    check_choice("kind", kind, ("image", "video"))
    if kind == "image":
        return _read_image(item, size, fit)
    return _read_video(item, size, frames, rate, fit, threads)


def _read_image(item: LabelledItem, size: int, fit: Fit) -> NDArray[np.uint8]:
    try:
        with Image.open(io.BytesIO(read_content(item))) as image:
            upright = ImageOps.exif_transpose(image)
            if upright.mode in ("P", "PA", "LA", "RGBA"):
                # Make transparent areas white; a direct conversion would show their arbitrary colors.
                upright = upright.convert("RGBA")
                white = Image.new("RGBA", upright.size, "white")
                upright = Image.alpha_composite(white, upright)
            return fit_to_square(upright.convert("RGB"), size, fit)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        # Pillow raises SyntaxError for damaged PNG files.
        raise MediaError(item.key(), f"cannot be read as an image: {error}") from error


def _read_video(
    item: LabelledItem, size: int, frames: int | None, rate: float | None, fit: Fit, threads: int
) -> NDArray[np.uint8]:
    if item.member:
        raise InvalidArgumentError(f"{item.key()}: is inside an archive; unpack the videos to read them")
    if frames is not None and rate is None:
        info = probe(item.path)
        end = info.duration if item.end is None else min(item.end, info.duration)
        # The step must be above 0 even if the item starts after the end of the file, which the reader then reports.
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
        decoded = _drop_earlier(decoded, item.start)
        # The reader does not repeat frames, and returns fewer if the file ends early, so use the frame on screen at
        # each
        # time.
        shown = shown_at(decoded.timestamps, times)
        unique = [fit_to_square(image, size, fit) for image in decoded.images]
        return np.stack([unique[index] for index in np.clip(shown, 0, len(unique) - 1)])
    images: list[NDArray[np.uint8]] = []
    for part in iter_frames(item.path, rate=rate, start=item.start, end=item.end, short_side=size, threads=threads):
        part = part if images else _drop_earlier(part, item.start)
        images += [fit_to_square(image, size, fit) for image in part.images]
        if frames is not None and len(images) >= frames:
            break
    return np.stack(images[:frames])


def _drop_earlier(frames: Frames, start: float) -> Frames:
    """Drop frames from before the start, unless there are no others, so that excerpts of a video do not share
    frames."""
    earlier = is_before(frames.timestamps, start)
    return frames[~earlier] if earlier.any() and not earlier.all() else frames


@check_arguments
def read_content(item: LabelledItem) -> bytes:
    """Read the bytes of an item's file or archive member.

    Raises:
        MediaError: The content cannot be read or is too large.
        DatasetError: The archive lacks the member.
    """
    if not item.member:
        try:
            return read_regular_file(item.path, _MAX_BYTES, follow_links=True)
        except FileNotFoundError as error:
            raise MediaError(item.path, "there is no such file") from error
        except ValueError as error:
            raise MediaError(item.path, f"cannot be read: {error}") from error
        except OSError as error:
            raise MediaError(item.path, f"cannot be read: {error.strerror}") from error
    try:
        state = os.stat(item.path)
        archive = _archive(item.path, state.st_mtime_ns, state.st_size)
        entry = archive.getinfo(item.member)
        if entry.file_size > _MAX_BYTES:
            raise MediaError(item.key(), f"is too large to be read: {entry.file_size:,} bytes unpacked")
        return archive.read(entry)
    except KeyError as error:
        raise DatasetError(f"{item.path}: has no member {item.member}") from error
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise MediaError(item.key(), f"the archive cannot be read: {error}") from error


@lru_cache(maxsize=8)
def _archive(path: Path, modified: int, size: int) -> zipfile.ZipFile:
    # Kept in memory, not as an open file, because forked worker processes would share the position in the file.
    del modified, size  # cache keys only, so that a replaced archive is read again
    return zipfile.ZipFile(io.BytesIO(read_regular_file(path, _MAX_ARCHIVE_BYTES, follow_links=True)))


@check_arguments
def make_excerpts(labelled: LabelledSet, count: int, *, share: float = 0.5) -> LabelledSet:
    """Cut ``count`` excerpts from every video, each with length ``share``, spaced evenly from start to end.

    Excerpts overlap if ``count * share`` is above 1. They keep the labels, group and split of the video, so that they
    are positives of each other in the same split. A file that cannot be probed is kept whole; the error is reported
    when its frames are read.

    Args:
        labelled: A set of kind ``video``.
        count: Number of excerpts per video, at least 1; a single excerpt is the middle of the video.
        share: Length of an excerpt as a fraction of the video, above 0 and at most 1.

    Raises:
        InvalidArgumentError: The set does not contain videos, or a number is out of range.
    """
    _require_videos(labelled)
    check_at_least(1, count=count)
    if not 0 < share <= 1:
        raise InvalidArgumentError(f"share must be above 0 and at most 1, got {share}")
    items = []
    for item in labelled.items:
        try:
            end = item.end if item.end is not None else probe(item.path).duration
        except MediaError:
            items.append(item)
            continue
        length = (end - item.start) * share
        for number in range(count):
            position = number / (count - 1) if count > 1 else 0.5
            start = item.start + position * (end - item.start - length)
            items.append(replace(item, start=start, end=start + length))
    return labelled.with_items(items)


@check_arguments
def middle_excerpt(item: LabelledItem, seconds: float) -> LabelledItem:
    """Return the middle ``seconds`` of a video; a shorter video is returned unchanged.

    Raises:
        MediaError: The file cannot be read.
    """
    end = item.end if item.end is not None else probe(item.path).duration
    spare = (end - item.start - seconds) / 2
    return item if spare <= 0 else replace(item, start=item.start + spare, end=end - spare)


def _require_videos(labelled: LabelledSet) -> None:
    if labelled.kind != "video":
        raise InvalidArgumentError(
            f"{labelled.name} must contain videos to make excerpts, got items of kind {labelled.kind}"
        )
