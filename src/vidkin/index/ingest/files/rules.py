"""Which files of a folder to index; an index remembers these rules."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable
from dataclasses import dataclass

from vidkin.errors import InvalidArgumentError

__all__ = ["FolderRules"]


@dataclass(frozen=True, slots=True)
class FolderRules:
    """Which files of named folders to index; a file that is named itself is always indexed.

    Attributes:
        exclude: Patterns of files and folders to leave out, with ``*``, ``?`` and ``[abc]``. One without a slash is
            compared with each name (``*proxy*``, ``Trash``), one that ends in a slash with names of folders only, one
            with a slash elsewhere with the end of the path, or with the whole of it if it begins with one or with
            ``~``.
        follow_links: Also look into links to folders.
        images: Also index photographs; each is a video of one frame.
    """

    exclude: tuple[str, ...] = ()
    follow_links: bool = False
    images: bool = False

    def __post_init__(self) -> None:
        if not all(pattern.strip("/") for pattern in self.exclude):
            raise InvalidArgumentError(
                "an exclude pattern must name files or folders, for example *proxy* or Trash/, got "
                + repr(next(pattern for pattern in self.exclude if not pattern.strip("/")))
            )

    def changed(
        self, exclude: Iterable[str] | None, follow_links: bool | None, images: bool | None
    ) -> FolderRules:
        """A copy of these rules with changed values; None leaves a value as it is."""
        patterns = (exclude,) if isinstance(exclude, str) else exclude
        return FolderRules(
            self.exclude if patterns is None else tuple(patterns),
            self.follow_links if follow_links is None else follow_links,
            self.images if images is None else images,
        )

    def excluded_by(self, path: str, *, is_folder: bool) -> str | None:
        """The first pattern that excludes this absolute path; None if none does."""
        return next((pattern for pattern in self.exclude if _matches(path, pattern, is_folder)), None)

    def excludes_below(self, path: str, folder: str) -> bool:
        """Whether scanning this folder leaves a file out, itself or with a folder that it is in."""
        if self.excluded_by(path, is_folder=False) is not None:
            return True
        parent = os.path.dirname(path)
        while len(parent) > len(folder):
            if self.excluded_by(parent, is_folder=True) is not None:
                return True
            parent = os.path.dirname(parent)
        return False


def _matches(path: str, pattern: str, is_folder: bool) -> bool:
    pattern = os.path.expanduser(pattern)
    if pattern.endswith("/"):
        if not is_folder:
            return False
        pattern = pattern.rstrip("/")
    if "/" not in pattern:
        return fnmatch.fnmatchcase(os.path.basename(path), pattern)
    return fnmatch.fnmatchcase(path, pattern if pattern.startswith("/") else f"*/{pattern}")
