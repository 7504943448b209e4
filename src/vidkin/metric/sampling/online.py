"""Sample triplets from a stream of items kept in small weighted buffers (deep ranking, CVPR 2014, supplement)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator

import torch

from vidkin._base.arguments import check_constructor
from vidkin._base.values import check_at_least, check_not_negative, check_positive
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling.tuples import generator_of

PairRelevance = torch.Tensor | Callable[[int, int], float]
Triplet = tuple[int, int, int]


@check_constructor
class OnlineTripletSampler:
    """Online triplet sampling (deep ranking, algorithm 1 of the supplement).

    Items arrive one by one. Each category keeps a buffer of fixed size as a weighted reservoir: item j gets the
    key u^(1/r_j), u uniform in (0, 1), and a full buffer keeps the largest keys (Efraimidis and Spirakis,
    2006), so that relevant items are kept with higher probability. A trial for a triplet (i, i+, i-) samples:

    * i uniformly from the buffer of a category, and i+ from the other items in that buffer, accepted with probability
      min(1, r_{i,i+} / r_{i+});
    * with probability ``in_class``, i- from the same buffer, accepted with probability
      min(1, r_{i,i-} / r_{i-}); otherwise, uniformly from all other buffers.

    The triplet is accepted if r_{i,i+} - r_{i,i-} >= ``threshold``.

    r_j, the *total relevance* of j, is the sum of r_{j,k} over the other items k of its category.

    Args:
        categories: [N] integers, the category of each item in the stream.
        relevance: r_{i,j}, 0 or more. One of: integer labels [N] or [N, L] (coarsest level first), for which r is the
            number of shared leading levels; a floating-point matrix [N, N]; a callable (i, j) -> float.
        total_relevance: [N] floating point, r_j; by default computed from labels or matrix. Required with a callable.
        buffer_size: Number of items to keep per category, at least 2.
        threshold: T_r, 0 or more; with integer labels, 1 requires one more shared level.
        in_class: Probability that a trial samples the negative from the query's own category, in [0, 1]. The paper
            does not state it; the default is our choice.
        tries: Number of trials before giving up.
        scale: Factor applied to both acceptance ratios, which otherwise fall to about 1 / size of the category. Any
            scale that keeps them at 1 or less samples from the same distribution with fewer trials.
        seed: Seed or generator; the same seed and stream give the same triplets.

    Raises:
        InvalidArgumentError: Sizes do not match, or a value is out of range.
    """

    def __init__(
        self,
        categories: torch.Tensor,
        relevance: PairRelevance,
        *,
        total_relevance: torch.Tensor | None = None,
        buffer_size: int = 64,
        threshold: float = 1.0,
        in_class: float = 0.5,
        tries: int = 1000,
        scale: float = 1.0,
        seed: int | torch.Generator = 0,
    ) -> None:
        if categories.ndim != 1 or categories.is_floating_point():
            raise InvalidArgumentError(
                f"categories must be [N] integers, got {list(categories.shape)} {categories.dtype}"
            )
        check_at_least(2, buffer_size=buffer_size)
        check_at_least(1, tries=tries)
        check_not_negative(threshold=threshold)
        check_positive(scale=scale)
        if not 0 <= in_class <= 1:
            raise InvalidArgumentError(f"in_class must be in [0, 1], got {in_class}")
        self._categories: list[int] = categories.tolist()
        self._relevance = _pairwise(relevance, len(categories))
        self._total = _totals(categories, relevance, total_relevance)
        self._buffer_size = buffer_size
        self._threshold = threshold
        self._in_class = in_class
        self._tries = tries
        self._scale = scale
        self._generator = generator_of(seed)
        # One heap of (log key, item) per category, which pops the smallest key first.
        self._buffers: dict[int, list[tuple[float, int]]] = {}

    def add(self, item: int) -> None:
        """Add the next item of the stream; an item already in its buffer keeps the larger of its two keys.

        Raises:
            InvalidArgumentError: The item does not exist.
        """
        if not 0 <= item < len(self._categories):
            raise InvalidArgumentError(f"item must be from 0 to {len(self._categories) - 1}, got {item}")
        buffer = self._buffers.setdefault(self._categories[item], [])
        weight = self._total[item]
        # The logarithm log(u) / r preserves the order of keys u^(1/r) that would all round to 0 or 1.
        key = math.log1p(-self._uniform()) / weight if weight > 0 else -math.inf
        for position, (old, other) in enumerate(buffer):
            if other == item:
                buffer[position] = (max(old, key), item)
                heapq.heapify(buffer)
                return
        if len(buffer) < self._buffer_size:
            heapq.heappush(buffer, (key, item))
        elif key > buffer[0][0]:
            heapq.heapreplace(buffer, (key, item))

    def buffer(self, category: int) -> list[int]:
        """Return the items in the buffer of a category, in increasing order."""
        return sorted(item for _, item in self._buffers.get(category, []))

    def sample(self, category: int | None = None) -> Triplet | None:
        """Try to sample one triplet (query, positive, negative).

        Args:
            category: Category of the query; default: uniform over the categories with at least two items.

        Returns:
            Three item numbers, or None if no trial was accepted.
        """
        eligible = [name for name, buffer in sorted(self._buffers.items()) if len(buffer) >= 2]
        if category is not None:
            eligible = [name for name in eligible if name == category]
        if not eligible:
            return None
        for _ in range(self._tries):
            triplet = self._try(eligible[self._random_below(len(eligible))])
            if triplet is not None:
                return triplet
        return None

    def stream(self, items: Iterable[int]) -> Iterator[Triplet]:
        """Run the algorithm as published: add each item, then try to sample one triplet from its category."""
        for item in items:
            self.add(item)
            triplet = self.sample(self._categories[item])
            if triplet is not None:
                yield triplet

    def _try(self, category: int) -> Triplet | None:
        buffer = self._buffers[category]
        query = buffer[self._random_below(len(buffer))][1]
        positive = buffer[self._random_below(len(buffer))][1]
        if positive == query or not self._accepts(query, positive):
            return None
        if self._uniform() < self._in_class:
            negative = buffer[self._random_below(len(buffer))][1]
            if negative in (query, positive) or not self._accepts(query, negative):
                return None
        else:
            others = [self._buffers[name] for name in sorted(self._buffers) if name != category]
            size = sum(map(len, others))
            if size == 0:
                return None
            number = self._random_below(size)
            for other in others:
                if number < len(other):
                    break
                number -= len(other)
            negative = other[number][1]
        margin = self._relevance(query, positive) - self._relevance(query, negative)
        return (query, positive, negative) if margin >= self._threshold else None

    def _accepts(self, query: int, other: int) -> bool:
        total = self._total[other]
        return total > 0 and self._uniform() < self._scale * self._relevance(query, other) / total

    def _uniform(self) -> float:
        return float(torch.rand((), generator=self._generator, dtype=torch.float64).item())

    def _random_below(self, limit: int) -> int:
        return int(torch.randint(limit, (), generator=self._generator).item())


def _is_labels(relevance: torch.Tensor) -> bool:
    return not relevance.is_floating_point()


def _pairwise(relevance: PairRelevance, items: int) -> Callable[[int, int], float]:
    if not isinstance(relevance, torch.Tensor):
        return relevance
    if len(relevance) != items or (not _is_labels(relevance) and relevance.shape != (items, items)):
        raise InvalidArgumentError(
            f"relevance must be integer labels [{items}] or [{items}, L], a floating point matrix "
            f"[{items}, {items}] or a callable, got {list(relevance.shape)} {relevance.dtype}"
        )
    if _is_labels(relevance):
        table = relevance.reshape(items, -1).tolist()

        def count_shared(one: int, other: int) -> float:
            level = 0
            for a, b in zip(table[one], table[other], strict=True):
                if a != b:
                    break
                level += 1
            return float(level)

        return count_shared
    if bool((relevance < 0).any()) or bool(relevance.isnan().any()):
        raise InvalidArgumentError("relevance must be at least 0 and not NaN")
    matrix = relevance
    return lambda one, other: float(matrix[one, other].item())


def _totals(categories: torch.Tensor, relevance: PairRelevance, total_relevance: torch.Tensor | None) -> list[float]:
    if total_relevance is not None:
        if total_relevance.shape != categories.shape or bool((total_relevance < 0).any()):
            raise InvalidArgumentError(
                f"total_relevance must be [{len(categories)}] numbers of at least 0, got {list(total_relevance.shape)}"
            )
        return [float(value) for value in total_relevance.tolist()]
    if not isinstance(relevance, torch.Tensor):
        raise InvalidArgumentError(
            "total_relevance [N] must be given if relevance is a callable, which cannot be summed in advance"
        )
    total = torch.zeros(len(categories), dtype=torch.float64)
    if _is_labels(relevance):
        table = relevance.reshape(len(categories), -1)
        for level in range(1, table.shape[1] + 1):
            # Two items of a category gain one unit of relevance for each leading label that they share.
            keys = torch.cat([categories.unsqueeze(1), table[:, :level]], dim=1)
            _, run = torch.unique(keys, dim=0, return_inverse=True)
            total += run.bincount()[run] - 1
    else:
        for item in range(len(categories)):
            same = categories == categories[item]
            same[item] = False
            total[item] = relevance[item, same].double().sum()
    return [float(value) for value in total.tolist()]
