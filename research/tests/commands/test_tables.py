"""``vidkin benchmark table``: the list, required data, and reduced tables on synthetic collections."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.cli.conftest import run
from tests.support.labelled import picture, two_by_two


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def test_tables_are_listed_with_their_sources() -> None:
    tables = run("benchmark", "table", "-f", "json").json["tables"]
    assert {"radial-images", "two-heads", "hap-losses"} <= {table["name"] for table in tables}
    assert "HAP-VR, table 12" in {table["source"] for table in tables}


def test_check_lists_available_and_missing_data(tmp_path: Path) -> None:
    words = ("benchmark", "table", "radial-images", "--reduced", "--check")
    plain = run(*words)
    assert "www.robots.ox.ac.uk/~vgg/data/pets" in plain.out
    assert "Time: about" in plain.out
    (tmp_path / "pet").mkdir()
    needs = run(*words, "--data", tmp_path, "-f", "json", status=3).json
    assert needs["missing"] == ["head_pose", "zappos"]
    refused = run(
        "benchmark", "table", "radial-images", "--reduced", "--data", tmp_path, "-o", tmp_path / "o", status=2
    )
    assert "missing head_pose, zappos; get the first (heads of 90 people" in refused.err
    assert not (tmp_path / "o").exists()
    unnamed = run("benchmark", "table", "radial-images", "--reduced", status=2)
    assert "--data is missing; `vidkin benchmark table radial-images --check` lists the required data" in unnamed.err


@pytest.mark.large
def test_table_of_losses_can_use_own_images(tmp_path: Path) -> None:
    two_by_two(tmp_path / "images", each=8)
    words = ("benchmark", "table", "radial-images", "--reduced", "--set", "pictures", "--backbone", "small")
    outcome = run(*words, "--data", tmp_path / "images", "-o", tmp_path / "out")
    page = (tmp_path / "out" / "radial-images" / "fgir.md").read_text()
    assert "| Quadruplet-2b |" in page
    assert "fgir.json" in outcome.err


@pytest.mark.large
def test_table_of_two_heads_can_use_own_images(tmp_path: Path) -> None:
    for label, color in (("red", (200, 0, 0)), ("green", (0, 180, 0))):
        for part in ("train", "test"):
            for number in range(4):
                shade = tuple(max(0, value - 8 * number) for value in color)
                picture(tmp_path / "images" / part / label / f"{number}.png", shade, (40, 40))  # type: ignore[arg-type]
    words = ("benchmark", "table", "two-heads", "--reduced", "--set", "pictures", "--backbone", "small")
    run(*words, "--data", tmp_path / "images", "-o", tmp_path / "out")
    page = (tmp_path / "out" / "two-heads" / "small.md").read_text()
    assert "| two-head, semi-hard |" in page
    assert "penultimate R@1" in page
