"""``vidkin benchmark fgvr`` and ``fgir`` on small synthetic collections: report, results and picture."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from tests.support.labelled import two_by_two
from vidkin.cli.app import app
from vidkin.datasets import LabelledItem, LabelledSet
from vidkin_research.ranking_picture import FRAME_COLORS, draw_retrieval


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def run(*words: str | Path, status: int = 0) -> Any:
    given = ["benchmark", *map(str, words)]
    result = CliRunner().invoke(app, given, catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders ``pictures`` and ``videos`` with two categories of two subcategories each, one color per subcategory."""
    root = tmp_path_factory.mktemp("collection")
    two_by_two(root / "pictures", each=8)
    two_by_two(root / "videos", each=8, videos=True)
    return root


WORDS = ("--backbone", "small", "--steps", "2", "--seeds", "2")


def test_images_are_compared(collection: Path, tmp_path: Path) -> None:
    methods = ("-m", "untrained", "-m", "triplet", "-m", "radial_detached", "-m", "all_quadlets")
    where = ("--data", collection / "pictures", "-s", "pictures", "-o", tmp_path)
    result = run("fgir", *where, *WORDS, *methods)
    assert "Radial, no gradient through R" in result.output
    assert "points of QP" in result.output
    page = (tmp_path / "fgir.md").read_text()
    assert "Every method at the learning rate with the best QP on the validation split" in page
    assert "![Retrieval on pictures](fgir-pictures.png)" in page
    with Image.open(tmp_path / "fgir-pictures.png") as picture:
        assert picture.width > 800
    stored = json.loads((tmp_path / "fgir.json").read_text())
    told = json.loads(run("fgir", *where, *WORDS, *methods, "-f", "json").stdout)
    assert told["sets"] == stored["sets"]
    assert [row["method"] for row in told["sets"][0]["common"]] == list(methods[1::2])
    assert told["plan"]["schedule"]["steps"] == 2


def test_videos_are_compared_in_a_quick_run(collection: Path, tmp_path: Path) -> None:
    where = ("--data", collection / "videos", "-s", "videos", "-o", tmp_path)
    run("fgvr", *where, *WORDS, "--quick", "-m", "backbone", "-m", "quadlet", "-m", "radial")
    stored = json.loads((tmp_path / "fgvr.json").read_text())
    assert stored["plan"]["learning_rates"] == [0.001]
    assert stored["sets"][0]["chosen"] == []


def test_unreadable_videos_are_listed_and_others_compared(collection: Path, tmp_path: Path) -> None:
    videos = tmp_path / "own videos"
    shutil.copytree(collection / "videos", videos)
    (videos / "category0" / "kind0" / "empty.mp4").touch()
    where = ("--data", videos, "-s", "videos", "-o", tmp_path / "out")
    result = run("fgvr", *where, *WORDS, "--quick", "-m", "backbone", "-m", "quadlet", status=1)
    assert "Left out: " in result.output
    assert "empty.mp4" in result.output
    stored = json.loads((tmp_path / "out" / "fgvr.json").read_text())
    ((path, cause),) = stored["broken"]
    assert path.endswith("empty.mp4")
    assert cause
    assert [row["method"] for row in stored["sets"][0]["common"]] == ["backbone", "quadlet"]


def test_set_of_another_kind_is_rejected(collection: Path) -> None:
    result = run("fgvr", "--data", collection, "-s", "grocery", status=2)
    assert "set grocery cannot be used with fgvr; run `vidkin benchmark fgir --set grocery`" in result.stderr
    result = run("fgir", "--data", collection, "-s", "cats", status=2)
    assert "a set must be one of fruit, strokes" in result.stderr


def test_borders_of_images_show_relevance(tmp_path: Path) -> None:
    items = []
    for name, category, subcategory, split in (
        ("q", "a", "x", "test"),
        ("p", "a", "x", "train"),
        ("i", "a", "y", "train"),
        ("n", "b", "z", "train"),
    ):
        path = tmp_path / f"{name}.png"
        Image.new("RGB", (60, 60), "white").save(path)
        items.append(LabelledItem(path=path, category=category, subcategory=subcategory, group=name, split=split))
    labelled = LabelledSet("made", "image", tuple(items), tmp_path)
    draw_retrieval(labelled, {"A": {0: [0, 1, 2]}}, tmp_path / "out.png")
    with Image.open(tmp_path / "out.png") as opened:
        picture = opened.convert("RGB")
    cell = 56 + 2 * 4 + 3
    left = cell + 190
    found = [picture.getpixel((left + column * cell + 1, 30)) for column in range(3)]
    for color, level in zip(found, (2, 1, 0), strict=True):
        wanted = tuple(int(FRAME_COLORS[level][place : place + 2], 16) for place in (1, 3, 5))
        assert color == wanted


def test_own_folder_needs_no_set_name(collection: Path, tmp_path: Path) -> None:
    methods = ("-m", "untrained", "-m", "triplet")
    run("fgir", "--data", collection / "pictures", "-o", tmp_path, *WORDS, "--rate", "0.001", *methods)
    stored = json.loads((tmp_path / "fgir.json").read_text())
    assert [summary["set"] for summary in stored["sets"]] == ["pictures"]
