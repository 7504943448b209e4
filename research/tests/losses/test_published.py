"""Comparator tables at their published size: recipes of all rows, and a complete run on small synthetic videos."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.videos import encode, pan
from vidkin.features import Whitening, open_extractor
from vidkin.training import load_recipe
from vidkin_research.losses import LOSSES, SWEEPS, PublishedStudy, published, published_page, run_published_study
from vidkin_research.losses.published import method_recipe
from vidkin_research.tables import PAPER_TABLES
from vidkin_research.tables.comparators import _K, _MODULES

ROWS = [*LOSSES, *_MODULES, *_K, *(method for methods in SWEEPS.values() for method in methods)]


@pytest.mark.parametrize("method", ROWS, ids=lambda method: method.name)
def test_every_row_is_the_published_recipe_with_other_terms(method: object, tmp_path: Path) -> None:
    study = PublishedStudy(methods=[method])  # type: ignore[list-item]
    recipe = method_recipe(study, method, 1, [tmp_path / "a.mp4", tmp_path / "b.mp4"], tmp_path / "w")  # type: ignore[arg-type]
    plain = load_recipe("published-self-supervised")
    assert [part.name for part in recipe.objectives] == [name for name, _ in method.terms]  # type: ignore[attr-defined]
    assert recipe.model["weighting"] == "attention"
    assert (recipe.schedule.steps, recipe.schedule.learning_rate) == (10_000, plain.schedule.learning_rate)
    assert recipe.comparator().extractor == plain.comparator().extractor
    assert (recipe.data.source, recipe.data.folders) == (str(tmp_path / "a.mp4"), (str(tmp_path / "b.mp4"),))


def test_sweeps_have_the_published_values() -> None:
    values = {name: [method.parameters for method in methods] for name, methods in SWEEPS.items()}
    assert [next(iter(one.values()))["delta"] for one in values["hap-delta-video"]] == [0.01, 0.05, 0.1, 0.15]
    assert [one["frame_quad_linear_ap"]["rho"] for one in values["hap-rho-frame"]] == [0.02, 0.2, 1.0, 5.0, 50.0]
    assert [method.terms[-1][1] for method in SWEEPS["hap-lambda-frame"]] == [2.0, 4.0, 6.0, 8.0]
    assert len(SWEEPS["hap-rates"]) == 6
    assert set(SWEEPS) < {table.name for table in PAPER_TABLES}


RECIPE = """
[data]
source = "x"
kind = "unlabeled"
[data.options]
rate = 5.0
window = 16
length = 8
side = 32
[data.options.strong]
inset = 0.0
[model]
kind = "comparator"
extractor = "classical"
dimension = 16
weighting = "attention"
[[objective]]
name = "info_nce"
[schedule]
steps = 9
pairs = 2
"""


@pytest.mark.large
def test_rows_are_trained_and_evaluated_on_a_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    data = tmp_path / "data"
    for folder in ("vcdb", "fivr-5k", "annotations/fivr"):
        (data / folder).mkdir(parents=True)
    names = ("coffee", "rocket", "chelsea", "astronaut")
    for name in names:
        encode(data / "vcdb" / f"{name}.mp4", pan(name, 24, width=96, height=64))
    for number, name in enumerate(("camera", "camera", "brick")):
        encode(data / "fivr-5k" / f"v{number}.mp4", pan(name, 30, width=96, height=64, seed=number))
    labels = data / "annotations" / "fivr"
    (labels / "annotation.json").write_text(json.dumps({"v0": {"ND": ["v1"]}}))
    (labels / "fivr-5k-queries.txt").write_text("v0 v0.mp4\n")
    (labels / "fivr-5k-database.txt").write_text("v1 v1.mp4\nv2 v2.mp4\n")
    images = np.stack([frame for name in names for frame in pan(name, 12, width=96, height=64)])
    described = open_extractor("classical").describe(images)  # type: ignore[attr-defined]
    Whitening.fit([described], dimension=16).save(data / "whitening.safetensors")
    (tmp_path / "tiny.toml").write_text(RECIPE)
    monkeypatch.setattr(published, "RECIPE", str(tmp_path / "tiny.toml"))
    study = PublishedStudy(methods=LOSSES[-1:], steps=2, every=1, device="cpu")
    runs = run_published_study(study, data, tmp_path / "out")
    assert set(runs[0].figures) == {f"fivr-5k: {name}" for name in ("DSVR", "CSVR", "ISVR", "DSVD", "CSVD", "ISVD")}
    assert all(0 <= value <= 1 for value in runs[0].figures.values())
    assert "| QuadLinear-AP | " in published_page("HAP-VR, table 2", runs)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.safetensors")}
    assert run_published_study(study, data, tmp_path / "out") == runs
    assert {path: path.stat().st_mtime_ns for path in before} == before
    # Another row reuses the sampled frames of the videos.
    other = PublishedStudy(methods=LOSSES[:1], steps=2, every=1, device="cpu")
    run_published_study(other, data, tmp_path / "out")
    assert len(list((tmp_path / "out" / "videos" / "frames").iterdir())) == len(names)
