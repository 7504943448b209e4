"""Distances and reductions, on points with integer distances."""

from __future__ import annotations

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import (
    pairwise_distances,
    reduce,
    reduce_queries,
    squared_distance,
    squared_distances,
    to_full_precision,
    weighted_mean,
)

# Corners of a 3 x 4 rectangle, whose diagonal is 5.
CORNERS = torch.tensor([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0], [0.0, 4.0]])
SQUARED = [[0, 9, 25, 16], [9, 0, 16, 25], [25, 16, 0, 9], [16, 25, 9, 0]]


def test_distances_of_a_rectangle() -> None:
    assert squared_distance(CORNERS, CORNERS.roll(1, 0)).tolist() == [16.0, 9.0, 16.0, 9.0]
    assert squared_distances(CORNERS, CORNERS).tolist() == SQUARED
    plain = pairwise_distances(CORNERS, CORNERS, "euclidean")
    assert torch.allclose(plain, torch.tensor(SQUARED).sqrt())


def test_distances_far_from_the_origin_are_accurate() -> None:
    # The squared coordinates are 10^12: in single precision, their differences would lose 9, 16 and 25 completely.
    far = CORNERS + 1e6
    assert torch.allclose(squared_distances(far, far), squared_distances(CORNERS, CORNERS), atol=1e-3)


def test_half_precision_is_computed_in_single_precision() -> None:
    assert squared_distances(CORNERS.half(), CORNERS.half()).dtype == torch.float32
    assert to_full_precision(CORNERS.bfloat16()).dtype == torch.float32
    assert to_full_precision(CORNERS.double()).dtype == torch.float64
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert squared_distances(CORNERS, CORNERS).tolist() == SQUARED


def test_coinciding_points_have_zero_gradient() -> None:
    points = torch.zeros(2, 3, requires_grad=True)
    pairwise_distances(points, points.detach() * 0, "euclidean").sum().backward()
    assert points.grad is not None
    assert points.grad.abs().max() == 0.0


def test_an_unknown_distance_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="distance must"):
        pairwise_distances(CORNERS, CORNERS, "cosine")  # type: ignore[arg-type]


def test_reductions_match_hand_computed_values() -> None:
    values = torch.tensor([1.0, 2.0, 6.0])
    assert reduce(values, "mean") == 3.0
    assert reduce(values, "sum") == 9.0
    assert reduce(values, "none") is values
    counted = torch.tensor([True, False, True])
    assert reduce_queries(values, counted, "mean") == 3.5
    assert reduce_queries(values, counted, "sum") == 7.0
    assert reduce_queries(values, counted, "none").tolist() == [1.0, 0.0, 6.0]
    # The queries have 1, 0 and 5 terms with a sum of 9, which gives 9 / 6.
    assert weighted_mean(values, torch.tensor([1, 0, 5]), "mean") == 1.5


def test_mean_of_no_values_is_zero_with_a_gradient() -> None:
    empty = torch.zeros(0, requires_grad=True)
    for value in (
        reduce(empty, "mean"),
        reduce_queries(empty, torch.zeros(0, dtype=torch.bool), "mean"),
        weighted_mean(empty, torch.zeros(0), "mean"),
    ):
        assert value == 0.0
        value.backward()
    assert empty.grad is not None


def test_an_unknown_reduction_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="reduction must be"):
        reduce(CORNERS, "median")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="reduction must be"):
        weighted_mean(CORNERS, CORNERS, "max")  # type: ignore[arg-type]
