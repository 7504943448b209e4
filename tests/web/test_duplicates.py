"""The duplicates page and its API, on real copies."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.support.videos import encode, pan
from tests.web.conftest import Connect, Library, finish_job, number_of
from vidkin.files import read_plan
from vidkin.index import Index, SerialExecutor
from vidkin.web import Guard, Settings, create_app


def find(client: TestClient, **wish: object) -> None:
    """Look for duplicates and wait until they are found."""
    state = finish_job(client, client.post("/api/duplicates", json=wish).json())
    assert state["state"] == "done", state["error"]


def test_page_says_what_to_do_before_the_first_search(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    end = time.monotonic() + 60
    while "Reading stored comparisons" in (said := client.get("/duplicates").text):
        assert time.monotonic() < end
        time.sleep(0.2)
    assert "Find the copies in this index" in said
    assert client.get("/api/duplicates").json()["searched"] is False
    assert client.get("/api/duplicates.csv").text.count("\n") == 1  # the headings


def test_groups_show_the_best_copy_with_the_reason(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    find(client)
    found = client.get("/api/duplicates").json()
    assert (found["total"], found["copies"], found["spare"]) == (1, 1, 1)
    best, copy = found["groups"][0]["members"]
    assert (best["name"], best["best"]) == ("coffee.mp4", True)
    assert best["words"] == f"keep ({found['groups'][0]['reason']})"
    assert (copy["name"], copy["spare"], copy["compared_with_id"]) == ("copy.mp4", True, best["id"])
    # Of 12 s that both show, at the same moments to a tenth, although the segment begins between two samples.
    times = [[float(moment.removeprefix("0:")) for moment in member["moments"]] for member in (best, copy)]
    assert times[0] == pytest.approx([1.8, 6.0, 10.2], abs=0.2)
    assert times[1] == pytest.approx(times[0], abs=0.11)
    assert [part["rate"] for part in copy["parts"]] == [1.0]
    assert client.get(copy["pictures"][0]).headers["content-type"] == "image/webp"
    page = client.get("/duplicates").text
    assert "1 group, 1 copy besides the best ones" in page
    assert 'href="/api/duplicates/plan.json"' in page
    rows = list(csv.DictReader(io.StringIO(client.get("/api/duplicates.csv").text)))
    assert [(row["best"], os.path.basename(row["path"])) for row in rows] == [
        ("yes", "coffee.mp4"),
        ("no", "copy.mp4"),
    ]


def test_plan_contains_proven_files_and_changes_nothing(own_library: Library, connect: Connect, tmp_path: Path) -> None:
    library = own_library
    client = connect(library.index)
    find(client)
    early = client.get("/api/duplicates/plan.json")
    assert (early.status_code, "1 file may be removable and must be proven first" in early.json()["detail"]) == (
        409,
        True,
    )
    assert "1 of them may be removable" in client.get("/duplicates").text
    told = finish_job(client, client.post("/api/duplicates/prove").json())
    assert (told["result"]["proven"], told["result"]["skipped"]) == (1, [])
    found = client.get("/api/duplicates").json()
    copy = found["groups"][0]["members"][1]
    assert (copy["is_proven"], copy["kept_by"]) == (True, str(library.folder / "coffee.mp4"))
    assert (found["proven"], found["proven_bytes"], found["spare"]) == (1, copy["size"], 1)
    assert "can be removed without loss" in client.get("/duplicates").text
    answer = client.get("/api/duplicates/plan.json")
    assert answer.headers["content-disposition"] == 'attachment; filename="plan.json"'
    keep = answer.json()["groups"][0]["keep"]
    assert (keep["size"], keep["modified"]) == (os.path.getsize(keep["path"]), str(os.stat(keep["path"]).st_mtime_ns))
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
def test_verdicts_are_stored_and_update_the_groups(own_library: Library, connect: Connect) -> None:
    library = own_library
    client = connect(library.index)
    find(client)
    coffee, copy = number_of(client, "coffee.mp4"), number_of(client, "copy.mp4")
    pair = {"first": copy, "second": coffee}
    # Keep the other one: known to the index, whatever the rule; the groups follow at once.
    kept = client.post("/api/duplicates/keep", json={"video": copy, "instead_of": [coffee]})
    assert kept.status_code == 200, kept.text
    group = client.get("/api/duplicates").json()["groups"][0]
    assert (group["members"][0]["name"], group["reason"]) == ("copy.mp4", "your choice")
    assert group["savings"] == (library.folder / "coffee.mp4").stat().st_size
    # And back.
    client.post("/api/duplicates/keep", json={"video": coffee, "instead_of": [copy]})
    assert client.get("/api/duplicates").json()["savings"] == (library.folder / "copy.mp4").stat().st_size
    # Not a match: no group any more; taking it back brings it again.
    rejected = client.post("/api/duplicates/verdict", json={**pair, "verdict": "not a match"})
    assert rejected.json() == {"count": 1}
    assert (client.get("/api/duplicates").json()["total"], client.get("/api/duplicates").json()["savings"]) == (0, 0)
    assert "No duplicates found." in client.get("/duplicates").text
    assert client.post("/api/duplicates/verdict", json={**pair, "verdict": "forget"}).json() == {"count": 0}
    assert client.get("/api/duplicates").json()["total"] == 1
    assert client.post("/api/duplicates/verdict", json={**pair, "verdict": "match"}).json() == {"count": 1}
    assert client.get("/api/duplicates").json()["groups"][0]["members"][1]["score"] == 1.0
    table = json.loads((library.index / "decisions.json").read_text(encoding="utf-8"))
    assert [row["verdict"] for row in table["decisions"]] == ["match"]
    assert [os.path.basename(row["path"]) for row in table["preferred"]] == ["coffee.mp4"]


def test_invalid_decisions_are_refused(library: Library, connect: Connect) -> None:
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
        assert (answer.status_code, answer.json()["code"]) == (403, "read-only")
    assert "Keep this one" not in closed.get("/duplicates").text


def test_many_groups_are_paged_filtered_and_sorted(library: Library) -> None:
    app = create_app(library.index, Settings(groups_a_page=1))
    assert isinstance(app, Guard)
    with TestClient(app, base_url="http://localhost") as client:
        find(client)
        groups = app.inner.state.site.groups
        (group,) = groups.found.groups
        doubted = replace(group, members=(group.best, replace(group.members[1], doubt="little detail")))
        groups.found = replace(groups.found, groups=(doubted, group))
        assert 'rel="next" href="/duplicates?page=2"' in client.get("/duplicates").text
        assert "Group 2" in client.get("/duplicates?page=2").text
        figures = [client.get(f"/api/duplicates?show={show}").json() for show in ("all", "spare", "doubtful", "other")]
        assert [(each["total"], each["spare"]) for each in figures] == [(2, 1), (1, 1), (1, 0), (0, 0)]
        assert client.get("/api/duplicates?q=COFFEE").json()["total"] == 2
        assert client.get("/api/duplicates?q=coffee+tea").json()["total"] == 0
        first = client.get("/api/duplicates?sort=savings").json()["groups"][0]
        assert first["savings"] == group.savings


@pytest.mark.thorough
def test_groups_found_by_a_command_appear_at_once(compared_library: Library, tmp_path: Path, connect: Connect) -> None:
    library = compared_library
    with Index.open(library.index) as index:
        (told,) = index.duplicates()
        # Grouping alone compares no pairs; it only counts the uncompared videos.
        assert index.uncompared() == (0, 3)
    client = connect(library.index)
    found = client.get("/api/duplicates").json()
    assert [member["path"] for member in found["groups"][0]["members"]] == [member.path for member in told.members]
    assert (found["searched"], found["uncompared"], found["videos"]) == (True, 0, 3)
    assert "1 group, 1 copy besides the best ones" in client.get("/duplicates").text
    # A verdict that a command gives is in the page, too, and so is a file that went away.
    with Index.open(library.index) as index:
        index.reject(told.members[0].path, told.members[1].path)
    assert client.get("/api/duplicates").json()["total"] == 0
    with Index.open(library.index) as index:
        index.forget_decision(told.members[0].path, told.members[1].path)
    assert client.get("/api/duplicates").json()["total"] == 1
    os.rename(told.members[1].path, tmp_path / "away.mp4")
    assert client.get("/api/duplicates").json()["total"] == 0
    os.rename(tmp_path / "away.mp4", told.members[1].path)
    assert client.get("/api/duplicates").json()["total"] == 1


def test_preview_groups_comparisons_without_calling_files_removable(own_library: Library) -> None:
    library = own_library
    with Index.open(library.index) as index:
        assert index.duplicates(known_only=True) == []
        assert index.uncompared() == (3, 3)
        index.duplicates()
        stored = library.index / "comparisons.json"
        before = stored.read_bytes()
        (group,) = index.duplicates(known_only=True, read_files=False, prove=False)
        assert [(member.is_spare, member.is_proven) for member in group.members] == [(False, False), (True, False)]
        assert stored.read_bytes() == before


@pytest.mark.thorough
def test_kept_file_follows_the_preference(own_library: Library, connect: Connect) -> None:
    client = connect(own_library.index)
    kept = {}
    for prefer in ("best", "age", "newest", "size", "longest"):
        find(client, prefer=prefer)
        found = client.get("/api/duplicates").json()
        assert found["wish"]["prefer"] == prefer
        kept[prefer] = (found["groups"][0]["members"][0]["name"], found["groups"][0]["reason"])
        assert f'<option value="{prefer}" selected>' in client.get("/duplicates").text
    # The copy was made after the film; both are as long.
    assert kept["newest"] == ("copy.mp4", "newest")
    assert kept["age"] == ("coffee.mp4", "oldest")
    assert kept["size"] == ("coffee.mp4", "largest file")
    assert kept["best"][0] == kept["longest"][0] == "coffee.mp4"
    assert client.post("/api/duplicates", json={"prefer": "smallest"}).status_code == 422


@pytest.mark.thorough
def test_member_lists_the_traits_that_differ(own_library: Library, connect: Connect) -> None:
    encode(own_library.folder / "half rate.mp4", list(pan("coffee", 120, width=144, height=96))[::2], rate=5)
    with Index.open(own_library.index) as index:
        index.add(own_library.folder, executor=SerialExecutor(index.worker_spec))
    client = connect(own_library.index)
    find(client)
    (group,) = client.get("/api/duplicates").json()["groups"]
    assert {member["name"]: member["details"] for member in group["members"]} == {
        "coffee.mp4": ["10 frames per second"],
        "copy.mp4": ["10 frames per second"],
        "half rate.mp4": ["5 frames per second"],
    }
    assert [member["traits"]["frame_rate"] for member in group["members"]].count(10.0) == 2
    assert "5 frames per second" in client.get("/duplicates").text


@pytest.mark.thorough
def test_columns_sort_groups_and_rules_select_spare_files(compared_library: Library, connect: Connect) -> None:
    library = compared_library
    for name, count in (("cat.mp4", 60), ("dog.mp4", 100)):
        encode(library.folder / name, pan("chelsea" if name == "cat.mp4" else "astronaut", count))
        (library.folder / "old").mkdir(exist_ok=True)
        shutil.copy(library.folder / name, library.folder / "old" / name)
    with Index.open(library.index) as index:
        index.add(library.folder, executor=SerialExecutor(index.worker_spec))
        index.duplicates()
    client = connect(library.index)

    def lengths(**order: str) -> list[float]:
        groups = client.get("/api/duplicates", params=order).json()["groups"]
        return [group["members"][1]["duration"] for group in groups]

    assert lengths(sort="length") == [6.0, 10.0, 12.0]
    assert lengths(sort="length", descending="true") == [12.0, 10.0, 6.0]
    for sort in ("size", "pixels", "rate", "sound", "date", "folder", "reason"):
        assert sorted(lengths(sort=sort)) == [6.0, 10.0, 12.0]
    assert 'aria-sort="descending"' in client.get("/duplicates?sort=size&descending=yes").text
    spare = client.get("/api/duplicates/spare").json()
    assert len(spare) == 3
    in_folder = client.get("/api/duplicates/spare", params={"folder": str(library.folder / "old")}).json()
    listed = {str(video["id"]): video for video in client.get("/api/videos").json()["videos"]}
    assert {os.path.dirname(listed[number]["path"]) for number in in_folder} <= {str(library.folder / "old")}
    assert len(in_folder) < 3
    sizes = sorted(spare.values())
    assert list(client.get("/api/duplicates/spare", params={"below": sizes[1]}).json().values()) == sizes[:1]
    assert client.get("/api/duplicates/spare", params={"folder": str(library.folder / "ol")}).json() == {}
