"""The two order components of a QP, mean distances, and the cases where Radial's sphere exceeds the unit sphere."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from vidkin_research.retrieval.study import order_and_distances

LABELS = torch.tensor([[0, 0], [0, 0], [0, 1], [0, 1], [1, 2], [1, 2], [1, 3], [1, 3]])


def on_the_circle(*angles: float) -> Tensor:
    given = torch.tensor(angles, dtype=torch.float64)
    return torch.stack([given.cos(), given.sin()], dim=1)


def test_orders_and_distances_equal_hand_computed_values() -> None:
    labels = torch.tensor([[0, 0], [0, 0], [0, 1], [1, 2]])
    figures = order_and_distances(on_the_circle(0.0, 0.1, 0.4, 0.3), labels, on_the_circle(0.0), labels[:1])
    # (q, p, i): for 0.0 and 0.1 the other one is closer than 0.4; 0.4 has no positive.
    assert figures["order_inside"] == 100.0
    # (q, i, n): for 0.0 and 0.1, n at 0.3 is closer than i at 0.4; for 0.4, n at a distance of 0.1 is closer than both
    # i.
    assert figures["order_across"] == 0.0
    assert figures["distance_positive"] == pytest.approx(2 - 2 * math.cos(0.1))
    assert figures["distance_intermediate"] == pytest.approx(2 - math.cos(0.4) - math.cos(0.3))
    # For every ordered pair with n at 0.3: distances of 0.3, 0.2 and 0.1, twice each.
    assert figures["distance_negative"] == pytest.approx(2 - 2 * (math.cos(0.3) + math.cos(0.2) + math.cos(0.1)) / 3)


def test_order_components_of_test_quadlets_do_not_depend_on_the_gallery() -> None:
    angles = on_the_circle(0.0, 0.1, 0.4, 0.5, 1.0, 1.1, 1.4, 1.5)
    first = order_and_distances(angles, LABELS, angles, LABELS)
    second = order_and_distances(angles, LABELS, angles.flip(0), LABELS)
    assert first["order_inside"] == second["order_inside"] == 100.0
    assert first["distance_positive"] == second["distance_positive"]


def test_radial_order_is_impossible_if_intermediates_are_far() -> None:
    # q and p coincide and i is on the opposite side: X = 1/3, R = 4/3, and no unit vector is at a distance of 4 from X.
    far = on_the_circle(0.0, 0.0, math.pi, math.pi, 0.0, 0.0, math.pi, math.pi)
    near = on_the_circle(0.0, 0.0, 0.1, 0.1, 3.0, 3.0, 3.1, 3.1)
    assert order_and_distances(near, LABELS, far, LABELS)["unreachable"] == 100.0
    assert order_and_distances(far, LABELS, near, LABELS)["unreachable"] == 0.0


def test_radial_metrics_of_a_gallery_without_positives_are_nan() -> None:
    single = torch.tensor([[0, 0], [0, 1], [1, 2]])
    figures = order_and_distances(
        on_the_circle(0.1, 0.2, 1.0, 1.1, 2.0, 2.1, 3.0, 3.1), LABELS, on_the_circle(0.1, 0.2, 0.3), single
    )
    assert math.isnan(figures["unreachable"])
    assert figures["order_inside"] == 100.0
