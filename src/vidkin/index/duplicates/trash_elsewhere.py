"""The trashes of Windows and macOS: a file is sent there by the system, and found again in what it keeps."""

from __future__ import annotations

import ctypes
import errno
import ntpath
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from vidkin._base import disk
from vidkin._base.files import open_regular_file
from vidkin.index.duplicates.plans import FileState
from vidkin.index.duplicates.removal_moves import real_path, volume_of

_SYSTEM = sys.platform

# Of a note in the recycle bin of Windows: what comes before the path, and the longest path in bytes.
_RECYCLED_HEADER, _LONGEST_RECYCLED = 28, 2 * (1 << 15)
# A drive that is on another machine, as Windows numbers kinds of drives.
_REMOTE_DRIVE = 4


def send_to_trash(path: str) -> str:
    """Move a file to the trash; returns where it is now, empty if the system does not let its trash be listed.

    Raises:
        OSError: The system refuses, or has no trash there: Windows deletes what is on another machine for good.
    """
    from send2trash import send2trash

    if _SYSTEM == "win32" and _is_remote(path):
        raise OSError(errno.ENOTSUP, "there is no trash on a drive of another machine; use --move-to FOLDER")
    before = os.lstat(path)
    disk.before("trash", path)
    send2trash(path)
    for place in _places(path):
        with suppress(OSError):
            if os.path.samestat(os.lstat(place), before):
                return place
    return ""


def find_in_trash(path: str, held: FileState, device: int, inode: int) -> str | None:
    """Find a file in the trash by what was noted of it; None if it is not there.

    It is the same file of the disk. Otherwise it has its path in the note of the recycle bin, or on macOS, whose notes
    are not documented, its name, perhaps with a number or a time. In any case it holds what it held.

    Args:
        path: Where it was.
        held: What it held.
        device, inode: Identify the file, as the log says.
    """
    same, named = [], []
    for place in _places(path):
        with suppress(OSError):
            status = os.lstat(place)
            if status.st_size != held.size:
                continue
            if (status.st_dev, status.st_ino) == (device, inode):
                same.append(place)
            elif _is_of(place, path):
                named.append(place)
    return next((place for place in (*same, *named) if held.is_at(place)), None)


def remove_note(place: str) -> None:
    """Remove the note of the recycle bin on a file that has left it; OSError if the system refuses."""
    folder, name = os.path.split(place)
    if name.startswith("$R") and not os.path.lexists(place):
        with suppress(FileNotFoundError):
            disk.unlink(os.path.join(folder, f"$I{name[2:]}"))


def _places(path: str) -> Iterator[str]:
    """The files in the trashes that may hold what was at a path, the most probable first."""
    volume = volume_of(path)
    if _SYSTEM == "win32":
        # A folder for each user.
        for place in _entries(_entries([os.path.join(volume, "$Recycle.Bin")])):
            if os.path.basename(place).startswith("$R"):
                yield place
        return
    folders = [os.path.expanduser("~/.Trash")]
    if hasattr(os, "getuid"):
        folders.append(os.path.join(volume, ".Trashes", str(os.getuid())))
    yield from (os.path.join(folder, os.path.basename(path)) for folder in folders)
    yield from _entries(folders)


def _is_of(place: str, path: str) -> bool:
    """Whether a file in the trash may be the one that was at a path."""
    if _SYSTEM == "darwin":
        stem, ending = os.path.splitext(os.path.basename(path))
        name = os.path.basename(place)
        return name.startswith(stem) and name.endswith(ending)
    named = _recycled_path(place)
    return named is not None and os.path.normcase(real_path(named)) == os.path.normcase(real_path(path))


def _recycled_path(place: str) -> str | None:
    """Where a file ``$R...`` was, by its note ``$I...``: version, size, time of deletion, path. None if that cannot be
    read."""
    folder, name = os.path.split(place)
    try:
        with open_regular_file(os.path.join(folder, f"$I{name[2:]}"), follow_links=False) as file:
            content = file.read(_RECYCLED_HEADER + _LONGEST_RECYCLED)
        # Version 1 has room for 260 characters, version 2 says how many follow.
        start = {1: _RECYCLED_HEADER - 4, 2: _RECYCLED_HEADER}[int.from_bytes(content[:8], "little")]
        return content[start : start + (len(content) - start) // 2 * 2].decode("utf-16-le").partition("\0")[0]
    except (OSError, ValueError, KeyError):
        return None


def _entries(folders: Iterable[str]) -> Iterator[str]:
    """What is in folders, without those that cannot be listed."""
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        yield from (os.path.join(folder, name) for name in names)


def _is_remote(path: str) -> bool:
    """Whether Windows has a path from another machine."""
    drive = ntpath.splitdrive(os.path.abspath(path))[0]
    if drive.startswith(("\\\\", "//")):
        return True
    kernel = getattr(getattr(ctypes, "windll", None), "kernel32", None)
    return kernel is not None and kernel.GetDriveTypeW(f"{drive}\\") == _REMOTE_DRIVE
