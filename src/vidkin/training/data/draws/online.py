"""A stream of triplets for deep ranking, drawn online from small buffers by labels, a matrix, or a classical
feature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidkin._base.checks import check_at_least, check_share
from vidkin._base.names import parse_name
from vidkin._base.registry import Registry
from vidkin.errors import InvalidArgumentError
from vidkin.features.whitening import read_safetensors
from vidkin.metric.sampling import OnlineTripletSampler

__all__ = ["LABELS", "OnlineSettings", "online_triplets", "read_relevance"]

LABELS = "labels"
"""Relevance by labels: the number of levels two items share."""

_TENSOR = "relevance"

RelevanceOfImages = Callable[[str, NDArray[np.uint8], Tensor], Tensor]
"""Relevance [N, N], 0 or more, for the full name, images [N, S, S, 3] and categories [N]."""

_RELEVANCES: Registry[RelevanceOfImages] = Registry(
    "relevance", {}, group="vidkin.relevances", researched=True
)


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    """How :class:`vidkin.metric.sampling.OnlineTripletSampler` draws.

    Attributes:
        buffer: Items kept per category.
        margin: T_r, how much more relevant the positive must be than the negative.
        in_class: Share of the tries for a negative of the query's own category, in [0, 1].

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
    """Yield rows [3 * triplets] int64 for each step, member by member: queries, positives, negatives.

    The stream passes over all items in random order, repeatedly; each step adds as many items as it draws.

    Args:
        labels: [N, 2] int64 (category, subcategory); each category has a buffer.
        relevance: [N, N] floating point, at least 0; None: the number of levels two items share.
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
                    f"no triplet of the {len(labels)} training items was accepted; lower the margin of the relevance "
                    f"(schedule.relevance_margin, {settings.margin}), or use two categories or more"
                )
            drawn.append(triplet)
        yield torch.tensor(drawn).T.flatten()


def read_relevance(name: str, images: Tensor | None, categories: Tensor) -> Tensor | None:
    """Read the relevance of a recipe: None for labels, or a matrix [N, N].

    Args:
        name: ``labels``, a name of an installed package (entry point group ``vidkin.relevances``, such as
            ``classical:<feature>``), or a safetensors file with ``relevance`` [N, N], 0 or more.
        images: [N, S, S, 3] uint8 images, for a feature.
        categories: [N] int64.

    Raises:
        UnknownExtractorError: No feature has this name.
        InvalidArgumentError: The file does not fit the items, or a feature is requested but there are no images.
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
    tensors, _ = read_safetensors(Path(name).expanduser(), purpose=_TENSOR)
    matrix = tensors.get(_TENSOR)
    size = len(categories)
    if matrix is None or tuple(matrix.shape) != (size, size) or bool((matrix < 0).any()):
        given = "nothing of that name" if matrix is None else str(list(matrix.shape))
        raise InvalidArgumentError(
            f"{name}: relevance must be [{size}, {size}] numbers of at least 0, one row for each training item, got "
            f"{given}"
        )
    return matrix.float()


def _scale(labels: Tensor, relevance: Tensor | None) -> float:
    """The largest factor that keeps acceptance ratios at most 1: least total relevance / largest relevance."""
    if relevance is None:
        _, position, sizes = torch.unique(labels[:, 0], return_inverse=True, return_counts=True)
        return max(1.0, int((sizes[position] - 1).clamp_min(1).min()) / labels.shape[1])
    same = labels[:, None, 0] == labels[None, :, 0]
    same.fill_diagonal_(False)
    inside = torch.where(same, relevance, torch.zeros_like(relevance))
    totals = inside.sum(dim=1)
    able = totals[totals > 0]
    return max(1.0, float(able.min() / inside.max())) if len(able) else 1.0
