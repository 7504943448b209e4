"""What readers of labelled folders share: which files count, and errors that say where to get what is missing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from vidkin._base.extensions import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.errors import DatasetError

__all__ = ["files_below", "folder_of", "kind_of", "subfolders"]


def folder_of(source: str | os.PathLike[str], what: str, where: str = "") -> Path:
    """The folder, or an error that says what should be there and where to get it."""
    folder = Path(source).expanduser()
    if not folder.is_dir():
        state = "is not a folder" if folder.exists() else "does not exist"
        raise DatasetError(
            f"{folder} {state}; give the folder of {what}" + (f" (from {where})" if where else "")
        )
    return folder


def subfolders(folder: Path) -> list[Path]:
    """Folders inside, sorted by name, without hidden ones and the leavings of archives."""
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))
    )


def files_below(folder: Path, endings: Iterable[str], *, deep: bool = False) -> Iterator[Path]:
    """Files with one of the endings, sorted, without hidden ones."""
    allowed = frozenset(endings)
    for path in sorted(folder.rglob("*") if deep else folder.iterdir()):
        hidden = any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)
        if path.suffix.lower() in allowed and not hidden and path.is_file():
            yield path


def kind_of(paths: Iterable[Path], source: Path) -> Literal["image", "video"]:
    """Whether files are images or videos, by their endings.

    Raises:
        DatasetError: They are both, or neither.
    """
    images = videos = 0
    for path in paths:
        ending = path.suffix.lower()
        images += ending in IMAGE_EXTENSIONS
        videos += ending in VIDEO_EXTENSIONS
        if ending not in IMAGE_EXTENSIONS and ending not in VIDEO_EXTENSIONS:
            allowed = ", ".join(sorted(IMAGE_EXTENSIONS | VIDEO_EXTENSIONS))
            raise DatasetError(f"{path} is neither image nor video by its name; allowed are {allowed}")
    if images and videos:
        raise DatasetError(
            f"{source} mixes {images} images and {videos} videos; give one kind, as kind='image' or kind='video'"
        )
    return "image" if images else "video"
