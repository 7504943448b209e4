"""File system operations, one function each, for all data that must survive a power failure.

Each function first calls :func:`before`, which tests replace to fail at the n-th call and thus simulate a power
failure between any two operations.
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
# O_NOFOLLOW, so that other users cannot plant a link under this name to redirect the write.
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
# Errors of systems that cannot sync folders; any other error is a disk failure.
_SYNC_UNSUPPORTED = {
    errno.EINVAL,
    errno.ENOTSUP,
    errno.EBADF,
    errno.EACCES,
    errno.EPERM,
    errno.ENOSYS,
    errno.EISDIR,
}
# Errors of systems that cannot rename without replacing.
_EXCLUSIVE_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}
# Errors of file systems that do not support hard links, at all or for this file.
_LINK_UNSUPPORTED = {errno.EPERM, errno.EMLINK, *_EXCLUSIVE_UNSUPPORTED}
_AT_FDCWD = -100
# Windows only syncs files that are open for writing.
_SYNC_FLAGS = os.O_RDWR if sys.platform == "win32" else os.O_RDONLY
# Windows refuses to replace a file that another program, such as a virus scanner, has open; usually not for long.
_RETRY_DELAYS = (0.01, 0.05, 0.2, 0.5, 1.0) if sys.platform == "win32" else ()


def before(operation: str, path: str, target: str = "") -> None:
    """Do nothing; tests replace this function, which is called before each operation.

    Args:
        operation: ``create``, ``write``, ``sync``, ``commit`` (of a database), ``rename``, ``link``, ``symlink``,
            ``unlink``, ``folder`` or ``trash``.
        path: The file or folder to change.
        target: The new name for ``rename``, or the name of the link for ``link`` and ``symlink``.
    """


def write(descriptor: int, content: bytes, path: str) -> None:
    """Write all bytes to an open file.

    Raises:
        OSError: The disk is full or fails; part of the content may have been written.
    """
    before("write", path)
    while content:
        content = content[os.write(descriptor, content) :]


def copy_new(source: str, target: str) -> None:
    """Copy the bytes of a file to a new file, without waiting until they are on disk.

    Raises:
        OSError: A file cannot be opened, or the target exists; part of the content may have been written.
    """
    before("create", target)
    with open(source, "rb", buffering=0) as file:
        descriptor = os.open(target, _CREATE_FLAGS, 0o600)
        try:
            while content := file.read(_CHUNK):
                write(descriptor, content, target)
        finally:
            os.close(descriptor)


def create_new(path: str, content: bytes) -> None:
    """Write a small new file that only its owner can read, and wait until it is on disk.

    Raises:
        FileExistsError: Something exists at the path, possibly a broken link; it is left unchanged.
        OSError: The disk is full or fails; part of the content may have been written.
    """
    before("create", path)
    descriptor = os.open(path, _CREATE_FLAGS, 0o600)
    try:
        write(descriptor, content, path)
    finally:
        os.close(descriptor)
    sync_file(path)


def sync_file(path: str | os.PathLike[str]) -> None:
    """Wait until the content of a file is on disk.

    Raises:
        OSError: The disk fails.
    """
    before("sync", os.fspath(path))
    _sync(path, _SYNC_FLAGS)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Wait until the names in a folder are on disk, if the file system supports this.

    Raises:
        OSError: The disk fails.
    """
    before("sync", os.fspath(path))
    try:
        _sync(path, os.O_RDONLY)
    except OSError as error:
        if error.errno not in _SYNC_UNSUPPORTED:
            raise


def rename(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Rename a file, replacing an existing file.

    Raises:
        OSError: The system refuses.
    """
    before("rename", os.fspath(source), os.fspath(target))
    for delay in _RETRY_DELAYS:
        try:
            Path(source).replace(target)
            return
        except PermissionError:
            time.sleep(delay)
    Path(source).replace(target)


def rename_new(source: str, target: str) -> None:
    """Rename a file without replacing another file.

    If possible, the system checks and renames in one step. Otherwise, the new name is created as a hard link, which
    fails if the name exists, and then the old name is removed; a crash in between leaves both names. Only on file
    systems without hard links, such as FAT, could this replace a file that another program creates at the same moment.

    Raises:
        FileExistsError: Something exists under the new name, possibly a broken link.
        OSError: The system refuses; the error number is EXDEV if the paths are on different disks.
    """
    before("rename", source, target)
    # RENAME_EXCL, RENAME_NOREPLACE
    code = _rename_with_flag(source, target, 4 if sys.platform == "darwin" else 1)
    if code in _EXCLUSIVE_UNSUPPORTED:
        if sys.platform == "win32":  # on Windows, this call never replaces
            os.rename(source, target)
            return
        before("link", source, target)
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _LINK_UNSUPPORTED:
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
    """Exchange the names of two files in one step; return False, without any change, if the system cannot.

    Raises:
        OSError: A file does not exist, or the system refuses.
    """
    before("rename", first, second)
    code = _rename_with_flag(first, second, 2)  # RENAME_EXCHANGE, RENAME_SWAP
    if code and code not in _EXCLUSIVE_UNSUPPORTED:
        raise OSError(code, os.strerror(code), first, None, second)
    return not code


def link(source: str, target: str) -> None:
    """Create a hard link; raise OSError if the name exists or the system refuses."""
    before("link", source, target)
    os.link(source, target)


def symlink(text: str, path: str) -> None:
    """Create a symbolic link to ``text``; raise OSError if something exists at the path or the system refuses."""
    before("symlink", text, path)
    os.symlink(text, path)


def read_link(path: str) -> str:
    """Return the text of a symbolic link, as passed to :func:`symlink`; raise OSError if it is not a link."""
    # Windows adds this prefix to absolute paths.
    return os.readlink(path).removeprefix("\\\\?\\")


def unlink(path: str | os.PathLike[str]) -> None:
    """Remove a file, or a link itself; raise OSError if the system refuses, FileNotFoundError if it does not exist."""
    before("unlink", os.fspath(path))
    os.unlink(path)


def make_folders(path: str, mode: int = 0o777) -> None:
    """Create a folder and its parents, and wait until they are on disk.

    Args:
        path: The folder.
        mode: Permissions of new folders, reduced by the umask.

    Raises:
        OSError: A file has the same name, or the system refuses.
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


def _rename_with_flag(source: str, target: str, flag: int) -> int:
    """Rename with a flag; return the system's error number: 0 for success, ENOSYS if there is no such call."""
    function = _load_rename()
    if function is None:
        return errno.ENOSYS
    names = os.fsencode(source), os.fsencode(target)
    if sys.platform == "darwin":
        failed = function(*names, flag)
    else:
        failed = function(_AT_FDCWD, names[0], _AT_FDCWD, names[1], flag)
    return ctypes.get_errno() if failed else 0


@cache
def _load_rename() -> Any:
    """Load the C library's rename function that takes flags; None if there is none."""
    name = {"linux": "renameat2", "darwin": "renamex_np"}.get(sys.platform)
    return None if name is None else getattr(ctypes.CDLL(None, use_errno=True), name, None)
