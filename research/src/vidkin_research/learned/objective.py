"""Objectives and training for shots and critical clips: triplets from ordinary shots, quadlets from critical shots."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from vidkin._base.toml import from_table
from vidkin._base.values import check_choice, check_positive
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import quadlet_loss, radial_loss, triplet_loss
from vidkin.models import ClipEncoder
from vidkin.training.collapse import collapse_threshold
from vidkin.training.engine import take_steps
from vidkin.training.processes import average_gradients, compute_in_shares, share_steps
from vidkin.training.runner import StepStore
from vidkin_research.learned.clips import ShotBatch, ShotClips
from vidkin_research.learned.detector import CUT_RULES, CutRule

ShotLoss = Literal["triplet", "quadlet", "radial", "radial_detached"]

SHOT_LOSSES: tuple[ShotLoss, ...] = get_args(ShotLoss)

"""``radial`` has the published gradient; ``radial_detached`` stops the gradient through the radius."""


@dataclass(frozen=True, kw_only=True)
class ShotObjective:
    """Loss of a step: the loss on the quadlets plus the triplet loss on the triplets, as in the sources.

    Attributes:
        loss: Loss on the quadlets; ``triplet`` uses only triplets and ignores critical moments.
        margin: Margin of the triplet loss, on squared distances.
        gaps: Gaps (g1, g2, g3) of the quadlet loss.
        c: Distance c of the radial loss, in radii.
        radial_margin: Margin m of the radial loss's triplet term.
    """

    loss: ShotLoss
    margin: float = 0.7
    gaps: tuple[float, float, float] = (0.7, 0.3, 0.5)
    c: float = 3.0
    radial_margin: float = 0.3

    def __post_init__(self) -> None:
        check_choice("loss", self.loss, SHOT_LOSSES)

    @property
    def uses_quadlets(self) -> bool:
        """Whether the loss uses critical frames."""
        return self.loss != "triplet"

    def __call__(self, model: ClipEncoder, batch: ShotBatch) -> dict[str, Tensor]:
        """Compute the loss terms by name; ``loss``, their sum, is minimized.

        Raises:
            InvalidArgumentError: The batch has no tuples that this loss can use.
        """
        terms: dict[str, Tensor] = {}
        if batch.quadlets is not None and self.uses_quadlets:
            q, p, i, n = embed_tuples(model, batch.quadlets)
            if self.loss == "quadlet":
                g1, g2, g3 = self.gaps
                terms["quadlets"] = quadlet_loss(q, p, i, n, g1=g1, g2=g2, g3=g3)
            else:
                detached = self.loss == "radial_detached"
                terms["quadlets"] = radial_loss(q, p, i, n, c=self.c, margin=self.radial_margin, detach_radius=detached)
        if batch.triplets is not None:
            q, p, n = embed_tuples(model, batch.triplets)
            terms["triplets"] = triplet_loss(q, p, n, margin=self.margin)
        if not terms:
            raise InvalidArgumentError(f"the batch must contain tuples that the loss {self.loss!r} can use, got none")
        return {**terms, "loss": sum(terms.values(), start=next(iter(terms.values())).new_zeros(()))}


def embed_tuples(model: ClipEncoder, clips: Tensor) -> tuple[Tensor, ...]:
    """Embed the K parts of tuples in one pass: K tensors [B, D]; clips are split among processes.

    Args:
        model: Model with ``head`` for features and ``embed`` for images.
        clips: [K, B, W, F] features, or [K, B, W, S, S, 3] uint8 images.
    """
    parts, batch = clips.shape[:2]
    flat = clips.flatten(0, 1)

    def embed(rows: slice) -> Tensor:
        if flat.dtype == torch.uint8:
            images = flat[rows].movedim(-1, -3).float() / 255
            return model.embed(images)
        return model.head(flat[rows])

    return compute_in_shares(embed, len(flat)).view(parts, batch, -1).unbind(0)


# Training of a clip encoder on labeled shots, from cached frame features or from images.


# Number of triplets whose distances are monitored for collapse.
_WATCHED = 64

# The model has collapsed below this fraction of the initial mean distance.
_COLLAPSED_RATIO = 0.2


_OPTIMIZERS = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}


@dataclass(frozen=True, kw_only=True)
class ShotRecipe:
    """Settings for training a shot metric, and its cut rule.

    The defaults are those of the recipe ``extended``; the recipe ``published`` has the settings of the paper.

    Attributes:
        loss: ``triplet``, ``quadlet``, ``radial`` (published gradient) or ``radial_detached``.
        window: Number of frames per clip, at least 2; the paper uses 40 (at 20 frames per second).
        rate: Maximum number of frames per second to sample, above 0; None uses every frame.
        rule: How cuts are found: ``slope`` is the published rule and ``extended`` is ours; with ``default``, vidkin's
            default detector finds them, and training only serves to recognize critical shots (`CutRule`).
        steps: Number of optimizer steps.
        quadlets: Number of quadlets per step, from critical shots; a loss that uses only triplets samples as many
            additional triplets instead.
        triplets: Number of triplets per step, from the other shots.
        optimizer: ``adamw``, or ``adam``, which adds the decay to the gradient, like a loss term.
        learning_rate: Learning rate, above 0.
        weight_decay: Weight decay, at least 0; with ``adam``, twice the lambda of a loss term lambda ||W||^2.
        clip: Maximum gradient norm, above 0.
        margin: Margin of the triplet loss.
        head_factor: If the frame network is also trained, learning rate of the later layers relative to it, above 0.
        memory: GiB of images to cache while the frame network is trained; others are decoded again whenever they are
            sampled.
        seed: Random seed for initial weights and clip sampling.
    """

    loss: ShotLoss
    window: int = 10
    rate: float | None = None
    rule: CutRule = "extended"
    steps: int = 250
    quadlets: int = 16
    triplets: int = 16
    optimizer: Literal["adamw", "adam"] = "adamw"
    learning_rate: float = 1e-3
    weight_decay: float = 1e-3
    clip: float = 5.0
    margin: float = 0.7
    head_factor: float = 10.0
    memory: float = 4.0
    seed: int = 0

    def __post_init__(self) -> None:
        ShotObjective(loss=self.loss, margin=self.margin)
        check_choice("rule", self.rule, CUT_RULES)
        check_choice("optimizer", self.optimizer, tuple(_OPTIMIZERS))
        check_positive(rate=1.0 if self.rate is None else self.rate, head_factor=self.head_factor)
        if not (self.memory >= 0 and math.isfinite(self.memory)):
            raise InvalidArgumentError(f"memory must be at least 0 GiB, got {self.memory}")
        if self.window < 2 or self.steps < 0 or self.quadlets < 0 or self.triplets < 0:
            raise InvalidArgumentError(
                "window must be at least 2, and steps, quadlets and triplets at least 0, "
                f"got {self.window}, {self.steps}, {self.quadlets} and {self.triplets}"
            )
        if self.quadlets + self.triplets == 0:
            raise InvalidArgumentError("quadlets or triplets must be at least 1, got 0 of both")
        numbers = (self.learning_rate, self.weight_decay, self.clip, self.margin)
        if not (self.learning_rate > 0 and self.weight_decay >= 0 and self.clip > 0) or not all(
            math.isfinite(number) for number in numbers
        ):
            raise InvalidArgumentError(
                "learning_rate and clip must be above 0, weight_decay at least 0, and these and margin finite, "
                f"got {self.learning_rate}, {self.clip}, {self.weight_decay} and {self.margin}"
            )

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> ShotRecipe:
        """Create a recipe from a mapping, for example the ``[shots]`` table of a TOML file.

        Raises:
            InvalidArgumentError: A name is unknown, or a value has the wrong type or is out of range.
        """
        if "loss" not in values:
            raise InvalidArgumentError(f"[shots] must set loss to one of {', '.join(SHOT_LOSSES)}")
        return from_table(cls, values, "shots")


@dataclass(frozen=True, slots=True)
class ShotTraining:
    """Result of a training run.

    Attributes:
        losses: Loss of every step.
        distance: Mean pairwise distance of embeddings at the end, in [0, 2].
        collapsed: Whether all embeddings are nearly equal, so that the model is useless.
        seconds: Wall-clock time.
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
    store: StepStore | None = None,
    on_progress: Callable[[int, Mapping[str, float]], None] | None = None,
) -> ShotTraining:
    """Train the head of a clip encoder on features, or the full encoder on images.

    With features, the frame network does not change. Training is deterministic: the same model, clips and recipe give
    the same weights on the same machine, even after an interruption.

    Args:
        model: Model with ``head(features [B, T, F]) -> [B, D]`` (`models.ClipEncoder`), or with ``embed`` for images;
            trained in place and left in eval mode.
        clips: Labeled features or frames, with the window of the recipe.
        recipe: Loss, batches and number of steps.
        store: Saves the state at intervals and resumes from the saved state; None saves nothing.
        on_progress: Callback that receives the step number (from 1) and the loss terms.

    Raises:
        InvalidArgumentError: The windows differ, the labels do not provide the tuples that the loss needs, or the saved
            state belongs to another training run.
        TrainingError: The loss is not finite.
    """
    if clips.window != recipe.window:
        raise InvalidArgumentError(
            f"clips and recipe must have the same window, got {clips.window} and {recipe.window}"
        )
    objective = ShotObjective(loss=recipe.loss, margin=recipe.margin)
    if objective.uses_quadlets and recipe.quadlets and not clips.has_critical:
        raise InvalidArgumentError(
            f"labels must have critical shots for the loss {recipe.loss!r}, got none; "
            "label some, or use the loss 'triplet'"
        )
    generator = torch.Generator().manual_seed(recipe.seed)
    device = next(model.parameters()).device
    optimizer = _OPTIMIZERS[recipe.optimizer](
        _parameter_groups(model, clips, recipe), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    start = _mean_distance(model, clips, torch.Generator().manual_seed(recipe.seed))
    began = time.monotonic()
    store = store or StepStore()
    first = store.restore(model, optimizer, generator)

    def batches() -> Iterator[ShotBatch]:
        for _ in range(first, recipe.steps):
            yield clips.draw(
                quadlets=recipe.quadlets if objective.uses_quadlets else 0,
                triplets=recipe.triplets + (0 if objective.uses_quadlets else recipe.quadlets),
                generator=generator,
                critical_triplets=not objective.uses_quadlets,
            ).to(device)

    steps = take_steps(
        model,
        share_steps(objective, recipe.seed, first),  # type: ignore[arg-type]
        optimizer,
        batches(),
        clip=recipe.clip,
        first=first,
        on_gradients=average_gradients,
    )
    store.follow(steps, model, optimizer, generator, on_step=on_progress)
    model.eval()
    distance = _mean_distance(model, clips, generator)
    return ShotTraining(
        losses=tuple(terms["loss"] for terms in store.terms),
        distance=distance,
        collapsed=distance < collapse_threshold(start, _COLLAPSED_RATIO),
        seconds=time.monotonic() - began,
    )


def _parameter_groups(model: nn.Module, clips: ShotClips, recipe: ShotRecipe) -> list[dict[str, Any]]:
    if clips.has_images:
        assert isinstance(model, ClipEncoder)
        return model.parameter_groups(recipe.learning_rate, head_factor=recipe.head_factor)
    # Features bypass the frame network, so its weights are not trained.
    weights = [
        weight for name, weight in model.named_parameters() if weight.requires_grad and not name.startswith("backbone.")
    ]
    return [{"params": weights}]


@torch.no_grad()
def _mean_distance(model: nn.Module, clips: ShotClips, generator: torch.Generator) -> float:
    batch = clips.draw(quadlets=0, triplets=_WATCHED, generator=generator, critical_triplets=True)
    assert batch.triplets is not None
    model.eval()
    triplets = batch.triplets.to(next(model.parameters()).device)
    (embeddings,) = embed_tuples(model, triplets[:1])  # type: ignore[arg-type]
    return float(torch.pdist(embeddings).mean())
