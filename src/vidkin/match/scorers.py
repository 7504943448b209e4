"""Open scorers by name, as stored in manifests and declared by extractors; also the scorer for kinds of videos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin.errors import InvalidArgumentError
from vidkin.match.learned import LEARNED
from vidkin.match.scorer import VerifiedScorer
from vidkin.match.verify import shipped_verifier
from vidkin.similarity.contracts import FrameFeatures, PairScore, Scorer
from vidkin.similarity.frame_maps import frame_similarity_many


@dataclass(frozen=True, slots=True)
class KindScorer:
    """Scores similarity with a model trained to rank videos: same subject, same kind of subject, anything else.

    With unit descriptors the map is ``m = (1 + cos) / 2 = 1 - d^2 / 4``, where d is the Euclidean distance the model
    was trained on. The score is a one-sided Chamfer similarity from the video with fewer frames: the mean, weighted by
    information, of each frame's largest m. If both have the same number of frames, the two directions are averaged.
    A clip therefore matches the long video that contains it, whichever is the query.

    Scores are not calibrated by unrelated videos: they rank the videos of a collection, and their scale is specific to
    the model. Only whole frames are compared; other views are ignored.
    """

    name: ClassVar[str] = "kinds"
    # Scores are raw similarities.
    needs_background: ClassVar[bool] = False
    # Videos of the same kind do not share any footage.
    has_segments: ClassVar[bool] = False

    def score(self, query: FrameFeatures, targets: Sequence[FrameFeatures]) -> list[PairScore]:
        """Scores in [0, 1] with maps [Tq, Tt] and no segments; see :class:`vidkin.similarity.Scorer`."""
        if not targets:
            return []
        kind = query.values.dtype
        maps = frame_similarity_many(
            query.whole, [target.whole.astype(kind, copy=False) for target in targets], symmetric=True
        )
        scores = []
        for target, raw in zip(targets, maps, strict=True):
            frame_map = np.clip((1 + raw) / 2, 0, 1).astype(np.float32, copy=False)
            asked = _mean(frame_map.max(1), query.information)
            answered = _mean(frame_map.max(0), target.information)
            score = asked if len(query) < len(target) else answered
            if len(query) == len(target):
                score = (asked + answered) / 2
            scores.append(PairScore(min(1.0, max(0.0, score)), (), frame_map))
        return scores


def _mean(values: NDArray[np.float32], weights: NDArray[np.floating]) -> float:
    """Weighted mean, or the plain mean if all weights are zero."""
    weights = weights.astype(np.float64)
    total = float(weights.sum())
    if total <= 0:
        return float(values.mean(dtype=np.float64))
    return float(values.astype(np.float64) @ weights) / total


class DeclaresScorer(Protocol):
    """An extractor that names the scorer for its features.

    It may also have a method ``open_scorer()`` that returns the scorer trained along with it.
    """

    @property
    def scorer(self) -> str:
        """``copies``, ``kinds`` or ``learned``."""


def available_scorers() -> tuple[str, ...]:
    """Names of all scorers, sorted."""
    return tuple(sorted((*_SCORERS, LEARNED)))


@check_arguments
def open_scorer(name: str) -> Scorer:
    """Open a scorer by name.

    Raises:
        InvalidArgumentError: The scorer does not exist, or is part of a trained model (``learned``).
    """
    if name == LEARNED:
        raise InvalidArgumentError(
            "scorer 'learned' is part of a trained comparator; open the comparator's folder as an extractor"
        )
    if name not in _SCORERS:
        raise InvalidArgumentError(f"scorer must be one of {', '.join(available_scorers())}, got {name!r}")
    return _SCORERS[name]()


@check_arguments
def finds_segments(name: str) -> bool:
    """Whether a scorer reports matching segments; for ``learned``, the model need not be loaded.

    Raises:
        InvalidArgumentError: The scorer does not exist.
    """
    return name == LEARNED or open_scorer(name).has_segments


@check_arguments
def scorer_of(extractor: DeclaresScorer) -> Scorer:
    """Open the scorer for an extractor's features: the one trained along with it, or the one it names.

    Raises:
        InvalidArgumentError: The extractor names a scorer that does not exist.
    """
    open_own: Callable[[], Scorer] | None = getattr(extractor, "open_scorer", None)
    return open_own() if open_own is not None else open_scorer(extractor.scorer)


_SCORERS: dict[str, Callable[[], Scorer]] = {
    "copies": lambda: VerifiedScorer(shipped_verifier()),
    "kinds": KindScorer,
}
