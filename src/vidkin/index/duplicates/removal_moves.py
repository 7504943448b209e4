"""Move a file so that at every moment all of its bytes are somewhere; the system's trash."""

from __future__ import annotations

import configparser
import ctypes
import errno
import hashlib
import ntpath
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote

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


# The system's trash: move a file there, and find it again to restore it.


_SYSTEM = sys.platform

TRASH_IS_FOUND = _SYSTEM not in ("win32", "darwin")
"""Whether notes in the trash always tell where a file is; Windows and macOS may refuse to list theirs."""

# Of a note in the recycle bin of Windows: what comes before the path, and the longest path in bytes.
_RECYCLED_HEADER, _LONGEST_RECYCLED = 28, 2 * (1 << 15)
# A drive that is on another machine, as Windows numbers kinds of drives.
_REMOTE_DRIVE = 4


def put_in_trash(path: str) -> str | None:
    """Move a file to the trash; returns where it is now, None if the system does not tell.

    Raises:
        OSError: The system refuses, or has no trash there: Windows deletes what is on another machine for good.
    """
    from send2trash import send2trash

    if _SYSTEM == "win32" and _is_remote(path):
        raise OSError(errno.ENOTSUP, "there is no trash on a drive of another machine; use --move-to FOLDER")
    before = os.lstat(path)
    disk.before("trash", path)
    send2trash(path)
    if _SYSTEM == "darwin":
        for held in _entries(_mac_trashes(path)):
            with suppress(OSError):
                if os.path.samestat(os.lstat(held), before):
                    return held
        return None
    return find_in_trash(path)


def find_in_trash(path: str, file: FileState | None = None) -> str | None:
    """Find the file in the trash that was at ``path`` (the one deleted last); None if there is none.

    Follows the freedesktop.org specification (Linux and BSD): the home trash, and one at the root of each volume. On
    Windows it follows the notes ``$I...`` of the recycle bin. The trash of macOS keeps no notes that are documented:
    there a file is found by its name and by what it held.

    Args:
        path: Where it was.
        file: What it held; needed on macOS only.
    """
    if _SYSTEM == "darwin":
        return None if file is None else _find_by_content(path, file)
    notes = _recycled(path) if _SYSTEM == "win32" else _noted(path)
    wanted = os.path.normcase(real_path(path))
    found = (
        (deleted, held)
        for named, deleted, held in notes
        if os.path.normcase(real_path(named)) == wanted and os.path.lexists(held)
    )
    newest = max(found, default=None)
    return None if newest is None else newest[1]


def note_in_trash(place: str) -> Path | None:
    """Where the trash notes what a file in it was; None if it keeps no note, or the file is in no trash."""
    held = Path(place)
    if held.name.startswith("$R"):
        return held.with_name(f"$I{held.name[2:]}")
    if held.parent.name == "files":
        return held.parent.parent / "info" / f"{held.name}.trashinfo"
    return None


def _noted(path: str) -> Iterator[tuple[str, str, str]]:
    """Former path, time of deletion and place of what is in the trashes of the freedesktop.org specification."""
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    # Trash folders that may hold the file, and what the paths in their notes are relative to.
    folders = [(Path(home) / "Trash", home)]
    volume = _volume_of(path)
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
            yield named, deleted, os.fspath(folder / "files" / note.stem)


def _recycled(path: str) -> Iterator[tuple[str, str, str]]:
    """The same of the recycle bin of Windows on the drive of a path: a folder for each user, whose files ``$R...`` have
    notes ``$I...``: version, size, time of deletion, path."""
    bins = os.path.join(_volume_of(path), "$Recycle.Bin")
    for entry in _entries(_entries([bins])):
        folder, name = os.path.split(entry)
        if not name.startswith("$I"):
            continue
        try:
            with open(entry, "rb") as file:
                content = file.read(_RECYCLED_HEADER + _LONGEST_RECYCLED)
            # Version 1 has room for 260 characters, version 2 says how many follow.
            start = {1: _RECYCLED_HEADER - 4, 2: _RECYCLED_HEADER}[int.from_bytes(content[:8], "little")]
            named = content[start : start + (len(content) - start) // 2 * 2].decode("utf-16-le").partition("\0")[0]
            named = real_path(named)
        except (OSError, ValueError, KeyError):
            continue  # what cannot be read is about another file
        yield named, f"{int.from_bytes(content[16:24], 'little'):020d}", os.path.join(folder, f"$R{name[2:]}")


def _find_by_content(path: str, file: FileState) -> str | None:
    """The newest file in the trashes of macOS that has the name, perhaps with a number or a time, and the content."""
    stem, ending = os.path.splitext(os.path.basename(path))
    found = []
    for held in _entries(_mac_trashes(path)):
        name = os.path.basename(held)
        if name.startswith(stem) and name.endswith(ending):
            with suppress(OSError):
                status = os.lstat(held)
                if status.st_size == file.size and file.is_at(held):
                    found.append((status.st_ctime_ns, held))
    return max(found)[1] if found else None


def _mac_trashes(path: str) -> list[str]:
    """Folders of the trash of macOS that may hold what was at a path: at home, and on other disks."""
    folders = [os.path.expanduser("~/.Trash")]
    if hasattr(os, "getuid"):
        folders.append(os.path.join(_volume_of(path), ".Trashes", str(os.getuid())))
    return folders


def _entries(folders: Iterable[str]) -> Iterator[str]:
    """What is in folders, without those that cannot be listed."""
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        yield from (os.path.join(folder, name) for name in names)


def _volume_of(path: str) -> str:
    """Root of the disk that a path is on."""
    volume = os.path.dirname(os.path.realpath(path))
    while not os.path.ismount(volume) and os.path.dirname(volume) != volume:
        volume = os.path.dirname(volume)
    return volume


def _is_remote(path: str) -> bool:
    """Whether Windows has a path from another machine."""
    drive = ntpath.splitdrive(os.path.abspath(path))[0]
    if drive.startswith(("\\\\", "//")):
        return True
    kernel = getattr(getattr(ctypes, "windll", None), "kernel32", None)
    return kernel is not None and kernel.GetDriveTypeW(f"{drive}\\") == _REMOTE_DRIVE


def real_path(path: str) -> str:
    """The path without links to folders in it: the trash of a volume names files from the root of that volume."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
