"""Average precision: per query, averaged over queries, per relevance level, and over a single list of all pairs."""

from __future__ import annotations

from functools import partial

import torch

from vidkin._base.arguments import check_arguments
from vidkin.metric.measures.ranking import (
    CountedMean,
    Ranking,
    Ties,
    check_inputs,
    check_ties,
    per_query,
    rank,
    reduce_values,
    sum_before,
)


@check_arguments
def average_precision(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    *,
    level: float = 1,
    ties: Ties = "stable",
    valid: torch.Tensor | None = None,
) -> torch.Tensor:
    """Average precision of each query.

    AP = 1/|P| sum over i in P of |{j in P: rank(j) <= rank(i)}| / rank(i), where P are the relevant gallery items.
    There is no interpolation.

    Args:
        scores: [Q, G] floating point, higher is more similar; or [G] for one query.
        relevance: [Q, G] (or [G]), 0 or more.
        level: Minimum relevance of a relevant item: 1 includes intermediates, 2 only items of the same
            subcategory.
        ties: ``"stable"``: equal scores rank in column order. ``"expected"``: the mean over all orders of the tied
            items (McSherry and Najork, ECIR 2008); use it if many scores are equal.
        valid: [Q, G] bool; pairs with False are excluded from the list.

    Returns:
        [Q] float64 in [0, 1] (0-dimensional for one query); NaN for a query without a positive.

    Raises:
        InvalidArgumentError: Shapes differ, scores contain NaN, or relevance is negative.
    """
    check_ties(ties)
    if scores.ndim == 1:
        alone = None if valid is None else valid.unsqueeze(0)
        return average_precision(
            scores.unsqueeze(0), relevance.unsqueeze(0), level=level, ties=ties, valid=alone
        ).squeeze(0)
    return per_query(partial(ranked_average_precision, level=level, ties=ties), scores, relevance, valid)


@check_arguments
def mean_average_precision(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    *,
    level: float = 1,
    ties: Ties = "stable",
    valid: torch.Tensor | None = None,
) -> CountedMean:
    """Mean of the average precision over queries; arguments as for `average_precision`.

    Returns:
        A float in [0, 1], or NaN if no query has a positive; ``count`` is the number of queries with a positive,
        ``skipped`` the number of queries without one, which the mean excludes.
    """
    values = average_precision(scores, relevance, level=level, ties=ties, valid=valid)
    mean = reduce_values(values.reshape(-1), "mean")
    assert isinstance(mean, CountedMean)
    return mean


@check_arguments
def micro_average_precision(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    *,
    level: float = 1,
    ties: Ties = "stable",
    valid: torch.Tensor | None = None,
) -> float:
    """Average precision of a single list of all (query, gallery item) pairs.

    Scores must be comparable between queries, as in copy detection with a single threshold. Arguments are as for
    `average_precision`; equal scores rank by query, then by column.

    Returns:
        A float in [0, 1], or NaN if no pair is positive.
    """
    check_ties(ties)
    scores, relevance, valid = check_inputs(scores, relevance, valid)
    flat_valid = None if valid is None else valid.reshape(1, -1)
    ranking = rank(scores.reshape(1, -1), relevance.reshape(1, -1), flat_valid)
    return ranked_average_precision(ranking, level=level, ties=ties).item()


@check_arguments
def average_precision_per_level(
    scores: torch.Tensor,
    relevance: torch.Tensor,
    *,
    levels: int | None = None,
    ties: Ties = "stable",
    valid: torch.Tensor | None = None,
) -> dict[int, CountedMean]:
    """Mean average precision at each level: ``{1: same category and up, 2: same subcategory, ...}``.

    Args:
        scores: [Q, G].
        relevance: [Q, G] integers.
        levels: The finest level; default: the highest relevance that occurs.
        ties: Rule for ties, as in `average_precision`.
        valid: Pairs to rank, as in `average_precision`.
    """
    check_inputs(scores, relevance, valid)
    finest = levels if levels is not None else (int(relevance.max().item()) if relevance.numel() else 0)
    return {
        level: mean_average_precision(scores, relevance, level=level, ties=ties, valid=valid)
        for level in range(1, finest + 1)
    }


def ranked_average_precision(ranking: Ranking, *, level: float, ties: Ties) -> torch.Tensor:
    """Compute the average precision [B] float64; NaN for lists without a positive."""
    positive = (ranking.relevance >= level) & ranking.valid
    total = positive.sum(dim=1)
    gained = precision_at_positives(ranking, positive, ties=ties).sum(dim=1)
    # 0/0 gives NaN, which marks lists without a positive.
    return gained / total


def precision_at_positives(ranking: Ranking, positive: torch.Tensor, *, ties: Ties) -> torch.Tensor:
    """Return the precision at each positive, else 0, [B, G] float64; for "expected", its mean over orders of ties."""
    positions = ranking.positions()
    if ties == "stable":
        return positive * (positive.cumsum(dim=1).double() / positions)
    start, end = ranking.tie_bounds()
    hits = positive.long()
    earlier = sum_before(hits, start)
    inside = sum_before(hits, end) - earlier
    size = end - start
    # The item at a position in a run of `size` ties is positive with probability inside/size. If it is, each earlier
    # position in the run holds one of the other inside-1 positives with probability (inside-1)/(size-1).
    others = (positions - 1 - start) * (inside - 1).double() / (size - 1).clamp(min=1)
    return inside.double() / size * (earlier + others + 1) / positions
