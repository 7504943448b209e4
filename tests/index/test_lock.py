"""One writer at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vidkin.errors import CollectionLockedError
from vidkin.index.lock import writer_lock

HOLD = """
import sys, time
from pathlib import Path
from vidkin.index.lock import writer_lock
with writer_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def holder(folder: Path, seconds: float) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    with holder(tmp_path, 60) as other:
        started = time.monotonic()
        with (
            pytest.raises(
                CollectionLockedError,
                match=rf"being written to by process {other.pid} on \S+ since 20.*in Python wait=SECONDS",
            ),
            writer_lock(tmp_path),
        ):
            raise AssertionError("never reached")
        assert time.monotonic() - started < 5
        other.kill()
    # kill -9 releases it, and the note that is left names nobody who would be in the way.
    with writer_lock(tmp_path):
        assert f'"pid": {os.getpid()}' in (tmp_path / "writer.json").read_text()
    assert not (tmp_path / "writer.json").exists()


def test_a_writer_can_wait(tmp_path: Path) -> None:
    with holder(tmp_path, 1.0), writer_lock(tmp_path, wait=30):
        pass


def test_waiting_ends(tmp_path: Path) -> None:
    with (
        writer_lock(tmp_path),
        pytest.raises(CollectionLockedError, match=r"still after 0.2 s by process"),
        writer_lock(tmp_path, wait=0.2),
    ):
        raise AssertionError("never reached")


def test_a_missing_note_is_no_obstacle(tmp_path: Path) -> None:
    with writer_lock(tmp_path):
        (tmp_path / "writer.json").write_text("{}")
        with pytest.raises(CollectionLockedError, match=r"by another process;"), writer_lock(tmp_path):
            raise AssertionError("never reached")
