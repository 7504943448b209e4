"""Move a file so that at every moment all of its bytes are somewhere; the system's trash."""

from __future__ import annotations

import configparser
import errno
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote

from vidkin._base import disk
from vidkin.errors import MediaError
from vidkin.index.duplicates.plans import FileState


def stat_of(file: FileState) -> os.stat_result | str:
    """The facts of a file that is still as it was, all its bytes read; otherwise what is wrong with it, in words."""
    try:
        before = os.lstat(file.path)
        if stat.S_ISLNK(before.st_mode):
            return "is a symbolic link now, it was a file when the plan was made"
        now = FileState.of(file.path, whole=file.whole)
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


@contextmanager
def hold_files(paths: Iterable[str]) -> Iterator[str]:
    """Keep other processes that move copies away from files; yields the path of one that is taken, empty if none is.

    Two plans at once, from a page and a command, could otherwise each move the file that the other one keeps. The locks
    are those of the operating system on the files themselves, which other programs do not see; they end with the
    process. Where it has none, as on Windows, nothing is held.
    """
    try:
        import fcntl
    except ImportError:
        yield ""
        return
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    held: dict[tuple[int, int], int] = {}
    taken = ""
    try:
        for path in filter(None, paths):
            try:
                descriptor = os.open(path, flags)
            except OSError:
                continue  # whoever reads it says what is wrong
            status = os.fstat(descriptor)
            name = status.st_dev, status.st_ino
            if name in held:
                os.close(descriptor)
                continue
            held[name] = descriptor
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                taken = path
                break
            except OSError:
                continue  # some file systems have no locks
        yield taken
    finally:
        for descriptor in held.values():
            os.close(descriptor)


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


# The system's trash: move a file there, and find it again to restore it.


TRASH_IS_FOUND = sys.platform not in ("win32", "darwin")
"""Whether files can be found in the trash by their notes; Windows and macOS keep where they are to themselves."""


def put_in_trash(path: str) -> str | None:
    """Move a file to the trash; returns where it is now, None if the system does not tell.

    Raises:
        OSError: The system refuses.
    """
    from send2trash import send2trash

    disk.before("trash", path)
    send2trash(path)
    return find_in_trash(path)


def find_in_trash(path: str) -> str | None:
    """Find the file in the trash that was at ``path`` (the one deleted last); None if there is none.

    Follows the freedesktop.org specification (Linux and BSD): the home trash, and one at the root of each volume.
    """
    newest: tuple[str, str] | None = None
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    # Trash folders that may hold the file, and what the paths in their notes are relative to.
    folders = [(Path(home) / "Trash", home)]
    volume = os.path.dirname(os.path.realpath(path))
    while not os.path.ismount(volume):
        volume = os.path.dirname(volume)
    if hasattr(os, "getuid"):
        folders.append((Path(volume) / ".Trash" / str(os.getuid()), volume))
        folders.append((Path(volume) / f".Trash-{os.getuid()}", volume))
    for folder, root in folders:
        for note in sorted((folder / "info").glob("*.trashinfo")):
            table = configparser.ConfigParser(interpolation=None)
            try:
                table.read_string(note.read_text(encoding="utf-8", errors="surrogateescape"))
                named = unquote(table["Trash Info"]["Path"], errors="surrogateescape")
                deleted = table["Trash Info"].get("DeletionDate", "")
                named = real_path(os.path.join(root, named))
            except (OSError, ValueError, configparser.Error, KeyError):
                continue  # a note of another program that cannot be read is about another file
            held = folder / "files" / note.stem
            if named == real_path(path) and os.path.lexists(held):
                newest = max(newest or ("", ""), (deleted, os.fspath(held)))
    return newest[1] if newest else None


def real_path(path: str) -> str:
    """The path without links to folders in it: the trash of a volume names files from the root of that volume."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
