"""The methods that `vidkin benchmark fgvr` and `fgir` compare: how each draws its items, and what it minimises."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses, measures, sampling

__all__ = ["METHODS", "Draw", "Method", "batch_sizes", "draws", "method_named"]

Draw = Literal["nothing", "quadlets", "quadruplets_a", "quadruplets_b", "batches", "classes", "volumes"]
Loss = Callable[[Tensor, Tensor], Tensor]

# Items of a step: as many as 32 quadlets hold, for every method.
_MOST_ITEMS_A_CLASS = 4
_LEAST_SUBCATEGORIES = 2


@dataclass(frozen=True, kw_only=True)
class Method:
    """One row of the comparison.

    Attributes:
        name: Short name, part of file names.
        title: In tables.
        draw: Items of a step. ``nothing``: not trained. ``quadlets``: (q, p, i, n) from the labels.
            ``quadruplets_a``: (a, p, n1, n2) with n1 an intermediate or a negative by a fair coin and n2 of a third
            subcategory; ``quadruplets_b``: both from other categories. ``batches``: P categories x S subcategories x
            K items. ``classes``: uniform items, for a softmax. ``volumes``: the same for C3D, from pixels.
        loss: (embeddings of the drawn items, their labels [.., 2]) to what is minimised. Embeddings of tuples come as
            [4, B, D], those of batches as [B, D].
        published: QP of the source in percent: of its videos, and the mean of its three sets of pictures; None where
            it has none.
        ours: Not in the source.
        note: What is to be said beside the row.
    """

    name: str
    title: str
    draw: Draw
    loss: Loss | None = None
    published: tuple[float | None, float | None] = (None, None)
    ours: bool = False
    note: str = ""


def _triplet(parts: Tensor, labels: Tensor) -> Tensor:
    return losses.triplet_loss(parts[0], parts[1], parts[3], margin=0.7)


def _quadlet(parts: Tensor, labels: Tensor) -> Tensor:
    return losses.quadlet_loss(*parts, g1=0.7, g2=0.3, g3=0.5)


def _quadruplet1(parts: Tensor, labels: Tensor) -> Tensor:
    return losses.quadrupletwise_loss(*parts, delta=1.0)


def _quadruplet2(parts: Tensor, labels: Tensor) -> Tensor:
    return losses.quadruplet_loss(*parts, weights=(1.0, 0.5))


def _radial(parts: Tensor, labels: Tensor) -> Tensor:
    return losses.radial_loss(*parts, c=3.0, margin=0.3)


def _radial_detached(parts: Tensor, labels: Tensor) -> Tensor:
    return losses.radial_loss(*parts, c=3.0, margin=0.3, detach_radius=True)


def _angular(parts: Tensor, labels: Tensor) -> Tensor:
    return losses.angular_quadlet_loss(*parts, alphas=(36.0, 45.0, 45.0))


def _all_quadlets(embeddings: Tensor, labels: Tensor) -> Tensor:
    return losses.all_quadlets_loss(embeddings, labels, g1=0.7, g2=0.3, g3=0.5)


def _hierarchical_ap(embeddings: Tensor, labels: Tensor) -> Tensor:
    relevance = measures.graded_relevance(labels, labels)
    return losses.hierarchical_ap_loss(embeddings @ embeddings.T, relevance)


def _quadlets_and_ap(embeddings: Tensor, labels: Tensor) -> Tensor:
    return _all_quadlets(embeddings, labels) + _hierarchical_ap(embeddings, labels)


METHODS: tuple[Method, ...] = (
    Method(name="backbone", title="Frozen features, no encoder", draw="nothing", note="mean over the frames"),
    Method(name="untrained", title="Untrained encoder", draw="nothing"),
    Method(
        name="c3d",
        title="3D-CNN",
        draw="volumes",
        published=(25.89, None),
        note="from pixels, without pretraining",
    ),
    Method(name="classification", title="Softmax, same encoder", draw="classes"),
    Method(name="triplet", title="Triplet", draw="quadlets", loss=_triplet, published=(46.62, 60.80)),
    Method(
        name="quadruplet1", title="Quadruplet-1", draw="quadlets", loss=_quadruplet1, published=(51.20, 65.01)
    ),
    Method(
        name="quadruplet2a",
        title="Quadruplet-2a",
        draw="quadruplets_a",
        loss=_quadruplet2,
        published=(50.90, 66.81),
    ),
    Method(
        name="quadruplet2b",
        title="Quadruplet-2b",
        draw="quadruplets_b",
        loss=_quadruplet2,
        published=(50.85, 56.30),
    ),
    Method(name="quadlet", title="Quadlet", draw="quadlets", loss=_quadlet, published=(52.42, 73.16)),
    Method(
        name="radial",
        title="Radial, published gradient",
        draw="quadlets",
        loss=_radial,
        published=(60.70, 75.80),
    ),
    Method(
        name="radial_detached",
        title="Radial, no gradient through R",
        draw="quadlets",
        loss=_radial_detached,
        published=(60.70, 75.80),
    ),
    Method(name="angular", title="Angular, quadlet form", draw="quadlets", loss=_angular),
    Method(
        name="all_quadlets", title="All quadlets of a batch", draw="batches", loss=_all_quadlets, ours=True
    ),
    Method(name="hierarchical_ap", title="Hierarchical AP", draw="batches", loss=_hierarchical_ap, ours=True),
    Method(
        name="quadlets_and_ap",
        title="All quadlets + hierarchical AP",
        draw="batches",
        loss=_quadlets_and_ap,
        ours=True,
    ),
)
"""All rows, in the order of the tables: what is not trained, the source's methods, ours."""


def method_named(name: str) -> Method:
    """The method of a name.

    Raises:
        InvalidArgumentError: There is none; the message lists all.
    """
    for method in METHODS:
        if method.name == name:
            return method
    raise InvalidArgumentError(
        f"no method is called {name!r}, allowed are {', '.join(method.name for method in METHODS)}"
    )


def draws(method: Method, labels: Tensor, *, steps: int, quadlets: int, seed: int) -> Iterator[Tensor]:
    """Indices of the items of every step: [4, quadlets] for tuples, [about 4 * quadlets] for batches and classes.

    Args:
        method: Its ``draw`` decides.
        labels: [N, 2] (category, subcategory), on the CPU.
        steps: How many.
        quadlets: Tuples a step; batches hold as many items as these have members, or a few less.
        seed: The same seed gives the same draws; methods that draw alike see the same items.

    Raises:
        InvalidArgumentError: The labels have no quadlets, or the method is not trained.
    """
    generator = torch.Generator().manual_seed(seed)
    if method.draw in ("quadlets", "quadruplets_a", "quadruplets_b"):
        sampler = sampling.QuadletSampler(
            labels, batch_size=quadlets, batches=steps, seed=seed, ineligible="skip"
        )
        for found in sampler:
            if method.draw == "quadlets":
                yield found.stacked().T
            else:
                yield _quadruplets(found, labels, generator, inside=method.draw == "quadruplets_a")
    elif method.draw == "batches":
        sizes = batch_sizes(labels, 4 * quadlets)
        for batch in sampling.BalancedBatchSampler(labels, sizes=sizes, batches=steps, seed=seed):
            yield torch.tensor(batch)
    elif method.draw in ("classes", "volumes"):
        for _ in range(steps):
            yield torch.randint(len(labels), (4 * quadlets,), generator=generator)
    else:
        raise InvalidArgumentError(f"{method.name} is not trained and draws nothing")


def batch_sizes(labels: Tensor, items: int) -> tuple[int, int, int]:
    """(P, S, K) of batches with at most ``items`` items.

    All categories up to 8, then items of a subcategory up to 4 (no more than the median one has: few items stand twice
    in a batch), then as many subcategories as fit.

    Raises:
        InvalidArgumentError: A category has one subcategory only, or a subcategory one item: no quadlets.
    """
    classes, counts = torch.unique(labels, dim=0, return_counts=True)
    categories, subcategories = torch.unique(classes[:, 0], return_counts=True)
    each = min(_MOST_ITEMS_A_CLASS, int(counts.median()))
    fewest = int(subcategories.min())
    if len(categories) < 2 or each < 2 or fewest < _LEAST_SUBCATEGORIES:
        raise InvalidArgumentError(
            f"batches of quadlets need 2 categories, 2 subcategories in each and 2 items in each of those; found are "
            f"{len(categories)} categories, at least {fewest} subcategories and {int(counts.median())} items"
        )
    wanted = min(len(categories), 8)
    across = max(_LEAST_SUBCATEGORIES, min(fewest, math.floor(items / (wanted * each))))
    return wanted, across, each


def _quadruplets(
    found: sampling.Quadlets, labels: Tensor, generator: torch.Generator, *, inside: bool
) -> Tensor:
    first = found.negative
    if inside:
        coin = torch.rand(len(found), generator=generator) < 0.5
        first = torch.where(coin, found.intermediate, found.negative)
    allowed = (labels[:, 1] != labels[first, 1].unsqueeze(1)) & (
        labels[:, 1] != labels[found.query, 1].unsqueeze(1)
    )
    if not inside:
        allowed &= labels[:, 0] != labels[found.query, 0].unsqueeze(1)
    second = torch.multinomial(allowed.float(), 1, generator=generator).squeeze(1)
    return torch.stack([found.query, found.positive, first, second])
