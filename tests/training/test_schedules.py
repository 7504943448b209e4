"""Learning-rate schedules."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from vidkin.training import Decay, OneCycle


def rates(**settings: Any) -> list[float]:
    schedule = Decay(**settings)
    return [schedule.rate(step, 1.0) for step in range(schedule.steps)]


def test_a_constant_rate_does_not_change() -> None:
    assert rates(steps=3) == [1.0, 1.0, 1.0]
    assert Decay().rate(7, 0.25) == 0.25
    assert Decay().momentum(7) is None


def test_warm_up_rises_linearly_to_the_full_rate() -> None:
    assert rates(steps=6, warm_up=4) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_cosine_decays_to_the_final_factor_at_the_last_step() -> None:
    found = rates(steps=5, kind="cosine", final_factor=0.2)
    assert found == pytest.approx([0.2 + 0.8 * (1 + math.cos(math.pi * t / 4)) / 2 for t in range(5)])
    assert found[0] == 1.0
    assert found[2] == pytest.approx(0.6)
    assert found[4] == pytest.approx(0.2)


def test_cosine_begins_after_the_warm_up() -> None:
    found = rates(steps=7, warm_up=2, kind="cosine", final_factor=0.0)
    assert found[:3] == [0.5, 1.0, 1.0]
    assert found[3:] == sorted(found[3:], reverse=True)
    assert found[6] == pytest.approx(0.0)


def test_step_decay_multiplies_at_regular_intervals() -> None:
    assert rates(steps=6, kind="step", step_every=2, step_factor=0.5) == [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]


def test_warm_up_longer_than_the_run_never_exceeds_the_full_rate() -> None:
    assert rates(steps=3, warm_up=10, kind="cosine") == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize("steps", [1, 2, 3, 10, 101])
def test_one_cycle_equals_torch(steps: int) -> None:
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=3e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    schedule = OneCycle(steps)
    for step in range(steps):
        (group,) = optimizer.param_groups
        assert schedule.rate(step, 3e-3) == group["lr"]
        assert schedule.momentum(step) == group["betas"][0]
        optimizer.step()
        scheduler.step()


def test_one_cycle_peaks_after_three_tenths() -> None:
    schedule = OneCycle(101)
    found = [schedule.rate(step, 1.0) for step in range(101)]
    assert found[0] == pytest.approx(1 / 25)
    assert found.index(max(found)) == 30
    assert max(found) == pytest.approx(1.0, abs=1e-2)
    assert found[100] == pytest.approx(1 / 250_000)
    assert schedule.momentum(0) == schedule.momentum(100) == 0.95
