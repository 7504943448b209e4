"""The loss study: evaluation on unseen videos, saved runs, a page and a plot."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support.videos import encode, pan
from vidkin.datasets.augmentation.clip_views import StrongSettings
from vidkin.errors import InvalidArgumentError
from vidkin.models.comparator import build_comparator
from vidkin.models.config import ComparatorConfig
from vidkin.training import available_objectives, load_recipe
from vidkin.training.clip_footage import Window
from vidkin.training.clip_views import ClipSettings
from vidkin_research.losses import (
    ABLATION,
    LOSSES,
    METHODS,
    SPACE,
    LossFigures,
    LossReport,
    LossStudy,
    as_page,
    draw_losses,
    run_loss_study,
)
from vidkin_research.losses.study import choose_windows, scores_at

CHOSEN = [method for method in METHODS if method.name in ("Chamfer alone", "+ frame AP")]


@pytest.fixture(scope="module")
def footage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("footage")
    for name in ("coffee", "rocket", "chelsea", "astronaut", "camera"):
        encode(folder / f"{name}.mp4", pan(name, 32, width=96, height=64))
    return folder


def study(**changes: object) -> LossStudy:
    clips = ClipSettings(rate=5.0, window=16, length=8, side=32, views=1, strong=StrongSettings(inset=0.0))
    settings: dict[str, object] = {"methods": CHOSEN, "clips": clips, "steps": 1, "pairs": 3, "seeds": (0, 1)}
    settings |= {"extractor": "squares", "shortest": 4}
    return LossStudy(**{**settings, **changes})  # type: ignore[arg-type]


def figures(method: str, seed: int, micro_ap: float) -> LossFigures:
    return LossFigures(
        method, seed, 0.9, micro_ap, (0.1, 0.4, 0.6, 0.8, 0.9), (0, 0.1, 0.2, 0.3, 0.5), [[1.0]], [[0.0]]
    )


def test_ten_losses_are_each_added_to_the_base_objective_with_one_weight() -> None:
    base = next(method for method in ABLATION if method.name == "base").terms
    assert [name for name, _ in base] == ["info_nce", "self_hard_negative", "similarity_regularizer"]
    assert [method.terms[:-1] for method in LOSSES] == [base] * 10
    assert len({method.terms[-1][0] for method in LOSSES}) == 10
    assert {method.terms[-1][1] for method in LOSSES} == {4.0}


def test_every_method_is_a_recipe() -> None:
    assert len({method.name for method in METHODS}) == len(METHODS) == 21
    for method in METHODS:
        assert {name for name, _ in method.terms} <= set(available_objectives())
        if method.terms:
            load_recipe(
                {
                    "data": {"source": "a", "kind": "unlabeled"},
                    "model": {"kind": "comparator", **method.model},
                    "objective": [{"name": name, "weight": weight} for name, weight in method.terms],
                }
            )


def test_row_of_two_tables_is_trained_once(footage: Path, tmp_path: Path) -> None:
    twice = [method for method in METHODS if method.name in ("QuadLinear-AP", "+ video AP")]
    report = run_loss_study(study(methods=twice, seeds=(0,)), [footage], tmp_path)
    assert [run.method for run in report.runs] == ["QuadLinear-AP", "+ video AP"]
    assert report.runs[0].micro_ap == report.runs[1].micro_ap
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_regions_are_averaged_according_to_k(footage: Path, tmp_path: Path) -> None:
    rows = [method for method in METHODS if not method.terms]
    report = run_loss_study(study(methods=rows, seeds=(0,), extractor="classical"), [footage], tmp_path)
    assert [run.method for run in report.runs][1:] == [method.name for method in SPACE if not method.terms]
    # The mean of the largest 1, 2, 3 and all 10 similarities of a region decreases.
    medians = [run.negatives[2] for run in report.runs]
    assert medians == sorted(medians, reverse=True)
    assert len(set(medians)) == 4


def test_segments_have_the_minimum_length_and_are_spread_over_a_video() -> None:
    long = [Window(number, 0, 10 * number, 10 * number + 10) for number in range(5)]
    short = [Window(5, 1, 0, 9), Window(6, 2, 0, 12)]
    chosen = choose_windows([*long, *short], shortest=10, per_video=2)
    assert [(window.number, window.video, window.start) for window in chosen] == [(0, 0, 10), (1, 0, 30), (2, 2, 0)]


def test_scores_with_another_k_equal_a_model_of_that_k() -> None:
    videos = torch.nn.functional.normalize(
        torch.rand(4, 9, 2, 8, generator=torch.Generator().manual_seed(1)) - 0.3, dim=-1
    )
    lengths = torch.tensor([9, 5, 9, 2])
    for network in ("none", "cnn"):
        settings = {"extractor": "a", "dimension": 8, "symmetric": True, "network": network}
        model = build_comparator(ComparatorConfig.from_mapping(settings), weights="random")
        for share in (0.0, 0.3, 1.0):
            other = ComparatorConfig.from_mapping({**settings, "temporal_share": share})
            expected = build_comparator(other, weights="random")
            expected.load_state_dict(model.state_dict())
            comparison = model(videos, lengths, slice(0, 3))
            torch.testing.assert_close(
                scores_at(model, comparison, lengths, share), expected(videos, lengths, slice(0, 3)).scores
            )


def test_every_run_is_evaluated_on_unseen_videos_and_saved(footage: Path, tmp_path: Path) -> None:
    told: list[str] = []
    report = run_loss_study(study(), [footage], tmp_path, on_progress=lambda *at: told.append(at[2]))
    assert (report.train, report.test) == ((3, 3), (2, 2))
    assert [(run.method, run.seed) for run in report.runs] == [
        (method.name, seed) for seed in (0, 1) for method in CHOSEN
    ]
    for run in report.runs:
        assert 0 <= run.map <= 1
        assert 0 <= run.micro_ap <= 1
        assert sorted(run.positives) == list(run.positives)
    # Without training, the seed has no effect.
    alone = [run for run in report.runs if run.method == "Chamfer alone"]
    assert (alone[0].map, alone[0].micro_ap) == (alone[1].map, alone[1].micro_ap)
    assert (len(alone[0].own_map), len(report.runs[1].own_map)) == (8, 2)
    for run in report.runs:
        # k_t = 0 uses only the largest value, as in the model.
        assert run.by_times["0"] == pytest.approx((run.map, run.micro_ap))
        assert list(run.by_times) == ["0", "0.03", "0.06", "0.1", "0.2", "0.3", "1"]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    assert len(before) == 4
    again = run_loss_study(study(), [footage], tmp_path)
    assert again.runs == report.runs
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()} == before
    draw_losses(report, tmp_path / "losses.png")
    assert (tmp_path / "losses.png").stat().st_size > 5000


def test_page_lists_the_best_loss_first_and_parts_in_order() -> None:
    runs = [figures(name, seed, value + seed / 10) for name, value in (("MAE", 0.3), ("MSE", 0.5)) for seed in (0, 1)]
    runs += [figures("base", 0, 0.2), figures("+ video AP", 0, 0.7)]
    page = as_page(LossReport(study(), (3, 6), (2, 4), runs), notes=["Made by hand."])
    rows = [line for line in page.splitlines() if line.startswith("| ") and "mAP" not in line]
    assert rows == [
        "| MSE | 0.900 ± 0.000 | 0.550 ± 0.071 | 0.10, 0.60 | 0.20, 0.50 |",
        "| MAE | 0.900 ± 0.000 | 0.350 ± 0.071 | 0.10, 0.60 | 0.20, 0.50 |",
        "| base | 0.900 | 0.200 | 0.10, 0.60 | 0.20, 0.50 |",
        "| + video AP | 0.900 | 0.700 | 0.10, 0.60 | 0.20, 0.50 |",
    ]
    assert "evaluated on 4 clips from 2 other videos" in page
    assert page.endswith("Made by hand.\n")


def test_invalid_settings_are_rejected(footage: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="test must be above 0 and below 1"):
        study(test=1.0)
    with pytest.raises(
        InvalidArgumentError,
        match=r"two videos each, with 4 frames at 5 per second, got 5 videos and test = 0\.1",
    ):
        run_loss_study(study(test=0.1), [footage], tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"with 48 frames at 5 per second, got 0 videos"):
        run_loss_study(study(shortest=48), [footage], tmp_path)
