"""The training loop used for all training in vidkin.

Recipes, the retrieval comparison, shot metrics and the shot detectors' networks supply batches and an objective and
consume the steps. The engine opens no files, knows nothing of recipes, and never waits for the device: the terms of a
step remain tensors until `read_terms` transfers those of several steps to the CPU at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vidkin._base.arguments import check_arguments
from vidkin.errors import TrainingError
from vidkin.training.schedules import Decay, Schedule

M = TypeVar("M", bound=nn.Module)

B = TypeVar("B")

Objective: TypeAlias = Callable[[M, B], Mapping[str, Tensor]]

"""Function of (model, batch) that returns named scalar terms. ``loss`` is minimized; ``distance``, the mean distance
between embeddings in [0, 2], is monitored for collapse if present; all other terms are only reported."""

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An optimizer step of a training run.

    Attributes:
        number: Number of the step, counting from 1.
        terms: Scalars on the training device, without gradients: the terms of the objective, and ``gradient``, the
            gradient norm before clipping.
        learning_rate: Learning rate of the first parameter group.
    """

    number: int
    terms: Mapping[str, Tensor]
    learning_rate: float


@check_arguments
def take_steps(
    model: M,
    objective: Objective[M, B],
    optimizer: Optimizer,
    batches: Iterable[B],
    *,
    schedule: Schedule | None = None,
    clip: float = 0.0,
    precision: Precision = "float32",
    first: int = 0,
    on_gradients: Callable[[Sequence[Tensor]], None] | None = None,
) -> Iterator[Step]:
    """Train a model with one optimizer step per batch, and yield each step.

    Between two steps, the caller may validate, save a checkpoint, or stop: no step is in progress, and a batch is taken
    from ``batches`` only when its step begins. The model is put into training mode before every step; its ``train``
    method decides which parts stay in eval mode (a frozen backbone, frozen batch norms).

    Args:
        model: The model, trained in place.
        objective: Function to minimize; see :data:`Objective`.
        optimizer: Optimizer of all trainable parameters. The schedule scales the learning rates of its groups.
        batches: One batch per step, on the model's device.
        schedule: Learning rate and momentum of each step; None: constant.
        clip: Maximum gradient norm; 0 disables clipping.
        precision: ``bfloat16`` runs the objective with automatic mixed precision.
        first: Number of steps taken by earlier calls; numbering and schedule continue from there.
        on_gradients: Callback that receives all weights after each backward pass, before clipping.

    Yields:
        The steps, numbered from ``first + 1``.
    """
    schedule = schedule or Decay()
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    device = weights[0].device.type
    for group in optimizer.param_groups:
        group.setdefault("initial_lr", group["lr"])
    for number, batch in enumerate(batches, start=first):
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(number, group["initial_lr"])
            momentum = schedule.momentum(number)
            if momentum is not None and "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            elif momentum is not None:
                group["momentum"] = momentum
        model.train()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
            terms = objective(model, batch)
        optimizer.zero_grad()
        torch.autograd.backward(terms["loss"])
        if on_gradients is not None:
            on_gradients(weights)
        norm = nn.utils.clip_grad_norm_(weights, clip or math.inf)
        optimizer.step()
        detached = {name: term.detach() for name, term in terms.items()}
        yield Step(number + 1, {**detached, "gradient": norm}, optimizer.param_groups[0]["lr"])


def read_terms(steps: Sequence[Step]) -> list[dict[str, float]]:
    """Return the terms of steps as numbers, with a single transfer from the device."""
    if not steps:
        return []
    values = torch.stack([term.double() for step in steps for term in step.terms.values()]).tolist()
    numbers = iter(values)
    return [{name: next(numbers) for name in step.terms} for step in steps]


def check_finite(number: int, terms: Mapping[str, float]) -> None:
    """Stop a training run that has diverged.

    Raises:
        TrainingError: The loss or the gradient norm of this step is not finite.
    """
    if not (math.isfinite(terms["loss"]) and math.isfinite(terms["gradient"])):
        raise TrainingError(
            f"step {number}: the loss is {terms['loss']} and the gradient norm is {terms['gradient']}; reduce the "
            "learning rate, or clip the gradient"
        )
