"""Images of shots: frames spread over each shot, moved to the nearest ones that show something."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin._base.checks import check_at_least, check_choice
from vidkin._base.outputs import create_folder, open_output
from vidkin.media import iter_frames_at
from vidkin.shots.export.names import NameTemplate

if TYPE_CHECKING:
    from vidkin.shots.shot import ShotDetection

__all__ = ["IMAGE_FORMATS", "ImageFormat", "ShotImage", "iter_shot_images", "write_thumbnails"]

PathLike = str | os.PathLike[str]
ImageFormat = Literal["jpg", "png", "webp"]

IMAGE_FORMATS: tuple[ImageFormat, ...] = ("jpg", "png", "webp")
"""Formats of images, by extension."""

_QUALITY = 88
# Places to try in the stretch of an image, as shares of it; the first that is not nearly black is used.
_PLACES = (0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875, 0.0625, 0.9375, 0.0, 1.0)
# A frame is nearly black if less than this percentage of its pixels is brighter than this level of 255.
_BRIGHT_SHARE, _BLACK = 2, 40
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


class ShotImage(NamedTuple):
    """An image of a shot.

    Attributes:
        shot: Number of the shot, counting from 1.
        image: Number of the image within the shot, counting from 1.
        frame: Number of the frame in the video, counting from 0.
        pixels: [H, W, 3] uint8 RGB image.
    """

    shot: int
    image: int
    frame: int
    pixels: NDArray[np.uint8]


def write_thumbnails(
    detection: ShotDetection,
    folder: PathLike,
    *,
    short_side: int | None = 160,
    count: int = 1,
    form: ImageFormat = "jpg",
    template: NameTemplate | None = None,
) -> tuple[Path, ...]:
    """Save images of every shot as ``<name>-001.jpg`` and so on, in one pass over the video.

    Args:
        detection: The shots.
        folder: Where to write; created if it does not exist.
        short_side: Length in pixels of the shorter side (never more than in the video); None keeps its size.
        count: Number of images per shot, spread over it; a shot with fewer frames has fewer.
        form: Format of the images.
        template: Template of their names.

    Returns:
        The images, in order of the shots.

    Raises:
        InvalidArgumentError: The count is below 1, or the format is unknown.
        MediaError: The video cannot be read, or an image cannot be written.
    """
    from PIL import Image

    check_choice("image format", form, IMAGE_FORMATS)
    names = template or NameTemplate()
    target = create_folder(folder)
    paths: list[Path] = []
    for image in iter_shot_images(detection, short_side=short_side, count=count):
        name = names.format(detection, image.shot, image=image.image, images=count)
        paths.append(target / f"{name}.{form}")
        with open_output(paths[-1]) as partial:
            Image.fromarray(image.pixels).save(partial, quality=_QUALITY)
    return tuple(paths)


def iter_shot_images(
    detection: ShotDetection, *, short_side: int | None = 160, count: int = 1
) -> Iterator[ShotImage]:
    """Images of every shot, in order.

    A shot is divided into as many stretches as it gets images; each image is the frame in the middle of its stretch
    or, if that is nearly black, the nearest of a few others that is not. If all are nearly black, the one with the
    most contrast is used: a title of few letters rather than the last gray of a fade.

    Raises:
        InvalidArgumentError: The count is below 1.
        MediaError: The video cannot be read.
    """
    check_at_least(1, count=count)
    # Frame -> the stretch it can represent, and its rank there.
    choices: dict[int, tuple[int, int, int]] = {}
    for number, shot in enumerate(detection.shots, start=1):
        length = shot.end_frame - shot.start_frame
        parts = min(count, length)
        for part in range(parts):
            first, last = (shot.start_frame + length * place // parts for place in (part, part + 1))
            for rank, share in enumerate(_PLACES):
                choices.setdefault(first + int((last - first - 1) * share), (number, part + 1, rank))
    if not choices:
        return
    frames = sorted(choices)
    times = np.asarray(detection.frame_times)
    reading = (
        (choices[frame], frame, image)
        for batch in iter_frames_at(detection.path, times[frames].tolist(), short_side=short_side)
        for image, time in zip(batch.images, batch.timestamps, strict=True)
        if (frame := int(np.searchsorted(times, time - 1e-6))) in choices
    )
    for (number, part), group in groupby(reading, key=lambda entry: entry[0][:2]):
        _, frame, image = min(group, key=lambda entry: _merit(entry[2], entry[0][2]))
        yield ShotImage(number, part, frame, image)


def _merit(image: NDArray[np.uint8], rank: int) -> tuple[float, int]:
    """Smaller is better: frames that show something by rank, others by contrast."""
    luma = image[::2, ::2] @ _LUMA
    if float(np.percentile(luma, 100 - _BRIGHT_SHARE)) >= _BLACK:
        return -math.inf, rank
    return -round(float(luma.std()), 1), rank
