"""Write files atomically, safely open files that others may replace, and choose names that are valid on every system.

A crash leaves either the old or the new content, never part of it."""

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

_HASH_CHUNK = 1 << 20
# Longest suffix in bytes to keep in a temporary name; file systems allow 255 bytes for the whole name.
_MAX_SUFFIX = 200
_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.part(\.|$)")


def write_bytes(path: PathLike, content: bytes) -> None:
    """Write a file atomically; see :func:`replace_file`."""
    with replace_file(path) as temporary:
        disk.before("write", os.fspath(temporary))
        temporary.write_bytes(content)


def write_text(path: PathLike, text: str) -> None:
    """Write a UTF-8 text file atomically, without converting line endings; see :func:`replace_file`."""
    write_bytes(path, text.encode("utf-8"))


@contextmanager
def replace_file(
    path: PathLike, *, sync: bool = True, rename: Callable[[Path, Path], object] = disk.rename
) -> Iterator[Path]:
    """Yield a temporary file in the same folder that replaces ``path`` when the block succeeds.

    The temporary file exists, is empty and hidden, and has the same extension, because libraries choose the format by
    it. Its content is on disk before it is renamed. If the block fails, it is removed and ``path`` is unchanged. The
    file gets the default permissions, even if a library creates files that only their owner can read.

    Args:
        path: The file to write.
        sync: Wait until the content is on disk; without this, a power failure may leave an empty file.
        rename: Renames the temporary file.

    Raises:
        OSError: The folder does not exist, or the system refuses to write to it.
    """
    target = Path(path)
    with suppress(FileNotFoundError):
        target.lstat()  # an invalid file name fails here, before any work
    # A hidden random name in the folder of ``target``, with its suffix, in the form that is_unfinished recognizes.
    suffix = target.suffix if len(os.fsencode(target.suffix)) <= _MAX_SUFFIX else ""
    temporary = target.with_name(f".{secrets.token_hex(8)}.part{suffix}")
    # O_EXCL and O_NOFOLLOW, so that other users cannot plant a link under this name to redirect the write.
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
    """Whether this is the name of a temporary file of :func:`replace_file`; a power failure can leave such files.

    >>> is_unfinished(".0123456789abcdef.part.json"), is_unfinished("film.part.json")
    (True, False)
    """
    return _UNFINISHED.match(name) is not None


# Windows cannot open longer paths unless an administrator has enabled long paths.
_MAX_PATH = 259 if sys.platform == "win32" else sys.maxsize


def describe_missing(path: PathLike, kind: str = "file") -> str:
    """Explain why a file (or another ``kind``) was not found, for example because its path is too long for Windows."""
    length = len(os.path.abspath(path))
    if length <= _MAX_PATH:
        return f"there is no such {kind}"
    return (
        f"its path has {length} characters, and Windows opens at most {_MAX_PATH}; enable long paths "
        "(LongPathsEnabled in the registry), or move it to a folder with a shorter path"
    )


def check_file_name(name: str, path: object) -> str:
    """Check that a value from an untrusted file is an absolute path that this system can open, and return the path.

    Args:
        name: Name of the value, for the message.
        path: Any value.

    Raises:
        ValueError: The value is not such a path.
    """
    if not isinstance(path, str) or not os.path.isabs(path):
        raise ValueError(f"{name} must be absolute, got {path!r}")
    try:
        is_valid = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_valid = False
    if not is_valid:
        raise ValueError(f"{name} must be a valid file name, got {path!a}")
    return path


def check_length(path: PathLike) -> None:
    """Refuse a path that could be written but not opened again.

    Raises:
        OSError: The path is too long for Windows.
    """
    length = len(os.path.abspath(path))
    if length > _MAX_PATH:
        cause = f"its path would have {length} characters, and Windows opens at most {_MAX_PATH}"
        raise OSError(errno.ENAMETOOLONG, f"{cause}; choose a folder with a shorter path, or enable long paths")


def create_folder(path: PathLike) -> Path:
    """Create a folder and its parents if they do not exist, and return its path.

    Raises:
        MediaError: The folder cannot be created.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MediaError(folder, f"the folder cannot be created: {error.strerror or error}") from error
    return folder


def create_output_folder(path: PathLike) -> Path:
    """Create a folder and its parents if they do not exist, and check that it is writable before long work starts.

    Raises:
        InvalidArgumentError: The folder cannot be created or written to.
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

    Unlike :func:`open`, this never blocks: it neither waits for the other end of a pipe nor opens devices.

    Args:
        path: The file.
        follow_links: Whether the file may be a symbolic link. Allow this only for files that the user named; a link in
            an untrusted folder could point to one of the user's private files.

    Raises:
        OSError: The file cannot be opened, is not a regular file, or is a link that must not be followed.
        ValueError: The name contains a null character.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
        if os.path.islink(path):  # for systems without O_NOFOLLOW, and because its message is misleading
            raise OSError(errno.ELOOP, "this is a symbolic link, which is not followed", os.fspath(path))
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _not_regular_error(path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular_error(path)
    return open(descriptor, "rb", buffering=0)


def read_regular_file(path: PathLike, limit: int, *, follow_links: bool = False) -> bytes:
    """Read all bytes of a regular, possibly untrusted file; see :func:`open_regular_file`.

    Args:
        path: The file.
        limit: Maximum size in bytes; a larger file is not read at all.
        follow_links: Whether the file may be a symbolic link; allow this only for files that the user named.

    Raises:
        OSError: The file cannot be read, is not a regular file, or is a link.
        ValueError: The file is too large.
    """
    with open_regular_file(path, follow_links=follow_links) as file:
        check_file_size(os.fstat(file.fileno()).st_size, limit)
        parts, left = [], limit + 1
        while left and (part := file.read(left)):
            parts.append(part)
            left -= len(part)
    check_file_size(limit + 1 - left, limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


# The largest list files of public data sets have tens of megabytes.
_MAX_TEXT = 256_000_000


def read_text_file(path: PathLike, *, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Read a regular text file of at most 256 MB that the user named or that is in a data folder.

    Raises:
        OSError: The file cannot be read or is not a regular file.
        ValueError: The file is too large or not valid in this encoding.
    """
    return read_regular_file(path, _MAX_TEXT, follow_links=True).decode(encoding, errors)


def check_file_size(size: int, limit: int) -> None:
    """Raise ValueError if a file has more bytes than allowed."""
    if size > limit:
        raise ValueError(f"size must be at most {limit:,} bytes, got more")


def check_regular_file(path: PathLike, *, follow_links: bool = False) -> None:
    """Check a file that a library will open by name, as :func:`open_regular_file` does.

    Raises:
        OSError: The file cannot be opened, is not a regular file, or is a link.
    """
    open_regular_file(path, follow_links=follow_links).close()


def check_regular_files(folder: PathLike) -> None:
    """Check all files in a folder and its subfolders that a library will open by name; ignore a missing folder.

    Raises:
        OSError: A file is not a regular file, or the folder cannot be read.
    """
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        raise _not_regular_error(entry.path)
        except FileNotFoundError:  # removed by a writer in the meantime
            continue


def _not_regular_error(path: PathLike) -> OSError:
    return OSError(errno.EINVAL, "this is not a regular file", os.fspath(path))


def hash_file(path: str) -> str:
    """Hash the size and the bytes of a regular file with BLAKE2b, as 32 hexadecimal digits.

    Raises:
        OSError: The file cannot be read or is not a regular file.
    """
    with open_regular_file(path) as file:
        digest = hashlib.blake2b(str(os.fstat(file.fileno()).st_size).encode(), digest_size=16)
        while part := file.read(_HASH_CHUNK):
            digest.update(part)
    return digest.hexdigest()


# Without pread (on Windows), only one thread at a time may seek and read in a shared open file.
_POSITION = threading.Lock()


def read_at(descriptor: int, count: int, position: int) -> bytes:
    """Read up to ``count`` bytes of an open file at a position, like :func:`os.pread`."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, position)
    with _POSITION:
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, count)


# File systems accept names of up to 255 bytes; this leaves room for a suffix and a number.
_MAX_NAME = 200
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
# Windows device names, which are reserved in every folder and with any suffix: NUL, nul.txt, COM1.mp4.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])[ ]*(?:\.|$)", re.IGNORECASE)


def safe_name(name: str, *, longest: int = _MAX_NAME) -> str:
    """Make a file or folder name that every system accepts, because disks move between systems.

    Characters that Windows forbids become ``_``. A name that ends in a space or dot, which Windows would drop, gets a
    trailing ``_``; a device name gets a leading ``_``; a name longer than ``longest`` bytes is truncated.

    >>> safe_name("What? 1:2"), safe_name("aux.txt"), safe_name("The End...")
    ('What_ 1_2', '_aux.txt', 'The End..._')
    """
    name = _FORBIDDEN.sub("_", name)
    while len(os.fsencode(name)) > longest:
        # A character has at most four bytes, so at least this many must be removed.
        name = name[: -max(1, (len(os.fsencode(name)) - longest) // 4)]
    if _DEVICE.match(name):
        name = f"_{name}"
    return f"{name}_" if not name or name[-1] in ". " else name


def drive_name(drive: str) -> str:
    r"""Make a folder name for a drive or network share, to keep files of different drives apart; empty for no drive.

    >>> drive_name("C:"), drive_name(r"\\server\films"), drive_name("")
    ('C', 'server-films', '')
    """
    return "-".join(part for part in re.split(r"[:\\/?]+", drive) if part.strip("."))


def is_within(path: PathLike, folder: PathLike) -> bool:
    """Whether a file or folder is ``folder`` or lies inside it, independent of the spelling of both paths.

    Each parent folder is compared by its identity, because file systems can ignore case or give a folder two names.
    """
    real, root = (os.path.normcase(os.path.realpath(name)) for name in (path, folder))
    if real == root or real.startswith(os.path.join(root, "")):
        return True
    with suppress(OSError, ValueError):
        root_state = os.stat(root)
        for parent in (real, *map(str, Path(real).parents)):
            with suppress(OSError):
                if os.path.samestat(os.stat(parent), root_state):
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
