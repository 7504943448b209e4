"""Ranked lists from which retrieval measures are computed, and the rules that all measures share.

Shapes: Q queries, G gallery items, B queries in one block.

Rules in this package:

* A higher score means more similar. Scores can have any floating-point dtype; they are compared, never averaged.
* ``relevance`` is graded: 2 for the same subcategory, 1 for the same category, 0 for everything else (more
  levels are possible). Booleans count as 1 and 0.
* ``valid`` excludes pairs, for example a query that is in its own gallery
  (``valid=~torch.eye(Q, dtype=torch.bool)``).
* Ties: ``"stable"`` ranks items with equal scores in the order of the gallery columns (column = id);
  ``"expected"`` gives the mean over all orders of the tied items, in closed form.
* A query for which a measure is undefined (no positive, no gain) is skipped and counted as skipped, not as zero.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_choice
from vidkin.errors import InvalidArgumentError

Ties = Literal["stable", "expected"]

QueryReduction = Literal["mean", "none"]

# Pairs per block of rows; limits the float64 temporaries of a measure to some tens of MiB for matrices of any size.
BLOCK_CELLS = 1 << 20


class CountedMean(float):
    """A mean, with the number of averaged values.

    Attributes:
        count: Number of queries (or quadlets, or triplets) averaged. If it is 0, the value is NaN.
        skipped: Number of queries excluded because the measure is undefined for them.
    """

    count: int
    skipped: int

    def __new__(cls, value: float, count: int, skipped: int = 0) -> CountedMean:
        try:
            self = super().__new__(cls, value)
            self.count, self.skipped = operator.index(count), operator.index(skipped)
        except (TypeError, ValueError):
            raise InvalidArgumentError(
                f"value must be a number, and count and skipped whole numbers, got {value!r}, {count!r} and {skipped!r}"
            ) from None
        return self

    def __getnewargs__(self) -> tuple[float, int, int]:  # type: ignore[override]
        return float(self), self.count, self.skipped


@dataclass(frozen=True, slots=True)
class Ranking:
    """The gallery of each query in descending order of score; invalid pairs come last.

    Attributes:
        scores: [B, G] in ranked order.
        relevance: [B, G] int64 or float64 in ranked order, 0 for invalid pairs.
        valid: [B, G] bool in ranked order: True for the valid pairs, then False.
    """

    scores: torch.Tensor
    relevance: torch.Tensor
    valid: torch.Tensor

    def positions(self) -> torch.Tensor:
        """Return the ranks 1, 2, 3, ... of the list positions, [1, G] int64."""
        return torch.arange(1, self.scores.shape[1] + 1, device=self.scores.device).unsqueeze(0)

    def tie_bounds(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the start and end (exclusive) of the run of equal scores at each position, both [B, G] int64."""
        size, length = self.scores.shape
        positions = torch.arange(length, device=self.scores.device).expand(size, length)
        if length == 0:
            return positions, positions
        differs = (self.scores[:, 1:] != self.scores[:, :-1]) | (self.valid[:, 1:] != self.valid[:, :-1])
        edge = torch.ones(size, 1, dtype=torch.bool, device=self.scores.device)
        opens = torch.cat([edge, differs], dim=1)
        closes = torch.cat([differs, edge], dim=1)
        start = positions.where(opens, positions.new_zeros(())).cummax(dim=1).values
        end = (positions + 1).where(closes, positions.new_full((), length)).flip(1).cummin(dim=1).values.flip(1)
        return start, end

    def over_ties(self, values: torch.Tensor, ties: Ties) -> torch.Tensor:
        """Return the values [B, G] as float64; for "expected", averaged over each run of equal scores."""
        values = values.double()
        if ties == "stable":
            return values
        start, end = self.tie_bounds()
        return (sum_before(values, end) - sum_before(values, start)) / (end - start)


def check_inputs(
    scores: torch.Tensor, relevance: torch.Tensor, valid: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Check the three matrices, and return them detached, with relevance as int64 or float64.

    Raises:
        InvalidArgumentError: Shapes differ, scores contain NaN, or relevance is negative.
    """
    if scores.ndim != 2 or not scores.is_floating_point():
        raise InvalidArgumentError(f"scores must be [Q, G] floating point, got {list(scores.shape)} {scores.dtype}")
    if relevance.shape != scores.shape:
        raise InvalidArgumentError(
            f"relevance must have the shape of scores {list(scores.shape)}, got {list(relevance.shape)}"
        )
    if valid is not None and (valid.shape != scores.shape or valid.dtype != torch.bool):
        raise InvalidArgumentError(
            f"valid must be bool and have the shape of scores {list(scores.shape)}, "
            f"got {list(valid.shape)} {valid.dtype}"
        )
    scores, relevance = scores.detach(), relevance.detach()
    nan = scores.isnan() if valid is None else scores.isnan() & valid
    if bool(nan.any()):
        raise InvalidArgumentError("scores must not contain NaN, which cannot be ranked; exclude such pairs with valid")
    relevance = relevance.double() if relevance.is_floating_point() else relevance.long()
    if bool((relevance < 0).any()) or bool(relevance.isnan().any()):
        raise InvalidArgumentError("relevance must be at least 0, where 0 means not relevant")
    return scores, relevance, valid


def rank(scores: torch.Tensor, relevance: torch.Tensor, valid: torch.Tensor | None) -> Ranking:
    """Rank checked matrices [B, G]; equal scores keep the order of their columns."""
    order = scores.sort(dim=1, descending=True, stable=True).indices
    if valid is None:
        kept = torch.ones((), dtype=torch.bool, device=scores.device).expand(scores.shape)
    else:
        last = (~valid).gather(1, order).to(torch.uint8).sort(dim=1, stable=True)
        order = order.gather(1, last.indices)
        kept = last.values == 0
    ranked = relevance.gather(1, order)
    return Ranking(scores.gather(1, order), ranked if valid is None else ranked * kept, kept)


def per_query(
    measure: Callable[[Ranking], torch.Tensor],
    scores: torch.Tensor,
    relevance: torch.Tensor,
    valid: torch.Tensor | None,
) -> torch.Tensor:
    """Compute ``measure`` for each query, [Q, ...], ranking one block of queries at a time."""
    scores, relevance, valid = check_inputs(scores, relevance, valid)
    step = max(1, BLOCK_CELLS // max(1, scores.shape[1]))
    blocks = [
        measure(
            rank(
                scores[first : first + step],
                relevance[first : first + step],
                None if valid is None else valid[first : first + step],
            )
        )
        for first in range(0, max(1, scores.shape[0]), step)
    ]
    return torch.cat(blocks)


def reduce_values(values: torch.Tensor, reduction: QueryReduction) -> CountedMean | torch.Tensor:
    """Return the per-query values [Q] float64 unchanged, or the mean of the defined (non-NaN) values."""
    if reduction == "none":
        return values
    check_choice("reduction", reduction, ("mean", "none"))
    defined = values[~values.isnan()]
    mean = defined.mean().item() if len(defined) else float("nan")
    return CountedMean(mean, len(defined), len(values) - len(defined))


def check_ties(ties: str) -> None:
    """Raise :class:`InvalidArgumentError` if ``ties`` is not one of the two rules."""
    check_choice("ties", ties, get_args(Ties))


def sum_before(values: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Sum ``values`` [B, G] before each of ``positions`` [B, G] (int64 in 0..G)."""
    total = torch.nn.functional.pad(values.cumsum(dim=1), (1, 0))
    return total.gather(1, positions)


@check_arguments
def graded_relevance(query_labels: torch.Tensor, gallery_labels: torch.Tensor) -> torch.Tensor:
    """Count the levels of the label hierarchy that a query shares with each gallery item, starting at the coarsest.

    With labels (category, subcategory), this is 2 for the same subcategory, 1 for the same category only, and 0
    otherwise. Subcategory numbers are compared only within a category, so categories may use the same numbers.

    Args:
        query_labels: [Q] or [Q, L] integers, the coarsest level first.
        gallery_labels: [G] or [G, L] integers.

    Returns:
        [Q, G] int64 in 0..L.

    Raises:
        InvalidArgumentError: The labels do not have the same number of levels.
    """
    query = query_labels.unsqueeze(1) if query_labels.ndim == 1 else query_labels
    gallery = gallery_labels.unsqueeze(1) if gallery_labels.ndim == 1 else gallery_labels
    if query.ndim != 2 or gallery.ndim != 2 or query.shape[1] != gallery.shape[1]:
        raise InvalidArgumentError(
            "labels must be [N] or [N, L] with the same L on both sides, "
            f"got {list(query_labels.shape)} and {list(gallery_labels.shape)}"
        )
    # Compare one level at a time, because [Q, G, L] would be the largest tensor of an evaluation.
    shared = torch.ones(len(query), len(gallery), dtype=torch.bool, device=query.device)
    relevance = torch.zeros(len(query), len(gallery), dtype=torch.int64, device=query.device)
    for level in range(query.shape[1]):
        shared &= query[:, level, None] == gallery[None, :, level]
        relevance += shared
    return relevance
