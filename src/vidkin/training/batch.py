"""The batch of a training step, drawn items as tensors with their labels, and the interface of training data."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, cast

import torch
from torch import Tensor

from vidkin.models import Encoder, HeadOutputs, TwoHeadNetwork
from vidkin.models.encoder import BackboneEncoder
from vidkin.training.processes import compute_in_shares
from vidkin.training.recipe import Measure, ObjectiveRecipe

R = TypeVar("R")

Draw = Literal[
    "quadlets",
    "quadruplets_a",
    "quadruplets_b",
    "batches",
    "online_triplets",
    "uniform",
    "mined",
    "clusters",
    "views",
    "clips",
]

"""How the items of a step are drawn, see :func:`vidkin.training.draws.index_stream`; ``mined``: triplets
(a, p, n) of random items that the model confuses; ``clusters``: items of clusters that are near each other; ``views``
of unlabeled data: the first views of N / 2 images, then their second views; ``clips``: the same for videos, for a
comparator."""


@dataclass(frozen=True, slots=True)
class DrawnItems:
    """N items of one draw; tuples are stored member by member: all queries, all positives, ...

    Attributes:
        inputs: [N, T, F] or [N, F] features of a frozen backbone, or images [N, (T,) 3, S, S] from 0 to 1.
        lengths: [N] frames of each item; None if all are full.
        labels: [N, 2] int64 (category, subcategory); for views (image, image).
        are_features: Whether ``inputs`` are features.
        clusters: [N] numbers of clusters within their classes, for the draw ``clusters``.
    """

    inputs: Tensor
    lengths: Tensor | None
    labels: Tensor
    are_features: bool
    clusters: Tensor | None = None

    def outputs(self, model: TwoHeadNetwork) -> HeadOutputs:
        """Logits and unit vectors in one pass, float32, with gradients."""
        sizes: list[int] = []

        def compute(rows: slice) -> Tensor:
            inputs = self.inputs[rows]
            outputs: HeadOutputs = model.outputs(inputs) if self.are_features else model(inputs)
            parts = [part.float() for part in (outputs.logits, outputs.embeddings, outputs.pooled)]
            sizes.extend(part.shape[1] for part in parts)
            return torch.cat(parts, dim=1)

        return HeadOutputs(*torch.split(compute_in_shares(compute, len(self.inputs)), sizes, dim=1))

    def embeddings(self, model: Encoder) -> Tensor:
        """Unit vectors [N, D] float32, with gradients."""
        # Only what has a backbone has features.
        return self.computed_by(cast(BackboneEncoder, model).head if self.are_features else model.embed)

    def computed_by(self, network: Callable[..., Tensor]) -> Tensor:
        """Rows [N, ...] float32 of a network called with inputs and lengths; each process computes its share of
        them."""

        def compute(rows: slice) -> Tensor:
            lengths = None if self.lengths is None else self.lengths[rows]
            return network(self.inputs[rows], lengths).float()

        return compute_in_shares(compute, len(self.inputs))


@dataclass(frozen=True, slots=True)
class Batch:
    """The items of one step, for each draw of its objective."""

    draws: Mapping[Draw, DrawnItems]


def work_ahead(make: Callable[[int], R], steps: range, *, threads: int) -> Iterator[R]:
    """What a function makes for each of these steps, in order; threads work on the next ones in the meantime."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(max_workers=threads) as pool:
        ahead = iter(steps)
        try:
            for _ in steps:
                while len(waiting) <= threads and (step := next(ahead, None)) is not None:
                    waiting.append(pool.submit(make, step))
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def weighted_sum(terms: dict[str, Tensor], parts: Iterable[tuple[ObjectiveRecipe, Tensor]]) -> Tensor:
    """The weighted sum of the values of a recipe's objectives, each of which joins the terms under its name.

    Names that are there already are numbered.
    """
    total: Tensor | None = None
    for part, value in parts:
        same = sum(name.split(" ")[0] == part.name for name in terms)
        terms[f"{part.name} {same + 1}" if same else part.name] = value
        total = value * part.weight if total is None else total + value * part.weight
    assert total is not None
    return total


M = TypeVar("M", contravariant=True)

B = TypeVar("B", covariant=True)


class TrainingData(Protocol[M, B]):
    """Items ready to draw, in batches B for a model M.

    Attributes:
        name: Name of the collection.
        broken: (file, cause) of items that could not be read.
    """

    @property
    def name(self) -> str:
        """Name of the data in reports."""

    @property
    def broken(self) -> tuple[tuple[str, str], ...]:
        """Files that were left out because they cannot be read, each with the cause."""

    def batches(self, draws: Sequence[Draw], *, first: int) -> Iterator[B]:
        """The batches of all steps from ``first`` (0 is the start) on, the same however often a run resumes."""

    def measure(self, model: M, measure: Measure) -> float:
        """The figure of the validation items in [0, 1], higher is better."""

    def identity(self) -> bytes:
        """Names and labels of the items: a checkpoint belongs to the data with the same identity."""
