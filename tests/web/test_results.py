"""One schema of results for ``--format json`` and for the API."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from tests.web.conftest import Connect, Library, finish_job, number_of
from vidkin.cli.app import app
from vidkin.index import Index, SerialExecutor


def printed(*words: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, words), "-f", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def documented(client: TestClient, name: str) -> set[str]:
    return set(client.get("/api/openapi.json").json()["components"]["schemas"][name]["properties"])


def check_same(client: TestClient, name: str, told: Any, answered: Any, *, of_page: set[str]) -> None:
    """All fields of ``--format json`` with their values, those of the page, and no others; as documented."""
    assert answered.keys() == told.keys() | of_page
    assert {field: answered[field] for field in told} == told
    assert documented(client, name) == answered.keys()


def test_match_and_segment_have_the_same_fields_in_library_and_api(library: Library, client: TestClient) -> None:
    told = printed("search", library.folder / "coffee.mp4", "-i", library.index, "-n", "1")["matches"][0]
    answer = client.post("/api/search", json={"video": number_of(client, "coffee.mp4"), "limit": 1})
    answered = answer.json()["matches"][0]
    segments, of_page = told.pop("segments"), answered.pop("segments")
    assert (told.pop("rank"), answered.pop("rank")) == (1, 1)
    assert answered.keys() == told.keys() | {"video"}
    assert {field: answered[field] for field in told} == told
    assert documented(client, "Match") == answered.keys() | {"rank", "segments"}
    for one, other in zip(segments, of_page, strict=True):
        check_same(client, "Segment", one, other, of_page={"part"})


def test_record_has_the_same_fields_in_library_and_api(library: Library, client: TestClient) -> None:
    told = printed("info", "--videos", "-i", library.index)["files"]
    answered = {video["id"]: video for video in client.get("/api/videos").json()["videos"]}
    assert len(told) == len(answered) == 4
    for record in told:
        del record["sound"]  # read for `info --videos` only: the tracks of each file
        # As seconds: nanoseconds are more than every reader of JSON keeps.
        modified = record.pop("mtime_ns") / 1e9
        of_page = {"modified_at", "name", "still", "thumbnail"}
        check_same(client, "VideoRecord", record, answered[record["id"]], of_page=of_page)
        assert answered[record["id"]]["modified_at"] == modified


@pytest.mark.thorough
def test_group_of_duplicates_has_the_same_fields_in_library_and_api(library: Library, client: TestClient) -> None:
    (told,) = printed("duplicates", "-i", library.index)["groups"]
    assert finish_job(client, client.post("/api/duplicates", json={}).json())["state"] == "done"
    (answered,) = client.get("/api/duplicates").json()["groups"]
    members, of_page = told.pop("members"), answered.pop("members")
    assert answered == {**told, **{name: answered[name] for name in ("key", "removable")}, "number": 1}
    assert documented(client, "DuplicateGroup") == answered.keys() | {"members"}
    extra = {"id", "compared_with_id", "name", "folder", "words", "spare", "pictures", "moments", "aligned", "parts"}
    extra |= {"reasons", "details", "evidence"}
    for one, other in zip(members, of_page, strict=True):
        check_same(client, "DuplicateMember", one, other, of_page=extra)


@pytest.mark.thorough
def test_shot_and_cut_have_the_same_fields_in_library_and_api(library: Library, client: TestClient) -> None:
    (told,) = printed("shots", library.folder / "coffee.mp4")["videos"]
    address = f"/api/videos/{number_of(client, 'coffee.mp4')}/shots"
    assert finish_job(client, client.post(address).json())["state"] == "done"
    answered = client.get(address).json()
    for name in ("path", "detector", "frames", "frame_rate", "cuts"):
        assert answered[name] == told[name]
    assert documented(client, "Cut") == {
        *("time", "frame", "kind", "confidence", "start", "end", "start_frame", "end_frame", "kind_confidence"),
        *("is_to_ground", "is_from_ground"),
        "moved_from",  # of the page alone, where people move cuts
    }
    for one, other in zip(told["shots"], answered["shots"], strict=True):
        check_same(client, "Shot", one, other, of_page={"thumbnail"})


def test_file_name_that_is_not_valid_unicode_survives_the_api(tmp_path: Path, connect: Connect) -> None:
    name = os.fsdecode(b"caf\xe9.mp4")
    (tmp_path / name).write_bytes(b"no video at all" * 50)
    with Index.open(tmp_path / "i.vidkin", extractor="classical", create=True) as index:
        index.add(tmp_path / name, executor=SerialExecutor(index.worker_spec))
    client = connect(tmp_path / "i.vidkin")
    (video,) = client.get("/api/videos").json()["videos"]
    assert (video["path"], video["name"]) == (str(tmp_path / name), "caf\N{REPLACEMENT CHARACTER}.mp4")
    assert "caf\N{REPLACEMENT CHARACTER}.mp4" in client.get(f"/videos/{video['id']}").text
    state = finish_job(client, client.post("/api/index", json={"paths": [str(tmp_path)]}).json())
    assert [file["path"] for file in state["result"]["files"]] == [str(tmp_path / name)]
