"""Measures for label vectors: normalized mutual information and accuracy."""

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
        A float in [0, 1]: 1 for equal partitions regardless of numbering, including if both have a single part;
        0 if only one of them has a single part.

    Raises:
        InvalidArgumentError: The tensors are not [N] integers with the same length N of at least 1.
    """
    _check_labels("clusters", clusters, labels)
    _, left, _ = _unique(clusters)
    _, right, _ = _unique(labels)
    rows, columns = int(left.max().item()) + 1, int(right.max().item()) + 1
    # Count only cells that occur, because many clusters and many labels form a sparse table.
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
        predicted: [N] integer classes, or [N, C] class scores, whose k highest count as predicted (ties in class
            order).
        labels: [N] integers.
        average: ``"micro"``: accuracy over all items. ``"macro"``: mean accuracy of the classes that occur in
            ``labels``, so that rare classes count as much as frequent ones.
        k: Number of predicted classes per item; above 1 only with scores.

    Returns:
        A float in [0, 1].

    Raises:
        InvalidArgumentError: Shapes do not match, there are no items, or a choice is unknown.
    """
    check_choice("average", average, ("micro", "macro"))
    if average == "macro":
        shares = accuracy_per_class(predicted, labels, k=k)
        return sum(shares.values()) / len(shares)
    return _is_correct(predicted, labels, k).double().mean().item()


@check_arguments
def accuracy_per_class(predicted: torch.Tensor, labels: torch.Tensor, *, k: int = 1) -> dict[int, float]:
    """Fraction of correct predictions for each class that occurs in ``labels``; arguments as for `accuracy`."""
    right = _is_correct(predicted, labels, k)
    classes, index, _ = _unique(labels)
    total = index.bincount(minlength=len(classes)).double()
    correct = index.bincount(weights=right.double(), minlength=len(classes))
    return dict(zip(classes.tolist(), (correct / total).tolist(), strict=True))


def _is_correct(predicted: torch.Tensor, labels: torch.Tensor, k: int) -> torch.Tensor:
    if k < 1 or (k > 1 and predicted.ndim != 2):
        raise InvalidArgumentError(f"k must be 1, or more if predicted is [N, C] class scores, got {k}")
    if predicted.ndim == 2:
        best = predicted.sort(dim=1, descending=True, stable=True).indices[:, :k]
        _check_labels("predicted", best[:, 0], labels)
        return (best == labels.unsqueeze(1)).any(dim=1)
    _check_labels("predicted", predicted, labels)
    return predicted == labels


def _unique(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the sorted distinct values, the index of each item's value among them, and their counts."""
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
