"""Train an encoder with one method and one seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin.models import Encoder
from vidkin.training.batch import Batch, DrawnItems
from vidkin.training.collapse import collapse_threshold
from vidkin.training.draws import balanced_sizes, index_stream
from vidkin.training.engine import read_terms, take_steps
from vidkin.training.inputs import Inputs
from vidkin.training.objectives import WeightedObjective, build_objective
from vidkin_research.retrieval.methods import Method

__all__ = ["Labelled", "RunSchedule", "TrainedMethod", "VolumeSettings", "embed_inputs", "train_method"]

OnStep = Callable[[int, float], None]

# The model has collapsed below this fraction of the initial mean distance.
_COLLAPSED_RATIO = 1 / 3
_MONITORED = 256
# Number of images per forward pass.
_PIECE = 256
_OPTIMIZERS = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}


@dataclass(frozen=True, kw_only=True)
class RunSchedule:
    """Settings shared by all methods.

    Attributes:
        steps: Number of optimizer steps.
        quadlets: Number of tuples per step. Batch methods get the same number of items, 3D-CNN a fraction of them.
        learning_rate: Constant learning rate; if the frame network is trained, its rate.
        weight_decay: Weight decay; with ``adam``, twice the lambda of a loss term lambda ||W||^2.
        clip: Maximum gradient norm; 0 for no limit.
        optimizer: ``adamw``, or ``adam``, which adds the decay to the gradient, like a loss term.
        head_factor: If the frame network is trained, learning rate of the later layers relative to it.
    """

    steps: int = 500
    quadlets: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 1e-3
    clip: float = 5.0
    optimizer: Literal["adamw", "adam"] = "adamw"
    head_factor: float = 10.0


@dataclass(frozen=True, kw_only=True)
class VolumeSettings:
    """Size and share of training items of the 3D-CNN.

    Attributes:
        width: Width relative to the published one.
        size: Side of its input in pixels; 112 as published.
        frames: Maximum number of frames per clip; 16 as published.
        share: It is trained on one in this many items of a step.
    """

    width: float = 0.125
    size: int = 32
    frames: int = 16
    share: int = 8

    def items(self, schedule: RunSchedule) -> int:
        """Return the number of items per step."""
        return 4 * max(1, schedule.quadlets // self.share)


@dataclass(frozen=True)
class Labelled:
    """Inputs of an encoder with their labels.

    Attributes:
        inputs: [N, T, F] or [N, F] frame features; for C3D [N, T, 3, S, S] uint8.
        labels: [N, 2] int64 (category, subcategory); subcategory indices are unique across categories.
        moving: Full items, from which training samples clips at random positions instead of ``inputs``.
        sources: [N] int64 index of the full item that each input comes from.
    """

    inputs: Tensor
    labels: Tensor
    moving: Inputs | None = None
    sources: Tensor | None = None

    def __post_init__(self) -> None:
        if self.labels.shape != (len(self.inputs), 2):
            raise InvalidArgumentError(
                f"labels must be [{len(self.inputs)}, 2] for {len(self.inputs)} inputs, got {list(self.labels.shape)}"
            )

    def part(self, indices: Tensor) -> Labelled:
        """Return the inputs and labels at these rows, without ``moving``."""
        return Labelled(self.inputs[indices], self.labels[indices])

    def draw(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Return the training inputs at these rows: features, or images with values from 0 to 1."""
        if self.moving is not None and self.sources is not None:
            return self.moving.take(self.sources[rows], device=torch.device("cpu"), generator=generator)[0]
        inputs = self.inputs[rows]
        return inputs.float() / 255.0 if inputs.dtype == torch.uint8 else inputs


@dataclass(frozen=True, kw_only=True)
class TrainedMethod:
    """Loss, mean distances and time of a training run.

    Attributes:
        loss: Mean loss over the last tenth of the steps; None if nothing was trained.
        distance_before: Mean pairwise distance of training items before the first step, in [0, 2].
        distance: Mean pairwise distance of training items at the end.
        seconds: CPU time.
    """

    loss: float | None
    distance_before: float
    distance: float
    seconds: float

    @property
    def collapsed(self) -> bool:
        """Whether the mean distance fell below a third of its initial value, so that nearly all items are at the same
        point."""
        return self.distance < collapse_threshold(self.distance_before, _COLLAPSED_RATIO)


def train_method(
    model: Encoder,
    method: Method,
    train: Labelled,
    schedule: RunSchedule,
    *,
    seed: int,
    items: int | None = None,
    on_step: OnStep | None = None,
) -> TrainedMethod:
    """Train the unfrozen parameters of an encoder in place, on its device, and leave it in eval mode.

    Args:
        model: Encoder whose ``head`` takes the inputs, or whose ``embed`` takes them if they are pixels.
        method: Training method; one without objectives leaves the model unchanged.
        train: Inputs and labels of the training split.
        schedule: Steps, batches and learning rate.
        seed: Random seed for sampling.
        items: Number of items per step, for 3D-CNN; default: four times the number of quadlets.
        on_step: Callback that receives the number and the loss of every step.
    """
    watched = torch.randperm(len(train.labels), generator=torch.Generator().manual_seed(seed))[:_MONITORED]
    before = _mean_distance(model, train.inputs[watched])
    began = time.process_time()
    losses = []
    if method.objectives:
        classes = int(train.labels[:, 1].max()) + 1
        objective = build_objective(method.objectives, model, classes=classes, seed=seed).to(model.device)
        factor = 1.0 if model.config.is_classifier else schedule.head_factor
        groups = model.parameter_groups(schedule.learning_rate, head_factor=factor)
        if extra := [parameter for parameter in objective.parameters() if parameter.requires_grad]:
            groups.append({"params": extra, "lr": schedule.learning_rate, "name": "objective"})
        optimizer = _OPTIMIZERS[schedule.optimizer](groups, weight_decay=schedule.weight_decay)
        batches = _batches(objective, train, schedule, seed, items or 4 * schedule.quadlets, model.device)
        for step in take_steps(model, objective, optimizer, batches, clip=schedule.clip):
            losses.append(read_terms([step])[0]["loss"])
            if on_step is not None:
                on_step(step.number, losses[-1])
        model.eval()
    seconds = time.process_time() - began
    tail = losses[-max(1, len(losses) // 10) :]
    return TrainedMethod(
        loss=sum(tail) / len(tail) if tail else None,
        distance_before=before,
        distance=_mean_distance(model, train.inputs[watched]),
        seconds=seconds,
    )


@torch.inference_mode()
def embed_inputs(model: Encoder, inputs: Tensor) -> Tensor:
    """Compute unit vectors [N, D] of inputs as in `Labelled`, in chunks."""
    training = model.training
    model.eval()
    if inputs.dtype == torch.uint8:
        # Use as many clips as have about the same number of frames as a chunk of images.
        pieces = torch.split(inputs, max(1, _PIECE // (inputs.shape[1] if inputs.ndim == 5 else 1)))
        vectors = [model.embed(piece.to(model.device).float() / 255.0).cpu() for piece in pieces]
    else:
        pieces = torch.split(inputs, _PIECE)
        vectors = [model.head(piece.to(model.device)).cpu() for piece in pieces]  # type: ignore[operator]
    model.train(training)
    return torch.cat(vectors)


def _batches(
    objective: WeightedObjective,
    train: Labelled,
    schedule: RunSchedule,
    seed: int,
    items: int,
    device: torch.device,
) -> Iterator[Batch]:
    """Yield one batch per step; methods that sample the same way get the same items."""
    are_features = train.inputs.dtype != torch.uint8
    quadlets = items // 4
    streams = {
        draw: index_stream(
            draw,
            train.labels,
            steps=schedule.steps,
            quadlets=quadlets,
            sizes=balanced_sizes(train.labels, 4 * quadlets, repeat=True) if draw == "batches" else (),
            seed=seed,
        )
        for draw in objective.draws
    }
    for step, drawn in enumerate(zip(*streams.values(), strict=True)):
        generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
        batch = {}
        for draw, places in zip(streams, drawn, strict=True):
            inputs, labels = train.draw(places, generator).to(device), train.labels[places].to(device)
            batch[draw] = DrawnItems(inputs, None, labels, are_features=are_features)
        yield Batch(batch)


def _mean_distance(model: Encoder, inputs: Tensor) -> float:
    return float(torch.pdist(embed_inputs(model, inputs)).mean())
