"""Read items as square images of one size, draw pen movements, and cut shorter items out of labeled videos."""

from __future__ import annotations

import io
import math
import os
import zipfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from vidkin._base.values import check_at_least, check_choice
from vidkin.datasets.labeled import Kind, LabelledItem, LabelledSet
from vidkin.errors import DatasetError, InvalidArgumentError, MediaError
from vidkin.media import Frames, iter_frames, probe, read_frames
from vidkin.media.frames import Fit, fit_to_square, is_before, shown_at

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
        shown = shown_at(decoded.timestamps, times)
        unique = [fit_to_square(image, size, fit) for image in decoded.images]
        return np.stack([unique[index] for index in np.clip(shown, 0, len(unique) - 1)])
    pictures: list[NDArray[np.uint8]] = []
    for part in iter_frames(item.path, rate=rate, start=item.start, end=item.end, short_side=size, threads=threads):
        part = part if pictures else _without_earlier(part, item.start)
        pictures += [fit_to_square(image, size, fit) for image in part.images]
        if frames is not None and len(pictures) >= frames:
            break
    return np.stack(pictures[:frames])


def _without_earlier(frames: Frames, start: float) -> Frames:
    """Without the frame that was already on screen at the start, if there are others: an excerpt shows nothing of the
    one before it."""
    earlier = is_before(frames.timestamps, start)
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


# Omniglot was drawn on a field of 105 pixels.
_FIELD = 105.0

# Lines are drawn twice as large and averaged down: smooth edges, at a quarter of the cost of four times.
_OVERSAMPLING = 2


@dataclass(frozen=True)
class Drawing:
    """The movements of a pen.

    Attributes:
        points: [P, 2] float64, x to the right and y down, as shares of the paper's side (0 to 1 inside it).
        times: [P] float64, seconds from the first touch, not decreasing.
        starts: Where in ``points`` each stroke (from pen down to pen up) begins, increasing, the first 0.
    """

    points: NDArray[np.float64]
    times: NDArray[np.float64]
    starts: tuple[int, ...]

    @property
    def duration(self) -> float:
        """Seconds from the first touch to the last movement."""
        return float(self.times[-1])


def parse_strokes(text: str, *, name: str = "strokes") -> Drawing:
    """Read pen movements in Omniglot's format: lines ``x,y,milliseconds`` with y up, ``START`` and ``BREAK``.

    Times that run backwards, as some of the recordings have, are held at the latest one before.

    Args:
        text: Content of the file.
        name: Its name, for errors.

    Raises:
        DatasetError: A line is none of these, or there is no movement at all.
    """
    rows: list[tuple[float, float, float]] = []
    starts: list[int] = []
    fresh = True
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        if line in ("", "START"):
            continue
        if line == "BREAK":
            fresh = True
            continue
        try:
            x, y, time = (float(value) for value in line.split(","))
        except ValueError as error:
            raise DatasetError(
                f"{name}, line {number}: {line[:40]!r} is not x,y,milliseconds, START or BREAK"
            ) from error
        if fresh:
            starts.append(len(rows))
            fresh = False
        rows.append((x, y, time))
    if not rows:
        raise DatasetError(f"{name} holds no pen movement; it must have lines x,y,milliseconds")
    table = np.array(rows, dtype=np.float64)
    if not np.isfinite(table).all():
        raise DatasetError(f"{name} holds numbers that are not finite")
    times = np.maximum.accumulate(table[:, 2] - table[0, 2]) / 1000.0
    return Drawing(table[:, :2] * [1.0, -1.0] / _FIELD, times, tuple(starts))


def draw_strokes(drawing: Drawing, times: NDArray[np.float64], *, size: int, width: float = 4.0) -> NDArray[np.uint8]:
    """Black ink on white paper at some moments.

    Args:
        drawing: The movements.
        times: [T] seconds, not decreasing; a picture shows what was drawn up to then.
        size: Side of the pictures, pixels.
        width: Width of the line in pixels of a paper of 105, as Omniglot's own images have about 4.

    Returns:
        [T, size, size, 3] uint8.
    """
    if size < 1:
        raise InvalidArgumentError(f"size must be at least 1 pixel, got {size}")
    side = size * _OVERSAMPLING
    pen = max(1, round(width * side / _FIELD))
    paper = Image.new("L", (side, side), 255)
    draw = ImageDraw.Draw(paper)
    places = [(float(x) * side, float(y) * side) for x, y in drawing.points]
    begins = set(drawing.starts)
    pictures = np.empty((len(times), size, size), dtype=np.uint8)
    shown = 0
    for index, time in enumerate(times):
        count = int(np.searchsorted(drawing.times, time, side="right"))
        for place in range(shown, count):
            x, y = places[place]
            draw.ellipse((x - pen / 2, y - pen / 2, x + pen / 2, y + pen / 2), fill=0)
            if place not in begins:
                draw.line((places[place - 1], (x, y)), fill=0, width=pen)
        if count > shown or index == 0:
            small = np.asarray(paper.reduce(_OVERSAMPLING))
            shown = max(count, shown)
        pictures[index] = small
    return np.repeat(pictures[..., None], 3, axis=-1)


def make_excerpts(labelled: LabelledSet, count: int, *, share: float = 0.5) -> LabelledSet:
    """Divide every video into ``count`` items of ``share`` of its length each, spread evenly from its start to its
    end.

    They overlap if ``count * share`` is above 1. Labels, groups and splits stay, so that excerpts of a video are
    positives of each other and on one side of a split. A file that cannot be read stays whole; the cause is reported
    when it is read.

    Args:
        labelled: A set of kind ``video``.
        count: Number of excerpts per video, at least 1; a single one is the middle.
        share: Length of an excerpt as a share of the video, above 0 and at most 1.

    Raises:
        InvalidArgumentError: The set does not hold videos, or a number is out of range.
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
            place = number / (count - 1) if count > 1 else 0.5
            start = item.start + place * (end - item.start - length)
            items.append(replace(item, start=start, end=start + length))
    return labelled.with_items(items)


def make_frame_excerpts(labelled: LabelledSet, *, count: int, frames: int) -> LabelledSet:
    """Divide every video into excerpts of consecutive frames, spread evenly from its start to its end.

    Excerpts keep labels, group and split of their video, so that a split stays without leakage; they overlap if the
    video is short. A video with fewer frames than that stays whole, once.

    Args:
        labelled: A set of kind ``"video"``.
        count: Excerpts per video, 2 or more.
        frames: Number of consecutive frames in an excerpt, at least 1, counted at the frame rate stated by the file.

    Returns:
        The collection with ``count`` items for each video.

    Raises:
        InvalidArgumentError: The set does not hold videos, or a number is out of range.
        MediaError: A video cannot be read.
    """
    _require_videos(labelled)
    check_at_least(2, count=count)
    check_at_least(1, frames=frames)
    items: list[LabelledItem] = []
    for item in labelled.items:
        info = probe(item.path)
        rate = info.frame_rate
        end = info.duration if item.end is None else min(item.end, info.duration)
        spare = round((end - item.start) * rate) - frames
        if spare < 0:
            items.append(item)
            continue
        # With more excerpts than places some would occur twice.
        places = sorted({round(spare * number / (count - 1)) for number in range(count)})
        # Halfway between two frames, so that rounding of times changes none.
        items += [
            replace(
                item,
                start=max(item.start, item.start + (place - 0.5) / rate),
                end=item.start + (place + frames - 0.5) / rate,
            )
            for place in places
        ]
    return labelled.with_items(items)


def middle_excerpt(item: LabelledItem, seconds: float) -> LabelledItem:
    """The middle of a video in this length; a shorter video is returned unchanged.

    Raises:
        MediaError: The file cannot be read.
    """
    end = item.end if item.end is not None else probe(item.path).duration
    spare = (end - item.start - seconds) / 2
    return item if spare <= 0 else replace(item, start=item.start + spare, end=end - spare)


def _require_videos(labelled: LabelledSet) -> None:
    if labelled.kind != "video":
        raise InvalidArgumentError(
            f"{labelled.name} must hold videos to have excerpts, got items of kind {labelled.kind}"
        )
