"""Detect collapse: all embeddings become nearly equal, which makes ranking losses trivial."""

from __future__ import annotations

from dataclasses import dataclass

# Unit vectors with a mean distance below this are useless, regardless of the initial distance.
_FLOOR = 0.02

# Number of steps to average over, because the distances in a single batch are noisy.
_STEPS = 10


def collapse_threshold(start: float, share: float) -> float:
    """Return the mean distance between unit vectors below which a model counts as collapsed.

    Args:
        start: Mean distance before training, in [0, 2].
        share: Fraction of ``start`` below which a model counts as collapsed; if 0, only the absolute threshold of 0.02
            applies.
    """
    return max(_FLOOR, share * start)


@dataclass
class CollapseWatch:
    """Monitors the mean distance between embeddings relative to its initial value.

    Attributes:
        below: Fraction of the initial distance below which a model counts as collapsed; see
            :func:`collapse_threshold`.
        start: Mean over the first 10 steps; None before the first step.
        seen: Number of steps averaged in ``start``.
        now: Running mean over about the last 10 steps.
        lowest: Lowest value of ``now`` so far.
        collapsed_at: First step at which ``now`` was too low; None if there is none.
    """

    below: float
    start: float | None = None
    seen: int = 0
    now: float | None = None
    lowest: float | None = None
    collapsed_at: int | None = None

    @property
    def is_collapsed(self) -> bool:
        """Whether the mean distance is currently below the threshold."""
        if self.seen < _STEPS or self.now is None or self.start is None:
            return False
        return self.now < collapse_threshold(self.start, self.below)

    def add(self, distance: float, step: int) -> bool:
        """Record the distance of a step; return True at the first step at which the model has collapsed."""
        if self.seen < _STEPS:
            self.start = ((self.start or 0.0) * self.seen + distance) / (self.seen + 1)
            self.seen += 1
        self.now = distance if self.now is None else self.now + (distance - self.now) / _STEPS
        self.lowest = self.now if self.lowest is None else min(self.lowest, self.now)
        if self.collapsed_at is None and self.is_collapsed:
            self.collapsed_at = step
            return True
        return False
