"""Move a file so that at every moment all of its bytes are somewhere, and compare what is at a path."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from contextlib import suppress

from vidkin._base import disk
from vidkin._base.files import check_length
from vidkin.errors import MediaError
from vidkin.index.duplicates.plans import FileState


def stat_of(file: FileState) -> os.stat_result | str:
    """The facts of a file that is still as it was, all its bytes read; otherwise what is wrong with it, in words."""
    try:
        before = os.lstat(file.path)
        if stat.S_ISLNK(before.st_mode):
            return "is a symbolic link now, it was a file when the plan was made"
        now = FileState.of(file.path)
        if now != file or not is_unchanged(file.path, before):
            return "changed since the plan was made"
    except MediaError as error:
        return error.cause
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return before


def stat_at(path: str, file: FileState) -> os.stat_result | None:
    """The facts of a file at another place, all its bytes read; None if it does not hold what ``file`` held."""
    try:
        before = os.lstat(path)
        return before if file.is_at(path) and is_unchanged(path, before) else None
    except OSError:
        return None


def is_unchanged(path: str, before: os.stat_result) -> bool:
    """Whether the same file is at a path, with the same size and time of change; OSError if nothing is."""
    now = os.lstat(path)
    return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, stat.S_IFMT(now.st_mode)) == (
        before.st_dev,
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
        stat.S_IFMT(before.st_mode),
    )


def is_other_name(path: str, other: str) -> bool:
    """Whether one of two names can go without loss: they are of two files, or two links to the same one.

    Two spellings of one name are neither. OSError if one of them is gone.
    """
    status = os.lstat(path)
    if not os.path.samestat(status, os.lstat(other)):
        return True
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_nlink > 1
        and os.path.normcase(real_path(path)) != os.path.normcase(real_path(other))
    )


def real_path(path: str) -> str:
    """The path without links to folders in it; what it names itself may be a link."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def volume_of(path: str) -> str:
    """Root of the disk that a path is on."""
    volume = os.path.dirname(os.path.realpath(path))
    while not os.path.ismount(volume) and os.path.dirname(volume) != volume:
        volume = os.path.dirname(volume)
    return volume


def move_file(file: FileState, before: os.stat_result, target: str) -> None:
    """Move a file, never over another one, and wait until that is on the disk.

    On one disk it is renamed. Between disks it is copied to a hidden name beside the target, which reaches the disk and
    is read again before it gets its name; only then is the original removed.

    Args:
        file: The file, and what it holds.
        before: Facts from :func:`stat_of`, when all of it was read.
        target: Where it goes; the folder is created.

    Raises:
        OSError: It cannot be moved, or changed meanwhile; it is still at its path, or whole at the target.
    """
    source, folder = file.path, os.path.dirname(target)
    check_length(target)
    disk.make_folders(folder)
    try:
        disk.rename_new(source, target)
    except FileExistsError as error:
        raise FileExistsError(errno.EEXIST, f"there is a file {target} already; choose another folder") from error
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(file, target)
        remove_original(source, before)
        return
    if not is_unchanged(target, before):
        disk.rename_new(target, source)
        raise OSError(errno.EBUSY, "it changed while it was being moved")
    disk.sync_folder(folder)
    disk.sync_folder(os.path.dirname(source))


def remove_original(path: str, before: os.stat_result) -> None:
    """Remove a file whose copy is on another disk.

    Raises:
        OSError: It changed since its copy was made, or cannot be removed.
    """
    if not is_unchanged(path, before):
        raise OSError(errno.EBUSY, "it changed while it was being copied")
    disk.unlink(path)
    disk.sync_folder(os.path.dirname(path))


def partial_name(target: str) -> str:
    """Hidden name beside the target of a copy that is not complete; the same in the next run, which cleans it up."""
    return _hidden(target, "part")


def aside_name(path: str) -> str:
    """Hidden name beside a path for what is in the way there until it is known to be a link of ours."""
    return _hidden(path, "aside")


def remove_partial(target: str) -> None:
    """Remove what an interrupted copy to a target left; OSError if that fails."""
    partial = partial_name(target)
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISREG(os.lstat(partial).st_mode):
            disk.unlink(partial)


def _hidden(path: str, ending: str) -> str:
    folder, name = os.path.split(path)
    digest = hashlib.blake2b(os.fsencode(name), digest_size=10).hexdigest()
    return os.path.join(folder, f".vidkin-{digest}.{ending}")


def _copy(file: FileState, target: str) -> None:
    """Copy a file to another disk under a hidden name, read it again there, and give it its name."""
    partial = partial_name(target)
    remove_partial(target)
    try:
        disk.copy_new(file.path, partial)
        shutil.copystat(file.path, partial)
        disk.sync_file(partial)
        if not file.is_at(partial):
            raise OSError(errno.EIO, f"the copy {target} differed from it")
        disk.rename_new(partial, target)
        disk.sync_folder(os.path.dirname(target))
    # Even Ctrl-C must not leave half a copy behind.
    except BaseException:
        with suppress(OSError):
            disk.unlink(partial)
        raise
