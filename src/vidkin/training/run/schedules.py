"""Learning rates as a function of the step: nothing to save, nothing to get out of step."""

from __future__ import annotations

import math

from vidkin.training.recipe import ScheduleRecipe

__all__ = ["rate_factor"]


def rate_factor(schedule: ScheduleRecipe, step: int) -> float:
    """Factor on the learning rate at a step (from 0), in (0, 1].

    Warm-up: ``(step + 1) / warm_up`` while that is below 1, times the decay: 1 (``constant``);
    ``f + (1 - f) (1 + cos(pi t)) / 2`` with t the share of the steps after the warm-up that are over and f
    ``final_factor`` (``cosine``); ``step_factor ** floor(step / step_every)`` (``step``).
    """
    warm = min(1.0, (step + 1) / schedule.warm_up) if schedule.warm_up else 1.0
    if schedule.decay == "cosine":
        span = max(1, schedule.steps - 1 - schedule.warm_up)
        over = min(1.0, max(0.0, (step - schedule.warm_up) / span))
        low = schedule.final_factor
        return warm * (low + (1.0 - low) * (1.0 + math.cos(math.pi * over)) / 2.0)
    if schedule.decay == "step":
        return warm * float(schedule.step_factor ** (step // schedule.step_every))
    return warm
