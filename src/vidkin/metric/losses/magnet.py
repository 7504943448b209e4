"""Magnet loss, which pulls the items of a cluster together and away from clusters of other classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import (
    Loss,
    NotNegative,
    Reduction,
    options_of,
    squared_distance,
    squared_distances,
    weighted_mean,
)
from vidkin.metric.losses.label_pairs import resolve_pairs

# Lower than the logarithm of any distance. It marks a missing cluster; -inf would give NaN gradients.
ABSENT = -1e30


@check_arguments
def magnet_loss(
    embeddings: Tensor,
    labels: Tensor,
    clusters: Tensor | None = None,
    reference: Tensor | None = None,
    reference_labels: Tensor | None = None,
    reference_clusters: Tensor | None = None,
    alpha: NotNegative = 1.0,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compare each item's own cluster with the clusters of all other classes; see :class:`MagnetLoss`."""
    pairs = resolve_pairs(embeddings, labels, reference, reference_labels, None)
    if pairs.within and reference_clusters is None:
        reference_clusters = clusters
    if (clusters is None) != (reference_clusters is None):
        raise InvalidArgumentError("clusters and reference_clusters must be given together, or neither")
    own_mean, own_size = _cluster_means(pairs.same_class, clusters, reference_clusters, pairs.references)
    own = squared_distance(pairs.queries, own_mean)
    usable = own_size > 0
    own = torch.where(usable, own, 0.0)
    variance = own.sum() / (usable.sum() - 1).clamp_min(1)
    # The clamp keeps the loss finite if clusters shrink to points.
    scale = 1.0 / (2.0 * variance.clamp_min(torch.finfo(own.dtype).eps))

    among = pairs.same_class
    if reference is not None and reference_labels is not None:
        among = resolve_pairs(reference, reference_labels, None, None, None).same_class
    means, size = _cluster_means(among, reference_clusters, reference_clusters, pairs.references)
    # Summing over members with weight 1 / size is equivalent to summing over clusters, whose number would have to be
    # read from the device.
    logits = -squared_distances(pairs.queries, means) * scale - size.clamp_min(1.0).log()[None, :]
    others = torch.where(pairs.negatives, logits, ABSENT)
    log_other = others.logsumexp(dim=1) if others.shape[1] else own + ABSENT
    values = torch.where(usable, (own * scale + alpha + log_other).relu(), 0.0)
    return weighted_mean(values, usable, reduction)


class MagnetLoss(Loss):
    """Magnet loss on a batch of clusters.

    With mu the mean of a cluster in the batch and ``s^2 = sum_i ||x_i - mu(x_i)||^2 / (N - 1)``:
    ``L_i = max(0, -log( exp(-||x_i - mu(x_i)||^2 / (2 s^2) - alpha) / sum over clusters mu of other classes of
    exp(-||x_i - mu||^2 / (2 s^2)) ))``. Distances are squared Euclidean, and embeddings are not normalized. Gradients
    flow through the means and through s^2. (A well-known port divides by 2 s^4.)

    Args:
        alpha: Separation between an item's own cluster and the others, in units of 2 s^2, 0 or more.
        reduction: "mean" over the queries that have a cluster, "sum", or "none" for [N].

    Call it with ``(embeddings [N, D], labels [N] or [N, L], clusters [N] or None, reference, reference_labels,
    reference_clusters)``. A cluster consists of the items with equal label *and* equal cluster number; without cluster
    numbers, each class is one cluster. A batch should contain a seed cluster and its nearest impostor clusters.
    With a reference set, the cluster means are computed over the references; queries without a cluster there contribute
    nothing. Cost: O(N M). Without clusters of other classes, the loss is 0 with a gradient.

    Raises:
        InvalidArgumentError: Shapes do not match, only one side has clusters, or alpha is negative.

    Source: Rippel, Paluri, Dollar, Bourdev, Metric learning with adaptive density discrimination, ICLR 2016, eq. 4-5.
    """

    @options_of(magnet_loss)
    def __init__(self) -> None:
        """Options as in `magnet_loss`."""

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        clusters: Tensor | None = None,
        reference: Tensor | None = None,
        reference_labels: Tensor | None = None,
        reference_clusters: Tensor | None = None,
    ) -> Tensor:
        references = (reference, reference_labels, reference_clusters)
        return magnet_loss(embeddings, labels, clusters, *references, **self.options)

    if TYPE_CHECKING:
        __call__ = forward


def _cluster_means(
    same_class: Tensor, clusters: Tensor | None, reference_clusters: Tensor | None, references: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the mean [N, D] of each row's cluster among the references, and the size of the cluster [N]."""
    same_cluster = same_class
    if clusters is not None and reference_clusters is not None:
        expected = tuple(same_class.shape)
        if (*clusters.shape, *reference_clusters.shape) != expected:
            raise InvalidArgumentError(
                f"clusters must be one number for each embedding, shapes ({expected[0]},) and ({expected[1]},), "
                f"got {tuple(clusters.shape)} and {tuple(reference_clusters.shape)}"
            )
        same_cluster = same_class & (clusters[:, None] == reference_clusters[None, :])
    members = same_cluster.to(references.dtype)
    size = members.sum(dim=1)
    with torch.autocast(device_type=references.device.type, enabled=False):
        # Center on the mean of the set, as for the distances, to preserve precision far from the origin.
        origin = references.detach().sum(dim=0) / max(references.shape[0], 1)
        means = members @ (references - origin) / size.clamp_min(1.0)[:, None] + origin
    return means, size
