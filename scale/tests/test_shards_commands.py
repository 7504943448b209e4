"""Commands create and search a sharded index."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Library, _own_folder, library, run

__all__ = ["_own_folder", "library"]


def test_search_of_a_sharded_index_equals_one_store(library: Library, tmp_path: Path) -> None:
    sharded = tmp_path / "sharded.vidkin"
    report = run("index", library.folder, "--index", sharded, "--shards", "3", "--workers", "1", "-f", "json").json
    assert (report["videos"], len(report["broken"])) == (4, 0)
    # The shard of a video depends on a hash of its path; a shard without videos has no folder.
    assert {"0000", "0001", "0002"} >= {path.name for path in (sharded / "shards").iterdir()} != set()

    def found(index: Path) -> list[tuple[str, float]]:
        matches = run("search", library.clip, "--index", index, "-f", "json").json["matches"]
        return [(Path(match["path"]).name, match["score"]) for match in matches]

    one, three = found(library.index), found(sharded)
    assert [name for name, _ in three] == [name for name, _ in one] != []
    assert [score for _, score in three] == pytest.approx([score for _, score in one], abs=1e-6)
    # The number of shards is fixed when an index is created.
    again = run("index", library.folder, "--index", sharded, "--shards", "2", status=2)
    assert "was created with store shards:3, got shards:2; omit the store" in " ".join(again.err.split())


def test_zero_shards_create_a_plain_store(library: Library, tmp_path: Path) -> None:
    run("index", library.folder / "rocket.mp4", "--index", tmp_path / "c", "--shards", "0", "--workers", "1")
    assert not (tmp_path / "c" / "shards").exists()
    assert (
        "shards must be from 1 to 4096"
        in run("index", library.folder, "-i", tmp_path / "d", "--shards", "5000", status=2).err
    )
