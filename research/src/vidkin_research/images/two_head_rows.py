"""Rows that fine-tune a pretrained network: softmax alone, and with each metric loss on the embedding head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidkin.features.sessions import resolve_device
from vidkin.metric.losses.base import squared_distances
from vidkin.models import EncoderConfig, HeadOutputs, TwoHeadNetwork, build_model
from vidkin.models.randomness import seeded
from vidkin.training.draws import ClusterDraws
from vidkin.training.engine import Step, check_finite, read_terms, take_steps
from vidkin.training.inputs import Inputs
from vidkin.training.labeled import LabeledData
from vidkin.training.objectives import build_objective, settle_parameters
from vidkin.training.recipe import ObjectiveRecipe, ScheduleRecipe
from vidkin.training.state import make_optimizer, make_schedule
from vidkin_research.images.contract import ImageRow, ImageTask

__all__ = [
    "TWO_HEAD_ROWS",
    "VARIANTS",
    "FittedTwoHead",
    "TwoHeadVariant",
    "fit_two_head",
    "start_two_head",
    "two_head_config",
]


@dataclass(frozen=True)
class TwoHeadVariant:
    """A way to train the two heads.

    Attributes:
        loss: Name of the metric loss in addition to cross entropy; empty for softmax alone, with the penultimate layer
            as the embedding.
        weight: Weight lambda of the metric loss.
        parameters: Parameters of the metric loss that differ from its defaults.
        model: Model settings that differ from those of the other variants.
        balanced: For softmax alone: whether to use class-balanced batches, as the other variants do, instead of random
            ones.
    """

    loss: str = ""
    weight: float = 1.0
    parameters: Mapping[str, Any] | None = None
    model: Mapping[str, Any] | None = None
    balanced: bool = False

    def objectives(self) -> Sequence[ObjectiveRecipe]:
        """The loss terms."""
        # With weight 0, the second term only determines how batches are sampled.
        name, weight = (self.loss, self.weight) if self.loss else ("semi_hard", 0.0)
        terms = [ObjectiveRecipe(name="classification", parameters=settle_parameters("classification", {}))]
        if self.loss or self.balanced:
            parameters = settle_parameters(name, self.parameters or {})
            terms.append(ObjectiveRecipe(name=name, weight=weight, parameters=parameters))
        return terms


class FittedTwoHead:
    """A trained classifier as a row.

    Args:
        model: The trained model, on any device.
        steps: The training steps.
    """

    def __init__(self, model: TwoHeadNetwork, steps: Sequence[Step]) -> None:
        self.model = model.eval()
        self.steps = steps

    @torch.no_grad()
    def describe(self, images: NDArray[np.uint8]) -> HeadOutputs:
        """Compute all outputs for images [N, S, S, 3]."""
        parts = []
        for chunk in np.array_split(images, -(-len(images) // 32)):
            outputs = self.model(torch.from_numpy(chunk).to(self.model.device).movedim(-1, 1).float() / 255)
            parts.append((outputs.logits.cpu(), outputs.embeddings.cpu(), outputs.pooled.cpu()))
        return HeadOutputs(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def distances(self, queries: HeadOutputs, gallery: HeadOutputs) -> Tensor:
        """Compute squared distances [Q, G] between embeddings."""
        return squared_distances(queries.embeddings, gallery.embeddings)

    def layers(self, described: HeadOutputs) -> dict[str, Tensor]:
        """Return unit vectors [N, D] from the embedding head and the penultimate layer."""
        normal = torch.nn.functional.normalize
        return {"embedding": described.embeddings, "penultimate": normal(described.pooled, dim=1)}

    def classify(self, described: HeadOutputs) -> Tensor:
        """Return the class with the largest logit, [N]."""
        return described.logits.argmax(dim=1)


def fit_two_head(task: ImageTask, seed: int, *, variant: TwoHeadVariant) -> FittedTwoHead:
    """Fine-tune the task's backbone on the training images with SGD, linear decay to 0 and 32 images per step.

    Raises:
        WeightsUnavailableError: No weights were passed, and they cannot be downloaded.
        TrainingError: The loss is not finite.
    """
    with seeded(seed):
        model, training = start_two_head(task, seed, variant=variant)
        steps = []
        for step in training:
            check_finite(step.number, read_terms([step])[0])
            steps.append(step)
    return FittedTwoHead(model, steps)


def start_two_head(task: ImageTask, seed: int, *, variant: TwoHeadVariant) -> tuple[TwoHeadNetwork, Iterator[Step]]:
    """Create the model of a variant, and an iterator over its training steps."""
    device = torch.device(resolve_device(task.device))
    schedule = ScheduleRecipe(
        steps=task.steps,
        quadlets=8,
        optimizer="sgd",
        learning_rate=task.learning_rate,
        head_factor=1.0,
        weight_decay=0.0,
        decay="linear",
        seed=seed,
    )
    model = build_model(two_head_config(task, variant), weights=task.weights, seed=seed).to(device)
    assert isinstance(model, TwoHeadNetwork)
    inputs = Inputs(
        labelled=task.train.labelled,
        labels=task.train.labels,
        broken=(),
        stored=torch.from_numpy(task.train.images),
        lengths=None,
        are_features=False,
        config=model.config,
        augmentation=("flip", "crop"),
    )
    objective = build_objective(variant.objectives(), model, classes=task.classes, seed=seed).to(device)
    clusters = ClusterDraws(task.train.labels[:, 1], model.dimension) if variant.loss == "magnet" else None
    data = LabeledData(inputs, None, schedule, device, model=model, clusters=clusters)
    return model, take_steps(
        model,
        objective,
        make_optimizer(schedule, model.parameter_groups(task.learning_rate, head_factor=1.0), objective),
        data.batches(objective.draws, first=0),
        schedule=make_schedule(schedule),
        clip=schedule.clip,
    )


def two_head_config(task: ImageTask, variant: TwoHeadVariant, *, classes: int | None = None) -> EncoderConfig:
    """Return the configuration of a variant; ``classes`` defaults to the number of classes in the task."""
    settings: dict[str, Any] = {"embedding_from": None if variant.loss else "none", **(variant.model or {})}
    return EncoderConfig(
        kind="two_head",
        backbone=task.backbone,
        frozen_batch_norm=task.frozen_batch_norm,
        size=task.train.size,
        fit="crop",
        classes=classes or task.classes,
        **settings,
    )


VARIANTS: Mapping[str, TwoHeadVariant] = {
    "softmax alone": TwoHeadVariant(),
    "softmax alone, balanced batches": TwoHeadVariant(balanced=True),
    "two-head, hard (soft margin)": TwoHeadVariant("batch_hard"),
    "two-head, hard (margin .2)": TwoHeadVariant("batch_hard", parameters={"margin": 0.2}),
    "two-head, semi-hard": TwoHeadVariant("semi_hard"),
    "two-head, center": TwoHeadVariant("center", weight=0.003),
    "two-head, triplet-center": TwoHeadVariant("triplet_center"),
    "two-head, magnet": TwoHeadVariant("magnet"),
}
"""Softmax alone with random and balanced batches, and with each metric loss in addition (lambda 1; center: 0.003)."""

TWO_HEAD_ROWS: tuple[ImageRow, ...] = tuple(
    ImageRow(name, partial(fit_two_head, variant=variant), group="two-head") for name, variant in VARIANTS.items()
)
"""The variants as rows."""
