"""A score learned from user verdicts, which combines another scorer's score with a weighted feature similarity."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_constructor
from vidkin._base.files import write_text
from vidkin._base.values import read_json
from vidkin.errors import InvalidArgumentError
from vidkin.match.scorers import KindScorer
from vidkin.similarity.contracts import FrameFeatures, PairScore, Scorer

MEASURE_FILE = "review/measure.json"
"""Path of the review measure within an index folder."""

PAIR_NUMBERS = ("score", "kinds", "weighted")
"""Inputs of the review measure for a pair: the inner scorer's score, the score of :class:`KindScorer`, and the cosine
similarity of the weighted mean descriptors."""


@check_constructor
@dataclass(frozen=True, slots=True)
class ReviewMeasure:
    """A small head on stored features: ordinal regression of the verdicts different, same kind, and same.

    With ``u`` the dot product of `coefficients` and the pair's `PAIR_NUMBERS`, the probability that a pair is at least
    of the same kind is ``sigmoid(u - kind)``, and the probability that it is the same is ``sigmoid(u - same)``. The
    score is the mean of the two probabilities.

    Attributes:
        fingerprint: Fingerprint of the features the measure was trained on.
        center: [D], mean descriptor of the collection.
        weights: [D], nonnegative weight of each dimension in the cosine similarity.
        coefficients: One nonnegative coefficient for each of `PAIR_NUMBERS`.
        kind, same: The thresholds, ``kind <= same``.

    Raises:
        InvalidArgumentError: A value is not finite, a weight or coefficient is negative, lengths do not match, or
            ``kind > same``.
    """

    fingerprint: str
    center: tuple[float, ...]
    weights: tuple[float, ...]
    coefficients: tuple[float, float, float]
    kind: float
    same: float

    def __post_init__(self) -> None:
        values = (*self.center, *self.weights, *self.coefficients, self.kind, self.same)
        if not all(math.isfinite(value) for value in values) or min((*self.weights, *self.coefficients)) < 0:
            raise InvalidArgumentError(
                "values of a review measure must be finite, and its weights and coefficients at least 0"
            )
        if len(self.center) != len(self.weights) or len(self.coefficients) != len(PAIR_NUMBERS):
            raise InvalidArgumentError(
                f"center and weights must have the same length and coefficients length {len(PAIR_NUMBERS)}, got "
                f"{len(self.center)}, {len(self.weights)} and {len(self.coefficients)}"
            )
        if self.kind > self.same:
            raise InvalidArgumentError(
                f"threshold 'kind' must be at most threshold 'same', got {self.kind} and {self.same}"
            )

    def grade(self, numbers: Sequence[float]) -> tuple[float, float]:
        """Probabilities (at least same kind, same) for the `PAIR_NUMBERS` of one pair."""
        total = sum(factor * value for factor, value in zip(self.coefficients, numbers, strict=True))
        of_kind, of_same = (1 / (1 + math.exp(min(limit - total, 500.0))) for limit in (self.kind, self.same))
        return of_kind, of_same

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the measure to a JSON file, atomically."""
        write_text(Path(path), json.dumps(asdict(self)) + "\n")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ReviewMeasure:
        """Read a measure from a JSON file.

        Raises:
            InvalidArgumentError: The file does not exist or is damaged.
        """
        try:
            table = read_json(path)
            first, second, third = map(float, table["coefficients"])
            return cls(
                str(table["fingerprint"]),
                tuple(map(float, table["center"])),
                tuple(map(float, table["weights"])),
                (first, second, third),
                float(table["kind"]),
                float(table["same"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidArgumentError(
                f"{os.fspath(path)} must contain a measure from `vidkin train review`: {error}; train it again"
            ) from error


@dataclass(frozen=True, slots=True)
class ReviewedScorer:
    """Replaces the scores of another scorer with those of a review measure; segments and maps are unchanged.

    Attributes:
        inner: The scorer that finds segments, and whose score is an input to the measure.
        measure: The measure learned from verdicts.
    """

    inner: Scorer
    measure: ReviewMeasure

    @property
    def name(self) -> str:
        """The name of the inner scorer."""
        return self.inner.name

    @property
    def needs_background(self) -> bool:
        """As for the inner scorer."""
        return self.inner.needs_background

    @property
    def has_segments(self) -> bool:
        """As for the inner scorer."""
        return self.inner.has_segments

    def score(self, query: FrameFeatures, targets: Sequence[FrameFeatures]) -> list[PairScore]:
        """Results of the inner scorer, rescored by the measure; see :class:`vidkin.similarity.Scorer`."""
        scores = self.inner.score(query, targets)
        center, weights = (np.array(item, np.float32) for item in (self.measure.center, self.measure.weights))
        numbers = pair_numbers(query, targets, scores, center, weights)
        grades = [self.measure.grade(row) for row in numbers.tolist()]
        return [replace(pair, score=sum(grade) / 2) for pair, grade in zip(scores, grades, strict=True)]


def describe_video_whole(features: FrameFeatures) -> NDArray[np.float32]:
    """Mean descriptor [D] float32 of a video's whole frames, weighted by their information."""
    values = features.whole.astype(np.float32).mean(1)
    weights = np.maximum(features.information.astype(np.float32), 1e-6)
    mean: NDArray[np.float32] = (values * weights[:, None]).sum(0) / weights.sum()
    return mean


def pair_numbers(
    query: FrameFeatures,
    targets: Sequence[FrameFeatures],
    scores: Sequence[PairScore],
    center: NDArray[np.float32],
    weights: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Compute `PAIR_NUMBERS` for a query and each target; return [N, 3] float32.

    Args:
        query: Features of one video.
        targets: Features of N other videos.
        scores: The inner scorer's results for the targets.
        center: [D], mean descriptor of the collection.
        weights: [D], weight of each dimension.
    """
    if not targets:
        return np.zeros((0, len(PAIR_NUMBERS)), np.float32)
    kinds = KindScorer().score(query, targets)
    means = (np.stack([describe_video_whole(target) for target in targets]) - center) * weights
    own = (describe_video_whole(query) - center) * weights
    cosines = means @ own / (np.maximum(np.linalg.norm(means, axis=1), 1e-8) * max(float(np.linalg.norm(own)), 1e-8))
    return np.array([[pair.score for pair in scores], [pair.score for pair in kinds], cosines], np.float32).T
