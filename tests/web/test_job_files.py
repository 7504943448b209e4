"""Finished jobs on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from vidkin.web.job_files import MAX_STORED, JobFiles, JobState


def finished(number: int) -> JobState:
    result = {"videos": 2, "points": 2, "method": "pca"}
    return JobState(number, "map", "A map", None, state="done", result=result, notes=("a line",))


def test_the_newest_jobs_are_kept_as_they_ended(tmp_path: Path) -> None:
    files = JobFiles(tmp_path / "web-jobs")
    assert files.all() == []
    for number in range(1, MAX_STORED + 6):
        files.keep(finished(number))
    for stored in (files, JobFiles(tmp_path / "web-jobs")):
        assert [state.id for state in stored.all()] == list(range(MAX_STORED + 5, 5, -1))
        assert stored.read(20) == finished(20)
        assert stored.read(5) is None


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
    files = JobFiles(tmp_path)
    assert files.read(1) is None
    assert files.all() == []


def test_a_folder_that_refuses_ends_no_job(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    for folder in (tmp_path / "file", tmp_path / "link", tmp_path / "missing" / "web-jobs", None):
        files = JobFiles(folder)
        files.keep(finished(1))
        assert files.all() == []
    assert list((tmp_path / "real").iterdir()) == []
    assert not (tmp_path / "missing").exists()
