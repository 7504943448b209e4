"""Training objective of a student: imitate the teacher, distinguish images, and preserve the order of three levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses import quad_linear_ap_loss, radial_loss
from vidkin_research.frame_encoder.material import Batch

__all__ = [
    "ObjectiveSettings",
    "Order",
    "objective_terms",
    "order_by_average_precision",
    "order_by_radius",
    "quadlets_in",
    "spread",
]

Order = Literal["quad_linear", "radial", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveSettings:
    """Loss weights and constants of the objective.

    Attributes:
        order: The order-preserving loss for the three levels.
        plain: Weight of the cosine to the teacher embedding of the unedited image.
        same: Weight of the cosine to the teacher embedding of the same edited view, for views that the teacher embeds.
        contrast: Weight of InfoNCE against the teacher embeddings of other images.
        entropy: Weight of the entropy term, which spreads the vectors.
        ordered: Weight of the order-preserving loss.
        temperature: Temperature of InfoNCE.
    """

    order: Order = "quad_linear"
    plain: float = 1.0
    same: float = 1.0
    contrast: float = 0.25
    entropy: float = 0.05
    ordered: float = 0.5
    temperature: float = 0.07

    def __post_init__(self) -> None:
        if self.order not in ("quad_linear", "radial", "none"):
            raise InvalidArgumentError(f"order must be quad_linear, radial or none, got {self.order!r}")
        if self.temperature <= 0:
            raise InvalidArgumentError(f"temperature must be above 0, got {self.temperature}")


def objective_terms(
    vectors: Tensor, batch: Batch, bank: Tensor, bank_groups: Tensor, settings: ObjectiveSettings
) -> dict[str, Tensor]:
    """Compute the weighted loss terms, whose sum is minimized.

    Args:
        vectors: [N, D] unit vectors of the student.
        batch: The views.
        bank: [M, D] teacher embeddings of other images.
        bank_groups: [M] groups of these images.
        settings: Weights and constants.
    """
    plain = 1.0 - (vectors * batch.plain).sum(dim=1).mean()
    terms = {
        "plain": settings.plain * plain,
        "contrast": settings.contrast * _contrast(vectors, batch, bank, bank_groups, settings.temperature),
        "entropy": settings.entropy * spread(vectors, batch.moments),
    }
    if len(batch.shown):
        terms["same"] = settings.same * (1.0 - (vectors[batch.shown] * batch.seen).sum(dim=1).mean())
    if settings.order != "none":
        order = order_by_average_precision if settings.order == "quad_linear" else order_by_radius
        terms["ordered"] = settings.ordered * order(vectors, batch.moments, batch.groups)
    return terms


def _contrast(vectors: Tensor, batch: Batch, bank: Tensor, bank_groups: Tensor, temperature: float) -> Tensor:
    """InfoNCE with the teacher embedding of the same image as the positive and those of other groups as negatives."""
    own = (vectors * batch.plain).sum(dim=1, keepdim=True)
    others = (vectors @ bank.T).masked_fill(batch.groups[:, None] == bank_groups, -torch.inf)
    logits = torch.cat([own, others], dim=1) / temperature
    return (logits.logsumexp(dim=1) - logits[:, 0]).mean()


def spread(vectors: Tensor, moments: Tensor) -> Tensor:
    """Entropy term of SSCD (KoLeo): negative logarithm of the distance to the nearest vector of another moment."""
    same = moments[:, None] == moments
    products = (vectors @ vectors.T).masked_fill(same, -1.0)
    distances = (2.0 - 2.0 * products.max(dim=1).values).clamp(min=1e-6).sqrt()
    return -distances.log().mean()


def order_by_average_precision(vectors: Tensor, moments: Tensor, groups: Tensor) -> Tensor:
    """QuadLinear-AP at two levels: the same moment before everything else, and the same location before other ones."""
    scores = vectors @ vectors.T
    same_moment = moments[:, None] == moments
    same_place = groups[:, None] == groups
    first = quad_linear_ap_loss(scores, same_moment.float())
    # Leave the same moment out of the second list, where it would only push other moments down.
    second = quad_linear_ap_loss(scores, same_place.float().masked_fill(same_moment, -1.0))
    return first + second


def order_by_radius(vectors: Tensor, moments: Tensor, groups: Tensor) -> Tensor:
    """Radial loss on the quadlets of a batch, see :func:`quadlets_in`."""
    members = quadlets_in(vectors, moments, groups)
    # No gradient through the radius: with it, clusters shrink faster than negatives are pushed away.
    return radial_loss(*members, detach_radius=True) if len(members[0]) else vectors.sum() * 0.0


def quadlets_in(vectors: Tensor, moments: Tensor, groups: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the quadlets of a batch as four tensors [B, D]: two views of a moment, the first view of another moment of
    its location, and the nearest view of another location; B is 0 if the batch has none."""
    same_moment = moments[:, None] == moments
    same_place = groups[:, None] == groups
    others = same_moment & ~torch.eye(len(moments), dtype=torch.bool)
    middle = same_place & ~same_moment
    usable = (others.any(dim=1) & middle.any(dim=1) & (~same_place).any(dim=1)).nonzero()[:, 0]
    products = (vectors @ vectors.T).detach()
    positive = others.float()[usable].argmax(dim=1)
    intermediate = middle.float()[usable].argmax(dim=1)
    negative = products.masked_fill(same_place, -2.0)[usable].argmax(dim=1)
    return vectors[usable], vectors[positive], vectors[intermediate], vectors[negative]
