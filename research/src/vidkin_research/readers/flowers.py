"""Reader for Oxford Flowers-102."""

from __future__ import annotations

import os

from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.errors import DatasetError
from vidkin_research.readers.published import finish, open_published, read_matlab

__all__ = ["read_flowers102"]

_WHERE = "www.robots.ox.ac.uk/~vgg/data/flowers/102 (102flowers.tgz, imagelabels.mat, setid.mat)"
_SPLITS = {"trnid": "train", "valid": "validation", "tstid": "test"}


def read_flowers102(source: str | os.PathLike[str]) -> LabelledSet:
    """Open a folder with ``jpg/image_00001.jpg``, ``imagelabels.mat`` and ``setid.mat``.

    The set has the published split and one level of labels, ``001`` to ``102``, because the published files contain no
    names.

    Raises:
        DatasetError: A file is missing or damaged; the message says which and where to get it.
    """
    folder = open_published(source, "Flowers-102", _WHERE, ["jpg", "imagelabels.mat", "setid.mat"])
    (labels,) = read_matlab(folder / "imagelabels.mat", "labels")
    parts = read_matlab(folder / "setid.mat", *_SPLITS)
    items = []
    for split, numbers in zip(_SPLITS.values(), parts, strict=True):
        for number in map(int, numbers):
            if not 1 <= number <= len(labels):
                raise DatasetError(f"{folder / 'setid.mat'}: has image {number} of {len(labels)}; get it from {_WHERE}")
            name = f"image_{number:05}.jpg"
            path = folder / "jpg" / name
            items.append(LabelledItem(path=path, category=f"{labels[number - 1]:03}", group=name, split=split))
    return finish("flowers102", folder, items, _WHERE, validation=0.0, seed=0)
