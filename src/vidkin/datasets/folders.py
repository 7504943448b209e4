"""Readers of labeled folders: ``category/subcategory/file`` and ``class/file``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from vidkin._base.arguments import check_arguments
from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS, PathLike
from vidkin._base.values import check_choice
from vidkin.datasets.labeled import LabelledItem, LabelledSet
from vidkin.datasets.splits import make_split
from vidkin.errors import DatasetError, InvalidArgumentError


def require_folder(source: PathLike, what: str, where: str = "") -> Path:
    """Check that a folder exists, and return its path.

    Args:
        source: Path of the folder.
        what: Expected content, for the message.
        where: Where to get the content, for the message.

    Raises:
        DatasetError: The path is not a folder.
    """
    folder = Path(source).expanduser()
    if not folder.is_dir():
        state = "is not a folder" if folder.exists() else "does not exist"
        raise DatasetError(f"{folder}: {state}; choose the folder of {what}" + (f" (from {where})" if where else ""))
    return folder


def list_folders(folder: Path) -> list[Path]:
    """List subfolders sorted by name, without hidden folders and metadata folders such as ``__MACOSX``."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "__")))


def iter_files(folder: Path, extensions: Iterable[str], *, deep: bool = False) -> Iterator[Path]:
    """Yield files with one of the extensions, sorted, skipping hidden files; ``deep`` includes subfolders."""
    extensions = frozenset(extensions)
    for path in sorted(folder.rglob("*") if deep else folder.iterdir()):
        hidden = any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)
        if path.suffix.lower() in extensions and not hidden and path.is_file():
            yield path


def infer_kind(paths: Iterable[Path], source: Path) -> Literal["image", "video"]:
    """Infer from file extensions whether the files are images or videos.

    Raises:
        DatasetError: There are images as well as videos, or a file has another extension.
    """
    images = videos = 0
    for path in paths:
        extension = path.suffix.lower()
        images += extension in IMAGE_EXTENSIONS
        videos += extension in VIDEO_EXTENSIONS
        if extension not in IMAGE_EXTENSIONS and extension not in VIDEO_EXTENSIONS:
            known = ", ".join(sorted(IMAGE_EXTENSIONS | VIDEO_EXTENSIONS))
            raise DatasetError(f"{path}: is not an image or video; its extension must be one of {known}")
    if images and videos:
        raise DatasetError(
            f"{source}: has {images} images and {videos} videos; set the reader's option kind to 'image' or 'video' "
            "(in a recipe data.options.kind)"
        )
    return "image" if images else "video"


SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "trainval": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
    "testing": "test",
}

"""Common names of splits, mapped to the names used here."""

_EXTENSIONS = {
    None: IMAGE_EXTENSIONS | VIDEO_EXTENSIONS,
    "image": IMAGE_EXTENSIONS,
    "video": VIDEO_EXTENSIONS,
}


@check_arguments
def read_tree(
    source: PathLike,
    *,
    kind: Literal["image", "video"] | None = None,
    test: float = 0.0,
    validation: float = 0.0,
    seed: int = 0,
) -> LabelledSet:
    """Open a folder ``category/subcategory/file``, or ``split/category/subcategory/file``.

    If all top-level folders have names such as train, val or test, they are the splits. Files may be deeper, as in
    ``category/subcategory/session/file``: each folder below the subcategory is then a group, which is never spread
    over several splits. Hidden files, and files whose extension does not fit, are ignored.

    Args:
        source: The folder.
        kind: ``"image"`` or ``"video"``; None infers it, and rejects a mixture of both.
        test: Fraction of each subcategory for the test split, if the folder has no splits; if ``test`` and
            ``validation`` are 0, no splits are assigned.
        validation: Fraction for the validation split.
        seed: Seed of the split.

    Raises:
        DatasetError: There are no files at this depth, there are files above it, or kinds are mixed.
    """
    return _read(source, ("category", "subcategory"), kind, test, validation, seed)


@check_arguments
def read_classes(
    source: PathLike,
    *,
    kind: Literal["image", "video"] | None = None,
    test: float = 0.0,
    validation: float = 0.0,
    seed: int = 0,
) -> LabelledSet:
    """Open a folder with one level of labels, ``class/file`` or ``split/class/file``.

    This works like :func:`read_tree` with one folder level less; each folder below a class folder is a group.
    """
    return _read(source, ("class",), kind, test, validation, seed)


def _read(
    source: PathLike,
    levels: tuple[str, ...],
    kind: Literal["image", "video"] | None,
    test: float,
    validation: float,
    seed: int,
) -> LabelledSet:
    layout = "/".join((*levels, "file"))
    check_choice("kind", kind, _EXTENSIONS)
    folder = require_folder(source, f"labeled files, {layout}")
    top = list_folders(folder)
    split_folders = bool(top) and all(path.name.lower() in SPLIT_NAMES for path in top)
    if split_folders and (test or validation):
        raise InvalidArgumentError(
            f"{folder}: has splits ({', '.join(path.name for path in top)}); leave out test and validation"
        )
    items: list[LabelledItem] = []
    for base in top if split_folders else [folder]:
        found_items = iter_tree_items(base, _EXTENSIONS[kind], levels=levels)
        if split_folders:
            split = SPLIT_NAMES[base.name.lower()]
            found_items = (replace(item, split=split, group=f"{base.name}/{item.group}") for item in found_items)
        items += found_items
    if not items:
        raise DatasetError(f"{folder}: has no {kind or 'image or video'} at {layout} (or at split/{layout})")
    what = kind or infer_kind((item.path for item in items), folder)
    return divide(LabelledSet(folder.resolve().name, what, tuple(items), folder), test, validation, seed)


def iter_tree_items(
    folder: Path, extensions: frozenset[str], *, levels: tuple[str, ...] = ("category", "subcategory")
) -> Iterator[LabelledItem]:
    """Yield the items at ``folder/category/subcategory/[group/]file``, or ``folder/class/[group/]file`` for one level,
    sorted by path.

    Raises:
        DatasetError: A file with one of the extensions is at a lower depth.
    """
    depth = len(levels)
    for path in iter_files(folder, extensions, deep=True):
        parts = path.relative_to(folder).parts
        if len(parts) <= depth:
            other = ", use the reader classes for class/file" if depth == 2 == len(parts) else ""
            raise DatasetError(
                f"{path}: is not at {'/'.join(levels)}/file below {folder}; move it there{other}, or list the files "
                "in a CSV (reader manifest, in a recipe data.reader)"
            )
        yield LabelledItem(
            path=path,
            category=parts[0],
            subcategory=parts[1] if depth == 2 else "",
            # The folder below the subcategory, or the file itself if there is no such folder.
            group="/".join(parts[: depth + 1]),
        )


def divide(labelled: LabelledSet, test: float, validation: float, seed: int) -> LabelledSet:
    """Split a set, or return it unchanged if both fractions are 0."""
    if not test and not validation:
        return labelled
    return make_split(labelled, test=test, validation=validation, seed=seed)
