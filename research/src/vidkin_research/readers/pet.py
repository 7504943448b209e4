"""Reader for Oxford-IIIT Pet: photographs of 25 dog breeds and 12 cat breeds (CnD in the Radial loss paper)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from vidkin._base.files import read_text_file
from vidkin.datasets.folders import require_folder
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.datasets.splits import make_split
from vidkin.errors import DatasetError

__all__ = ["read_pet"]

_WHERE = "www.robots.ox.ac.uk/~vgg/data/pets: images.tar.gz and annotations.tar.gz, unpacked side by side"
_SPECIES = {"1": "cat", "2": "dog"}
_LISTS = {"trainval.txt": "train", "test.txt": "test"}


def read_pet(source: str | os.PathLike[str], *, validation: float = 0.0, seed: int = 0) -> LabelledSet:
    """Open the folder with ``images/*.jpg`` and ``annotations/trainval.txt``, ``annotations/test.txt``.

    The species (dog, cat) is the category, the breed the subcategory. The split follows the lists of the data set.

    Args:
        source: The folder.
        validation: Fraction of each breed's training photographs to use for validation.
        seed: Random seed for choosing them.

    Raises:
        DatasetError: Lists or photographs are missing, or a list is malformed.
    """
    folder = require_folder(source, "Oxford-IIIT Pet", _WHERE)
    needed = [folder / "images", *(folder / "annotations" / name for name in _LISTS)]
    missing = [path.relative_to(folder).as_posix() for path in needed if not path.exists()]
    if missing:
        raise DatasetError(f"{folder}: missing {', '.join(missing)}; get {_WHERE}")
    items = tuple(
        replace(item, split=split)
        for name, split in _LISTS.items()
        for item in _read_list(folder, folder / "annotations" / name)
    )
    absent = [item.path.name for item in items if not item.path.is_file()]
    if absent:
        raise DatasetError(
            f"{folder / 'images'}: missing {len(absent)} of {len(items)} photographs, the first is {absent[0]}; "
            f"get {_WHERE}"
        )
    labelled = LabelledSet("pet", "image", items, folder)
    if not validation:
        return labelled
    train = make_split(labelled.part("train"), test=0.0, validation=validation, seed=seed)
    return labelled.with_items((*train.items, *labelled.part("test").items))


def _read_list(folder: Path, path: Path) -> Iterator[LabelledItem]:
    for number, line in enumerate(read_text_file(path).splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split()
        breed = cells[0].rpartition("_")[0]
        if len(cells) != 4 or cells[2] not in _SPECIES or not breed:
            raise DatasetError(
                f"{path}, line {number}: {line[:60]!r} must be 'Breed_number class species breed' with species 1 (cat) "
                "or 2 (dog)"
            )
        yield LabelledItem(
            path=folder / "images" / f"{cells[0]}.jpg",
            category=_SPECIES[cells[2]],
            subcategory=breed,
            group=cells[0],
        )
