"""Open scorers by the names that manifests store and extractors declare; the scorers of kinds and of trained models."""

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
    """Scores similarity with a model trained to order videos: same thing, same kind of thing, something else.

    With unit descriptors the map is ``m = (1 + cos) / 2 = 1 - d^2 / 4``, where d is the Euclidean distance the model
    was trained on. The side with fewer descriptors is the query: ``score = weighted mean over its frames of the
    largest m with any frame of the other``, weighted by information; with equal numbers it is the mean of both
    directions. So a clip matches the long video that contains it, no matter which one is the query.

    Scores are not calibrated by unrelated videos: they order the videos of a collection, and their scale is specific to
    the model. Only whole pictures are compared, whatever other views there are.
    """

    name: ClassVar[str] = "kinds"
    # No: scores are similarities as they are.
    needs_background: ClassVar[bool] = False
    # No: videos of a kind have no moment in common.
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
    """An extractor that names the scorer its features are made for; ``open_scorer()`` opens one trained with it."""

    @property
    def scorer(self) -> str:
        """``copies``, ``kinds`` or ``learned``."""


def available_scorers() -> tuple[str, ...]:
    """Names of all scorers, sorted."""
    return tuple(sorted((*_SCORERS, LEARNED)))


@check_arguments
def open_scorer(name: str) -> Scorer:
    """Open the scorer with a name.

    Raises:
        InvalidArgumentError: The scorer does not exist, or is part of a trained model (``learned``).
    """
    if name == LEARNED:
        raise InvalidArgumentError(
            "scorer 'learned' is part of a trained comparator; open the comparator's folder as extractor"
        )
    if name not in _SCORERS:
        raise InvalidArgumentError(f"scorer must be one of {', '.join(available_scorers())}, got {name!r}")
    return _SCORERS[name]()


@check_arguments
def finds_segments(name: str) -> bool:
    """Whether the scorer with a name reports matching segments; ``learned`` does not need its model for this.

    Raises:
        InvalidArgumentError: The scorer does not exist.
    """
    return name == LEARNED or open_scorer(name).has_segments


@check_arguments
def scorer_of(extractor: DeclaresScorer) -> Scorer:
    """The scorer that an extractor's features are made for: its own, or the one whose name it declares.

    Raises:
        InvalidArgumentError: The extractor names a scorer that does not exist.
    """
    open_own: Callable[[], Scorer] | None = getattr(extractor, "open_scorer", None)
    return open_own() if open_own is not None else open_scorer(extractor.scorer)


_SCORERS: dict[str, Callable[[], Scorer]] = {
    "copies": lambda: VerifiedScorer(shipped_verifier()),
    "kinds": KindScorer,
}
