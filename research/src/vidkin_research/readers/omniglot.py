"""Reader for Omniglot: characters of many alphabets, each drawn by twenty people."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from vidkin.datasets.folders import require_folder
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.datasets.splits import make_split
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin_research.readers.strokes import STROKES

__all__ = ["read_omniglot"]

_WHERE = "github.com/brendenlake/omniglot, folder python: images_*.zip and strokes_*.zip"
# [folder of the archive/]alphabet/character/number_drawer.extension
_MEMBER = re.compile(r"(?:^|/)([^/]+)/(character\d+)/\d+_(\d{2})\.(png|txt)$")
_ENDINGS = {"images": "png", "strokes": "txt"}
_DRAWERS = 20


def read_omniglot(
    source: str | os.PathLike[str],
    *,
    kind: Literal["images", "strokes"] = "images",
    split: Literal["drawer", "character"] = "drawer",
    train: int = 12,
    validation: int = 3,
    seed: int = 0,
) -> LabelledSet:
    """Open a folder with ``images_*.zip`` or ``strokes_*.zip``, packed or unpacked.

    The alphabet is the category, the character the subcategory. Archives overlap (the small background sets are part of
    the large one); each drawing is used once.

    Args:
        source: The folder.
        kind: ``"images"`` of the finished characters, or ``"strokes"`` (videos of the drawing).
        split: ``"drawer"``: for all characters, the first ``train`` drawers are train, the next ``validation`` ones
            validation, and the rest test, so that each person is in one split. ``"character"``: characters of each
            alphabet are held out with all drawers, in the same proportions, so that test characters are unseen.
        train: Number of drawers (out of 20) for training.
        validation: Number of drawers for validation; the rest are for testing.
        seed: Random seed for choosing held-out characters; drawers are taken in order.

    Returns:
        A set of kind ``"image"`` or ``"strokes"``; the group is the drawer, or the character if characters are held
        out.

    Raises:
        DatasetError: There are no archives or unpacked folders of this kind, or they contain something else.
    """
    if kind not in _ENDINGS:
        raise InvalidArgumentError(f"kind must be images or strokes, got {kind!r}")
    if split not in ("drawer", "character"):
        raise InvalidArgumentError(f"split must be drawer or character, got {split!r}")
    if not (train >= 1 and validation >= 0 and train + validation < _DRAWERS):
        raise InvalidArgumentError(
            f"train {train} and validation {validation} must leave some of the {_DRAWERS} drawers for testing"
        )
    folder = require_folder(source, "Omniglot", _WHERE)
    drawings: dict[tuple[str, str, str], tuple[Path, str]] = {}
    for path, member, match in _drawings(folder, kind):
        alphabet, character, drawer, ending = match.groups()
        if ending == _ENDINGS[kind]:
            drawings.setdefault((alphabet, character, drawer), (path, member))
    if not drawings:
        raise DatasetError(f"{folder}: has neither {kind}_*.zip nor {kind}_*/alphabet/character; get {_WHERE}")
    items = [
        LabelledItem(
            path=path,
            member=member,
            category=alphabet,
            subcategory=character,
            group=f"drawer {drawer}",
            split="test" if int(drawer) > train + validation else "validation" if int(drawer) > train else "train",
        )
        for (alphabet, character, drawer), (path, member) in sorted(drawings.items())
    ]
    labelled = LabelledSet(f"omniglot-{kind}", "image" if kind == "images" else STROKES, tuple(items), folder)
    if split == "drawer":
        return labelled
    test = (_DRAWERS - train - validation) / _DRAWERS
    return make_split(labelled, by="subcategory", test=test, validation=validation / _DRAWERS, seed=seed)


def _drawings(folder: Path, kind: str) -> Iterator[tuple[Path, str, re.Match[str]]]:
    """Yield (file or archive, member, parsed name) of all drawings, unpacked files first."""
    for path in sorted(folder.glob(f"{kind}_*/*/*/*")):
        match = _MEMBER.search(path.as_posix())
        if match is not None:
            yield path, "", match
    for path in sorted(folder.glob(f"{kind}_*.zip")):
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except zipfile.BadZipFile as error:
            raise DatasetError(
                f"{path}: damaged or incomplete zip archive ({error}); get it again from {_WHERE}"
            ) from error
        for name in names:
            match = _MEMBER.search(name)
            if match is not None and not name.startswith("__MACOSX"):
                yield path, name, match
