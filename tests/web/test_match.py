"""Two videos side by side over HTTP."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.web.conftest import Library, number_of
from vidkin.index import Index


@pytest.mark.large
def test_match_map_equals_the_library_result(library: Library, client: TestClient) -> None:
    coffee, copy = (number_of(client, name) for name in ("coffee.mp4", "copy.mp4"))
    found = client.post("/api/match", json={"video": coffee, "target": copy}).json()
    with Index.open(library.index, read_only=True) as index:
        right = index.match(library.folder / "coffee.mp4", library.folder / "copy.mp4")
    assert found["score"] == pytest.approx(right.score)
    assert [segment["target_end"] for segment in found["segments"]] == [s.target_end for s in right.segments]
    cells = np.frombuffer(base64.b64decode(found["map"]["cells"]), np.uint8)
    shape = (found["map"]["rows"], found["map"]["columns"])
    assert shape == tuple(right.map.shape)
    assert np.abs(cells.reshape(shape) / 255 - right.map).max() <= 0.5 / 255 + 1e-6
    assert found["map"]["query_times"] == pytest.approx(right.query_times.tolist())


def test_match_page_has_both_players(client: TestClient) -> None:
    coffee, rocket = (number_of(client, name) for name in ("coffee.mp4", "rocket & <b>.mp4"))
    page = client.get(f"/match?video={coffee}&target={rocket}").text
    assert "coffee.mp4" in page
    assert "<b>.mp4" not in page
    assert client.get(f"/match?video={coffee}&target=99999").status_code == 404
    assert "<title>coffee.mp4 and rocket &amp; &lt;b&gt;.mp4 - vidkin</title>" in page


def test_match_page_with_one_video_asks_for_two(client: TestClient) -> None:
    for address in ("/match", f"/match?video={number_of(client, 'coffee.mp4')}"):
        answer = client.get(address, headers={"Accept": "text/html"})
        assert answer.status_code == 422
        assert "A match needs two videos; search with one, then open the frame map of a match" in answer.text


def test_matching_refuses_a_box(client: TestClient) -> None:
    coffee = number_of(client, "coffee.mp4")
    answer = client.post("/api/match", json={"video": coffee, "target": coffee, "box": [0, 0, 0.5, 0.5]})
    assert answer.status_code == 422
    assert "remove box" in answer.json()["detail"]


def test_parts_that_run_backwards_keep_their_times(client: TestClient) -> None:
    coffee = number_of(client, "coffee.mp4")
    part = {"start": 0.0, "end": 2.0, "at": 3.0, "rate": -1.0}
    (exact,) = client.post("/api/sync", json={"video": coffee, "target": coffee, "parts": [part]}).json()
    assert {name: exact[name] for name in part} == part
