"""What a training run needs of its data, labeled or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from vidkin.models import Encoder
from vidkin.training.data.batch import Batch, Draw
from vidkin.training.recipe import Measure

__all__ = ["TrainingData"]


class TrainingData(Protocol):
    """Items that are ready to be drawn.

    Attributes:
        name: Name of the collection.
        broken: (file, cause) of items that could not be read.
    """

    @property
    def name(self) -> str: ...

    @property
    def broken(self) -> tuple[tuple[str, str], ...]: ...

    def batches(self, draws: Sequence[Draw], *, first: int) -> Iterator[Batch]:
        """The batches of all steps from ``first`` (0 is the start) on: the same ones however often a run resumes."""

    def measure(self, model: Encoder, measure: Measure) -> float:
        """Figure of the validation items, in [0, 1], higher is better."""

    def identity(self) -> bytes:
        """Names and labels of the items: a checkpoint belongs to the data with the same identity."""
