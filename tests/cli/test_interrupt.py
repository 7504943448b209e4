"""Ctrl-C ends each command within a second of its work, whatever it is busy with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import encode, pan
from vidkin.index import Index

if not Path("/proc/self/fd").is_dir():
    pytest.skip("needs /proc, which tells what a process has open", allow_module_level=True)

PROGRAM = [sys.executable, "-c", "from vidkin.cli import main; main()"]
# Processor time: the tests share their machine, so that time on the clock may be many times as long.
MOST_SECONDS = 1.0
# On the clock, for a command that does nothing but wait.
MOST_WAITING = 30.0


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 minutes: no command is done with it before it is interrupted."""
    frames = list(pan("coffee", 60, width=320, height=240))
    many = (np.roll(frames[at % 60], at // 60, axis=1) for at in range(6000))
    return encode(
        tmp_path_factory.mktemp("film") / "film.mp4", many, rate=5, options={"preset": "ultrafast", "g": "50"}
    )


@pytest.fixture(scope="module")
def empty_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index") / "c.vidkin"
    Index.open(folder, create=True).close()
    return folder


COMMANDS = {
    "search": ("search", "FILM", "--index", "INDEX"),
    "match": ("match", "FILM", "FILM", "--extractor", "vidkin"),
    "index": ("index", "FILM", "--index", "INDEX", "--workers", "1"),
    "embed": ("embed", "FILM", "-o", "features.safetensors"),
    "shots": ("shots", "FILM", "--detector", "content"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_command_within_a_second(name: str, film: Path, empty_index: Path, tmp_path: Path) -> None:
    words = [{"FILM": str(film), "INDEX": str(empty_index)}.get(word, word) for word in COMMANDS[name]]
    interrupt(words, film, tmp_path)


def interrupt(words: list[str], film: Path, folder: Path, *, moment: float = 0.3) -> None:
    """Run a command, send Ctrl-C this long after it has opened the film, and check how it ends."""
    process = subprocess.Popen(
        [*PROGRAM, *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "VIDKIN_CONFIG": os.devnull, "OMP_NUM_THREADS": "1"},
    )
    try:
        _wait_until_open(process, film, moment)
        # Workers count when they are waited for, with all they did before.
        before = sum(map(_seconds_of, (process.pid, *_children(process.pid))))
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the program and its workers
        assert process.stderr is not None
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.stderr is not None
        process.stderr.close()
    assert process.returncode == 130, errors
    assert b"Interrupted" in errors
    assert b"Traceback" not in errors
    # Processor time of the workers that it waited for is counted here, too.
    assert usage.ru_utime + usage.ru_stime - before < MOST_SECONDS
    assert time.monotonic() - began < MOST_WAITING


def _wait_until_open(process: subprocess.Popen[bytes], film: Path, moment: float) -> None:
    """Wait until the program or one of its workers has the film open, and has worked on it for a moment in seconds."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        assert process.poll() is None, "it was done before it could be interrupted"
        if any(_has_open(pid, film) for pid in (process.pid, *_children(process.pid))):
            time.sleep(moment)
            return
        time.sleep(0.02)
    raise AssertionError("the film was not opened within 200 s")


def _has_open(pid: int, path: Path) -> bool:
    try:
        return any(os.path.realpath(link) == str(path) for link in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False  # it ended meanwhile


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _seconds_of(pid: int) -> float:
    """Processor time of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
