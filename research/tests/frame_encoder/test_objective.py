"""The terms of the objective of a student."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin_research.frame_encoder.material import Batch
from vidkin_research.frame_encoder.objective import (
    ObjectiveSettings,
    objective_terms,
    order_by_average_precision,
    order_by_radius,
    spread,
)

Order = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]

# Three moments with two views each; the first two moments are of the same place.
MOMENTS = torch.tensor([0, 0, 1, 1, 2, 2])
GROUPS = torch.tensor([0, 0, 0, 0, 1, 1])


def at(*degrees: float) -> torch.Tensor:
    angles = torch.deg2rad(torch.tensor(degrees))
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def batch(plain: torch.Tensor, shown: tuple[int, ...] = (), seen: torch.Tensor | None = None) -> Batch:
    vectors = torch.zeros(0, 2) if seen is None else seen
    return Batch(np.zeros((6, 8, 8, 3), np.uint8), MOMENTS, GROUPS, plain, torch.tensor(shown).long(), vectors)


@pytest.mark.parametrize("order", [order_by_average_precision, order_by_radius])
def test_vectors_ordered_by_level_have_no_loss(order: Order) -> None:
    assert float(order(at(0, 2, 35, 37, 175, 178), MOMENTS, GROUPS)) == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("order", [order_by_average_precision, order_by_radius])
def test_closer_scene_than_other_moment_has_a_loss(order: Order) -> None:
    wrong = at(0, 2, 120, 122, 30, 33).requires_grad_()
    loss = order(wrong, MOMENTS, GROUPS)
    assert float(loss.detach()) > 0.2
    (gradient,) = torch.autograd.grad(loss, wrong)
    assert float(gradient.abs().sum()) > 0


def test_closer_other_moment_than_same_moment_has_a_loss() -> None:
    right, wrong = at(0, 2, 35, 37, 175, 178), at(0, 30, 15, 45, 175, 178)
    assert order_by_average_precision(wrong, MOMENTS, GROUPS) > order_by_average_precision(right, MOMENTS, GROUPS) + 0.1


def test_radial_term_without_a_second_moment_is_zero_and_differentiable() -> None:
    vectors = at(0, 2, 35, 37, 175, 178).requires_grad_()
    loss = order_by_radius(vectors, MOMENTS, MOMENTS)
    assert float(loss.detach()) == 0.0
    (gradient,) = torch.autograd.grad(loss, vectors)
    assert not gradient.any()


def test_entropy_term_decreases_when_moments_move_apart() -> None:
    assert spread(at(0, 1, 120, 121, 240, 241), MOMENTS) < spread(at(0, 1, 10, 11, 20, 21), MOMENTS)
    # Views of the same moment may be equal.
    assert torch.isfinite(spread(at(0, 0, 120, 120, 240, 240), MOMENTS))


def test_teacher_vectors_have_the_lowest_loss() -> None:
    plain = at(0, 0, 40, 40, 180, 180)
    settings = ObjectiveSettings()
    bank, bank_groups = at(90, 270), torch.tensor([7, 8])
    right = objective_terms(plain, batch(plain), bank, bank_groups, settings)
    wrong = objective_terms(at(90, 80, 200, 210, 20, 30), batch(plain), bank, bank_groups, settings)
    assert set(right) == {"plain", "contrast", "entropy", "ordered"}
    assert float(right["plain"]) == pytest.approx(0.0, abs=1e-6)
    assert all(right[name] < wrong[name] for name in ("plain", "contrast"))


def test_view_seen_by_the_teacher_is_attracted_to_the_teacher_vector_of_that_view() -> None:
    plain = at(0, 0, 40, 40, 180, 180)
    settings = ObjectiveSettings(same=0.5)
    bank, groups = at(90, 270), torch.tensor([7, 8])
    equal, apart = (
        objective_terms(plain, batch(plain, (1, 3), at(*degrees)), bank, groups, settings)["same"]
        for degrees in ((0, 40), (60, 40))
    )
    assert float(equal) == pytest.approx(0.0, abs=1e-6)
    assert float(apart) == pytest.approx(0.5 * (1 - 0.5) / 2, abs=1e-6)
    assert "same" not in objective_terms(plain, batch(plain), bank, groups, settings)


def test_vectors_of_the_same_scene_in_the_bank_are_not_negatives() -> None:
    plain = at(0, 0, 40, 40, 180, 180)
    settings = ObjectiveSettings(order="none")
    alone = objective_terms(plain, batch(plain), at(90), torch.tensor([7]), settings)
    joined = objective_terms(plain, batch(plain), at(90, 1, 179), torch.tensor([7, 0, 1]), settings)
    others = objective_terms(plain, batch(plain), at(90, 1, 179), torch.tensor([7, 8, 9]), settings)
    assert "ordered" not in alone
    assert float(joined["contrast"]) < float(others["contrast"])


def test_invalid_orders_and_temperatures_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="order must be quad_linear, radial or none, got 'best'"):
        ObjectiveSettings(order="best")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="temperature must be above 0, got 0"):
        ObjectiveSettings(temperature=0)
