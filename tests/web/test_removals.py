"""Acting on duplicates in the page: the same plans, logs and functions as `vidkin apply`."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from tests.support.videos import encode, pan
from tests.web.conftest import Connect, Library, finish_job, number_of
from vidkin.cli.app import app
from vidkin.files import Prover
from vidkin.index import Index, SerialExecutor


@pytest.fixture
def trash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trash for this test alone."""
    if sys.platform in ("win32", "darwin"):
        pytest.skip("the system's trash cannot be put elsewhere")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "Trash" / "files"


@pytest.fixture
def mine(compared_library: Library) -> Library:
    """A library of this test alone, whose copies a command has found."""
    return compared_library


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def remove(client: TestClient, *videos: int, folder: Path | None = None) -> dict[str, Any]:
    answer = client.post(
        "/api/duplicates/remove", json={"videos": videos, "folder": None if folder is None else str(folder)}
    )
    assert answer.status_code == 202, answer.text
    return finish_job(client, answer.json())


def prove(client: TestClient) -> dict[str, Any]:
    """Prove all that may be removable; the result."""
    ended = finish_job(client, client.post("/api/duplicates/prove").json())
    assert ended["state"] == "done", ended["error"]
    result: dict[str, Any] = ended["result"]
    return result


def test_copy_is_moved_to_the_trash_and_restored(mine: Library, connect: Connect, trash: Path) -> None:
    before = contents(mine.folder)
    client = connect(mine.index)
    copy = number_of(client, "copy.mp4")
    size = len(before["copy.mp4"])
    assert client.get("/api/duplicates/spare").json() == {str(copy): size}
    ended = remove(client, copy)
    assert (ended["state"], ended["result"]["done"], ended["result"]["bytes"]) == ("done", 1, size)
    (moved,) = trash.iterdir()
    assert moved.read_bytes() == before["copy.mp4"]
    assert not (mine.folder / "copy.mp4").exists()
    # The totals of possibly removable files are updated immediately.
    assert (client.get("/api/duplicates").json()["total"], client.get("/api/duplicates/spare").json()) == (0, {})
    (removal,) = client.get("/api/duplicates/removals").json()
    assert removal["can_undo"] is True
    (file,) = removal["files"]
    assert (file["name"], file["fate"], file["place"]) == ("copy.mp4", "removed", str(moved))
    back = finish_job(client, client.post("/api/duplicates/undo", json={"name": removal["name"]}).json())
    assert back["result"]["done"] == 1
    assert contents(mine.folder) == before
    assert client.get("/api/duplicates").json()["total"] == 1
    (removal,) = client.get("/api/duplicates/removals").json()
    assert (removal["can_undo"], removal["files"][0]["fate"]) == (False, "restored")


@pytest.mark.thorough
def test_command_undoes_a_removal_of_the_page(mine: Library, connect: Connect) -> None:
    before = contents(mine.folder)
    client = connect(mine.index)
    away = mine.folder.parent / "away"
    ended = remove(client, number_of(client, "copy.mp4"), folder=away)
    assert contents(away) == {str(mine.folder / "copy.mp4").lstrip("/"): before["copy.mp4"]}
    plan = mine.index / "removals" / f"{ended['result']['name']}.json"
    assert plan.with_name(f"{plan.name}.log").exists()
    told = CliRunner().invoke(app, ["apply", str(plan), "--undo"])
    assert told.exit_code == 0, told.output
    assert contents(mine.folder) == before
    assert client.get("/api/duplicates/removals").json()[0]["files"][0]["fate"] == "restored"


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["copy.mp4", "coffee.mp4"])
def test_replaced_file_is_kept(mine: Library, connect: Connect, name: str) -> None:
    """Another file was saved under its name after it was indexed, or over the file to keep."""
    client = connect(mine.index)
    copy = number_of(client, "copy.mp4")
    shutil.copyfile(mine.folder / "rocket & <b>.mp4", mine.folder / name)
    before = contents(mine.folder)
    ended = remove(client, copy, folder=mine.folder.parent / "away")
    assert ended["result"]["done"] == 0
    (skipped,) = ended["result"]["skipped"]
    assert skipped["path"].endswith("copy.mp4")
    changed = "changed since it was indexed; run `vidkin index` again"
    assert changed in skipped["cause"]
    assert contents(mine.folder) == before
    assert not contents(mine.folder.parent / "away")
    # Results for these files are not stored for the files that the index knows.
    assert json.loads((mine.index / "comparisons.json").read_text(encoding="utf-8"))["proofs"] == []
    assert client.get("/api/duplicates/plan.json").json()["groups"] == []


@pytest.mark.thorough
def test_touched_file_still_counts_as_the_duplicate(mine: Library, connect: Connect) -> None:
    client = connect(mine.index)
    os.utime(mine.folder / "copy.mp4", (1, 1))
    ended = remove(client, number_of(client, "copy.mp4"), folder=mine.folder.parent / "away")
    assert ended["result"]["done"] == 1


@pytest.fixture
def cut(mine: Library) -> Path:
    """A version of the film in the library that has footage of its own, and that a search takes for a copy."""
    film, rocket = (list(pan(name, 120, width=144, height=96)) for name in ("coffee", "rocket"))
    path = encode(mine.folder / "cut.mp4", [*film[:50], *rocket[50:65], *film[65:]], options={"preset": "medium"})
    with Index.open(mine.index) as index:
        index.add(mine.folder, executor=SerialExecutor(index.worker_spec))
        (group,) = index.duplicates()
        assert {Path(member.path).name for member in group.members if member.is_spare} == {"copy.mp4", "cut.mp4"}
    return path


@pytest.mark.thorough
def test_file_with_unique_footage_is_kept_and_a_proven_one_moved(mine: Library, cut: Path, connect: Connect) -> None:
    before = contents(mine.folder)
    client = connect(mine.index)
    away = mine.folder.parent / "away"
    copy = number_of(client, "copy.mp4")
    told = remove(client, copy, number_of(client, "cut.mp4"), folder=away)
    assert (told["state"], told["result"]["done"]) == ("done", 1)
    (stayed,) = told["result"]["skipped"]
    assert (stayed["path"], [finding["kind"] for finding in stayed["findings"]]) == (str(cut), ["picture"])
    assert "shows something else" in stayed["cause"]
    assert [Path(name).name for name in contents(away)] == ["copy.mp4"]
    assert contents(mine.folder) == {name: data for name, data in before.items() if name != "copy.mp4"}
    # The page says so next to the file, which cannot be chosen any more.
    (group,) = client.get("/api/duplicates").json()["groups"]
    (member,) = (member for member in group["members"] if member["name"] == "cut.mp4")
    assert (member["spare"], member["reasons"]) == (False, [stayed["findings"][0]["text"]])
    page = client.get("/duplicates").text
    assert stayed["findings"][0]["text"] in page
    assert 'aria-label="Remove cut.mp4"' not in page


@pytest.mark.thorough
def test_proven_files_are_not_decoded_again(
    mine: Library, cut: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(mine.index)
    first = prove(client)
    assert (first["proven"], [entry["path"] for entry in first["skipped"]]) == (1, [str(cut)])
    plan = client.get("/api/duplicates/plan.json").json()
    assert [Path(file["path"]).name for group in plan["groups"] for file in group["remove"]] == ["copy.mp4"]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("proven again")

    monkeypatch.setattr(Prover, "prove", refuse)
    again = remove(client, number_of(client, "copy.mp4"), folder=mine.folder.parent / "away")
    assert (again["state"], again["result"]["done"]) == ("done", 1)


@pytest.mark.thorough
def test_stopped_proof_moves_nothing(mine: Library, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(mine.folder)
    client = connect(mine.index)
    copy = number_of(client, "copy.mp4")
    began, stopped = threading.Event(), threading.Event()
    really = Prover.prove

    def wait(*args: Any, **settings: Any) -> Any:
        began.set()
        assert stopped.wait(30)
        return really(*args, **settings)

    monkeypatch.setattr(Prover, "prove", wait)
    away = mine.folder.parent / "away"
    job = client.post("/api/duplicates/remove", json={"videos": [copy], "folder": str(away)}).json()
    assert began.wait(30)
    detail = client.get(f"/api/jobs/{job['id']}").json()["detail"]
    assert detail == "decoding 1 of 1 file to prove that nothing is lost"
    client.post(f"/api/jobs/{job['id']}/stop")
    stopped.set()
    assert finish_job(client, job)["state"] == "stopped"
    assert (contents(mine.folder), away.exists()) == (before, False)


@pytest.mark.thorough
def test_only_spare_files_of_the_groups_can_be_removed(mine: Library, connect: Connect) -> None:
    before = contents(mine.folder)
    client = connect(mine.index)
    numbers = {name: number_of(client, name) for name in ("coffee.mp4", "rocket & <b>.mp4", "copy.mp4")}
    for name in ("coffee.mp4", "rocket & <b>.mp4"):
        refused = client.post("/api/duplicates/remove", json={"videos": [numbers[name]]})
        assert (
            refused.status_code,
            "no better copy in its group" in refused.json()["detail"],
        ) == (422, True)
    for body, status in (
        ({"videos": [9999]}, 404),
        ({"videos": []}, 422),
        ({"videos": [numbers["copy.mp4"]], "folder": "away"}, 422),
        ({"videos": [numbers["copy.mp4"]], "folder": str(mine.clip)}, 422),
        ({"videos": [numbers["copy.mp4"]], "folder": "/a\0b"}, 422),
    ):
        assert client.post("/api/duplicates/remove", json=body).status_code == status, body
    closed = connect(mine.index, read_only=True)
    for address, closed_body in (("remove", {"videos": [numbers["copy.mp4"]]}), ("undo", {"name": "x"})):
        answer = closed.post(f"/api/duplicates/{address}", json=closed_body)
        assert (answer.status_code, "--read-only" in answer.json()["detail"]) == (403, True)
    assert client.get("/api/duplicates/remove").status_code == 405
    for name in ("../../etc", "2026-01-01-000000"):
        ended = finish_job(client, client.post("/api/duplicates/undo", json={"name": name}).json())
        assert (ended["state"], "there is no removal" in ended["error"]) == ("failed", True)
    assert contents(mine.folder) == before
    assert client.get("/api/duplicates/removals").json() == []


def test_requests_from_other_sites_or_without_the_token_move_nothing(mine: Library, connect: Connect) -> None:
    before = contents(mine.folder)
    client = connect(mine.index, token="secret")
    bearer = {"Authorization": "Bearer secret"}
    copy = next(
        video["id"]
        for video in client.get("/api/videos", headers=bearer).json()["videos"]
        if video["name"] == "copy.mp4"
    )
    body = {"videos": [copy], "folder": str(mine.folder.parent / "away")}
    for headers, status in (
        ({}, 401),
        ({**bearer, "Origin": "http://evil.example"}, 403),
        ({**bearer, "Sec-Fetch-Site": "cross-site"}, 403),
        ({**bearer, "Host": "evil.example"}, 400),
    ):
        answer = client.post("/api/duplicates/remove", json=body, headers=headers)
        assert answer.status_code == status, headers
        assert client.post("/api/duplicates/undo", json={"name": "x"}, headers=headers).status_code == status
    large = client.post("/api/duplicates/remove", content=b" " * 9_000_000, headers=bearer)
    assert large.status_code == 413
    assert contents(mine.folder) == before


@pytest.mark.thorough
def test_simultaneous_page_and_command_are_refused_with_the_cause(mine: Library, connect: Connect) -> None:
    before = contents(mine.folder)
    client = connect(mine.index)
    copy = number_of(client, "copy.mp4")
    plan, away = mine.folder.parent / "plan.json", mine.folder.parent / "away"
    told = CliRunner().invoke(app, ["duplicates", "-i", str(mine.index), "--plan", str(plan)])
    assert told.exit_code == 0, told.output
    with Index.open(mine.index, read_only=True) as index, index.place.exclusive():
        ended = remove(client, copy, folder=away)
        told = CliRunner().invoke(app, ["apply", str(plan), "-i", str(mine.index), "--move-to", str(away)])
    assert (told.exit_code, "is being written to by this process" in told.output) == (3, True)
    assert (ended["state"], "is being written to by this process" in ended["error"]) == ("failed", True)
    assert contents(mine.folder) == before


def test_copy_is_kept_if_its_kept_file_disappeared(mine: Library, connect: Connect) -> None:
    client = connect(mine.index)
    copy = number_of(client, "copy.mp4")
    assert client.get("/api/duplicates/spare").json()
    # Between the click and the request the kept file goes away: the copy is the only one now.
    os.rename(mine.folder / "coffee.mp4", mine.folder / "elsewhere.mp4")
    refused = client.post("/api/duplicates/remove", json={"videos": [copy]})
    assert (
        refused.status_code,
        "no better copy in its group" in refused.json()["detail"],
    ) == (422, True)
    assert (mine.folder / "copy.mp4").exists()


@pytest.mark.thorough
def test_removals_by_apply_are_in_the_history_and_can_be_undone(
    mine: Library, connect: Connect, tmp_path: Path
) -> None:
    before = contents(mine.folder)
    client = connect(mine.index)
    plan, away = tmp_path / "plan.json", tmp_path / "away"
    proven = prove(client)
    assert (proven["proven"], proven["skipped"]) == (1, [])
    plan.write_bytes(client.get("/api/duplicates/plan.json").content)
    run = CliRunner().invoke
    assert run(app, ["apply", str(plan), "-i", str(mine.index), "--move-to", str(away), "--dry-run"]).exit_code == 0
    assert client.get("/api/duplicates/removals").json() == []  # nothing was done
    assert run(app, ["apply", str(plan), "-i", str(mine.index), "--move-to", str(away)]).exit_code == 0
    (listed,) = client.get("/api/duplicates/removals").json()
    assert (listed["plan"], listed["can_undo"]) == (str(plan), True)
    (file,) = listed["files"]
    assert (file["name"], file["fate"]) == ("copy.mp4", "removed")
    assert file["place"].startswith(str(away))
    # The page undoes it, in the log next to the plan, so the command sees it.
    ended = finish_job(client, client.post("/api/duplicates/undo", json={"name": listed["name"]}).json())
    assert ended["result"]["done"] == 1
    assert contents(mine.folder) == before
    assert "0 files restored" in run(app, ["apply", str(plan), "--undo"]).output
    # The same plan again is the same entry; now the command takes it back, and the page knows.
    assert run(app, ["apply", str(plan), "-i", str(mine.index), "--move-to", str(away)]).exit_code == 0
    assert [entry["can_undo"] for entry in client.get("/api/duplicates/removals").json()] == [True]
    assert run(app, ["apply", str(plan), "--undo"]).exit_code == 0
    (listed,) = client.get("/api/duplicates/removals").json()
    assert [file["fate"] for file in listed["files"]] == ["restored"]
    assert contents(mine.folder) == before
    # A plan that the page wrote needs no second entry.
    remove(client, number_of(client, "copy.mp4"), folder=away)
    (mine_too, _) = client.get("/api/duplicates/removals").json()
    assert run(app, ["apply", mine_too["plan"], "--undo"]).exit_code == 0
    assert run(app, ["apply", mine_too["plan"], "-i", str(mine.index), "--move-to", str(away)]).exit_code == 0
    assert len(client.get("/api/duplicates/removals").json()) == 2
    # Another plan at that path was not carried out, and a damaged entry is ignored.
    plan.write_text(plan.read_text().replace('"created": "20', '"created": "19'))
    (mine.index / "removals" / "2020-01-01-000000.applied.json").write_text('{"plan": ["x"]}')
    assert [entry["name"] for entry in client.get("/api/duplicates/removals").json()] == [mine_too["name"]]
