"""Measures of graded relevance: hierarchical AP, average set intersection, normalized discounted cumulative gain."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_at_least, check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures.ranking import (
    CountedMean,
    QueryReduction,
    Ranking,
    Ties,
    check_ties,
    per_query,
    reduce_values,
)

LevelWeights = Literal["population", "level"]


@check_arguments
def hierarchical_average_precision(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    *,
    levels: int | None = None,
    alpha: float = 1.0,
    weights: LevelWeights = "population",
    include_query: bool = False,
    valid: torch.Tensor | None = None,
    reduction: QueryReduction = "mean",
) -> CountedMean | torch.Tensor:
    """Hierarchical average precision, H-AP (Ramzi et al., ECCV 2022).

    H-AP = 1 / sum_k rel(k) * sum over relevant k of H-rank(k) / rank(k), with
    H-rank(k) = rel(k) + sum over relevant j ranked before k of min(rel(k), rel(j)). With one level, it equals AP.

    Args:
        scores: [Q, G] floating point, higher is more similar; equal scores rank in column order.
        relevance: [Q, G] integer levels 0..L.
        levels: L, the finest level; default: the highest level that occurs.
        alpha: Exponent of the level weights; larger values emphasize finer levels.
        weights: ``"population"``, as in the paper: rel(k) = (l/L)^alpha / |items at exactly level l of this
            query|. ``"level"``: rel(k) = (l/L)^alpha.
        include_query: Count the query itself among the items of its finest level, like implementations that
            count a class before they remove the query from its own list. Only for ``"population"``.
        valid: [Q, G] bool; pairs with False are excluded.
        reduction: ``"mean"`` over the queries, or ``"none"``.

    Returns:
        A float in [0, 1] with the number of queries, or [Q] float64 with NaN for queries without a relevant
        item.

    Raises:
        InvalidArgumentError: Shapes differ, levels are not integers, or a choice is unknown.
    """
    check_choice("weights", weights, ("population", "level"))
    finest = _finest_level(relevance, levels)
    measure = partial(ranked_hierarchical, levels=finest, alpha=alpha, weights=weights, include_query=include_query)
    return reduce_values(per_query(measure, scores, relevance, valid), reduction)


@check_arguments
def average_set_intersection(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    *,
    levels: int | None = None,
    depth: Literal["positives", "gallery"] = "positives",
    valid: torch.Tensor | None = None,
    reduction: QueryReduction = "mean",
) -> CountedMean | torch.Tensor:
    """Average set intersection, ASI (Fagin et al. 2003; Sun et al., CVPR 2021).

    SI(n) = |first n items of the list and first n of the ideal list| / n, where items of the same level are
    interchangeable: the sum over levels of the smaller of the two counts. ASI = mean of SI(n) over n = 1..N.

    Args:
        scores: [Q, G] floating point; equal scores rank in column order.
        relevance: [Q, G] integer levels 0..L.
        levels: L; default: the highest level that occurs.
        depth: N: ``"positives"`` is the number of items at level 1 and above, ``"gallery"`` the number of all items.
        valid: [Q, G] bool; pairs with False are excluded.
        reduction: ``"mean"`` over the queries, or ``"none"``.

    Returns:
        As for `hierarchical_average_precision`.
    """
    check_choice("depth", depth, ("positives", "gallery"))
    finest = _finest_level(relevance, levels)
    measure = partial(ranked_set_intersection, levels=finest, depth=depth)
    return reduce_values(per_query(measure, scores, relevance, valid), reduction)


def ranked_hierarchical(
    ranking: Ranking, *, levels: int, alpha: float, weights: LevelWeights, include_query: bool
) -> torch.Tensor:
    """Compute the measure [B] float64; NaN for lists without a relevant item."""
    size, length = ranking.relevance.shape
    value = torch.zeros(size, levels + 1, dtype=torch.float64, device=ranking.scores.device)
    for level in range(1, levels + 1):
        count = (ranking.relevance == level).sum(dim=1)
        if include_query and level == levels:
            count = count + 1
        weight = (level / levels) ** alpha
        value[:, level] = weight / count.clamp(min=1) if weights == "population" else weight
    own = value.gather(1, ranking.relevance.long())
    climbed = own.new_zeros(size, length)
    for level in range(1, levels + 1):
        so_far = (ranking.relevance == level).cumsum(dim=1)
        climbed += own.minimum(value[:, level : level + 1]) * so_far
    return (climbed / ranking.positions()).sum(dim=1) / own.sum(dim=1)


def ranked_set_intersection(ranking: Ranking, *, levels: int, depth: Literal["positives", "gallery"]) -> torch.Tensor:
    """Compute the measure [B] float64; NaN for lists without a relevant item."""
    best = ranking.relevance.where(ranking.valid, -1).sort(dim=1, descending=True).values
    here = ranking.relevance.where(ranking.valid, -1)
    shared = torch.zeros(here.shape, dtype=torch.int64, device=here.device)
    for level in range(levels + 1):
        shared += (here == level).cumsum(dim=1).minimum((best == level).cumsum(dim=1))
    positives = (best > 0).sum(dim=1, keepdim=True)
    until = positives if depth == "positives" else (best >= 0).sum(dim=1, keepdim=True)
    counted = ranking.positions() <= until
    mean = (shared.double() / ranking.positions() * counted).sum(dim=1) / until.squeeze(1)
    return mean.where(positives.squeeze(1) > 0, mean.new_full((), float("nan")))


def _finest_level(relevance: torch.Tensor, levels: int | None) -> int:
    if relevance.is_floating_point() and bool((relevance != relevance.round()).any()):
        raise InvalidArgumentError("relevance must be integer levels 0, 1, 2, ... for hierarchical measures")
    occurs = int(relevance.max().item()) if relevance.numel() else 0
    if levels is not None and levels < max(1, occurs):
        raise InvalidArgumentError(f"levels must be at least the highest relevance, {occurs}, got {levels}")
    return levels if levels is not None else max(1, occurs)


Gain = Literal["exponential", "linear"]


@check_arguments
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

    DCG = sum over ranks r = 1, 2, ... of gain(r) / log2(1 + r); NDCG = DCG / DCG of the ideal order.

    Args:
        scores: [Q, G] floating point, higher is more similar.
        relevance: [Q, G] graded, 0 or more.
        gain: ``"exponential"``: 2^relevance - 1, which emphasizes the highest grade. ``"linear"``: relevance.
        k: Use only the first k ranks, in the ideal order as well; default: all.
        ties: ``"stable"`` or ``"expected"``, see `average_precision`.
        valid: [Q, G] bool; pairs with False are excluded.
        reduction: ``"mean"`` over the queries, or ``"none"``.

    Returns:
        A float in [0, 1] with the number of queries, or [Q] float64 with NaN for queries without gain.

    Raises:
        InvalidArgumentError: Shapes differ, or a choice is unknown.
    """
    check_ties(ties)
    check_choice("gain", gain, ("exponential", "linear"))
    if k is not None:
        check_at_least(1, k=k)
    return reduce_values(
        per_query(partial(ranked_ndcg, gain=gain, k=k, ties=ties), scores, relevance, valid), reduction
    )


def ranked_ndcg(ranking: Ranking, *, gain: Gain, k: int | None, ties: Ties) -> torch.Tensor:
    """Compute the NDCG [B] float64; NaN for lists without a relevant item."""
    grades = ranking.relevance.double()
    gains = torch.exp2(grades) - 1 if gain == "exponential" else grades
    positions = ranking.positions()
    discount = 1 / torch.log2(1 + positions.double())
    if k is not None:
        discount = discount * (positions <= k)
    best = (gains.sort(dim=1, descending=True).values * discount).sum(dim=1)
    return (ranking.over_ties(gains, ties) * discount).sum(dim=1) / best
