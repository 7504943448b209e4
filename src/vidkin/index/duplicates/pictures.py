"""How much of the picture two files share: crops, insets and split screens.

A crop can be removed if what it was cut from stays. A film and a split screen that has it in one quarter must both
stay: the one is sharper, the other shows more.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin.features import bar_boxes, find_content_boxes
from vidkin.index.duplicates.comparisons import FileRecord, PairResult
from vidkin.index.duplicates.detail import measure_edges
from vidkin.media import iter_frames_at, read_frames
from vidkin.media.frames import shown_at
from vidkin.similarity import Box

SHOWS_MORE = "shows more of the picture"
"""What would be lost where a part of a picture is all that another file shows."""

_WHOLE_PICTURE = 0.8

"""A box with at least this share of the content is all of it: boxes of parts are on a coarse grid."""

_SHARPER = 1.3

"""A file is sharper if it has this many times the pixels of the same part."""

_MOMENTS = 3


@dataclass(frozen=True, slots=True)
class Extent:
    """Share of their content that two files have in common, without borders.

    Attributes:
        first, second: Shared part of their content, in (0, 1].
        first_pixels, second_pixels: Number of pixels of their content.
    """

    first: float
    second: float
    first_pixels: int
    second_pixels: int

    @property
    def missing(self) -> str:
        """What part of the picture would be lost without the first file; empty if nothing."""
        if self.first < _WHOLE_PICTURE:
            return SHOWS_MORE
        if self.second < _WHOLE_PICTURE and self.first_pixels > _SHARPER * self.second * self.second_pixels:
            return "sharper than the part that shows it"
        return ""

    @property
    def is_small_part(self) -> bool:
        """Whether a part of the first picture shows all of the second, with clearly fewer pixels."""
        is_part = self.first < _WHOLE_PICTURE <= self.second
        return is_part and self.second_pixels > _SHARPER * self.first * self.first_pixels


class Content(Protocol):
    """What is known of the pictures of a file without borders: the share of the frame that they take, their pixels."""

    @property
    def share(self) -> float: ...

    @property
    def pixels(self) -> int: ...


def extent_of(result: PairResult, first: Content, second: Content) -> Extent:
    """Shared extent of two files, by the boxes of the best segment.

    Args:
        result: Result for the two videos, with the first as the query.
        first, second: Pictures of the two videos.
    """
    shares = [1.0, 1.0]
    if result.segments:
        boxes = result.segments[0].query_box, result.segments[0].target_box
        shares = [min(1.0, _area(box) / side.share) for box, side in zip(boxes, (first, second), strict=True)]
    return Extent(shares[0], shares[1], first.pixels, second.pixels)


def find_missing_picture(first: FileRecord, second: FileRecord, result: PairResult) -> tuple[str, str]:
    """Say what part of the picture would be lost without the first file, and without the second; empty if nothing.

    The files are read only if a part of one picture is all that matches, and if they were not read lately.

    Args:
        first, second: The files.
        result: Result for the two videos, with the first as the query.

    Raises:
        MediaError: One of the files cannot be read.
    """
    if not result.segments:
        return "", ""
    best = result.segments[0]
    if min(_area(best.query_box), _area(best.target_box)) >= _WHOLE_PICTURE:
        return "", ""
    one = _content(first.record.path, best.query_start, best.query_end)
    other = _content(second.record.path, best.target_start, best.target_end)
    return extent_of(result, one, other).missing, extent_of(result.swapped(), other, one).missing


def _content(path: str, start: float, end: float) -> Content:
    """What is known of a file, or read from a few pictures between these seconds."""
    known = _known_content(path)
    if known is not None:
        return known
    steps = (np.arange(_MOMENTS) + 0.5) / _MOMENTS
    return read_pictures(path, (start + steps * (end - start)).tolist())


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


# Pictures of a file at given times, cropped to their content: no bars, no blurred borders.


# A blurred border has less than this share of the edges of the picture inside it.
_BLURRED = 0.3

_LEAST_CONTENT = 0.15

# Gray levels by which a pixel changes, and the share of a bar that may change because of subtitles.
_CHANGE = 48

_MOST_CHANGES = 0.3

# Seconds before the end of a video at which its last frame is certainly on screen, and frames decoded at a time.
_BEFORE_END, _BATCH = 0.05, 8


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures of one video.

    Attributes:
        images: [H, W, 3] each, the content alone.
        share: Share of the whole picture that is content.
    """

    images: tuple[NDArray[np.uint8], ...]
    share: float

    @property
    def pixels(self) -> int:
        """Number of pixels of the content."""
        height, width = self.images[0].shape[:2]
        return int(height * width)


def turned_images(images: NDArray[np.uint8], degrees: int) -> NDArray[np.uint8]:
    """Pictures [..., H, W, 3] turned clockwise by 0, 90, 180 or 270 degrees."""
    return np.rot90(images, -degrees // 90, axes=(-3, -2)) if degrees else images


def read_pictures(path: str, times: Sequence[float], *, mirrored: bool = False, turned: int = 0) -> Pictures:
    """Read the content of a video's pictures at these times.

    Args:
        path: The file.
        times: Seconds, one or more.
        turned: Degrees by which they are turned clockwise.
        mirrored: Flip them left to right after that.

    Raises:
        MediaError: The file cannot be read.
    """
    images = _images_at(path, times)
    height, width = images.shape[1:3]
    content = list(cut_bars(images))
    inner = _without_blurred_borders(np.stack(content))
    if inner is not None:
        x0, y0, x1, y1 = inner
        rows, columns = content[0].shape[:2]
        content = [
            image[round(y0 * rows) : round(y1 * rows), round(x0 * columns) : round(x1 * columns)] for image in content
        ]
    share = content[0].shape[0] * content[0].shape[1] / (height * width)
    _note_content(path, _ContentSize(share, content[0].shape[0] * content[0].shape[1]))
    content = [turned_images(image, turned) for image in content]
    if mirrored:
        content = [image[:, ::-1] for image in content]
    return Pictures(tuple(np.ascontiguousarray(image) for image in content), share)


def _images_at(path: str, times: Sequence[float]) -> NDArray[np.uint8]:
    """The pictures [T, H, W, 3] on screen at these times, in one pass through the file."""
    wanted = sorted(set(times))
    # A decoder of a few pictures gains nothing from threads, which cost it a fifth.
    frames = list(iter_frames_at(path, wanted, threads=1)) or [
        read_frames(path, start=wanted[0], end=wanted[0] + 0.5, batch=1, threads=1)
    ]
    # Two times may show one picture, which is read once; what lies after the end shows the last one.
    shown = np.concatenate([part.timestamps for part in frames])
    places = shown_at(shown, np.asarray(times))
    images: NDArray[np.uint8] = np.concatenate([part.images for part in frames])[np.maximum(places, 0)]
    return images


def read_moments(
    path: str, times: NDArray[np.float64], length: float, *, short_side: int
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Read the frames [T, H, W, 3] on screen at these times, and their own times [T]; each once.

    Args:
        path: The file.
        times: Seconds, in any order; those beyond the ends count as the ends.
        length: Duration of the file in seconds.
        short_side: Pixels at the shorter side.

    Raises:
        MediaError: The file cannot be read.
    """
    last = max(0.0, length - _BEFORE_END)
    wanted = np.unique(np.round(np.clip(times, 0.0, last), 3)).tolist()
    images: NDArray[np.uint8] = np.empty(0, np.uint8)
    shown: list[float] = []
    for chosen in (wanted, [0.0]):
        # Straight into their places: joined at the end, they would be held twice.
        for batch in iter_frames_at(path, chosen, short_side=short_side, batch=_BATCH, threads=1):
            if not shown:
                images = np.empty((len(chosen), *batch.images.shape[1:]), np.uint8)
            images[len(shown) : len(shown) + len(batch.images)] = batch.images
            shown += batch.timestamps.tolist()
        if shown:
            break
    return images[: len(shown)], np.array(shown)


@dataclass(frozen=True, slots=True)
class _ContentSize:
    share: float
    pixels: int


# What was seen of files, by path, bytes and time of change: the members of a group are asked about one after another.
_SEEN: OrderedDict[tuple[str, int, int], _ContentSize] = OrderedDict()

_MOST_SEEN = 4096

_SEEN_LOCK = threading.Lock()


def _note_content(path: str, content: _ContentSize) -> None:
    with _SEEN_LOCK:
        _SEEN[_identity(path)] = content
        while len(_SEEN) > _MOST_SEEN:
            _SEEN.popitem(last=False)


def _known_content(path: str) -> Content | None:
    """What was seen of a file whose pictures were read lately; None if it has changed, or is gone."""
    try:
        with _SEEN_LOCK:
            return _SEEN.get(_identity(path))
    except OSError:
        return None


def _identity(path: str) -> tuple[str, int, int]:
    status = os.stat(path)
    return path, status.st_size, status.st_mtime_ns


def read_stretch(
    path: str, start: float, end: float, *, rate: float, short_side: int, mirrored: bool = False
) -> NDArray[np.uint8]:
    """Read pictures [T, H, W, 3] of a stretch of a video.

    Args:
        path: The file.
        start, end: Seconds.
        rate: Pictures a second.
        short_side: Pixels at the shorter side.
        mirrored: Flip them left to right.

    Raises:
        MediaError: The file cannot be read.
    """
    status = os.stat(path)
    images = _held_stretch(path, (status.st_size, status.st_mtime_ns), start, end, rate, short_side)
    return images[:, :, ::-1] if mirrored else images


@lru_cache(maxsize=4)
def _held_stretch(
    path: str, identity: tuple[int, int], start: float, end: float, rate: float, short_side: int
) -> NDArray[np.uint8]:
    """The pictures of a stretch; the copies of one video are compared with it one after another."""
    images: NDArray[np.uint8] = read_frames(
        path, rate=rate, start=start, end=end, short_side=short_side, threads=1
    ).images
    images.flags.writeable = False
    return images


def cut_bars(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Crop the bars off pictures [T, H, W, 3] of one video."""
    top, bottom, left, right = find_bars(images)
    return images[:, top:bottom, left:right]


def find_bars(images: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    """Top, bottom, left and right of what is between the bars of pictures [T, H, W, 3] of one video, in pixels."""
    # Use the brightest and darkest values over time: bars never change, and a dark scene cannot pass for one.
    brightest, darkest = images.max(axis=0), images.min(axis=0)
    height, width = brightest.shape[:2]
    top, bottom, left, right = 0, height, 0, width
    for box in bar_boxes(np.stack([brightest, darkest])).tolist():
        if (box[1] - box[0]) * (box[3] - box[2]) >= (bottom - top) * (right - left):
            continue
        outside = np.ones((height, width), dtype=bool)
        outside[box[0] : box[1], box[2] : box[3]] = False
        # What is dark only at some moments is not a bar; a bar may have subtitles.
        changes = (brightest[outside] - darkest[outside]).max(axis=-1) > _CHANGE
        if changes.mean() < _MOST_CHANGES:
            top, bottom, left, right = box
    return top, bottom, left, right


def _mean_of_colors(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """[H, W] from [H, W, 3]; plane by plane, which takes a quarter of the time of a mean over the last axis."""
    first, second, third = (image[..., channel].astype(np.float32) for channel in range(3))
    return (first + second + third) / np.float32(3.0)


def _without_blurred_borders(images: NDArray[np.uint8]) -> tuple[float, float, float, float] | None:
    """The box of shares inside borders that are only a blurred copy of the picture."""
    edges = np.mean([measure_edges(_mean_of_colors(image)) for image in images], axis=0)
    height, width = edges.shape
    for left, top, right, bottom in find_content_boxes(images, only_lines=True).tolist():
        rows = slice(round(top * height), round(bottom * height))
        columns = slice(round(left * width), round(right * width))
        inside = edges[rows, columns]
        outside = np.ones(edges.shape, dtype=bool)
        # The straight edges of the picture itself are sharp.
        margin = 3
        outside[
            max(0, rows.start - margin) : rows.stop + margin,
            max(0, columns.start - margin) : columns.stop + margin,
        ] = False
        if inside.size < _LEAST_CONTENT * edges.size or not outside.any():
            continue
        if float(edges[outside].mean()) < _BLURRED * float(inside.mean()):
            return left, top, right, bottom
    return None
