"""The two orders behind a QP, mean distances, and where Radial's sphere is larger than the unit sphere."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from vidkin.experiments.retrieval.geometry import order_and_distances

LABELS = torch.tensor([[0, 0], [0, 0], [0, 1], [0, 1], [1, 2], [1, 2], [1, 3], [1, 3]])


def on_the_circle(*angles: float) -> Tensor:
    given = torch.tensor(angles, dtype=torch.float64)
    return torch.stack([given.cos(), given.sin()], dim=1)


def test_orders_and_distances_by_hand() -> None:
    gallery = on_the_circle(0.1, 0.1, 0.4, 0.05, 0.3, 0.3, 1.0, 1.0)
    found = order_and_distances(on_the_circle(0.0), torch.tensor([[0, 0]]), gallery, LABELS)
    assert found["order_inside"] == 50.0  # p at 0.1 twice against i at 0.4 and at 0.05
    assert (
        found["order_across"] == 75.0
    )  # of i at 0.4 and 0.05 against n at 0.3 twice, 1.0 twice: 0.4 loses to 0.3
    assert found["distance_positive"] == pytest.approx(2 - 2 * math.cos(0.1))
    assert found["distance_intermediate"] == pytest.approx(2 - math.cos(0.4) - math.cos(0.05))
    assert found["distance_negative"] == pytest.approx(2 - math.cos(0.3) - math.cos(1.0))


def test_radial_cannot_be_met_where_intermediates_are_far() -> None:
    # q and p at one place, i on the other side: X = 1/3, R = 4/3, and no unit vector is 4 away from X.
    far = on_the_circle(0.0, 0.0, math.pi, math.pi, 0.0, 0.0, math.pi, math.pi)
    near = on_the_circle(0.0, 0.0, 0.1, 0.1, 3.0, 3.0, 3.1, 3.1)
    query, label = on_the_circle(0.0), torch.tensor([[0, 0]])
    assert order_and_distances(query, label, far, LABELS)["unreachable"] == 100.0
    assert order_and_distances(query, label, near, LABELS)["unreachable"] == 0.0


def test_a_gallery_without_positives_says_nothing_about_radial() -> None:
    single = torch.tensor([[0, 0], [0, 1], [1, 2]])
    found = order_and_distances(
        on_the_circle(0.0), torch.tensor([[0, 0]]), on_the_circle(0.1, 0.2, 0.3), single
    )
    assert math.isnan(found["unreachable"])
    assert found["order_inside"] == found["order_across"] == 100.0
