"""Measures on label vectors: clustering agreement and accuracy."""

from __future__ import annotations

from typing import Literal

import torch

from vidkin._base.arguments import check_arguments
from vidkin._base.values import check_choice
from vidkin.errors import InvalidArgumentError


@check_arguments
def normalized_mutual_information(clusters: torch.Tensor, labels: torch.Tensor) -> float:
    """Normalized mutual information I(C; L) / sqrt(H(C) H(L)) of two partitions of the same items.

    Args:
        clusters: [N] integers, for example the k-means cluster of each embedding.
        labels: [N] integers.

    Returns:
        A float in [0, 1]: 1 for equal partitions whatever their numbering, and when both have one part only;
        0 when one of them alone has one part.

    Raises:
        InvalidArgumentError: The two are not [N] integers of one length N of at least 1.
    """
    _check_labels("clusters", clusters, labels)
    _, left, _ = _unique(clusters)
    _, right, _ = _unique(labels)
    rows, columns = int(left.max().item()) + 1, int(right.max().item()) + 1
    # Only the cells that occur: k-means with many clusters against many labels is sparse.
    cells, _, joint_count = _unique(left * columns + right)
    joint = joint_count.double() / len(labels)
    a = left.bincount(minlength=rows).double() / len(labels)
    b = right.bincount(minlength=columns).double() / len(labels)
    if rows == 1 and columns == 1:
        return 1.0
    if rows == 1 or columns == 1:
        return 0.0
    outer = a[cells // columns] * b[cells % columns]
    information = (joint * (joint / outer).log()).sum()
    scale = ((a * a.log()).sum() * (b * b.log()).sum()).sqrt()
    return min(1.0, max(0.0, float((information / scale).item())))


@check_arguments
def accuracy(
    predicted: torch.Tensor, labels: torch.Tensor, *, average: Literal["micro", "macro"] = "micro", k: int = 1
) -> float:
    """Top-k accuracy.

    Args:
        predicted: [N] integer classes, or [N, C] class scores of which the k largest count (equal scores: the
            lower class first).
        labels: [N] integers.
        average: ``"micro"``: share of the items. ``"macro"``: mean over the classes that occur in ``labels``
            of the share of their items, so that rare classes count as much as frequent ones.
        k: Number of classes an item can name; above 1 only with scores.

    Returns:
        A float in [0, 1].

    Raises:
        InvalidArgumentError: Shapes do not match, there is no item, or a choice is unknown.
    """
    check_choice("average", average, ("micro", "macro"))
    if average == "macro":
        shares = accuracy_per_class(predicted, labels, k=k)
        return sum(shares.values()) / len(shares)
    return _right(predicted, labels, k).double().mean().item()


@check_arguments
def accuracy_per_class(predicted: torch.Tensor, labels: torch.Tensor, *, k: int = 1) -> dict[int, float]:
    """Share of correct predictions for each class that occurs in ``labels``; arguments as for `accuracy`."""
    right = _right(predicted, labels, k)
    classes, index, _ = _unique(labels)
    total = index.bincount(minlength=len(classes)).double()
    correct = index.bincount(weights=right.double(), minlength=len(classes))
    return dict(zip(classes.tolist(), (correct / total).tolist(), strict=True))


def _right(predicted: torch.Tensor, labels: torch.Tensor, k: int) -> torch.Tensor:
    if k < 1 or (k > 1 and predicted.ndim != 2):
        raise InvalidArgumentError(f"k must be 1, or more if predicted is [N, C] class scores, got {k}")
    if predicted.ndim == 2:
        best = predicted.sort(dim=1, descending=True, stable=True).indices[:, :k]
        _check_labels("predicted", best[:, 0], labels)
        return (best == labels.unsqueeze(1)).any(dim=1)
    _check_labels("predicted", predicted, labels)
    return predicted == labels


def _unique(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sorted values that occur, the number of each item's value among them, and how often each occurs."""
    unique: tuple[torch.Tensor, torch.Tensor, torch.Tensor] = torch.unique(
        values, return_inverse=True, return_counts=True
    )
    return unique


def _check_labels(name: str, given: torch.Tensor, labels: torch.Tensor) -> None:
    for what, tensor in ((name, given), ("labels", labels)):
        if tensor.ndim != 1 or tensor.is_floating_point():
            raise InvalidArgumentError(f"{what} must be [N] integers, got {list(tensor.shape)} {tensor.dtype}")
    if len(given) != len(labels) or len(labels) == 0:
        raise InvalidArgumentError(
            f"{name} and labels must have the same length of at least 1, got {len(given)} and {len(labels)}"
        )
