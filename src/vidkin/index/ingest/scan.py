"""The video files in folders, lists and patterns."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from vidkin._base.extensions import VIDEO_EXTENSIONS
from vidkin._base.regular_files import open_regular_file

__all__ = ["Scan", "VideoFile", "is_gone", "scan"]

_MPEG_TS_SYNC = 0x47


@dataclass(frozen=True, slots=True)
class VideoFile:
    """A file that may be a video.

    Attributes:
        path: Absolute; not normalized, so that it opens exactly as the system lists it.
        size: Bytes.
        mtime_ns: Last change, nanoseconds since the epoch.
    """

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Scan:
    """The files below some paths.

    Attributes:
        files: Sorted by path, each once.
        problems: (path, cause) of what could not be looked at.
        folders: Absolute paths of the folders among the paths, as far as they could be listed.
    """

    files: tuple[VideoFile, ...]
    problems: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]


def scan(paths: Iterable[str | os.PathLike[str]]) -> Scan:
    """The videos in folders (and all folders below), and the files named.

    Folders are searched for the extensions of videos; hidden files and folders in them are left out. Links
    to folders are followed, each folder once, so that loops end. Of a file and links to it in the same scan
    only the file itself counts. What cannot be read is a problem in the result, never an exception.

    Args:
        paths: Folders, files, or patterns (``~/Videos/**/*.mkv``); ``~`` is the home folder.
    """
    walk = _Walk()
    for path in paths:
        walk.visit(os.path.expanduser(os.fsdecode(os.fspath(path))))
    return walk.result()


def is_gone(path: str) -> bool:
    """Nothing exists at the path any more. False where that is uncertain (a folder that may not be read)."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


class _Walk:
    def __init__(self) -> None:
        self._files: dict[str, VideoFile] = {}
        self._identities: dict[tuple[int, int], str] = {}
        self._links: list[tuple[str, os.stat_result]] = []
        self._problems: dict[str, str] = {}
        self._folders: list[str] = []
        self._seen: set[tuple[int, int]] = set()

    def visit(self, name: str) -> None:
        """Look at one path or pattern of the caller's."""
        path = os.path.abspath(name)
        if glob.has_magic(path) and not os.path.lexists(path):
            matches = sorted(glob.glob(path, recursive=True))
            if not matches:
                self._problems[path] = "no file matches this pattern"
            for match in matches:
                self._visit_named(match)
        else:
            self._visit_named(path)

    def result(self) -> Scan:
        """The files that were visited, and links whose files were not."""
        for path, state in sorted(self._links):
            if (state.st_dev, state.st_ino) not in self._identities:
                self._take(path, state)
        return Scan(
            files=tuple(self._files[path] for path in sorted(self._files)),
            problems=tuple(sorted(self._problems.items())),
            folders=tuple(self._folders),
        )

    def _visit_named(self, path: str) -> None:
        try:
            state = os.stat(path)
        except OSError as error:
            self._problems[path] = _cause(error)
            return
        if stat.S_ISDIR(state.st_mode):
            self._visit_folder(path, state)
        elif stat.S_ISREG(state.st_mode):
            self._take(path, state)
        else:
            self._problems[path] = "is neither a file nor a folder"

    def _visit_folder(self, root: str, root_state: os.stat_result) -> None:
        waiting = [(root, root_state)]
        while waiting:
            folder, state = waiting.pop()
            if (state.st_dev, state.st_ino) in self._seen:
                continue
            self._seen.add((state.st_dev, state.st_ino))
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                self._problems[folder] = f"cannot be listed: {_cause(error)}"
                continue
            if folder == root:
                self._folders.append(root)
            for entry in entries:
                if not entry.name.startswith("."):
                    self._visit_entry(entry, waiting)

    def _visit_entry(self, entry: os.DirEntry[str], waiting: list[tuple[str, os.stat_result]]) -> None:
        named_as_video = os.path.splitext(entry.name)[1].lower() in VIDEO_EXTENSIONS
        try:
            state = entry.stat()
        except OSError as error:
            if named_as_video:
                self._problems[entry.path] = _cause(error)
            return
        if stat.S_ISDIR(state.st_mode):
            waiting.append((entry.path, state))
        elif named_as_video and stat.S_ISREG(state.st_mode) and not _is_typescript(entry.path, state.st_size):
            if entry.is_symlink():
                self._links.append((entry.path, state))
            else:
                self._take(entry.path, state)

    def _take(self, path: str, state: os.stat_result) -> None:
        self._files[path] = VideoFile(path, state.st_size, state.st_mtime_ns)
        self._identities[state.st_dev, state.st_ino] = path


def _is_typescript(path: str, size: int) -> bool:
    """A ``.ts`` file that is source code: a transport stream starts its packets with a sync byte."""
    if not path.lower().endswith(".ts") or size == 0:
        return False
    try:
        with open_regular_file(path) as file:
            return _MPEG_TS_SYNC not in file.read(5)
    except OSError:
        return False


def _cause(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file or folder"
    return (error.strerror or type(error).__name__).lower()
