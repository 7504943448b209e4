"""Files that a caller asked for."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from vidkin._base.files import open_output
from vidkin.errors import MediaError


def write(path: Path, failure: Exception | None = None) -> None:
    with open_output(path) as temporary:
        temporary.write_text("content")
        if failure is not None:
            raise failure


def test_the_file_is_there_when_the_block_is_over(tmp_path: Path) -> None:
    write(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "content"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_failure_of_the_system_has_path_and_cause(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"a\.csv: cannot be written: No space left on device$") as caught:
        write(tmp_path / "a.csv", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert caught.value.path == str(tmp_path / "a.csv")
    with pytest.raises(MediaError, match=r"a\.csv: cannot be written: disk on fire$"):
        write(tmp_path / "a.csv", OSError("disk on fire"))
    assert os.listdir(tmp_path) == []


def test_other_failures_pass_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^no such format$"):
        write(tmp_path / "a.csv", ValueError("no such format"))
    assert os.listdir(tmp_path) == []


def test_a_path_that_cannot_be_a_file(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"a\.csv: cannot be written: the folder .*/none does not exist$"):
        write(tmp_path / "none" / "a.csv")
    with pytest.raises(MediaError, match=r"cannot be written: it is a folder, not a file$"):
        write(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MediaError, match=r"cannot be written: it is a device or a pipe, not a file$"):
        write(tmp_path / "pipe")
    with pytest.raises(MediaError, match=r"cannot be written: File name too long$"):
        write(tmp_path / ("x" * 300))
