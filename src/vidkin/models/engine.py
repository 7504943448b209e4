"""The training loop: learning rates as functions of the step, steps on an objective, and the watch for collapse."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vidkin.errors import TrainingError


class Schedule(Protocol):
    """Learning rate and momentum of every step; steps count from 0."""

    def rate(self, step: int, full: float) -> float:
        """Learning rate of a step, where ``full`` is the full rate of a parameter group."""
        ...

    def momentum(self, step: int) -> float | None:
        """Momentum (AdamW: first beta) of a step; None leaves the optimizer's own."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """A warm-up, then a rate that stays or falls.

    ``rate = full * warm * decay`` with ``warm = (step + 1) / warm_up`` while that is below 1.

    Attributes:
        kind: ``constant``: decay is 1. ``linear``: ``1 - step / steps``. ``cosine``: ``f + (1 - f) (1 + cos(pi t)) /
            2`` where t is the completed share of the steps after the warm-up and f is ``final_factor``. ``step``:
            ``step_factor ** floor(step / step_every)``.
        steps: Steps of the whole run; only ``cosine`` and ``linear`` use it.
        warm_up: Steps during which the rate rises; 0 starts at the full rate.
        final_factor: For ``cosine``: share of the full rate at the last step.
        step_every: For ``step``: steps between two drops.
        step_factor: For ``step``: factor applied at each drop.
    """

    kind: Literal["constant", "cosine", "linear", "step"] = "constant"
    steps: int = 1
    warm_up: int = 0
    final_factor: float = 0.01
    step_every: int = 200
    step_factor: float = 0.1

    def rate(self, step: int, full: float) -> float:
        """See :class:`Schedule`."""
        factor = min(1.0, (step + 1) / self.warm_up) if self.warm_up else 1.0
        if self.kind == "cosine":
            span = max(1, self.steps - 1 - self.warm_up)
            over = min(1.0, max(0.0, (step - self.warm_up) / span))
            low = self.final_factor
            factor *= low + (1.0 - low) * (1.0 + math.cos(math.pi * over)) / 2.0
        elif self.kind == "linear":
            factor *= max(0.0, 1.0 - step / self.steps)
        elif self.kind == "step":
            factor *= self.step_factor ** (step // self.step_every)
        return full * factor

    def momentum(self, step: int) -> None:
        """None: the optimizer's own momentum."""
        return


@dataclass(frozen=True, slots=True)
class OneCycle:
    """One cycle of rate and momentum (Smith and Topin, 2018): the rate rises for 30 % of the steps, then falls to
    almost zero.

    The rate follows half cosines from ``full / 25`` to ``full`` and then to ``full / 250,000``, the momentum goes from
    .95 to .85 and back. Equal to ``torch.optim.lr_scheduler.OneCycleLR`` with its defaults.

    Attributes:
        steps: Steps of the whole cycle.
    """

    steps: int

    def rate(self, step: int, full: float) -> float:
        """See :class:`Schedule`."""
        start = full / 25.0
        return self._cycle(step, start, full, start / 1e4)

    def momentum(self, step: int) -> float:
        """See :class:`Schedule`."""
        return self._cycle(step, 0.95, 0.85, 0.95)

    def _cycle(self, step: int, start: float, middle: float, end: float) -> float:
        top, last = 0.3 * self.steps - 1, self.steps - 1
        if step <= top:
            return _half_cosine(start, middle, step / top)
        return _half_cosine(middle, end, (step - top) / (last - top))


def _half_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


# The step engine: the one loop behind every training of vidkin.
#
# Recipes, the retrieval comparison, shot metrics and the networks of the shot detectors supply batches and an objective
# and read the steps. The engine opens no file, knows no recipe and never waits for the device: terms of a step are
# tensors until `read_terms` brings those of several steps to the CPU in one transfer.


M = TypeVar("M", bound=nn.Module)

B = TypeVar("B")

Objective: TypeAlias = Callable[[M, B], Mapping[str, Tensor]]

"""What a training minimizes: a function from (model, batch) to named scalar terms. ``loss`` is minimized;
``distance``, the mean distance of pairs of embeddings in [0, 2], is watched for a collapse if present; the others
are reported."""

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One optimizer step of a training.

    Attributes:
        number: Number of the step, counting from 1.
        terms: Scalars on the training device, without gradients: the terms of the objective, and ``gradient``, the
            norm of the gradient before clipping.
        learning_rate: Learning rate of the first parameter group.
    """

    number: int
    terms: Mapping[str, Tensor]
    learning_rate: float


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
    """Train a model with one optimizer step per batch and yield each step.

    Between two steps the caller may validate, store everything, or stop: nothing is half done at that point, and a
    batch is taken from ``batches`` only when its step begins. The model is put into training mode before every step;
    its own ``train`` method decides which parts stay in eval mode (a frozen backbone, frozen batch norms).

    Args:
        model: The model, trained in place.
        objective: Function to minimize; see :data:`Objective`.
        optimizer: Optimizer of all trainable parameters. The learning rates of its groups are their full rates.
        batches: One batch per step, on the device of the model.
        schedule: Rate and momentum of each step; None: constant.
        clip: Maximum gradient norm; 0 does not clip.
        precision: ``bfloat16`` runs the objective under automatic mixed precision.
        first: Steps taken by earlier calls; numbering and schedule continue from there.
        on_gradients: Callback that receives all weights after each backward pass, before their gradients are clipped.

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
    """The terms of steps as numbers, with a single transfer from the device."""
    if not steps:
        return []
    values = torch.stack([term.double() for step in steps for term in step.terms.values()]).tolist()
    numbers = iter(values)
    return [{name: next(numbers) for name in step.terms} for step in steps]


def check_finite(number: int, terms: Mapping[str, float]) -> None:
    """Stop a training that has diverged.

    Raises:
        TrainingError: The loss of this step or the norm of its gradient is not a finite number.
    """
    if not (math.isfinite(terms["loss"]) and math.isfinite(terms["gradient"])):
        raise TrainingError(
            f"step {number}: the loss is {terms['loss']} and the norm of its gradient {terms['gradient']}; lower "
            "the learning rate, or clip the gradient"
        )


# Unit vectors with a mean distance below this are useless, whatever the distance was at the start.
_FLOOR = 0.02

# One batch is noisy: the start is the mean of this many steps, and is compared with a running mean over as many.
_STEPS = 10


def collapse_threshold(start: float, share: float) -> float:
    """Mean distance of pairs of unit vectors below which a model counts as collapsed.

    Args:
        start: Mean distance before training, in [0, 2].
        share: Share of ``start`` below which a model has collapsed; 0 uses only the absolute distance (.02).
    """
    return max(_FLOOR, share * start)


@dataclass
class CollapseWatch:
    """Compares the mean distance of pairs of embeddings with its value at the start.

    Attributes:
        below: Share of the starting distance below which a model has collapsed; see :func:`collapse_threshold`.
        start: Mean over the first 10 steps; None before the first.
        seen: Number of steps averaged in ``start``.
        now: Mean over about the last 10 steps.
        lowest: Lowest value of ``now`` so far.
        collapsed_at: First step at which ``now`` was too low; None if never.
    """

    below: float
    start: float | None = None
    seen: int = 0
    now: float | None = None
    lowest: float | None = None
    collapsed_at: int | None = None

    @property
    def is_collapsed(self) -> bool:
        """Whether the mean distance is too low at the moment."""
        if self.seen < _STEPS or self.now is None or self.start is None:
            return False
        return self.now < collapse_threshold(self.start, self.below)

    def add(self, distance: float, step: int) -> bool:
        """Record the distance of a step; return True if this is the first step with a collapse."""
        if self.seen < _STEPS:
            self.start = ((self.start or 0.0) * self.seen + distance) / (self.seen + 1)
            self.seen += 1
        self.now = distance if self.now is None else self.now + (distance - self.now) / _STEPS
        self.lowest = self.now if self.lowest is None else min(self.lowest, self.now)
        if self.collapsed_at is None and self.is_collapsed:
            self.collapsed_at = step
            return True
        return False
