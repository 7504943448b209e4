"""Adding folders over HTTP."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.web.conftest import Connect, Library, finish_job, number_of
from vidkin.index import Index


@pytest.fixture
def fresh(tmp_path: Path, connect: Connect) -> TestClient:
    """Of an empty index, and before it was asked for."""
    Index.open(tmp_path / "new.vidkin", extractor="classical", create=True).close()
    return connect(tmp_path / "new.vidkin")


@pytest.mark.process
def test_adding_a_folder_reports_broken_files_with_causes(library: Library, fresh: TestClient) -> None:
    answer = fresh.post("/api/index", json={"paths": [str(library.folder)]})
    assert answer.status_code == 202, answer.text
    again = fresh.post("/api/index", json={"paths": [str(library.folder)]})
    assert again.status_code == 409
    assert '"Add videos" is still running' in again.json()["detail"]
    state = finish_job(fresh, answer.json())
    assert (state["state"], state["done"], state["total"]) == ("done", 4, 4)
    result = state["result"]
    assert (result["added"], result["unchanged"], result["broken"]) == (3, 0, 1)
    assert result["files"][0]["path"] == str(library.folder / "broken.mp4")
    assert result["files"][0]["cause"]
    assert "broken.mp4: " in state["notes"][0]
    # The pages see it at once.
    assert fresh.get("/api/videos").json()["total"] == 4
    assert fresh.get(f"/videos/{number_of(fresh, 'coffee.mp4')}/thumbnail").status_code == 200
    second = finish_job(fresh, fresh.post("/api/index", json={"paths": [str(library.folder)]}).json())
    assert (second["result"]["added"], second["result"]["unchanged"]) == (0, 3)


@pytest.mark.parametrize(
    ("paths", "cause"),
    [
        ([], "paths"),
        (["Videos"], "enter an absolute path"),
        (["/nowhere/at/all"], "there is no such file or folder"),
        (["/a\0b"], "there is no such file or folder"),
        (["/tmp"] * 101, "paths"),
    ],
)
def test_invalid_paths_are_refused(fresh: TestClient, paths: list[str], cause: str) -> None:
    answer = fresh.post("/api/index", json={"paths": paths})
    assert answer.status_code == 422
    assert cause in answer.json()["detail"]


def test_read_only_server_refuses_to_add_folders(library: Library, connect: Connect) -> None:
    client = connect(library.index, read_only=True)
    answer = client.post("/api/index", json={"paths": [str(library.folder)]})
    assert answer.status_code == 403
    assert "--read-only" in answer.json()["detail"]
    assert "Add a folder" not in client.get("/").text


@pytest.mark.kill
def test_stopped_job_keeps_finished_work(library: Library, fresh: TestClient, tmp_path: Path) -> None:
    many = tmp_path / "many"
    for number in range(40):
        (many / f"{number}").mkdir(parents=True)
        content = (library.folder / "rocket & <b>.mp4").read_bytes()
        (many / f"{number}" / "rocket.mp4").write_bytes(content + bytes(number))
    job = fresh.post("/api/index", json={"paths": [str(many)]}).json()
    while not fresh.get(f"/api/jobs/{job['id']}").json()["done"]:
        time.sleep(0.05)
    fresh.post(f"/api/jobs/{job['id']}/stop")
    assert finish_job(fresh, job)["state"] == "stopped"
    # Another job can write at once: the lock and the workers are gone.
    shutil.rmtree(many)
    assert finish_job(fresh, fresh.post("/api/index", json={"paths": [str(library.folder)]}).json())["state"] == "done"


@pytest.mark.parametrize(
    "name",
    ["\\ud800", "/\\ud800", "~\\ud800", "~\\u0000/x", "/\\u0000", "~nobody-of-this-name/x", "/\\udcff"],
)
def test_impossible_file_names_are_refused(fresh: TestClient, name: str) -> None:
    answer = fresh.post("/api/index", content=f'{{"paths": ["{name}"]}}', headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "there is no such file or folder" in answer.json()["detail"]
