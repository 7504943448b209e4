"""Reader for photographs of heads facing front, left and right (FcP in the Radial loss paper)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from vidkin._base.files import IMAGE_EXTENSIONS
from vidkin.datasets.folders import iter_files, list_folders, require_folder
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.datasets.splits import make_split
from vidkin.errors import DatasetError, InvalidArgumentError

__all__ = ["NCKU", "POINTING_04", "read_head_pose"]

_WHERE = (
    "the set of the paper, robotics.csie.ncku.edu.tw/Databases/FaceDetect_PoseEstimate.htm; or the Head Pose Image "
    "Database of Pointing'04, crowley-coutaz.fr/Head%20Pose%20Image%20Database.html; or any set sorted into "
    "front/subject, left/subject and right/subject"
)
_POSES = ("front", "left", "right")

NCKU = r"^A_(?P<subject>\d{2})_(?P<pan>[+-]?\d{1,2})$"
"""File names of the NCKU Robotics Lab set, which the paper used: ``Subject01/A_01_+15.jpg``, with person and pan.

Names of photographs begin with A; those with B are mirror images, which are left out.
"""

_MAX_ANGLE_NCKU = 50.0

POINTING_04 = r"person(?:ne)?(?P<subject>\d{2})(?P<series>\d)\d{2}[+-]\d+(?P<pan>[+-]\d+)$"
"""File names of Pointing'04: person, subject, series, number, tilt, pan."""


def read_head_pose(
    source: str | os.PathLike[str],
    *,
    pattern: str | None = None,
    front: float = 15.0,
    widest: float | None = None,
    negative: Literal["left", "right"] = "left",
    test: float = 0.3,
    validation: float = 0.1,
    seed: int = 0,
) -> LabelledSet:
    """Open a set of faces; the pose is the category, and the person in this pose the subcategory.

    There are two layouts: folders ``front/subject/*.jpg``, ``left/...``, ``right/...``; or files at any depth whose
    names contain the person and the angle. If names also contain a series, as in Pointing'04, the last series of each
    person is used for testing and the rest for training; otherwise photographs are split individually. The choice of
    left and right only affects names, not results.

    The paper used 1,890 photographs of the NCKU set (90 subjects, 37 photographs each, one every 5 degrees), which is
    21 per subject, without saying which. Here they are the 21 from -50 to 50 degrees: seven of each pose, with up to 15
    degrees as the front.

    Args:
        source: The folder.
        pattern: Regular expression to search for in names without extension, with the groups ``subject`` and ``pan``
            (signed degrees), and ``series`` if there is one. Default: `NCKU` if it matches any file, else
            `POINTING_04`.
        front: Maximum angle in degrees that counts as the front.
        widest: Maximum angle in degrees; other photographs are left out. Default: 50 for the NCKU set, no limit for
            others.
        negative: Direction of a negative pan.
        test: Fraction of the photographs in each subcategory for testing, if there are no series.
        validation: Fraction for validation; with series, it is taken from the training photographs.
        seed: Random seed for the split.

    Raises:
        DatasetError: The folder has neither layout.
    """
    folder = require_folder(source, "photographs of heads", _WHERE)
    if pattern is None:
        is_ncku = any(re.search(NCKU, path.stem, re.I) for path in iter_files(folder, IMAGE_EXTENSIONS, deep=True))
        pattern = NCKU if is_ncku else POINTING_04
        widest = _MAX_ANGLE_NCKU if is_ncku and widest is None else widest
    try:
        names = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise InvalidArgumentError(f"pattern must be a regular expression, got {pattern!r}: {error}") from error
    lacking = sorted({"subject", "pan"} - set(names.groupindex))
    if lacking:
        raise InvalidArgumentError(
            f"pattern {pattern!r} must have the groups {', '.join(lacking)}; write them as "
            "(?P<subject>...) and (?P<pan>...)"
        )
    if not 0 <= front < 180:
        raise InvalidArgumentError(f"front must be from 0 to below 180 degrees, got {front}")
    if negative not in ("left", "right"):
        raise InvalidArgumentError(f"negative must be left or right, got {negative!r}")
    if widest is not None and not widest >= front:
        raise InvalidArgumentError(f"widest must be at least front, {front:g} degrees, got {widest:g}")
    there = sorted({path.name for path in list_folders(folder)} & set(_POSES))
    if there and len(there) < len(_POSES):
        missing = sorted(set(_POSES) - set(there))
        raise DatasetError(f"{folder}: has {', '.join(there)} but not {', '.join(missing)}; get {_WHERE}")
    if there:
        items = [
            LabelledItem(
                path=path,
                category=pose,
                subcategory=subject.name,
                group=path.relative_to(folder).as_posix(),
            )
            for pose in _POSES
            for subject in list_folders(folder / pose)
            for path in iter_files(subject, IMAGE_EXTENSIONS, deep=True)
        ]
    else:
        items = list(_by_angle(folder, names, front, widest, negative))
    if not items:
        raise DatasetError(
            f"{folder}: has neither {', '.join(_POSES)} folders nor photographs with names like {pattern}; get {_WHERE}"
        )
    labelled = LabelledSet("head_pose", "image", tuple(items), folder)
    if all(item.split == "" for item in items):
        return make_split(labelled, test=test, validation=validation, seed=seed)
    if not validation:
        return labelled
    train = make_split(labelled.part("train"), by="item", test=0.0, validation=validation, seed=seed)
    return labelled.with_items((*train.items, *labelled.part("test").items))


def _by_angle(
    folder: Path, names: re.Pattern[str], front: float, widest: float | None, negative: str
) -> Iterator[LabelledItem]:
    items = []
    latest: dict[str, str] = {}
    for path in iter_files(folder, IMAGE_EXTENSIONS, deep=True):
        match = names.search(path.stem)
        # Pointing'04 repeats its frontal photographs in a separate folder.
        if match is None or path.parent.name.lower() == "front":
            continue
        if widest is not None and abs(float(match["pan"])) > widest:
            continue
        subject, series = match["subject"], match.groupdict().get("series") or ""
        latest[subject] = max(latest.get(subject, ""), series)
        items.append((path, subject, series, float(match["pan"])))
    several = any(series != latest[subject] for _, subject, series, _ in items)
    positive = "right" if negative == "left" else "left"
    for path, subject, series, pan in items:
        pose = "front" if abs(pan) <= front else (negative if pan < 0 else positive)
        group = f"{subject}/series {series}" if several else path.relative_to(folder).as_posix()
        split = ("test" if series == latest[subject] else "train") if several else ""
        yield LabelledItem(path=path, category=pose, subcategory=subject, group=group, split=split)
