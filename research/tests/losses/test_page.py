"""The page of a loss study, with values that can be computed by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin_research.losses.page import as_page
from vidkin_research.losses.pictures import draw_losses
from vidkin_research.losses.study import LossFigures, LossReport, LossStudy


def run(method: str, seed: int, figure: float) -> LossFigures:
    return LossFigures(
        method=method,
        seed=seed,
        map=figure,
        micro_ap=figure / 2,
        positives=(0.1, 0.3, 0.5, 0.7, 0.9),
        negatives=(0.0, 0.1, 0.2, 0.3, 0.4),
        own_map=((1.0, -1.0), (-1.0, 1.0)),
        other_map=((0.0, 0.0), (0.0, 0.0)),
    )


@pytest.fixture
def report() -> LossReport:
    runs = [
        run("MAE", 0, 0.2),
        run("MAE", 1, 0.4),
        run("circle", 0, 0.6),
        run("base", 0, 0.5),
        run("Chamfer alone", 0, 0.7),
    ]
    study = LossStudy(seeds=(0, 1), steps=7, pairs=3, extractor="classical")
    return LossReport(study, (4, 9), (2, 5), runs)


def test_losses_are_ordered_by_micro_ap_and_parts_keep_their_order(report: LossReport) -> None:
    lines = as_page(report, notes=["Measured somewhere."]).splitlines()
    rows = [line for line in lines if line.startswith("| ") and "mAP" not in line]
    assert [row.split(" | ")[0] for row in rows] == ["| circle", "| MAE", "| Chamfer alone", "| base"]
    # The mean and the sample standard deviation of 0.2 and 0.4.
    assert rows[1] == "| MAE | 0.300 ± 0.141 | 0.150 ± 0.071 | 0.10, 0.50 | 0.20, 0.40 |"
    assert rows[0] == "| circle | 0.600 | 0.300 | 0.10, 0.50 | 0.20, 0.40 |"
    assert "## One loss in addition to the base objective" in lines
    assert "## Ablation of the full objective" in lines
    assert "Measured somewhere." in lines
    assert "Trained on 9 clips from 4 videos and evaluated on 5 clips from 2 other videos" in lines[2]
    assert "`classical`, frame labels from `vidkin`; windows of 48 frames at 10 per second." in lines[2]
    assert "7 steps of 3 clips, seeds 0, 1." in lines[2]
    assert "## k over frames" not in lines


def test_scores_with_other_k_over_times_have_a_separate_table(report: LossReport) -> None:
    runs = [
        replace(run("base", seed, 0.5), by_times={"0": (value, 0.1), "1": (0.3, 0.2)})
        for seed, value in enumerate((0.4, 0.6))
    ]
    page = as_page(LossReport(report.study, (4, 9), (2, 5), [*runs, run("MAE", 0, 0.2)])).splitlines()
    start = page.index("## k over frames")
    assert page[start + 4 : start + 7] == [
        "| k_t | 0 | 1 |",
        "|---|---|---|",
        "| base | 0.500 / 0.100 | 0.300 / 0.200 |",
    ]


def test_rows_of_regions_have_a_table(report: LossReport) -> None:
    page = as_page(LossReport(report.study, (4, 9), (2, 5), [run("Chamfer alone, all regions", 0, 0.2)]))
    assert "## k over regions" in page
    assert "## Ablation" not in page


def test_group_without_runs_has_no_table(report: LossReport) -> None:
    page = as_page(LossReport(report.study, report.train, report.test, report.runs[:2]))
    assert "Ablation of the full objective" not in page


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plot_shows_the_first_seed(report: LossReport, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"losses{suffix}"
    draw_losses(report, path)
    assert path.stat().st_size > 1000
    if suffix == ".svg":
        drawn = path.read_text(encoding="utf-8")
        assert all(drawn.count(f"<!-- {name} -->") == 1 for name in ("MAE", "circle", "base", "Chamfer alone"))


def test_other_extensions_are_rejected(report: LossReport, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="not an image format"):
        draw_losses(report, tmp_path / "losses.docx")
