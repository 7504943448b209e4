"""Reader for NABirds."""

from __future__ import annotations

import os
from collections import Counter

from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.errors import DatasetError
from vidkin_research.readers.published import class_name, finish, open_published, read_columns

__all__ = ["read_nabirds"]

_WHERE = "dl.allaboutbirds.org/nabirds"
_LISTS = ("images.txt", "image_class_labels.txt", "classes.txt", "train_test_split.txt")


def read_nabirds(source: str | os.PathLike[str], *, validation: float = 0.0, seed: int = 0) -> LabelledSet:
    """Open a folder with ``images/`` and the lists ``images.txt``, ``image_class_labels.txt``, ``classes.txt`` and
    ``train_test_split.txt``.

    Args:
        source: The folder.
        validation: Fraction of each class's training photographs to use for validation; the set has no validation
            split.
        seed: Random seed for choosing them.

    Returns:
        A set with one level of labels, the classes with photographs; classes that share a name get their number
        appended.

    Raises:
        DatasetError: A file is missing or damaged; the message says which and where to get it.
    """
    folder = open_published(source, "NABirds", _WHERE, ["images", *_LISTS])
    paths, classes, names, splits = (
        {row[0]: row[1] for row in read_columns(folder / name, cells=2)} for name in _LISTS
    )
    used = set(classes.values())
    shared = Counter(class_name(names[number]) for number in used if number in names)
    items = []
    for key, path in paths.items():
        number = classes.get(key, "")
        if number not in names or key not in splits:
            raise DatasetError(f"{folder}: image {key} has no class or no split in the lists; get them from {_WHERE}")
        name = class_name(names[number])
        items.append(
            LabelledItem(
                path=folder / "images" / path,
                category=f"{name} {number}" if shared[name] > 1 else name,
                group=path,
                split="train" if splits[key] == "1" else "test",
            )
        )
    return finish("nabirds", folder, items, _WHERE, validation=validation, seed=seed)
