"""Normalized discounted cumulative gain."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch

from vidkin._base.checks import check_at_least, check_choice
from vidkin.metric.measures.ranking import (
    CountedMean,
    QueryReduction,
    Ranking,
    Ties,
    before,
    check_ties,
    per_query,
    reduce_values,
)

__all__ = ["Gain", "ndcg"]

Gain = Literal["exponential", "linear"]


def ndcg(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    *,
    gain: Gain = "exponential",
    k: int | None = None,
    ties: Ties = "stable",
    valid: torch.Tensor | None = None,
    reduction: QueryReduction = "mean",
) -> CountedMean | torch.Tensor:
    """Normalized discounted cumulative gain (Järvelin and Kekäläinen, TOIS 2002).

    DCG = sum over ranks r = 1, 2, ... of gain(r) / log2(1 + r); NDCG = DCG / DCG of the best order.

    Args:
        scores: [Q, G] floating point, higher is more similar.
        relevance: [Q, G] graded, 0 or more.
        gain: ``"exponential"``: 2^relevance - 1, which weighs the top grade more. ``"linear"``: relevance.
        k: Only the first k ranks count, in the best order too; default all.
        ties: ``"stable"`` or ``"expected"``, see `average_precision`.
        valid: [Q, G] bool; pairs with False are left out.
        reduction: ``"mean"`` over the queries, or ``"none"``.

    Returns:
        A float in [0, 1] that counts its queries, or [Q] float64 with nan for a query without gain.

    Raises:
        InvalidArgumentError: Shapes differ or a choice is unknown.
    """
    check_ties(ties)
    check_choice("gain", gain, ("exponential", "linear"))
    if k is not None:
        check_at_least(1, k=k)
    return reduce_values(
        per_query(partial(ranked_ndcg, gain=gain, k=k, ties=ties), scores, relevance, valid), reduction
    )


def ranked_ndcg(ranking: Ranking, *, gain: Gain, k: int | None, ties: Ties) -> torch.Tensor:
    """[B] float64; nan where no item is relevant."""
    grades = ranking.relevance.double()
    gains = torch.exp2(grades) - 1 if gain == "exponential" else grades
    positions = ranking.positions()
    discount = 1 / torch.log2(1 + positions.double())
    if k is not None:
        discount = discount * (positions <= k)
    best = (gains.sort(dim=1, descending=True).values * discount).sum(dim=1)
    if ties == "expected":
        start, end = ranking.tie_bounds()
        gains = (before(gains, end) - before(gains, start)) / (end - start)
    return (gains * discount).sum(dim=1) / best
