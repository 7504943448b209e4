"""Samplers of quadlets and triplets from labels, uniformly or by hardness under a given similarity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.values import check_at_least
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling.blocks import Ineligible, LabelBlocks, Uniform
from vidkin.metric.sampling.tuples import (
    Quadlets,
    Triplets,
    check_labels,
    epoch_generator,
    generator_of,
    uniform_below,
)

Similarity = torch.Tensor | Callable[[torch.Tensor], torch.Tensor]


@check_arguments
def sample_quadlets(
    labels: torch.Tensor,
    count: int,
    *,
    seed: int | torch.Generator,
    uniform: Uniform = "queries",
    ineligible: Ineligible = "raise",
) -> Quadlets:
    """Sample retrieval quadlets (Radial loss, ICIP) with replacement, independently of each other.

    Args:
        labels: [N, 2] integers, (category, subcategory). Subcategory numbers are compared only within a category.
        count: Number of quadlets, at least 0.
        seed: Seed or generator. A seed gives the same quadlets every time; a generator continues from its state.
        uniform: ``"queries"``: every eligible query is equally likely, then every p, i and n eligible for it.
            ``"tuples"``: every quadlet is equally likely, so that items of large categories are queries more
            often. Both are equivalent if all categories and all subcategories have the same size.
        ineligible: ``"raise"`` raises an error if a category has only one subcategory or a subcategory only one item;
            ``"skip"`` never samples such items as queries, but still as intermediates and negatives.

    Returns:
        Indices into ``labels``.

    Raises:
        InvalidArgumentError: The labels do not allow quadlets; the message names the first class that fails.
    """
    blocks = LabelBlocks.of(labels)
    generator = generator_of(seed)
    query = blocks.sample_queries(count, generator, uniform, ineligible, quadlets=True)
    positive = blocks.sample_positives(query, generator)
    intermediate = blocks.sample_intermediates(query, generator)
    negative = blocks.sample_outside(query, generator, blocks.category)
    return Quadlets(*(blocks.order[part] for part in (query, positive, intermediate, negative)))


@check_arguments
def sample_triplets(
    labels: torch.Tensor,
    count: int,
    *,
    seed: int | torch.Generator,
    uniform: Uniform = "queries",
    ineligible: Ineligible = "raise",
) -> Triplets:
    """Sample triplets: p from the query's class, n from any other class.

    Args:
        labels: [N] integers, or [N, 2] (category, subcategory): p is then from the query's subcategory, and n from
            any other subcategory, inside or outside the query's category.
        count: Number of triplets, at least 0.
        seed: Seed or generator, as in `sample_quadlets`.
        uniform: Sampling distribution, as in `sample_quadlets`.
        ineligible: ``"raise"`` raises an error if a class has only one item, ``"skip"`` never samples such items as
            queries.

    Raises:
        InvalidArgumentError: The labels do not allow triplets.
    """
    if labels.ndim == 1:
        labels = torch.stack([torch.zeros_like(labels), labels], dim=1)
    blocks = LabelBlocks.of(labels)
    generator = generator_of(seed)
    query = blocks.sample_queries(count, generator, uniform, ineligible, quadlets=False)
    positive = blocks.sample_positives(query, generator)
    negative = blocks.sample_outside(query, generator, blocks.subcategory)
    return Triplets(*(blocks.order[part] for part in (query, positive, negative)))


@check_arguments
def sample_hard_quadlets(
    labels: torch.Tensor,
    similarity: Similarity,
    count: int,
    *,
    seed: int | torch.Generator,
    hardest: int = 1,
    uniform: Uniform = "queries",
    ineligible: Ineligible = "raise",
) -> Quadlets:
    """Sample quadlets that are hard under a given similarity.

    The query is sampled as in `sample_quadlets`; then p uniformly from its ``hardest`` least similar positives,
    i from its ``hardest`` most similar intermediates, and n from its ``hardest`` most similar negatives
    (from all if there are fewer; ties in item order).

    Args:
        labels: [N, 2] integers, (category, subcategory).
        similarity: [N, N] floating point, higher is more similar; or a callable that returns the rows [B, N]
            for query indices [B], so that the full matrix is not needed.
        count: Number of quadlets.
        seed: Seed or generator, as in `sample_quadlets`.
        hardest: Number of hardest items to sample from; 1 uses only the hardest. Use more if labels have errors.
        uniform: Sampling distribution, as in `sample_quadlets`.
        ineligible: Treatment of items that cannot be queries, as in `sample_quadlets`.

    Raises:
        InvalidArgumentError: The labels do not allow quadlets, or the similarity has the wrong shape.
    """
    check_at_least(1, hardest=hardest)
    blocks = LabelBlocks.of(labels)
    table = check_labels(labels, 2)
    generator = generator_of(seed)
    query = blocks.order[blocks.sample_queries(count, generator, uniform, ineligible, quadlets=True)]
    parts: list[list[torch.Tensor]] = [[], [], []]
    # Process the rows of the similarity in blocks, because [count, N] can be far larger than the result.
    step = max(1, (1 << 22) // max(1, len(table)))
    for low in range(0, count, step):
        piece = query[low : low + step]
        items = len(table)
        rows = similarity[piece.to(similarity.device)] if isinstance(similarity, torch.Tensor) else similarity(piece)
        if rows.shape != (len(piece), items) or not rows.is_floating_point():
            raise InvalidArgumentError(
                f"similarity must return [{len(piece)}, {items}] floating point, one row per query, "
                f"got {list(rows.shape)} {rows.dtype}"
            )
        rows = rows.detach().cpu()
        if bool(rows.isnan().any()):
            raise InvalidArgumentError("similarity must not return NaN, which is neither hard nor easy")
        same_category = table[piece, None, 0] == table[None, :, 0]
        same = same_category & (table[piece, None, 1] == table[None, :, 1])
        itself = torch.arange(len(table))[None, :] == piece[:, None]
        kinds = (same & ~itself, same_category & ~same, ~same_category)
        for part, kind, sign in zip(parts, kinds, (-1, 1, 1), strict=True):
            # Sample one column per row among the hardest columns where ``kind`` is True (there is at least one).
            order = (sign * rows).sort(dim=1, descending=True, stable=True).indices
            inside = kind.gather(1, order)
            pick = uniform_below(inside.sum(dim=1).clamp(max=hardest), generator)
            # The pick-th True of a row is where the running count of Trues first exceeds pick.
            position = (inside.cumsum(dim=1) > pick.unsqueeze(1)).to(torch.uint8).argmax(dim=1)
            part.append(order.gather(1, position.unsqueeze(1)).squeeze(1))
    positive, intermediate, negative = (torch.cat(part) if part else query for part in parts)
    return Quadlets(query, positive, intermediate, negative)


@check_constructor
class QuadletSampler:
    """Batches of quadlets, epoch by epoch: an iterable for a training loop or a ``DataLoader``.

    Batches are deterministic for a given (seed, epoch, rank): epochs differ, but are the same in every run.

    Args:
        labels: [N, 2] integers, (category, subcategory).
        batch_size: Number of quadlets per batch in this process.
        batches: Number of batches per epoch.
        seed: Integer seed.
        similarity: Similarity for sampling hard quadlets, see `sample_hard_quadlets`; default: uniform quadlets.
        hardest: See `sample_hard_quadlets`.
        uniform: See `sample_quadlets`.
        ineligible: See `sample_quadlets`.
        rank: Rank of this process; every process samples its own quadlets.

    Example:
        >>> import torch
        >>> labels = torch.tensor([[0, 0], [0, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 1], [1, 1]])
        >>> [len(batch) for batch in QuadletSampler(labels, batch_size=3, batches=2, seed=0)]
        [3, 3]
    """

    def __init__(
        self,
        labels: torch.Tensor,
        *,
        batch_size: int,
        batches: int,
        seed: int = 0,
        similarity: Similarity | None = None,
        hardest: int = 1,
        uniform: Uniform = "queries",
        ineligible: Ineligible = "raise",
        rank: int = 0,
    ) -> None:
        check_at_least(1, batch_size=batch_size, batches=batches)
        self.labels = labels
        self.batch_size = batch_size
        self.batches = batches
        self.seed = seed
        self.similarity = similarity
        self.hardest = hardest
        self.uniform: Uniform = uniform
        self.ineligible: Ineligible = ineligible
        self.rank = rank
        self.epoch = 0
        # Reject labels without quadlets now rather than in the middle of a run.
        sample_quadlets(labels, 1, seed=0, uniform=uniform, ineligible=ineligible)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch for the next iteration."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[Quadlets]:
        generator = epoch_generator(self.seed, self.epoch, self.rank)
        draw = (
            sample_quadlets
            if self.similarity is None
            else partial(sample_hard_quadlets, similarity=self.similarity, hardest=self.hardest)
        )
        for _ in range(self.batches):
            yield draw(
                self.labels,
                count=self.batch_size,
                seed=generator,
                uniform=self.uniform,
                ineligible=self.ineligible,
            )
