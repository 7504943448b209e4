"""The library page and its API."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from PIL import Image
from starlette.testclient import TestClient

from tests.support.videos import pan
from tests.web.conftest import Connect, Library, number_of
from tests.web.synthetic import fill
from vidkin.errors import CollectionNotFoundError
from vidkin.index import Index, SerialExecutor
from vidkin.web import create_app


def test_page_lists_every_video_including_broken_ones(client: TestClient) -> None:
    page = client.get("/").text
    for name in ("coffee.mp4", "copy.mp4", "broken.mp4"):
        assert f'">{name}</span>' in page
    assert "rocket &amp; &lt;b&gt;.mp4" in page
    assert "<b>.mp4" not in page
    assert "3 videos" in page  # `len`, `info` and the page count those that can be searched
    assert "1 broken" in page
    assert 'aria-current="page"' in page


def test_animated_images_are_videos_and_photographs_are_counted_apart(tmp_path: Path, connect: Connect) -> None:
    frames = [Image.fromarray(frame) for frame in pan("coffee", 20)]
    frames[0].save(tmp_path / "moving.png", save_all=True, append_images=frames[1:], duration=100, loop=0)
    frames[0].save(tmp_path / "still.png")
    with Index.open(tmp_path / "c.vidkin", extractor="classical", create=True) as index:
        index.add(tmp_path, images=True, executor=SerialExecutor(index.worker_spec))
    client = connect(tmp_path / "c.vidkin")
    assert "1 video and 1 photograph, " in client.get("/").text
    stills = {video["name"]: video["still"] for video in client.get("/api/videos").json()["videos"]}
    assert stills == {"moving.png": False, "still.png": True}
    assert 'href="/videos/1/shots"' in client.get(f"/videos/{number_of(client, 'moving.png')}").text


def names(client: TestClient, **words: object) -> list[str]:
    answer = client.get("/api/videos", params=words)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    return [video["name"] for video in answer.json()["videos"]]


def test_videos_are_filtered_by_name_and_sorted(client: TestClient) -> None:
    assert names(client, q="CO mp4 videos") == ["coffee.mp4", "copy.mp4"]
    assert names(client, q="co nothing") == []
    assert names(client, state="broken") == ["broken.mp4"]
    assert names(client, state="stale") == []
    # 12 s, 12 s, 8 s, and a broken one without length; paths decide between equals.
    by_duration = ["coffee.mp4", "copy.mp4", "rocket & <b>.mp4", "broken.mp4"]
    assert names(client, sort="duration") == by_duration
    assert names(client, sort="duration", offset=1, limit=2) == by_duration[1:3]
    sizes = [video["size"] for video in client.get("/api/videos?sort=size").json()["videos"]]
    assert sizes == sorted(sizes, reverse=True)
    assert client.get("/api/videos?q=co&limit=1").json()["total"] == 2


def test_video_is_looked_up_by_its_exact_path(library: Library, client: TestClient) -> None:
    path = str(library.folder / "coffee.mp4")
    found = client.get("/api/videos", params={"path": path}).json()
    assert (found["total"], found["videos"][0]["path"]) == (1, path)
    assert client.get("/api/videos/numbers", params={"path": path}).json() == [found["videos"][0]["id"]]
    for other in (path[:-1], path.upper(), "coffee.mp4", str(library.folder)):
        assert client.get("/api/videos", params={"path": other}).json() == {"total": 0, "videos": []}


def test_video_endpoint_returns_the_record(client: TestClient) -> None:
    coffee = client.get(f"/api/videos/{number_of(client, 'coffee.mp4')}").json()
    assert (coffee["width"], coffee["height"], coffee["codec"]) == (192, 128, "h264")
    assert coffee["duration"] == pytest.approx(12.0)
    assert (coffee["status"], coffee["still"], coffee["missing"]) == ("ok", False, False)
    broken = client.get(f"/api/videos/{number_of(client, 'broken.mp4')}").json()
    assert broken["status"] == "broken"
    assert broken["cause"]
    missing = client.get("/api/videos/999999")
    assert missing.status_code == 404
    assert "not in the index" in missing.json()["detail"]


@pytest.mark.parametrize("words", ["limit=0", "limit=501", "offset=-1", "sort=random", "state=odd", "limit=x"])
def test_values_out_of_range_are_refused(client: TestClient, words: str) -> None:
    answer = client.get(f"/api/videos?{words}")
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(words.partition("=")[0])


def test_library_pages_link_to_each_other(tmp_path: Path, connect: Connect) -> None:
    fill(tmp_path / "many.vidkin", 150)
    client = connect(tmp_path / "many.vidkin")
    first = client.get("/?sort=duration&q=video").text
    assert "Page 1 of 3, 150 videos" in first
    assert 'rel="next" href="/?q=video&amp;sort=duration&amp;page=2"' in first
    assert 'rel="prev"' not in first
    last = client.get("/?page=3").text
    assert last.count('class="card') == 30
    assert 'rel="next"' not in last
    assert "No video matches the filter" not in client.get("/?page=9").text


def test_empty_index_says_what_to_do(tmp_path: Path, connect: Connect) -> None:
    Index.open(tmp_path / "new.vidkin", extractor="classical", create=True).close()
    assert "The index is empty" in connect(tmp_path / "new.vidkin").get("/").text
    with pytest.raises(CollectionNotFoundError):
        create_app(tmp_path / "nothing.vidkin")


def test_videos_added_by_another_process_appear(library: Library, tmp_path: Path, connect: Connect) -> None:
    path = tmp_path / "grows.vidkin"
    with Index.open(path, extractor="classical", create=True) as index:
        client = connect(path)
        assert client.get("/api/videos").json()["total"] == 0
        index.add(library.folder / "coffee.mp4", executor=SerialExecutor(index.worker_spec))
    time.sleep(1.1)  # lists are at most a second old
    assert names(client) == ["coffee.mp4"]


def test_coverage_lists_the_videos_that_show_it(client: TestClient) -> None:
    """``copy.mp4`` is all of ``coffee.mp4``; nothing of it is only here."""
    answer = client.get(f"/api/videos/{number_of(client, 'coffee.mp4')}/coverage")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [Path(piece["path"]).name for piece in found["sources"]] == ["copy.mp4"]
    assert found["share"] == pytest.approx(1.0, abs=0.02)
    assert (found["only_here"], found["strip"]) == ([], [[0.0, 1.0, True]])
    assert found["words"][0].endswith("of this video: copy.mp4")


def test_videos_are_filtered_by_length_size_folder_and_when_they_were_added(tmp_path: Path, connect: Connect) -> None:
    """Video N is in folder N % 100, lasts N % 600 + 1 s and was added in second N of 1970."""
    fill(tmp_path / "many.vidkin", 700)
    client = connect(tmp_path / "many.vidkin")

    def total(**words: object) -> int:
        number: int = client.get("/api/videos", params={**words, "limit": 1}).json()["total"]  # type: ignore[dict-item]
        return number

    assert total(min_seconds=599) == 2  # 598 and 599
    assert total(max_seconds=2) == 4  # 0, 1, 600 and 601
    assert total(min_seconds="", max_seconds="") == 700  # as a form sends fields that are not filled in
    assert total(folder="/videos/07") == 7
    assert total(folder="/videos/0") == 0
    assert total(folder="/videos/07", q="00307") == 1
    assert total(added_days=30) == 0
    assert total(min_megabytes=1.0, max_megabytes=1.0) == 1
    assert names(client, sort="oldest", limit=1) == ["video 00000.mp4"]
    assert names(client, sort="shortest", limit=2) == ["video 00000.mp4", "video 00600.mp4"]
    assert client.get("/api/videos?min_seconds=-1").status_code == 422
    assert len(client.get("/api/videos/numbers?folder=/videos/07").json()) == 7
    folders = client.get("/api/library/folders?under=/videos").json()
    assert (len(folders), folders[7]["path"], folders[7]["count"]) == (100, "/videos/07", 7)
