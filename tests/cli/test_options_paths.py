"""Places that commands may write to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vidkin.cli.options import check_output_path
from vidkin.errors import InvalidArgumentError


def test_new_and_old_files_may_be_written(tmp_path: Path) -> None:
    old, source = tmp_path / "old.bin", tmp_path / "source.mp4"
    old.touch()
    source.touch()
    for path in (old, tmp_path / "new.bin"):
        check_output_path(path, inputs=[source, None, tmp_path / "not there"])


def test_unusable_output_paths_are_refused_with_the_cause(tmp_path: Path) -> None:
    source, link, pipe = tmp_path / "source.mp4", tmp_path / "link", tmp_path / "pipe"
    source.touch()
    os.link(source, link)
    os.mkfifo(pipe)
    for path, cause in (
        (source, "is also an input; choose another output file"),
        (link, "is also an input; choose another output file"),
        (tmp_path / "." / "source.mp4", "is also an input; choose another output file"),
        (tmp_path, "cannot be written because it is a folder; name a file"),
        (pipe, "because it is a device or a pipe"),
        (tmp_path / "no" / "x", "no such folder; create it first"),
    ):
        with pytest.raises(InvalidArgumentError, match=cause):
            check_output_path(path, inputs=[None, source])
