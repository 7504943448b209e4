"""Training of a clip encoder's head on labelled shots, from cached features of frames."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from vidkin._base.tables import from_table
from vidkin.errors import InvalidArgumentError
from vidkin.models.collapse import collapse_threshold
from vidkin.models.engine import check_finite, read_terms, take_steps
from vidkin.shots.learned.clips import ShotClips
from vidkin.shots.learned.objectives import SHOT_LOSSES, ShotLoss, ShotObjective

__all__ = ["ShotRecipe", "ShotTraining", "train_on_shots"]

_WATCHED = 64
# Of the mean distance before the training; less is a collapse.
_COLLAPSED_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class ShotRecipe:
    """How a metric for shots is trained. Defaults are those of the stored comparison.

    Attributes:
        loss: ``triplet``, ``quadlet``, ``radial`` (published gradient) or ``radial_detached``.
        window: Frames a clip; the sources take 40 (at 20 frames a second).
        steps: Of the optimiser.
        quadlets: A step, from critical shots; a loss on triplets alone draws as many triplets instead.
        triplets: A step, from the other shots.
        learning_rate: Of AdamW.
        weight_decay: Likewise.
        clip: Largest norm of the gradient.
        margin: Of the triplets.
        seed: Of the drawing.
    """

    loss: ShotLoss
    window: int = 10
    steps: int = 250
    quadlets: int = 16
    triplets: int = 16
    learning_rate: float = 1e-3
    weight_decay: float = 1e-3
    clip: float = 5.0
    margin: float = 0.7
    seed: int = 0

    def __post_init__(self) -> None:
        ShotObjective(loss=self.loss, margin=self.margin)
        if self.window < 2 or self.steps < 0 or self.quadlets < 0 or self.triplets < 0:
            raise InvalidArgumentError(
                f"window must be 2 or more, steps, quadlets and triplets 0 or more, given is {self}"
            )
        if self.quadlets + self.triplets == 0:
            raise InvalidArgumentError("a step needs quadlets or triplets, given are 0 of both")
        limits = (self.learning_rate, self.weight_decay, self.clip, self.margin)
        if not (self.learning_rate > 0 and self.weight_decay >= 0 and self.clip > 0) or not all(
            math.isfinite(limit) for limit in limits
        ):
            raise InvalidArgumentError(
                f"learning_rate and clip must be above 0, weight_decay 0 or more and all finite, margin too; "
                f"given is {self}"
            )

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> ShotRecipe:
        """A recipe from names and values, for example the ``[shots]`` table of a TOML file.

        Raises:
            InvalidArgumentError: A name is unknown, or a value has the wrong kind or is not allowed.
        """
        if "loss" not in values:
            raise InvalidArgumentError(f"[shots] needs a loss: one of {', '.join(SHOT_LOSSES)}")
        return from_table(cls, values, "shots")


@dataclass(frozen=True, slots=True)
class ShotTraining:
    """What happened.

    Attributes:
        losses: Loss of every step.
        distance: Mean distance of pairs of embeddings at the end, in [0, 2].
        collapsed: All embeddings are at nearly one place (`collapse_threshold` of .2): the model is of no use.
        seconds: It took.
    """

    losses: tuple[float, ...] = field(repr=False)
    distance: float
    collapsed: bool
    seconds: float


def train_on_shots(
    model: nn.Module,
    clips: ShotClips,
    recipe: ShotRecipe,
    *,
    on_progress: Callable[[int, Mapping[str, float]], None] | None = None,
) -> ShotTraining:
    """Train the head of a clip encoder; its frame network stays as it is, since features are given.

    Deterministic: the same model, clips and recipe give the same weights on the same machine.

    Args:
        model: With ``head(features [B, T, F]) -> [B, D]`` (`models.ClipEncoder`); trained in place, left in eval mode.
        clips: Labelled features; their window must be the recipe's.
        recipe: How.
        on_progress: Called after every step with its number (from 1) and the terms of the loss.

    Raises:
        InvalidArgumentError: The windows differ, or the labels cannot give the tuples that the loss needs.
        TrainingError: The loss is not a finite number any more.
    """
    if clips.window != recipe.window:
        raise InvalidArgumentError(
            f"the clips have {clips.window} frames and the recipe {recipe.window}, both must be the same"
        )
    objective = ShotObjective(loss=recipe.loss, margin=recipe.margin)
    if objective.uses_quadlets and recipe.quadlets and not clips.has_critical:
        raise InvalidArgumentError(
            f"the loss {recipe.loss!r} needs critical shots and none is labelled; "
            "label some, or train with loss 'triplet'"
        )
    generator = torch.Generator().manual_seed(recipe.seed)
    weights = [weight for weight in _head_parameters(model) if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    batches = (
        clips.draw(
            quadlets=recipe.quadlets if objective.uses_quadlets else 0,
            triplets=recipe.triplets + (0 if objective.uses_quadlets else recipe.quadlets),
            generator=generator,
            critical_triplets=not objective.uses_quadlets,
        )
        for _ in range(recipe.steps)
    )
    start = _mean_distance(model, clips, torch.Generator().manual_seed(recipe.seed))
    losses = []
    began = time.monotonic()
    for step in take_steps(model, objective, optimizer, batches, clip=recipe.clip):  # type: ignore[arg-type]
        (terms,) = read_terms([step])
        check_finite(step.number, terms)
        losses.append(terms["loss"])
        if on_progress is not None:
            on_progress(step.number, terms)
    model.eval()
    distance = _mean_distance(model, clips, generator)
    return ShotTraining(
        losses=tuple(losses),
        distance=distance,
        collapsed=distance < collapse_threshold(start, _COLLAPSED_SHARE),
        seconds=time.monotonic() - began,
    )


def _head_parameters(model: nn.Module) -> list[nn.Parameter]:
    """All but those of the frame network, which cached features bypass."""
    frozen = {id(weight) for name in ("backbone", "frame_network") for weight in _of(model, name)}
    return [weight for weight in model.parameters() if id(weight) not in frozen]


def _of(model: nn.Module, name: str) -> list[nn.Parameter]:
    part = getattr(model, name, None)
    return list(part.parameters()) if isinstance(part, nn.Module) else []


@torch.no_grad()
def _mean_distance(model: nn.Module, clips: ShotClips, generator: torch.Generator) -> float:
    batch = clips.draw(quadlets=0, triplets=_WATCHED, generator=generator, critical_triplets=True)
    assert batch.triplets is not None
    model.eval()
    embeddings: Tensor = model.head(batch.triplets[0])  # type: ignore[operator]
    return float(torch.pdist(embeddings).mean())
