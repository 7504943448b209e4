"""The system's trash: names in it that are reserved before a file moves there, their notes, and files found again.

On systems of freedesktop.org (Linux, BSD) the trash is written here, by its specification. The library for that,
send2trash, looks for a free name and then renames onto it, so that of two files of one name that are sent at the same
time one is lost. Here the note of a file is made first, which fails if there is one, and the file is then renamed
without replacing. Windows and macOS have a call of their own: :mod:`vidkin.index.duplicates.trash_elsewhere`.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from urllib.parse import quote, unquote_to_bytes

from vidkin._base import disk
from vidkin._base.files import open_regular_file
from vidkin.index.duplicates import trash_elsewhere
from vidkin.index.duplicates.plans import FileState
from vidkin.index.duplicates.removal_moves import real_path, volume_of

IS_WRITTEN_HERE = sys.platform not in ("win32", "darwin")
"""Whether the trash of this system is one of freedesktop.org."""

_NOTE = ".trashinfo"
_HEADER = b"[Trash Info]\n"
# Names at random after the first one, of which one in four billion is taken.
_MAX_NAMES = 20
# A note has a path of at most some thousand bytes, each three characters in it.
_MAX_NOTE_BYTES = 1 << 16
_MAX_NAME_BYTES = 255


def choose_places(path: str) -> Iterator[str]:
    """Free names for a file in the trash of its disk, the first one its own; folders of the trash are created.

    A name may be taken meanwhile: :func:`reserve` says so.

    Args:
        path: The file.

    Raises:
        OSError: There is no trash on its disk, or no free name.
    """
    folder = _trash_of(path)
    stem, ending = os.path.splitext(os.path.basename(path))
    extra = ""
    for _ in range(_MAX_NAMES):
        place = os.path.join(folder, "files", _fit_name(folder, stem, extra, ending))
        if not os.path.lexists(place) and not os.path.lexists(_note_path(place)):
            yield place
        extra = f".{secrets.token_hex(4)}"
    raise FileExistsError(errno.EEXIST, f"there is no free name for it in {folder}")


def reserve(place: str, path: str) -> None:
    """Make the note of a file that is about to move to the trash: from then on its name there is taken.

    Args:
        place: One of :func:`choose_places`.
        path: The file.

    Raises:
        FileExistsError: The name is taken.
        OSError: The note cannot be written; a part of it may have been.
    """
    text = _note_start(place, path) + f"{datetime.now():%Y-%m-%dT%H:%M:%S}\n".encode("ascii")
    note = _note_path(place)
    disk.create_new(note, text)
    disk.sync_folder(os.path.dirname(note))


def release(place: str, path: str) -> None:
    """Remove the note of a file that is not in the trash after all, even one that a crash cut off.

    Notes on other files stay, and so does that of a file which is there.

    Raises:
        OSError: The system refuses.
    """
    if not is_place(place) or os.path.lexists(place):
        return
    note = _note_path(place)
    with suppress(FileNotFoundError):
        text, start = _read(note), _note_start(place, path)
        if text.startswith(start) or start.startswith(text) or named_path(place) == real_path(path):
            disk.unlink(note)
            disk.sync_folder(os.path.dirname(note))


def is_place(place: str) -> bool:
    """Whether a path is one of a file in a trash of freedesktop.org."""
    folder, kind = os.path.split(os.path.dirname(place))
    name, parent = os.path.basename(folder), os.path.basename(os.path.dirname(folder))
    return kind == "files" and (name == "Trash" or name.startswith(".Trash-") or parent == ".Trash")


def is_reserved(place: str, path: str) -> bool:
    """Whether a name may hold a file of ours: that of a trash only by the note on this file."""
    return not is_place(place) or named_path(place) == real_path(path)


def named_path(place: str) -> str | None:
    """Where a file in the trash was, by its note; None if there is no note that can be read."""
    try:
        lines = _read(_note_path(place)).splitlines()
    except OSError:
        return None
    if not lines or lines[0].strip() != _HEADER.strip():
        return None
    for line in lines[1:]:
        if line.startswith(b"Path="):
            path = os.fsdecode(unquote_to_bytes(line[len(b"Path=") :].strip()))
            return real_path(os.path.join(_root(place), path))
    return None


def find_in_trash(path: str, held: FileState, device: int, inode: int) -> str | None:
    """Find a file in the trash that is not where the log says, by what was noted of it; None if it is not there.

    It is the same file of the disk, or its note has its path; in any case it holds what it held. When something was
    deleted does not count: another program may have deleted another file of the same path since.

    Args:
        path: Where it was.
        held: What it held.
        device, inode: Identify the file, as the log says.
    """
    if not IS_WRITTEN_HERE:
        return trash_elsewhere.find_in_trash(path, held, device, inode)
    same, named = [], []
    wanted = real_path(path)
    for folder in _trashes(path):
        files = os.path.join(folder, "files")
        try:
            entries = list(os.scandir(files))
        except OSError:
            continue  # there is no such trash
        for entry in entries:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if status.st_size != held.size:
                    continue
                if (status.st_dev, status.st_ino) == (device, inode):
                    same.append(entry.path)
                elif named_path(entry.path) == wanted:
                    named.append(entry.path)
    return next((place for place in (*same, *sorted(named)) if held.is_at(place)), None)


def _trash_of(path: str) -> str:
    """The trash to which a file goes: the home trash if that is on its disk, otherwise one on its disk.

    Raises:
        OSError: There is none, and none can be made.
    """
    home = _home_trash()
    folder = os.path.dirname(path)
    # A file on stacked file systems may have another number than its folder, which decides over renaming.
    if _device_of(home) == os.stat(folder).st_dev:
        return _make_trash(home)
    volume = volume_of(path)
    shared = os.path.join(volume, ".Trash")
    with suppress(OSError):
        mode = os.lstat(shared).st_mode
        # Without the sticky bit, or through a link, others could replace what is in it.
        if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
            return _make_trash(os.path.join(shared, str(os.getuid())))
    try:
        return _make_trash(os.path.join(volume, f".Trash-{os.getuid()}"))
    except OSError as error:
        cause = f"there is no trash on its disk, {volume}: {error.strerror or error}; use --move-to FOLDER"
        raise OSError(error.errno, cause) from error


def _make_trash(folder: str) -> str:
    """Create the folders of a trash that only its owner can read.

    Raises:
        OSError: The system refuses, or the trash is a link or somebody else's.
    """
    disk.make_folders(folder, 0o700)
    if folder != _home_trash():  # which its owner may have put elsewhere, by a link
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise PermissionError(errno.EPERM, f"{folder} is a symbolic link or belongs to another user")
    for name in ("files", "info"):
        disk.make_folders(os.path.join(folder, name), 0o700)
    return folder


def _home_trash() -> str:
    data = os.environ.get("XDG_DATA_HOME", "")
    # The specification has paths that are not absolute ignored.
    return os.path.join(data if os.path.isabs(data) else os.path.expanduser("~/.local/share"), "Trash")


def _trashes(path: str) -> list[str]:
    """Trashes that may hold a file."""
    volume = volume_of(path)
    own = (os.path.join(volume, ".Trash", str(os.getuid())), os.path.join(volume, f".Trash-{os.getuid()}"))
    return [_home_trash(), *own]


def _device_of(path: str) -> int:
    """Number of the disk of a path that may not exist yet."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return os.stat(path).st_dev


def _fit_name(folder: str, stem: str, extra: str, ending: str) -> str:
    """A file name whose note has a possible name, too: its stem is cut."""
    longest = _MAX_NAME_BYTES
    with suppress(OSError, ValueError):
        longest = os.pathconf(folder, "PC_NAME_MAX")
    room = longest - len(_NOTE)
    if len(os.fsencode(ending)) > room // 2:
        stem, ending = stem + ending, ""
    while len(os.fsencode(stem + extra + ending)) > room:
        stem = stem[:-1]
    return stem + extra + ending


def _note_path(place: str) -> str:
    files, name = os.path.split(place)
    return os.path.join(os.path.dirname(files), "info", name + _NOTE)


def _root(place: str) -> str:
    """The folder from which a note of this trash names files, where its path is not absolute."""
    parent = os.path.dirname(os.path.dirname(os.path.dirname(place)))
    return os.path.dirname(parent) if os.path.basename(parent) == ".Trash" else parent


def _note_start(place: str, path: str) -> bytes:
    """A note up to the time of deletion. In the home trash paths are absolute, as the specification has it."""
    path = real_path(path)
    if os.path.basename(os.path.dirname(os.path.dirname(place))) != "Trash":
        path = os.path.relpath(path, _root(place))
    return _HEADER + f"Path={quote(os.fsencode(path))}\nDeletionDate=".encode("ascii")


def _read(note: str) -> bytes:
    with open_regular_file(note, follow_links=False) as file:
        return file.read(_MAX_NOTE_BYTES)
