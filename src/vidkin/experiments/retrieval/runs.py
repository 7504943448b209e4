"""One run of the comparison: an encoder trained by one method from one seed, and what it is worth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin.experiments.retrieval.geometry import order_and_distances
from vidkin.experiments.retrieval.methods import Method, batch_sizes
from vidkin.metric import measures
from vidkin.models import Encoder
from vidkin.models.collapse import collapse_threshold
from vidkin.models.engine import read_terms, take_steps
from vidkin.training.data.batch import Batch, DrawnItems
from vidkin.training.data.streams import index_stream
from vidkin.training.objectives import WeightedObjective, build_objective

__all__ = ["Labelled", "Run", "Schedule", "Training", "measure", "ranked", "train_method"]

OnStep = Callable[[int, float], None]

# Of the mean distance before the training; less is a collapse.
_COLLAPSED_SHARE = 1 / 3
_WATCHED = 256
_SAMPLES = 15_000


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What all methods have in common.

    Attributes:
        steps: Of the optimiser (AdamW).
        quadlets: Tuples a step; methods on batches see as many items as these have members, C3D half a clip a tuple.
        learning_rate: Constant.
        weight_decay: Of AdamW.
        clip: Largest norm of the gradient.
    """

    steps: int = 500
    quadlets: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 1e-3
    clip: float = 5.0


@dataclass(frozen=True)
class Labelled:
    """Inputs of an encoder with their labels.

    Attributes:
        inputs: [N, T, F] or [N, F] frame features; for C3D [N, T, 3, S, S] uint8.
        labels: [N, 2] int64 (category, subcategory); subcategory numbers are unique across categories.
    """

    inputs: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.labels.shape != (len(self.inputs), 2):
            raise InvalidArgumentError(
                f"labels must be [{len(self.inputs)}, 2] for that many inputs, given is {list(self.labels.shape)}"
            )

    def part(self, indices: Tensor) -> Labelled:
        return Labelled(self.inputs[indices], self.labels[indices])


@dataclass(frozen=True, kw_only=True)
class Training:
    """What happened to the embeddings.

    Attributes:
        loss: Mean over the last tenth of the steps; None where nothing was trained.
        distance_before: Mean distance of two training items before the first step, in [0, 2].
        distance: The same at the end.
        collapsed: It fell below a third: nearly all items are at one place.
        seconds: Processor time.
    """

    loss: float | None
    distance_before: float
    distance: float
    seconds: float

    @property
    def collapsed(self) -> bool:
        return self.distance < collapse_threshold(self.distance_before, _COLLAPSED_SHARE)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run as it is stored.

    Attributes:
        set: Name of the collection.
        method: Name of the method.
        seed: Of weights and draws.
        learning_rate: It was trained with; 0 for what is not trained.
        validation: Measures of validation items against the train part; the choice looks at these only.
        test: Measures of test items against the train part.
        training: What happened.
        collapsed: See `Training`.
        ranked: Number of a test item -> numbers of the nearest train items, for the picture.
    """

    set: str
    method: str
    seed: int
    learning_rate: float
    validation: dict[str, float]
    test: dict[str, float]
    training: dict[str, float | None]
    collapsed: bool
    ranked: dict[str, list[int]]

    def to_mapping(self) -> dict[str, Any]:
        return asdict(self)


def train_method(
    model: Encoder,
    method: Method,
    train: Labelled,
    schedule: Schedule,
    *,
    seed: int,
    on_step: OnStep | None = None,
) -> Training:
    """Train the head of an encoder (or all of C3D) by a method, in place; it is left in eval mode.

    Args:
        model: Its ``head`` takes the inputs; C3D's ``classify`` does.
        method: How; a method that is not trained leaves the model as it is.
        train: What with.
        schedule: How long.
        seed: Of the draws.
        on_step: Called after every step with its number and the loss.
    """
    watched = torch.randperm(len(train.labels), generator=torch.Generator().manual_seed(seed))[:_WATCHED]
    before = _mean_distance(model, train.inputs[watched])
    began = time.process_time()
    found = [] if not method.objectives else _optimise(model, method, train, schedule, seed, on_step)
    seconds = time.process_time() - began
    tail = found[-max(1, len(found) // 10) :]
    return Training(
        loss=sum(tail) / len(tail) if tail else None,
        distance_before=before,
        distance=_mean_distance(model, train.inputs[watched]),
        seconds=seconds,
    )


def measure(queries: Tensor, query_labels: Tensor, gallery: Tensor, labels: Tensor) -> dict[str, float]:
    """QP, NDCG, TP, MAP and more of queries [Q, D] against a gallery [G, D], in percent.

    q is a query; p, i and n are of the gallery, which holds other recordings than the queries. ``qp`` and ``tp``
    count all such quadlets, ``qp_sampled`` and ``tp_sampled`` 15,000 drawn ones, as the source does. ``map`` takes
    positives and intermediates as relevant, ``map_subcategory`` positives only; ``recall_at_1`` wants the same
    subcategory first. ``qp_inside`` counts the quadlets that lie in the queries altogether. What
    `order_and_distances` finds is added; its distances are no percentages.
    """
    scores = -torch.cdist(queries, gallery)
    relevance = measures.graded_relevance(query_labels, labels)
    shared = measures.RetrievalAccumulator(
        ["quadlet_precision", "ndcg", "triplet_precision", "mean_average_precision"]
    )
    shared.update(scores, relevance)
    exact = shared.compute()
    others = ~torch.eye(len(queries), dtype=torch.bool)
    inside = measures.quadlet_precision(
        -torch.cdist(queries, queries), measures.graded_relevance(query_labels, query_labels), valid=others
    )
    found = {
        "qp": exact["quadlet_precision"],
        "qp_sampled": measures.quadlet_precision(scores, relevance, samples=_SAMPLES, seed=0),
        "qp_inside": inside,
        "ndcg": exact["ndcg"],
        "tp": exact["triplet_precision"],
        "tp_sampled": measures.triplet_precision(scores, relevance, samples=_SAMPLES, seed=0),
        "map": exact["mean_average_precision"],
        "map_subcategory": measures.mean_average_precision(scores, relevance, level=2),
        "recall_at_1": (relevance.gather(1, scores.argmax(dim=1, keepdim=True)) == 2).double().mean().item(),
    }
    percent = {name: 100.0 * float(value) for name, value in found.items()}
    return percent | order_and_distances(queries, query_labels, gallery, labels)


def ranked(queries: Tensor, gallery: Tensor, *, count: int) -> list[list[int]]:
    """For each query [Q, D] the numbers of the ``count`` nearest gallery items, nearest first."""
    nearest = torch.cdist(queries, gallery).topk(min(count, len(gallery)), largest=False, sorted=True)
    return [[int(number) for number in row] for row in nearest.indices]


@torch.inference_mode()
def embedded(model: Encoder, inputs: Tensor) -> Tensor:
    """[N, D] unit vectors of inputs as in `Labelled`, in pieces."""
    training = model.training
    model.eval()
    parts = [_embed(model, piece) for piece in torch.split(inputs, 256)]
    model.train(training)
    return torch.cat(parts)


def _optimise(
    model: Encoder,
    method: Method,
    train: Labelled,
    schedule: Schedule,
    seed: int,
    on_step: OnStep | None,
) -> list[float]:
    classes = int(train.labels[:, 1].max()) + 1
    objective = build_objective(method.objectives, model, classes=classes, seed=seed)
    parameters = [p for p in (*model.parameters(), *objective.parameters()) if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=schedule.learning_rate, weight_decay=schedule.weight_decay)
    losses = []
    batches = _batches(objective, method, train, schedule, seed)
    for step in take_steps(model, objective, optimizer, batches, clip=schedule.clip):
        losses.append(read_terms([step])[0]["loss"])
        if on_step is not None:
            on_step(step.number, losses[-1])
    model.eval()
    return losses


def _batches(
    objective: WeightedObjective, method: Method, train: Labelled, schedule: Schedule, seed: int
) -> Iterator[Batch]:
    """What every step gets; methods that draw alike see the same items."""
    pixels = method.input == "pixels"
    # C3D sees half a clip a tuple: a clip costs it some forty times what a head on frozen features pays.
    quadlets = max(1, schedule.quadlets // 8) if pixels else schedule.quadlets
    streams = {
        draw: index_stream(
            draw,
            train.labels,
            steps=schedule.steps,
            quadlets=quadlets,
            sizes=batch_sizes(train.labels, 4 * quadlets) if draw == "batches" else (),
            seed=seed,
        )
        for draw in objective.draws
    }
    for drawn in zip(*streams.values(), strict=True):
        yield Batch(
            {draw: _items(train, places, pixels) for draw, places in zip(streams, drawn, strict=True)}
        )


def _items(train: Labelled, places: Tensor, pixels: bool) -> DrawnItems:
    inputs = train.inputs[places]
    return DrawnItems(
        inputs.float() / 255.0 if pixels else inputs, None, train.labels[places], are_features=not pixels
    )


def _embed(model: Encoder, inputs: Tensor) -> Tensor:
    if inputs.dtype == torch.uint8:
        return model.embed(inputs.float() / 255.0)
    found: Tensor = model.head(inputs)  # type: ignore[operator]
    return found


def _mean_distance(model: Encoder, inputs: Tensor) -> float:
    return float(torch.pdist(embedded(model, inputs)).mean())
