"""Record which files of a folder are opened, by any process, using inotify (Linux)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_IN_OPEN = 0x20
_IN_NONBLOCK = os.O_NONBLOCK
_EVENT = struct.Struct("iIII")


@contextmanager
def opened_files(folder: Path) -> Iterator[list[str]]:
    """Yield a list; after the block, it has the name of each file that was opened in this folder, once per opening."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(_IN_NONBLOCK)
    assert descriptor >= 0
    names: list[str] = []
    try:
        assert libc.inotify_add_watch(descriptor, os.fsencode(folder), _IN_OPEN) >= 0
        yield names
        data = _read_all(descriptor)
    finally:
        os.close(descriptor)
    at = 0
    while at < len(data):
        length = _EVENT.unpack_from(data, at)[3]
        at += _EVENT.size
        if length:  # no name if the folder itself was opened
            names.append(os.fsdecode(data[at : at + length].rstrip(b"\0")))
        at += length


def _read_all(descriptor: int) -> bytes:
    data = b""
    while True:
        try:
            data += os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return data
