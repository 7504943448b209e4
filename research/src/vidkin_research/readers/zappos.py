"""Reader for UT-Zappos50K: catalog photographs of shoes (FtW in the Radial loss paper)."""

from __future__ import annotations

import os

from vidkin._base.files import IMAGE_EXTENSIONS
from vidkin.datasets.folders import iter_files, require_folder
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.datasets.splits import make_split
from vidkin.errors import DatasetError

__all__ = ["read_zappos"]

_WHERE = "vision.cs.utexas.edu/projects/finegrained/utzap50k: ut-zap50k-images-square.zip, unpacked"
_FOLDERS = ("ut-zap50k-images-square", "ut-zap50k-images")
_CATEGORIES = ("Boots", "Sandals", "Shoes", "Slippers")


def read_zappos(
    source: str | os.PathLike[str], *, test: float = 0.3, validation: float = 0.1, seed: int = 0
) -> LabelledSet:
    """Open the folder with ``category/subcategory/brand/product.color.jpg``, or its parent folder.

    The categories are boots, sandals, shoes and slippers; the subcategories are their 21 functional types. The data set
    has no split for this use; photographs of one product in several colors form a group and stay in the same split.

    Args:
        source: The folder.
        test: Fraction of each subcategory for testing.
        validation: Fraction for validation.
        seed: Random seed for the split.

    Raises:
        DatasetError: The folder does not have this layout.
    """
    folder = require_folder(source, "UT-Zappos50K", _WHERE)
    folder = next((folder / name for name in _FOLDERS if (folder / name).is_dir()), folder)
    missing = [name for name in _CATEGORIES if not (folder / name).is_dir()]
    if missing:
        raise DatasetError(f"{folder}: missing the folders {', '.join(missing)}; get {_WHERE}")
    items = []
    for name in _CATEGORIES:
        for path in iter_files(folder / name, IMAGE_EXTENSIONS, deep=True):
            parts = path.relative_to(folder).parts
            if len(parts) != 4:
                raise DatasetError(f"{path}: must be at category/subcategory/brand/file; get {_WHERE}")
            product = path.name.partition(".")[0]
            items.append(
                LabelledItem(path=path, category=name, subcategory=parts[1], group=f"{name}/{parts[1]}/{product}")
            )
    if not items:
        raise DatasetError(f"{folder}: no photographs; get {_WHERE}")
    labelled = LabelledSet("zappos", "image", tuple(items), folder)
    return make_split(labelled, test=test, validation=validation, seed=seed)
