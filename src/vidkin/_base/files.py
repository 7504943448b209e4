"""Write files and folders whole or not at all, open those that others may replace, and name them for every system.

A crash leaves the old content or the new, never a part of it."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile

from vidkin._base import disk
from vidkin.errors import InvalidArgumentError, MediaError

PathLike = str | os.PathLike[str]

_HASHED_AT_ONCE = 1 << 20
# Bytes of an ending that a temporary name may repeat; file systems allow 255 for the whole name.
_LONGEST_ENDING = 200
_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.part(\.|$)")


def write_bytes(path: PathLike, content: bytes) -> None:
    """Write a file whole or not at all; see :func:`replace_file`."""
    with replace_file(path) as temporary:
        disk.before("write", os.fspath(temporary))
        temporary.write_bytes(content)


def write_text(path: PathLike, text: str) -> None:
    """Write a UTF-8 text file whole or not at all, line ends as they are; see :func:`replace_file`."""
    write_bytes(path, text.encode("utf-8"))


@contextmanager
def replace_file(
    path: PathLike, *, sync: bool = True, rename: Callable[[Path, Path], object] = disk.rename
) -> Iterator[Path]:
    """Yield a temporary file in the same folder that replaces ``path`` when the block succeeds.

    The temporary file exists, is empty and hidden, and keeps the extension, from which libraries choose a
    format. Its content reaches the disk before the name changes. If the block fails, it is removed and ``path`` stays
    as it was. The file gets the usual permissions, even if a library creates files that only their owner can read.

    Args:
        path: The file to write.
        sync: Wait until the content is on the disk; without it a power cut may leave an empty file.
        rename: Gives the temporary file its name.

    Raises:
        OSError: The folder does not exist, or the system refuses to write there.
    """
    target = Path(path)
    with suppress(FileNotFoundError):
        target.lstat()  # an impossible file name fails here, before any work
    # A hidden random path in the folder of ``target``, with its ending.
    # is_unfinished knows the form.
    ending = target.suffix if len(os.fsencode(target.suffix)) <= _LONGEST_ENDING else ""
    temporary = target.with_name(f".{secrets.token_hex(8)}.part{ending}")
    # O_EXCL and O_NOFOLLOW: nobody can plant a link under this name for us to write through.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    disk.before("create", os.fspath(temporary))
    descriptor = os.open(temporary, flags, 0o666)
    try:
        mode = os.fstat(descriptor).st_mode & 0o777
    finally:
        os.close(descriptor)
    try:
        yield temporary
        if temporary.stat().st_mode & 0o777 != mode:
            temporary.chmod(mode)
        if sync:
            disk.sync_file(temporary)
        rename(temporary, target)
    finally:
        with suppress(OSError):
            if os.path.lexists(temporary):
                disk.unlink(temporary)
    if sync:
        disk.sync_folder(target.parent)


def is_unfinished(name: str) -> bool:
    """Whether a file name is one under which :func:`replace_file` writes: after a power cut such a file is left.

    >>> is_unfinished(".0123456789abcdef.part.json"), is_unfinished("film.part.json")
    (True, False)
    """
    return _UNFINISHED.match(name) is not None


# Without long paths, which are off unless an administrator turned them on, Windows finds no file beyond this.
_LONGEST_PATH = 259 if sys.platform == "win32" else sys.maxsize


def describe_missing(path: PathLike, kind: str = "file") -> str:
    """Why a file (or what else it could be) is not found, in words: where Windows finds none with so long a path, how
    long it may be."""
    length = len(os.path.abspath(path))
    if length <= _LONGEST_PATH:
        return f"there is no such {kind}"
    return (
        f"its path has {length} characters, and Windows opens at most {_LONGEST_PATH}; turn on long paths "
        "(LongPathsEnabled in the registry), or move it to a folder with a shorter path"
    )


def check_file_name(name: str, path: object) -> str:
    """An absolute path that this system can open, from a file that anyone may have written.

    Args:
        name: What the path is, for the message.
        path: Any value.

    Raises:
        ValueError: It is not one.
    """
    if not isinstance(path, str) or not os.path.isabs(path):
        raise ValueError(f"{name} must be absolute, got {path!r}")
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise ValueError(f"{name} must be a possible file name, got {path!a}")
    return path


def check_length(path: PathLike) -> None:
    """Refuse a path that could be written and then not be found again.

    Raises:
        OSError: Windows opens no file with so long a path.
    """
    length = len(os.path.abspath(path))
    if length > _LONGEST_PATH:
        cause = f"its path would have {length} characters, and Windows opens at most {_LONGEST_PATH}"
        raise OSError(errno.ENAMETOOLONG, f"{cause}; choose a folder with a shorter path, or turn on long paths")


def create_folder(path: PathLike) -> Path:
    """Create a folder and its parents if they do not exist; returns its path.

    Raises:
        MediaError: It cannot be created.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MediaError(folder, f"the folder cannot be created: {error.strerror or error}") from error
    return folder


def create_output_folder(path: PathLike) -> Path:
    """Create a folder and its parents if they do not exist, and check before long work that it can be written to.

    Raises:
        InvalidArgumentError: It cannot be created or written to.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise InvalidArgumentError(
            f"{folder}: {error.strerror or error}; choose an output folder that can be written"
        ) from error


def open_regular_file(path: PathLike, *, follow_links: bool = True) -> FileIO:
    """Open a regular file for reading, unbuffered.

    Unlike :func:`open` this never blocks: it does not wait for the other end of a pipe, and does not touch devices.

    Args:
        path: The file.
        follow_links: Whether it may be a symbolic link. A file that a person named may; one that is found in a folder,
            which may be a stranger's, must not: the link may lead to a secret of the reader.

    Raises:
        OSError: The file cannot be opened, it is not a regular file, or a link that must not be followed.
        ValueError: The name contains a null character.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
        if os.path.islink(path):  # where the system has no such flag; its own message speaks of too many links
            raise OSError(errno.ELOOP, "this is a symbolic link, which is not followed", os.fspath(path))
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _not_regular(path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular(path)
    return open(descriptor, "rb", buffering=0)


def read_regular_file(path: PathLike, most: int, *, follow_links: bool = False) -> bytes:
    """All bytes of a regular file that may be a stranger's; see :func:`open_regular_file`.

    Args:
        path: The file.
        most: Bytes that it may have; of a larger one nothing is read.
        follow_links: Whether it may be a symbolic link, as one that a person named.

    Raises:
        OSError: The file cannot be read, is not a regular file, or a link.
        ValueError: It is too large.
    """
    with open_regular_file(path, follow_links=follow_links) as file:
        check_file_size(os.fstat(file.fileno()).st_size, most)
        parts, left = [], most + 1
        while left and (part := file.read(left)):
            parts.append(part)
            left -= len(part)
    check_file_size(most + 1 - left, most)
    return parts[0] if len(parts) == 1 else b"".join(parts)


# The largest lists of public data have some tens of megabytes.
_MOST_TEXT = 256_000_000


def read_text_file(path: PathLike, *, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The text of a file of data that a person named, or that is in a folder of data: regular, of at most 256 MB.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
        ValueError: It is too large, or not in this encoding.
    """
    return read_regular_file(path, _MOST_TEXT, follow_links=True).decode(encoding, errors)


def check_file_size(size: int, most: int) -> None:
    """Raise ValueError if a file has more bytes than are read of it."""
    if size > most:
        raise ValueError(f"size must be at most {most:,} bytes, got more")


def check_regular_file(path: PathLike, *, follow_links: bool = False) -> None:
    """Check a file that a library is going to open by its name, as :func:`open_regular_file` does.

    Raises:
        OSError: It cannot be opened, is not a regular file, or a link.
    """
    open_regular_file(path, follow_links=follow_links).close()


def check_regular_files(folder: PathLike) -> None:
    """Check all files of a folder, and of those below it, that a library is going to open by their names.

    Raises:
        OSError: One of them is not a regular file, or the folder cannot be read. A folder that is gone has none.
    """
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        raise _not_regular(entry.path)
        except FileNotFoundError:  # a writer has just removed it
            continue


def _not_regular(path: PathLike) -> OSError:
    return OSError(errno.EINVAL, "this is not a regular file", os.fspath(path))


def hash_file(path: str) -> str:
    """Hash of all bytes of a regular file: blake2b of its size and its bytes, 32 hexadecimal digits.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    with open_regular_file(path) as file:
        digest = hashlib.blake2b(str(os.fstat(file.fileno()).st_size).encode(), digest_size=16)
        while part := file.read(_HASHED_AT_ONCE):
            digest.update(part)
    return digest.hexdigest()


# Where the system lacks pread (Windows), threads that share an open file take turns.
_POSITION = threading.Lock()


def read_at(descriptor: int, count: int, position: int) -> bytes:
    """Read up to ``count`` bytes of an open file from a position, as :func:`os.pread` does where there is one."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, position)
    with _POSITION:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, count)


# The longest name that file systems take is of 255 bytes; room is left for an ending and a number.
_LONGEST_NAME = 200
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
# Devices of Windows, in every folder and with any ending: NUL, nul.txt, COM1.mp4.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])[ ]*(?:\.|$)", re.IGNORECASE)


def safe_name(name: str, *, longest: int = _LONGEST_NAME) -> str:
    """A name for a file or folder of ours that can be created on every system, also on a disk of another one.

    Characters that Windows forbids become ``_``, and so does a space or dot at the end, which it drops; a name of a
    device gets a ``_`` in front; a name of more than ``longest`` bytes is cut. Any other name stays as it is.

    >>> safe_name("What? 1:2"), safe_name("aux.txt"), safe_name("The End...")
    ('What_ 1_2', '_aux.txt', 'The End..._')
    """
    name = _FORBIDDEN.sub("_", name)
    while len(os.fsencode(name)) > longest:
        # A character has four bytes at most.
        name = name[: -max(1, (len(os.fsencode(name)) - longest) // 4)]
    if _DEVICE.match(name):
        name = f"_{name}"
    return f"{name}_" if not name or name[-1] in ". " else name


def drive_name(drive: str) -> str:
    r"""A folder name for a drive or a share, to keep files of different ones apart; empty where there is none.

    >>> drive_name("C:"), drive_name(r"\\server\films"), drive_name("")
    ('C', 'server-films', '')
    """
    return "-".join(part for part in re.split(r"[:\\/?]+", drive) if part.strip("."))


def is_within(path: PathLike, folder: PathLike) -> bool:
    """Whether a file or folder is inside of a folder, however both are spelled, or is that folder.

    Where a file system ignores case, or gives a folder two names, the system itself is asked about each folder above.
    """
    real, root = (os.path.normcase(os.path.realpath(name)) for name in (path, folder))
    if real == root or real.startswith(os.path.join(root, "")):
        return True
    with suppress(OSError, ValueError):
        wanted = os.stat(root)
        for parent in (real, *map(str, Path(real).parents)):
            with suppress(OSError):
                if os.path.samestat(os.stat(parent), wanted):
                    return True
    return False


# fmt: off
VIDEO_EXTENSIONS = frozenset({
    ".264", ".265", ".3g2", ".3gp", ".amv", ".apng", ".asf", ".avi", ".dav", ".divx", ".dv", ".f4v",
    ".flv", ".gif", ".gxf", ".h264", ".h265", ".hevc", ".insv", ".ivf", ".lrv", ".m1v", ".m2t", ".m2ts",
    ".m2v", ".m4v", ".mjpeg", ".mjpg", ".mkv", ".mod", ".mov", ".mp", ".mp4", ".mpe", ".mpeg", ".mpg",
    ".mpv", ".mts", ".mxf", ".nsv", ".nut", ".obu", ".ogm", ".ogv", ".qt", ".rm", ".rmvb", ".tod",
    ".ts", ".vob", ".webm", ".wmv", ".wtv", ".y4m",
})

# fmt: on
"""Extensions of video files, in lower case. A file named explicitly may have any extension."""

IMAGE_EXTENSIONS = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})

"""Extensions of image files, in lower case."""
