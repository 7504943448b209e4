"""Which files of a folder to index: patterns, links, photographs, and folders that systems make for themselves."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from vidkin._base.arguments import check_constructor
from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.errors import InvalidArgumentError

# Folders of deleted files, snapshots and previews, by their names or the ends of their paths. They hold what a person
# deleted, or second versions of files that are elsewhere: kept as a copy, such a file could replace the original.
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
# In any case: drives of systems that ignore the case of letters are read by others, too.
_BIN_PATH = re.compile("|".join(fnmatch.translate(f"*/{name.casefold()}") for name in _BINS))
_LAST_NAMES = re.compile("|".join(fnmatch.translate(name.casefold().rpartition("/")[2]) for name in _BINS))
# A scan does not look into hidden folders: where to look for a bin below one.
_BELOW_HIDDEN = {name.partition("/")[0]: name.partition("/")[2] for name in _BINS if name[0] == "." and "/" in name}


@check_constructor
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
        include_bins: Also look into bins, snapshots and preview folders, see :func:`is_bin`.
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
        """A copy of these rules with changed values; None leaves a value as it is."""
        patterns = (exclude,) if isinstance(exclude, str) else exclude
        return FolderRules(
            self.exclude if patterns is None else tuple(patterns),
            self.follow_links if follow_links is None else follow_links,
            self.images if images is None else images,
            self.include_bins if include_bins is None else include_bins,
        )

    @property
    def extensions(self) -> frozenset[str]:
        """Extensions, in lower case, of the files that are taken."""
        return VIDEO_EXTENSIONS | IMAGE_EXTENSIONS if self.images else VIDEO_EXTENSIONS

    def excluded_by(self, path: str, *, is_folder: bool) -> str | None:
        """The first pattern that excludes this absolute path; None if none does."""
        return next((pattern for pattern in self.exclude if _matches(path, pattern, is_folder)), None)

    def excludes_below(self, path: str, folder: str) -> bool:
        """Whether scanning this folder leaves a file out, itself or with a folder that it is in."""
        if self.excluded_by(path, is_folder=False) is not None:
            return True
        parent = os.path.dirname(path)
        while len(parent) > len(folder):
            if self.excluded_by(parent, is_folder=True) is not None or (not self.include_bins and is_bin(parent)):
                return True
            parent = os.path.dirname(parent)
        return False


def is_bin(path: str) -> bool:
    """Whether a folder of this absolute path is a bin, or holds snapshots or previews of other files.

    NAS systems, desktops and programs that synchronize folders make them; only the path decides.
    """
    path = path.replace(os.sep, "/").casefold()
    return _LAST_NAMES.match(path.rpartition("/")[2]) is not None and _BIN_PATH.match(path) is not None


def bin_below(folder: str) -> str | None:
    """Where a hidden folder of this path would hold a bin; None if its name is not that of such a folder."""
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
