"""Pages show and search a sharded index."""

from __future__ import annotations

from pathlib import Path

from tests.web.conftest import Connect, Library, connect, library, number_of
from tests.web.test_search import search
from vidkin.index import Index, SerialExecutor

__all__ = ["connect", "library"]


def test_pages_work_with_a_sharded_index(library: Library, connect: Connect, tmp_path: Path) -> None:
    with Index.open(tmp_path / "shards", extractor="classical", create=True, store="shards:2") as index:
        index.add(library.folder, executor=SerialExecutor(index.worker_spec))
    client = connect(tmp_path / "shards")
    assert {video["name"] for video in client.get("/api/videos").json()["videos"]} == {
        *("coffee.mp4", "copy.mp4", "rocket & <b>.mp4", "broken.mp4"),
    }
    assert "coffee.mp4" in client.get("/").text
    found = search(client, video=number_of(client, "coffee.mp4"), threshold=0.2)
    assert [match["video"]["name"] for match in found["matches"]] == ["copy.mp4"]
