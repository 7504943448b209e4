"""What compares the videos of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from vidkin.errors import InvalidArgumentError
from vidkin.features import FrameExtractor
from vidkin.index.query.common import Calibration
from vidkin.models.comparator_extractor import ArrayComparator, ComparatorExtractor
from vidkin.similarity import FrameFeatures, PairScore, Scorer, Segment, scorer_of, video_similarity_pairwise
from vidkin.similarity.frame_maps import check_top_share

__all__ = ["ChamferSystem", "ComparatorSystem", "PairSystem", "ScorerSystem", "choose_system"]

Scored = tuple[float, tuple[Segment, ...]]


class PairSystem(Protocol):
    """Compares one query with several videos."""

    @property
    def name(self) -> str:
        """For tables."""
        ...

    @property
    def has_segments(self) -> bool:
        """It says where videos match."""
        ...

    def compare(self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, segments: bool) -> list[Scored]:
        """For each target the score, and where it matches if ``segments``."""
        ...


class ChamferSystem:
    """TopK-Chamfer similarity over regions and over times, without any calibration.

    Args:
        spatial_share, temporal_share: k_s and k_t, a share in [0, 1] or from 2 on a number; None: the largest alone.
        symmetric: Mean of both directions.

    Raises:
        InvalidArgumentError: A share is neither.
    """

    has_segments = False

    def __init__(
        self,
        *,
        spatial_share: float | None = None,
        temporal_share: float | None = None,
        symmetric: bool = False,
    ) -> None:
        check_top_share("spatial_share", spatial_share)
        check_top_share("temporal_share", temporal_share)
        self._options = (spatial_share, temporal_share, symmetric)
        self.name = "Chamfer"

    def compare(self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, segments: bool) -> list[Scored]:
        """Scores alone."""
        spatial, temporal, symmetric = self._options
        similarities = video_similarity_pairwise(
            [query.whole],
            [target.whole for target in targets],
            spatial_share=spatial,
            temporal_share=temporal,
            symmetric=symmetric,
        )
        return [(value, ()) for value in similarities[0].tolist()]


class ComparatorSystem:
    """A trained comparator as its paper evaluates it: the raw score of the query in the target.

    Args:
        comparator: Trained or imported.
        scorer: Finds the segments; None for scores alone.
        calibration: For the scorer.
    """

    def __init__(self, comparator: ArrayComparator, scorer: Scorer, calibration: Calibration) -> None:
        self.name = "comparator"
        self.has_segments = True
        self._comparator = comparator
        self._finder = ScorerSystem(scorer, calibration)

    def compare(self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, segments: bool) -> list[Scored]:
        """Raw scores in [-1, 1]; with segments those of the scorer."""
        if segments:
            return self._finder.compare(query, targets, segments=True)
        comparator, weighed = self._comparator, self._comparator.weigh(query.whole)
        maps = [comparator.frame_map(weighed, comparator.weigh(target.whole)) for target in targets]
        return [(comparator.video_score(comparator.learned_map(frame_map)), ()) for frame_map in maps]


class ScorerSystem:
    """The scorer that search uses.

    Args:
        scorer: Scorer of the extractor.
        calibration: Calibration of the extractor.
    """

    def __init__(self, scorer: Scorer, calibration: Calibration) -> None:
        self.name = scorer.name
        self.has_segments = scorer.has_segments
        self._scorer = scorer
        self._calibration = calibration

    def compare(self, query: FrameFeatures, targets: Sequence[FrameFeatures], *, segments: bool) -> list[Scored]:
        """Calibrated scores, and the segments that they come from."""
        ready = [self._calibration.calibrate(features) for features in (query, *targets)]
        results: list[PairScore] = self._scorer.score(ready[0], ready[1:])
        return [(result.score, result.segments) for result in results]


def choose_system(
    extractor: FrameExtractor | None,
    scorer: Literal["own", "chamfer"] = "own",
    *,
    spatial_share: float | None = None,
    temporal_share: float | None = None,
) -> PairSystem:
    """What compares features.

    Args:
        extractor: What made them; None if that is not known, which leaves Chamfer similarity alone.
        scorer: ``own``: a trained comparator, or the scorer that the extractor declares. ``chamfer``: none of them.
        spatial_share, temporal_share: Shares of Chamfer similarity; a comparator's are part of its name.

    Raises:
        InvalidArgumentError: Shares are given for another scorer, or a share is not allowed.
    """
    if scorer == "chamfer" or extractor is None:
        return ChamferSystem(spatial_share=spatial_share, temporal_share=temporal_share)
    if spatial_share is not None or temporal_share is not None:
        raise InvalidArgumentError(
            "shares must not be given for the scorer of an extractor; choose the scorer chamfer, or write them after "
            "the name of a comparator, MODEL?spatial_share=.35"
        )
    calibration = Calibration.of_extractor(extractor)
    if isinstance(extractor, ComparatorExtractor):
        return ComparatorSystem(extractor.comparator, extractor.open_scorer(), calibration)
    return ScorerSystem(scorer_of(extractor), calibration)
