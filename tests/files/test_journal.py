"""Logs after a crash, and files that are not logs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.files import Journal, RemovalStep

STEP = RemovalStep("/films/a.mp4", "", "", "/films/best.mp4", "begun", 5, "ab", "cd", "", 2, False)


def test_latest_state_of_each_step_counts(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log")
    other = replace(STEP, source="/films/b.mp4", place="/away/b.mp4", link="hard")
    journal.write(STEP)
    journal.write(other)
    journal.write(replace(STEP, place="/trash/a.mp4", state="done"))
    assert journal.steps() == [replace(STEP, place="/trash/a.mp4", state="done"), other]


def test_line_truncated_by_a_crash_is_ignored(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "log")
    journal.write(STEP)
    whole = journal.path.read_text(encoding="ascii")
    journal.path.write_text(whole + whole[: len(whole) // 2], encoding="ascii")
    assert journal.steps() == [STEP]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[1, 2]",
        '{"source": "/a"}',
        json.dumps({**asdict(STEP), "state": "dreamt"}),
        json.dumps({**asdict(STEP), "link": "soft"}),
        json.dumps({**asdict(STEP), "place": 7}),
        json.dumps({**asdict(STEP), "content": ""}),
        json.dumps({**asdict(STEP), "size": -1}),
    ],
)
def test_file_that_is_not_a_log_is_refused_with_the_line_number(tmp_path: Path, line: str) -> None:
    journal = Journal(tmp_path / "log")
    journal.write(STEP)
    text = journal.path.read_text(encoding="ascii")
    journal.path.write_text(text + line + "\n" + text, encoding="ascii")
    with pytest.raises(InvalidArgumentError, match=r"log must be a log of `vidkin apply`: line 2: "):
        journal.steps()


def test_error_for_an_unreadable_or_unwritable_log_states_the_cause(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "missing" / "log")
    with pytest.raises(MediaError, match="there is no such log: nothing was done with this plan"):
        journal.steps()
    with pytest.raises(MediaError, match=r"the log cannot be read: this is not a regular file"):
        Journal(tmp_path).steps()
    with pytest.raises(MediaError, match="the log cannot be written: No such file or directory"):
        journal.write(STEP)
