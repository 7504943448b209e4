"""Move a file without ever putting its bytes at risk, and check which file is at a path."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from contextlib import suppress

from vidkin._base import disk
from vidkin._base.files import check_length, hash_file
from vidkin.files.plan import FileState


def read_unchanged(file: FileState) -> os.stat_result | str:
    """Read all bytes of a file and return its status if it is unchanged, otherwise a description of the problem."""
    before = read_matching(file.path, file.size, file.content)
    if before is not None and str(before.st_mtime_ns) == file.modified:
        return before
    if os.path.islink(file.path):
        return "is now a symbolic link, but was a file when the plan was made"
    return "has changed since the plan was made, or cannot be read" if os.path.lexists(file.path) else "is gone"


def read_matching(path: str, size: int, content: str) -> os.stat_result | None:
    """Read all bytes of a file and return its status if its content matches; None for any other file or a link."""
    try:
        before = os.lstat(path)
        is_alike = stat.S_ISREG(before.st_mode) and before.st_size == size and hash_file(path) == content
        return before if is_alike and is_unchanged(path, before) else None
    except OSError:
        return None


def is_unchanged(path: str, before: os.stat_result) -> bool:
    """Whether the same file is still at a path, with the same size and modification time; OSError if there is none."""
    now = os.lstat(path)
    names = ("st_dev", "st_ino", "st_size", "st_mtime_ns")
    return all(getattr(now, name) == getattr(before, name) for name in names) and not stat.S_ISLNK(now.st_mode)


def is_other_name(path: str, other: str) -> bool:
    """Whether either of two names can be removed without loss: they name two files, or are two hard links to one file.

    Two spellings of the same name do not count. Raises OSError if either file does not exist.
    """
    status = os.lstat(path)
    if not os.path.samestat(status, os.lstat(other)):
        return True
    spellings = {os.path.normcase(real_path(name)) for name in (path, other)}
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and len(spellings) == 2


def real_path(path: str) -> str:
    """Resolve links in the folders of a path; the file itself may be a link."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def move_file(source: str, before: os.stat_result, content: str, target: str) -> None:
    """Move a file without replacing another one, and wait until the change is on disk.

    Within a disk, the file is renamed. Between disks, it is copied to a hidden name next to the target, synced to disk,
    read back and renamed; only then is the original removed.

    Args:
        source: The file.
        before: Status of the file when all of its bytes were read.
        content: Hash of its bytes.
        target: New path; its folder is created if missing.

    Raises:
        OSError: The file cannot be moved, or changed in the meantime. It is at its old path, or complete at the target.
    """
    folder = os.path.dirname(target)
    check_length(target)
    disk.make_folders(folder)
    try:
        disk.rename_new(source, target)
    except FileExistsError as error:
        raise FileExistsError(errno.EEXIST, f"{target} already exists; choose another folder") from error
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, before.st_size, content, target)
        remove_original(source, before)
        return
    if not is_unchanged(target, before):
        disk.rename_new(target, source)
        raise OSError(errno.EBUSY, "it changed while it was being moved")
    disk.sync_folder(folder)
    disk.sync_folder(os.path.dirname(source))


def remove_original(path: str, before: os.stat_result) -> None:
    """Remove a file after it was copied to another disk.

    Raises:
        OSError: The file changed since it was copied, or cannot be removed.
    """
    if not is_unchanged(path, before):
        raise OSError(errno.EBUSY, "it changed while it was being copied")
    disk.unlink(path)
    disk.sync_folder(os.path.dirname(path))


def hidden_name(path: str, ending: str) -> str:
    """Return a hidden name next to a path; it is always the same, so that the next run can clean it up."""
    folder, name = os.path.split(path)
    digest = hashlib.blake2b(os.fsencode(name), digest_size=10).hexdigest()
    return os.path.join(folder, f".vidkin-{digest}.{ending}")


def remove_partial(target: str) -> None:
    """Remove the remains of an interrupted copy to a target; raise OSError if that fails."""
    partial = hidden_name(target, "part")
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISREG(os.lstat(partial).st_mode):
            disk.unlink(partial)


def _copy(source: str, size: int, content: str, target: str) -> None:
    """Copy a file to another disk under a hidden name, read the copy back, and rename it to the target."""
    partial = hidden_name(target, "part")
    remove_partial(target)
    try:
        disk.copy_new(source, partial)
        shutil.copystat(source, partial)
        disk.sync_file(partial)
        if read_matching(partial, size, content) is None:
            raise OSError(errno.EIO, f"the copy at {target} does not match")
        disk.rename_new(partial, target)
        disk.sync_folder(os.path.dirname(target))
    # Not even Ctrl-C may leave an incomplete copy behind.
    except BaseException:
        with suppress(OSError):
            disk.unlink(partial)
        raise
