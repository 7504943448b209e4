"""Replacements for a file that an attacker could make: pipes, sockets, links, sparse files, folders."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SECRET = "the-secret-of-the-reader"


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    # Socket names are limited to about a hundred bytes.
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(before)


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2_000_000_000)


def _folder(path: Path) -> None:
    (path / "something").mkdir(parents=True)


REPLACEMENTS: Mapping[str, Callable[[Path], None]] = {
    "pipe": _pipe,
    "socket": _socket,
    "link": _link,
    "link to itself": _link_to_itself,
    "sparse": _sparse,
    "folder": _folder,
}
"""Make something else at a path where nothing is."""


@contextmanager
def replaced(path: Path, kind: str) -> Iterator[None]:
    """Replace a file by something else within the block."""
    kept = path.parent / f".{path.name}.kept"
    shutil.rmtree(kept, ignore_errors=True)
    path.rename(kept)
    try:
        REPLACEMENTS[kind](path)
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        kept.rename(path)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError if the block takes longer, even in a blocking system call."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"it took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
