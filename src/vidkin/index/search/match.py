"""Results of searches and comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from vidkin._base.plain_values import Result, fields_as_json
from vidkin.errors import InvalidArgumentError
from vidkin.similarity import Segment, finds_segments

__all__ = ["Comparison", "Match"]


@dataclass(frozen=True, slots=True)
class Match(Result):
    """One video of the index that matches the query.

    Attributes:
        path: Path of the video when it was indexed.
        score: Score in [0, 1]: 1.0 identical, below 0.2 unrelated; one threshold works for all queries.
        segments: Matching stretches, best first; empty if only the whole is similar.
        video_id: Id of its record in the index.
        missing: Whether the file no longer exists.
    """

    path: str
    score: float
    segments: tuple[Segment, ...] = ()
    video_id: int = -1
    missing: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.score <= 1.0:
            raise InvalidArgumentError(f"score must be in [0, 1], got {self.score}")

    @property
    def mirrored(self) -> bool:
        """Whether the best segment matches the query flipped left to right."""
        return bool(self.segments) and self.segments[0].mirrored

    def to_dict(self) -> dict[str, Any]:
        """The fields and ``mirrored`` as plain values, as ``vidkin search --json`` prints them beside the rank."""
        return {**fields_as_json(self), "mirrored": self.mirrored}


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Result):
    """Two videos side by side.

    Attributes:
        score: Score in [0, 1], as in a search.
        segments: Matching stretches, best first.
        map: [Tq, Tt] float32 in [0, 1], calibrated similarity of every frame with every frame.
        query_times: [Tq] float64 seconds.
        target_times: [Tt] float64 seconds.
        measure: Name of the scorer, see :func:`vidkin.similarity.open_scorer`; ``kinds`` gives no segments.
    """

    score: float
    segments: tuple[Segment, ...]
    map: torch.Tensor
    query_times: torch.Tensor
    target_times: torch.Tensor
    measure: str = "copies"

    def __post_init__(self) -> None:
        expected = (len(self.query_times), len(self.target_times))
        if tuple(self.map.shape) != expected:
            raise InvalidArgumentError(
                f"map must be {list(expected)}, one row and column for each time, got {list(self.map.shape)}"
            )

    @property
    def has_segments(self) -> bool:
        """Whether the score comes from segments; otherwise it only orders videos, on a scale specific to the model."""
        return finds_segments(self.measure)

    def __repr__(self) -> str:
        return (
            f"Comparison(score={self.score:.3f}, segments={len(self.segments)}, map={list(self.map.shape)})"
        )
