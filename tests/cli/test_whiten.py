"""``vidkin whiten``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Library, run


def test_an_index_can_be_made_with_ones_own_whitening(library: Library, tmp_path: Path) -> None:
    whitening, index = tmp_path / "own.safetensors", tmp_path / "index"
    run(
        "whiten", library.folder, "-o", whitening, "--pictures", "12", "--per-video", "3", "--dimension", "32"
    )
    run("index", library.folder / "coffee.mp4", "--index", index, "--whitening", whitening, "--workers", "1")
    assert run("info", "--index", index, "--json").json["fingerprint"].startswith("classical-")
    # The index knows its whitening: nobody has to name it again.
    found = run("search", library.clip, "--index", index, "--json").json
    assert [Path(match["path"]).name for match in found["matches"]] == ["coffee.mp4"]


def test_material_that_cannot_be_read_is_nothing_usable(tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").write_bytes(b"")
    outcome = run("whiten", tmp_path / "empty.mp4", "-o", tmp_path / "own.safetensors", status=3)
    assert "empty.mp4" in outcome.err
    assert not (tmp_path / "own.safetensors").exists()
