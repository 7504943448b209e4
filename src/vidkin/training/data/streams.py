"""Which items a step takes: streams of indices that depend on labels and seed alone."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from vidkin.datasets import LabelledSet
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling import BalancedBatchSampler, Quadlets, QuadletSampler
from vidkin.training.data.batch import Draw

__all__ = ["balanced_sizes", "check_drawable", "index_stream"]

_MOST_CATEGORIES = 8
_MOST_ITEMS = 4
_LISTED = 5


def index_stream(
    draw: Draw,
    labels: Tensor,
    *,
    steps: int,
    start: int = 0,
    quadlets: int = 32,
    sizes: tuple[int, ...] = (),
    seed: int = 0,
) -> Iterator[Tensor]:
    """Indices of the items of each step from ``start`` on, [N] int64.

    The stream is the same whether it is read at once or in pieces, which is what makes a resumed run continue exactly.

    Args:
        draw: ``quadlets``: (q, p, i, n) from the labels, [4 * quadlets], member by member. ``quadruplets_a``:
            (a, p, n1, n2), n1 an intermediate or a negative by a fair coin, n2 of a third subcategory;
            ``quadruplets_b``: n1 and n2 of two subcategories of other categories. ``batches``: P categories x S
            subcategories x K items. ``uniform``: any items, 4 * quadlets of them.
        labels: [N, 2] int64 (category, subcategory).
        steps: Of the whole run.
        start: Steps that are over.
        quadlets: Tuples a step.
        sizes: (P, S, K) of ``batches``; empty: :func:`balanced_sizes`.
        seed: Of the draws.

    Raises:
        InvalidArgumentError: The labels do not allow this draw.
    """
    if draw == "batches":
        return islice(_batches(labels, steps, quadlets, sizes, seed), start, None)
    if draw == "uniform":
        return islice(_uniform(len(labels), steps, 4 * quadlets, seed), start, None)
    sampler = QuadletSampler(labels, batch_size=quadlets, batches=steps, seed=seed, ineligible="skip")
    if draw == "quadlets":
        return islice((found.stacked().T.flatten() for found in sampler), start, None)
    return islice(_quadruplets(sampler, labels, seed, inside=draw == "quadruplets_a"), start, None)


def check_drawable(train: LabelledSet, draws: Sequence[Draw]) -> None:
    """Before any step, and by the names of the labels: can a draw that needs an order find one item to start from?

    Raises:
        InvalidArgumentError: None; the message says what the training items lack.
    """
    if all(draw == "uniform" for draw in draws):
        return
    counts = Counter(item.label for item in train.items)
    inside: defaultdict[str, list[str]] = defaultdict(list)
    for item in {item.label: item for item in train.items}.values():
        inside[item.category].append(item.label)
    if len(inside) < 2:
        raise InvalidArgumentError(
            f"all {len(train)} training items are of category {next(iter(inside))!r}; an order needs at least two "
            "categories (something else), or take the objective 'classification'"
        )
    if not any(len(labels) > 1 and max(counts[name] for name in labels) > 1 for labels in inside.values()):
        lacking = ", ".join(
            f"{category!r} has {len(labels)} {'subcategory' if len(labels) == 1 else 'subcategories'} with at most "
            f"{max(counts[name] for name in labels)} training item(s)"
            for category, labels in sorted(inside.items())[:_LISTED]
        )
        raise InvalidArgumentError(
            f"none of the {len(train)} training items has both another one of its subcategory and one of another "
            f"subcategory of its category, which an order starts from: {lacking}; add items, make data.test and "
            "data.validation smaller, or cut videos into excerpts (data.excerpts)"
        )


def balanced_sizes(labels: Tensor, items: int) -> tuple[int, int, int]:
    """(P, S, K) of batches of about ``items`` items: all categories up to 8, up to 4 items of a subcategory (no more
    than the smallest has, so that none stands twice in a batch), and as many subcategories as fit, at least 2.

    Raises:
        InvalidArgumentError: There are no two categories of two subcategories each.
    """
    classes, counts = torch.unique(labels, dim=0, return_counts=True)
    categories, subcategories = torch.unique(classes[:, 0], return_counts=True)
    if len(categories) < 2:
        raise InvalidArgumentError(
            "batches need at least 2 categories with 2 subcategories of 2 items each; the training items have "
            f"{len(categories)} such categories"
        )
    across = min(len(categories), _MOST_CATEGORIES)
    each = min(_MOST_ITEMS, int(counts.min()))
    inside = max(2, min(int(subcategories.min()), math.floor(items / (across * each))))
    return across, inside, each


def _batches(
    labels: Tensor, steps: int, quadlets: int, sizes: tuple[int, ...], seed: int
) -> Iterator[Tensor]:
    kept = _eligible(labels)
    chosen = sizes or balanced_sizes(labels[kept], 4 * quadlets)
    sampler = BalancedBatchSampler(labels[kept], sizes=chosen, batches=steps, seed=seed)
    return (kept[torch.tensor(batch)] for batch in sampler)


def _eligible(labels: Tensor) -> Tensor:
    """Items with a positive and an intermediate; the others could only be negatives, and take the place of more."""
    _, place, counts = torch.unique(labels, dim=0, return_inverse=True, return_counts=True)
    paired = counts[place] >= 2
    subcategories: dict[int, set[int]] = {}
    for category, subcategory in labels[paired].tolist():
        subcategories.setdefault(category, set()).add(subcategory)
    wide = [category for category, found in subcategories.items() if len(found) >= 2]
    inside: Tensor = paired & torch.isin(labels[:, 0], torch.tensor(wide, dtype=labels.dtype))
    return inside.nonzero().squeeze(1)


def _uniform(count: int, steps: int, items: int, seed: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        yield torch.randint(count, (items,), generator=generator)


def _quadruplets(sampler: QuadletSampler, labels: Tensor, seed: int, *, inside: bool) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    for found in sampler:
        yield _second_negatives(found, labels, generator, inside=inside)


def _second_negatives(found: Quadlets, labels: Tensor, generator: torch.Generator, *, inside: bool) -> Tensor:
    first = found.negative
    if inside:
        coin = torch.rand(len(found), generator=generator) < 0.5
        first = torch.where(coin, found.intermediate, found.negative)
    allowed = _differ(labels, first) & _differ(labels, found.query)
    if not inside:
        allowed &= labels[:, 0] != labels[found.query, 0].unsqueeze(1)
    if not bool(allowed.any(dim=1).all()):
        raise InvalidArgumentError(
            "quadruplets need negatives of two subcategories beside the query's; there are too few subcategories"
        )
    second: Tensor = torch.multinomial(allowed.float(), 1, generator=generator).squeeze(1)
    return torch.cat([found.query, found.positive, first, second])


def _differ(labels: Tensor, items: Tensor) -> Tensor:
    """[B, N]: is each item of another subcategory than these? A number counts inside its category."""
    differ: Tensor = (labels != labels[items].unsqueeze(1)).any(dim=2)
    return differ
