"""Results of searches and comparisons."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch

from vidkin._base.values import Result, fields_as_json
from vidkin.errors import InvalidArgumentError
from vidkin.features import open_extractor
from vidkin.index.query.calibration import Calibration
from vidkin.index.query.common import CommonFrames
from vidkin.index.query.moments import is_picture, without_length
from vidkin.index.query.query import Query, describe_query
from vidkin.similarity import PairScore, Scorer, Segment, finds_segments, scorer_of

__all__ = ["Comparison", "Match", "compare", "compare_pair", "score_pair"]


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


# One score for a pair of videos, whichever of them is called the query.


def compare_pair(first: Query, second: Query, scorer: Scorer) -> Comparison:
    """Score, segments and frame map of two videos; see :func:`score_pair`. A picture matches for no length of time."""
    best = score_pair(first, second, scorer)
    pictures = {"query": is_picture(first), "target": is_picture(second)}
    segments = tuple(without_length(segment, **pictures) for segment in best.segments)
    times = first.plain.timestamps, second.plain.timestamps
    return Comparison(best.score, segments, best.map, *times, scorer.name)


def score_pair(first: Query, second: Query, scorer: Scorer) -> PairScore:
    """Score in both directions and take the best; the same number if the two are exchanged.

    A scorer walks along the query's frames, so a line through the map may be detected in one direction and missed by
    one frame in the other. Each video is therefore the query once, and so is its mirror image if it was described.

    Args:
        first: The query of the segments that are returned.
        second: The target of these pairs.
        scorer: Scorer of the index.
    """
    results = [
        scorer.score(first.plain, [second.plain])[0],
        swap_sides(scorer.score(second.plain, [first.plain])[0]),
    ]
    if first.mirrored is not None:
        results.append(scorer.score(first.mirrored, [second.plain], mirrored=True)[0])
    if second.mirrored is not None:
        results.append(swap_sides(scorer.score(second.mirrored, [first.plain], mirrored=True)[0]))
    return max(results, key=lambda result: result.score)


def swap_sides(result: PairScore) -> PairScore:
    """The same result with query and target exchanged."""
    segments = tuple(segment.swapped() for segment in result.segments)
    return PairScore(result.score, segments, result.map.T.contiguous())


# Compare two files without an index.


def compare(
    query: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    extractor: str | None = None,
    weights: str | os.PathLike[str] | None = None,
    whitening: str | os.PathLike[str] | None = None,
    mirrored: bool = True,
    rate: float = 1.0,
) -> Comparison:
    """Score, matching segments and frame map of two video files; the same score if they are exchanged.

    Args:
        query, target: Video files.
        extractor, weights, whitening: As in :func:`vidkin.features.open_extractor`.
        mirrored: Also compare either one flipped left to right; default True, about half the time without.
        rate: Frames per second; videos of a few seconds are sampled more densely.

    Raises:
        MediaError: One of the files cannot be read.
    """
    maker = open_extractor(extractor, weights=weights, whitening=whitening)
    parts = (maker, Calibration.of_extractor(maker), CommonFrames())
    first, second = (describe_query(path, *parts, rate=rate, mirrored=mirrored) for path in (query, target))
    return compare_pair(first, second, scorer_of(maker))
