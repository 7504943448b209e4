"""Students, their training in pieces, and their files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin_research.frame_encoder.export import export_student
from vidkin_research.frame_encoder.material import to_input
from vidkin_research.frame_encoder.network import Student, StudentSettings, load_pretrained
from vidkin_research.frame_encoder.objective import ObjectiveSettings
from vidkin_research.frame_encoder.raw_vectors import (
    Network,
    VectorStore,
    mean_of_best,
    nearest_within,
)
from vidkin_research.frame_encoder.train import TrainSettings, open_run, read_recipe, train

SMALL = TrainSettings(
    student=StudentSettings(backbone="mobilenetv2", side=32, dimension=192),
    objective=ObjectiveSettings(),
    steps=4,
    moments=4,
    paired=0.5,
    bank=8,
    warm_up=2,
    refresh=2,
    validate=2,
)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(work: Path, tmp_path: Path) -> None:
    whole = open_run(tmp_path / "whole", SMALL)
    train(whole, tmp_path / "whole", work)
    first = open_run(tmp_path / "parts", SMALL)
    train(first, tmp_path / "parts", work, until=2)
    second = open_run(tmp_path / "parts", SMALL)
    assert second.step == 2
    train(second, tmp_path / "parts", work)
    assert second.step == whole.step == 4
    losses = [[row["loss"] for row in run.curve if "loss" in row] for run in (whole, second)]
    assert losses[0] == losses[1]
    for one, other in zip(whole.averaged.parameters(), second.averaged.parameters(), strict=True):
        assert torch.equal(one, other)
    stored = json.loads((tmp_path / "parts" / "curve.json").read_text())
    assert any("loss" in row for row in stored)


def test_a_run_with_other_settings_is_refused(work: Path, tmp_path: Path) -> None:
    open_run(tmp_path, SMALL).save(tmp_path)
    changed = TrainSettings(student=SMALL.student, seed=3)
    with pytest.raises(InvalidArgumentError, match=r"has a run with other settings \(.*seed.*\); give another folder"):
        open_run(tmp_path, changed)


def test_the_recipe_that_comes_with_it_can_be_read() -> None:
    import vidkin_research.frame_encoder.train as module

    recipe = read_recipe(Path(module.__file__).with_name("frame-encoder.toml"))
    assert recipe.student.backbone == "efficientnet_lite0"
    assert recipe.objective.order == "quad_linear"


def test_an_exported_student_gives_the_same_vectors_for_bytes(tmp_path: Path) -> None:
    run = open_run(tmp_path / "run", SMALL)
    file = export_student(run, tmp_path / "student.onnx", teacher="made up")
    images = np.random.default_rng(0).integers(256, size=(3, 32, 32, 3), dtype=np.uint8)
    store = VectorStore(Network("student", file, 32), tmp_path)
    vectors = store.encode(list(images))
    with torch.no_grad():
        expected = run.averaged(to_input(images)).numpy()
    assert vectors.shape == (3, 192)
    assert ((vectors * expected).sum(axis=1) > 0.999).all()
    told = json.loads(file.with_suffix(".json").read_text())
    assert told["teacher"] == "made up"
    assert all(row["terms"] for row in told["pictures"])
    # Weights are stored in two bytes each, the last layer in one.
    assert file.stat().st_size < 2.4 * told["parameters"]


@pytest.mark.parametrize("backbone", ["efficientnet_lite0", "mobilenetv2"])
def test_students_take_any_side(backbone: str) -> None:
    student = Student(StudentSettings(backbone=backbone, side=40, dimension=16))  # type: ignore[arg-type]
    with torch.no_grad():
        vectors = student(torch.randn(2, 3, 40, 40))
    assert torch.allclose(vectors.norm(dim=1), torch.ones(2), atol=1e-5)


def test_batch_norms_are_folded_into_the_convolutions_before_them(tmp_path: Path) -> None:
    student = Student(StudentSettings(side=32, dimension=8))
    torch.manual_seed(0)
    state = {}
    for number, convolution in enumerate(student.convolutions):
        assert isinstance(convolution, torch.nn.Conv2d)
        state[f"{number}.conv"] = torch.randn_like(convolution.weight) * 0.1
        channels = len(convolution.weight)
        for name in ("weight", "bias", "running_mean"):
            state[f"{number}.{name}"] = torch.randn(channels)
        state[f"{number}.running_var"] = torch.rand(channels) + 0.5
        state[f"{number}.num_batches_tracked"] = torch.tensor(7)
    torch.save(state, tmp_path / "weights.pth")
    load_pretrained(student, tmp_path / "weights.pth")
    image = torch.randn(1, 3, 9, 9)
    plain = torch.nn.functional.conv2d(image, state["0.conv"])
    normed = torch.nn.functional.batch_norm(
        plain, state["0.running_mean"], state["0.running_var"], state["0.weight"], state["0.bias"], eps=1e-3
    )
    with torch.no_grad():
        assert torch.allclose(student.convolutions[0](image), normed[:, :, ::2, ::2], atol=1e-5)
    with pytest.raises(InvalidArgumentError, match="must have the 52 convolutions of mobilenetv2, got 49"):
        load_pretrained(Student(StudentSettings(backbone="mobilenetv2")), tmp_path / "weights.pth")


def test_unknown_backbones_and_sides_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="backbone must be one of efficientnet_lite0, mobilenetv2"):
        StudentSettings(backbone="resnet")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="side must be at least 32 and dimension at least 2, got 8 and 512"):
        StudentSettings(side=8)


def test_the_score_of_a_pair_is_the_mean_of_each_query_frames_best() -> None:
    query = np.eye(4, dtype=np.float32)[:2]
    target = np.eye(4, dtype=np.float32)[[0, 3, 3]]
    assert mean_of_best(query, target) == pytest.approx(0.5)
    assert mean_of_best(target, query) == pytest.approx(1 / 3)


def test_moments_count_where_the_nearest_frame_is_within_a_second() -> None:
    frames = np.eye(5, dtype=np.float32)
    times = [0.0, 1.0, 2.0, 3.0, 4.0]
    later = [time + 0.5 for time in times]
    assert nearest_within(frames, later, frames, times, 1.0) == 1.0
    assert nearest_within(frames, later, frames[::-1], times, 1.0) == pytest.approx(0.2)
