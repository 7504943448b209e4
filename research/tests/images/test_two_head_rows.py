"""Rows that fine-tune a network, and the sweeps over their settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from tests.support.colors import write_colors
from vidkin.features import import_timm
from vidkin.training.engine import read_terms
from vidkin_research.images import IMAGE_SETS, ImageTask, measure_row, open_task, sweeps, time_steps
from vidkin_research.images.figures import RowFigures
from vidkin_research.images.sweeps import (
    CollapseCurve,
    StepTime,
    SweepReport,
    draw_sweeps,
    run_sweeps,
    sweeps_page,
)
from vidkin_research.images.two_head_rows import TWO_HEAD_ROWS, VARIANTS


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> ImageTask:
    folder = write_colors(tmp_path_factory.mktemp("colors"))
    torch.manual_seed(0)
    save_file(import_timm().create_model("mobilenetv2_100").state_dict(), folder / "weights.safetensors")
    pictures = next(chosen for chosen in IMAGE_SETS if chosen.name == "pictures")
    return open_task(pictures, folder, size=32, weights=folder / "weights.safetensors", steps=1)


CHOSEN = [row for row in TWO_HEAD_ROWS if row.name in ("softmax alone, balanced batches", "two-head, semi-hard")]


@pytest.mark.parametrize("row", CHOSEN, ids=lambda row: row.name)
def test_variant_is_trained_and_evaluated(task: ImageTask, row: object) -> None:
    fitted = row.fit(task, 0)  # type: ignore[attr-defined]
    terms = read_terms(fitted.steps)
    variant = VARIANTS[row.name]  # type: ignore[attr-defined]
    assert len(terms) == 1
    name = variant.loss or ("semi_hard" if variant.balanced else "classification")
    assert name in terms[0]
    # The metric loss is added with weight lambda; softmax only adds nothing.
    weight = variant.weight if variant.loss else 0.0
    expected = terms[0]["classification"] + (weight * terms[0][name] if name != "classification" else 0.0)
    assert terms[0]["loss"] == pytest.approx(expected, rel=1e-5)
    measured = measure_row(fitted, task, row=row.name, group="two-head", seed=0, seconds_to_fit=1.0)  # type: ignore[attr-defined]
    figures = measured.figures
    assert 0 <= figures.top_1 <= 1
    assert figures.recalls == tuple(sorted(figures.recalls))
    assert fitted.model.dimension == (256 if variant.loss else 1280)


def test_learning_rate_of_the_task_determines_the_weight_update(task: ImageTask) -> None:
    # A step of SGD changes each weight by the rate times its gradient, which is equal for equal seeds.
    row = next(row for row in TWO_HEAD_ROWS if row.name == "softmax alone, balanced batches")
    heads = []
    for rate in (1e-9, 0.001, 0.002):
        torch.manual_seed(0)
        fitted = row.fit(replace(task, learning_rate=rate), 0)
        read_terms(fitted.steps)
        heads.append(fitted.model.classifier.weight.detach().clone())
    start, slow, fast = heads
    torch.testing.assert_close(fast - start, 2 * (slow - start), rtol=1e-3, atol=1e-6)
    assert (slow - start).abs().max() > 1e-5


def test_times_are_relative_to_the_first_row(task: ImageTask) -> None:
    names = ("softmax alone", "two-head, semi-hard")
    times = time_steps(task, steps=1, rows=names)
    assert [found.row for found in times] == list(names)
    assert times[0].ratio == 1.0
    assert times[1].ratio == pytest.approx(times[1].seconds / times[0].seconds)


@pytest.mark.slow
def test_sweeps_are_saved_and_written_as_a_page(
    task: ImageTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "_LAMBDAS", (0.5,))
    monkeypatch.setattr(sweeps, "_DIMENSIONS", (16,))
    report = run_sweeps(task, tmp_path, timed=1)
    assert [run.row for run in report.runs] == ["lambda 0.5", "embedding of 16"]
    assert [(curve.margin, len(curve.distances)) for curve in report.curves] == [
        ("soft margin", 10),
        ("hard margin .2", 10),
    ]
    assert all(0 <= distance <= 2 for curve in report.curves for distance in curve.distances)
    page = sweeps_page(report)
    assert "| lambda 0.5 |" in page
    assert "* hard margin .2: " in page
    assert "| softmax alone | " in page
    assert len(list(tmp_path.rglob("*.json"))) == 4


def test_sweeps_are_plotted(tmp_path: Path) -> None:
    runs = [
        RowFigures("made", name, "two-head", 0, top_1, top_1, 0.9, (0.4, 0.8, 0.9, 1.0), 1.0, 1.0)
        for name, top_1 in (("lambda 0.1", 0.5), ("lambda 1", 0.6), ("embedding of 16", 0.5))
    ]
    curves = [CollapseCurve("soft margin", [1.2, 0.4])]
    draw_sweeps(SweepReport("made", runs, curves, [StepTime("softmax alone", 0.1, 1.0)]), tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as drawn:
        assert drawn.size == (1200, 840)
        colors = {color for _, color in drawn.convert("RGB").getcolors(1 << 24)}  # type: ignore[union-attr]
    # The first three default colors of matplotlib: top-1, R@1 and R@4.
    assert {(31, 119, 180), (255, 127, 14), (44, 160, 44)} <= colors
