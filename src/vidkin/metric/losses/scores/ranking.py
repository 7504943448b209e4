"""The average-precision risk that every loss with a smoothed rank shares, without cubic memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from vidkin.metric.losses.scores.pairs import ScorePairs, gather_marked, in_row_blocks

StepFunction = Callable[[Tensor], Tensor]


def surrogate_ap_risk(
    pairs: ScorePairs,
    *,
    negative_step: StepFunction,
    positive_step: StepFunction,
    max_positives: int | None = None,
) -> Tensor:
    """Risk [N] of every query with smoothed ranks.

    ``risk_k = 1/|P| sum_{i in P} n_i / (1 + p_i + n_i)``, where ``n_i`` sums ``negative_step(s_kj - s_ki)``
    over the negatives j and ``p_i`` sums ``positive_step(s_kj - s_ki)`` over the other positives j. With the
    strict step for both this is 1 - AP. Only positives are ranked, so N M P differences are made, a block
    of rows at a time. A query without positives has risk 0.
    """
    columns, filled = gather_marked(pairs.positive, max_positives)
    return in_row_blocks(
        partial(list_risk, negative_step=negative_step, positive_step=positive_step),
        pairs.scores.gather(1, columns),
        filled,
        pairs.scores,
        pairs.negative,
        pairs_per_row=columns.shape[1] * pairs.scores.shape[1],
    )


def list_risk(
    positives: Tensor,
    is_positive: Tensor,
    negatives: Tensor,
    is_negative: Tensor,
    *,
    negative_step: StepFunction,
    positive_step: StepFunction,
) -> Tensor:
    """The same risk [N] from lists of scores: positives [N, P] and negatives [N, Q], with what is filled."""
    anchors = positives.unsqueeze(2)
    steps = negative_step(negatives.unsqueeze(1) - anchors)
    negative_rank = (steps * is_negative.unsqueeze(1)).sum(dim=2)
    others = is_positive.unsqueeze(1) & ~torch.eye(
        positives.shape[1], dtype=torch.bool, device=positives.device
    )
    positive_rank = (positive_step(positives.unsqueeze(1) - anchors) * others).sum(dim=2)
    risks = negative_rank / (1.0 + positive_rank + negative_rank)
    return (risks * is_positive).sum(dim=1) / is_positive.sum(dim=1).clamp(min=1)


def strict_step(difference: Tensor) -> Tensor:
    """H(x): 1 where x > 0, else 0; without gradient."""
    return (difference > 0).to(difference.dtype)


def inclusive_step(difference: Tensor) -> Tensor:
    """H(x): 1 where x >= 0, else 0; without gradient."""
    return (difference >= 0).to(difference.dtype)
