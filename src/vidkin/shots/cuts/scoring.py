"""The probability that a proposal is correct: a small network on its measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from vidkin.errors import InvalidArgumentError

__all__ = ["ProposalScore"]

# Standardized numbers are clipped to this.
_FURTHEST = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalScore:
    """Probability from numbers: the logistic function of a weighted sum of the numbers and a few hidden units.

    Attributes:
        means: Mean of each number.
        deviations: Standard deviation of each number; ``(number - mean) / deviation`` is used, clipped to 4 on either
            side.
        weights: Weight of each standardized number.
        bias: Constant added to the sum.
        units: For each hidden unit, a weight for each standardized number, then its bias; its value is the hyperbolic
            tangent of their sum. Without units the score is a plain weighted sum.
        shares: Weight of each hidden unit.
    """

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float
    units: tuple[tuple[float, ...], ...] = ()
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.weights)
        fits = len(self.means) == len(self.deviations) == count and len(self.shares) == len(self.units)
        if not fits or any(len(unit) != count + 1 for unit in self.units) or min(self.deviations) <= 0:
            raise InvalidArgumentError(
                f"a score of {count} numbers must have as many means and deviations above 0, and {count + 1} weights "
                f"of each hidden unit, got {len(self.means)}, {len(self.deviations)} and "
                f"{sorted({len(unit) for unit in self.units})}"
            )

    def probability(self, numbers: Sequence[float]) -> float:
        """Probability in 0..1."""
        values = (np.asarray(numbers) - self.means) / self.deviations
        values = values.clip(-_FURTHEST, _FURTHEST)
        total = float(np.dot(self.weights, values)) + self.bias
        if self.units:
            hidden = np.array(self.units)
            total += float(np.dot(self.shares, np.tanh(hidden[:, :-1] @ values + hidden[:, -1])))
        return float(1 / (1 + np.exp(-np.clip(total, -50, 50))))

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """The score from a parsed JSON table."""
        return cls(
            means=tuple(table["means"]),
            deviations=tuple(table["deviations"]),
            weights=tuple(table["weights"]),
            bias=float(table["bias"]),
            units=tuple(tuple(unit) for unit in table["units"]),
            shares=tuple(table["shares"]),
        )
