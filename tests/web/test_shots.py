"""The shots page over HTTP: detection, correction, and files for editing systems."""

from __future__ import annotations

import csv
import io
import json
import re
import threading
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.support.videos import encode, pan
from tests.web.conftest import Connect, finish_job, number_of
from vidkin.errors import InvalidArgumentError
from vidkin.index import Index, SerialExecutor
from vidkin.review import Labels
from vidkin.shots import find_shot_format, shot_format_names


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of ``film & co.mp4`` at 10 frames a second, cut at 2 s and 4 s, and of ``a folder/other.mp4``."""
    root = tmp_path_factory.mktemp("shots")
    frames = [frame for name in ("coffee", "rocket", "astronaut") for frame in pan(name, 20)]
    encode(root / "film & co.mp4", frames)
    with Index.open(root / "i.vidkin", extractor="classical", create=True) as opened:
        (root / "a folder").mkdir()
        encode(root / "a folder" / "other.mp4", pan("rocket", 20))
        opened.add([root / "film & co.mp4", root / "a folder"], executor=SerialExecutor(opened.worker_spec))
    return root / "i.vidkin"


def detect(client: TestClient, address: str) -> None:
    state = finish_job(client, client.post(address).json())
    assert state["state"] == "done", state["error"]


def test_shots_are_detected_corrected_exported_and_restored(index: Path, connect: Connect) -> None:
    client = connect(index)
    number = number_of(client, "film & co.mp4")
    address = f"/api/videos/{number}/shots"
    assert f'href="/videos/{number}/shots"' in client.get("/shots?q=film").text
    assert "No video matches the filter" in client.get("/shots?q=nothing").text
    # By name, whatever the folders are called, and with the folder of each.
    cards = re.findall(r'title="([^"]+)".*?class="facts">([^<]+)<', client.get("/shots").text, re.DOTALL)
    assert [(Path(path).name, folder) for path, folder in cards[-2:]] == [
        ("film &amp; co.mp4", index.parent.name),
        ("other.mp4", "a folder"),
    ]
    assert "Shots of film &amp; co.mp4" in client.get(f"/videos/{number}/shots").text
    assert client.get(address).json() is None
    answer = client.get(f"{address}/edl")
    assert (answer.status_code, "have not been detected yet" in answer.json()["detail"]) == (404, True)

    detect(client, address)
    found = client.get(address).json()
    assert [cut["time"] for cut in found["cuts"]] == pytest.approx([2.0, 4.0])
    assert [cut["kind"] for cut in found["cuts"]] == ["hard", "hard"]
    assert (found["corrected"], found["frames"], found["frame_rate"]) == (False, 60, pytest.approx(10.0))
    assert [shot["kind"] for shot in found["shots"]] == ["start", "hard", "hard"]
    assert f"{index.parent.name}, shots detected" in client.get("/shots?q=film").text
    assert "shots detected" not in client.get("/shots?q=other").text
    assert len(found["curve"]) == 60
    assert client.get(found["shots"][0]["thumbnail"]).status_code == 200

    # One cut moved to the nearest frame, one removed, one added.
    wanted = {"cuts": [{"time": 2.13, "kind": "hard", "moved_from": 2.0}, {"time": 5.0, "kind": "dissolve"}]}
    corrected = client.put(address, json=wanted).json()
    assert [cut["time"] for cut in corrected["cuts"]] == pytest.approx([2.1, 5.0])
    assert corrected["corrected"] is True
    assert client.get(address).json() == corrected
    labels = {label.frame: (label.verdict, label.source) for label in Labels.open(index).cuts}
    assert [cut["moved_from"] for cut in corrected["cuts"]] == [pytest.approx(2.0), None]
    assert labels == {
        21: ("cut", "shots page"),
        50: ("cut", "shots page"),
        40: ("no cut", "shots page"),
    }
    # The files have the corrected list.
    rows = list(csv.DictReader(io.StringIO(client.get(f"{address}/csv").text)))
    assert [float(row["start"]) for row in rows] == pytest.approx([0.0, 2.1, 5.0])
    edl = client.get(f"{address}/edl")
    assert edl.headers["content-disposition"] == 'attachment; filename="film___co.edl"'
    assert "00:00:02:03 00:00:05:00" in edl.text
    assert "* VIDKIN: dissolve transition" in edl.text
    assert json.loads(client.get(f"{address}/otio").text)["OTIO_SCHEMA"].startswith("Timeline")

    back = client.delete(address).json()
    assert back == found
    assert len(Labels.open(index).cuts) == 3


@pytest.mark.thorough
def test_page_and_api_offer_every_format(index: Path, connect: Connect) -> None:
    client = connect(index)
    number = number_of(client, "film & co.mp4")
    address = f"/api/videos/{number}/shots"
    page = client.get(f"/videos/{number}/shots").text
    detect(client, address)
    for name in shot_format_names():
        assert f'href="{address}/{name}" download' in page
        row, answer = find_shot_format(name), client.get(f"{address}/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].partition(";")[0] == row.media_type
        assert answer.headers["content-disposition"] == f'attachment; filename="film___co{row.suffix}"'
    assert answer.content.startswith(b"\x89PNG")


@pytest.mark.thorough
@pytest.mark.parametrize("content", ["", "[1, 2", "[]", '{"cuts": [{"frame": "x"}]}', '{"cuts": []}'])
def test_damaged_cached_detection_is_recomputed(index: Path, connect: Connect, content: str) -> None:
    client = connect(index)
    address = f"/api/videos/{number_of(client, 'other.mp4')}/shots"
    detect(client, address)
    found = client.get(address).json()
    made = max((index / "web-cache").rglob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    made.write_text(content)
    assert client.get(address).json() is None
    detect(client, address)
    assert client.get(address).json() == found


def test_running_detection_is_not_started_twice(index: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    client = connect(index)
    number = number_of(client, "film & co.mp4")
    gate = threading.Event()

    def wait(*_: object, **__: object) -> None:
        assert gate.wait(10)
        raise InvalidArgumentError("enough")

    monkeypatch.setattr("vidkin.web.shots.detect", wait)
    monkeypatch.setattr("vidkin.web.shots.shots_key", lambda record, detector: "not detected yet")
    first = client.post(f"/api/videos/{number}/shots").json()
    assert (first["kind"], first["video"], first["state"]) == ("shots", number, "running")
    assert client.post(f"/api/videos/{number}/shots").json()["id"] == first["id"]
    other = client.post(f"/api/videos/{number_of(client, 'other.mp4')}/shots")
    assert (other.status_code, '"Shots of film & co.mp4" is still running' in other.json()["detail"]) == (
        409,
        True,
    )
    gate.set()
    assert finish_job(client, first)["error"] == "enough"


def test_invalid_cuts_and_formats_are_refused_with_a_reason(index: Path, connect: Connect) -> None:
    client = connect(index)
    number = number_of(client, "film & co.mp4")
    address = f"/api/videos/{number}/shots"
    detect(client, address)
    first = client.put(address, json={"cuts": [{"time": 0.02}]})
    assert (first.status_code, "after the first frame" in first.json()["detail"]) == (422, True)
    for wrong in ({"time": -1}, {"time": 1, "kind": "odd"}):
        assert client.put(address, json={"cuts": [wrong]}).status_code == 422
    assert client.get(f"{address}/pdf").status_code == 422
    assert client.get("/api/videos/9999/shots").status_code == 404
    closed = connect(index, read_only=True)
    assert "--read-only" in closed.put(address, json={"cuts": []}).json()["detail"]
    assert 'id="add"' not in closed.get(f"/videos/{number}/shots").text
