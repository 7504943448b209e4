"""What turns two videos into a score: the contract, and which scorers there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from vidkin.similarity.frame_features import FrameFeatures
from vidkin.similarity.segment import Segment

__all__ = ["PairScore", "Scorer"]


@dataclass(frozen=True, slots=True)
class PairScore:
    """The result for one pair.

    Attributes:
        score: In [0, 1]; 1.0 for identical videos, near 0 for unrelated ones.
        segments: Best first; none for a scorer without segments.
        map: [Tq, Tt] float32, frame similarities in [0, 1].
    """

    score: float
    segments: tuple[Segment, ...]
    map: torch.Tensor


class Scorer(Protocol):
    """Exact scores of one query against any number of targets."""

    @property
    def name(self) -> str:
        """The name that manifests and extractors know it by: ``copies``, ``kinds``."""
        ...

    @property
    def needs_background(self) -> bool:
        """Scores are calibrated by how similar unrelated pictures are, so features must have a baseline."""
        ...

    @property
    def has_segments(self) -> bool:
        """It finds where two videos match, and tells copies from videos that are merely similar."""
        ...

    def score(
        self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, mirrored: bool = False
    ) -> list[PairScore]:
        """One result for each target, in their order.

        Args:
            query: The query; of mirrored frames when ``mirrored``, which is only recorded in the segments.
            targets: Any lengths.
            mirrored: The query's frames were flipped left to right.
        """
        ...
