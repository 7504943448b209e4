"""The map over HTTP: computed as a job, kept, and true to what is in the index."""

from __future__ import annotations

from pathlib import Path

from tests.web.conftest import Connect, Library, finish_job
from tests.web.synthetic import fill
from vidkin.index import Index


def test_the_map_is_computed_once_and_known_to_other_servers(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    assert 'id="points"' in client.get("/map").text
    ended = finish_job(client, client.post("/api/map", json={"method": "pca"}).json())
    assert ended["result"] == {"videos": 3, "method": "pca"}
    found = connect(library.index).get("/api/map").json()
    assert found["is_current"] is True
    names = [client.get(f"/api/videos/{video}").json()["name"] for video in found["videos"]]
    place = dict(zip(names, zip(found["x"], found["y"], strict=True), strict=True))
    # The copy is nearer to its original than the other video is.
    assert abs(place["coffee.mp4"][0] - place["copy.mp4"][0]) < abs(
        place["coffee.mp4"][0] - place["rocket & <b>.mp4"][0]
    )
    assert found["folders"] == [str(library.folder)]
    assert found["folder"] == [0, 0, 0]


def test_a_map_of_an_older_state_is_shown_without_what_is_gone(tmp_path: Path, connect: Connect) -> None:
    fill(tmp_path / "i.vidkin", 60)
    client = connect(tmp_path / "i.vidkin")
    assert client.get("/api/map").json() is None
    assert finish_job(client, client.post("/api/map", json={"method": "pca"}).json())["state"] == "done"
    assert len(client.get("/api/map").json()["videos"]) == 60
    with Index.open(tmp_path / "i.vidkin") as index:
        index.remove("/videos/07/video 00007.mp4")
    later = connect(tmp_path / "i.vidkin").get("/api/map").json()
    assert (len(later["videos"]), later["is_current"]) == (59, False)
    assert {len(later[name]) for name in ("x", "y", "cluster", "folder")} == {59}
    assert client.post("/api/map", json={"method": "tsne"}).status_code == 422
