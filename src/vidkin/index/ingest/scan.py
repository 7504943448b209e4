"""Which files there are: folders, lists, globs."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from vidkin._base.extensions import VIDEO_EXTENSIONS

__all__ = ["FoundFile", "Scan", "content_hash", "is_gone", "scan"]

_CHUNK = 1 << 20
_MPEG_TS_SYNC = 0x47


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be a video.

    Attributes:
        path: Absolute; not normalised, so that it opens exactly as found.
        size: Bytes.
        mtime_ns: Last change, nanoseconds since the epoch.
    """

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What a walk over paths found.

    Attributes:
        files: Sorted by path, each once.
        problems: (path, cause) of what could not be looked at.
        folders: Absolute paths of the folders given, as far as they could be listed.
    """

    files: tuple[FoundFile, ...]
    problems: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]


def scan(paths: Iterable[str | os.PathLike[str]]) -> Scan:
    """Find the videos in folders (with all folders below), and the files named.

    Folders are searched for files with one of ``VIDEO_EXTENSIONS``; hidden files and folders in them are left out.
    Links to folders are followed, each folder once, so that loops end. Of a file and links to it in the same scan
    only the file itself is taken. What cannot be read is a problem in the result, never an exception.

    Args:
        paths: Folders, files, or patterns (``~/Videos/**/*.mkv``); ``~`` is the home folder.
    """
    walk = _Walk()
    for given in paths:
        walk.visit(os.path.expanduser(os.fsdecode(os.fspath(given))))
    return walk.result()


def content_hash(path: str, size: int) -> str:
    """A name for the content of a file, from at most 3 MiB of it.

    blake2b of the size and of the first, middle and last MiB (of everything up to 3 MiB). Videos of the same
    length to the byte that differ only in between would be taken for the same; encoders do not make such.

    Raises:
        OSError: The file cannot be read.
    """
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    with open(path, "rb") as file:
        if size <= 3 * _CHUNK:
            digest.update(file.read())
        else:
            for start in (0, (size - _CHUNK) // 2, size - _CHUNK):
                file.seek(start)
                digest.update(file.read(_CHUNK))
    return digest.hexdigest()


def is_gone(path: str) -> bool:
    """The path names nothing any more. False where that cannot be told (a folder that may not be read)."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


class _Walk:
    def __init__(self) -> None:
        self._files: dict[str, FoundFile] = {}
        self._identities: dict[tuple[int, int], str] = {}
        self._links: list[tuple[str, os.stat_result]] = []
        self._problems: dict[str, str] = {}
        self._folders: list[str] = []
        self._seen: set[tuple[int, int]] = set()

    def visit(self, given: str) -> None:
        """One path or pattern as given by the caller."""
        path = os.path.abspath(given)
        if glob.has_magic(path) and not os.path.lexists(path):
            matches = sorted(glob.glob(path, recursive=True))
            if not matches:
                self._problems[path] = "nothing matches this pattern"
            for match in matches:
                self._named(match)
        else:
            self._named(path)

    def _named(self, path: str) -> None:
        try:
            found = os.stat(path)
        except OSError as error:
            self._problems[path] = _cause(error)
            return
        if stat.S_ISDIR(found.st_mode):
            self._folder(path, found)
        elif stat.S_ISREG(found.st_mode):
            self._take(path, found)
        else:
            self._problems[path] = "is neither a file nor a folder"

    def result(self) -> Scan:
        for path, found in sorted(self._links):
            if (found.st_dev, found.st_ino) not in self._identities:
                self._take(path, found)
        return Scan(
            files=tuple(self._files[path] for path in sorted(self._files)),
            problems=tuple(sorted(self._problems.items())),
            folders=tuple(self._folders),
        )

    def _folder(self, root: str, found: os.stat_result) -> None:
        waiting = [(root, found)]
        while waiting:
            folder, at = waiting.pop()
            if (at.st_dev, at.st_ino) in self._seen:
                continue
            self._seen.add((at.st_dev, at.st_ino))
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
                    self._entry(entry, waiting)

    def _entry(self, entry: os.DirEntry[str], waiting: list[tuple[str, os.stat_result]]) -> None:
        named_as_video = os.path.splitext(entry.name)[1].lower() in VIDEO_EXTENSIONS
        try:
            found = entry.stat()
        except OSError as error:
            if named_as_video:
                self._problems[entry.path] = _cause(error)
            return
        if stat.S_ISDIR(found.st_mode):
            waiting.append((entry.path, found))
        elif named_as_video and stat.S_ISREG(found.st_mode) and not _is_typescript(entry.path, found.st_size):
            if entry.is_symlink():
                self._links.append((entry.path, found))
            else:
                self._take(entry.path, found)

    def _take(self, path: str, found: os.stat_result) -> None:
        self._files[path] = FoundFile(path, found.st_size, found.st_mtime_ns)
        self._identities[found.st_dev, found.st_ino] = path


def _is_typescript(path: str, size: int) -> bool:
    """A ``.ts`` file that is source code: a transport stream starts its packets with a sync byte."""
    if not path.lower().endswith(".ts") or size == 0:
        return False
    try:
        with open(path, "rb") as file:
            return _MPEG_TS_SYNC not in file.read(5)
    except OSError:
        return False


def _cause(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file or folder"
    return (error.strerror or type(error).__name__).lower()
