"""Find video files by folder, name or pattern, and map them to the paths an index already contains."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace

from vidkin._base.arguments import check_arguments
from vidkin._base.files import IMAGE_EXTENSIONS, describe_missing, open_regular_file
from vidkin._base.moving_pictures import is_animated
from vidkin.index.storage.files import is_same_file
from vidkin.index.storage.folder_rules import FolderRules, bin_below, is_bin
from vidkin.index.storage.manifest import MANIFEST_FILE

LINK_TO_FOLDER = "a link to a folder (--follow-links)"
"""Reason given for skipping a link to a folder."""

PHOTOGRAPH = "a photograph (--images)"
"""Reason given for skipping a photograph in a folder."""

BIN = "a folder of deleted files, snapshots or previews (--include-bins)"
"""Reason given for skipping a folder of deleted files, snapshots or previews."""

CHANGING = "still changing"
"""Reason given for skipping a file that is being written."""

# The first byte of every packet of an MPEG transport stream.
_MPEG_TS_SYNC = 0x47


@dataclass(frozen=True, slots=True)
class VideoFile:
    """A file that may be a video.

    Attributes:
        path: Absolute path exactly as listed by the system, not normalized.
        size: Size in bytes.
        mtime_ns: Modification time in nanoseconds since the epoch.
    """

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Scan:
    """Result of scanning folders and files for videos.

    Attributes:
        files: Files without duplicates, sorted by path.
        problems: Paths that could not be scanned, as (path, cause).
        folders: Absolute paths of the named folders that could be listed.
        named: Absolute paths of everything named by the caller or matched by a pattern.
        skipped: Skipped files and folders as (path, reason), sorted by path.
        mounts: Absolute paths of scanned folders on a different device than their parent, such as a drive mounted
            within a named folder.
        listed: Absolute paths of all folders that were listed.
    """

    files: tuple[VideoFile, ...]
    problems: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]
    named: frozenset[str] = frozenset()
    skipped: tuple[tuple[str, str], ...] = ()
    mounts: tuple[str, ...] = ()
    listed: frozenset[str] = frozenset()

    def only(self, is_chosen: Callable[[VideoFile], bool]) -> Scan:
        """Return a copy with only the chosen files; the others are marked as still changing."""
        chosen = tuple(file for file in self.files if is_chosen(file))
        others = {file.path for file in self.files} - {file.path for file in chosen}
        return replace(
            self, files=chosen, skipped=tuple(sorted([*self.skipped, *((path, CHANGING) for path in others)]))
        )


@check_arguments
def scan(paths: Iterable[str | os.PathLike[str]], rules: FolderRules | None = None) -> Scan:
    """Find videos in folders (recursively) and among named files.

    In folders, files with video extensions are included; hidden files and folders, bins, snapshots, previews and
    indexes are skipped. If a file and links to it are in the same scan, only the file is included. If links to folders
    are followed, each folder is scanned once, under its real path if possible, so cycles terminate. Unreadable paths do
    not raise errors but are reported as problems.

    Args:
        paths: Folders, files, or patterns (``~/Videos/**/*.mkv``); ``~`` is the home folder.
        rules: Rules for files in folders; default: videos, without following links to folders.
    """
    walk = _Walk(rules or FolderRules())
    for path in paths:
        walk.visit(os.path.expanduser(os.fsdecode(os.fspath(path))))
    return walk.result()


def rescan(before: Scan, folders: Iterable[str], rules: FolderRules) -> Scan | None:
    """Update a scan after changes in some folders by listing only these folders.

    Args:
        before: The previous full scan.
        folders: Folders in ``before.listed`` whose entries have changed.
        rules: Rules used for ``before``.

    Returns:
        The new scan; None if a full scan is necessary because a folder is not part of ``before``, can no longer be
        listed, or contains links, whose targets may be anywhere.
    """
    walk = _Walk(rules)
    gone: set[str] = set()
    for folder in sorted(folders):
        # Sorting puts parents first; a subfolder missing from its parent is gone with everything in it.
        if _is_at_or_below(folder, gone):
            continue
        if folder not in before.listed or os.path.islink(folder) or not walk.list_again(folder, before.listed):
            return None
        still = walk.below | before.named
        gone |= {path for path in before.listed if os.path.dirname(path) == folder and path not in still}
    if walk.has_links:
        return None
    found = walk.result()
    listed = {path for path in before.listed if not _is_at_or_below(path, gone)}

    def is_kept(path: str) -> bool:
        return path in before.named or (
            os.path.dirname(path) not in found.listed and not _is_at_or_below(os.path.dirname(path), gone)
        )

    files = {file.path: file for file in before.files if is_kept(file.path)} | {file.path: file for file in found.files}
    problems = {path: cause for path, cause in before.problems if is_kept(path)} | dict(found.problems)
    skipped = {path: reason for path, reason in before.skipped if is_kept(path)} | dict(found.skipped)
    return replace(
        before,
        files=tuple(files[path] for path in sorted(files)),
        problems=tuple(sorted(problems.items())),
        skipped=tuple(sorted((path, reason) for path, reason in skipped.items() if path not in files)),
        mounts=tuple(sorted({path for path in before.mounts if path in listed} | set(found.mounts))),
        listed=frozenset(listed | found.listed),
    )


def _is_at_or_below(path: str, folders: set[str]) -> bool:
    return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in folders)


class _Walk:
    def __init__(self, rules: FolderRules) -> None:
        self._rules = rules
        self._extensions = rules.extensions
        self._files: dict[str, VideoFile] = {}
        self._identities: dict[tuple[int, int], str] = {}
        self._links: list[tuple[str, os.stat_result]] = []
        self._problems: dict[str, str] = {}
        self._folders: list[str] = []
        self._named: set[str] = set()
        self._skipped: dict[str, str] = {}
        self._seen: set[tuple[int, int]] = set()
        self._named_links: list[tuple[str, os.stat_result]] = []
        self._linked_folders: list[tuple[str, os.stat_result]] = []
        self._mounts: set[str] = set()
        self._listed: set[str] = set()
        self._known: Container[str] = ()
        self.below: set[str] = set()

    def visit(self, name: str) -> None:
        """Visit a path or pattern given by the caller."""
        path = os.path.abspath(name)
        if glob.has_magic(path) and not os.path.lexists(path):
            matches = sorted(glob.glob(path, recursive=True))
            if not matches:
                self._problems[path] = "no file matches this pattern"
            for match in matches:
                self._visit_named(match)
        else:
            self._visit_named(path)

    def list_again(self, folder: str, known: Container[str]) -> bool:
        """Visit a folder and its unknown subfolders; return whether it can be listed."""
        self._known = known
        try:
            self._visit_folder(folder, os.stat(folder))
        except OSError:
            return False
        return folder in self._listed

    @property
    def has_links(self) -> bool:
        """Whether any followed links to files or folders exist."""
        return bool(self._links or self._linked_folders)

    def result(self) -> Scan:
        """Return the visited files, and links whose targets were not visited."""
        # Follow links after all real folders, so that folders are listed under their real paths.
        for path, state in self._named_links:
            self._visit_folder(path, state)
        while self._linked_folders:
            self._visit_folder(*self._linked_folders.pop(0), is_link=True)
        for path, state in sorted(self._links):
            known = self._identities.get((state.st_dev, state.st_ino))
            if known is None:
                self._take(path, state)
            elif path not in self._files:
                self._skipped[path] = f"a link to {known}, which is already included"
        return Scan(
            files=tuple(self._files[path] for path in sorted(self._files)),
            problems=tuple(sorted(self._problems.items())),
            folders=tuple(self._folders),
            named=frozenset(self._named),
            skipped=tuple(sorted((path, why) for path, why in self._skipped.items() if path not in self._files)),
            mounts=tuple(sorted(self._mounts)),
            listed=frozenset(self._listed),
        )

    def _visit_named(self, path: str) -> None:
        self._named.add(path)
        try:
            state = os.stat(path)
        except OSError as error:
            self._problems[path] = _cause(path, error)
            return
        if stat.S_ISDIR(state.st_mode) and os.path.islink(path):
            self._named_links.append((path, state))
        elif stat.S_ISDIR(state.st_mode):
            self._visit_folder(path, state)
        elif stat.S_ISREG(state.st_mode):
            self._take(path, state)
        else:
            self._problems[path] = "is neither a regular file nor a folder"

    def _visit_folder(self, root: str, root_state: os.stat_result, *, is_link: bool = False) -> None:
        waiting = [(root, root_state)]
        while waiting:
            folder, state = waiting.pop()
            if (state.st_dev, state.st_ino) in self._seen:
                if is_link:
                    self._skipped[folder] = "a link to a folder that is already scanned"
                continue
            self._seen.add((state.st_dev, state.st_ino))
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                self._problems[folder] = f"cannot be listed: {_cause(folder, error)}"
                continue
            self._listed.add(folder)
            if folder == root and not is_link:
                self._folders.append(root)
            below: list[tuple[str, os.stat_result]] = []
            linked = len(self._linked_folders)
            for entry in entries:
                if entry.name.startswith(".") and not (self._rules.include_bins and is_bin(entry.path)):
                    self._visit_hidden(entry, below)
                else:
                    self._visit_entry(entry, below)
            inside = [*below, *self._linked_folders[linked:]]
            self._mounts |= {path for path, inner in inside if inner.st_dev != state.st_dev}
            self.below.update(path for path, _ in below)
            waiting += [(path, inner) for path, inner in below if path not in self._known]

    def _visit_hidden(self, entry: os.DirEntry[str], waiting: list[tuple[str, os.stat_result]]) -> None:
        """Skip a hidden file or folder, but visit or report a bin inside it."""
        self._skipped[entry.path] = BIN if is_bin(entry.path) and os.path.isdir(entry.path) else "hidden"
        inner = bin_below(entry.path)
        if inner is None:
            return
        try:
            state = os.stat(inner)
        except OSError:
            return
        pattern = self._rules.excluded_by(inner, is_folder=True)
        if pattern is not None:
            self._skipped[inner] = f"excluded by {pattern}"
        elif self._rules.include_bins:
            waiting.append((inner, state))
        else:
            self._skipped[inner] = BIN

    def _visit_entry(self, entry: os.DirEntry[str], waiting: list[tuple[str, os.stat_result]]) -> None:
        ending = os.path.splitext(entry.name)[1].lower()
        named_as_video = ending in self._extensions or (ending in (".webp", ".png") and is_animated(entry.path))
        try:
            state = entry.stat()
        except OSError as error:
            if named_as_video:
                self._problems[entry.path] = _cause(entry.path, error)
            return
        is_folder = stat.S_ISDIR(state.st_mode)
        pattern = self._rules.excluded_by(entry.path, is_folder=is_folder)
        if pattern is not None:
            self._skipped[entry.path] = f"excluded by {pattern}"
        elif is_folder and os.path.lexists(os.path.join(entry.path, MANIFEST_FILE)):
            self._skipped[entry.path] = "an index"
        elif is_folder and is_bin(entry.path) and not self._rules.include_bins:
            self._skipped[entry.path] = BIN
        elif is_folder and not entry.is_symlink():
            waiting.append((entry.path, state))
        elif is_folder and self._rules.follow_links:
            self._linked_folders.append((entry.path, state))
        elif is_folder:
            self._skipped[entry.path] = LINK_TO_FOLDER
        elif not named_as_video and ending in IMAGE_EXTENSIONS:
            self._skipped[entry.path] = PHOTOGRAPH
        elif not named_as_video:
            self._skipped[entry.path] = "not a video file extension"
        elif not stat.S_ISREG(state.st_mode):
            self._skipped[entry.path] = "neither a regular file nor a folder"
        elif _is_typescript(entry.path, state.st_size):
            self._skipped[entry.path] = "TypeScript"
        elif entry.is_symlink():
            self._links.append((entry.path, state))
        else:
            self._take(entry.path, state)

    def _take(self, path: str, state: os.stat_result) -> None:
        self._files[path] = VideoFile(path, state.st_size, state.st_mtime_ns)
        self._identities[state.st_dev, state.st_ino] = path


def _is_typescript(path: str, size: int) -> bool:
    """Whether a ``.ts`` file is TypeScript source code, as it lacks the sync bytes of an MPEG transport stream."""
    if not path.lower().endswith(".ts") or size == 0:
        return False
    try:
        with open_regular_file(path) as file:
            return _MPEG_TS_SYNC not in file.read(5)
    except OSError:
        return False


def _cause(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return describe_missing(path, "file or folder")
    return (error.strerror or type(error).__name__).lower()


def use_indexed_paths(scan: Scan, paths: Iterable[str]) -> Scan:
    """Rename scanned files to their paths in the index, so that no file is added twice through a link.

    Names that differ only in case are also matched on case-insensitive file systems.

    Args:
        scan: The new scan.
        paths: Paths of the files in the index.
    """
    known = set(paths)
    new = [file for file in scan.files if file.path not in known]
    if not new or not known:
        return scan
    real_folders: dict[str, str] = {}

    def real_path(path: str) -> str:
        if os.path.islink(path):
            return os.path.realpath(path)
        folder, name = os.path.split(path)
        if folder not in real_folders:
            real_folders[folder] = os.path.realpath(folder)
        return os.path.join(real_folders[folder], name)

    names = {real_path(path): path for path in sorted(known)}
    folded = {real.casefold(): path for real, path in names.items()}
    files = {file.path: file for file in scan.files if file.path in known}
    for file in new:
        real = real_path(file.path)
        name = names.get(real, file.path)
        other = folded.get(real.casefold())
        if name == file.path and other is not None and is_same_file(file.path, other):
            name = other
        files.setdefault(name, replace(file, path=name))
    return replace(scan, files=tuple(files[path] for path in sorted(files)))
