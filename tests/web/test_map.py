"""The map over HTTP: computed as a job, cached, and consistent with the index."""

from __future__ import annotations

from pathlib import Path

from tests.web.conftest import Connect, Library, finish_job, number_of
from tests.web.synthetic import fill
from vidkin.index import Index


def test_map_is_computed_once_and_shared_between_servers(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    assert 'id="points"' in client.get("/map").text
    ended = finish_job(client, client.post("/api/map", json={"method": "pca"}).json())
    assert ended["result"] == {"videos": 3, "points": 3, "method": "pca"}
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


def test_outdated_map_is_shown_without_removed_videos(tmp_path: Path, connect: Connect) -> None:
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
    assert client.post("/api/map", json={"method": "isomap"}).status_code == 422


def test_map_of_shots_detects_shots_and_follows_corrections(own_library: Library, connect: Connect) -> None:
    client = connect(own_library.index)
    assert client.get("/api/map", params={"of": "shots"}).json() is None
    assert client.get("/api/map/shots").json() == {"known": 0, "unknown": 3}
    wish = {"of": "shots", "method": "pca"}
    refused = finish_job(client, client.post("/api/map", json={**wish, "find_shots": False}).json())
    assert refused["error"] == "no shots are known yet; detect the shots of some videos first"
    ended = finish_job(client, client.post("/api/map", json=wish).json())
    assert ended["result"] == {"videos": 3, "points": 3, "method": "pca"}  # pans: each is one shot
    assert client.get("/api/map/shots").json() == {"known": 3, "unknown": 0}
    found = client.get("/api/map", params={"of": "shots"}).json()
    coffee = number_of(client, "coffee.mp4")
    position = found["videos"].index(coffee)
    assert (found["starts"][position], found["ends"][position]) == (0, 12)
    assert (found["is_current"], found["total"]) == (True, 3)
    assert client.get("/api/map").json() is None  # the map of videos is separate
    client.put(f"/api/videos/{coffee}/shots", json={"cuts": [{"time": 5.0}]}).raise_for_status()
    assert client.get("/api/map", params={"of": "shots"}).json()["is_current"] is False
    finish_job(client, client.post("/api/map", json=wish).json())
    found = client.get("/api/map", params={"of": "shots"}).json()
    assert sorted(zip(found["starts"], found["ends"], strict=True)) == [(0, 5), (0, 8), (0, 12), (5, 12)]
    assert sorted(position for some in found["central"] for position in some) == [0, 1, 2, 3]
    assert 'aria-current="page">shots' in client.get("/map?of=shots").text


def test_damaged_map_is_recomputed(own_library: Library, connect: Connect) -> None:
    client = connect(own_library.index)
    finish_job(client, client.post("/api/map", json={"method": "pca"}).json())
    (path,) = [path for path in (own_library.index / "web-cache").rglob("*.json") if b'"central"' in path.read_bytes()]
    whole = path.read_text()
    for damage in (
        whole[:-20],
        "[]",
        whole.replace('"points":', '"points": ["a"], "clusters":'),
        whole.replace('"central": [', '"central": [[{}],'),
    ):
        path.write_text(damage)
        assert client.get("/api/map").json() is None
        assert not path.exists()
