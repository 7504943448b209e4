"""Pipes, devices, links, sparse files and folders in place of a regular file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.strangers import REPLACEMENTS, within
from vidkin._base.files import (
    check_regular_file,
    check_regular_files,
    open_regular_file,
    read_regular_file,
)
from vidkin._base.locks import open_lock
from vidkin._base.values import JSON_LIMITS, read_bounded, read_json


def test_regular_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    with open_regular_file(tmp_path / "a") as file:
        assert file.read() == b"content"
    assert read_regular_file(tmp_path / "a", 7) == b"content"
    check_regular_file(tmp_path / "a")
    check_regular_files(tmp_path)
    check_regular_files(tmp_path / "none")


def test_other_file_types_are_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    REPLACEMENTS["socket"](tmp_path / "socket")
    for path in (tmp_path / "pipe", tmp_path / "socket", Path(os.devnull), tmp_path):
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(OSError, match="this is not a regular file"):
            open_regular_file(path)
        assert len(os.listdir("/proc/self/fd")) == before


def test_opening_a_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular_file(tmp_path / "none")


@pytest.mark.parametrize("kind", REPLACEMENTS)
def test_only_small_regular_files_in_a_folder_are_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "below" / "found.json"
    path.parent.mkdir()
    REPLACEMENTS[kind](path)
    with within(5):
        for read in (lambda: read_regular_file(path, 1000), lambda: read_json(path)):
            with pytest.raises((OSError, ValueError)):
                read()
        with pytest.raises((OSError, ValueError)):
            read_bounded(path, JSON_LIMITS)
        if kind != "sparse":
            with pytest.raises(OSError):
                check_regular_file(path)
        if kind not in ("sparse", "folder"):
            with pytest.raises(OSError, match="this is not a regular file"):
                check_regular_files(tmp_path)


def test_symlink_is_followed_only_if_the_user_named_it(tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text("[1]", encoding="utf-8")
    (tmp_path / "link.json").symlink_to("file.json")
    assert read_json(tmp_path / "link.json", follow_links=True) == [1]
    with pytest.raises(OSError, match="this is a symbolic link, which is not followed"):
        read_json(tmp_path / "link.json")


def test_file_above_the_size_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345678")
    assert read_regular_file(tmp_path / "a", 8) == b"12345678"
    with pytest.raises(ValueError, match="size must be at most 7 bytes, got more"):
        read_regular_file(tmp_path / "a", 7)
    # A system file that reports a size of 0.
    with pytest.raises(ValueError, match="size must be at most 3 bytes, got more"):
        read_regular_file("/proc/self/status", 3)


@pytest.mark.parametrize("kind", ["symlink_to", "hardlink_to", "mkdir"])
def test_symlink_or_folder_cannot_be_a_lock(kind: str, tmp_path: Path) -> None:
    precious, lock = tmp_path / "precious", tmp_path / "lock"
    precious.write_text("mine", encoding="utf-8")
    getattr(lock, kind)(*([] if kind == "mkdir" else [precious]))
    with pytest.raises(OSError, match="and cannot be a lock; remove it"):
        open_lock(lock)
    assert precious.read_text(encoding="utf-8") == "mine"


def test_lock_on_an_empty_or_missing_file_is_exclusive(tmp_path: Path) -> None:
    from filelock import Timeout

    with open_lock(tmp_path / "lock").acquire(timeout=0), pytest.raises(Timeout):
        open_lock(tmp_path / "lock").acquire(timeout=0)
    with open_lock(tmp_path / "lock").acquire(timeout=0):
        pass
