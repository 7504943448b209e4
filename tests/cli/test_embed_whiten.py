"""``vidkin whiten`` on real files."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.support.videos import encode, pan, photograph
from vidkin.cli.app import app
from vidkin.features import ClassicalExtractor, Whitening


@pytest.mark.large
def test_whiten_writes_a_file_that_the_extractor_takes(tmp_path: Path) -> None:
    folder = tmp_path / "my pictures"
    folder.mkdir()
    for name in ("coffee", "chelsea", "rocket", "coins"):
        Image.fromarray(photograph(name)).save(folder / f"{name}.png")
        encode(folder / f"{name}.mp4", pan(name, 60), rate=10)
    (folder / "broken.mp4").write_bytes(b"no video at all")
    output = tmp_path / "own.safetensors"
    result = CliRunner().invoke(
        app, ["whiten", str(folder), "-o", str(output), "--dimension", "16", "--per-video", "6"]
    )
    assert result.exit_code == 1  # one file is broken, the rest is done
    assert "broken.mp4" in result.output
    assert Whitening.load(output).dimension == 16
    assert ClassicalExtractor(output).fingerprint != ClassicalExtractor().fingerprint


def test_whiten_says_what_is_missing(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["whiten", str(tmp_path / "none"), "-o", str(tmp_path / "x")])
    assert result.exit_code == 3
    assert "there is no such file" in result.output
    result = CliRunner().invoke(app, ["whiten", str(tmp_path), "-o", str(tmp_path / "x")])
    assert result.exit_code == 2
    assert "there are no images and no videos in this folder" in result.output


def test_vectors_that_are_learned_take_no_whitening(tmp_path: Path) -> None:
    Image.fromarray(photograph("coffee")).save(tmp_path / "coffee.png")
    output = tmp_path / "own.safetensors"
    result = CliRunner().invoke(app, ["whiten", str(tmp_path), "-o", str(output), "--extractor", "vidkin"])
    assert result.exit_code == 2
    assert "extractor must take a whitening (classical, timm:<model>" in result.output
    assert not output.exists()
