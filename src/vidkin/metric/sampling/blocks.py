"""Items sorted by (category, subcategory), so that each set of eligible items is one or two ranges of positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from vidkin._base.values import check_choice, check_not_negative
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling.tuples import check_labels, uniform_below

Uniform = Literal["queries", "tuples"]
Ineligible = Literal["raise", "skip"]


@dataclass(frozen=True, slots=True)
class LabelBlocks:
    """Bounds of the blocks of equal labels; positions refer to the sorted order.

    Attributes:
        order: [N] int64, the item at each position.
        labels: [N, 2] int64 in sorted order.
        category: [N, 2] int64, start and end (exclusive) of the category block at each position.
        subcategory: [N, 2] int64, start and end (exclusive) of the subcategory block at each position.
    """

    order: torch.Tensor
    labels: torch.Tensor
    category: torch.Tensor
    subcategory: torch.Tensor

    @classmethod
    def of(cls, labels: torch.Tensor) -> LabelBlocks:
        """Sort labels [N, 2]; items of the same subcategory keep their order."""
        table = check_labels(labels, 2)
        order = table[:, 1].sort(stable=True).indices
        order = order[table[order, 0].sort(stable=True).indices]
        table = table[order]
        return cls(order, table, _bounds(table[:, :1]), _bounds(table))

    def sample_queries(
        self,
        count: int,
        generator: torch.Generator,
        uniform: Uniform,
        ineligible: Ineligible,
        *,
        quadlets: bool,
    ) -> torch.Tensor:
        """Sample positions [count] of queries for which every part of a quadlet (or triplet) exists."""
        check_not_negative(count=count)
        check_choice("uniform", uniform, ("queries", "tuples"))
        check_choice("ineligible", ineligible, ("raise", "skip"))
        same, category = _sizes(self.subcategory), _sizes(self.category)
        outside = len(self.order) - (category if quadlets else same)
        ways = (same - 1) * outside * (category - same if quadlets else 1)
        if not bool((ways > 0).any()) or (ineligible == "raise" and bool((ways == 0).any())):
            raise InvalidArgumentError(self._explain_ineligible(quadlets, ineligible))
        if uniform == "queries":
            positions = (ways > 0).nonzero().squeeze(1)
            return positions[uniform_below(torch.full((count,), len(positions)), generator)]
        total = ways.double().cumsum(0)
        share = torch.rand(count, generator=generator, dtype=torch.float64) * total[-1]
        last = int((ways > 0).nonzero().max().item())
        return torch.searchsorted(total, share, right=True).clamp(max=last)

    def sample_positives(self, query: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Sample the position [B] of another item in each query's subcategory."""
        start, end = self.subcategory[query].unbind(1)
        position = start + uniform_below(end - start - 1, generator)
        return position + (position >= query)

    def sample_intermediates(self, query: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Sample the position [B] of an item in each query's category outside its subcategory."""
        start, end = self.category[query].unbind(1)
        inner_start, inner_end = self.subcategory[query].unbind(1)
        position = start + uniform_below((end - start) - (inner_end - inner_start), generator)
        return position + (inner_end - inner_start) * (position >= inner_start)

    def sample_outside(self, query: torch.Tensor, generator: torch.Generator, bounds: torch.Tensor) -> torch.Tensor:
        """Sample positions [B] outside the block of each query; ``bounds`` is `category` or `subcategory`."""
        start, end = bounds[query].unbind(1)
        position = uniform_below(len(self.order) - (end - start), generator)
        return position + (end - start) * (position >= start)

    def _explain_ineligible(self, quadlets: bool, ineligible: Ineligible) -> str:
        """Explain why not every item can be a query, naming the first class that fails."""
        what = "quadlets" if quadlets else "triplets"
        if len(self.order) == 0:
            return f"there are no items to sample {what} from"
        same, category = _sizes(self.subcategory), _sizes(self.category)
        outside = len(self.order) - (category if quadlets else same)
        if bool((outside == 0).all()):
            kind = f"category ({int(self.labels[0, 0])})" if quadlets else f"class ({int(self.labels[0, 1])})"
            return f"all items have the same {kind}: {what} need negatives, so pass items of at least two"
        advice = (
            "add items, or pass ineligible='skip' to exclude such items as queries"
            if ineligible == "raise"
            else "no item can be a query, so add items"
        )
        alone = (same == 1).nonzero().squeeze(1)
        if quadlets:
            lonely = (category == same).nonzero().squeeze(1)
            if len(lonely):
                name = int(self.labels[lonely[0], 0])
                return f"category {name} has one subcategory, so its items have no intermediate: {advice}"
            c, s = self.labels[alone[0]].tolist()
            return f"subcategory {s} of category {c} has one item, which has no positive: {advice}"
        c, s = self.labels[alone[0]].tolist()
        return f"class {s} has one item, which has no positive: {advice}"


def _bounds(table: torch.Tensor) -> torch.Tensor:
    """Return the start and end (exclusive) of the run of equal rows at each row of a sorted table, [N, 2]."""
    if len(table) == 0:
        return torch.zeros(0, 2, dtype=torch.int64)
    edge = torch.ones(1, dtype=torch.bool)
    opens = torch.cat([edge, (table[1:] != table[:-1]).any(dim=1)])
    starts = opens.nonzero().squeeze(1)
    ends = torch.cat([starts[1:], starts.new_full((1,), len(table))])
    run = opens.cumsum(0) - 1
    return torch.stack([starts[run], ends[run]], dim=1)


def _sizes(bounds: torch.Tensor) -> torch.Tensor:
    return bounds[:, 1] - bounds[:, 0]
