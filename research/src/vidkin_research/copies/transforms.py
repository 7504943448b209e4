"""The settings of a video edit, and the edits that depend on the video's length or on other footage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image as PILImage

from vidkin.media.frames import Time
from vidkin.media.picture_edits import Image, PictureEdit

# Frames per second of a copy at a low frame rate.
_LOW_RATE = 8


@dataclass(frozen=True, slots=True)
class EditSetting:
    """Properties of the video that is edited.

    Attributes:
        rate: Frames per second.
        count: Number of input frames.
        seed: Random seed.
        lead: Number of filler frames before the source, for edits that surround it.
        trail: Number of filler frames after the source.
        filler: Function that returns an endless iterator of unrelated frames of a given width and height.
    """

    rate: float
    count: int
    seed: int
    lead: int = 0
    trail: int = 0
    filler: Callable[[int, int], Iterator[Image]] | None = None

    def random(self) -> np.random.Generator:
        """Create a random generator with this seed."""
        return np.random.default_rng(self.seed)

    def footage(self, width: int, height: int) -> Iterator[Image]:
        """Return unrelated frames of this size; edits that need them are always given a filler."""
        assert self.filler is not None
        return self.filler(width, height)


Transform = Callable[[Iterator[Image], EditSetting], Iterator[Image]]


def by_seed(edit: PictureEdit) -> Transform:
    """Create a transform from a function that only needs the seed."""
    return lambda frames, setting: edit(frames, setting.seed)


def combine(*transforms: Transform) -> Transform:
    """Chain transforms into one."""

    def transform(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
        for step in transforms:
            frames = step(frames, setting)
        return frames

    return transform


def fade(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
    """Fade in from black over the first second and out over the last."""
    length = max(1.0, min(setting.rate, setting.count / 2))
    for index, image in enumerate(frames):
        light = min(1.0, index / length, (setting.count - 1 - index) / length)
        yield image if light >= 1 else np.rint(image * light).astype(np.uint8)


def repeat_frames(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
    """Lower the frame rate to eight per second by repeating frames."""
    shown: Image | None = None
    slot = -1
    for index, image in enumerate(frames):
        now = math.floor(Time.of_frame(index, setting.rate).seconds * _LOW_RATE)
        if now > slot or shown is None:
            slot, shown = now, image
        yield shown


def surround(frames: Iterator[Image], setting: EditSetting) -> Iterator[Image]:
    """Add unrelated footage before and after the source."""
    first = next(frames)
    footage = setting.footage(first.shape[1], first.shape[0])
    for _ in range(setting.lead):
        yield next(footage)
    yield first
    yield from frames
    for _ in range(setting.trail):
        yield next(footage)


def fill_size(image: Image, width: int, height: int) -> Image:
    """Scale and center-crop the image to fill this size."""
    own_height, own_width = image.shape[:2]
    factor = min(own_width / width, own_height / height)
    box_width, box_height = width * factor, height * factor
    # Clamp: Pillow rejects a box that rounding errors move slightly outside the image.
    left, top = max(0.0, (own_width - box_width) / 2), max(0.0, (own_height - box_height) / 2)
    box = (left, top, min(own_width, left + box_width), min(own_height, top + box_height))
    return np.asarray(PILImage.fromarray(image).resize((width, height), PILImage.Resampling.BILINEAR, box=box))
