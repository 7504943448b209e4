"""Losses that compare embeddings with one center per class: center loss and triplet-center loss.

Distances are squared Euclidean; embeddings are not normalized. Class labels are integers in [0, C). The centers are the
only references of these losses. Shapes: C classes, N embeddings, D dimensions.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.values import check_choice, check_not_negative
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import (
    Reduction,
    reduce,
    squared_distance,
    squared_distances,
    to_full_precision,
)

CenterDistance = Literal["squared", "half"]
"""Squared Euclidean distance, or half of it."""


@check_arguments
def center_loss(embeddings: Tensor, labels: Tensor, centers: Tensor, *, reduction: Reduction = "sum") -> Tensor:
    """Compute ``1/2 ||x - c_y||^2`` for each embedding, summed by default; see :class:`CenterLoss`."""
    _check(embeddings, labels, centers)
    return reduce(0.5 * squared_distance(to_full_precision(embeddings), centers[labels]), reduction)


@check_arguments
@torch.no_grad()
def moved_centers(centers: Tensor, embeddings: Tensor, labels: Tensor, *, alpha: float = 0.5) -> Tensor:
    """Return the centers after one batch: ``c - alpha sum(c - x) / (1 + n)`` over the n embeddings x of each class.

    Centers of classes that are not in the batch do not move. The result is [C, D], without gradient.
    """
    _check(embeddings, labels, centers)
    embeddings = embeddings.detach().to(centers.dtype)
    sums = torch.zeros_like(centers).index_add_(0, labels, embeddings)
    ones = torch.ones(labels.shape[0], dtype=centers.dtype, device=centers.device)
    count = torch.zeros(centers.shape[0], dtype=centers.dtype, device=centers.device)
    count = count.index_add_(0, labels, ones)[:, None]
    return centers - alpha * (count * centers - sums) / (1.0 + count)


@check_arguments
def triplet_center_loss(
    embeddings: Tensor,
    labels: Tensor,
    centers: Tensor,
    *,
    margin: float = 1.0,
    distance: CenterDistance = "squared",
    reduction: Reduction = "mean",
) -> Tensor:
    """Compare the center of each item's class with the nearest other center; see :class:`TripletCenterLoss`."""
    _check(embeddings, labels, centers)
    check_choice("distance", distance, ("squared", "half"))
    distances = squared_distances(embeddings, centers)
    if distance == "half":
        distances = 0.5 * distances
    own = distances.gather(1, labels[:, None]).squeeze(1)
    if centers.shape[0] < 2:
        return reduce(own * 0.0, reduction)
    classes = torch.arange(centers.shape[0], device=labels.device)
    others = torch.where(classes[None, :] == labels[:, None], torch.inf, distances)
    # Gathering by index keeps infinities out of the gradient.
    nearest = distances.gather(1, others.argmin(dim=1, keepdim=True)).squeeze(1)
    return reduce((own + margin - nearest).relu(), reduction)


@check_constructor
class CenterLoss(nn.Module):
    """Center loss, which pulls each embedding toward the center of its class.

    ``L = 1/2 sum_i ||x_i - c_{y_i}||^2`` (squared Euclidean). Each training batch moves the centers, not by gradient
    descent but by ``c -= alpha sum(c - x) / (1 + n)`` over the n embeddings of the class. The loss is computed before
    the move; in eval mode, the centers do not move. The loss does not separate classes, so combine it with
    cross-entropy (lambda 0.003).

    Args:
        classes: Number of classes C.
        dimensions: Length D of the embeddings.
        alpha: Update rate of the centers, in [0, 1].
        centers: Initial centers [C, D]; None starts at 0.
        reduction: "sum" as published, "mean" over the batch, or "none" for [N].

    Call it with embeddings [N, D] and labels [N] in [0, C). With several processes, pass the gathered batch
    (:func:`vidkin.metric.distributed.gather_with_gradient`); otherwise, the centers of the processes drift apart.

    Raises:
        InvalidArgumentError: Shapes do not match, or alpha is out of range.

    Source: Wen et al., A discriminative feature learning approach for deep face recognition, ECCV 2016.
    """

    centers: Tensor

    def __init__(
        self,
        classes: int,
        dimensions: int,
        *,
        alpha: float = 0.5,
        centers: Tensor | None = None,
        reduction: Reduction = "sum",
    ) -> None:
        super().__init__()
        if not 0.0 <= alpha <= 1.0:
            raise InvalidArgumentError(f"alpha must be in [0, 1], got {alpha}")
        start = torch.zeros(classes, dimensions) if centers is None else centers.detach().clone()
        _check_start(start, classes, dimensions)
        self.register_buffer("centers", start)
        self.alpha = alpha
        self.reduction: Reduction = reduction

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Compute the :func:`center_loss` of embeddings [N, D] and labels [N]; in training mode, then move centers."""
        loss = center_loss(embeddings, labels, self.centers, reduction=self.reduction)
        if self.training:
            # In place, so that existing references to the buffer stay valid; the loss holds copies of the rows.
            self.centers.copy_(moved_centers(self.centers, embeddings, labels, alpha=self.alpha))
        return loss

    def extra_repr(self) -> str:
        return f"classes={self.centers.shape[0]}, dimensions={self.centers.shape[1]}, alpha={self.alpha}"


@check_constructor
class TripletCenterLoss(nn.Module):
    """Triplet-center loss: an item must be closer to the center of its class than to any other center, by a margin.

    ``L = max(0, D(x, c_y) + margin - min over j != y of D(x, c_j))`` with ``D = ||x - c||^2``, as used next to the
    softmax head of the two-head classifier (eq. 4); He et al. use half of D (``distance="half"``, with the margin
    in the same unit). The minimum is over *all* other centers, not only those of classes in the batch. The centers are
    parameters that are trained together with the network, so pass them to the optimizer.

    Args:
        classes: Number of classes C; with a single class, the loss is 0.
        dimensions: Length D of the embeddings.
        margin: Margin, 0 or more. D of unit vectors is at most 4 (half: 2); He et al. use 5 for vectors of any length.
        distance: ``"squared"`` or ``"half"``.
        centers: Initial centers [C, D]; None samples them with torch's global generator, with norms of about 1.
        reduction: "mean" over the batch, "sum" as published, or "none" for [N].

    Call it with embeddings [N, D] and labels [N] in [0, C).

    Raises:
        InvalidArgumentError: Shapes do not match, or the margin is negative.

    Source: He et al., Triplet-center loss for multi-view 3D object retrieval, CVPR 2018; squared in Taha et al.,
    Boosting standard classification architectures through a ranking regularizer, WACV 2020.
    """

    def __init__(
        self,
        classes: int,
        dimensions: int,
        *,
        margin: float = 1.0,
        distance: CenterDistance = "squared",
        centers: Tensor | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        check_not_negative(margin=margin)
        check_choice("distance", distance, ("squared", "half"))
        if centers is None:
            start = torch.randn(classes, dimensions) / max(dimensions, 1) ** 0.5
        else:
            start = centers.detach().clone()
        _check_start(start, classes, dimensions)
        self.centers = nn.Parameter(start)
        self.margin = margin
        self.distance: CenterDistance = distance
        self.reduction: Reduction = reduction

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Compute the :func:`triplet_center_loss` of embeddings [N, D] and labels [N]; its gradient trains centers."""
        return triplet_center_loss(
            embeddings, labels, self.centers, margin=self.margin, distance=self.distance, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        sizes = f"classes={self.centers.shape[0]}, dimensions={self.centers.shape[1]}"
        return f"{sizes}, margin={self.margin}, distance={self.distance!r}"


def _check(embeddings: Tensor, labels: Tensor, centers: Tensor) -> None:
    if embeddings.ndim != 2 or centers.ndim != 2 or embeddings.shape[1] != centers.shape[1]:
        raise InvalidArgumentError(
            f"embeddings and centers must have shapes [N, D] and [C, D], got {tuple(embeddings.shape)} and "
            f"{tuple(centers.shape)}"
        )
    if labels.shape != embeddings.shape[:1]:
        raise InvalidArgumentError(
            f"labels must be one class index for each embedding, shape ({embeddings.shape[0]},), "
            f"got {tuple(labels.shape)}"
        )


def _check_start(centers: Tensor, classes: int, dimensions: int) -> None:
    if classes < 1 or tuple(centers.shape) != (classes, dimensions):
        raise InvalidArgumentError(
            f"centers must have shape ({classes}, {dimensions}), classes by dimensions, with at least one class, "
            f"got {tuple(centers.shape)}"
        )
