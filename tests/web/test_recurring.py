"""Recurring segments over HTTP: found by a job, corrected, named, rejected, and exported as files."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.seasons import shots, write_season
from tests.support.sounds import write_song_season
from tests.support.videos import encode
from tests.web.conftest import Connect, finish_job
from vidkin.index import Index, SerialExecutor


def make_season(root: Path) -> Path:
    """An index of a season of two episodes in ``root/season``."""
    write_season(root / "season")
    with Index.open(root / "i.vidkin", create=True) as index:
        index.add(root / "season", executor=SerialExecutor(index.worker_spec))
    return root / "i.vidkin"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return make_season(tmp_path)


def find(client: TestClient, **wish: object) -> list[dict[str, Any]]:
    job = finish_job(client, client.post("/api/recurring", json=wish).json())
    assert job["state"] == "done", job["error"]
    groups: list[dict[str, Any]] = client.get("/api/recurring").json()["groups"]
    return groups


def decide(client: TestClient, group: dict[str, Any], **body: object) -> list[dict[str, Any]]:
    answer = client.put(f"/api/recurring/groups/{group['key']}", json=body)
    assert answer.status_code == 200, answer.text
    groups: list[dict[str, Any]] = answer.json()["groups"]
    return groups


def ends(group: dict[str, Any]) -> list[tuple[float, float]]:
    return [(round(one["start"], 2), round(one["end"], 2)) for one in group["occurrences"]]


def test_edited_ends_and_names_are_stored_and_exported(index: Path, connect: Connect) -> None:
    client = connect(index)
    page = client.get("/recurring").text
    assert "Recurring segments of these 2 videos have not been searched for yet." in page
    assert "Export chapters, skip lists and tables here once recurring segments are found." in page
    assert "/api/recurring/export/" not in page
    (group,) = find(client)
    assert "/api/recurring/export/csv" in client.get("/recurring").text
    assert (group["kind"], ends(group)) == ("opening", [(4.5, 11.0), (2.8, 9.3)])
    wanted = [{"start": 4.0, "end": 11.0}, {"start": 2.8, "end": 9.0}]
    (decided,) = decide(client, group, verdict="recurs", name=" The  song; part=1 ", occurrences=wanted)
    assert (decided["name"], decided["is_confirmed"]) == ("The song; part=1", True)
    assert ends(decided) == [(4.0, 11.0), (2.8, 9.0)]
    # The command reads the same decision.
    with Index.open(index, read_only=True) as opened:
        (found,) = opened.recurring()
    assert [(one.start, one.end) for one in found.occurrences] == [(4.0, 11.0), (2.8, 9.0)]
    assert found.name == "The song; part=1"

    page = client.get("/recurring").text
    assert re.findall(r"/api/recurring/export/(\w+)", page) == ["chapters", "edl", "csv", "json"]
    assert (
        "form must be one of 'chapters', 'edl', 'csv', 'json', got 'html'"
        in client.get("/api/recurring/export/html").text
    )
    table = list(csv.DictReader(io.StringIO(client.get("/api/recurring/export/csv").text)))
    assert [(row["start"], row["name"]) for row in table] == [("4.000", found.name), ("2.800", found.name)]
    assert client.get("/api/recurring/export/json").json()["groups"][0]["name"] == found.name
    with zipfile.ZipFile(io.BytesIO(client.get("/api/recurring/export/edl").content)) as archive:
        assert archive.read("e1.edl") == b"4.000\t11.000\t3\n"
    with zipfile.ZipFile(io.BytesIO(client.get("/api/recurring/export/chapters").content)) as archive:
        assert sorted(archive.namelist())[:2] == ["e1.mp4.chapters.txt", "e1.mp4.chapters.xml"]
        assert b"<ChapterString>The song; part=1</ChapterString>" in archive.read("e1.mp4.chapters.xml")
        assert rb"title=The song\; part\=1" in archive.read("e1.mp4.chapters.txt")
    assert client.get("/api/recurring/export/exe").status_code == 422


@pytest.mark.thorough
def test_rejected_group_is_hidden_until_undone(index: Path, connect: Connect) -> None:
    client = connect(index)
    (group,) = find(client)
    assert decide(client, group, verdict="does not recur") == []
    with Index.open(index, read_only=True) as opened:
        assert opened.recurring() == []
    (rejected,) = client.get("/api/recurring").json()["rejected"]
    assert "Marked as not recurring: 1 group" in client.get("/recurring").text
    (again,) = decide(client, rejected, verdict="forget")
    assert ends(again) == ends(group)
    # A group of before, and nothing to take back.
    assert client.put("/api/recurring/groups/0000", json={"verdict": "recurs"}).status_code == 409
    answer = client.put(f"/api/recurring/groups/{again['key']}", json={"verdict": "forget"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "there is no decision about this group")


@pytest.mark.thorough
def test_new_episode_joins_a_confirmed_group(index: Path, connect: Connect, tmp_path: Path) -> None:
    client = connect(index)
    (group,) = find(client)
    wanted = [{"start": 4.0, "end": 11.0}, {"start": 2.8, "end": 9.3}]
    decide(client, group, verdict="recurs", name="Song", occurrences=wanted)
    third = [*shots(("brick", 3, 50)), *shots(("coffee", 0, 25), ("rocket", 0, 25), ("coffee", 3, 15))]
    encode(tmp_path / "season" / "e3.mp4", [*third, *shots(("chelsea", 9, 40))], rate=10)
    with Index.open(index) as opened:
        opened.add(tmp_path / "season", executor=SerialExecutor(opened.worker_spec))
    (joined,) = find(client)
    assert (joined["name"], ends(joined)) == ("Song", [(4.0, 11.0), (2.8, 9.3), (5.0, 11.5)])
    # An occurrence that was found with the group but does not belong to it stays out.
    wanted = [
        *({"start": one["start"], "end": one["end"]} for one in joined["occurrences"][:2]),
        {"start": 5, "end": 11.5, "belongs": False},
    ]
    (without,) = decide(client, joined, verdict="recurs", name="Song", occurrences=wanted)
    assert ends(without) == [(4.0, 11.0), (2.8, 9.3)]


@pytest.mark.thorough
def test_invalid_edits_are_refused_with_a_reason(index: Path, connect: Connect) -> None:
    client = connect(index)
    (group,) = find(client)
    address = f"/api/recurring/groups/{group['key']}"
    for occurrences, words in (
        ([{"start": 4.0, "end": 11.0}], "occurrences must be 2, as many as the group has, got 1"),
        ([{"start": 4.0, "end": 11.0}, {"start": 9.0, "end": 2.0}], "must end after it starts"),
        ([{"start": 4.0, "end": 11.0}, {"start": 90.0, "end": 92.0}], "start must be before the end of"),
        ([{"start": 4.0, "end": 11.0}, {"start": 2.0, "end": 9.0, "belongs": False}], "at least two parts must stay"),
    ):
        answer = client.put(address, json={"verdict": "recurs", "occurrences": occurrences})
        assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text
    closed = connect(index, read_only=True)
    answer = closed.put(address, json={"verdict": "does not recur"})
    assert (answer.status_code, "--read-only" in answer.json()["detail"]) == (403, True)
    assert "decisions.json" not in {path.name for path in index.iterdir()}


def test_single_video_is_explained_in_a_sentence(connect: Connect, tmp_path: Path) -> None:
    encode(tmp_path / "a.mp4", shots(("coffee", 0, 30)))
    with Index.open(tmp_path / "i.vidkin", create=True) as opened:
        opened.add(tmp_path / "a.mp4", executor=SerialExecutor(opened.worker_spec))
    client = connect(tmp_path / "i.vidkin")
    assert find(client) == []
    assert "There is only one video." in client.get("/recurring").text
    assert json.loads(client.get("/api/recurring/export/json").text)["groups"] == []


def make_song_season(root: Path) -> Path:
    """An index of three files in ``root/songs`` whose openings have one song and other pictures."""
    write_song_season(root / "songs")
    with Index.open(root / "songs.vidkin", create=True) as index:
        index.add(root / "songs", executor=SerialExecutor(index.worker_spec))
    return root / "songs.vidkin"


@pytest.mark.thorough
def test_song_over_different_images_is_found_by_sound_and_confirmed(connect: Connect, tmp_path: Path) -> None:
    client = connect(make_song_season(tmp_path))
    assert '<select name="by"' in client.get("/recurring").text
    assert find(client) == find(client, by="both") == []
    (group,) = find(client, by="sound")
    assert (group["found_by"], len(group["occurrences"])) == ("sound", 3)
    assert group["words"].endswith("in 3 of 3 files, matched by sound")
    assert client.get("/api/recurring").json()["wish"]["by"] == "sound"
    assert '<option value="sound" selected>' in client.get("/recurring").text
    # The user's decision is kept, and the kind of evidence as well.
    (named,) = decide(client, group, verdict="recurs", name="Song")
    assert (named["name"], named["found_by"], named["is_confirmed"]) == ("Song", "sound", True)
    assert decide(client, named, verdict="does not recur") == []
    assert find(client, by="either") == []
    (rejected,) = client.get("/api/recurring").json()["rejected"]
    (again,) = decide(client, rejected, verdict="forget")
    assert ends(again) == ends(group)
    # A search inside single files compares pictures only, and `by` must be one of the known values.
    job = finish_job(client, client.post("/api/recurring", json={"by": "sound", "inside": True}).json())
    assert job["error"] == "with inside, by must be 'picture', got 'sound'"
    assert client.post("/api/recurring", json={"by": "smell"}).status_code == 422


@pytest.mark.thorough
def test_index_without_sound_offers_no_choice_of_evidence(connect: Connect, index: Path) -> None:
    with Index.open(index) as opened:
        opened.use_sound(False)
    client = connect(index)
    assert '<select name="by"' not in client.get("/recurring").text
    job = finish_job(client, client.post("/api/recurring", json={"by": "either"}).json())
    assert job["error"] == (
        "by='either' needs audio fingerprints, which the index does not have; "
        "add sound with `vidkin index PATH --sound`"
    )
