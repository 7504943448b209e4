"""The page of one video, and what it finds with one click."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.rendering.test_players import make_player
from tests.web.conftest import Connect, Library, finish_job, number_of


def test_video_page_shows_known_information(client: TestClient) -> None:
    number = number_of(client, "coffee.mp4")
    page = client.get(f"/videos/{number}").text
    assert "0:12.0, 192x128, h264" in page
    assert f"/videos/{number}&#34;" in page  # what the player gets
    broken = client.get(f"/videos/{number_of(client, 'broken.mp4')}").text
    assert '<p class="error">' in broken
    assert "<video" not in broken
    assert client.get("/videos/999999").status_code == 404


def test_video_page_says_whether_duplicates_were_searched_for(
    own_library: Library, compared_library: Library, connect: Connect
) -> None:
    for index, sentence in (
        (own_library.index, "Duplicates have not been searched for in 3 videos yet"),
        (compared_library.index, "No copies were found in this index."),
    ):
        client = connect(index)
        page = f"/videos/{number_of(client, 'rocket & <b>.mp4')}"
        client.get("/api/duplicates")
        assert sentence in client.get(page).text


def test_similar_videos_are_computed_once_and_cached(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    address = f"/api/videos/{number_of(client, 'coffee.mp4')}/neighbors"
    found = client.post(address).json()
    assert found[0]["video"]["name"] == "copy.mp4"
    assert found[0]["score"] > 0.7
    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    assert client.get(address).json() == found
    # Another server knows it, too.
    assert connect(library.index).get(address).json() == found


def test_recurring_parts_are_found_by_a_job_and_cached(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    address = f"/api/videos/{number_of(client, 'coffee.mp4')}/recurring"
    assert client.get(address).json() is None
    ended = finish_job(client, client.post("/api/recurring", json={}).json())
    assert ended["state"] == "done", ended
    # The whole video is a copy of another one.
    (part,) = client.get(address).json()
    assert (part["kind"], part["files"], part["others"]) == ("copy", 2, ["copy.mp4"])
    assert (part["start"], round(part["end"])) == (0.0, 12)
    assert client.get(f"/api/videos/{number_of(client, 'rocket & <b>.mp4')}/recurring").json() == []


def test_video_opens_in_the_system_player(
    library: Library, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = make_player(tmp_path, "mpv")
    monkeypatch.setenv("PATH", str(tmp_path))
    client = connect(library.index)
    number = number_of(client, "coffee.mp4")
    assert 'id="open"' in client.get(f"/videos/{number}").text
    opened = client.post(f"/api/videos/{number}/open", json={"time": 2.5})
    assert opened.json() == {"player": "mpv"}
    assert Path(f"{player}.txt").read_text().split("\n") == ["--start=2.500", str(library.folder / "coffee.mp4")]
    assert client.post(f"/api/videos/{number_of(client, 'broken.mp4')}/open", json={"time": -1}).status_code == 422


@pytest.mark.thorough
def test_page_on_another_computer_cannot_open_a_player(
    library: Library, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "vidkin.web.video._LOCAL_ADDRESSES", frozenset({"127.0.0.1"})
    )  # the client of the tests is another one
    client = connect(library.index)
    number = number_of(client, "coffee.mp4")
    assert 'id="open"' not in client.get(f"/videos/{number}").text
    refused = client.post(f"/api/videos/{number}/open", json={})
    assert refused.status_code == 403
    assert "open the page there" in refused.json()["detail"]
    only_shows = connect(library.index, read_only=True)
    assert "--read-only" in only_shows.post(f"/api/videos/{number}/open", json={}).json()["detail"]
