"""Device, learning rates and optimizer of a training run, from its recipe."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn, optim

from vidkin.errors import InvalidArgumentError
from vidkin.models.schedules import Decay, OneCycle, Schedule
from vidkin.training.recipe import ScheduleRecipe

__all__ = ["choose_device", "make_optimizer", "make_schedule"]


def choose_device(schedule: ScheduleRecipe) -> torch.device:
    """The device for ``schedule.device``.

    Raises:
        InvalidArgumentError: CUDA is requested but not available.
    """
    available = torch.cuda.is_available()
    if schedule.device == "cuda" and not available:
        raise InvalidArgumentError(
            "schedule.device is cuda, but torch finds none on this machine; use 'auto' or 'cpu'"
        )
    return torch.device("cuda" if available and schedule.device != "cpu" else "cpu")


def make_schedule(schedule: ScheduleRecipe) -> Schedule:
    """The learning rate schedule of a recipe."""
    if schedule.decay == "one_cycle":
        return OneCycle(schedule.steps)
    return Decay(
        kind=schedule.decay,
        steps=schedule.steps,
        warm_up=schedule.warm_up,
        final_factor=schedule.final_factor,
        step_every=schedule.step_every,
        step_factor=schedule.step_factor,
    )


def make_optimizer(
    schedule: ScheduleRecipe, groups: list[dict[str, Any]], objective: nn.Module
) -> optim.Optimizer:
    """The optimizer of a recipe for groups of weights and for the weights of the objective."""
    own = list(objective.parameters())
    if own:
        groups.append({"params": own, "lr": groups[-1]["lr"], "name": "objective"})
    if not schedule.decay_biases:
        parts = []
        for group in groups:
            matrices = [weight for weight in group["params"] if weight.ndim > 1]
            rest = [weight for weight in group["params"] if weight.ndim <= 1]
            parts += [{**group, "params": matrices}, {**group, "params": rest, "weight_decay": 0.0}]
        groups = [group for group in parts if group["params"]]
    if schedule.optimizer == "sgd":
        return optim.SGD(
            groups,
            lr=schedule.learning_rate,
            momentum=schedule.momentum,
            weight_decay=schedule.weight_decay,
        )
    return optim.AdamW(groups, lr=schedule.learning_rate, weight_decay=schedule.weight_decay)
