"""``vidkin fit``: creates a file for `--weights` from the user's own images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from research.tests.features.pictures import photographs

from tests.cli.conftest import run
from vidkin_research.features import BilinearSimilarity, open_feature


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with crops of each of three photographs, and a file that is not an image."""
    root = tmp_path_factory.mktemp("mine") / "m\u00fcde Bilder"
    for place, picture in enumerate(photographs(18)):
        folder = root / f"scene {place // 6}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{place}.png")
    (root / "scene 0" / "broken.png").write_bytes(b"no picture")
    return root


def test_similarity_fitted_to_folders_separates_them(pictures: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.safetensors"
    outcome = run("fit", "oasis", pictures, "-o", file, "--size", "64", "-f", "json", status=1)
    report = outcome.json
    assert (report["pictures"], report["folders"], len(report["failed"])) == (18, 3, 1)
    assert "broken.png" in outcome.err
    learned = open_feature("oasis", weights=file)
    assert isinstance(learned, BilinearSimilarity)
    shown = [np.asarray(Image.open(path).resize((64, 64))) for path in sorted(pictures.rglob("[0-9]*.png"))]
    folders = np.array([path.parent.name for path in sorted(pictures.rglob("[0-9]*.png"))])
    vectors = learned.describe(shown)
    distances = learned.distances(vectors, vectors).numpy()
    np.fill_diagonal(distances, np.inf)
    assert (folders[distances.argmin(axis=1)] == folders).mean() >= 0.9


def test_error_for_unusable_input_is_a_single_sentence(pictures: Path, tmp_path: Path) -> None:
    plain = run("fit", "color", pictures, "-o", tmp_path / "x.safetensors", status=2)
    assert "FEATURE must be one of words, fisher, textons, hash_kpca, oasis, got 'color'" in plain.err
    one = run("fit", "oasis", pictures / "scene 1", "-o", tmp_path / "x.safetensors", "--size", "64", status=2)
    assert "oasis needs at least two classes, one of them with two images" in " ".join(one.err.split())
    (tmp_path / "empty").mkdir()
    assert "no readable images" in run("fit", "words", tmp_path / "empty", status=3).err
    assert not (tmp_path / "x.safetensors").exists()
