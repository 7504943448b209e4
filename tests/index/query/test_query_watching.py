"""A hanging decoder is reported, and Ctrl-C works while a query is read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.index.helpers import video
from vidkin.errors import MediaError
from vidkin.features import ClassicalExtractor, Phase
from vidkin.index import Calibration
from vidkin.index.query import query as query_module
from vidkin.index.query.query import describe_query
from vidkin.index.query.watching import HangError, run_watched

Beat = Callable[[Phase], None]


def test_results_and_exceptions_pass_through() -> None:
    def add(beat: Beat) -> int:
        beat("decoding")
        return 1 + 1

    def divide(beat: Beat) -> float:
        return 1 / 0

    assert run_watched(add, hang_timeout=1.0) == 2
    with pytest.raises(ZeroDivisionError):
        run_watched(divide, hang_timeout=1.0)


@pytest.mark.large
def test_slow_work_is_not_a_hang() -> None:
    def work(beat: Beat) -> str:
        for _ in range(8):
            beat("decoding")
            time.sleep(0.3)
        beat("describing")
        time.sleep(1.5)  # an extractor is allowed more time
        return "done"

    assert run_watched(work, hang_timeout=1.0) == "done"


def test_silence_is_a_hang_and_the_thread_ends_at_its_next_heartbeat() -> None:
    waking = threading.Event()
    ended = threading.Event()

    def work(beat: Beat) -> None:
        beat("decoding")
        waking.wait()
        try:
            beat("decoding")
        finally:
            ended.set()

    began = time.monotonic()
    with pytest.raises(HangError, match=r"the decoder hung: no progress for 0\.5 s"):
        run_watched(work, hang_timeout=0.5)
    assert time.monotonic() - began < 4
    waking.set()
    assert ended.wait(5)


@pytest.mark.large
def test_query_with_a_hanging_decoder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = video(tmp_path / "a.mp4")
    extractor = ClassicalExtractor()
    parts = (extractor, Calibration.of_extractor(extractor))
    described = describe_query(path, *parts, rate=1.0)
    assert len(described) > 0

    def hang(*_: object, **__: object) -> Iterator[object]:
        time.sleep(30)
        yield

    monkeypatch.setattr(query_module, "describe_file", hang)
    with pytest.raises(MediaError, match=r"a\.mp4: the decoder hung: no progress for 1 s$") as caught:
        describe_query(path, *parts, rate=1.0, hang_timeout=1.0)
    assert caught.value.temporary


# Python handles signals only between bytecode instructions. A looping decoder is a single call that never returns to
# Python; an extractor makes many calls, and must not be stopped in the middle of one.
BLOCKED = """
import hashlib, sys
import numpy as np
from vidkin.cli.app import run
from vidkin.index.query import query
def block(*_, **__):
    print("reading", flush=True)
    while True:
        WORK
query.describe_file = block
sys.argv[1:] = ["search", *sys.argv[1:]]
run()
"""


@pytest.mark.kill
@pytest.mark.parametrize(
    "work",
    ['hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)', "np.ones((700, 700)) @ np.ones((700, 700))"],
)
def test_ctrl_c_ends_a_search_inside_an_uninterruptible_call(work: str, tmp_path: Path) -> None:
    from vidkin.index import Index

    path = video(tmp_path / "a.mp4")
    Index.open(tmp_path / "index", create=True).close()
    command = [
        sys.executable,
        "-c",
        BLOCKED.replace("WORK", work),
        str(path),
        "--index",
        str(tmp_path / "index"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as search:
        assert search.stdout is not None
        assert search.stdout.readline() == "reading\n"
        began = time.monotonic()
        os.kill(search.pid, signal.SIGINT)
        _, errors = search.communicate(timeout=30)
    # Stopping takes less than a second on an idle machine, the uninterruptible call minutes.
    assert time.monotonic() - began < 10
    assert search.returncode == 130
    assert "Interrupted" in errors
