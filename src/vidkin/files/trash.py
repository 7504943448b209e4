"""The system's trash: send files there, write their info files, and find them again.

On freedesktop.org systems (Linux, BSD), this module implements the trash specification itself, because send2trash looks
for a free name and then renames onto it: if two files with the same name are sent simultaneously, one is lost. Here,
the info file is created first, which fails if it exists, and then the file is renamed without replacing another, so
that undo finds the file after a crash at any moment. On Windows and macOS, send2trash uses a system call.
"""

from __future__ import annotations

import ctypes
import errno
import ntpath
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from vidkin._base import disk
from vidkin._base.files import read_regular_file
from vidkin.files.moving import read_matching, real_path

_SYSTEM = sys.platform
_HEADER = b"[Trash Info]"
# An info file contains a path of at most a few thousand bytes, each encoded as three characters.
_MAX_NOTE = 1 << 16
# Windows constant for network drives.
_REMOTE_DRIVE = 4


def is_written_here() -> bool:
    """Whether this system has a freedesktop.org trash."""
    return _SYSTEM not in ("win32", "darwin")


def choose_place(path: str) -> str:
    """Return a new name for a file in the trash on its disk, and create the folders of the trash.

    Raises:
        OSError: The disk has no trash.
    """
    stem, ending = os.path.splitext(os.path.basename(path))
    return os.path.join(_find_trash(path), "files", f"{stem[:20]}.{secrets.token_hex(8)}{ending[:8]}")


def reserve(place: str, path: str) -> None:
    """Write the info file for a file that is about to be moved to the trash.

    Raises:
        OSError: The info file cannot be written, or the name is taken.
    """
    path, note = real_path(path), _info_path(place)
    if os.path.dirname(os.path.dirname(place)) != _home_trash():  # only the home trash has absolute paths
        path = os.path.relpath(path, _root(place))
    date = f"{datetime.now():%Y-%m-%dT%H:%M:%S}"
    disk.create_new(note, _HEADER + f"\nPath={quote(os.fsencode(path))}\nDeletionDate={date}\n".encode("ascii"))
    disk.sync_folder(os.path.dirname(note))


def release(place: str, path: str) -> None:
    """Remove the info file of a file that is no longer in the trash, even if a crash truncated it; keep any others.

    Raises:
        OSError: The system refuses.
    """
    note = _info_path(place)
    is_ours = not is_written_here() or _named_path(place) in (None, real_path(path))
    if note and is_ours and os.path.lexists(note) and not os.path.lexists(place):
        disk.unlink(note)
        disk.sync_folder(os.path.dirname(note))


def is_reserved(place: str, path: str) -> bool:
    """Whether a name in the trash is reserved for this file, according to its info file."""
    return not is_written_here() or _named_path(place) == real_path(path)


def send(path: str) -> None:
    """Move a file to the trash of Windows or macOS.

    Raises:
        OSError: The system refuses, or has no trash there: on network drives, Windows would delete files permanently.
    """
    from send2trash import send2trash

    if _SYSTEM == "win32" and _is_remote(path):
        raise OSError(errno.ENOTSUP, "there is no trash on a network drive; use --move-to FOLDER")
    disk.before("trash", path)
    send2trash(path)


def find_in_trash(path: str, size: int, content: str, inode: int) -> str:
    """Find a file in the trash; empty if it is not there, or if the trash cannot be listed.

    The file must have the same content, and the same inode or an info file with its path (not checked on Windows and
    macOS). The time of deletion is ignored, because another program may since have deleted another file with the same
    path.

    Args:
        path: Original path.
        size, content: Size in bytes, and hash of the bytes.
        inode: Inode of the file according to the log.
    """
    same, named = [], []
    for place in _entries(path):
        with suppress(OSError):
            status = os.lstat(place)
            if status.st_size == size and status.st_ino == inode:
                same.append(place)
            elif status.st_size == size and is_reserved(place, path):
                named.append(place)
    return next((place for place in (*same, *named) if read_matching(place, size, content) is not None), "")


def volume_of(path: str) -> str:
    """Return the root of the disk that contains a path."""
    volume = os.path.dirname(os.path.realpath(path))
    while not os.path.ismount(volume) and os.path.dirname(volume) != volume:
        volume = os.path.dirname(volume)
    return volume


def _is_remote(path: str) -> bool:
    """Whether a Windows path is on another machine."""
    drive = ntpath.splitdrive(os.path.abspath(path))[0]
    if drive.startswith(("\\\\", "//")):
        return True
    kernel = getattr(getattr(ctypes, "windll", None), "kernel32", None)
    return kernel is not None and kernel.GetDriveTypeW(f"{drive}\\") == _REMOTE_DRIVE


def _entries(path: str) -> Iterator[str]:
    """Yield the files in all trashes that may contain a file from this path; skip trashes that cannot be listed."""
    volume = volume_of(path)
    if _SYSTEM == "win32":
        with suppress(OSError):
            for user in sorted(Path(volume, "$Recycle.Bin").iterdir()):
                with suppress(OSError):
                    yield from (os.fspath(entry) for entry in sorted(user.iterdir()) if entry.name.startswith("$R"))
        return
    own = str(os.getuid())
    if _SYSTEM == "darwin":
        folders = [os.path.expanduser("~/.Trash"), os.path.join(volume, ".Trashes", own)]
    else:
        trashes = (_home_trash(), os.path.join(volume, ".Trash", own), os.path.join(volume, f".Trash-{own}"))
        folders = [os.path.join(trash, "files") for trash in trashes]
    for folder in folders:
        with suppress(OSError):
            yield from (os.path.join(folder, name) for name in sorted(os.listdir(folder)))


def _find_trash(path: str) -> str:
    """Return the trash for a file: the home trash if it is on the same disk, otherwise a trash on the file's disk.

    Raises:
        OSError: There is no trash, and it cannot be created.
    """
    home = _home_trash()
    # On stacked file systems, a file and its folder may have different device numbers; renaming depends on the device
    # of the folder.
    if _device_number(home) == os.stat(os.path.dirname(path)).st_dev:
        return _make_trash(home)
    volume = volume_of(path)
    shared = os.path.join(volume, ".Trash")
    with suppress(OSError):
        mode = os.lstat(shared).st_mode
        # Without the sticky bit, or through a link, other users could replace files in this folder.
        if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
            return _make_trash(os.path.join(shared, str(os.getuid())))
    try:
        return _make_trash(os.path.join(volume, f".Trash-{os.getuid()}"))
    except OSError as error:
        cause = f"there is no trash on its disk, {volume}: {error.strerror or error}; use --move-to FOLDER"
        raise OSError(error.errno, cause) from error


def _make_trash(folder: str) -> str:
    """Create the folders of a trash, readable only by their owner.

    Raises:
        OSError: The system refuses, or the trash is a link or belongs to another user.
    """
    disk.make_folders(folder, 0o700)
    status = os.lstat(folder)
    # The home trash may be a link to another folder of its owner.
    if folder != _home_trash() and (not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid()):
        raise PermissionError(errno.EPERM, f"{folder} is a symbolic link or belongs to another user")
    for name in ("files", "info"):
        disk.make_folders(os.path.join(folder, name), 0o700)
    return folder


def _home_trash() -> str:
    data = os.environ.get("XDG_DATA_HOME", "")
    # The specification requires relative paths to be ignored.
    return os.path.join(data if os.path.isabs(data) else os.path.expanduser("~/.local/share"), "Trash")


def _device_number(path: str) -> int:
    """Return the device number of a path that may not exist yet."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return os.stat(path).st_dev


def _info_path(place: str) -> str:
    """Return the path of the info file for a file in the trash; macOS has no readable info files."""
    files, name = os.path.split(place)
    if is_written_here():
        return os.path.join(os.path.dirname(files), "info", f"{name}.trashinfo")
    return os.path.join(files, f"$I{name[2:]}") if _SYSTEM == "win32" else ""


def _root(place: str) -> str:
    """Return the folder that relative paths in the info files of this trash refer to."""
    parent = os.path.dirname(os.path.dirname(os.path.dirname(place)))
    return os.path.dirname(parent) if os.path.basename(parent) == ".Trash" else parent


def _named_path(place: str) -> str | None:
    """Return the original path of a file in the trash from its info file; None if there is no readable info file."""
    with suppress(OSError, ValueError):
        # A crash may have truncated the last line.
        lines = read_regular_file(_info_path(place), _MAX_NOTE).rpartition(b"\n")[0].splitlines()
        for line in lines if lines[:1] == [_HEADER] else ():
            if line.startswith(b"Path="):
                path = os.fsdecode(unquote_to_bytes(line.removeprefix(b"Path=").strip()))
                return real_path(os.path.join(_root(place), path))
    return None
