"""Quadruplet losses of Law et al. 2017 and Chen et al. 2017, which are baselines for the radial loss.

All distances here are *squared* Euclidean, d(a, b) = ||a - b||_2^2, and embeddings are not normalized.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_not_negative
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import Loss, NotNegative, Reduction, options_of, reduce, squared_distance
from vidkin.metric.losses.quadlets import LossOnQuadlets, check_tuples


@check_arguments
def quadrupletwise_inequality(
    a: Tensor, b: Tensor, c: Tensor, d: Tensor, *, delta: float = 1.0, reduction: Reduction = "mean"
) -> Tensor:
    """Compute the constraint D(a, b) + delta <= D(c, d) as ``max(0, delta + D(a, b) - D(c, d))``, D squared Euclidean.

    Args:
        a, b, c, d: The four items of each constraint, [B, D].
        delta: 1 for a strict inequality, 0 to allow equality.
        reduction: "mean", "sum" or "none".

    Source: Law, Thome, Cord, Learning a distance metric from relative comparisons between quadruplets of images,
    IJCV 2017.
    """
    check_not_negative(delta=delta)
    a, b, c, d = check_tuples(a=a, b=b, c=c, d=d)
    return reduce((delta + squared_distance(a, b) - squared_distance(c, d)).relu(), reduction)


@check_arguments
def quadrupletwise_equality(
    a: Tensor, b: Tensor, c: Tensor, d: Tensor, *, tolerance: float = 0.0, reduction: Reduction = "mean"
) -> Tensor:
    """Compute the constraint D(a, b) = D(c, d) as ``max(0, |D(a, b) - D(c, d)| - tolerance)``, D squared Euclidean.

    With tolerance 0, it equals the sum of the inequalities D(a, b) <= D(c, d) and D(c, d) <= D(a, b) with delta 0, as
    in Law et al. 2017. Other arguments are as for :func:`quadrupletwise_inequality`.
    """
    check_not_negative(tolerance=tolerance)
    a, b, c, d = check_tuples(a=a, b=b, c=c, d=d)
    difference = squared_distance(a, b) - squared_distance(c, d)
    return reduce((difference.abs() - tolerance).relu(), reduction)


@check_arguments
def quadrupletwise_loss(
    query: Tensor,
    positive: Tensor,
    intermediate: Tensor,
    negative: Tensor,
    delta: NotNegative = 1.0,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute the sum of the three quadruplet-wise constraints of a quadlet; see :class:`QuadrupletwiseLoss`."""
    q, p, i, n = check_tuples(query=query, positive=positive, intermediate=intermediate, negative=negative)
    near, middle, far = squared_distance(q, p), squared_distance(q, i), squared_distance(q, n)
    values = (delta + near - middle).relu() + (delta + middle - far).relu()
    values = values + (delta + squared_distance(p, i) - squared_distance(p, n)).relu()
    return reduce(values, reduction)


@check_arguments
def adaptive_margins(
    anchor: Tensor,
    positive: Tensor,
    negative1: Tensor,
    negative2: Tensor,
    *,
    weights: tuple[float, float] = (1.0, 0.5),
) -> tuple[Tensor, Tensor]:
    """Compute margins that follow the batch: ``alpha_k = w_k (mu_n - mu_p)``, constants in the backward pass.

    mu_p is the mean of d(a, p) over the batch, mu_n the mean over its negative pairs (a, n1) and (n1, n2). As
    published, margins are not clamped: while negatives are nearer than positives, the margins are negative.

    Returns:
        alpha_1 and alpha_2, two scalars without gradient (0 for an empty batch).
    """
    a, p, n1, n2 = check_tuples(anchor=anchor, positive=positive, negative1=negative1, negative2=negative2)
    a, p, n1, n2 = a.detach(), p.detach(), n1.detach(), n2.detach()
    near = reduce(squared_distance(a, p), "mean")
    far = reduce(squared_distance(a, n1) + squared_distance(n1, n2), "mean") / 2.0
    return weights[0] * (far - near), weights[1] * (far - near)


@check_arguments
def quadruplet_loss(
    anchor: Tensor,
    positive: Tensor,
    negative1: Tensor,
    negative2: Tensor,
    margins: tuple[float, float] | None = None,
    *,
    weights: tuple[float, float] = (1.0, 0.5),
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute the quadruplet loss of Chen et al.; see :class:`QuadrupletLoss`."""
    a, p, n1, n2 = check_tuples(anchor=anchor, positive=positive, negative1=negative1, negative2=negative2)
    alpha1, alpha2 = margins if margins is not None else adaptive_margins(a, p, n1, n2, weights=weights)
    near = squared_distance(a, p)
    values = (near - squared_distance(a, n1) + alpha1).relu()
    return reduce(values + (near - squared_distance(n1, n2) + alpha2).relu(), reduction)


class QuadrupletwiseLoss(LossOnQuadlets):
    """Quadruplet-1: quadruplet-wise constraints between the pairs of a quadlet.

    ``L = max(0, delta + D(q, p) - D(q, i)) + max(0, delta + D(q, i) - D(q, n)) + max(0, delta + D(p, i) - D(p, n))``;
    D is squared Euclidean, and embeddings are not normalized. The source learns a linear metric; the deep loss omits
    its regularizer and keeps delta. The other functions in this module are the single constraints, including equality.

    Args:
        delta: 1 (strict, the published value), 0 (not strict), or any other number of at least 0.
        reduction: "mean" over the batch, "sum", or "none" for one value per quadlet.

    Call it with query, positive, intermediate, negative, each [B, D]; it returns a scalar (or [B]), 0 or more.

    Raises:
        InvalidArgumentError: delta is negative, or the shapes differ or are not [B, D].

    Source: Law, Thome, Cord, IJCV 2017.
    """

    @options_of(quadrupletwise_loss)
    def __init__(self) -> None:
        """Options as in `quadrupletwise_loss`."""


class QuadrupletLoss(Loss):
    """Quadruplet-2: a triplet hinge plus a hinge against a pair from two other classes, with margins from the batch.

    ``L = max(0, d(a, p) - d(a, n1) + alpha1) + max(0, d(a, p) - d(n1, n2) + alpha2)``; d is squared Euclidean (the
    source learns a two-way score instead), and embeddings are not normalized. n1 and n2 differ in class from each
    other and from a. Sample negatives from intermediates and negatives (variant a) or only from negatives (variant b).

    Args:
        margins: Fixed (alpha1, alpha2), or None (the published form) for ``w (mu_n - mu_p)`` of each batch,
            see :func:`adaptive_margins`.
        weights: (w1, w2) of the adaptive margins, w1 >= w2 >= 0.
        reduction: "mean" over the batch, "sum", or "none" for one value per tuple.

    Call it with anchor, positive, negative1, negative2, each [B, D]; it returns a scalar (or [B]), 0 or more.

    Raises:
        InvalidArgumentError: Margins or weights are negative, the second is above the first, or the shapes differ or
            are not [B, D].

    Source: Chen et al., Beyond triplet loss: a deep quadruplet network for person re-identification, CVPR 2017.
    """

    @options_of(quadruplet_loss)
    def __init__(self) -> None:
        for name, pair in (("margins", self.margins), ("weights", self.weights)):
            if pair is not None and not pair[0] >= pair[1] >= 0.0:
                raise InvalidArgumentError(f"{name} must be two numbers with first >= second >= 0, got {pair}")

    def forward(self, anchor: Tensor, positive: Tensor, negative1: Tensor, negative2: Tensor) -> Tensor:
        """Compute the :func:`quadruplet_loss` of anchors, positives and two negatives of different classes, each
        [N, D]."""
        return quadruplet_loss(anchor, positive, negative1, negative2, **self.options)

    if TYPE_CHECKING:
        __call__ = forward
