"""Rules for files in folders: exclusion patterns, links, photographs, and bins, snapshots and previews."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from vidkin._base.arguments import check_constructor
from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.errors import InvalidArgumentError

# Folders of deleted files, snapshots and previews, by name or end of path. If these were indexed, a deleted or derived
# file might be kept as the best copy instead of the original.
_BINS = (
    # Windows
    "$RECYCLE.BIN",
    "RECYCLER",
    "System Volume Information",
    # macOS, iCloud, and file servers for Macs
    ".Trash", ".Trashes", "Network Trash Folder", ".DocumentRevisions-V100", ".MobileBackups", ".AppleDouble",
    "*.photoslibrary/resources/derivatives",
    # Linux desktops and file systems
    ".local/share/Trash", ".Trash-[0-9]*", ".thumbnails", "lost+found",
    ".snapshots", ".snapshot", ".zfs/snapshot",
    # NAS systems: Synology, QNAP, NetApp, Buffalo, Unraid, and Samba's recycle bin
    "#recycle", "#snapshot", "@eaDir",
    "@Recycle", "@Recently-Snapshot", ".@__thumb", ".@__qini",
    "~snapshot", "trashbox", ".Recycle.Bin", ".recycle",
    # File synchronization: Nextcloud, Dropbox, Syncthing, Resilio
    "files_trashbin", "files_versions", ".dropbox.cache", ".stversions", ".sync/Archive",
)  # fmt: skip
# Case is ignored because drives written on case-insensitive systems may be read on case-sensitive ones.
_BIN_PATH = re.compile("|".join(fnmatch.translate(f"*/{name.casefold()}") for name in _BINS))
_LAST_NAMES = re.compile("|".join(fnmatch.translate(name.casefold().rpartition("/")[2]) for name in _BINS))
# Bins inside hidden folders, which scans do not enter otherwise.
_BELOW_HIDDEN = {name.partition("/")[0]: name.partition("/")[2] for name in _BINS if name[0] == "." and "/" in name}


@check_constructor
@dataclass(frozen=True, slots=True)
class FolderRules:
    """Rules for which files in folders to index; files that are named themselves are always indexed.

    Attributes:
        exclude: Patterns of files and folders to exclude, with ``*``, ``?`` and ``[abc]``. A pattern without a slash
            matches names (``*proxy*``, ``Trash``); with a trailing slash, it matches only folder names; with a slash
            elsewhere, it matches the end of a path, or a whole path if it starts with a slash or ``~``.
        follow_links: Whether to follow links to folders.
        images: Whether to index photographs, each as a video of one frame.
        include_bins: Whether to scan bins, snapshots and preview folders, see :func:`is_bin`.

    Raises:
        InvalidArgumentError: A pattern is empty.
    """

    exclude: tuple[str, ...] = ()
    follow_links: bool = False
    images: bool = False
    include_bins: bool = False

    def __post_init__(self) -> None:
        if not all(pattern.strip("/") for pattern in self.exclude):
            raise InvalidArgumentError(
                "an exclude pattern must name files or folders, for example *proxy* or Trash/, got "
                + repr(next(pattern for pattern in self.exclude if not pattern.strip("/")))
            )

    def changed(
        self,
        exclude: str | Iterable[str] | None = None,
        follow_links: bool | None = None,
        images: bool | None = None,
        include_bins: bool | None = None,
    ) -> FolderRules:
        """Return a copy with changed values; None keeps the current value."""
        patterns = (exclude,) if isinstance(exclude, str) else exclude
        return FolderRules(
            self.exclude if patterns is None else tuple(patterns),
            self.follow_links if follow_links is None else follow_links,
            self.images if images is None else images,
            self.include_bins if include_bins is None else include_bins,
        )

    @property
    def extensions(self) -> frozenset[str]:
        """Lowercase extensions of the files to index."""
        return VIDEO_EXTENSIONS | IMAGE_EXTENSIONS if self.images else VIDEO_EXTENSIONS

    def excluded_by(self, path: str, *, is_folder: bool) -> str | None:
        """Return the first pattern that excludes this absolute path, or None."""
        return next((pattern for pattern in self.exclude if _matches(path, pattern, is_folder)), None)

    def excludes_below(self, path: str, folder: str) -> bool:
        """Whether a scan of ``folder`` excludes the file itself or a folder that contains it."""
        if self.excluded_by(path, is_folder=False) is not None:
            return True
        parent = os.path.dirname(path)
        while len(parent) > len(folder):
            if self.excluded_by(parent, is_folder=True) is not None or (not self.include_bins and is_bin(parent)):
                return True
            parent = os.path.dirname(parent)
        return False


def is_bin(path: str) -> bool:
    """Whether a folder is a bin, or contains snapshots or previews of other files, judging only by its absolute path.

    Such folders are created by NAS systems, desktops and synchronization tools.
    """
    path = path.replace(os.sep, "/").casefold()
    return _LAST_NAMES.match(path.rpartition("/")[2]) is not None and _BIN_PATH.match(path) is not None


def bin_below(folder: str) -> str | None:
    """Return the path where a hidden folder may contain a bin; None if hidden folders with this name have none."""
    rest = _BELOW_HIDDEN.get(os.path.basename(folder))
    return None if rest is None else os.path.join(folder, *rest.split("/"))


def _matches(path: str, pattern: str, is_folder: bool) -> bool:
    pattern = os.path.expanduser(pattern)
    if pattern.endswith("/"):
        if not is_folder:
            return False
        pattern = pattern.rstrip("/")
    if "/" not in pattern:
        return fnmatch.fnmatchcase(os.path.basename(path), pattern)
    return fnmatch.fnmatchcase(path, pattern if pattern.startswith("/") else f"*/{pattern}")
