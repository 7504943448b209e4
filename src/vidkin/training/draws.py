"""Sample items for training steps: by labels, as online triplets, or by mining embeddings."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vidkin._base.arguments import check_arguments
from vidkin._base.registry import Registry, import_part, parse_name
from vidkin._base.values import check_at_least, check_share
from vidkin.datasets import LabelledSet
from vidkin.errors import InvalidArgumentError
from vidkin.features.whitening import read_safetensors
from vidkin.metric.losses import magnet_loss
from vidkin.metric.losses.base import squared_distances
from vidkin.metric.sampling import (
    BalancedBatchSampler,
    OnlineTripletSampler,
    Quadlets,
    QuadletSampler,
    sample_semi_hard_triplets,
)
from vidkin.training.batch import Draw

LABELS = "labels"

"""Relevance by labels: the number of label levels that two items share."""

_TENSOR = "relevance"

RelevanceOfImages = Callable[[str, NDArray[np.uint8], Tensor], Tensor]

"""Function of the full name, images [N, S, S, 3] and categories [N] that returns relevance [N, N], at least 0."""

_RELEVANCES: Registry[RelevanceOfImages] = Registry("relevance", {}, group="vidkin.relevances", researched=True)


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    """Settings of :class:`vidkin.metric.sampling.OnlineTripletSampler`.

    Attributes:
        buffer: Number of items to keep per category.
        margin: T_r, the minimum difference in relevance between positive and negative.
        in_class: Probability of sampling the negative from the query's category, in [0, 1].

    Raises:
        InvalidArgumentError: A value is out of range.
    """

    buffer: int = 64
    margin: float = 0.1
    in_class: float = 0.5

    def __post_init__(self) -> None:
        check_at_least(2, buffer=self.buffer)
        check_at_least(0, margin=self.margin)
        check_share(in_class=self.in_class)


def online_triplets(
    labels: Tensor,
    relevance: Tensor | None,
    *,
    steps: int,
    triplets: int,
    settings: OnlineSettings,
    seed: int = 0,
) -> Iterator[Tensor]:
    """Yield indices [3 * triplets] int64 for each step: all queries, then all positives, then all negatives.

    The stream repeatedly passes over all items in random order; each step adds as many items as it samples.

    Args:
        labels: [N, 2] int64 (category, subcategory); each category has a buffer.
        relevance: [N, N] floating point, at least 0; None: the number of label levels that two items share.
        steps: Number of steps in the run.
        triplets: Number of triplets per step.
        settings: Settings of the sampler.
        seed: Seed for the order and the sampling.

    Raises:
        InvalidArgumentError: No triplet can be sampled.
    """
    sampler = OnlineTripletSampler(
        labels[:, 0],
        labels if relevance is None else relevance,
        buffer_size=settings.buffer,
        threshold=settings.margin,
        in_class=settings.in_class,
        scale=_scale(labels, relevance),
        seed=seed,
    )
    generator = torch.Generator().manual_seed(seed)
    waiting: list[int] = []
    for _ in range(steps):
        for _ in range(3 * triplets):
            waiting = waiting or torch.randperm(len(labels), generator=generator).tolist()
            sampler.add(waiting.pop())
        sampled: list[tuple[int, int, int]] = []
        while len(sampled) < triplets:
            triplet = sampler.sample()
            if triplet is None:
                raise InvalidArgumentError(
                    f"no triplet of the {len(labels)} training items was accepted; lower schedule.relevance_margin "
                    f"(now {settings.margin}), or use at least two categories"
                )
            sampled.append(triplet)
        yield torch.tensor(sampled).T.flatten()


def read_relevance(name: str, images: Tensor | None, categories: Tensor) -> Tensor | None:
    """Read the relevance specified in a recipe: a matrix [N, N], or None for labels.

    Args:
        name: ``labels``, a name registered by another package (entry point group ``vidkin.relevances``, such as
            ``classical:<feature>``), or a safetensors file with ``relevance`` [N, N], at least 0.
        images: [N, S, S, 3] uint8 images, for relevance based on a feature.
        categories: [N] int64.

    Raises:
        UnknownExtractorError: There is no feature with this name.
        InvalidArgumentError: The file does not match the items, or a feature is requested but there are no images.
    """
    if name == LABELS:
        return None
    parsed = parse_name(name)
    by_images = _RELEVANCES.find(parsed.prefix, addressed=True) if parsed.address is not None else None
    if by_images is not None:
        if images is None or images.ndim != 4:
            raise InvalidArgumentError(
                f"data.relevance {name!r} requires images in memory; use an image dataset, a model trained on images, "
                "and a larger data.memory"
            )
        return by_images(name, images.numpy(), categories)
    if parsed.address is not None and not Path(name).expanduser().is_file():
        raise _RELEVANCES.unknown(name)
    tensors, _ = read_safetensors(Path(name).expanduser(), purpose=_TENSOR, framework="pt")
    matrix = tensors.get(_TENSOR)
    size = len(categories)
    if matrix is None or tuple(matrix.shape) != (size, size) or bool((matrix < 0).any()):
        given = "no tensor of this name" if matrix is None else str(list(matrix.shape))
        raise InvalidArgumentError(
            f"{name}: relevance must be [{size}, {size}] numbers of at least 0, with one row per training item, got "
            f"{given}"
        )
    return torch.as_tensor(matrix).float()


def _scale(labels: Tensor, relevance: Tensor | None) -> float:
    """Return the largest factor that keeps acceptance ratios at most 1: minimum total relevance / maximum relevance."""
    if relevance is None:
        _, position, sizes = torch.unique(labels[:, 0], return_inverse=True, return_counts=True)
        return max(1.0, int((sizes[position] - 1).clamp_min(1).min()) / labels.shape[1])
    same = labels[:, None, 0] == labels[None, :, 0]
    same.fill_diagonal_(False)
    inside = torch.where(same, relevance, torch.zeros_like(relevance))
    totals = inside.sum(dim=1)
    positive = totals[totals > 0]
    return max(1.0, float(positive.min() / inside.max())) if len(positive) else 1.0


_MAX_CATEGORIES = 8

_MAX_ITEMS = 4

_MAX_LISTED = 5


@check_arguments
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
    """Yield the indices [N] int64 of each step's items, from step ``start``.

    The stream does not depend on ``start``, so that a resumed run continues exactly.

    Args:
        draw: Sampling method. ``quadlets``: (q, p, i, n) by labels, [4 * quadlets], grouped by member.
            ``quadruplets_a``: (a, p, n1, n2), where n1 is an intermediate or a negative with equal probability, and n2
            has a third subcategory. ``quadruplets_b``: n1 and n2 have two subcategories of other categories.
            ``batches``: P categories x S subcategories x K items, or P classes x K items. ``online_triplets``:
            [3 * quadlets], see :func:`~vidkin.training.draws.online_triplets`. ``uniform``: any items, as many as the
            product of ``sizes``, or 4 * quadlets.
        labels: [N, 2] int64 (category, subcategory).
        steps: Total number of steps in the run.
        start: Number of steps already taken.
        quadlets: Number of tuples per step.
        sizes: (P, S, K) or (P, K) for ``batches``; empty for :func:`balanced_sizes`, or for :func:`class_sizes` if
            there is only one level of labels.
        seed: Seed for sampling.
        relevance: [N, N] for ``online_triplets``; None: by labels.
        online: Settings for ``online_triplets``; None for the defaults.

    Raises:
        InvalidArgumentError: The labels do not support this sampling method.
    """
    generator = torch.Generator().manual_seed(seed)
    if draw == "batches" and (len(sizes) == 2 or has_one_level(labels)):
        across_and_each = sizes or class_sizes(labels[:, 1], 4 * quadlets)
        # Exclude classes with a single item, which has no positive.
        _, position, counts = torch.unique(labels[:, 1], return_inverse=True, return_counts=True)
        usable, (across, each) = int((counts >= 2).sum()), across_and_each
        if across > usable:
            raise InvalidArgumentError(
                f"schedule.batch must have at most {usable} classes, the number of classes with 2 items, got {across}; "
                f"for a batch of the same size use --set schedule.batch='[{usable}, {max(2, across * each // usable)}]'"
                if usable > 1
                else f"schedule.batch requires at least 2 classes with 2 items, got {usable}; add items"
            )
        positions = (counts[position] >= 2).nonzero().squeeze(1)
        batches = BalancedBatchSampler(labels[positions, 1], sizes=across_and_each, batches=steps, seed=seed)
        return islice((positions[torch.tensor(batch)] for batch in batches), start, None)
    if draw == "batches":
        # Use only items with a positive and an intermediate; others would waste space in a batch.
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
        stream = online_triplets(labels, relevance, steps=steps, triplets=quadlets, settings=settings, seed=seed)
        return islice(stream, start, None)
    if draw == "uniform":
        size = (math.prod(sizes) if sizes else 4 * quadlets,)
        return islice((torch.randint(len(labels), size, generator=generator) for _ in range(steps)), start, None)
    sampler = QuadletSampler(labels, batch_size=quadlets, batches=steps, seed=seed, ineligible="skip")
    if draw == "quadlets":
        return islice((tuples.stacked().T.flatten() for tuples in sampler), start, None)
    inside = draw == "quadruplets_a"
    quadruplets = (_second_negatives(tuples, labels, generator, inside=inside) for tuples in sampler)
    return islice(quadruplets, start, None)


def has_one_level(labels: Tensor) -> bool:
    """Whether labels [N, 2] have a single level, that is, every category has one subcategory."""
    return len(torch.unique(labels, dim=0)) == len(torch.unique(labels[:, 0]))


def check_drawable(train: LabelledSet, draws: Sequence[Draw], *, sizes: Sequence[int] = (), copies: int = 1) -> None:
    """Check before the first step that the labels support the sampling methods.

    Args:
        train: Training items.
        draws: Sampling methods of the objectives.
        sizes: Batch sizes, as in :func:`index_stream`.
        copies: Number of items created from each item, such as excerpts of a video.

    Raises:
        InvalidArgumentError: No items can be sampled; the message says what the training items lack.
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
            f"training items must have at least 2 classes, at least one of them with 2 items, got {len(counts)} with "
            f"at most {max(counts.values())}; add items, or use only the objective 'classification'"
        )
    if all(draw in ("uniform", *of_classes) for draw in draws):
        return
    if train.has_one_level:
        raise InvalidArgumentError(
            "quadlets require labels with two levels, category and subcategory, but these have one; use an objective "
            "on batches, such as 'batch_hard' or 'semi_hard', or 'classification'"
        )
    inside: defaultdict[str, list[str]] = defaultdict(list)
    for item in {item.label: item for item in train.items}.values():
        inside[item.category].append(item.label)
    if len(inside) < 2:
        raise InvalidArgumentError(
            f"training items must have at least 2 categories, got {next(iter(inside))!r} for all {len(train)}; add "
            "items of others, or use the objective 'classification'"
        )
    if not any(len(labels) > 1 and max(counts[name] for name in labels) > 1 for labels in inside.values()):
        lacking = ", ".join(
            f"{category!r} has {len(labels)} {'subcategory' if len(labels) == 1 else 'subcategories'} with at most "
            f"{max(counts[name] for name in labels)} training item(s)"
            for category, labels in sorted(inside.items())[:_MAX_LISTED]
        )
        raise InvalidArgumentError(
            f"none of the {len(train)} training items has both a second item of its subcategory and an item of another "
            f"subcategory in its category: {lacking}; add items, reduce data.test and data.validation, or split "
            "videos into excerpts (data.excerpts)"
        )


def class_sizes(classes: Tensor, items: int) -> tuple[int, int]:
    """Choose (P, K) for batches of about ``items`` items: up to 8 classes with at least 2 items, and K at least 2.

    Args:
        classes: [N] class numbers.
        items: Target size of a batch.
    """
    _, counts = torch.unique(classes, return_counts=True)
    across = max(1, min(_MAX_CATEGORIES, int((counts >= 2).sum())))
    return across, max(2, items // across)


def balanced_sizes(labels: Tensor, items: int, *, repeat: bool = False) -> tuple[int, int, int]:
    """Choose (P, S, K) for batches of about ``items`` items: categories, subcategories per category, items per
    subcategory.

    P is at most 8 and K at most 4; S is as large as possible, but at least 2.

    Args:
        labels: [N, 2] int64 (category, subcategory).
        items: Target size of a batch, which is exceeded if necessary for P and S of 2.
        repeat: Limit K by the median size of the subcategories rather than the smallest; a batch may then contain an
            item of a small subcategory twice.

    Raises:
        InvalidArgumentError: There are no two categories with two subcategories of two items each.
    """
    classes, counts = torch.unique(labels, dim=0, return_counts=True)
    categories, subcategories = torch.unique(classes[:, 0], return_counts=True)
    typical = int(counts.median() if repeat else counts.min()) if len(counts) else 0
    smallest = int(subcategories.min()) if len(counts) else 0
    across, each = min(len(categories), _MAX_CATEGORIES), min(_MAX_ITEMS, typical)
    if across < 2 or smallest < 2 or each < 2:
        raise InvalidArgumentError(
            "batches require at least 2 categories with 2 subcategories of 2 items each, got "
            f"{len(categories)} categories with at least {smallest} subcategories of {typical} items"
        )
    return across, max(2, min(smallest, items // (across * each))), each


def _second_negatives(quadlets: Quadlets, labels: Tensor, generator: torch.Generator, *, inside: bool) -> Tensor:
    first = quadlets.negative
    if inside:
        coin = torch.rand(len(quadlets), generator=generator) < 0.5
        first = torch.where(coin, quadlets.intermediate, quadlets.negative)
    allowed = _differ(labels, first) & _differ(labels, quadlets.query)
    if not inside:
        allowed &= labels[:, 0] != labels[quadlets.query, 0].unsqueeze(1)
    if not bool(allowed.any(dim=1).all()):
        raise InvalidArgumentError(
            "quadruplets require negatives from two subcategories other than the query's; add subcategories"
        )
    second: Tensor = torch.multinomial(allowed.float(), 1, generator=generator).squeeze(1)
    return torch.cat([quadlets.query, quadlets.positive, first, second])


def _differ(labels: Tensor, items: Tensor) -> Tensor:
    """Compute a mask [B, N] bool: whether an item has a different subcategory; subcategory numbers are per category."""
    differ: Tensor = (labels != labels[items].unsqueeze(1)).any(dim=2)
    return differ


# Number of attempts with three random batches before giving up on finding a triplet.
_TRIES = 10

_CLUSTERS = 3

_CHUNK = 512

Embed = Callable[[Tensor], Tensor]

"""Function that maps indices [M] to unit vectors [M, D], without gradients."""


def draw_mined_triplets(classes: Tensor, embed: Embed, *, items: int, generator: torch.Generator) -> Tensor:
    """Sample triplets (a, p, n) from three random batches, as in algorithm 1 of the two-head classifier.

    Args:
        classes: [N] class numbers.
        embed: Function that embeds items with the current model.
        items: b, at least 3; at most b // 3 triplets are sampled.
        generator: Random generator.

    Returns:
        Indices [3 * T], grouped by member.

    Raises:
        InvalidArgumentError: No batch has two items of one class and one of another class.
    """
    for _ in range(_TRIES):
        triplets = sample_semi_hard_triplets(classes, embed, batch_size=items, seed=generator)
        if len(triplets):
            return torch.cat([triplets.query, triplets.positive, triplets.negative])
    raise InvalidArgumentError(
        f"none of {_TRIES} samples of {3 * items} items contained two items of one class and one of another; increase "
        "schedule.batch or schedule.quadlets"
    )


class ClusterDraws(nn.Module):
    """Batches for the magnet loss: a cluster with a high loss and the nearest clusters of other classes.

    Every class is split into up to 3 clusters with k-means, which is repeated every epoch. Because the state depends on
    earlier weights and must be checkpointed, this is a module with buffers.

    Args:
        classes: [N] class numbers.

    Source: Rippel et al., Metric learning with adaptive density discrimination, ICLR 2016, algorithm 1.
    """

    cluster_of: Tensor
    losses: Tensor
    centers: Tensor
    is_ready: Tensor

    def __init__(self, classes: Tensor, dimension: int) -> None:
        super().__init__()
        self._classes = classes
        self._count = int(classes.max()) + 1
        rows = self._count * _CLUSTERS
        self.register_buffer("cluster_of", torch.zeros(len(classes), dtype=torch.int64))
        self.register_buffer("losses", torch.zeros(rows))
        self.register_buffer("centers", torch.zeros(rows, dimension))
        self.register_buffer("is_ready", torch.tensor(False))

    def draw(
        self, embed: Embed, *, sizes: tuple[int, int], step: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Sample M clusters with D items each.

        Args:
            embed: Function that embeds items with the current model.
            sizes: (M, D). Items of clusters smaller than D are sampled more than once.
            step: Number of steps taken; the clusters are recomputed every N / (M D) steps.
            generator: Random generator.

        Returns:
            Indices [M * D] of the items, and the numbers of their clusters within the classes.
        """
        wide, each = sizes
        if not bool(self.is_ready) or step % max(1, len(self._classes) // (wide * each)) == 0:
            self.refresh(embed, seed=step)
        rows = self._classes * _CLUSTERS + self.cluster_of
        sizes_of = torch.bincount(rows, minlength=len(self.losses))
        usable = sizes_of >= 2
        weights = torch.where(usable, self.losses.clamp_min(1e-6), 0.0)
        seed = int(torch.multinomial(weights, 1, generator=generator))
        owner = torch.arange(len(self.losses)) // _CLUSTERS
        distances = squared_distances(self.centers[seed : seed + 1], self.centers)[0]
        impostors = usable & (owner != owner[seed])
        order = torch.where(impostors, distances, torch.inf).argsort()[: min(wide - 1, int(impostors.sum()))]
        indices = []
        for row in (seed, *order.tolist()):
            members = (rows == row).nonzero().squeeze(1)
            chosen = torch.randperm(len(members), generator=generator)[:each]
            if len(chosen) < each:
                more = torch.randint(len(members), (each - len(chosen),), generator=generator)
                chosen = torch.cat([chosen, more])
            indices.append(members[chosen])
        items = torch.cat(indices)
        return items, self.cluster_of[items]

    @torch.no_grad()
    def refresh(self, embed: Embed, *, seed: int) -> None:
        """Embed all items, cluster every class, and compute the mean loss of each cluster."""
        clustering = import_part("sklearn.cluster", extra="train")
        every = torch.arange(len(self._classes))
        vectors = torch.cat([embed(part) for part in torch.split(every, _CHUNK)]).float().cpu()
        for number in range(self._count):
            mine = (self._classes == number).nonzero().squeeze(1)
            # Aim for at least two items per cluster, because the loss has no effect within a cluster of one item.
            count = max(1, min(_CLUSTERS, len(mine) // 2))
            clusters = (
                clustering.KMeans(count, n_init=1, random_state=seed).fit_predict(vectors[mine].numpy())
                if len(mine) > count > 1
                else np.zeros(len(mine), dtype=np.int64)
            )
            self.cluster_of[mine] = torch.from_numpy(clusters).long()
        rows = self._classes * _CLUSTERS + self.cluster_of
        sizes = torch.bincount(rows, minlength=len(self.losses)).clamp_min(1).float()
        self.centers.zero_().index_add_(0, rows, vectors).div_(sizes[:, None])
        self.losses.zero_()
        for part in torch.split(every, _CHUNK):
            values = magnet_loss(
                vectors[part],
                self._classes[part],
                self.cluster_of[part],
                vectors,
                self._classes,
                self.cluster_of,
                reduction="none",
            )
            self.losses.index_add_(0, rows[part], values)
        self.losses.div_(sizes)
        self.is_ready.fill_(True)
