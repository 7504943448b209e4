"""The contract of scorers, which turn two videos into a score."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vidkin.similarity.frame_features import FrameFeatures, Segment

SCORE_REVISION = 8
"""Raise it whenever a scorer gives the same two videos another score or other segments, so that no stored score of an
earlier version is used: it is part of what identifies scores."""


@dataclass(frozen=True, slots=True)
class PairScore:
    """The result for one pair.

    Attributes:
        score: Score in [0, 1]: 1.0 for identical videos, near 0 for unrelated ones.
        segments: Matching segments, best first; none for a scorer without segments.
        map: [Tq, Tt] float32, similarities of frames in [0, 1].
    """

    score: float
    segments: tuple[Segment, ...]
    map: NDArray[np.float32]


class Scorer(Protocol):
    """Computes exact scores of one query against any number of targets."""

    @property
    def name(self) -> str:
        """The name used in manifests and by extractors: ``copies``, ``kinds``."""

    @property
    def needs_background(self) -> bool:
        """Whether scores are calibrated by how similar unrelated pictures are, so that features must have a
        baseline."""

    @property
    def has_segments(self) -> bool:
        """Whether it finds where two videos match, and distinguishes copies from videos that are merely similar."""

    def score(
        self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, mirrored: bool = False
    ) -> list[PairScore]:
        """One result for each target, in their order.

        Args:
            query: Features of the query.
            targets: Features of the targets, of any length.
            mirrored: Whether the query's frames were flipped left to right; only recorded in the segments.
        """


@runtime_checkable
class PromisingScorer(Scorer, Protocol):
    """A scorer that knows what a pair cannot reach, in less time than its score takes."""

    def promise(self, query: FrameFeatures, targets: Sequence[FrameFeatures]) -> NDArray[np.float32]:
        """Seconds of match [targets] that each pair can have at most."""


class BestScores:
    """The best scores of a search so far; of a video that is scored more than once, its best one counts.

    Args:
        count: Number of videos that are asked for.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._scores: dict[int, float] = {}

    def add(self, video: int, score: float) -> None:
        """Note a score of a video, whichever number identifies it."""
        self._scores[video] = max(score, self._scores.get(video, 0.0))

    @property
    def least(self) -> float:
        """What a video needs to be among the best; 0 while there are fewer of them than are asked for."""
        if len(self._scores) < self._count:
            return 0.0
        return heapq.nlargest(self._count, self._scores.values())[-1]


@runtime_checkable
class ScorerOfBest(Scorer, Protocol):
    """A scorer that leaves out the costly part of scores that cannot be among the best."""

    def score_best(
        self, query: FrameFeatures, targets: Mapping[int, FrameFeatures], best: BestScores, *, mirrored: bool = False
    ) -> dict[int, PairScore]:
        """What :meth:`Scorer.score` returns for the targets, without those that cannot be among the best.

        Args:
            query: Features of the query.
            targets: Features of the targets by the number of their video, most promising first.
            best: The best scores so far, to which those computed are added.
            mirrored: As for :meth:`Scorer.score`.
        """


@runtime_checkable
class ScorerOfParts(Scorer, Protocol):
    """A scorer that can compare parts of one picture with parts of the other, at a higher cost than :meth:`score`."""

    def score_parts(
        self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, mirrored: bool = False
    ) -> list[PairScore | None]:
        """One result for each target, in their order; None where no pair of parts is worth a look.

        Args:
            query, targets, mirrored: As for :meth:`Scorer.score`.
        """

    def score_changes(
        self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, mirrored: bool = False
    ) -> list[PairScore | None]:
        """One result for each target by what changes in the same regions of both; None where nothing does, which is
        soon known.

        Args:
            query, targets, mirrored: As for :meth:`Scorer.score`.
        """


def fingerprint_of_scores(features: str, scorer: Scorer) -> str:
    """Identifies what a score depends on besides the two videos: stored scores are valid for the same text only.

    Args:
        features: Fingerprint of the extractor of the features.
        scorer: The scorer; its ``repr`` has all its constants.
    """
    return repr((SCORE_REVISION, features, scorer))
