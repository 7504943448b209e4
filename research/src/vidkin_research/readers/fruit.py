"""Reader for turntable videos of fruit, made from Fruits-360."""

from __future__ import annotations

import os
from dataclasses import replace

from vidkin.datasets.folders import iter_files, list_folders, require_folder
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.media import probe

__all__ = ["read_fruit"]

_WHERE = "the images of Fruits-360, github.com/Horea94/Fruit-Images-Dataset, one video for each axis of rotation"


def read_fruit(source: str | os.PathLike[str], *, validation: float = 0.0) -> LabelledSet:
    """Open a folder with ``category/variety/axis*.mp4``, one video per axis of rotation.

    The first axis of each variety is train (and gallery), all others are test (and queries), so that no axis is in both
    splits. A variety with one axis has no queries; each variety has a single training video, whose excerpts are the
    positives.

    Args:
        source: The folder.
        validation: Fraction at the end of each training video to use for validation, for example 0.25 for the last
            quarter turn: unseen sides of the fruit, so that settings can be chosen without the test split.

    Returns:
        A set of kind ``"video"``; the group is the variety and the axis, and with a validation split also the excerpt.

    Raises:
        DatasetError: The folder does not have this layout.
    """
    if not 0 <= validation < 1:
        raise InvalidArgumentError(f"validation must be at least 0 and below 1, got {validation}")
    folder = require_folder(source, "fruit videos, category/variety/axis*.mp4", _WHERE)
    items: list[LabelledItem] = []
    for category in list_folders(folder):
        for variety in list_folders(category):
            videos = list(iter_files(variety, {".mp4"}))
            for axis, path in enumerate(videos):
                item = LabelledItem(
                    path=path,
                    category=category.name,
                    subcategory=variety.name,
                    group=f"{variety.name}/{path.stem}",
                    split="test" if axis else "train",
                )
                if axis or not validation:
                    items.append(item)
                    continue
                info = probe(item.path)
                frames = round(info.duration * info.frame_rate)
                count = round(frames * (1 - validation))
                if not 0 < count < frames:
                    raise InvalidArgumentError(
                        f"validation {validation} leaves {count} of the {frames} frames of {item.path} to train; "
                        "choose a fraction that leaves frames in both splits"
                    )
                # Split halfway between two frames, so that rounding has no effect.
                middle = (count - 0.5) / info.frame_rate
                items += [
                    replace(item, end=middle, group=f"{item.group}/before"),
                    replace(item, start=middle, group=f"{item.group}/after", split="validation"),
                ]
    if not items:
        raise DatasetError(f"{folder}: no category/variety/axis*.mp4; make them from {_WHERE}")
    return LabelledSet("fruit", "video", tuple(items), folder)
