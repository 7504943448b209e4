"""Draws of items for training steps: by labels, by online triplets, or mined by their embeddings."""

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

"""Relevance by labels: the number of levels two items share."""

_TENSOR = "relevance"

RelevanceOfImages = Callable[[str, NDArray[np.uint8], Tensor], Tensor]

"""Function from the full name, images [N, S, S, 3] and categories [N] to relevance [N, N], 0 or more."""

_RELEVANCES: Registry[RelevanceOfImages] = Registry("relevance", {}, group="vidkin.relevances", researched=True)


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    """Settings of :class:`vidkin.metric.sampling.OnlineTripletSampler`.

    Attributes:
        buffer: Number of items kept per category.
        margin: T_r, the minimum difference in relevance between positive and negative.
        in_class: Share of the tries that draw the negative from the query's own category, in [0, 1].

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
    """Yield rows [3 * triplets] int64 for each step: all queries, then all positives, then all negatives.

    The stream passes over all items in random order, repeatedly; each step adds as many items as it draws.

    Args:
        labels: [N, 2] int64 (category, subcategory); each category has a buffer.
        relevance: [N, N] floating point, at least 0; None: the number of levels that two items share.
        steps: Number of steps of the run.
        triplets: Number of triplets per step.
        settings: Settings of the sampler.
        seed: Seed of the order and the draws.

    Raises:
        InvalidArgumentError: No triplet can be drawn.
    """
    given = labels if relevance is None else relevance
    sampler = OnlineTripletSampler(
        labels[:, 0],
        given,
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
        drawn: list[tuple[int, int, int]] = []
        while len(drawn) < triplets:
            triplet = sampler.sample()
            if triplet is None:
                raise InvalidArgumentError(
                    f"no triplet of the {len(labels)} training items was accepted; lower schedule.relevance_margin "
                    f"(now {settings.margin}), or use at least two categories"
                )
            drawn.append(triplet)
        yield torch.tensor(drawn).T.flatten()


def read_relevance(name: str, images: Tensor | None, categories: Tensor) -> Tensor | None:
    """Read the relevance named in a recipe: a matrix [N, N], or None for labels.

    Args:
        name: ``labels``, a name provided by an installed package (entry point group ``vidkin.relevances``, such as
            ``classical:<feature>``), or a safetensors file with ``relevance`` [N, N], 0 or more.
        images: [N, S, S, 3] uint8 images, for relevance by a feature.
        categories: [N] int64.

    Raises:
        UnknownExtractorError: No feature has this name.
        InvalidArgumentError: The file does not match the items, or a feature is requested but there are no images.
    """
    if name == LABELS:
        return None
    parsed = parse_name(name)
    by_images = _RELEVANCES.find(parsed.prefix, addressed=True) if parsed.address is not None else None
    if by_images is not None:
        if images is None or images.ndim != 4:
            raise InvalidArgumentError(
                f"data.relevance {name!r} needs images that are kept in memory; use image data, a model that trains on "
                "images, and a larger data.memory"
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
            f"{name}: relevance must be [{size}, {size}] numbers of at least 0, one row for each training item, got "
            f"{given}"
        )
    return torch.as_tensor(matrix).float()


def _scale(labels: Tensor, relevance: Tensor | None) -> float:
    """The largest factor that keeps acceptance ratios at most 1: smallest total relevance / largest relevance."""
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
    """Yield indices [N] int64 of the items of each step from ``start`` on.

    The stream does not depend on where it starts, so that a resumed run continues exactly.

    Args:
        draw: ``quadlets``: (q, p, i, n) by labels, [4 * quadlets], ordered by member. ``quadruplets_a``:
            (a, p, n1, n2), n1 an intermediate or a negative with equal probability, n2 of a third subcategory;
            ``quadruplets_b``: n1 and n2 of two subcategories of other categories. ``batches``: P categories x S
            subcategories x K items, or P classes x K items. ``online_triplets``: [3 * quadlets],
            :func:`~vidkin.training.draws.online_triplets`. ``uniform``: any items, the product of ``sizes`` in number,
            or 4 * quadlets.
        labels: [N, 2] int64 (category, subcategory).
        steps: Number of steps of the whole run.
        start: Number of steps already taken.
        quadlets: Number of tuples per step.
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
        usable, (across, each) = int((counts >= 2).sum()), across_and_each
        if across > usable:
            raise InvalidArgumentError(
                f"schedule.batch must have at most {usable} classes, the number of classes with 2 items, got {across}; "
                f"for a batch of the same size use --set schedule.batch='[{usable}, {max(2, across * each // usable)}]'"
                if usable > 1
                else f"schedule.batch needs at least 2 classes with 2 items, got {usable}; add items"
            )
        positions = (counts[position] >= 2).nonzero().squeeze(1)
        batches = BalancedBatchSampler(labels[positions, 1], sizes=across_and_each, batches=steps, seed=seed)
        return islice((positions[torch.tensor(batch)] for batch in batches), start, None)
    if draw == "batches":
        # Only items with a positive and an intermediate; other items would waste space in a batch.
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
    """Whether labels [N, 2] have one level, that is, every category has one subcategory."""
    return len(torch.unique(labels, dim=0)) == len(torch.unique(labels[:, 0]))


def check_drawable(train: LabelledSet, draws: Sequence[Draw], *, sizes: Sequence[int] = (), copies: int = 1) -> None:
    """Check before the first step that the labels support the draws.

    Args:
        train: Training items.
        draws: Draws of the objectives.
        sizes: Batch sizes, as in :func:`index_stream`.
        copies: Number of items that each item becomes, such as excerpts of a video.

    Raises:
        InvalidArgumentError: No item can be drawn; the message says what the training items lack.
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
            f"{max(counts.values())}; add items, or use only the objective 'classification'"
        )
    if all(draw in ("uniform", *of_classes) for draw in draws):
        return
    if train.has_one_level:
        raise InvalidArgumentError(
            "quadlets need labels of two levels, category and subcategory, but these have one; use objectives on "
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
            for category, labels in sorted(inside.items())[:_MAX_LISTED]
        )
        raise InvalidArgumentError(
            f"none of the {len(train)} training items has both a second item of its subcategory and an item of another "
            f"subcategory of its category: {lacking}; add items, make data.test and data.validation smaller, or cut "
            "videos into excerpts (data.excerpts)"
        )


def class_sizes(classes: Tensor, items: int) -> tuple[int, int]:
    """(P, K) for batches of about ``items`` items of classes [N]: up to 8 classes of 2 or more items, K at least 2."""
    _, counts = torch.unique(classes, return_counts=True)
    across = max(1, min(_MAX_CATEGORIES, int((counts >= 2).sum())))
    return across, max(2, items // across)


def balanced_sizes(labels: Tensor, items: int, *, repeat: bool = False) -> tuple[int, int, int]:
    """(P, S, K) for batches of about ``items`` items: categories, subcategories per category, items per subcategory.

    Up to 8 categories, up to 4 items of a subcategory, and as many subcategories as fit, at least 2.

    Args:
        labels: [N, 2] int64 (category, subcategory).
        items: Target size of a batch, which two subcategories in each of two categories can exceed.
        repeat: Limit K by the median size of the subcategories rather than the smallest; a batch can then contain an
            item of a small subcategory twice.

    Raises:
        InvalidArgumentError: There are no two categories of two subcategories of two items each.
    """
    classes, counts = torch.unique(labels, dim=0, return_counts=True)
    categories, subcategories = torch.unique(classes[:, 0], return_counts=True)
    typical = int(counts.median() if repeat else counts.min()) if len(counts) else 0
    smallest = int(subcategories.min()) if len(counts) else 0
    across, each = min(len(categories), _MAX_CATEGORIES), min(_MAX_ITEMS, typical)
    if across < 2 or smallest < 2 or each < 2:
        raise InvalidArgumentError(
            "batches need at least 2 categories of 2 subcategories of 2 items each, got "
            f"{len(categories)} categories of at least {smallest} subcategories of {typical} items"
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
            "quadruplets need negatives of two subcategories other than the query's; add subcategories"
        )
    second: Tensor = torch.multinomial(allowed.float(), 1, generator=generator).squeeze(1)
    return torch.cat([quadlets.query, quadlets.positive, first, second])


def _differ(labels: Tensor, items: Tensor) -> Tensor:
    """[B, N] bool, whether each item has a different subcategory; equal numbers in two categories are different."""
    differ: Tensor = (labels != labels[items].unsqueeze(1)).any(dim=2)
    return differ


# Draws of three random batches before giving up on finding a triplet.
_TRIES = 10

_CLUSTERS = 3

_CHUNK = 512

Embed = Callable[[Tensor], Tensor]

"""Function from indices [M] to unit vectors [M, D], without gradients."""


def draw_mined_triplets(classes: Tensor, embed: Embed, *, items: int, generator: torch.Generator) -> Tensor:
    """Triplets (a, p, n) from three random batches, by algorithm 1 of the two-head classifier: [3 * T], by member.

    Args:
        classes: [N] class numbers.
        embed: Embeds items with the current model.
        items: b, at least 3; at most b // 3 triplets are drawn.
        generator: Source of all random numbers.

    Raises:
        InvalidArgumentError: No batch has two items of one class and one of another.
    """
    for _ in range(_TRIES):
        triplets = sample_semi_hard_triplets(classes, embed, batch_size=items, seed=generator)
        if len(triplets):
            return torch.cat([triplets.query, triplets.positive, triplets.negative])
    raise InvalidArgumentError(
        f"{_TRIES} draws of {3 * items} items contained no two items of one class and an item of another; increase "
        "schedule.batch or schedule.quadlets"
    )


class ClusterDraws(nn.Module):
    """Batches for the magnet loss: a cluster with a high loss and the nearest clusters of other classes.

    k-means divides every class into up to 3 clusters and is repeated after every epoch. The state depends on earlier
    weights and belongs in the checkpoint, so this is a module with buffers.

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
        """Indices [M * D] of M clusters with D items each, and the clusters' numbers within their classes.

        Args:
            embed: Embeds items with the current model.
            sizes: (M, D). Items of clusters smaller than D are drawn more than once.
            step: Number of steps taken; every N / (M D) steps the clusters are recomputed.
            generator: Source of all random numbers.
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
        """Embed all items, cluster every class, and measure each cluster's mean loss."""
        clustering = import_part("sklearn.cluster", extra="train")
        every = torch.arange(len(self._classes))
        vectors = torch.cat([embed(part) for part in torch.split(every, _CHUNK)]).float().cpu()
        for number in range(self._count):
            mine = (self._classes == number).nonzero().squeeze(1)
            # The loss has nothing to pull together in a cluster of one item.
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
