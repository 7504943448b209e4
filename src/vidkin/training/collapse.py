"""Detection of collapse: all embeddings at nearly one point, where ranking losses become trivial."""

from __future__ import annotations

from dataclasses import dataclass

# Unit vectors with a mean distance below this are useless, regardless of the distance at the start.
_FLOOR = 0.02

# Number of steps averaged, because the distances of a single batch are noisy.
_STEPS = 10


def collapse_threshold(start: float, share: float) -> float:
    """Mean distance of pairs of unit vectors below which a model counts as collapsed.

    Args:
        start: Mean distance before training, in [0, 2].
        share: Share of ``start`` below which a model has collapsed; with 0, only the absolute threshold 0.02 applies.
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
        """Whether the mean distance is currently below the threshold."""
        if self.seen < _STEPS or self.now is None or self.start is None:
            return False
        return self.now < collapse_threshold(self.start, self.below)

    def add(self, distance: float, step: int) -> bool:
        """Record the distance of a step; return True at the first step with a collapse."""
        if self.seen < _STEPS:
            self.start = ((self.start or 0.0) * self.seen + distance) / (self.seen + 1)
            self.seen += 1
        self.now = distance if self.now is None else self.now + (distance - self.now) / _STEPS
        self.lowest = self.now if self.lowest is None else min(self.lowest, self.now)
        if self.collapsed_at is None and self.is_collapsed:
            self.collapsed_at = step
            return True
        return False
