"""Measures for the top of the list: Recall@K, R-precision, mAP@R."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_at_least, check_choice
from vidkin.metric.measures.average_precision import precision_at_positives
from vidkin.metric.measures.ranking import (
    CountedMean,
    QueryReduction,
    Ranking,
    Ties,
    check_ties,
    per_query,
    reduce_values,
    sum_before,
)

RecallForm = Literal["hit", "share"]


@check_arguments
def recall_at_k(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    k: int,
    *,
    form: RecallForm = "hit",
    level: float = 1,
    ties: Ties = "stable",
    valid: torch.Tensor | None = None,
    reduction: QueryReduction = "mean",
) -> CountedMean | torch.Tensor:
    """Recall@K.

    Args:
        scores: [Q, G] floating point, higher is more similar.
        relevance: [Q, G], 0 or more.
        k: Number of top ranks to use, at least 1; values above the gallery size use the whole gallery.
        form: ``"hit"``: 1 if any positive is among the first k, as in metric learning (HIT@1 is k=1).
            ``"share"``: the fraction of the query's positives among the first k, as in retrieval.
        level: Minimum relevance of a relevant item.
        ties: ``"stable"`` or ``"expected"``, see `average_precision`.
        valid: [Q, G] bool; pairs with False are excluded.
        reduction: ``"mean"`` over the queries, or ``"none"``.

    Returns:
        A float in [0, 1] with the number of queries, or [Q] float64 with NaN for queries without a positive.

    Raises:
        InvalidArgumentError: Shapes differ, k is below 1, or a choice is unknown.
    """
    check_ties(ties)
    check_at_least(1, k=k)
    check_choice("form", form, ("hit", "share"))
    measure = partial(ranked_recall, k=k, form=form, level=level, ties=ties)
    return reduce_values(per_query(measure, scores, relevance, valid), reduction)


@check_arguments
def r_precision(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    *,
    level: float = 1,
    ties: Ties = "stable",
    valid: torch.Tensor | None = None,
    reduction: QueryReduction = "mean",
) -> CountedMean | torch.Tensor:
    """R-precision: the fraction of positives among the first R ranks, where R is the number of the query's positives.

    Arguments and result are as for `recall_at_k`.
    """
    check_ties(ties)
    measure = partial(ranked_r_precision, level=level, ties=ties)
    return reduce_values(per_query(measure, scores, relevance, valid), reduction)


@check_arguments
def map_at_r(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    *,
    level: float = 1,
    ties: Ties = "stable",
    valid: torch.Tensor | None = None,
    reduction: QueryReduction = "mean",
) -> CountedMean | torch.Tensor:
    """mAP@R (Musgrave, Belongie and Lim, ECCV 2020): 1/R sum over ranks i <= R of [positive at i] precision at i.

    R is the number of the query's positives. Arguments and result are as for `recall_at_k`.
    """
    check_ties(ties)
    return reduce_values(
        per_query(partial(ranked_map_at_r, level=level, ties=ties), scores, relevance, valid), reduction
    )


def ranked_recall(ranking: Ranking, *, k: int, form: RecallForm, level: float, ties: Ties) -> torch.Tensor:
    """Compute Recall@K [B] float64; NaN for lists without a positive."""
    positive = _positive(ranking, level)
    total = positive.sum(dim=1).double()
    counts = ranking.over_ties(positive, ties)[:, :k].sum(dim=1)
    if form == "share":
        return counts / total
    hit = (
        1 - _probability_of_no_hit(ranking, positive, k) if ties == "expected" else positive[:, :k].any(dim=1).double()
    )
    return hit.where(total > 0, hit.new_full((), float("nan")))


def ranked_r_precision(ranking: Ranking, *, level: float, ties: Ties) -> torch.Tensor:
    """Compute R-precision [B] float64; NaN for lists without a positive."""
    positive = _positive(ranking, level)
    total = positive.sum(dim=1, keepdim=True)
    return (ranking.over_ties(positive, ties) * (ranking.positions() <= total)).sum(dim=1) / total.squeeze(1)


def ranked_map_at_r(ranking: Ranking, *, level: float, ties: Ties) -> torch.Tensor:
    """Compute mAP@R [B] float64; NaN for lists without a positive."""
    positive = _positive(ranking, level)
    total = positive.sum(dim=1, keepdim=True)
    gained = precision_at_positives(ranking, positive, ties=ties) * (ranking.positions() <= total)
    return gained.sum(dim=1) / total.squeeze(1)


def _positive(ranking: Ranking, level: float) -> torch.Tensor:
    return (ranking.relevance >= level) & ranking.valid


def _probability_of_no_hit(ranking: Ranking, positive: torch.Tensor, k: int) -> torch.Tensor:
    """Compute the probability [B] that the first k ranks contain no positive, over the orders of ties that span rank
    k."""
    size, length = positive.shape
    if length == 0:
        return torch.ones(size, dtype=torch.float64, device=positive.device)
    start, end = ranking.tie_bounds()
    last = min(k, length) - 1
    first, past = start[:, last : last + 1], end[:, last : last + 1]
    hits = positive.long()
    earlier = sum_before(hits, first).squeeze(1)
    inside = sum_before(hits, past).squeeze(1) - earlier
    run = (past - first).squeeze(1)
    taken = last + 1 - first.squeeze(1)
    # C(run - inside, taken) / C(run, taken): the probability that all ranks taken from the run are non-positives.
    free = run - inside
    log_chance = _log_binomial(free, taken.minimum(free)) - _log_binomial(run, taken)
    return log_chance.exp() * (taken <= free) * (earlier == 0)


def _log_binomial(n: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    n, k = n.double(), k.double()
    return torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
