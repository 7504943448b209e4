"""Least-squares reduction of the teacher to a narrower student."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vidkin_research.frame_encoder.fold import Normal, channels_to_keep, fold_teacher
from vidkin_research.frame_encoder.material import to_input
from vidkin_research.frame_encoder.network import Student, StudentSettings

# A teacher with as many blocks as the published one, but few channels in them.
WHOLE = StudentSettings(side=64, inside=(16, 16, 16, 16), outside=64)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def teacher() -> Student:
    torch.manual_seed(2)
    return Student(WHOLE).eval().requires_grad_(False)


@pytest.fixture(scope="module")
def images() -> NDArray[np.uint8]:
    random = np.random.default_rng(4)
    return np.kron(random.integers(256, size=(48, 16, 16, 3)), np.ones((1, 4, 4, 1))).astype(np.uint8)


def pool(student: Student, images: NDArray[np.uint8]) -> torch.Tensor:
    with torch.no_grad():
        return student.pooled(to_input(images))


def test_normal_equations_find_a_linear_map_with_an_offset() -> None:
    generator = torch.Generator().manual_seed(1)
    weight, shift = torch.randn(3, 5, generator=generator), torch.randn(3, generator=generator)
    normal = Normal(5, 3)
    for _ in range(4):
        rows = torch.randn(20, 5, generator=generator)
        normal.add(rows, rows @ weight.T + shift)
    found, found_shift = normal.solve(1e-9)
    assert torch.allclose(found, weight, atol=1e-4)
    assert torch.allclose(found_shift, shift, atol=1e-4)


def test_products_of_bfloat16_maps_are_summed_exactly() -> None:
    rows = torch.randn(500, 6, generator=torch.Generator().manual_seed(1))
    one, other = Normal(6, 1), Normal(6, 1)
    one.add(rows, rows[:, :1])
    with torch.autocast("cpu", torch.bfloat16):
        other.add(rows, rows[:, :1])
    assert torch.equal(one.covariance(), other.covariance())


@pytest.mark.parametrize("taps", [1, 9])
def test_replaceable_channels_are_removed_first(taps: int) -> None:
    generator = torch.Generator().manual_seed(1)
    own = torch.randn(4000, 4 * taps, generator=generator)
    # Channels 4 and 5 are sums of the first two and of the last two, with large weights; 6 is independent but unused.
    first, second, third, fourth = own.split(taps, dim=1)
    rows = torch.cat([own, first + second, third - fourth, torch.randn(4000, taps, generator=generator)], dim=1)
    weights = torch.randn(3 * taps, 7 * taps, generator=generator)
    weights[:, 4 * taps : 6 * taps] *= 9.0
    weights[:, 6 * taps :] = 0.0
    kept = channels_to_keep(torch.cov(rows.T).double(), weights, taps, 4).tolist()
    assert len(kept) == 4
    assert kept == sorted(kept)
    assert 6 not in kept
    # Each of the two sums with its parts has the information of two channels.
    assert len({0, 1, 4} & set(kept)) == len({2, 3, 5} & set(kept)) == 2


def test_student_as_wide_as_the_teacher_equals_it(teacher: Student, images: NDArray[np.uint8]) -> None:
    student = Student(WHOLE)
    fold_teacher(student, teacher, images, bfloat16=False)
    expected = pool(teacher, images)
    assert float((pool(student, images) - expected).square().sum() / expected.square().sum()) < 0.01


def test_redundant_channels_are_removed_without_loss(images: NDArray[np.uint8]) -> None:
    torch.manual_seed(3)
    teacher = Student(WHOLE).eval().requires_grad_(False)
    for stage in teacher.stages:
        for block in stage.children():
            block.expand.weight *= 4.0
            for layer in (block.reduce, block.middle):
                layer.weight[8:], layer.bias[8:] = layer.weight[:8].clone(), layer.bias[:8].clone()
    student, cut = (Student(replace(WHOLE, inside=(8, 8, 8, 8))) for _ in range(2))
    fold_teacher(student, teacher, images, bfloat16=False)
    state = teacher.state_dict()
    cut.load_state_dict(
        {name: state[name][tuple(slice(size) for size in value.shape)] for name, value in cut.state_dict().items()}
    )
    expected = pool(teacher, images)
    lost = [
        float((pool(each, images) - expected).square().sum() / (expected - expected.mean(dim=0)).square().sum())
        for each in (student, cut)
    ]
    assert lost[0] < 0.02
    assert lost[1] > 0.2


def test_removed_blocks_are_compensated(teacher: Student, images: NDArray[np.uint8]) -> None:
    settings = replace(WHOLE, blocks=((0, 2), (0, 3), (0, 5), (0, 2)), outside=48)
    student = Student(settings)
    fold_teacher(student, teacher, images, bfloat16=False)
    assert all(bool(value.isfinite().all()) for value in student.state_dict().values())
    assert pool(student, images).shape == (48, 48)
