"""Reader for FGVC-Aircraft."""

from __future__ import annotations

import os
from typing import Literal

from vidkin._base.values import check_choice
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin_research.readers.published import class_name, finish, open_published, read_columns

__all__ = ["read_aircraft"]

_WHERE = "www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft (fgvc-aircraft-2013b.tar.gz)"
_SPLITS = {"train": "train", "val": "validation", "test": "test"}
_LEVELS = ("variant", "family", "manufacturer")


def read_aircraft(
    source: str | os.PathLike[str], *, level: Literal["variant", "family", "manufacturer"] = "variant"
) -> LabelledSet:
    """Open ``fgvc-aircraft-2013b``, or the folder ``data`` in it: ``images/*.jpg`` and ``images_variant_train.txt``.

    Args:
        source: The folder.
        level: Label level: 100 variants (as in published results), 70 families or 41 manufacturers.

    Returns:
        A set with one level of labels, with ``/`` in names replaced by ``-``, and the published split.

    Raises:
        DatasetError: A file is missing or damaged; the message says which and where to get it.
    """
    check_choice("level", level, _LEVELS)
    nested = os.path.join(source, "data")
    lists = [f"images_{level}_{split}.txt" for split in _SPLITS]
    base = nested if os.path.isdir(nested) else source
    folder = open_published(base, "FGVC-Aircraft", _WHERE, ["images", *lists])
    items = [
        LabelledItem(
            path=folder / "images" / f"{number}.jpg",
            category=class_name(name),
            group=number,
            split=_SPLITS[split],
        )
        for split in _SPLITS
        for number, name in read_columns(folder / f"images_{level}_{split}.txt", cells=2)
    ]
    return finish("aircraft", folder, items, _WHERE, validation=0.0, seed=0)
