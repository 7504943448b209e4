"""What the losses on embeddings share: precision, distances, label masks, reductions.

Shapes: N queries, M references, D dimensions, L label levels, B tuples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from vidkin.errors import InvalidArgumentError

__all__ = [
    "Distance",
    "Pairs",
    "Reduction",
    "check_choice",
    "check_not_negative",
    "check_tuples",
    "in_full_precision",
    "label_levels",
    "pairwise_distances",
    "reduce",
    "resolve_pairs",
    "squared_distance",
    "squared_distances",
    "weighted_mean",
]

Reduction = Literal["mean", "sum", "none"]
Distance = Literal["squared", "euclidean"]


def in_full_precision(tensor: Tensor) -> Tensor:
    """The tensor in float32 if it is in half precision, else as it is: hinges subtract nearly equal numbers."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def reduce(values: Tensor, reduction: Reduction) -> Tensor:
    """Mean, sum or the values themselves; the mean of nothing is 0 with a gradient attached, not NaN."""
    check_choice("reduction", reduction, get_args(Reduction))
    if reduction == "none":
        return values
    return values.sum() / max(values.numel(), 1) if reduction == "mean" else values.sum()


def weighted_mean(values: Tensor, counts: Tensor, reduction: Reduction) -> Tensor:
    """Reduce per-query sums over ``counts`` terms each: "mean" is over all terms, and 0 where there are none."""
    check_choice("reduction", reduction, get_args(Reduction))
    if reduction == "none":
        return values
    total = values.sum()
    return total if reduction == "sum" else total / counts.sum().clamp_min(1)


def squared_distance(first: Tensor, second: Tensor) -> Tensor:
    """||first - second||_2^2 row by row: [B, D] and [B, D] to [B]."""
    return (first - second).square().sum(dim=-1)


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """||first_i - second_j||_2^2 of every pair: [N, D] and [M, D] to [N, M], not below 0.

    One matrix product in float32 or better, also under autocast. Both sets are moved to the mean of the second,
    which changes no distance but keeps sets far from the origin from losing their digits.
    """
    first, second = in_full_precision(first), in_full_precision(second)
    with torch.autocast(device_type=first.device.type, enabled=False):
        origin = second.detach().sum(dim=0) / max(second.shape[0], 1)
        first, second = first - origin, second - origin
        norms = first.square().sum(dim=1)[:, None] + second.square().sum(dim=1)[None, :]
        return (norms - 2.0 * first @ second.T).clamp_min(0.0)


def pairwise_distances(first: Tensor, second: Tensor, distance: Distance) -> Tensor:
    """Squared or plain Euclidean distance of every pair, [N, M]; the plain one has gradient 0 at distance 0."""
    check_choice("distance", distance, get_args(Distance))
    squared = squared_distances(first, second)
    if distance == "squared":
        return squared
    apart = squared > 0.0
    # The inner where keeps the infinite slope of the root at 0 out of the graph; masking afterwards gives NaN.
    return torch.where(apart, torch.where(apart, squared, 1.0).sqrt(), 0.0)


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidArgumentError(f"{name} is {value!r}, allowed are {', '.join(map(repr, allowed))}")


def check_not_negative(**values: float) -> None:
    for name, value in values.items():
        if not value >= 0.0:
            raise InvalidArgumentError(f"{name} is {value}, allowed is a number from 0 up")


def check_tuples(**members: Tensor) -> tuple[Tensor, ...]:
    """The members of B tuples in full precision, after checking that all are [B, D]."""
    shapes = {name: tuple(tensor.shape) for name, tensor in members.items()}
    if len(set(shapes.values())) != 1 or any(len(shape) != 2 for shape in shapes.values()):
        raise InvalidArgumentError(f"members of a tuple must have one shape [B, D], but shapes are {shapes}")
    return tuple(in_full_precision(tensor) for tensor in members.values())


def label_levels(labels: Tensor, count: int, name: str) -> Tensor:
    """Labels [N] or [N, L] as [N, L], after checking that there is one row for each of ``count`` embeddings."""
    if labels.ndim not in (1, 2) or labels.shape[0] != count:
        raise InvalidArgumentError(
            f"{name} have shape {tuple(labels.shape)}, expected ({count},) or ({count}, levels): "
            "one row for each embedding"
        )
    return labels[:, None] if labels.ndim == 1 else labels


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Queries against references, and which of the pairs share a label.

    Attributes:
        queries: [N, D], float32 or better.
        references: [M, D]; the queries themselves when no reference set was given.
        same_class: [N, M] bool, equal at every label level (the pair of an item with itself included).
        same_category: [N, M] bool, equal at the first (coarsest) level.
        is_self: [N, M] bool, the reference is the query itself.
        within: True when references are the queries.
    """

    queries: Tensor
    references: Tensor
    same_class: Tensor
    same_category: Tensor
    is_self: Tensor
    within: bool

    @property
    def positives(self) -> Tensor:
        """[N, M] bool: another item of the query's class."""
        return self.same_class & ~self.is_self

    @property
    def negatives(self) -> Tensor:
        """[N, M] bool: an item of another class."""
        return ~self.same_class


def resolve_pairs(
    embeddings: Tensor,
    labels: Tensor,
    reference: Tensor | None,
    reference_labels: Tensor | None,
    self_offset: int | None,
) -> Pairs:
    """Check the arguments that every loss on (embeddings, labels) takes and build the masks of their pairs.

    Without a reference set the queries are their own references, self-pairs left out. With one, query i is
    reference ``self_offset + i``; with ``self_offset=None`` no reference is a query.
    """
    if embeddings.ndim != 2:
        raise InvalidArgumentError(f"embeddings have shape {tuple(embeddings.shape)}, expected [N, D]")
    if (reference is None) != (reference_labels is None):
        raise InvalidArgumentError("give reference and reference_labels together, or neither")
    levels = label_levels(labels, embeddings.shape[0], "labels")
    queries = in_full_precision(embeddings)
    if reference is None or reference_labels is None:
        if self_offset is not None:
            raise InvalidArgumentError(
                "self_offset says where the queries stand in a reference set: give one"
            )
        references, reference_levels, within = queries, levels, True
        offset: int | None = 0
    else:
        if reference.ndim != 2 or reference.shape[1] != embeddings.shape[1]:
            raise InvalidArgumentError(
                f"reference has shape {tuple(reference.shape)}, expected [M, {embeddings.shape[1]}] "
                "like the embeddings"
            )
        reference_levels = label_levels(reference_labels, reference.shape[0], "reference_labels")
        if reference_levels.shape[1] != levels.shape[1]:
            raise InvalidArgumentError(
                f"labels have {levels.shape[1]} levels, reference_labels {reference_levels.shape[1]}: "
                "give the same levels for both"
            )
        references, offset, within = in_full_precision(reference), self_offset, False
        if offset is not None and not 0 <= offset <= references.shape[0] - queries.shape[0]:
            raise InvalidArgumentError(
                f"self_offset is {offset}: {queries.shape[0]} queries from there on do not fit into "
                f"{references.shape[0]} references"
            )
    equal = levels[:, None, :] == reference_levels[None, :, :]
    is_self = torch.zeros(equal.shape[:2], dtype=torch.bool, device=equal.device)
    if offset is not None:
        rows = torch.arange(queries.shape[0], device=equal.device)
        is_self[rows, rows + offset] = True
    return Pairs(queries, references, equal.all(dim=2), equal[:, :, 0], is_self, within)
