"""The optimizer of a recipe."""

from __future__ import annotations

import pytest
import torch

from vidkin.training import ScheduleRecipe
from vidkin.training.state import make_optimizer


def test_weight_decay_in_the_loss_works_at_low_rates_where_decoupled_decay_does_not() -> None:
    """The published lambda ||W||^2 with lambda = 0.001 and a rate of 1e-5, for 500 steps without any other gradient."""
    lengths = {}
    for kind, decay in (("adamw", 1e-3), ("adam", 2e-3)):
        weights = torch.nn.Linear(4, 4, bias=False)
        torch.nn.init.ones_(weights.weight)
        schedule = ScheduleRecipe(optimizer=kind, learning_rate=1e-5, weight_decay=decay)
        optimizer = make_optimizer(schedule, [{"params": list(weights.parameters()), "lr": 1e-5}], torch.nn.Identity())
        for _ in range(500):
            weights.weight.grad = torch.zeros_like(weights.weight)
            optimizer.step()
        lengths[kind] = float(weights.weight.detach().mean())
    # Each step removes 1e-8 of a weight, which is below the resolution of float32.
    assert lengths["adamw"] == 1.0
    # The steps of Adam have the size of the learning rate as long as the gradient keeps its sign.
    assert lengths["adam"] == pytest.approx(1 - 500 * 1e-5, rel=1e-4)
