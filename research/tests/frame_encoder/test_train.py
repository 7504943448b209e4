"""Student models: interrupted training and saved files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional

from vidkin.errors import InvalidArgumentError
from vidkin_research.frame_encoder.export import export_student
from vidkin_research.frame_encoder.material import Material, open_material, to_input
from vidkin_research.frame_encoder.network import Student, StudentSettings, load_student, load_teacher
from vidkin_research.frame_encoder.objective import ObjectiveSettings
from vidkin_research.frame_encoder.raw_vectors import (
    Network,
    VectorStore,
    mean_of_best,
    nearest_within,
)
from vidkin_research.frame_encoder.train import TrainSettings, begin, open_run, read_recipe, train

SMALL = TrainSettings(
    student=StudentSettings(side=32, blocks=((0,), (0,), (0,), (0,)), inside=(8, 8, 8, 8), outside=16),
    objective=ObjectiveSettings(),
    fitted=24,
    steps=4,
    moments=4,
    paired=0.5,
    bank=8,
    warm_up=2,
    validate=2,
    dimension=12,
    whitened=15,
)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_interrupted_run_resumes_to_the_same_weights(work: Path, tmp_path: Path) -> None:
    material = open_material(work)
    whole = open_run(tmp_path / "whole", SMALL)
    train(whole, tmp_path / "whole", material)
    first = open_run(tmp_path / "parts", SMALL)
    train(first, tmp_path / "parts", material, until=2)
    second = open_run(tmp_path / "parts", SMALL)
    assert second.step == 2
    train(second, tmp_path / "parts", material)
    assert second.step == whole.step == 4
    losses = [[row["loss"] for row in run.curve if "loss" in row] for run in (whole, second)]
    assert losses[0] == losses[1]
    for one, other in zip(whole.averaged.parameters(), second.averaged.parameters(), strict=True):
        assert torch.equal(one, other)
    stored = json.loads((tmp_path / "parts" / "curve.json").read_text())
    assert any("loss" in row for row in stored)


def test_resuming_with_other_settings_is_rejected(tmp_path: Path) -> None:
    open_run(tmp_path, SMALL).save(tmp_path)
    changed = TrainSettings(student=SMALL.student, seed=3)
    with pytest.raises(
        InvalidArgumentError, match=r"run with other settings \(.*seed.*\); use these settings or another folder"
    ):
        open_run(tmp_path, changed)


def test_included_recipe_can_be_loaded() -> None:
    import vidkin_research.frame_encoder.train as module

    recipe = read_recipe(Path(module.__file__).with_name("frame-encoder.toml"))
    assert recipe.student == StudentSettings()
    assert recipe.objective.order == "quad_linear"


def test_exported_student_gives_nearly_the_same_vectors_for_uint8_input(work: Path, tmp_path: Path) -> None:
    run = open_run(tmp_path / "run", SMALL)
    file = export_student(run, open_material(work), tmp_path / "student.onnx", teacher="made up")
    images = np.stack([each.read(work)[:32, :32] for each in open_material(work).pictures[:3]])
    store = VectorStore(Network("student", file, 32), tmp_path)
    vectors = store.encode(list(images))
    assert vectors.shape == (3, 12)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    # With all directions and without whitening, vectors have the same angles as the pooled maps around their mean.
    material = open_material(work)
    plain = open_run(tmp_path / "plain", replace(SMALL, dimension=16, whitened=200, whitening_power=0.0))
    plain.averaged.load_state_dict(run.averaged.state_dict())
    exported = export_student(plain, material, tmp_path / "plain.onnx", teacher="made up")
    vectors = VectorStore(Network("plain", exported, 32), tmp_path).encode(list(images))
    every = [material.view(int(each), np.random.default_rng(0), side=32, edited=False) for each in material.training]
    with torch.no_grad():
        pooled = torch.nn.functional.normalize(run.averaged.pooled(to_input(np.stack([*images, *every]))), dim=1)
    expected = torch.nn.functional.normalize(pooled[:3] - pooled[3:].mean(dim=0), dim=1).numpy()
    assert np.abs(vectors @ vectors.T - expected @ expected.T).max() < 0.2
    told = json.loads(file.with_suffix(".json").read_text())
    assert told["teacher"] == "made up"
    assert all(row["terms"] for row in told["pictures"])
    # Weights are stored as one byte each.
    assert file.stat().st_size < 1.3 * told["parameters"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "plain.json",
        "plain.onnx",
        "student.json",
        "student.onnx",
    ]


def test_run_continues_from_an_exported_student(work: Path, tmp_path: Path) -> None:
    run = open_run(tmp_path / "run", SMALL)
    file = export_student(run, open_material(work), tmp_path / "student.onnx", teacher="made up")
    again = open_run(tmp_path / "again", SMALL, student=file)
    for (name, one), other in zip(run.averaged.named_parameters(), again.student.parameters(), strict=True):
        if not name.startswith("head."):
            assert torch.allclose(one, other, atol=float(one.abs().max()) / 100)
    random = validate_all(again.student, open_material(work))
    train(again, tmp_path / "again", open_material(work), until=1)
    # The whitening of the file cannot be used as the initial head, which is fitted to the teacher vectors instead.
    assert validate_all(again.student, open_material(work)) > random + 0.2
    wider = StudentSettings(side=32, blocks=SMALL.student.blocks, inside=SMALL.student.inside, outside=24)
    with pytest.raises(InvalidArgumentError, match=r"must be \(24, 8, 1, 1\), got \(16, 8, 1, 1\); use the recipe"):
        load_student(Student(wider), file)


def test_run_starts_with_the_folded_teacher_and_the_best_head(work: Path, tmp_path: Path) -> None:
    material = open_material(work)
    settings = replace(SMALL, folded=24)
    torch.manual_seed(0)
    teacher = Student(replace(SMALL.student, inside=(12, 12, 12, 12), outside=24)).eval().requires_grad_(False)
    run = open_run(tmp_path, settings)
    before = validate_all(run.student, material)
    begin(run, teacher, material)
    assert torch.equal(run.student.stem.weight, teacher.stem.weight)
    assert validate_all(run.student, material) > before + 0.2
    rates = {float(group["base"]) for group in run.optimizer.param_groups}
    assert min(rates) < max(rates) / 3


def validate_all(student: Student, material: Material) -> float:
    """Mean cosine to the teacher vectors over all images."""
    images = np.stack([material.view(each, np.random.default_rng(0), side=32, edited=False) for each in range(15)])
    with torch.no_grad():
        vectors = student(to_input(images)).numpy()
    return float((vectors * material.vectors.astype(np.float32)).sum(axis=1).mean())


def test_students_accept_any_side_length() -> None:
    student = Student(SMALL.student)
    with torch.no_grad():
        vectors = student(torch.randint(256, (2, 3, 48, 40)).float())
    assert torch.allclose(vectors.norm(dim=1), torch.ones(2), atol=1e-5)


def test_frozen_stages_do_not_change(work: Path, tmp_path: Path) -> None:
    run = open_run(tmp_path, SMALL)
    before = {name: value.clone() for name, value in run.student.state_dict().items()}
    train(run, tmp_path, open_material(work), until=2)
    changed = {name.split(".")[1] if name.startswith("stages") else name.split(".")[0]
               for name, value in run.student.state_dict().items() if not torch.equal(value, before[name])}  # fmt: skip
    assert changed == {"1", "2", "3", "head"}


Layers = list[tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int32]]]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Layers]:
    """A quantized ResNet-50 with random weights, and its convolutions: weights, channel scales, biases."""
    random = np.random.default_rng(3)
    shapes, width = [(64, 3, 7)], 64
    for inside, outside, count in ((64, 256, 3), (128, 512, 4), (256, 1024, 6), (512, 2048, 3)):
        for number in range(count):
            shapes += [(inside, width, 1), *([(outside, width, 1)] if number == 0 else []),
                       (inside, inside, 3), (outside, inside, 1)]  # fmt: skip
            width = outside
    layers = []
    nodes, tensors = [], []
    for number, (outward, inward, side) in enumerate(shapes):
        weight = random.integers(-9, 10, (outward, inward, side, side), dtype=np.int8)
        scale = random.uniform(0.001, 0.01, outward).astype(np.float32)
        bias = random.integers(-50, 50, outward, dtype=np.int32)
        layers.append((weight, scale, bias))
        parts = {f"w{number}": weight, f"ws{number}": scale, f"wz{number}": np.zeros(outward, np.int8),
                 f"b{number}": bias, f"bs{number}": scale / 2}  # fmt: skip
        tensors += [onnx.numpy_helper.from_array(part, name) for name, part in parts.items()]
        nodes += [
            onnx.helper.make_node("DequantizeLinear", [f"w{number}", f"ws{number}", f"wz{number}"], [f"wd{number}"]),
            onnx.helper.make_node("DequantizeLinear", [f"b{number}", f"bs{number}"], [f"bd{number}"]),
            onnx.helper.make_node("Conv", [f"x{number}", f"wd{number}", f"bd{number}"], [f"x{number + 1}"]),
        ]
    head = random.standard_normal((512, 2048)).astype(np.float32)
    tensors += [onnx.numpy_helper.from_array(head, "head"), onnx.numpy_helper.from_array(head[:, 0].copy(), "shift")]
    nodes.append(onnx.helper.make_node("Gemm", ["pooled", "head", "shift"], ["embedding"]))
    graph = onnx.helper.make_graph(nodes, "teacher", [], [], initializer=tensors)
    file = tmp_path_factory.mktemp("teacher") / "teacher.onnx"
    onnx.save(onnx.helper.make_model(graph), str(file))
    return file, layers


def test_teacher_weights_are_loaded(teacher: tuple[Path, Layers]) -> None:
    file, layers = teacher
    whole = load_teacher(file, side=32)
    kernels = [value for value in whole.state_dict().values() if value.ndim == 4]
    assert len(kernels) == len(layers) == 53
    expected = [torch.from_numpy(weight * scale[:, None, None, None]) for weight, scale, _ in layers]
    # Those of a block are in another order, with the shortcut last.
    sums = [sorted(float(each.sum()) for each in some[1:]) for some in (kernels, expected)]
    assert sums[0] == pytest.approx(sums[1])


def test_first_layer_of_the_teacher_accepts_uint8(teacher: tuple[Path, Layers]) -> None:
    file, layers = teacher
    weight, scale, bias = layers[0]
    image = torch.randint(256, (1, 3, 40, 40)).float()
    mean, deviation = (
        torch.tensor(each).view(1, 3, 1, 1) for each in ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375))
    )
    kernel = torch.from_numpy(weight * scale[:, None, None, None])
    shift = torch.from_numpy((bias * scale / 2).astype(np.float32))
    expected = functional.conv2d((image - mean) / deviation, kernel, shift, stride=2)
    found = functional.conv2d(image - 114, (stem := load_teacher(file, side=32).stem).weight, stem.bias, stride=2)
    assert torch.allclose(found, expected, atol=1e-4)


def test_other_networks_are_rejected_as_teacher(tmp_path: Path) -> None:
    file = tmp_path / "other.onnx"
    tensors = [onnx.numpy_helper.from_array(np.zeros((4, 4), np.float32), name) for name in ("w", "b")]
    node = onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"])
    graph = onnx.helper.make_graph([node], "other", [], [], initializer=tensors)
    onnx.save(onnx.helper.make_model(graph), str(file))
    with pytest.raises(InvalidArgumentError, match=r"must be a ResNet-50 with 53 convolutions.*got 0 convolutions"):
        load_teacher(file, side=32)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"side": 8}, "side must be at least 32, got 8"),
        ({"blocks": ((0,), (0,), (0,))}, "blocks and inside must have one entry for each of the 4 stages"),
        ({"blocks": ((1,), (0,), (0,), (0,))}, r"blocks of a stage must increase from 0 to at most 2, got \(1,\)"),
        ({"inside": (64, 128, 256, 513)}, "inside must be from 1 to 512 for this stage, got 513"),
        ({"outside": 0}, "outside must be from 1 to 2048, got 0"),
        ({"frozen": 5}, "frozen must be from 0 to 4, got 5"),
    ],
)
def test_invalid_students_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        StudentSettings(**settings)


def test_pair_score_is_the_mean_of_the_best_scores_of_query_frames() -> None:
    query = np.eye(4, dtype=np.float32)[:2]
    target = np.eye(4, dtype=np.float32)[[0, 3, 3]]
    assert mean_of_best(query, target) == pytest.approx(0.5)
    assert mean_of_best(target, query) == pytest.approx(1 / 3)


def test_moments_require_a_frame_within_a_second() -> None:
    frames = np.eye(5, dtype=np.float32)
    times = [0.0, 1.0, 2.0, 3.0, 4.0]
    later = [time + 0.5 for time in times]
    assert nearest_within(frames, later, frames, times, 1.0) == 1.0
    assert nearest_within(frames, later, frames[::-1], times, 1.0) == pytest.approx(0.2)
