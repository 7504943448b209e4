"""Shots as files: a new clip of chosen ones, and a file of each in a folder."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from tests.support.folders import made_in
from tests.support.videos import encode, pan
from tests.web.conftest import Connect, Library, finish_job, number_of
from vidkin.index import Index, SerialExecutor
from vidkin.media import probe, read_frames


@pytest.fixture
def film(tmp_path: Path, connect: Connect) -> tuple[TestClient, int, Path]:
    """A client, the number of a film of three shots of 2 s at 10 frames a second, and the film."""
    frames = [*pan("coffee", 20), *pan("rocket", 20), *pan("chelsea", 20)]
    path = encode(tmp_path / "film.mp4", frames, options={"preset": "medium"})
    with Index.open(tmp_path / "i.vidkin", extractor="classical", create=True) as index:
        index.add(path, executor=SerialExecutor(index.worker_spec))
    client = connect(tmp_path / "i.vidkin")
    number = number_of(client, "film.mp4")
    finish_job(client, client.post(f"/api/videos/{number}/shots").json())
    cuts = [{"time": 2.0}, {"time": 4.0}]
    assert len(client.put(f"/api/videos/{number}/shots", json={"cuts": cuts}).json()["shots"]) == 3
    return client, number, path


def test_clip_has_exactly_the_frames_of_the_chosen_shots(film: tuple[TestClient, int, Path], tmp_path: Path) -> None:
    client, number, path = film
    ended = finish_job(client, client.post(f"/api/videos/{number}/clips", json={"shots": [3, 1]}).json())
    assert ended["state"] == "done", ended
    answer = client.get(ended["result"]["address"])
    assert answer.headers["content-disposition"] == 'attachment; filename="film-shots.mp4"'
    (tmp_path / "clip.mp4").write_bytes(answer.content)
    made, original = read_frames(tmp_path / "clip.mp4", rate=None), read_frames(path, rate=None)
    expected = np.concatenate([original.images[:20], original.images[40:]]).astype(float)
    assert len(made.images) == 40
    assert made.timestamps == pytest.approx(np.arange(40) / 10, abs=1e-3)
    # Each frame is the right one: nearer to its own than to the one before it.
    own = np.abs(made.images - expected).mean(axis=(1, 2, 3))
    before = np.abs(made.images[1:] - expected[:-1]).mean(axis=(1, 2, 3))
    assert own.max() < 8
    assert (own[1:] < before).all()


def test_shots_become_files_in_a_new_folder_without_replacing_any(
    film: tuple[TestClient, int, Path], tmp_path: Path
) -> None:
    client, number, _ = film
    ended = finish_job(
        client, client.post(f"/api/videos/{number}/clips", json={"folder": str(tmp_path / "shots")}).json()
    )
    assert ended["state"] == "done", ended
    files = sorted(made_in(tmp_path / "shots"))
    assert [file.name for file in files] == ["film-001.mp4", "film-002.mp4", "film-003.mp4"]
    assert [round(probe(file).duration, 1) for file in files] == [2.0, 2.0, 2.0]
    again = client.post(f"/api/videos/{number}/clips", json={"folder": str(tmp_path / "shots")})
    assert again.status_code == 422
    assert "is not empty; choose a new" in again.json()["detail"]
    assert client.post(f"/api/videos/{number}/clips", json={"folder": "relative"}).status_code == 422


def test_nonexistent_shots_are_refused(film: tuple[TestClient, int, Path]) -> None:
    client, number, _ = film
    refused = client.post(f"/api/videos/{number}/clips", json={"shots": [4]})
    assert refused.json()["detail"] == "shots of this video are numbered from 1 to 3, got 4"
    assert client.get(f"/videos/{number}/clip?shot=2").status_code == 404


@pytest.mark.thorough
def test_shots_of_several_videos_become_files_in_one_folder_per_video(
    film: tuple[TestClient, int, Path], tmp_path: Path
) -> None:
    client, number, _ = film
    other = tmp_path / "other"
    other.mkdir()
    encode(other / "film.mp4", [*pan("chelsea", 20), *pan("rocket", 15)])  # the same name, shots not known
    (other / "broken.mp4").write_bytes(b"no video at all" * 50)
    Image.fromarray(next(pan("coffee", 1))).save(other / "still.png")
    with Index.open(tmp_path / "i.vidkin") as index:
        index.add(other, images=True, executor=SerialExecutor(index.worker_spec))
    numbers: dict[str, int] = {}
    end = time.monotonic() + 10
    while len(numbers) != 4 and time.monotonic() < end:  # a listing may be a second old
        numbers = {video["path"]: video["id"] for video in client.get("/api/videos").json()["videos"]}
    assert len(numbers) == 4
    body = {"videos": [number, *(each for each in numbers.values() if each != number)], "folder": str(tmp_path / "out")}
    ended = finish_job(client, client.post("/api/clips", json=body).json())
    assert ended["state"] == "done", ended
    assert ended["title"] == "Split 4 videos into shots"
    result = ended["result"]
    assert (result["videos"], result["files"], result["folder"]) == (2, 5, str(tmp_path / "out"))
    causes = {Path(each["path"]).name: each["cause"] for each in result["failed"]}
    assert causes["still.png"] == "a photograph has no shots; select videos"
    assert "broken.mp4" in causes["broken.mp4"]
    second = f"film-{numbers[str(other / 'film.mp4')]}"
    written = {each.name: sorted(file.name for file in made_in(each)) for each in (tmp_path / "out").iterdir()}
    assert written == {
        "film": ["film-001.mp4", "film-002.mp4", "film-003.mp4"],
        second: ["film-001.mp4", "film-002.mp4"],
    }
    assert round(probe(tmp_path / "out" / second / "film-002.mp4").duration, 1) == 1.5
    again = client.post("/api/clips", json=body)
    assert again.status_code == 422
    assert "is not empty; choose a new" in again.json()["detail"]


def test_read_only_server_refuses_to_split(library: Library, connect: Connect, tmp_path: Path) -> None:
    client = connect(library.index, read_only=True)
    refused = client.post("/api/clips", json={"videos": [0], "folder": str(tmp_path / "out")})
    assert refused.status_code == 403
    assert "--read-only" in refused.json()["detail"]
    assert not (tmp_path / "out").exists()
