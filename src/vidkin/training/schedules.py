"""Learning rate schedules as functions of the step, so that checkpoints need no schedule state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol


class Schedule(Protocol):
    """Learning rate and momentum by step, counted from 0."""

    def rate(self, step: int, full: float) -> float:
        """Return the learning rate of a step, given the full rate of a parameter group."""
        ...

    def momentum(self, step: int) -> float | None:
        """Return the momentum (AdamW: first beta) of a step; None keeps the optimizer's momentum."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """A warm-up followed by a constant or decaying learning rate.

    ``rate = full * warm * decay`` with ``warm = (step + 1) / warm_up`` while that is below 1.

    Attributes:
        kind: ``constant``: decay is 1. ``linear``: ``1 - step / steps``. ``cosine``: ``f + (1 - f) (1 + cos(pi t)) /
            2``, where t is the fraction of the steps after the warm-up that are completed, and f is ``final_factor``.
            ``step``: ``step_factor ** floor(step / step_every)``.
        steps: Total number of steps in the run; only used by ``cosine`` and ``linear``.
        warm_up: Number of steps during which the learning rate rises; 0 starts at the full rate.
        final_factor: For ``cosine``: fraction of the full rate at the last step.
        step_every: For ``step``: number of steps between two drops.
        step_factor: For ``step``: factor by which the rate is multiplied at each drop.
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
        """Return None, to keep the optimizer's momentum."""
        return


@dataclass(frozen=True, slots=True)
class OneCycle:
    """One cycle of learning rate and momentum (Smith and Topin, 2018): the rate rises for 30 % of the steps, then falls
    to almost zero.

    The rate follows half cosines from ``full / 25`` to ``full``, and then to ``full / 250,000``; the momentum goes from
    0.95 to 0.85 and back. Equivalent to ``torch.optim.lr_scheduler.OneCycleLR`` with its defaults.

    Attributes:
        steps: Total number of steps in the cycle.
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


def _half_cosine(start: float, end: float, fraction: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * fraction) + 1)
