"""Pages of an index on object storage, stored by a local server."""

from __future__ import annotations

from pathlib import Path

import pytest
from scale.tests.s3_server import serve_s3
from starlette.testclient import TestClient

from tests.web.conftest import HOST, Library, library, number_of
from vidkin.errors import InvalidArgumentError
from vidkin.index import Index
from vidkin.web import Settings, create_app

__all__ = ["library"]

ADDRESS = "s3://bucket/films"


@pytest.mark.large
def test_pages_show_an_index_on_object_storage_read_only(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with serve_s3("bucket") as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        with Index.open(ADDRESS, create=True) as index:
            index.add(library.folder, workers=1)
        before = dict(server.files)
        with pytest.raises(InvalidArgumentError, match=f"{ADDRESS} is on object storage, .* with --read-only"):
            create_app(ADDRESS)
        with TestClient(create_app(ADDRESS, Settings(read_only=True)), base_url=HOST) as client:
            assert "films" in client.get("/").text
            coffee = number_of(client, "coffee.mp4")
            picture = client.get(f"/videos/{coffee}/thumbnail")
            assert picture.headers["content-type"].startswith("image/")
            assert len(list(tmp_path.glob("vidkin-*/*/*/*"))) == 1
            search = client.post("/api/search", json={"video": coffee})
            assert search.json()["matches"][0]["video"]["name"] == "copy.mp4"
            for address in ("/search", "/duplicates", "/shots", "/review", f"/videos/{coffee}"):
                assert client.get(address).status_code == 200, address
            assert client.get("/api/review").json()["same"] == 0
            refused = client.post("/api/index", json={"paths": [str(library.folder)]})
            assert "started with --read-only" in refused.json()["detail"]
        assert list(tmp_path.iterdir()) == []
        assert server.files == before
