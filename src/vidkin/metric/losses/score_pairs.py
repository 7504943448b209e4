"""Shared parts of the losses on (scores, relevance): base class, pair masks, and row-wise blocks.

Shapes: N queries, M references, P the largest number of positives of any query.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from vidkin._base.values import check_at_least
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import Loss, to_full_precision

# Pairs per block. Temporaries of 4 MiB in float32 fit into CPU caches and are large enough to fill a GPU.
BLOCK_PAIRS = 2**20


class ScorePairs(NamedTuple):
    """Scores in at least single precision, with the masks of positive and negative pairs."""

    scores: Tensor
    positive: Tensor
    negative: Tensor


class LossOnScores(Loss):
    """Base class for losses on (scores [N, M], relevance [N, M]). All have two options:

    * include_self: Keep a query in its own list. If False, the diagonal of a square matrix (or the columns given by
      the ``self_offset`` of a call) counts neither as positive nor as negative. Use True if queries and references are
      different items, or to reproduce public code that keeps the query.
    * reduction: "mean" or "sum" over the queries that count, or "none" for one value per query.
    """

    def forward(self, scores: Tensor, relevance: Tensor, *, self_offset: int | None = None) -> Tensor:
        """Compute the loss: a scalar, or [N] for reduction "none".

        Args:
            scores: [N, M], higher is more similar.
            relevance: [N, M], above 0 positive, 0 negative, below 0 ignored.
            self_offset: Query i is reference ``i + self_offset``.
        """
        return self.compute(scores, relevance, self_offset=self_offset, **self.options)

    if TYPE_CHECKING:
        __call__ = forward


def score_pairs(
    scores: Tensor, relevance: Tensor, *, include_self: bool = False, self_offset: int | None = None
) -> ScorePairs:
    """Split pairs by relevance: above 0 positive, 0 negative, below 0 ignored.

    Unless ``include_self`` is set, a query's own column ``i + self_offset`` is ignored as well. ``self_offset``
    defaults to 0 for a square matrix; other matrices have no own columns by default. Ignored scores are replaced with
    0 and get no gradient.
    """
    scores = check_scores(scores, relevance)
    self_pairs = self_pair_mask(scores, include_self=include_self, self_offset=self_offset)
    ignored = relevance < 0 if self_pairs is None else (relevance < 0) | self_pairs
    return ScorePairs(scores.masked_fill(ignored, 0.0), (relevance > 0) & ~ignored, (relevance == 0) & ~ignored)


def check_scores(scores: Tensor, relevance: Tensor) -> Tensor:
    """Check the shapes and return the scores, converted from half precision to float32 (8 bits cannot hold ranks)."""
    if scores.ndim != 2 or scores.shape != relevance.shape or scores.numel() == 0:
        raise InvalidArgumentError(
            "scores and relevance must have the same shape [queries, references] and not be empty, "
            f"got {tuple(scores.shape)} and {tuple(relevance.shape)}"
        )
    if not scores.is_floating_point():
        raise InvalidArgumentError(f"scores must be floating point numbers, got {scores.dtype}")
    return to_full_precision(scores)


def self_pair_mask(scores: Tensor, *, include_self: bool, self_offset: int | None) -> Tensor | None:
    """Return a bool mask [N, M] that is True where the reference is the query itself; None if there is no such pair."""
    queries, references = scores.shape[:2]
    if self_offset is None:
        if include_self or queries != references:
            return None
        self_offset = 0
    if not 0 <= self_offset <= references - queries:
        raise InvalidArgumentError(
            f"self_offset must be from 0 to {references - queries} for {queries} queries and {references} references, "
            f"got {self_offset}"
        )
    if include_self:
        return None
    rows = torch.arange(queries, device=scores.device).unsqueeze(1)
    columns = torch.arange(references, device=scores.device).unsqueeze(0)
    return columns == rows + self_offset


def gather_marked(marked: Tensor, limit: int | None) -> tuple[Tensor, Tensor]:
    """Return the columns of the marked pairs in each row [N, P], and a mask of the slots that are filled [N, P].

    ``limit`` is P. Without it, P is read from the mask, which synchronizes once with an accelerator.
    """
    counts = marked.sum(dim=1)
    if limit is None:
        limit = max(1, int(counts.max()))
    else:
        check_at_least(1, max_positives=limit)
        limit = min(limit, marked.shape[1])
        enough = (counts <= limit).all()
        message = f"max_positives must be at least the positives of each query, got {limit}; raise or omit it"
        if enough.device.type == "cpu":
            if not bool(enough):
                raise InvalidArgumentError(message)
        else:
            # Checked on the device, so that the host does not wait for the result.
            torch._assert_async(enough, message)
    # topk does not support bool and integers on every device.
    filled, columns = marked.to(torch.float32).topk(limit, dim=1)
    return columns, filled > 0


def map_row_blocks(function: Callable[..., Tensor], *rows: Tensor, pairs_per_row: int) -> Tensor:
    """Compute ``function(*rows)`` a few rows at a time: the same value and gradient in bounded memory.

    Args:
        function: Row-wise function: row i of the result depends only on row i of each argument.
        rows: Tensors with the same first dimension.
        pairs_per_row: Number of elements per row of the largest temporary that ``function`` creates.
    """
    size = max(1, BLOCK_PAIRS // max(1, pairs_per_row))
    if size >= rows[0].shape[0]:
        return function(*rows)
    # Use split instead of slices: its backward pass allocates one gradient for all blocks, not a full one per block.
    blocks = zip(*(torch.split(tensor, size) for tensor in rows), strict=True)
    if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in rows)):
        return torch.cat([function(*block) for block in blocks])
    # Recompute the temporaries in the backward pass instead of storing them.
    recompute = partial(checkpoint, function, use_reentrant=False, preserve_rng_state=False)
    return torch.cat([recompute(*block) for block in blocks])


def lowest(scores: Tensor) -> float:
    """Return a finite substitute for negative infinity: half the lowest number, so that differences stay finite."""
    return torch.finfo(scores.dtype).min / 2


StepFunction = Callable[[Tensor], Tensor]


def surrogate_ap_risk(
    pairs: ScorePairs,
    *,
    negative_step: StepFunction,
    positive_step: StepFunction,
    max_positives: int | None = None,
) -> Tensor:
    """Compute the average-precision risk [N] of each query with smoothed ranks.

    ``risk_k = 1/|P| sum_{i in P} n_i / (1 + p_i + n_i)``, where ``n_i`` sums ``negative_step(s_kj - s_ki)``
    over the negatives j and ``p_i`` sums ``positive_step(s_kj - s_ki)`` over the other positives j. With the
    strict step for both, this is 1 - AP. Only positives are ranked, so N M P differences are computed, in blocks
    of rows. A query without positives has risk 0.
    """
    columns, filled = gather_marked(pairs.positive, max_positives)
    return map_row_blocks(
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
    """Compute the risk [N] of `surrogate_ap_risk` from padded positive scores [N, P] and negative scores [N, Q]."""
    anchors = positives.unsqueeze(2)
    steps = negative_step(negatives.unsqueeze(1) - anchors)
    negative_rank = (steps * is_negative.unsqueeze(1)).sum(dim=2)
    others = is_positive.unsqueeze(1) & ~torch.eye(positives.shape[1], dtype=torch.bool, device=positives.device)
    positive_rank = (positive_step(positives.unsqueeze(1) - anchors) * others).sum(dim=2)
    risks = negative_rank / (1.0 + positive_rank + negative_rank)
    return (risks * is_positive).sum(dim=1) / is_positive.sum(dim=1).clamp(min=1)


def strict_step(difference: Tensor) -> Tensor:
    """Compute H(x): 1 where x > 0, else 0; without gradient."""
    return (difference > 0).to(difference.dtype)


def inclusive_step(difference: Tensor) -> Tensor:
    """Compute H(x): 1 where x >= 0, else 0; without gradient."""
    return (difference >= 0).to(difference.dtype)
