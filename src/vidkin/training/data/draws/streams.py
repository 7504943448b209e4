"""Streams of item indices for each step, which depend only on labels and seed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from vidkin.datasets import LabelledSet
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling import BalancedBatchSampler, Quadlets, QuadletSampler
from vidkin.training.data.batch import Draw
from vidkin.training.data.draws.online import OnlineSettings, online_triplets

__all__ = ["balanced_sizes", "check_drawable", "class_sizes", "has_one_level", "index_stream"]

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
    relevance: Tensor | None = None,
    online: OnlineSettings | None = None,
) -> Iterator[Tensor]:
    """Yield indices [N] int64 of the items of each step from ``start`` on.

    The stream is the same whether read at once or in pieces, so that a resumed run continues exactly.

    Args:
        draw: ``quadlets``: (q, p, i, n) from the labels, [4 * quadlets], member by member. ``quadruplets_a``:
            (a, p, n1, n2), n1 an intermediate or a negative at even odds, n2 of a third subcategory;
            ``quadruplets_b``: n1 and n2 of two subcategories of other categories. ``batches``: P categories x S
            subcategories x K items, or P classes x K items. ``online_triplets``: [3 * quadlets],
            :func:`~vidkin.training.data.draws.online.online_triplets`. ``uniform``: any items, 4 * quadlets of them.
        labels: [N, 2] int64 (category, subcategory).
        steps: Number of steps of the whole run.
        start: Number of steps already taken.
        quadlets: Tuples per step.
        sizes: (P, S, K) or (P, K) for ``batches``; empty: :func:`balanced_sizes`, or :func:`class_sizes` with one
            level of labels.
        seed: Seed of the draws.
        relevance: [N, N] for ``online_triplets``; None: by labels.
        online: Settings for ``online_triplets``; None: the defaults.

    Raises:
        InvalidArgumentError: The labels do not support this draw.
    """
    generator = torch.Generator().manual_seed(seed)
    if draw == "batches" and (len(sizes) == 2 or has_one_level(labels)):
        across_and_each = sizes or class_sizes(labels[:, 1], 4 * quadlets)
        # A class with one item has no positive and is left out.
        _, position, counts = torch.unique(labels[:, 1], return_inverse=True, return_counts=True)
        if across_and_each[0] > int((counts >= 2).sum()):
            raise InvalidArgumentError(
                f"schedule.batch must have at most as many classes as have 2 items, {int((counts >= 2).sum())}, got "
                f"{across_and_each[0]}"
            )
        positions = (counts[position] >= 2).nonzero().squeeze(1)
        batches = BalancedBatchSampler(labels[positions, 1], sizes=across_and_each, batches=steps, seed=seed)
        return islice((positions[torch.tensor(batch)] for batch in batches), start, None)
    if draw == "batches":
        # Places of items with a positive and an intermediate; other items would only take up space in a batch.
        _, position, counts = torch.unique(labels, dim=0, return_inverse=True, return_counts=True)
        paired = counts[position] >= 2
        subcategories: dict[int, set[int]] = {}
        for category, subcategory in labels[paired].tolist():
            subcategories.setdefault(category, set()).add(subcategory)
        wide = [category for category, inside in subcategories.items() if len(inside) >= 2]
        eligible: Tensor = paired & torch.isin(labels[:, 0], torch.tensor(wide, dtype=labels.dtype))
        positions = eligible.nonzero().squeeze(1)
        chosen = sizes or balanced_sizes(labels[positions], 4 * quadlets)
        batches = BalancedBatchSampler(labels[positions], sizes=chosen, batches=steps, seed=seed)
        return islice((positions[torch.tensor(batch)] for batch in batches), start, None)
    if draw == "online_triplets":
        settings = online or OnlineSettings()
        stream = online_triplets(
            labels, relevance, steps=steps, triplets=quadlets, settings=settings, seed=seed
        )
        return islice(stream, start, None)
    if draw == "uniform":
        size = (4 * quadlets,)
        return islice(
            (torch.randint(len(labels), size, generator=generator) for _ in range(steps)), start, None
        )
    sampler = QuadletSampler(labels, batch_size=quadlets, batches=steps, seed=seed, ineligible="skip")
    if draw == "quadlets":
        return islice((tuples.stacked().T.flatten() for tuples in sampler), start, None)
    inside = draw == "quadruplets_a"
    quadruplets = (_second_negatives(tuples, labels, generator, inside=inside) for tuples in sampler)
    return islice(quadruplets, start, None)


def has_one_level(labels: Tensor) -> bool:
    """Whether labels [N, 2] have one level: every category has one subcategory."""
    return len(torch.unique(labels, dim=0)) == len(torch.unique(labels[:, 0]))


def check_drawable(
    train: LabelledSet, draws: Sequence[Draw], *, sizes: Sequence[int] = (), copies: int = 1
) -> None:
    """Raise an error that names the labels before any step, if no item can start a draw that needs an order.

    Args:
        train: Training items.
        draws: Draws of the objectives.
        sizes: Sizes of batches, as in :func:`index_stream`.
        copies: Number of items that each item becomes, such as excerpts of a video.

    Raises:
        InvalidArgumentError: No item can; the message says what the training items lack.
    """
    counts = Counter({
        label: copies * count for label, count in Counter(item.label for item in train.items).items()
    })  # fmt: skip
    of_classes = {
        "mined",
        "clusters",
        "online_triplets",
        *(("batches",) if len(sizes) == 2 or train.has_one_level else ()),
    }
    if of_classes.intersection(draws) and (len(counts) < 2 or max(counts.values()) < 2):
        raise InvalidArgumentError(
            f"training items must have at least 2 classes, one of them with 2 items, got {len(counts)} with at most "
            f"{max(counts.values())}; add items, or use the objective 'classification' alone"
        )
    if all(draw in ("uniform", *of_classes) for draw in draws):
        return
    if train.has_one_level:
        raise InvalidArgumentError(
            "quadlets need labels of two levels, category and subcategory, and these have one; use objectives on "
            "batches such as 'batch_hard' or 'semi_hard', or 'classification'"
        )
    inside: defaultdict[str, list[str]] = defaultdict(list)
    for item in {item.label: item for item in train.items}.values():
        inside[item.category].append(item.label)
    if len(inside) < 2:
        raise InvalidArgumentError(
            f"training items must have at least 2 categories, got {next(iter(inside))!r} for all {len(train)}; add "
            "others, or use the objective 'classification'"
        )
    if not any(len(labels) > 1 and max(counts[name] for name in labels) > 1 for labels in inside.values()):
        lacking = ", ".join(
            f"{category!r} has {len(labels)} {'subcategory' if len(labels) == 1 else 'subcategories'} with at most "
            f"{max(counts[name] for name in labels)} training item(s)"
            for category, labels in sorted(inside.items())[:_LISTED]
        )
        raise InvalidArgumentError(
            f"none of the {len(train)} training items has both a second item of its subcategory and one of another "
            f"subcategory of its category: {lacking}; add items, make data.test and data.validation smaller, or cut "
            "videos into excerpts (data.excerpts)"
        )


def class_sizes(classes: Tensor, items: int) -> tuple[int, int]:
    """(P, K) for batches of about ``items`` items of classes [N]: up to 8 classes that have two items, K at least 2."""
    _, counts = torch.unique(classes, return_counts=True)
    across = max(1, min(_MOST_CATEGORIES, int((counts >= 2).sum())))
    return across, max(2, items // across)


def balanced_sizes(labels: Tensor, items: int, *, repeat: bool = False) -> tuple[int, int, int]:
    """(P, S, K): categories, subcategories per category and items per subcategory for batches of about ``items``
    items.

    Up to 8 categories, up to 4 items of a subcategory, and as many subcategories as fit, at least 2.

    Args:
        labels: [N, 2] int64 (category, subcategory).
        items: Size of a batch; the minimum of two subcategories in each of two categories can exceed it.
        repeat: Limit K by the median subcategory rather than the smallest, so that items of small ones can be in a
            batch twice.

    Raises:
        InvalidArgumentError: There are no two categories of two subcategories of two items each.
    """
    classes, counts = torch.unique(labels, dim=0, return_counts=True)
    categories, subcategories = torch.unique(classes[:, 0], return_counts=True)
    typical = int(counts.median() if repeat else counts.min()) if len(counts) else 0
    fewest = int(subcategories.min()) if len(counts) else 0
    across, each = min(len(categories), _MOST_CATEGORIES), min(_MOST_ITEMS, typical)
    if across < 2 or fewest < 2 or each < 2:
        raise InvalidArgumentError(
            "batches need at least 2 categories of 2 subcategories of 2 items each, got "
            f"{len(categories)} categories of at least {fewest} subcategories of {typical} items"
        )
    return across, max(2, min(fewest, items // (across * each))), each


def _second_negatives(
    quadlets: Quadlets, labels: Tensor, generator: torch.Generator, *, inside: bool
) -> Tensor:
    first = quadlets.negative
    if inside:
        coin = torch.rand(len(quadlets), generator=generator) < 0.5
        first = torch.where(coin, quadlets.intermediate, quadlets.negative)
    allowed = _differ(labels, first) & _differ(labels, quadlets.query)
    if not inside:
        allowed &= labels[:, 0] != labels[quadlets.query, 0].unsqueeze(1)
    if not bool(allowed.any(dim=1).all()):
        raise InvalidArgumentError(
            "quadruplets need negatives of two subcategories other than the query's; add subcategories"
        )
    second: Tensor = torch.multinomial(allowed.float(), 1, generator=generator).squeeze(1)
    return torch.cat([quadlets.query, quadlets.positive, first, second])


def _differ(labels: Tensor, items: Tensor) -> Tensor:
    """[B, N] bool, whether each item has another subcategory; equal numbers in two categories differ."""
    differ: Tensor = (labels != labels[items].unsqueeze(1)).any(dim=2)
    return differ
