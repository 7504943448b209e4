"""The interface of training data, labeled or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from vidkin.training.data.batch import Draw
from vidkin.training.recipe import Measure

__all__ = ["TrainingData"]

M = TypeVar("M", contravariant=True)
B = TypeVar("B", covariant=True)


class TrainingData(Protocol[M, B]):
    """Items ready to draw, in batches B for a model M.

    Attributes:
        name: Name of the collection.
        broken: (file, cause) of items that could not be read.
    """

    @property
    def name(self) -> str: ...

    @property
    def broken(self) -> tuple[tuple[str, str], ...]: ...

    def batches(self, draws: Sequence[Draw], *, first: int) -> Iterator[B]:
        """The batches of all steps from ``first`` (0 is the start) on, the same however often a run resumes."""

    def measure(self, model: M, measure: Measure) -> float:
        """The figure of the validation items in [0, 1], higher is better."""

    def identity(self) -> bytes:
        """Names and labels of the items: a checkpoint belongs to the data with the same identity."""
