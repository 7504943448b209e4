"""Commands on an index at an address instead of in a folder."""

from __future__ import annotations

import pytest
from scale.tests.s3_server import serve_s3

from tests.cli.conftest import Library, _own_folder, library, run

__all__ = ["_own_folder", "library"]

INDEX = "s3://bucket/films"


@pytest.mark.large
def test_commands_accept_an_address_instead_of_a_folder(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_s3("bucket") as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        run("index", library.folder, "-i", INDEX, "--workers", "1")
        local = run("search", library.clip, "--index", library.index, "-f", "json").json
        remote = run("search", library.clip, f"--index={INDEX}", "-f", "json").json
        assert remote == {**local, "index": INDEX}
        assert run("info", "--index", INDEX, "-f", "json").json["path"] == INDEX
        again = run("index", library.folder, "-i", INDEX)
        assert f"{INDEX}: 4 videos" in again.out
        assert "--index" not in again.err
        assert "has no segments" not in run("match", library.clip, library.clip, "--index", INDEX).out
        assert f"{INDEX}: 1 video removed, 3 left" in run("remove", library.folder / "rocket.mp4", "--index", INDEX).out
        refused = run("serve", "--index", INDEX, status=2)
        assert "show it with --read-only, or copy the index into a folder" in refused.err
        assert f"{INDEX} is not a local folder" in run("train", "review", "-i", INDEX, status=3).err
        refused = run("info", "--index", "s3://none/films", status=3)
        assert "Error: s3://none/films" in refused.err
        assert "there is no such bucket; create it or correct the address" in refused.err
    wrong = run("info", "--index", "http://host/films", status=2)
    assert "index must be a folder or gs://BUCKET/PREFIX or s3://BUCKET/PREFIX" in wrong.err
    assert "vidkin reads files; download it first" in run("search", "s3://bucket/a.mp4", status=2).err
