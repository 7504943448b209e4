"""The operations that change files, one function each.

What a power cut must not lose goes through them. Each first calls :func:`before`, in whose place a test puts a function
that fails at the n-th call: so it can stop the machine between any two operations.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

_CHUNK = 1 << 20
# O_NOFOLLOW: nobody can plant a link under a name of ours for us to write through.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
# What systems answer that cannot synchronize a folder; anything else is a failure of the disk.
_CANNOT_SYNC = {
    errno.EINVAL,
    errno.ENOTSUP,
    errno.EBADF,
    errno.EACCES,
    errno.EPERM,
    errno.ENOSYS,
    errno.EISDIR,
}
# What systems answer that cannot rename without replacing.
_CANNOT_KEEP = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}
# What systems answer that cannot give a file a second name: there are none on the file system, or not of this file.
_CANNOT_LINK = {errno.EPERM, errno.EMLINK, *_CANNOT_KEEP}
_AT_WORKING_FOLDER = -100
# Windows writes to the disk only what is open for writing.
_TO_SYNC = os.O_RDWR if sys.platform == "win32" else os.O_RDONLY
# Windows refuses to replace a file that a program reads, such as a virus scanner; most of them are soon done.
_WAITS = (0.01, 0.05, 0.2, 0.5, 1.0) if sys.platform == "win32" else ()


def before(operation: str, path: str, target: str = "") -> None:
    """Called before each operation; does nothing.

    Args:
        operation: ``create``, ``write``, ``sync``, ``commit`` (of a database), ``rename``, ``link``, ``symlink``,
            ``unlink``, ``folder`` or ``trash``.
        path: The file or folder that it changes.
        target: Its new name, for ``rename``; the name of the link, for ``link`` and ``symlink``.
    """


def write(descriptor: int, content: bytes, path: str) -> None:
    """Write all bytes to an open file.

    Raises:
        OSError: The disk is full or fails; a part may have been written.
    """
    before("write", path)
    while content:
        content = content[os.write(descriptor, content) :]


def copy_new(source: str, target: str) -> None:
    """Copy the bytes of a file into one that does not exist yet, and wait until they are on the disk.

    Raises:
        OSError: One of them cannot be opened, or the target exists; a part may have been written.
    """
    before("create", target)
    with open(source, "rb", buffering=0) as file:
        descriptor = os.open(target, _NEW, 0o600)
        try:
            while content := file.read(_CHUNK):
                write(descriptor, content, target)
        finally:
            os.close(descriptor)


def create_new(path: str, content: bytes) -> None:
    """Write a small file that only its owner can read and that does not exist yet, and wait until it is on the disk.

    Raises:
        FileExistsError: There is something at the path, be it a broken link; it is left as it is.
        OSError: The disk is full or fails; a part may have been written.
    """
    before("create", path)
    descriptor = os.open(path, _NEW, 0o600)
    try:
        write(descriptor, content, path)
    finally:
        os.close(descriptor)
    sync_file(path)


def sync_file(path: str | os.PathLike[str]) -> None:
    """Wait until the content of a file is on the disk.

    Raises:
        OSError: The disk fails.
    """
    before("sync", os.fspath(path))
    _sync(path, _TO_SYNC)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Wait until the names in a folder are on the disk, where the file system can do that.

    Raises:
        OSError: The disk fails.
    """
    before("sync", os.fspath(path))
    try:
        _sync(path, os.O_RDONLY)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def rename(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Rename a file; one of the new name is replaced.

    Raises:
        OSError: The system refuses.
    """
    before("rename", os.fspath(source), os.fspath(target))
    for wait in _WAITS:
        try:
            Path(source).replace(target)
            return
        except PermissionError:
            time.sleep(wait)
    Path(source).replace(target)


def rename_new(source: str, target: str) -> None:
    """Rename a file, never over another one.

    The system checks and renames in one step, where it can. Otherwise the file gets its new name as a link, which fails
    if the name is taken, and then loses its old one; a crash in between leaves it with both names. Only where there are
    no links either, such as on some FAT disks, a file that another program creates in between would be replaced.

    Raises:
        FileExistsError: There is something under the new name, be it a broken link.
        OSError: The system refuses; EXDEV between disks.
    """
    before("rename", source, target)
    # RENAME_EXCL, RENAME_NOREPLACE
    code = _rename_specially(source, target, 4 if sys.platform == "darwin" else 1)
    if code in _CANNOT_KEEP:
        if sys.platform == "win32":  # where this call never replaces
            os.rename(source, target)
            return
        before("link", source, target)
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
        else:
            unlink(source)
            return
        if os.path.lexists(target):
            code = errno.EEXIST
        else:
            os.rename(source, target)
            return
    if code:
        raise OSError(code, os.strerror(code), source, None, target)


def exchange(first: str, second: str) -> bool:
    """Exchange the names of two files in one step; False where the system cannot, and nothing has changed.

    Raises:
        OSError: One of them does not exist, or the system refuses.
    """
    before("rename", first, second)
    code = _rename_specially(first, second, 2)  # RENAME_EXCHANGE, RENAME_SWAP
    if code and code not in _CANNOT_KEEP:
        raise OSError(code, os.strerror(code), first, None, second)
    return not code


def link(source: str, target: str) -> None:
    """Give a file another name; OSError if that exists or the system refuses."""
    before("link", source, target)
    os.link(source, target)


def symlink(text: str, path: str) -> None:
    """Make a symbolic link to ``text``; OSError if there is something at the path or the system refuses."""
    before("symlink", text, path)
    os.symlink(text, path)


def read_link(path: str) -> str:
    """What a symbolic link says, as :func:`symlink` was told; OSError if it is none."""
    # Windows puts this before absolute paths.
    return os.readlink(path).removeprefix("\\\\?\\")


def unlink(path: str | os.PathLike[str]) -> None:
    """Remove a name, of a link the link itself; OSError if the system refuses, FileNotFoundError if it is gone."""
    before("unlink", os.fspath(path))
    os.unlink(path)


def make_folders(path: str, mode: int = 0o777) -> None:
    """Create a folder and its parents, and wait until they are on the disk.

    Args:
        path: The folder.
        mode: Access rights of those that are created, less what the process masks.

    Raises:
        OSError: A file is in the way, or the system refuses.
    """
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        before("folder", folder)
        os.makedirs(folder, mode, exist_ok=True)
        sync_folder(os.path.dirname(folder))


def _sync(path: str | os.PathLike[str], flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_specially(source: str, target: str, flag: int) -> int:
    """Number of the system's error, 0 for success; ENOSYS where it has no such call."""
    function = _exclusive_rename()
    if function is None:
        return errno.ENOSYS
    names = os.fsencode(source), os.fsencode(target)
    if sys.platform == "darwin":
        failed = function(*names, flag)
    else:
        failed = function(_AT_WORKING_FOLDER, names[0], _AT_WORKING_FOLDER, names[1], flag)
    return ctypes.get_errno() if failed else 0


@cache
def _exclusive_rename() -> Any:
    """The C library's function; None if it has none."""
    name = {"linux": "renameat2", "darwin": "renamex_np"}.get(sys.platform)
    return None if name is None else getattr(ctypes.CDLL(None, use_errno=True), name, None)
