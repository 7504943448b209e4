"""Reader for VB100 birds and other animals, in the layout of the Dog-Birds set of the Radial loss paper."""

from __future__ import annotations

import os

from vidkin._base.files import VIDEO_EXTENSIONS
from vidkin.datasets.folders import iter_files, list_folders, require_folder
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.datasets.splits import make_split
from vidkin.errors import DatasetError, InvalidArgumentError

__all__ = ["read_vb100"]

_WHERE = "VB100 Bird Dataset (Ge et al. 2016), one folder for each species"


def read_vb100(
    source: str | os.PathLike[str],
    *,
    dogs: str | os.PathLike[str] | None = None,
    species: int | None = None,
    test: float = 1 / 3,
    validation: float = 0.0,
    seed: int = 0,
) -> LabelledSet:
    """Open VB100's folder ``species/*.mp4`` with a dog folder ``breed/*.mp4``, or one folder with several classes.

    The paper's Dog-Birds set consists of the first 12 species of VB100 in alphabetical order (``species=12``) and 9 dog
    breeds from the authors' own videos, with about 10 training and 5 test videos per subcategory. VB100 alone has one
    category and thus no negatives; add your own videos of dogs, or of anything else.

    Args:
        source: VB100's folder; or a folder with ``birds/species/*.mp4`` and other classes next to it, such as
            ``dogs/breed/*.mp4``.
        dogs: Folder of dog videos, if ``source`` is VB100's own folder.
        species: Number of species to use, in alphabetical order; None uses all.
        test: Fraction of the videos in each subcategory for testing.
        validation: Fraction for validation.
        seed: Random seed for the split.

    Raises:
        DatasetError: A folder does not have this layout.
    """
    if species is not None and species < 1:
        raise InvalidArgumentError(f"species must be at least 1, or None for all, got {species}")
    folder = require_folder(source, "birds, species/*.mp4", _WHERE)
    together = (folder / "birds").is_dir()
    if together and dogs is not None:
        raise InvalidArgumentError(f"{folder}: already contains birds and other classes; leave out dogs")
    classes = {path.name: path for path in list_folders(folder)} if together else {"birds": folder}
    if dogs is not None:
        classes["dogs"] = require_folder(dogs, "dogs, breed/*.mp4")
    items = []
    for category, base in sorted(classes.items()):
        folders = list_folders(base)
        for subcategory in folders[:species] if category == "birds" else folders:
            videos = list(iter_files(subcategory, VIDEO_EXTENSIONS, deep=True))
            if not videos:
                raise DatasetError(f"{subcategory}: no videos; expected {category}/{folders[0].name}/*.mp4")
            items += [
                LabelledItem(
                    path=path,
                    category=category,
                    subcategory=subcategory.name,
                    group=f"{category}/{subcategory.name}/{path.relative_to(subcategory).as_posix()}",
                )
                for path in videos
            ]
    if not items:
        raise DatasetError(f"{folder}: no species/*.mp4; get {_WHERE}")
    labelled = LabelledSet("vb100", "video", tuple(items), folder)
    return make_split(labelled, test=test, validation=validation, seed=seed)
