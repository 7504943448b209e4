"""Angular loss on triplets, and its extension to quadlets, which is included to reproduce a negative result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import Loss, Reduction, options_of, reduce, squared_distance
from vidkin.metric.losses.quadlets import check_tuples

AngularForm = Literal["triplet", "quadlet"]


@check_arguments
def angular_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, alpha: float = 45.0, reduction: Reduction = "mean"
) -> Tensor:
    """Compute ``max(0, ||a - p||^2 - 4 tan^2(alpha) ||n - (a + p) / 2||^2)``, alpha in degrees; see
    :class:`AngularLoss`."""
    a, p, n = check_tuples(anchor=anchor, positive=positive, negative=negative)
    return reduce(_angular(a, p, n, alpha), reduction)


@check_arguments
def angular_quadlet_loss(
    query: Tensor,
    positive: Tensor,
    intermediate: Tensor,
    negative: Tensor,
    *,
    alphas: tuple[float, float, float] = (36.0, 45.0, 45.0),
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute the sum of the angular losses of (q, p, n), (q, p, i) and (p, i, n); see :class:`AngularLoss`."""
    q, p, i, n = check_tuples(query=query, positive=positive, intermediate=intermediate, negative=negative)
    values = _angular(q, p, n, alphas[0]) + _angular(q, p, i, alphas[1]) + _angular(p, i, n, alphas[2])
    return reduce(values, reduction)


def _angular_of_form(
    first: Tensor,
    second: Tensor,
    third: Tensor,
    fourth: Tensor | None = None,
    alpha: float | tuple[float, float, float] | None = None,
    *,
    form: AngularForm = "triplet",
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute the loss of triplets or of quadlets."""
    if fourth is None:
        (angle,) = _angles(alpha, form)
        return angular_loss(first, second, third, alpha=angle, reduction=reduction)
    alpha1, alpha2, alpha3 = _angles(alpha, form)
    return angular_quadlet_loss(first, second, third, fourth, alphas=(alpha1, alpha2, alpha3), reduction=reduction)


class AngularLoss(Loss):
    """Angular loss, which bounds the angle at the negative instead of comparing distances.

    Triplet form: ``L = max(0, ||a - p||^2 - 4 tan^2(alpha) ||n - (a + p) / 2||^2)``; all distances are squared
    Euclidean, and embeddings are not normalized. Quadlet form: the sum over (q, p, n) with alpha1, (q, p, i) with
    alpha2, and (p, i, n) with alpha3, where alpha1 < alpha2 (the smaller the angle, the farther the third point must
    be). The paper on the radial loss reports that the quadlet form does not converge, because alpha3 is not ordered
    relative to the other two. This is the hinge on given tuples; packages that apply "angular loss" to the log-sum-exp
    over a batch return other values.

    Args:
        alpha: Degrees in (0, 90): one value for the triplet form, three for the quadlet form. None means 45 and
            (36, 45, 45), respectively; the sources give no values for quadlets.
        form: "triplet" takes three tensors, "quadlet" four, each [B, D].
        reduction: "mean" over the batch, "sum", or "none" for one value per tuple.

    Raises:
        InvalidArgumentError: The angles are out of range or order, or the number or shape of the tensors is wrong.

    Source: Wang et al., Deep metric learning with angular loss, ICCV 2017.
    """

    @options_of(_angular_of_form)
    def __init__(self) -> None:
        expected = 1 if self.form == "triplet" else 3
        if len(self.alphas) != expected or not all(0.0 < angle < 90.0 for angle in self.alphas):
            raise InvalidArgumentError(
                f"alpha must be {expected} angle(s) between 0 and 90 degrees for the {self.form} form, got {self.alpha}"
            )
        if self.form == "quadlet" and not self.alphas[0] < self.alphas[1]:
            raise InvalidArgumentError(f"alpha must have its first angle below its second, got {self.alpha}")

    @property
    def alphas(self) -> tuple[float, ...]:
        """The angles in degrees: one for the triplet form, three for the quadlet form."""
        return _angles(self.alpha, self.form)

    def forward(self, *members: Tensor) -> Tensor:
        """Compute the loss of (anchors, positives, negatives) or (queries, positives, intermediates, negatives)."""
        expected = 3 if self.form == "triplet" else 4
        if len(members) != expected:
            raise InvalidArgumentError(
                f"the {self.form} form must be called with {expected} tensors, got {len(members)}"
            )
        first, second, third, *others = members
        return self.compute(first, second, third, others[0] if others else None, **self.options)

    if TYPE_CHECKING:
        __call__ = forward


def _angles(alpha: float | tuple[float, float, float] | None, form: AngularForm) -> tuple[float, ...]:
    if alpha is None:
        return (45.0,) if form == "triplet" else (36.0, 45.0, 45.0)
    return alpha if isinstance(alpha, tuple) else (alpha,)


def _angular(anchor: Tensor, positive: Tensor, negative: Tensor, alpha: float) -> Tensor:
    slope = 4.0 * math.tan(math.radians(alpha)) ** 2
    middle = (anchor + positive) / 2.0
    return (squared_distance(anchor, positive) - slope * squared_distance(negative, middle)).relu()
