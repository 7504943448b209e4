"""Rules for files in folders: patterns, links, photographs, and bins, snapshots and previews."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from vidkin._base.arguments import check_constructor
from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.errors import InvalidArgumentError

# Folders of deleted files, snapshots and previews, by name or end of path. If indexed, a deleted or derived file could
# be kept as the best copy in place of the original.
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
    # NAS systems: Synology, QNAP, NetApp, Buffalo, Unraid, and Samba's bin
    "#recycle", "#snapshot", "@eaDir",
    "@Recycle", "@Recently-Snapshot", ".@__thumb", ".@__qini",
    "~snapshot", "trashbox", ".Recycle.Bin", ".recycle",
    # Programs that synchronize folders: Nextcloud, Dropbox, Syncthing, Resilio
    "files_trashbin", "files_versions", ".dropbox.cache", ".stversions", ".sync/Archive",
)  # fmt: skip
# Matched in any case, because drives of case-insensitive systems are also read on others.
_BIN_PATH = re.compile("|".join(fnmatch.translate(f"*/{name.casefold()}") for name in _BINS))
_LAST_NAMES = re.compile("|".join(fnmatch.translate(name.casefold().rpartition("/")[2]) for name in _BINS))
# Bins inside hidden folders, which a scan does not enter otherwise.
_BELOW_HIDDEN = {name.partition("/")[0]: name.partition("/")[2] for name in _BINS if name[0] == "." and "/" in name}


@check_constructor
@dataclass(frozen=True, slots=True)
class FolderRules:
    """Rules for files in named folders; a file that is named itself is always indexed.

    Attributes:
        exclude: Patterns of files and folders to exclude, with ``*``, ``?`` and ``[abc]``. A pattern without a slash
            matches names (``*proxy*``, ``Trash``), with a slash at the end only names of folders, with a slash
            elsewhere the end of the path, or the whole path if it begins with a slash or ``~``.
        follow_links: Also follow links to folders.
        images: Also index photographs; each is a video of one frame.
        include_bins: Also scan bins, snapshots and preview folders, see :func:`is_bin`.
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
        """Copy with changed values; None keeps a value."""
        patterns = (exclude,) if isinstance(exclude, str) else exclude
        return FolderRules(
            self.exclude if patterns is None else tuple(patterns),
            self.follow_links if follow_links is None else follow_links,
            self.images if images is None else images,
            self.include_bins if include_bins is None else include_bins,
        )

    @property
    def extensions(self) -> frozenset[str]:
        """Lower-case extensions of the files to index."""
        return VIDEO_EXTENSIONS | IMAGE_EXTENSIONS if self.images else VIDEO_EXTENSIONS

    def excluded_by(self, path: str, *, is_folder: bool) -> str | None:
        """The first pattern that excludes this absolute path; None if none does."""
        return next((pattern for pattern in self.exclude if _matches(path, pattern, is_folder)), None)

    def excludes_below(self, path: str, folder: str) -> bool:
        """Whether a scan of this folder excludes a file, by itself or with a folder that contains it."""
        if self.excluded_by(path, is_folder=False) is not None:
            return True
        parent = os.path.dirname(path)
        while len(parent) > len(folder):
            if self.excluded_by(parent, is_folder=True) is not None or (not self.include_bins and is_bin(parent)):
                return True
            parent = os.path.dirname(parent)
        return False


def is_bin(path: str) -> bool:
    """Whether a folder with this absolute path is a bin or contains snapshots or previews of other files.

    NAS systems, desktops and synchronization tools create them; only the path is considered.
    """
    path = path.replace(os.sep, "/").casefold()
    return _LAST_NAMES.match(path.rpartition("/")[2]) is not None and _BIN_PATH.match(path) is not None


def bin_below(folder: str) -> str | None:
    """The path of a possible bin inside a hidden folder; None if hidden folders of this name have none."""
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
