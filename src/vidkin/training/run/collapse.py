"""Watching for a collapse: all embeddings at nearly one place, where every order-preserving loss is easy."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CollapseWatch"]

# The start is the mean of so many steps, and so is what it is compared with: a single batch is noisy.
_STEPS = 10
# Unit vectors this close to each other on the mean say nothing any more, wherever they started.
_ALWAYS = 0.02


@dataclass
class CollapseWatch:
    """Compares the mean distance of pairs of embeddings with its value at the start.

    Attributes:
        below: Share of the start under which a run counts as collapsed; 0 watches the absolute value alone.
        start: Mean over the first 10 steps; None before the first.
        seen: Steps that ``start`` is the mean of.
        now: Mean over about the last 10 steps.
        lowest: Of ``now``.
        collapsed_at: First step at which ``now`` was too low.
    """

    below: float
    start: float | None = None
    seen: int = 0
    now: float | None = None
    lowest: float | None = None
    collapsed_at: int | None = None

    @property
    def threshold(self) -> float:
        """What the mean distance must not fall below."""
        return max(_ALWAYS, self.below * (self.start or 0.0))

    @property
    def is_collapsed(self) -> bool:
        """Is the mean distance too low now?"""
        return self.seen >= _STEPS and self.now is not None and self.now < self.threshold

    def add(self, distance: float, step: int) -> bool:
        """Note the distance of a step; True when this is the first one with a collapse."""
        if self.seen < _STEPS:
            self.start = ((self.start or 0.0) * self.seen + distance) / (self.seen + 1)
            self.seen += 1
        self.now = distance if self.now is None else self.now + (distance - self.now) / _STEPS
        self.lowest = self.now if self.lowest is None else min(self.lowest, self.now)
        if self.collapsed_at is None and self.is_collapsed:
            self.collapsed_at = step
            return True
        return False
