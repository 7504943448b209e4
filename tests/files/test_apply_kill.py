"""``kill -9`` between any two file operations of apply and undo, with subtitles, to a folder and to the trash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_killed_apply_or_undo_finishes_correctly_when_it_is_run_again(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.files.killed_apply", os.fspath(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # Each line: operations of an apply and of an undo, at each of which the process was killed.
    counts = [int(word) for word in done.stdout.split()]
    assert len(counts) == 6
    assert min(counts) > 15
