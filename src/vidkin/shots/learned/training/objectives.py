"""Objectives for shots and critical clips: triplets of ordinary shots and quadlets of critical ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from vidkin._base.checks import check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import quadlet_loss, radial_loss, triplet_loss
from vidkin.models.processes.shares import compute_in_shares
from vidkin.shots.learned.encoding import ShotModel
from vidkin.shots.learned.training.clips import ShotBatch

__all__ = ["SHOT_LOSSES", "ShotLoss", "ShotObjective", "embed_tuples"]

ShotLoss = Literal["triplet", "quadlet", "radial", "radial_detached"]

SHOT_LOSSES: tuple[ShotLoss, ...] = get_args(ShotLoss)
"""``radial`` has the published gradient; ``radial_detached`` has no gradient through the radius."""


@dataclass(frozen=True, kw_only=True)
class ShotObjective:
    """Loss of a step: the loss of the quadlets plus the triplet loss of the triplets, as in the sources.

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

    def __call__(self, model: ShotModel, batch: ShotBatch) -> dict[str, Tensor]:
        """Terms by name; ``loss``, their sum, is minimized.

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
                terms["quadlets"] = radial_loss(
                    q, p, i, n, c=self.c, margin=self.radial_margin, detach_radius=detached
                )
        if batch.triplets is not None:
            q, p, n = embed_tuples(model, batch.triplets)
            terms["triplets"] = triplet_loss(q, p, n, margin=self.margin)
        if not terms:
            raise InvalidArgumentError(
                f"the batch must have tuples that the loss {self.loss!r} can use, got none"
            )
        return {**terms, "loss": sum(terms.values(), start=next(iter(terms.values())).new_zeros(()))}


def embed_tuples(model: ShotModel, clips: Tensor) -> tuple[Tensor, ...]:
    """Embeddings of the K parts of tuples in one pass: K tensors [B, D]; several processes share the clips.

    Args:
        model: Model with ``head`` for features and ``embed`` for images.
        clips: [K, B, W, F] features, or [K, B, W, S, S, 3] uint8 images.
    """
    parts, batch = clips.shape[:2]
    flat = clips.flatten(0, 1)

    def embed(rows: slice) -> Tensor:
        if flat.dtype == torch.uint8:
            images = flat[rows].movedim(-1, -3).float() / 255
            return model.embed(images)  # type: ignore[attr-defined, no-any-return]
        return model.head(flat[rows])

    return compute_in_shares(embed, len(flat)).view(parts, batch, -1).unbind(0)
