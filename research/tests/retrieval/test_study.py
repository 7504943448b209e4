"""The comparison from files to saved runs: resuming, and tuning on validation."""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.support.labelled import two_by_two
from tests.support.videos import encode
from vidkin.errors import InvalidArgumentError
from vidkin_research.retrieval import (
    ComparisonPlan,
    ComparisonRun,
    RunSchedule,
    comparison_set,
    method_named,
    open_set,
    read_runs,
    run_comparison,
)
from vidkin_research.retrieval.prepared import PreparedSet
from vidkin_research.retrieval.study import choose_rate
from vidkin_research.retrieval.training import train_method

METHODS = ("backbone", "untrained", "triplet", "radial_detached", "all_quadlets")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_by_two(tmp_path_factory.mktemp("pictures"), each=12)


@pytest.fixture(scope="module")
def plan() -> ComparisonPlan:
    return ComparisonPlan(
        sets=("pictures",),
        methods=METHODS,
        seeds=(0, 1),
        schedule=RunSchedule(steps=4, quadlets=4),
        learning_rates=(1e-3, 1e-5),
        backbone="small",
        hidden=16,
        units=8,
    )


def run_of(qp: float, rate: float, *, seed: int = 0) -> ComparisonRun:
    return ComparisonRun(
        set="pictures",
        method="triplet",
        seed=seed,
        learning_rate=rate,
        validation={"qp": qp},
        test={"qp": 0.0},
        training={},
        collapsed=False,
        ranked={},
    )


def test_every_method_is_run_and_saved(plan: ComparisonPlan, pictures: Path, tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    runs = run_comparison(plan, pictures, output=tmp_path, on_progress=lambda *words: told.append(words))
    assert [run.method for run in runs if run.seed == 0 and run.learning_rate in (0.0, 1e-3)] == list(METHODS)
    assert sorted(run.seed for run in runs if run.method == "untrained") == [0, 1]
    # Trained methods: both seeds at the common rate, the first seed at the other one, and the second if that was
    # selected.
    for method in METHODS[2:]:
        own = [run for run in runs if run.method == method]
        assert {(run.seed, run.learning_rate) for run in own} >= {(0, 1e-3), (0, 1e-5), (1, 1e-3)}
        assert {run.seed for run in own if run.learning_rate == choose_rate(own, plan)} == {0, 1}
    for run in runs:
        assert 0 <= run.test["qp"] <= 100
        assert 0 <= run.validation["qp_gallery"] <= 100
        assert len(run.ranked) == 4
        assert all(len(row) == 10 for row in run.ranked.values())
    assert any("Triplet, seed 1" in text for text, _ in told)
    assert all(0 <= share <= 1 for _, share in told)
    key = [(run.method, run.seed, run.learning_rate) for run in runs]
    stored = [(run.method, run.seed, run.learning_rate) for run in read_runs(plan, tmp_path)]
    assert sorted(stored) == sorted(key)


@pytest.mark.large
def test_interrupted_comparison_resumes(plan: ComparisonPlan, pictures: Path, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(text: str, share: float) -> None:
        if "Radial" in text:
            raise StopError

    with pytest.raises(StopError):
        run_comparison(plan, pictures, output=tmp_path, on_progress=stop)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/pictures/*.json")}
    assert any("triplet" in path.name for path in before)
    told: list[str] = []
    runs = run_comparison(plan, pictures, output=tmp_path, on_progress=lambda text, _: told.append(text))
    assert not any("Triplet" in text or "frame features" in text for text in told)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert {run.method for run in runs} == set(METHODS)
    whole = run_comparison(plan, pictures, output=tmp_path / "another")
    assert [run.test for run in runs] == [run.test for run in whole]


def test_runs_with_other_settings_are_repeated(plan: ComparisonPlan, pictures: Path, tmp_path: Path) -> None:
    small = replace(plan, methods=("untrained",), seeds=(0,))
    run_comparison(small, pictures, output=tmp_path)
    other = replace(small, hidden=24)
    assert other.protocol() != small.protocol()
    assert read_runs(other, tmp_path) == []
    assert len(run_comparison(other, pictures, output=tmp_path)) == 1
    stored = json.loads((tmp_path / "runs" / "pictures" / "untrained-0-0.json").read_text())
    assert stored["protocol"] == other.protocol()
    assert replace(small, learning_rates=(1.0,), seeds=(3,)).protocol() == small.protocol()


def test_runs_on_other_data_are_repeated(plan: ComparisonPlan, pictures: Path, tmp_path: Path) -> None:
    small = replace(plan, methods=("backbone", "triplet"), seeds=(0,), learning_rates=(1e-3,))
    other = tmp_path / "other" / pictures.name
    shutil.copytree(pictures, other)
    for path in other.rglob("*.png"):
        # The same file names, but nothing to distinguish the classes by.
        Image.effect_noise((40, 40), 50).convert("RGB").save(path)
    first = run_comparison(small, pictures, output=tmp_path / "runs")
    second = run_comparison(small, other, output=tmp_path / "runs")
    fresh = run_comparison(small, other, output=tmp_path / "another")
    assert [run.test for run in second] == [run.test for run in fresh]
    assert [run.test for run in second] != [run.test for run in first]
    assert [run.test for run in read_runs(small, tmp_path / "runs")] == [run.test for run in fresh]
    # Back to the original data with one method: the saved run of the other one is on other data.
    run_comparison(replace(small, methods=("triplet",)), pictures, output=tmp_path / "runs")
    assert [run.method for run in read_runs(small, tmp_path / "runs")] == ["triplet"]


def test_collapse_gives_a_warning(
    plan: ComparisonPlan, pictures: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    steep = replace(
        plan,
        methods=("radial",),
        seeds=(0,),
        learning_rates=(3e-2,),
        schedule=RunSchedule(steps=60, quadlets=8, weight_decay=0.0),
    )
    with caplog.at_level(logging.WARNING, logger="vidkin_research.retrieval.study"):
        (run,) = run_comparison(steep, pictures, output=tmp_path)
    assert run.collapsed
    distance, before = run.training["distance"], run.training["distance_before"]
    assert distance is not None
    assert before is not None
    assert distance < before / 3
    assert [record.getMessage() for record in caplog.records] == [
        "pictures: Radial, published gradient, seed 0, rate 0.03 collapsed: the mean pairwise distance of embeddings "
        f"fell from {before:.2f} to {distance:.2f}"
    ]


def test_learning_rate_is_tuned_on_validation_only() -> None:
    plan = ComparisonPlan(sets=("grocery",), learning_rates=(1e-3, 1e-4))
    assert choose_rate([run_of(50.0, 1e-3), run_of(60.0, 1e-4)], plan) == 1e-4
    assert choose_rate([run_of(50.0, 1e-3), run_of(50.0, 1e-4)], plan) == 1e-3  # the first on a tie
    assert choose_rate([run_of(50.0, 1e-3), run_of(60.0, 1e-4, seed=1)], plan) == 1e-3  # first seed only


def test_invalid_plans_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"a set must be one of fruit, .*, got 'x'"):
        ComparisonPlan(sets=("x",))
    with pytest.raises(InvalidArgumentError, match=r"a method must be one of backbone, .*, got 'x'"):
        ComparisonPlan(sets=("fruit",), methods=("x",))
    with pytest.raises(InvalidArgumentError, match="seeds must have at least one entry, got none"):
        ComparisonPlan(sets=("fruit",), seeds=())
    with pytest.raises(InvalidArgumentError, match="methods must be distinct, got triplet, triplet"):
        ComparisonPlan(sets=("fruit",), methods=("triplet", "triplet"))
    for rate in (0.0, float("nan")):
        with pytest.raises(InvalidArgumentError, match="a learning rate must be a number above 0, got"):
            ComparisonPlan(sets=("fruit",), learning_rates=(1e-3, rate))


def test_unwritable_output_is_rejected(plan: ComparisonPlan, pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="Not a directory; choose an output folder that can be written"):
        run_comparison(plan, pictures, output=tmp_path / "file" / "out")


def test_videos_can_be_compared_with_c3d(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for category in range(2):
        for subcategory in range(2):
            folder = tmp_path / "videos" / f"category{category}" / f"kind{subcategory}"
            folder.mkdir(parents=True)
            for number in range(8):
                base = np.array([180 * category, 180 * subcategory, 20 * number])
                frames = [(base + random.integers(0, 40, (48, 48, 3))).astype(np.uint8) for _ in range(4)]
                encode(folder / f"{number}.mp4", frames, rate=4)
    plan = ComparisonPlan(
        sets=("videos",),
        methods=("backbone", "c3d", "quadlet"),
        seeds=(0,),
        schedule=RunSchedule(steps=2, quadlets=4),
        learning_rates=(1e-3,),
        backbone="small",
        hidden=8,
        units=8,
        frames=2,
    )
    runs = run_comparison(plan, tmp_path / "videos", output=tmp_path / "out")
    assert [run.method for run in runs] == ["backbone", "c3d", "quadlet"]
    assert runs[1].training["loss"] is not None


def test_frame_network_can_also_be_trained(plan: ComparisonPlan, pictures: Path, tmp_path: Path) -> None:
    schedule = replace(plan.schedule, steps=3, optimizer="adam", head_factor=10.0, clip=0.0)
    small = replace(plan, methods=("backbone", "untrained", "quadlet"), seeds=(0,), learning_rates=(1e-2,))
    whole = replace(small, trainable="all", size=32, schedule=schedule)
    assert whole.protocol() != small.protocol()
    runs = run_comparison(whole, pictures, output=tmp_path)
    assert [run.method for run in runs] == ["backbone", "untrained", "quadlet"]
    chosen = comparison_set("pictures")
    for used, changes in ((whole, True), (small, False)):
        prepared = PreparedSet(used, chosen, open_set(chosen, pictures), None, tmp_path / "other", None)
        method = method_named("quadlet")
        model = prepared.new_encoder(method, 0)
        before = {name: tensor.clone() for name, tensor in model.get_submodule("backbone").state_dict().items()}
        train_method(model, method, prepared.parts(method)["train"], used.schedule, seed=0)
        after = model.get_submodule("backbone").state_dict()
        assert any(not torch.equal(before[name], after[name]) for name in before) is changes


def test_saved_runs_without_newer_settings_are_valid() -> None:
    # The protocol in runs/ before these settings existed.
    assert ComparisonPlan(sets=("fruit",)).protocol() == "a81fe376b6e2"
    assert ComparisonPlan(sets=("fruit",), device="cuda").protocol() == "a81fe376b6e2"
    assert ComparisonPlan(sets=("fruit",), trainable="all").protocol() != "a81fe376b6e2"
