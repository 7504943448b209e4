"""The members of tuples, and the base of the losses on quadlets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.distances import in_full_precision
from vidkin.metric.losses.loss import Loss

__all__ = ["LossOnQuadlets", "check_tuples"]


class LossOnQuadlets(Loss):
    """Base of the losses on given quadlets."""

    def forward(self, query: Tensor, positive: Tensor, intermediate: Tensor, negative: Tensor) -> Tensor:
        """The loss of B quadlets, each member [B, D]: a scalar, or [B] for reduction "none"."""
        return self.compute(query, positive, intermediate, negative, **self.options)

    if TYPE_CHECKING:
        __call__ = forward


def check_tuples(**members: Tensor) -> tuple[Tensor, ...]:
    """The members of B tuples in full precision.

    Raises:
        InvalidArgumentError: The members do not all have the same shape [B, D].
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in members.items()}
    if len(set(shapes.values())) != 1 or any(len(shape) != 2 for shape in shapes.values()):
        raise InvalidArgumentError(f"members of a tuple must have one shape [B, D], got {shapes}")
    return tuple(in_full_precision(tensor) for tensor in members.values())
