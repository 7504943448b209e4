"""Write files and folders whole or not at all: a crash leaves the old content or the new, never a part of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["replace_file", "write_bytes", "write_text"]

PathLike = str | os.PathLike[str]

# Bytes of an ending that a temporary name may repeat; file systems allow 255 for the whole name.
_LONGEST_ENDING = 200


def write_bytes(path: PathLike, content: bytes) -> None:
    """Write a file whole or not at all; see :func:`replace_file`."""
    with replace_file(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: PathLike, text: str) -> None:
    """Write a UTF-8 text file whole or not at all, line ends as they are; see :func:`replace_file`."""
    write_bytes(path, text.encode("utf-8"))


@contextmanager
def replace_file(path: PathLike, *, sync: bool = True) -> Iterator[Path]:
    """Yield a temporary file in the same folder that replaces ``path`` when the block succeeds.

    The temporary file exists, is empty and hidden, and keeps the extension, from which libraries choose a
    format. Its content reaches the disk before the name changes. If the block fails, it is removed and ``path`` stays
    as it was. The file gets the usual permissions, even if a library creates files that only their owner can read.

    Args:
        path: The file to write.
        sync: Wait until the content is on the disk; without it a power cut may leave an empty file.

    Raises:
        OSError: The folder does not exist, or the system refuses to write there.
    """
    target = Path(path)
    with suppress(FileNotFoundError):
        target.lstat()  # an impossible file name fails here, before any work
    # A hidden random path in the folder of ``target``, with its ending.
    ending = target.suffix if len(os.fsencode(target.suffix)) <= _LONGEST_ENDING else ""
    temporary = target.with_name(f".{secrets.token_hex(8)}.part{ending}")
    # O_EXCL and O_NOFOLLOW: nobody can plant a link under this name for us to write through.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
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
            _sync(temporary)
        temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    if sync:
        with suppress(OSError):  # some file systems cannot synchronize a folder
            _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
