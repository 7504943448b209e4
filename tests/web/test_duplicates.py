"""The duplicates page and its API, on real copies."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.web.conftest import Connect, Library, finish_job, make_library, number_of
from vidkin.index import read_plan
from vidkin.web import Settings
from vidkin.web.app import create_app
from vidkin.web.guard import Guard


def find(client: TestClient, **wish: object) -> None:
    """Look for duplicates and wait until they are found."""
    state = finish_job(client, client.post("/api/duplicates", json=wish).json())
    assert state["state"] == "done", state["error"]


def test_before_a_search_the_page_says_what_to_do(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    assert "Find the copies in this index" in client.get("/duplicates").text
    assert client.get("/api/duplicates").json()["searched"] is False
    for address in ("/api/duplicates.csv", "/api/duplicates/plan.json"):
        answer = client.get(address)
        assert (answer.status_code, "run one first" in answer.json()["detail"]) == (409, True)


def test_groups_show_the_best_copy_and_why(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    find(client)
    found = client.get("/api/duplicates").json()
    assert (found["total"], found["copies"], found["spare"]) == (1, 1, 1)
    best, copy = found["groups"][0]["members"]
    assert (best["name"], best["best"]) == ("coffee.mp4", True)
    assert best["words"] == f"keep ({found['groups'][0]['reason']})"
    assert (copy["name"], copy["spare"], copy["compared_with_id"]) == ("copy.mp4", True, best["id"])
    assert copy["moments"] == ["0:01.8", "0:06.0", "0:10.2"]  # of 12 s
    assert client.get(copy["pictures"][0]).headers["content-type"] == "image/webp"
    page = client.get("/duplicates").text
    assert "1 group, 1 copy besides the best ones" in page
    assert 'href="/api/duplicates/plan.json"' in page
    rows = list(csv.DictReader(io.StringIO(client.get("/api/duplicates.csv").text)))
    assert [(row["best"], os.path.basename(row["path"])) for row in rows] == [
        ("yes", "coffee.mp4"),
        ("no", "copy.mp4"),
    ]


def test_the_plan_is_a_file_for_apply_and_changes_nothing(library: Library, connect: Connect, tmp_path: Path) -> None:
    client = connect(library.index)
    find(client)
    answer = client.get("/api/duplicates/plan.json")
    assert answer.headers["content-disposition"] == 'attachment; filename="plan.json"'
    (tmp_path / "plan.json").write_bytes(answer.content)
    (group,) = read_plan(tmp_path / "plan.json").groups
    assert group.keep.path == str(library.folder / "coffee.mp4")
    assert [file.path for file in group.remove] == [str(library.folder / "copy.mp4")]
    assert sorted(path.name for path in library.folder.iterdir()) == [
        "broken.mp4",
        "coffee.mp4",
        "copy.mp4",
        "rocket & <b>.mp4",
    ]


@pytest.mark.large
def test_verdicts_are_remembered_and_the_groups_follow(tmp_path: Path, connect: Connect) -> None:
    library = make_library(tmp_path)
    client = connect(library.index)
    find(client)
    coffee, copy = number_of(client, "coffee.mp4"), number_of(client, "copy.mp4")
    pair = {"first": copy, "second": coffee}
    # Keep the other one: known to the index, whatever the rule.
    kept = client.post("/api/duplicates/keep", json={"video": copy, "instead_of": [coffee]})
    assert kept.status_code == 200, kept.text
    assert client.get("/api/duplicates").json()["outdated"] is True
    assert client.get("/api/duplicates/plan.json").status_code == 409
    find(client)
    group = client.get("/api/duplicates").json()["groups"][0]
    assert (group["members"][0]["name"], group["reason"]) == ("copy.mp4", "your choice")
    # And back.
    client.post("/api/duplicates/keep", json={"video": coffee, "instead_of": [copy]})
    find(client)
    assert client.get("/api/duplicates").json()["groups"][0]["members"][0]["name"] == "coffee.mp4"
    # Not a match: no group any more; taking it back brings it again.
    rejected = client.post("/api/duplicates/verdict", json={**pair, "verdict": "not a match"})
    assert rejected.json() == {"count": 1}
    find(client)
    assert client.get("/api/duplicates").json()["total"] == 0
    assert "No duplicates found." in client.get("/duplicates").text
    assert client.post("/api/duplicates/verdict", json={**pair, "verdict": "forget"}).json() == {"count": 0}
    assert client.post("/api/duplicates/verdict", json={**pair, "verdict": "match"}).json() == {"count": 1}
    find(client)
    assert client.get("/api/duplicates").json()["groups"][0]["members"][1]["score"] == 1.0
    table = json.loads((library.index / "decisions.json").read_text(encoding="utf-8"))
    assert [row["verdict"] for row in table["decisions"]] == ["match"]
    assert [os.path.basename(row["path"]) for row in table["preferred"]] == ["coffee.mp4"]


def test_what_cannot_be_decided_is_refused(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    coffee = number_of(client, "coffee.mp4")
    same = {"first": coffee, "second": coffee, "verdict": "match"}
    assert "must differ" in client.post("/api/duplicates/verdict", json=same).json()["detail"]
    unknown = {"first": coffee, "second": 9999, "verdict": "match"}
    assert client.post("/api/duplicates/verdict", json=unknown).status_code == 404
    assert client.post("/api/duplicates/verdict", json={**same, "verdict": "maybe"}).status_code == 422
    assert client.post("/api/duplicates", json={"threshold": 0}).status_code == 422
    closed = connect(library.index, read_only=True)
    for address, body in (
        ("verdict", same),
        ("keep", {"video": coffee, "instead_of": []}),
    ):
        answer = closed.post(f"/api/duplicates/{address}", json=body)
        assert (answer.status_code, "--read-only" in answer.json()["detail"]) == (422, True)
    assert "Keep this one" not in closed.get("/duplicates").text


def test_many_groups_have_pages(library: Library) -> None:
    app = create_app(library.index, Settings(groups_a_page=1))
    assert isinstance(app, Guard)
    with TestClient(app, base_url="http://localhost") as client:
        find(client)
        site = app.inner.state.site
        found = site.found_groups
        site.found_groups = replace(found, groups=found.groups * 2)
        assert 'rel="next" href="/duplicates?page=2"' in client.get("/duplicates").text
        second = client.get("/duplicates?page=2").text
        assert "Group 2" in second
        assert "Group 1 " not in second
