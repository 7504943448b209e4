"""Only one removal at a time per user, and files locked by another process."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.files.test_trash import plan_of
from tests.support.plans import carry_out
from vidkin.errors import CollectionLockedError
from vidkin.files import DuplicatePlan, Journal, hold_removals, undo_plan
from vidkin.files.locks import hold_files

HOLD = """
import sys
from vidkin.files.locks import hold_removals
with hold_removals():
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("platformdirs.user_state_path", lambda name, appauthor: tmp_path / "state" / name)
    return tmp_path / "state"


@pytest.fixture
def plan(tmp_path: Path) -> DuplicatePlan:
    return plan_of(tmp_path / "films")


def test_concurrent_removal_by_the_same_user_is_refused(plan: DuplicatePlan, tmp_path: Path) -> None:
    journal, away = Journal(tmp_path / "log"), tmp_path / "away"
    refused = r"another `vidkin apply` or web page of yours is moving or restoring files; wait for it to finish"
    with hold_removals(), pytest.raises(CollectionLockedError, match=refused):
        carry_out(plan, journal, folder=away)
    carry_out(plan, journal, folder=away)
    with hold_removals(), pytest.raises(CollectionLockedError, match=refused):
        undo_plan(journal)
    undo_plan(journal)
    assert (tmp_path / "films" / "00000.mp4").exists()
    with hold_removals():  # a dry run is always allowed
        (action_of_dry_run,) = carry_out(plan, journal, folder=away, dry_run=True)
    assert action_of_dry_run.outcome == "planned"


@pytest.mark.process
def test_lock_is_released_when_its_process_is_killed(
    plan: DuplicatePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(CollectionLockedError, match="another `vidkin apply` or web page of yours"):
            carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away")
        process.kill()
    (action,) = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away")
    assert action.outcome == "removed"


def test_files_are_moved_with_a_warning_if_the_state_folder_cannot_be_used(
    plan: DuplicatePlan, tmp_path: Path, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """For example in a service without a home folder."""
    state.write_bytes(b"a file")
    with caplog.at_level(logging.WARNING):
        (action,) = carry_out(plan, Journal(tmp_path / "log"), folder=tmp_path / "away")
    assert action.outcome == "removed"
    assert "removal.lock: cannot be locked, so other removals may run at the same time: " in caplog.text


def test_file_is_locked_under_all_its_names(tmp_path: Path, plan: DuplicatePlan) -> None:
    pytest.importorskip("fcntl")
    path = plan.groups[0].keep.path
    again = str(tmp_path / "again.mp4")
    os.link(path, again)
    with hold_files([path, again, str(tmp_path / "none.mp4"), ""]) as taken:
        assert taken == ""
        with hold_files([plan.groups[0].remove[0].path, path]) as other:
            assert other == f"another process moves or keeps {path}; try again later"
    with hold_files([path]) as taken:
        assert taken == ""
