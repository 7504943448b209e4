"""Pipes, devices and folders in the place of a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vidkin._base.files import open_regular_file


def test_a_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    with open_regular_file(tmp_path / "a") as file:
        assert file.read() == b"content"


def test_nothing_else_is_opened_or_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull), tmp_path):
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(OSError, match="this is not a regular file"):
            open_regular_file(path)
        assert len(os.listdir("/proc/self/fd")) == before


def test_opening_a_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular_file(tmp_path / "none")
