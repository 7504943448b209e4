"""``kill -9`` between any two file operations of apply and undo, with subtitles, to a folder and to the trash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.kill
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_killed_apply_or_undo_is_completed_by_running_it_again(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.files.killed_apply", os.fspath(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # Each line is the number of operations of an apply or an undo; a process was killed before each of them.
    counts = [int(word) for word in done.stdout.split()]
    assert len(counts) == 6
    assert min(counts) > 15
