"""The experiments page over HTTP."""

from __future__ import annotations

from pathlib import Path

from tests.support.stored_runs import write_benchmark, write_training
from tests.web.conftest import Connect, Library


def test_runs_are_listed_with_their_images(library: Library, connect: Connect, tmp_path: Path) -> None:
    write_training(tmp_path / "first", [2.0, 1.0], report=True)
    (tmp_path / "first" / "quadlets.png").write_bytes(b"\x89PNG picture")
    write_benchmark(tmp_path / "figures.json")
    client = connect(library.index, experiments=(tmp_path,))
    assert str(tmp_path) in client.get("/experiments").text
    runs = {run["name"]: run["id"] for run in client.get("/api/experiments").json()}
    assert set(runs) == {"first", "figures.json"}
    picture = client.get(f"/api/experiments/{runs['first']}/pictures/quadlets.png")
    assert (picture.headers["content-type"], picture.content) == ("image/png", b"\x89PNG picture")
    for wrong in (
        f"{runs['first']}/pictures/report.json",
        f"{runs['first']}/pictures/..%2Ffigures.json",
        f"{runs['figures.json']}/pictures/quadlets.png",
        "nothing/pictures/quadlets.png",
    ):
        assert client.get(f"/api/experiments/{wrong}").status_code == 404, wrong


def test_page_without_folders_says_how_to_add_one(library: Library, connect: Connect) -> None:
    client = connect(library.index)
    assert "vidkin serve --experiments FOLDER" in client.get("/experiments").text
    assert client.get("/api/experiments").json() == []
