"""Reader for clips of aircraft, birds, drones and helicopters in the sky, in visible and infrared light."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vidkin._base.files import VIDEO_EXTENSIONS
from vidkin.datasets.folders import iter_files, list_folders, require_folder
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.datasets.splits import make_split
from vidkin.errors import DatasetError

__all__ = ["read_aerial"]

_WHERE = (
    "github.com/DroneDetectionThesis/Drone-detection-dataset; put its videos into object/sensor folders, "
    "as drone/infrared/IR_DRONE_001.mp4"
)
_NAME = re.compile(r"(ir|v)_([a-z]+)_(\d+)$", re.IGNORECASE)

# Ranges of clip numbers from the same recording: clips at most three numbers apart whose first or last frames differ by
# less than 3 out of 255 gray levels on average, at 64 pixels. A split by file would put the same sky, one second later,
# into both train and test.
_RECORDINGS = {
    "ir_airplane": "11-13 21-22 27-32 33-34 44-45 52-53 54-55 67-69",
    "ir_bird": "11-12 30-31 50-52 56-58",
    "ir_drone": "2-3 7-9 20-25 52-54 57-58 64-67 74-75 95-100 119-131 148-150 155-156",
    "ir_helicopter": "5-12 15-21 29-30 33-37 39-42 46-48 50-51",
    "v_airplane": "10-12 29-30 33-34 54-57",
    "v_bird": "2-3 27-28 32-34 39-41",
    "v_drone": "2-4 8-15 19-24 56-60 65-67 81-85 94-95 98-99 103-112",
    "v_helicopter": "1-4 5-6 11-12 13-14 22-24 52-54 57-58 59-60",
}


def read_aerial(
    source: str | os.PathLike[str], *, test: float = 0.3, validation: float = 0.1, seed: int = 0
) -> LabelledSet:
    """Open a folder with ``object/sensor/<ir|v>_<object>_<number>.mp4``.

    The object (airplane, bird, drone, helicopter) is the category, the sensor (infrared, visible) the subcategory.
    The published clips are ten-second excerpts, often from the same recording; the clips of a recording are one group
    and stay in the same split.

    Args:
        source: The folder.
        test: Fraction of the clips in each subcategory for testing; recordings are not split.
        validation: Fraction for validation.
        seed: Random seed for the split.

    Returns:
        A set of kind ``"video"``; the group is the recording.

    Raises:
        DatasetError: The folder does not have this layout.
    """
    folder = require_folder(source, "aerial clips, object/sensor/*.mp4", _WHERE)
    items = [
        LabelledItem(path=path, category=thing.name, subcategory=sensor.name, group=_recording(path))
        for thing in list_folders(folder)
        for sensor in list_folders(thing)
        for path in iter_files(sensor, VIDEO_EXTENSIONS)
    ]
    if not items:
        raise DatasetError(f"{folder}: no object/sensor/*.mp4; get them from {_WHERE}")
    labelled = LabelledSet("aerial", "video", tuple(items), folder)
    return make_split(labelled, test=test, validation=validation, seed=seed)


def _recording(path: Path) -> str:
    match = _NAME.match(path.stem)
    if match is None:
        raise DatasetError(f"{path}: must be named <ir|v>_<object>_<number>; get the clips from {_WHERE}")
    family, number = f"{match[1]}_{match[2]}".lower(), int(match[3])
    for span in _RECORDINGS.get(family, "").split():
        first, last = (int(value) for value in span.split("-"))
        if first <= number <= last:
            return f"{family}_{span}"
    return f"{family}_{number}"
