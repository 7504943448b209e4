"""Helpers for readers of labeled folders: which files count, and errors that say where to get a missing set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from vidkin._base.extensions import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.errors import DatasetError

__all__ = ["infer_kind", "iter_files", "list_folders", "require_folder"]


def require_folder(source: str | os.PathLike[str], what: str, where: str = "") -> Path:
    """The folder.

    Args:
        source: Path of the folder.
        what: What should be in it, for the message.
        where: Where to get it, for the message.

    Raises:
        DatasetError: The path is not a folder.
    """
    folder = Path(source).expanduser()
    if not folder.is_dir():
        state = "is not a folder" if folder.exists() else "does not exist"
        raise DatasetError(
            f"{folder}: {state}; choose the folder of {what}" + (f" (from {where})" if where else "")
        )
    return folder


def list_folders(folder: Path) -> list[Path]:
    """The subfolders sorted by name, without hidden ones and leftovers of archives."""
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))
    )


def iter_files(folder: Path, extensions: Iterable[str], *, deep: bool = False) -> Iterator[Path]:
    """Files with one of the extensions, sorted, without hidden ones; ``deep`` includes all folders below."""
    extensions = frozenset(extensions)
    for path in sorted(folder.rglob("*") if deep else folder.iterdir()):
        hidden = any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)
        if path.suffix.lower() in extensions and not hidden and path.is_file():
            yield path


def infer_kind(paths: Iterable[Path], source: Path) -> Literal["image", "video"]:
    """Whether files are images or videos, by their extensions.

    Raises:
        DatasetError: There are both, or neither.
    """
    images = videos = 0
    for path in paths:
        extension = path.suffix.lower()
        images += extension in IMAGE_EXTENSIONS
        videos += extension in VIDEO_EXTENSIONS
        if extension not in IMAGE_EXTENSIONS and extension not in VIDEO_EXTENSIONS:
            known = ", ".join(sorted(IMAGE_EXTENSIONS | VIDEO_EXTENSIONS))
            raise DatasetError(
                f"{path}: is neither an image nor a video by its extension; rename it to one of {known}"
            )
    if images and videos:
        raise DatasetError(
            f"{source}: has {images} images and {videos} videos; choose with the reader's option kind, 'image' or "
            "'video' (in a recipe data.options.kind)"
        )
    return "image" if images else "video"
