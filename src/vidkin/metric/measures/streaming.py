"""Measures over more comparisons than fit in memory, computed block by block; equal to the one-shot forms.

60,000 x 60,000 scores are 14 GB in float32. `RetrievalAccumulator` needs one block of queries at a time (all
of their gallery); `MicroAveragePrecisionAccumulator` sees the blocks twice and keeps the positives alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from vidkin._base.checks import check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures.average_precision import ranked_average_precision
from vidkin.metric.measures.gain import Gain, ranked_ndcg
from vidkin.metric.measures.hierarchical import ranked_hierarchical, ranked_set_intersection
from vidkin.metric.measures.order import ranked_quadlets, ranked_triplets
from vidkin.metric.measures.ranking import (
    CountedMean,
    Ranking,
    Ties,
    check_ties,
    checked,
    per_query,
)
from vidkin.metric.measures.recall import ranked_map_at_r, ranked_r_precision, ranked_recall

__all__ = ["MicroAveragePrecisionAccumulator", "RetrievalAccumulator"]

# Negatives are looked up in pieces of this many, which bounds what the look-up holds.
_PIECE = 1 << 18

_SHARES = ("quadlet_precision", "triplet_precision")


class RetrievalAccumulator:
    """Per-query measures of any number of queries, a block at a time; each block is ranked once.

    Names and definitions are those of the functions: ``mean_average_precision``, ``ndcg``, ``recall_at_<k>``,
    ``r_precision``, ``map_at_r``, ``hierarchical_average_precision``, ``average_set_intersection``,
    ``quadlet_precision``, ``triplet_precision``. Memory is that of one block plus a few numbers.

    Args:
        measures: Measures to compute; default: all.
        recall_at: The k of Recall@K ("hit" form).
        level: Relevance from which an item is a positive, for the measures of two classes.
        levels: The finest level of relevance; must be known before the first block.
        gain: Gain of NDCG.
        ties: ``"stable"`` or ``"expected"``; the measures of a hierarchy are always stable, quadlets and
            triplets never count a tie as order.

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
            **{
                f"recall_at_{k}": partial(ranked_recall, k=k, form="hit", level=level, ties=ties)
                for k in recall_at
            },
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
        # Sum and count of the mean (or right and all of the share), then the queries skipped. Sums of shares
        # are Python integers: quadlets of many queries outgrow a float's 53 bits.
        self._sums: dict[str, list[float]] = {name: [0, 0, 0] for name in names}

    def update(
        self, scores: torch.Tensor, relevance: torch.Tensor, valid: torch.Tensor | None = None
    ) -> None:
        """Add one block: scores [B, G], relevance [B, G], and ``valid`` [B, G] bool to leave pairs out.

        Raises:
            InvalidArgumentError: Shapes differ, scores hold NaN or relevance exceeds ``levels``.
        """
        if relevance.numel() and int(relevance.max().item()) > self._levels:
            raise InvalidArgumentError(
                f"relevance must be at most {self._levels}, the levels of this accumulator, "
                f"got {int(relevance.max().item())}"
            )
        values = per_query(self._all_measures, scores, relevance, valid)
        column = 0
        for name, sums in self._sums.items():
            if name in _SHARES:
                pair = values[:, column : column + 2]
                right, total = pair.long().sum(dim=0).tolist()
                block = [right, total, int((pair[:, 1] == 0).sum().item())]
                column += 2
            else:
                told = values[:, column]
                told = told[~told.isnan()]
                block = [told.sum().item(), len(told), len(values) - len(told)]
                column += 1
            for part, amount in enumerate(block):
                sums[part] += amount

    def merge(self, other: RetrievalAccumulator) -> None:
        """Add the blocks that another accumulator (of another process) has seen.

        Raises:
            InvalidArgumentError: The other one has other measures.
        """
        if list(other._sums) != list(self._sums) or other._levels != self._levels:
            raise InvalidArgumentError(
                f"accumulators must have the same measures to be merged, got {list(other._sums)} and {list(self._sums)}"
            )
        for name, sums in self._sums.items():
            for part, amount in enumerate(other._sums[name]):
                sums[part] += amount

    def compute(self) -> dict[str, CountedMean]:
        """Values over all blocks so far; nan where nothing counted."""
        return {
            name: CountedMean(total / count if count else float("nan"), int(count), int(skipped))
            for name, (total, count, skipped) in self._sums.items()
        }

    def _all_measures(self, ranking: Ranking) -> torch.Tensor:
        columns = []
        for measure in self._measures.values():
            value = measure(ranking)
            # Counts of one query stay below 2^53 up to a gallery of 500,000, so float64 holds them exactly.
            columns.append(value.double() if value.ndim == 2 else value.unsqueeze(1))
        return torch.cat(columns, dim=1)


class MicroAveragePrecisionAccumulator:
    """Micro average precision over all pairs in two passes, exact, with only the positives in memory.

    First pass: `collect` every block, which keeps the scores of its positive pairs. Second pass: `update`
    with the same blocks in the same order, which counts for every positive the pairs ranked before it.
    The result equals `micro_average_precision` of all blocks under each other, ties included.

    Memory: about 40 bytes a positive pair, plus one block.

    Args:
        level: Relevance from which a pair is positive.
        ties: ``"stable"``: equal scores rank in the order of the pairs. ``"expected"``: mean over the orders.
    """

    def __init__(self, *, level: float = 1, ties: Ties = "stable") -> None:
        check_ties(ties)
        self._level = level
        self._ties = ties
        self._scores: list[torch.Tensor] = []
        self._indices: list[torch.Tensor] = []
        self._collected = 0
        self._updated = 0
        self._positives_seen = 0
        self._index: _PositiveIndex | None = None

    def collect(
        self, scores: torch.Tensor, relevance: torch.Tensor, valid: torch.Tensor | None = None
    ) -> None:
        """First pass: one block, scores [B, G] and relevance [B, G] (``valid`` [B, G] leaves pairs out)."""
        if self._index is not None:
            raise InvalidArgumentError(
                "collect must come before update; start a new accumulator for other pairs"
            )
        scores, relevance, valid = checked(scores, relevance, valid)
        positive = relevance >= self._level
        if valid is not None:
            positive &= valid
        place = positive.reshape(-1).nonzero().squeeze(1)
        self._scores.append(_comparable(scores.reshape(-1)[place]))
        self._indices.append(place.cpu() + self._collected)
        self._collected += scores.numel()

    def update(
        self, scores: torch.Tensor, relevance: torch.Tensor, valid: torch.Tensor | None = None
    ) -> None:
        """Second pass: the same blocks in the same order.

        Raises:
            InvalidArgumentError: There are more pairs than were collected.
        """
        scores, relevance, valid = checked(scores, relevance, valid)
        if self._index is None:
            self._index = _PositiveIndex(self._scores, self._indices, stable=self._ties == "stable")
            self._scores, self._indices = [], []
        if self._updated + scores.numel() > self._collected:
            raise InvalidArgumentError(
                "both passes must see the same blocks, "
                f"got {self._updated + scores.numel()} pairs in update and {self._collected} in collect"
            )
        positive = relevance >= self._level
        negative = ~positive if valid is None else ~positive & valid
        self._positives_seen += int((positive if valid is None else positive & valid).sum().item())
        place = negative.reshape(-1).nonzero().squeeze(1)
        self._index.count(_comparable(scores.reshape(-1)[place]), place.cpu() + self._updated)
        self._updated += scores.numel()

    def compute(self) -> float:
        """Micro average precision in [0, 1]; nan when no pair is positive.

        Raises:
            InvalidArgumentError: The two passes did not see the same pairs.
        """
        expected = len(self._index.scores) if self._index is not None else sum(map(len, self._scores))
        if self._updated != self._collected or self._positives_seen != expected:
            raise InvalidArgumentError(
                f"both passes must see the same blocks, got {self._collected} pairs with {expected} positives in "
                f"collect and {self._updated} with {self._positives_seen} in update"
            )
        return self._index.average_precision() if self._index is not None else float("nan")


def _comparable(scores: torch.Tensor) -> torch.Tensor:
    """On the CPU, half precision widened (which changes no value): searchsorted does not take it."""
    return scores.cpu() if scores.dtype in (torch.float32, torch.float64) else scores.float().cpu()


class _PositiveIndex:
    """Positives in ranked order, and how many negatives fall before each of them."""

    def __init__(self, scores: list[torch.Tensor], indices: list[torch.Tensor], *, stable: bool) -> None:
        unsorted = torch.cat(scores)
        order = unsorted.sort(descending=True, stable=True).indices
        self.scores = unsorted[order]
        self.stable = stable
        # searchsorted wants rising values; scores fall, so it is given their negatives.
        self.keys = -self.scores
        self.indices = torch.cat(indices)[order]
        self.modulus = int(self.indices.max().item()) + 2 if len(order) else 1
        opens = torch.ones(len(order), dtype=torch.bool)
        opens[1:] = self.scores[1:] != self.scores[:-1]
        self.group = opens.cumsum(0) - 1
        # negatives[n]: negatives that rank after positive n-1 and before positive n (n = P: after all).
        self.negatives = torch.zeros(len(order) + 1, dtype=torch.int64)
        self.tied = torch.zeros(len(order), dtype=torch.int64)

    def count(self, scores: torch.Tensor, indices: torch.Tensor) -> None:
        """Count negatives: scores [N] and their places [N] in the list of all pairs."""
        for low in range(0, len(scores) if len(self.keys) else 0, _PIECE):
            keys = -scores[low : low + _PIECE].to(self.keys.dtype)
            first = torch.searchsorted(self.keys, keys)
            equal = self.keys[first.clamp(max=len(self.keys) - 1)] == keys
            if self.stable:
                # Among equal scores the place decides. (group, place) as one number keeps that order.
                groups = self.group[first[equal]]
                own = self.group * self.modulus + self.indices
                places = indices[low : low + _PIECE][equal].clamp(max=self.modulus - 1)
                first[equal] = torch.searchsorted(own, groups * self.modulus + places)
            else:
                # Counted apart, by the first positive of the run of equals; before the run none of them counts.
                self.tied += first[equal].bincount(minlength=len(self.tied))
                first = first[~equal]
            self.negatives += first.bincount(minlength=len(self.negatives))

    def average_precision(self) -> float:
        total = len(self.scores)
        if total == 0:
            return float("nan")
        hits = torch.arange(1, total + 1, dtype=torch.float64)
        ahead = self.negatives[:-1].cumsum(0).double()
        if self.stable:
            return (hits / (hits + ahead)).mean().item()
        # Mean over orders of ties; a run of r positives and t negatives has r + t places, taken in pieces.
        starts = (
            torch.cat([torch.ones(1, dtype=torch.bool), self.group[1:] != self.group[:-1]])
            .nonzero()
            .squeeze(1)
        )
        positives = self.group.bincount()
        negatives = self.tied[starts]
        earlier = starts.double()
        # Negatives that fall inside a run are not in `ahead` of it, but are of every later run.
        before_run = ahead[starts] + (negatives.cumsum(0) - negatives).double()
        alone = (positives == 1) & (negatives == 0)
        gained = ((earlier + 1) / (earlier + before_run + 1))[alone].sum().item()
        for run in (~alone).nonzero().squeeze(1).tolist():
            r, size = int(positives[run]), int(positives[run] + negatives[run])
            others = (r - 1) / max(1, size - 1)
            for low in range(0, size, 1 << 20):
                step = torch.arange(low, min(size, low + (1 << 20)), dtype=torch.float64)
                place = earlier[run] + before_run[run] + step + 1
                gained += ((earlier[run] + step * others + 1) / place).sum().item() * r / size
        return gained / len(self.scores)
