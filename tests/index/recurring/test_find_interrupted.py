"""Pairs that ``vidkin recurring`` compared before Ctrl-C are not compared again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.cli.test_interrupt import interrupt
from tests.support.seasons import OPENING, RATE, shots
from tests.support.videos import encode
from vidkin.index import Index, SerialExecutor


@pytest.mark.slow
def test_recurring_resumes_after_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "season"
    folder.mkdir()
    # Each file has one key frame, so reading the ends of the opening, a minute from the start, takes a moment.
    for name, before in (("e1.mp4", "astronaut"), ("e2.mp4", "brick")):
        frames = shots((before, 0, 600), *OPENING, ("chelsea" if name == "e1.mp4" else "grass", 0, 80))
        encode(folder / name, frames, rate=RATE, options={"g": "10000"})
    with Index.open(tmp_path / "c.vidkin", create=True) as index:
        index.add(folder, executor=SerialExecutor(index.worker_spec))
    words = ["recurring", "--index", str(tmp_path / "c.vidkin")]
    interrupt(words, folder / "e1.mp4", tmp_path, moment=0.0)

    def refuse(*_: object) -> None:
        raise AssertionError("what was compared before the interruption was compared again")

    monkeypatch.setattr("vidkin.index.recurring.find.find_shared", refuse)
    (group,) = run(*words, "-f", "json").json["groups"]
    assert [(one["start"], one["end"]) for one in group["occurrences"]] == [pytest.approx((60.0, 66.5))] * 2
