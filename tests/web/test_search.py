"""Search by example over HTTP: the same results as the library gives, and where they are."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from tests.support.videos import pan
from tests.web.conftest import Connect, Library, number_of
from vidkin.index import Index


def search(client: TestClient, status: int = 200, **wanted: Any) -> Any:
    answer = client.post("/api/search", json=wanted)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_search_finds_the_copy_but_not_the_query(library: Library, client: TestClient) -> None:
    found = search(client, video=number_of(client, "coffee.mp4"), threshold=0.2)
    assert [match["video"]["name"] for match in found["matches"]] == ["copy.mp4"]
    best = found["matches"][0]
    with Index.open(library.index, read_only=True) as index:
        right = next(match for match in index.search(library.folder / "coffee.mp4") if match.path.endswith("copy.mp4"))
    assert best["score"] == pytest.approx(right.score)
    assert best["rank"] == 1
    segment = best["segments"][0]
    assert (segment["query_start"], segment["target_end"]) == (
        right.segments[0].query_start,
        right.segments[0].target_end,
    )
    assert found["has_segments"]


@pytest.mark.large
def test_result_pages_do_not_repeat_matches(client: TestClient) -> None:
    for name in ("coffee.mp4", "copy.mp4"):
        number = number_of(client, name)
        whole = search(client, video=number)["matches"]
        pages = [search(client, video=number, limit=1, offset=offset)["matches"] for offset in range(3)]
        assert pages == [whole[:1], whole[1:2], whole[2:3]]
        assert [match["rank"] for match in whole] == list(range(1, len(whole) + 1))


def test_clip_is_found_at_its_time(client: TestClient) -> None:
    found = search(client, video=number_of(client, "coffee.mp4"), start=3, end=7, limit=1)
    segment = found["matches"][0]["segments"][0]
    # Times of the query are those of the whole video, not of the stretch.
    assert segment["query_start"] == pytest.approx(3, abs=0.6)
    assert segment["query_end"] == pytest.approx(7, abs=0.6)
    assert segment["target_start"] == pytest.approx(3, abs=0.6)


@pytest.mark.large
def test_rectangle_is_found_and_its_box_refers_to_the_whole_frame(client: TestClient) -> None:
    box = [0.1, 0.1, 0.9, 0.9]
    found = search(client, video=number_of(client, "coffee.mp4"), time=6.0, box=box, limit=2)
    match = found["matches"][0]
    assert match["video"]["name"] == "copy.mp4"
    for segment in match["segments"]:
        assert segment["query_start"] == 6.0
        left, top, right, bottom = segment["query_box"]
        assert 0.1 <= left < right <= 0.9
        assert 0.1 <= top < bottom <= 0.9


def test_rectangles_of_an_image_are_listed(client: TestClient, tmp_path: Path) -> None:
    """A photograph on a white page: its box is among them, as shares of the page; plain gray has none."""
    page = np.full((480, 640, 3), 250, np.uint8)
    page[80:336, 60:444] = next(pan("coffee", 1, width=384, height=256))
    uploads = []
    for name, image in (("page.png", page), ("gray.png", np.full((480, 640, 3), 128, np.uint8))):
        Image.fromarray(image).save(tmp_path / name)
        dropped = client.post(f"/api/uploads?name={name}", content=(tmp_path / name).read_bytes())
        uploads.append(dropped.json()["key"]["upload"])
    boxes = client.get("/api/rectangles", params={"upload": uploads[0]}).json()
    photograph = [60 / 640, 80 / 480, 444 / 640, 336 / 480]
    assert min(np.abs(np.subtract(box, photograph)).max() for box in boxes) < 0.02
    assert all(0 <= left < right <= 1 and 0 <= top < bottom <= 1 for left, top, right, bottom in boxes)
    assert client.get("/api/rectangles", params={"upload": uploads[1]}).json() == []
    # Of a video at a moment, also beyond its end; and what makes no sense.
    coffee = number_of(client, "coffee.mp4")
    for moment in (0.0, 5.0, 1e5):
        found = client.get("/api/rectangles", params={"video": coffee, "time": moment})
        assert (found.status_code, isinstance(found.json(), list)) == (200, True)
    for wanted, status, cause in (
        ({}, 422, "either a video or an upload"),
        ({"video": coffee, "upload": uploads[0]}, 422, "either a video or an upload"),
        ({"video": coffee, "time": -1}, 422, "time"),
        ({"video": 99999}, 404, "not in the index"),
        ({"upload": "../../etc/passwd"}, 404, "no longer on the server"),
    ):
        refused = client.get("/api/rectangles", params=wanted)
        assert (refused.status_code, cause in str(refused.json()["detail"])) == (status, True), refused.text


def test_uploaded_file_is_searched_and_deleted(library: Library, client: TestClient) -> None:
    dropped = client.post("/api/uploads?name=my clip.mp4", content=library.clip.read_bytes())
    assert dropped.status_code == 201, dropped.text
    source = dropped.json()
    assert (source["name"], source["width"], source["still"]) == ("my clip.mp4", 192, False)
    assert source["duration"] == pytest.approx(5.0)
    found = search(client, **source["key"], limit=3)
    assert {match["video"]["name"] for match in found["matches"][:2]} == {"coffee.mp4", "copy.mp4"}
    segment = next(m for m in found["matches"] if m["video"]["name"] == "coffee.mp4")["segments"][0]
    assert segment["target_start"] == pytest.approx(4.0, abs=0.6)
    # The clip can be played and shown, and compared.
    assert client.get(f"{source['address']}/file").content == library.clip.read_bytes()
    assert client.get(f"{source['address']}/thumbnail").status_code == 200
    target = number_of(client, "coffee.mp4")
    assert client.post("/api/match", json={**source["key"], "target": target}).json()["score"] > 0.7
    assert source["name"] in client.get("/search", params=source["key"]).text
    assert client.delete(f"/api{source['address']}").status_code == 204
    gone = search(client, 404, **source["key"])
    assert "upload it again" in gone["detail"]


@pytest.mark.parametrize(
    ("wanted", "cause"),
    [
        ({}, "either a video or an upload"),
        ({"video": 1, "upload": "x"}, "either a video or an upload"),
        ({"video": 1, "box": [0.5, 0, 0.2, 1]}, "left < right"),
        ({"video": 1, "box": [0, 0, 0.5, 1], "start": 1}, "not both"),
        ({"video": 1, "start": 5, "end": 2}, "end must be after start"),
        ({"video": 1, "limit": 0}, "limit"),
        ({"video": 1, "start": -1}, "start"),
        ({"video": 1, "start": "nan"}, "start"),
    ],
)
def test_invalid_search_is_refused(client: TestClient, wanted: dict[str, Any], cause: str) -> None:
    if "video" in wanted:
        wanted = {**wanted, "video": number_of(client, "coffee.mp4")}
    assert cause in search(client, 422, **wanted)["detail"]


def test_unknown_query_is_404_and_too_small_a_box_is_422(client: TestClient) -> None:
    assert "not in the index" in search(client, 404, video=99999)["detail"]
    small = search(client, 422, video=number_of(client, "coffee.mp4"), box=[0, 0, 0.05, 0.05])
    assert "at least 16 pixels a side" in small["detail"]


def test_search_page_contains_the_query(client: TestClient) -> None:
    number = number_of(client, "rocket & <b>.mp4")
    page = client.get(f"/search?video={number}").text
    assert f"/videos/{number}" in page
    assert "<b>.mp4" not in page
    assert client.get("/search").status_code == 200
    assert client.get("/search?video=99999").status_code == 404


def test_index_with_sound_offers_a_choice_of_evidence(library: Library, connect: Connect) -> None:
    assert '<select id="by">' in connect(library.index).get("/search").text


def test_search_page_without_sound_offers_no_choice_of_evidence(tmp_path: Path, connect: Connect) -> None:
    with Index.open(tmp_path / "silent.vidkin", create=True) as index:
        index.use_sound(False)
    assert '<select id="by">' not in connect(tmp_path / "silent.vidkin").get("/search").text


@pytest.mark.thorough
def test_simultaneous_searches_have_separate_handles(library: Library, connect: Connect) -> None:
    from concurrent.futures import ThreadPoolExecutor

    client = connect(library.index)
    number = number_of(client, "coffee.mp4")
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: search(client, video=number, limit=3), range(2))

    def rounded(answer: object) -> object:  # sums of two threads differ in their last digits
        return json.loads(json.dumps(answer), parse_float=lambda digits: round(float(digits), 6))

    assert first["matches"]
    assert rounded(first["matches"]) == rounded(second["matches"])


@pytest.mark.thorough
def test_fifty_simultaneous_searches_are_queued_and_answered(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = number_of(client, "coffee.mp4")
    monkeypatch.setattr("vidkin.web.search._search", lambda *_: time.sleep(0.02) or {"matches": [], "seconds": 0.0})

    def ask(reader: int) -> int:
        headers = {"X-Vidkin-Tab": str(reader), "X-Vidkin-Ticket": f"{reader}.1"}
        return client.post("/api/search", json={"video": number}, headers=headers).status_code

    with ThreadPoolExecutor(50) as readers:
        assert set(readers.map(ask, range(50))) == {200}


def test_search_reports_its_position_in_the_queue(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    number, gate = number_of(client, "coffee.mp4"), threading.Event()
    monkeypatch.setattr("vidkin.web.search._search", lambda *_: gate.wait(10) and {"matches": [], "seconds": 0.0})

    def ask(ticket: str) -> int:
        return client.post("/api/search", json={"video": number}, headers={"X-Vidkin-Ticket": ticket}).status_code

    with ThreadPoolExecutor(3) as readers:
        answers = []
        for ticket in ("one", "two", "three"):  # two are served at a time
            answers.append(readers.submit(ask, ticket))
            wait_for(lambda ticket=ticket: client.get(f"/api/searches/{ticket}").status_code == 200)
        places = [client.get(f"/api/searches/{ticket}").json()["position"] for ticket in ("one", "two", "three")]
        gate.set()
        assert [answer.result() for answer in answers] == [200, 200, 200]
    assert places == [0, 0, 1]
    assert client.get("/api/searches/one").status_code == 204  # it has ended


def wait_for(happened: Callable[[], bool]) -> None:
    """Wait up to five seconds until something is the case."""
    end = time.monotonic() + 5
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)
