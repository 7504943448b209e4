"""Retrieval measures accumulated over blocks of queries, for score matrices that do not fit into memory.

60,000 x 60,000 scores take 14 GB in float32. `RetrievalAccumulator` takes one block of queries at a time, with scores
for the whole gallery, and ranks it once for all measures. The results equal those of the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from vidkin._base.arguments import check_constructor
from vidkin._base.values import check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures.average_precision import ranked_average_precision
from vidkin.metric.measures.graded import Gain, ranked_hierarchical, ranked_ndcg, ranked_set_intersection
from vidkin.metric.measures.order import ranked_quadlets, ranked_triplets
from vidkin.metric.measures.ranking import CountedMean, Ranking, Ties, check_ties, per_query
from vidkin.metric.measures.recall import ranked_map_at_r, ranked_r_precision, ranked_recall

_RATIOS = ("quadlet_precision", "triplet_precision")


@check_constructor
class RetrievalAccumulator:
    """Retrieval measures for any number of queries, accumulated in blocks; each block is ranked once.

    Names and definitions are those of the functions: ``mean_average_precision``, ``ndcg``, ``recall_at_<k>``,
    ``r_precision``, ``map_at_r``, ``hierarchical_average_precision``, ``average_set_intersection``,
    ``quadlet_precision``, ``triplet_precision``. Memory use is one block plus a few values.

    Args:
        measures: Names of the measures to compute; default: all.
        recall_at: Values of k for Recall@K (in the "hit" form).
        level: Minimum relevance of a positive, for measures of binary relevance.
        levels: The finest relevance level; it must be known before the first block.
        gain: Gain for NDCG.
        ties: ``"stable"`` or ``"expected"``. Hierarchical measures are always stable; quadlet and triplet precision
            count ties as out of order.

    Raises:
        InvalidArgumentError: A measure or a choice is unknown.

    Example:
        >>> import torch
        >>> accumulator = RetrievalAccumulator(measures=["mean_average_precision"])
        >>> accumulator.update(torch.tensor([[0.9, 0.1]]), torch.tensor([[0, 1]]))
        >>> accumulator.compute()["mean_average_precision"]
        0.5
    """

    def __init__(
        self,
        measures: Sequence[str] | None = None,
        *,
        recall_at: Sequence[int] = (1,),
        level: float = 1,
        levels: int = 2,
        gain: Gain = "exponential",
        ties: Ties = "stable",
    ) -> None:
        check_ties(ties)
        check_choice("gain", gain, ("exponential", "linear"))
        if any(k < 1 for k in recall_at):
            raise InvalidArgumentError(f"recall_at must be numbers of at least 1, got {list(recall_at)}")
        known: dict[str, Callable[[Ranking], torch.Tensor]] = {
            "mean_average_precision": partial(ranked_average_precision, level=level, ties=ties),
            "ndcg": partial(ranked_ndcg, gain=gain, k=None, ties=ties),
            **{f"recall_at_{k}": partial(ranked_recall, k=k, form="hit", level=level, ties=ties) for k in recall_at},
            "r_precision": partial(ranked_r_precision, level=level, ties=ties),
            "map_at_r": partial(ranked_map_at_r, level=level, ties=ties),
            "hierarchical_average_precision": partial(
                ranked_hierarchical, levels=levels, alpha=1.0, weights="population", include_query=False
            ),
            "average_set_intersection": partial(ranked_set_intersection, levels=levels, depth="positives"),
            "quadlet_precision": partial(ranked_quadlets, positive_level=levels),
            "triplet_precision": partial(ranked_triplets, positive_level=levels, weighting="quadlets"),
        }
        names = list(known) if measures is None else list(measures)
        unknown = sorted(set(names) - set(known))
        if unknown or not names:
            raise InvalidArgumentError(f"measures must be among {', '.join(sorted(known))}, got {names}")
        self._measures = {name: known[name] for name in names}
        self._levels = levels
        # Sum and count of a mean (for ratios, the numbers of correct and of all tuples), then the skipped queries.
        # Counts for ratios are Python ints: over many queries, the number of quadlets can exceed a float's 53 bits.
        self._sums: dict[str, list[float]] = {name: [0, 0, 0] for name in names}

    def update(self, scores: torch.Tensor, relevance: torch.Tensor, valid: torch.Tensor | None = None) -> None:
        """Add a block: scores [B, G], relevance [B, G], and ``valid`` [B, G] bool, False for pairs to exclude.

        Raises:
            InvalidArgumentError: Shapes differ, scores contain NaN, or relevance exceeds ``levels``.
        """
        if relevance.numel() and int(relevance.max().item()) > self._levels:
            raise InvalidArgumentError(
                f"relevance must be at most {self._levels}, the levels of this accumulator, "
                f"got {int(relevance.max().item())}"
            )
        values = per_query(self._all_measures, scores, relevance, valid)
        column = 0
        for name, sums in self._sums.items():
            if name in _RATIOS:
                pair = values[:, column : column + 2]
                right, total = pair.long().sum(dim=0).tolist()
                block = [right, total, int((pair[:, 1] == 0).sum().item())]
                column += 2
            else:
                defined = values[:, column]
                defined = defined[~defined.isnan()]
                block = [defined.sum().item(), len(defined), len(values) - len(defined)]
                column += 1
            for part, amount in enumerate(block):
                sums[part] += amount

    def merge(self, other: RetrievalAccumulator) -> None:
        """Add the blocks of another accumulator, for example from another process.

        Raises:
            InvalidArgumentError: The other accumulator has different measures.
        """
        if list(other._sums) != list(self._sums) or other._levels != self._levels:
            raise InvalidArgumentError(
                f"accumulators must have the same measures to be merged, got {list(other._sums)} and {list(self._sums)}"
            )
        for name, sums in self._sums.items():
            for part, amount in enumerate(other._sums[name]):
                sums[part] += amount

    def compute(self) -> dict[str, CountedMean]:
        """Return the values over all blocks so far; NaN for a measure that is undefined for all queries."""
        return {
            name: CountedMean(total / count if count else float("nan"), int(count), int(skipped))
            for name, (total, count, skipped) in self._sums.items()
        }

    def _all_measures(self, ranking: Ranking) -> torch.Tensor:
        columns = []
        for measure in self._measures.values():
            value = measure(ranking)
            # Counts for one query stay below 2^53 up to a gallery of 500,000 items, so float64 represents them exactly.
            columns.append(value.double() if value.ndim == 2 else value.unsqueeze(1))
        return torch.cat(columns, dim=1)
