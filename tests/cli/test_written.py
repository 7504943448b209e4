"""Places that commands may write to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vidkin.cli.written import check_written
from vidkin.errors import InvalidArgumentError


def test_new_and_old_files_may_be_written(tmp_path: Path) -> None:
    old, source = tmp_path / "old.bin", tmp_path / "source.mp4"
    old.touch()
    source.touch()
    for path in (old, tmp_path / "new.bin"):
        check_written(path, inputs=[source, None, tmp_path / "not there"])


def test_what_must_not_be_written_is_told(tmp_path: Path) -> None:
    source, link, pipe = tmp_path / "source.mp4", tmp_path / "link", tmp_path / "pipe"
    source.touch()
    os.link(source, link)
    os.mkfifo(pipe)
    for path, cause in (
        (source, "is one of the files to be read"),
        (link, "is one of the files to be read"),
        (tmp_path / "." / "source.mp4", "is one of the files to be read"),
        (tmp_path, "it is a folder; name a file"),
        (pipe, "it is a device or a pipe"),
        (tmp_path / "no" / "x", "there is no folder"),
    ):
        with pytest.raises(InvalidArgumentError, match=cause):
            check_written(path, inputs=[None, source])
