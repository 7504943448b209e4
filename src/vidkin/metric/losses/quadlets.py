"""Losses on given triplets and quadlets of embeddings: triplet, quadlet and radial loss."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import (
    Loss,
    NotNegative,
    Positive,
    Reduction,
    options_of,
    reduce,
    squared_distance,
    to_full_precision,
)


class LossOnQuadlets(Loss):
    """Base class for losses on given quadlets."""

    def forward(self, query: Tensor, positive: Tensor, intermediate: Tensor, negative: Tensor) -> Tensor:
        """Compute the loss of B quadlets, each part [B, D]: a scalar, or [B] for reduction "none"."""
        return self.compute(query, positive, intermediate, negative, **self.options)

    if TYPE_CHECKING:
        __call__ = forward


def check_tuples(**members: Tensor) -> tuple[Tensor, ...]:
    """Check the members of B tuples and return them in full precision.

    Raises:
        InvalidArgumentError: The members do not all have the same shape [B, D].
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in members.items()}
    if len(set(shapes.values())) != 1 or any(len(shape) != 2 for shape in shapes.values()):
        raise InvalidArgumentError(f"members of a tuple must have the same shape [B, D], got {shapes}")
    return tuple(to_full_precision(tensor) for tensor in members.values())


# A quadlet is (q, p, i, n): query, positive (same subcategory), intermediate (same category, other subcategory) and
# negative (other category), each [B, D]. All distances here are *squared* Euclidean, d(a, b) = ||a - b||_2^2, and
# nothing is normalized here; this is left to the encoder.


# The theorem on the radial loss requires the negative to be at least three radii from the center.
GUARANTEED_MULTIPLIER = 3.0


@check_arguments
def triplet_loss(
    query: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: NotNegative = 0.7,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute max(0, margin + d(q, p) - d(q, n)) with squared distances; see :class:`TripletLoss`."""
    q, p, n = check_tuples(query=query, positive=positive, negative=negative)
    return reduce(_hinge(q, p, q, n, margin), reduction)


@check_arguments
def quadlet_loss(
    query: Tensor,
    positive: Tensor,
    intermediate: Tensor,
    negative: Tensor,
    g1: float = 0.7,
    g2: float = 0.3,
    g3: float = 0.5,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute the sum of the three hinges of a quadlet; see :class:`QuadletLoss`."""
    q, p, i, n = check_tuples(query=query, positive=positive, intermediate=intermediate, negative=negative)
    values = _hinge(q, p, q, n, g1) + _hinge(q, p, q, i, g2) + _hinge(p, i, p, n, g3)
    return reduce(values, reduction)


@check_arguments
def radial_loss(
    query: Tensor,
    positive: Tensor,
    intermediate: Tensor,
    negative: Tensor,
    c: Positive = 3.0,
    margin: NotNegative = 0.3,
    *,
    detach_radius: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """Keep the negative at least c radii from the center of the cluster, plus a triplet term; see
    :class:`RadialLoss`."""
    q, p, i, n = check_tuples(query=query, positive=positive, intermediate=intermediate, negative=negative)
    center = (q + p + i) / 3.0
    # Only R^2 is needed; taking no root keeps the gradient of a cluster of equal points at 0 instead of NaN.
    radius = squared_distance(q, center).maximum(squared_distance(p, center))
    radius = radius.maximum(squared_distance(i, center))
    if detach_radius:
        radius = radius.detach()
    outside = (c * c * radius - squared_distance(n, center)).relu()
    return reduce(outside + _hinge(q, p, q, i, margin), reduction)


class TripletLoss(Loss):
    """Triplet loss on given triplets.

    ``L = max(0, margin + d(q, p) - d(q, n))``; d is squared Euclidean, and embeddings are not normalized.

    Args:
        margin: Gap g between the two squared distances, 0 or more. 0.7 is the published value for unit vectors
            and triplets of shots (squared distances of unit vectors are in [0, 4]).
        reduction: "mean" over the batch, "sum", or "none" for one value per triplet.

    Call it with query, positive, negative, each [B, D]; it returns a scalar (or [B]), 0 or more. An empty batch gives
    0. Half precision is computed in float32.

    Raises:
        InvalidArgumentError: The shapes differ or are not [B, D], or the margin is negative.

    Source: Wang et al., Learning fine-grained image similarity with deep ranking, CVPR 2014.
    """

    @options_of(triplet_loss)
    def __init__(self) -> None:
        """Options as in `triplet_loss`."""

    def forward(self, query: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compute the :func:`triplet_loss` of queries, positives and negatives, each [N, D]."""
        return triplet_loss(query, positive, negative, **self.options)

    if TYPE_CHECKING:
        __call__ = forward


class QuadletLoss(LossOnQuadlets):
    """Quadlet loss: the three order relations of a quadlet as hinges.

    ``L = max(0, g1 + d(q, p) - d(q, n)) + max(0, g2 + d(q, p) - d(q, i)) + max(0, g3 + d(p, i) - d(p, n))``;
    d is squared Euclidean, and embeddings are not normalized.

    Args:
        g1: Gap between positive and negative, as seen from the query.
        g2: Gap between positive and intermediate, as seen from the query.
        g3: Gap between intermediate and negative, as seen from the positive; ``0 <= g2 <= g3 <= g1`` is required.
        reduction: "mean" over the batch, "sum", or "none" for one value per quadlet.

    Call it with query, positive, intermediate, negative, each [B, D]; it returns a scalar (or [B]), 0 or more.

    Raises:
        InvalidArgumentError: The gaps are out of order, or the shapes differ or are not [B, D].

    Source: Radial loss for learning fine-grained video similarity metric, eq. 3-6.
    """

    @options_of(quadlet_loss)
    def __init__(self) -> None:
        check_gaps(self.g1, self.g2, self.g3)


class RadialLoss(LossOnQuadlets):
    """Radial loss: the negative must be at least c radii from the center of query, positive and intermediate.

    ``L = max(0, (c R)^2 - ||n - X||^2) + max(0, margin + d(q, p) - d(q, i))`` with ``X = (q + p + i) / 3`` and
    ``R`` the largest plain distance of q, p, i to X; d is squared Euclidean, and embeddings are not normalized.
    With c >= 3, a loss of 0 implies d(q, p), d(q, i) <= d(q, n) and d(p, i) <= d(p, n), and the triplet term with a
    margin adds d(q, p) < d(q, i). The relations are strict for R > 0, with one exception at c = 3: p and i (or q and
    one of them) on opposite sides of the sphere, with n on the same line at exactly 3 R.

    Args:
        c: Minimum distance of the negative from the center in radii, above 0. Values below 3 void the guarantee and
            raise a warning.
        margin: Gap m of the triplet term, 0 or more.
        detach_radius: Whether to stop the gradient at R. As published (False), the gradient also shrinks the sphere,
            possibly faster than it pushes the negative away; if all points coincide, there is no radial loss. Use
            True, or a small learning rate, if training collapses.
        reduction: "mean" over the batch, "sum", or "none" for one value per quadlet.

    Call it with query, positive, intermediate, negative, each [B, D]; it returns a scalar (or [B]), 0 or more. Points
    that tie for R share its subgradient equally.

    Raises:
        InvalidArgumentError: c is not above 0, the margin is negative, or the shapes differ or are not [B, D].

    Source: Radial loss for learning fine-grained video similarity metric, eq. 8 and 12; the gradients are in its
    supplement (whose eq. 17 lacks a factor of 2).
    """

    @options_of(radial_loss)
    def __init__(self) -> None:
        warn_without_guarantee(self.c)


def check_gaps(g1: float, g2: float, g3: float) -> None:
    """Raise :class:`InvalidArgumentError` unless the gaps are in order."""
    if not 0.0 <= g2 <= g3 <= g1:
        raise InvalidArgumentError(f"gaps must be 0 <= g2 <= g3 <= g1, got g1={g1}, g2={g2}, g3={g3}")


def warn_without_guarantee(c: float) -> None:
    """Warn if c is below 3; call this from the ``__init__`` of a loss, so that the warning refers to its caller."""
    if c < GUARANTEED_MULTIPLIER:
        warnings.warn(f"c is {c}; below 3, a radial loss of 0 does not imply the order of the quadlet", stacklevel=4)


def _hinge(a: Tensor, b: Tensor, c: Tensor, d: Tensor, margin: float) -> Tensor:
    return (margin + squared_distance(a, b) - squared_distance(c, d)).relu()
