"""Reader for the Grocery Store data set: photographs of fruit, vegetables and packages in shops."""

from __future__ import annotations

import os
from typing import Literal

from vidkin._base.files import IMAGE_EXTENSIONS
from vidkin.datasets.folders import iter_files, require_folder
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.errors import DatasetError, InvalidArgumentError

__all__ = ["read_grocery"]

_WHERE = "github.com/marcusklasson/GroceryStoreDataset, folder dataset"
_LEVELS = ("super", "coarse", "fine")
_SPLITS = {"train": "train", "val": "validation", "test": "test"}


def read_grocery(
    source: str | os.PathLike[str],
    *,
    category: Literal["super", "coarse"] = "super",
    subcategory: Literal["coarse", "fine"] = "fine",
) -> LabelledSet:
    """Open a folder ``split/super/coarse/fine/*.jpg`` (or ``split/super/coarse/*.jpg``).

    The published splits ``train``, ``val`` and ``test`` are used.

    Two of the three label levels become category and subcategory. With the default, super (fruit, vegetables, packages)
    and fine, every category has several subcategories, as quadlets require. With coarse as the category, the
    intermediates are closer (another brand of milk), but 31 of the 43 published coarse classes have only one fine class
    and thus no intermediates; queries then come from the other 12.

    Args:
        source: The folder.
        category: Level of the category.
        subcategory: Level of the subcategory, below that of the category.

    Returns:
        A set of kind ``"image"``; every photograph is its own group.

    Raises:
        DatasetError: The folder does not have this layout.
    """
    if category not in _LEVELS[:2] or subcategory not in _LEVELS[1:] or category == subcategory:
        raise InvalidArgumentError(
            "category and subcategory must be super and coarse, super and fine, or coarse and fine, "
            f"got {category!r} and {subcategory!r}"
        )
    folder = require_folder(source, "the Grocery Store data set", _WHERE)
    missing = [name for name in _SPLITS if not (folder / name).is_dir()]
    if missing:
        raise DatasetError(f"{folder}: missing the folders {', '.join(missing)}; get the set from {_WHERE}")
    items = []
    coarse_of: dict[tuple[str, str], str] = {}
    for split, name in _SPLITS.items():
        for path in iter_files(folder / split, IMAGE_EXTENSIONS, deep=True):
            parts = path.relative_to(folder / split).parts
            # In the published set, a coarse class with a single fine class contains its photographs directly.
            if len(parts) not in (3, 4):
                raise DatasetError(f"{path}: must be at split/super/coarse/fine/*.jpg; get the set from {_WHERE}")
            level = dict(zip(_LEVELS, (*parts[:-1], parts[-2]), strict=False))
            # The published val folder uses another name for the mushrooms' coarse class; use the name in train,
            # which comes first.
            level["coarse"] = coarse_of.setdefault((level["super"], level["fine"]), level["coarse"])
            items.append(
                LabelledItem(
                    path=path,
                    category=level[category],
                    subcategory=level[subcategory],
                    group=path.relative_to(folder).as_posix(),
                    split=name,
                )
            )
    if not items:
        raise DatasetError(f"{folder}: no photographs; get the set from {_WHERE}")
    return LabelledSet("grocery", "image", tuple(items), folder)
