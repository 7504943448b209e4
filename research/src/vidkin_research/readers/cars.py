"""Reader for Stanford Cars."""

from __future__ import annotations

import os

from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.errors import DatasetError
from vidkin_research.readers.published import class_name, finish, open_published, read_matlab

__all__ = ["read_cars"]

_WHERE = "ai.stanford.edu/~jkrause/cars/car_dataset.html (cars_train, cars_test, devkit, test labels)"
_LISTS = {"train": "cars_train_annos.mat", "test": "cars_test_annos_withlabels.mat"}


def read_cars(source: str | os.PathLike[str], *, validation: float = 0.0, seed: int = 0) -> LabelledSet:
    """Open a folder with ``cars_train/*.jpg``, ``cars_test/*.jpg``, ``devkit/cars_meta.mat``,
    ``devkit/cars_train_annos.mat`` and ``cars_test_annos_withlabels.mat`` (next to the devkit or in it).

    Args:
        source: The folder.
        validation: Fraction of each class's training photographs to use for validation; the set has no validation
            split.
        seed: Random seed for choosing them.

    Returns:
        A set with one level of labels (make, model and year), with ``/`` in names replaced by ``-``, and the published
        split.

    Raises:
        DatasetError: A file is missing or damaged; the message says which and where to get it.
    """
    needed = ["cars_train", "cars_test", "devkit/cars_meta.mat", f"devkit/{_LISTS['train']}"]
    folder = open_published(source, "Stanford Cars", _WHERE, needed)
    lists = {"train": folder / "devkit" / _LISTS["train"]}
    lists["test"] = next(
        (path for path in (folder / _LISTS["test"], folder / "devkit" / _LISTS["test"]) if path.is_file()),
        folder / _LISTS["test"],
    )
    if not lists["test"].is_file():
        raise DatasetError(f"{folder}: missing {_LISTS['test']}, the test labels; get it from {_WHERE}")
    (names,) = read_matlab(folder / "devkit" / "cars_meta.mat", "class_names")
    items = []
    for split, path in lists.items():
        (rows,) = read_matlab(path, "annotations")
        for row in rows:
            try:
                file, number = str(row["fname"]), int(row["class"])
            except (ValueError, IndexError, TypeError) as error:
                raise DatasetError(f"{path}: annotations must have fname and class; get it from {_WHERE}") from error
            if not 1 <= number <= len(names):
                raise DatasetError(f"{path}: {file} has class {number} of {len(names)}; get it from {_WHERE}")
            items.append(
                LabelledItem(
                    path=folder / f"cars_{split}" / file,
                    category=class_name(names[number - 1]),
                    group=f"{split}/{file}",
                    split=split,
                )
            )
    return finish("cars", folder, items, _WHERE, validation=validation, seed=seed)
