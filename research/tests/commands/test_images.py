"""``vidkin benchmark images``: tables, report, and pictures of the top-ranked results."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tests.cli.conftest import run
from tests.support.labelled import picture
from vidkin_research.ranking_picture import FRAME_COLORS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of uniform images in a folder with a space and an umlaut in its name."""
    root = tmp_path / "m\u00fcde Farben"
    for label, color in (("red", (200, 0, 0)), ("green", (0, 180, 0))):
        for part in ("train", "test"):
            for number in range(3):
                shade = tuple(max(0, value - 8 * number) for value in color)
                picture(root / part / label / f"{number}.png", shade, (40, 40))
    return root


def test_methods_are_compared_and_their_rankings_plotted(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    words = ("benchmark", "images", folder, "--set", "pictures", "--row", "color", "--row", "wavelet")
    outcome = run(*words, "--seeds", "1", "--size", "32", "-o", output)
    assert "2 classes, 6 test images" in outcome.out
    assert (output / "images.md").is_file()
    with Image.open(output / "rankings-pictures.png") as drawn:
        # Four queries with two rows of five results each.
        assert drawn.size == (67 + 190 + 5 * 67, 4 * (2 * 67 + 14) - 14)
        seen = {drawn.convert("RGB").getpixel((67 + 190 + 1, row)) for row in range(10, drawn.height, 20)}
    green = tuple(bytes.fromhex(FRAME_COLORS[2].removeprefix("#")))
    assert any(max(abs(a - b) for a, b in zip(color, green, strict=True)) < 12 for color in seen)  # type: ignore[arg-type]
    report = run(*words, "--seeds", "1", "--size", "32", "-o", output, "-f", "json").json
    assert [(entry["row"], entry["top_1"]) for entry in report["runs"]] == [
        ("classical: wavelet", 1.0),
        ("classical: color", 1.0),
    ]
    assert "nearest" not in report["runs"][0]


def test_unknown_sets_and_methods_are_rejected_before_output_is_written(folder: Path, tmp_path: Path) -> None:
    words = ("benchmark", "images", folder, "-o", tmp_path / "out")
    unknown = run(*words, "--set", "birds", status=2)
    assert "a set must be one of flowers, grocery" in unknown.err
    other = run(*words, "--set", "pictures", "--row", "SIFT 2", status=2)
    assert "--row must be part of a row name, got SIFT 2; rows are classical: wavelet" in other.err
    assert not (tmp_path / "out").exists()
