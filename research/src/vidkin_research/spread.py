"""Mean and standard deviation over the seeds of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev
from typing import TypedDict

__all__ = ["Spread", "spread"]


class Spread(TypedDict):
    """Mean over several runs; ``deviation`` is the sample standard deviation, None for one run."""

    mean: float
    deviation: float | None


def spread(values: Sequence[float]) -> Spread:
    """Compute the mean and the sample standard deviation.

    >>> spread([1.0, 3.0])["mean"]
    2.0
    """
    return {
        "mean": mean(values),
        "deviation": stdev(values) if len(values) > 1 else None,
    }
