"""Reader for Stanford Dogs."""

from __future__ import annotations

import os

from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.errors import DatasetError
from vidkin_research.readers.published import class_name, finish, open_published, read_matlab

__all__ = ["read_dogs"]

_WHERE = "vision.stanford.edu/aditya86/ImageNetDogs (images.tar, lists.tar)"


def read_dogs(source: str | os.PathLike[str], *, validation: float = 0.0, seed: int = 0) -> LabelledSet:
    """Open a folder with ``Images/n02085620-Chihuahua/*.jpg``, ``train_list.mat`` and ``test_list.mat``.

    Args:
        source: The folder.
        validation: Fraction of each breed's training photographs to use for validation; the set has no validation
            split.
        seed: Random seed for choosing them.

    Returns:
        A set with one level of labels, the breeds (``Chihuahua``), and the published split.

    Raises:
        DatasetError: A file is missing or damaged; the message says which and where to get it.
    """
    folder = open_published(source, "Stanford Dogs", _WHERE, ["Images", "train_list.mat", "test_list.mat"])
    items = []
    for split in ("train", "test"):
        (files,) = read_matlab(folder / f"{split}_list.mat", "file_list")
        for file in map(str, files):
            breed = file.partition("/")[0].partition("-")[2].replace("_", " ")
            if not breed:
                raise DatasetError(
                    f"{folder / f'{split}_list.mat'}: {file[:60]!r} must be wordnet-breed/file; get it from {_WHERE}"
                )
            items.append(
                LabelledItem(path=folder / "Images" / file, category=class_name(breed), group=file, split=split)
            )
    return finish("dogs", folder, items, _WHERE, validation=validation, seed=seed)
