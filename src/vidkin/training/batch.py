"""Training batches: sampled items as tensors with labels, and the interface of training data."""

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

"""How the items of a step are sampled, see :func:`vidkin.training.draws.index_stream`. ``mined``: triplets (a, p, n) of
random items that the model confuses. ``clusters``: items from neighboring clusters. ``views``, for unlabeled data: the
first views of N / 2 images, then their second views. ``clips``: the same for videos, for a comparator."""


@dataclass(frozen=True, slots=True)
class DrawnItems:
    """N sampled items; tuples are grouped by member: all queries, then all positives, etc.

    Attributes:
        inputs: [N, T, F] or [N, F] features of a frozen backbone, or images [N, (T,) 3, S, S] from 0 to 1.
        lengths: [N] number of frames in each item; None if no item is padded.
        labels: [N, 2] int64 (category, subcategory); for views, (image, image).
        are_features: Whether ``inputs`` are features.
        clusters: [N] cluster numbers within the classes, for ``clusters`` sampling.
    """

    inputs: Tensor
    lengths: Tensor | None
    labels: Tensor
    are_features: bool
    clusters: Tensor | None = None

    def outputs(self, model: TwoHeadNetwork) -> HeadOutputs:
        """Compute logits and unit vectors in one pass, as float32 with gradients."""
        sizes: list[int] = []

        def compute(rows: slice) -> Tensor:
            inputs = self.inputs[rows]
            outputs: HeadOutputs = model.outputs(inputs) if self.are_features else model(inputs)
            parts = [part.float() for part in (outputs.logits, outputs.embeddings, outputs.pooled)]
            sizes.extend(part.shape[1] for part in parts)
            return torch.cat(parts, dim=1)

        return HeadOutputs(*torch.split(compute_in_shares(compute, len(self.inputs)), sizes, dim=1))

    def embeddings(self, model: Encoder) -> Tensor:
        """Compute unit vectors [N, D] as float32 with gradients."""
        # Items are features only if the model has a backbone, so the cast is safe.
        return self.compute_with(cast(BackboneEncoder, model).head if self.are_features else model.embed)

    def compute_with(self, network: Callable[..., Tensor]) -> Tensor:
        """Call a network with the inputs and lengths, and return its output [N, ...] as float32; each process computes
        part of the rows."""

        def compute(rows: slice) -> Tensor:
            lengths = None if self.lengths is None else self.lengths[rows]
            return network(self.inputs[rows], lengths).float()

        return compute_in_shares(compute, len(self.inputs))


@dataclass(frozen=True, slots=True)
class Batch:
    """The items of one step, for each sampling method of the objective."""

    draws: Mapping[Draw, DrawnItems]


def work_ahead(make: Callable[[int], R], steps: range, *, threads: int) -> Iterator[R]:
    """Yield ``make(step)`` for each step in order, while threads compute the next results in advance."""
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
    """Compute the weighted sum of a recipe's objectives, and add each value to ``terms`` under its name.

    Repeated names are numbered.
    """
    total: Tensor | None = None
    for part, value in parts:
        count = sum(name.split(" ")[0] == part.name for name in terms)
        terms[f"{part.name} {count + 1}" if count else part.name] = value
        total = value * part.weight if total is None else total + value * part.weight
    assert total is not None
    return total


M = TypeVar("M", contravariant=True)

B = TypeVar("B", covariant=True)


class TrainingData(Protocol[M, B]):
    """Training and validation items, sampled in batches B for a model M.

    Attributes:
        name: Name of the dataset.
        broken: (file, cause) for each item that could not be read.
    """

    @property
    def name(self) -> str:
        """Name of the data in reports."""

    @property
    def broken(self) -> tuple[tuple[str, str], ...]:
        """(file, cause) for each item that could not be read and was skipped."""

    def batches(self, draws: Sequence[Draw], *, first: int) -> Iterator[B]:
        """Yield the batches from step ``first`` (0 at the start), which are the same in a resumed run."""

    def measure(self, model: M, measure: Measure) -> float:
        """Evaluate a measure on the validation items, in [0, 1]; higher is better."""

    def identity(self) -> bytes:
        """Return the names and labels of the items; a checkpoint can be resumed only with identical data."""
