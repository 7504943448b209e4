"""Several videos at once: lists, copies, shots, and records that are removed; by the API."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.web.conftest import Connect, Library, finish_job, make_library, number_of
from vidkin.index import Index


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library that these tests write to."""
    return make_library(tmp_path_factory.mktemp("selection"))


def names(client: TestClient, **words: object) -> list[str]:
    answer = client.get("/api/videos", params=words)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    return [video["name"] for video in answer.json()["videos"]]


def test_list_is_filled_used_as_filter_renamed_exported_and_deleted(own: Library, connect: Connect) -> None:
    client = connect(own.index)
    coffee, rocket = (number_of(client, name) for name in ("coffee.mp4", "rocket & <b>.mp4"))
    (made,) = client.post("/api/lists", json={"name": "to cut", "add": [coffee, rocket]}).json()
    assert made == {"name": "to cut", "videos": [coffee, rocket], "absent": 0}
    assert names(client, list="to cut") == ["coffee.mp4", "rocket & <b>.mp4"]
    assert names(client, list="no such list") == []
    (left,) = client.post("/api/lists", json={"name": "to cut", "remove": [coffee]}).json()
    assert left["videos"] == [rocket]
    client.post("/api/lists/rename", json={"name": "to cut", "new_name": "cut/later"})
    exported = client.get("/api/lists.json", params={"name": "cut/later"})
    assert exported.headers["content-disposition"] == 'attachment; filename="cut_later.json"'
    (video,) = exported.json()["videos"]
    assert (video["path"], "mtime_ns" in video) == (str(own.folder / "rocket & <b>.mp4"), False)
    assert video["modified_at"] == pytest.approx(os.path.getmtime(video["path"]), abs=1e-3)
    table = client.get("/api/lists.csv", params={"name": "cut/later"}).text.splitlines()
    assert table[0] == "path,duration,size,width,height,codec,content_hash"
    assert table[1].startswith(f"{own.folder / 'rocket & <b>.mp4'},8.0,")
    with Index.open(own.index) as index:
        (same,) = index.lists()
        assert (same.name, same.paths) == ("cut/later", (str(own.folder / "rocket & <b>.mp4"),))
        index.change_list("cut/later", add=[own.folder / "copy.mp4"])
    # What another program wrote is seen at once.
    assert len(client.get("/api/lists").json()[0]["videos"]) == 2
    assert client.post("/api/lists/rename", json={"name": "cut/later", "new_name": None}).json() == []
    assert client.get("/api/lists.csv", params={"name": "cut/later"}).status_code == 404


@pytest.mark.thorough
def test_copies_and_shots_of_a_selection_are_found(own: Library, connect: Connect) -> None:
    client = connect(own.index)
    coffee, rocket, broken = (number_of(client, name) for name in ("coffee.mp4", "rocket & <b>.mp4", "broken.mp4"))
    ended = finish_job(client, client.post("/api/videos/copies", json={"videos": [coffee, rocket, broken]}).json())
    assert ended["state"] == "done", ended
    (found,) = ended["result"]["found"]
    assert (found["name"], [copy["name"] for copy in found["copies"]]) == ("coffee.mp4", ["copy.mp4"])
    assert [Path(each["path"]).name for each in ended["result"]["failed"]] == ["broken.mp4"]
    assert names(client, shots="yes") == []
    ended = finish_job(client, client.post("/api/shots", json={"videos": [rocket, broken]}).json())
    assert (ended["state"], ended["result"]["videos"]) == ("done", 1), ended
    assert [Path(each["path"]).name for each in ended["result"]["failed"]] == ["broken.mp4"]
    assert names(client, shots="yes") == ["rocket & <b>.mp4"]
    assert "coffee.mp4" in names(client, shots="no")


@pytest.mark.thorough
def test_removing_records_keeps_their_files(tmp_path: Path, connect: Connect) -> None:
    own = make_library(tmp_path)
    client = connect(own.index)
    chosen = [number_of(client, name) for name in ("copy.mp4", "broken.mp4")]
    ended = finish_job(client, client.post("/api/videos/remove", json={"videos": chosen}).json())
    assert ended["result"]["removed"] == 2
    assert names(client) == ["coffee.mp4", "rocket & <b>.mp4"]
    assert (own.folder / "copy.mp4").is_file()
    assert client.post("/api/videos/remove", json={"videos": chosen}).status_code == 404
    # Named by its path, a file comes back.
    back = client.post("/api/index", json={"paths": [str(own.folder / "copy.mp4")]}).json()
    assert finish_job(client, back)["result"]["added"] == 1


def test_read_only_server_changes_no_list_and_lists_no_folder(library: Library, connect: Connect) -> None:
    client = connect(library.index, read_only=True)
    for path, body in (
        ("/api/lists", {"name": "a"}),
        ("/api/lists/rename", {"name": "a", "new_name": "b"}),
        ("/api/videos/remove", {"videos": [1]}),
    ):
        assert "--read-only" in client.post(path, json=body).json()["detail"]
    assert client.get("/api/computer/folders").status_code == 403
    page = client.get("/").text
    assert "data-star" not in page
    assert 'id="removing"' not in page


def test_only_folders_of_the_user_and_of_the_index_are_listed(
    library: Library, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home / "Videos" / "2024", home / ".secret", elsewhere / "inside"):
        folder.mkdir(parents=True)
    (home / "link").symlink_to(elsewhere)
    (home / "file.mp4").write_bytes(b"")
    monkeypatch.setenv("HOME", str(home))
    client = connect(library.index)
    begin = client.get("/api/computer/folders").json()
    roots = [path for _, path in begin["folders"]]
    assert begin["parent"] is None
    assert {str(home), str(library.folder)} <= set(roots)
    at_home = client.get("/api/computer/folders", params={"path": str(home)}).json()
    assert at_home["folders"] == [["Videos", str(home / "Videos")]]
    assert at_home["parent"] == ""
    videos = client.get("/api/computer/folders", params={"path": str(home / "Videos")}).json()
    assert (videos["folders"], videos["parent"]) == ([["2024", str(home / "Videos" / "2024")]], str(home))
    for path in (elsewhere, home / "link", home / ".." / "elsewhere", "/etc", "relative", home / "none", "/a\0b"):
        refused = client.get("/api/computer/folders", params={"path": str(path)})
        assert refused.status_code == 422, path
        assert "type the path of a folder to add it" in refused.json()["detail"]


def test_exported_lists_are_readable_by_programs(own: Library, connect: Connect) -> None:
    client = connect(own.index)
    client.post("/api/lists", json={"name": "=cmd|x", "add": [number_of(client, "coffee.mp4")]})
    document = json.loads(client.get("/api/lists.json", params={"name": "=cmd|x"}).content)
    assert document["name"] == "=cmd|x"
    assert document["absent"] == 0


def test_damaged_list_file_only_affects_lists(own_library: Library, connect: Connect) -> None:
    (own_library.index / "lists.json").write_text('{"lists": 7}')
    client = connect(own_library.index)
    page = client.get("/")
    assert page.status_code == 200
    assert "lists.json is damaged" in page.text
    assert "coffee.mp4" in page.text
    answer = client.post("/api/lists", json={"name": "new", "add": [number_of(client, "coffee.mp4")]})
    assert "is damaged" in answer.json()["detail"]
    assert (own_library.index / "lists.json").read_text() == '{"lists": 7}'
