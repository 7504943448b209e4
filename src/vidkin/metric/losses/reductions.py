"""From one value for each tuple or query to one number."""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor

from vidkin._base.checks import check_choice

__all__ = ["Reduction", "reduce", "reduce_queries", "weighted_mean"]

Reduction = Literal["mean", "sum", "none"]


def reduce(values: Tensor, reduction: Reduction) -> Tensor:
    """Mean, sum or the values themselves; the mean of nothing is 0 with a gradient, not NaN."""
    check_choice("reduction", reduction, get_args(Reduction))
    if reduction == "none":
        return values
    return values.sum() / max(values.numel(), 1) if reduction == "mean" else values.sum()


def reduce_queries(values: Tensor, counted: Tensor, reduction: Reduction) -> Tensor:
    """Mean or sum over the counted queries (0 with a gradient if there are none), or [N] with zeros."""
    return weighted_mean(values.masked_fill(~counted, 0.0), counted, reduction)


def weighted_mean(values: Tensor, counts: Tensor, reduction: Reduction) -> Tensor:
    """Reduce per-query sums over ``counts`` terms each: "mean" is over all terms, and 0 if there are none."""
    check_choice("reduction", reduction, get_args(Reduction))
    if reduction == "none":
        return values
    total = values.sum()
    return total if reduction == "sum" else total / counts.sum().clamp_min(1)
