"""Jobs on disk."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from vidkin.web.jobs import MAX_STORED, JobFiles, JobState


def finished(number: int) -> JobState:
    result = {"videos": 2, "points": 2, "method": "pca"}
    return JobState(number, "map", "A map", None, state="done", result=result, notes=("a line",))


def test_newest_jobs_are_stored_in_their_final_state(tmp_path: Path) -> None:
    files = JobFiles(tmp_path / "web-jobs")
    assert files.all() == []
    for number in range(1, MAX_STORED + 6):
        files.keep(finished(number))
    for stored in (files, JobFiles(tmp_path / "web-jobs")):
        assert [state.id for state in stored.all()] == list(range(MAX_STORED + 5, 5, -1))
        assert stored.read(20) == finished(20)
        assert stored.read(5) is None


def test_job_of_a_killed_server_is_failed_on_the_next_server(tmp_path: Path) -> None:
    folder = tmp_path / "web-jobs"
    begun = JobState(7, "index", "Add films", None, done=2, total=9, notes=("a line",), seconds_left=3.0)
    code = (
        "import os, sys; from pathlib import Path; from vidkin.web.jobs import JobFiles, JobState\n"
        "JobFiles(Path(sys.argv[1])).begin("
        "JobState(7, 'index', 'Add films', None, done=2, total=9, notes=('a line',), seconds_left=3.0))\n"
        "os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(folder)], check=False).returncode == 9
    next_server = JobFiles(folder)
    next_server.settle()
    error = "the server ended before this job did; start it again: finished work is kept"
    assert next_server.all() == [replace(begun, state="failed", error=error, seconds_left=None, version=1)]
    assert next_server.read(7) == next_server.all()[0]
    assert [path.name for path in folder.iterdir()] == ["7.json"]


def test_job_of_another_running_server_is_unchanged(tmp_path: Path) -> None:
    at_work = JobFiles(tmp_path / "web-jobs")
    at_work.begin(JobState(7, "map", "A map", None))
    other = JobFiles(tmp_path / "web-jobs")
    other.settle()
    assert other.read(7) is None
    assert other.all() == []
    at_work.keep(finished(7))
    assert other.read(7) == finished(7)


@pytest.mark.parametrize(
    "content",
    ["no job", "{}", "[" * 5000, '{"id": 2, "kind": "map", "title": "", "video": null, "state": "done"}']
    + [
        f'{{"id": 1, "kind": "{kind}", "title": "", "video": null, "state": "{state}"}}'
        for kind, state in (("map", "running"), ("nothing", "done"), ("map", "odd"))
    ],
)
def test_files_that_are_not_jobs_of_a_server_are_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / "1.json").write_text(content, encoding="utf-8")
    (tmp_path / "x.json").write_text(content, encoding="utf-8")
    (tmp_path / "2.lock").touch()
    files = JobFiles(tmp_path)
    files.settle()
    assert files.read(1) is None
    assert files.all() == []


def test_unwritable_folder_does_not_end_jobs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    for folder in (tmp_path / "file", tmp_path / "link", tmp_path / "missing" / "web-jobs"):
        files = JobFiles(folder)
        files.settle()
        files.begin(finished(1))
        files.keep(finished(1))
        assert files.all() == []
    assert list((tmp_path / "real").iterdir()) == []
    assert not (tmp_path / "missing").exists()
