"""What every loss on (scores, relevance) shares: which pairs count, blocks of rows, and the reduction.

N queries, M references, P the largest number of positives of a query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses._common import Reduction, check_choice, in_full_precision

# Pairs per block: temporaries of 4 MiB each in float32 keep the caches of a CPU and fill a GPU.
BLOCK_PAIRS = 2**20


class ScorePairs(NamedTuple):
    """Scores in at least single precision, and which of them are positive and negative pairs."""

    scores: Tensor
    positive: Tensor
    negative: Tensor


class ScoreLoss(nn.Module):
    """Base of the losses on (scores [N, M], relevance [N, M]): keeps the options, shows them in its repr.

    Args:
        include_self: Keep a query in its own list. Off, the diagonal of a square matrix (or the columns
            that ``self_offset`` names in a call) counts neither as positive nor as negative. Turn it on
            when queries and references are different things, and to reproduce public code that keeps it.
        reduction: "mean" over the queries that count, "sum", or "none" for one value per query.
    """

    def __init__(self, *, include_self: bool = False, reduction: Reduction = "mean") -> None:
        super().__init__()
        check_choice("reduction", reduction, get_args(Reduction))
        self.include_self = include_self
        self.reduction: Reduction = reduction

    def extra_repr(self) -> str:
        options = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        options.pop("training")
        return ", ".join(f"{name}={value!r}" for name, value in sorted(options.items()))


def score_pairs(
    scores: Tensor, relevance: Tensor, *, include_self: bool = False, self_offset: int | None = None
) -> ScorePairs:
    """Positive pairs are those of relevance above 0, negative those of 0; below 0 a pair is ignored.

    A query's own column is ignored as well, unless ``include_self``: column ``i + self_offset`` of query i,
    where ``self_offset`` is 0 for a square matrix that does not say otherwise and nothing for others.
    Ignored scores are replaced by 0 and get no gradient.
    """
    scores = checked_scores(scores, relevance)
    self_pairs = self_pair_mask(scores, include_self=include_self, self_offset=self_offset)
    ignored = relevance < 0 if self_pairs is None else (relevance < 0) | self_pairs
    return ScorePairs(
        scores.masked_fill(ignored, 0.0), (relevance > 0) & ~ignored, (relevance == 0) & ~ignored
    )


def checked_scores(scores: Tensor, relevance: Tensor) -> Tensor:
    """The scores, half precision widened to float32 (ranks up to thousands do not fit in 8 bits)."""
    if scores.ndim != 2 or scores.shape != relevance.shape or scores.numel() == 0:
        raise InvalidArgumentError(
            f"scores have shape {tuple(scores.shape)} and relevance {tuple(relevance.shape)}; both must be "
            "[queries, references], the same and not empty"
        )
    if not scores.is_floating_point():
        raise InvalidArgumentError(f"scores have type {scores.dtype}, allowed are floating point numbers")
    return in_full_precision(scores)


def self_pair_mask(scores: Tensor, *, include_self: bool, self_offset: int | None) -> Tensor | None:
    """Boolean [N, M], true where the reference is the query itself; None where there is no such pair."""
    queries, references = scores.shape[:2]
    if self_offset is None:
        if include_self or queries != references:
            return None
        self_offset = 0
    if not 0 <= self_offset <= references - queries:
        raise InvalidArgumentError(
            f"self_offset is {self_offset} for {queries} queries and {references} references, allowed is "
            f"0 to {references - queries}: query i is reference i + self_offset"
        )
    if include_self:
        return None
    return own_columns(queries, references, self_offset, scores.device)


def own_columns(queries: int, references: int, self_offset: int, device: torch.device) -> Tensor:
    """Boolean [N, M], true in column i + self_offset of row i."""
    rows = torch.arange(queries, device=device).unsqueeze(1)
    columns = torch.arange(references, device=device).unsqueeze(0)
    return columns == rows + self_offset


def gather_marked(marked: Tensor, limit: int | None) -> tuple[Tensor, Tensor]:
    """Columns of the marked pairs [N, P] of every row, and which of these slots are filled [N, P].

    ``limit`` is P. Without it P is read from the mask, which on an accelerator waits for the device once.
    """
    counts = marked.sum(dim=1)
    if limit is None:
        limit = max(1, int(counts.max()))
    else:
        check_limit(limit)
        limit = min(limit, marked.shape[1])
        enough = (counts <= limit).all()
        message = f"max_positives is {limit}, but a query has more positives; raise it or leave it out"
        if enough.device.type == "cpu":
            if not bool(enough):
                raise InvalidArgumentError(message)
        else:
            # Asserted on the device, so that the host need not wait for the answer.
            torch._assert_async(enough, message)
    # Not as bool or integers, which topk does not take on every device.
    filled, columns = marked.to(torch.float32).topk(limit, dim=1)
    return columns, filled > 0


def check_limit(limit: int) -> None:
    """A bound on the number of positives is at least 1."""
    if limit < 1:
        raise InvalidArgumentError(f"max_positives is {limit}, allowed is 1 or more, or None to count them")


def in_row_blocks(function: Callable[..., Tensor], *rows: Tensor, pairs_per_row: int) -> Tensor:
    """``function(*rows)`` computed a few rows at a time; equal in value and gradient, bounded in memory.

    Args:
        function: Row-wise: row i of the result depends on row i of every argument.
        rows: Tensors with the same first dimension.
        pairs_per_row: Elements of the largest temporary that ``function`` makes for one row.
    """
    size = max(1, BLOCK_PAIRS // max(1, pairs_per_row))
    if size >= rows[0].shape[0]:
        return function(*rows)
    # split, not slices: its backward writes one gradient for all blocks instead of one full one for each.
    blocks = zip(*(torch.split(tensor, size) for tensor in rows), strict=True)
    if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in rows)):
        return torch.cat([function(*block) for block in blocks])
    return torch.cat([recomputed(function, *block) for block in blocks])


def recomputed(function: Callable[..., Tensor], *arguments: Tensor) -> Tensor:
    """``function(*arguments)``, its temporaries made again in the backward pass instead of kept."""
    result: Tensor = checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)
    return result


def reduce_queries(values: Tensor, counted: Tensor, reduction: Reduction) -> Tensor:
    """Mean or sum over the counted queries (0 with a gradient where there is none), or [N] with zeros."""
    check_choice("reduction", reduction, get_args(Reduction))
    values = values.masked_fill(~counted, 0.0)
    if reduction == "none":
        return values
    if reduction == "sum":
        return values.sum()
    return values.sum() / counted.sum().clamp(min=1)


def check_positive(**values: float) -> None:
    """Every named value must be above 0."""
    for name, value in values.items():
        if not value > 0:
            raise InvalidArgumentError(f"{name} is {value}, allowed is a number above 0")


def lowest(scores: Tensor) -> float:
    """A finite stand-in for minus infinity: half the lowest number, so that differences stay finite."""
    return torch.finfo(scores.dtype).min / 2
