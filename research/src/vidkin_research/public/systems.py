"""Systems that score the video pairs of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import torch

from vidkin._base.registry import parse_name
from vidkin.errors import InvalidArgumentError
from vidkin.features import FrameExtractor
from vidkin.features.sessions import resolve_device
from vidkin.index.query.calibration import Calibration
from vidkin.match import scorer_of
from vidkin.models.comparator import Comparator, build_comparator
from vidkin.models.comparator_extractor import ComparatorExtractor
from vidkin.models.stored import WEIGHTS_FILE
from vidkin.similarity import FrameFeatures, PairScore, Scorer, Segment
from vidkin.similarity.frame_maps import check_top_share
from vidkin_research.public.video_similarity import video_similarity_pairwise

__all__ = ["ChamferSystem", "ComparatorSystem", "PairSystem", "ScorerSystem", "choose_system"]

Scored = tuple[float, tuple[Segment, ...]]


class PairSystem(Protocol):
    """Compares several queries with several videos."""

    @property
    def name(self) -> str:
        """Name in tables."""
        ...

    @property
    def has_segments(self) -> bool:
        """Whether the system finds matching segments."""
        ...

    def prepare(self, features: FrameFeatures) -> Any:
        """Prepare the features of a video for comparison, once per video."""
        ...

    def compare(self, queries: Sequence[Any], targets: Sequence[Any], *, segments: bool) -> list[list[Scored]]:
        """Score each prepared query against each prepared target, with matching segments if ``segments``."""
        ...


class ChamferSystem:
    """TopK-Chamfer similarity over regions and frames, without calibration.

    Args:
        spatial_share, temporal_share: k_s and k_t, a fraction in [0, 1] or a count of at least 2; None uses only the
            maximum.
        symmetric: Whether to average both directions.
        device: Device: ``cpu``, ``cuda``, ``cuda:1`` or ``auto``.

    Raises:
        InvalidArgumentError: A share is invalid.
    """

    has_segments = False

    def __init__(
        self,
        *,
        spatial_share: float | None = None,
        temporal_share: float | None = None,
        symmetric: bool = False,
        device: str = "cpu",
    ) -> None:
        check_top_share("spatial_share", spatial_share)
        check_top_share("temporal_share", temporal_share)
        self._options = (spatial_share, temporal_share, symmetric)
        self._device = torch.device(resolve_device(device))
        self.name = "Chamfer"

    def prepare(self, features: FrameFeatures) -> torch.Tensor:
        """Move the features [T, R, D] to the device."""
        return torch.from_numpy(features.whole).to(self._device)

    def compare(
        self, queries: Sequence[torch.Tensor], targets: Sequence[torch.Tensor], *, segments: bool
    ) -> list[list[Scored]]:
        """Return scores without segments."""
        spatial, temporal, symmetric = self._options
        with torch.no_grad():
            similarities = video_similarity_pairwise(
                queries, targets, spatial_share=spatial, temporal_share=temporal, symmetric=symmetric
            )
        return [[(value, ()) for value in row] for row in similarities.tolist()]


# Maps with more frames than this are processed in blocks, to bound memory.
_LONG = 1024


class ComparatorSystem:
    """A trained comparator as in its paper, with raw scores of the query in the target.

    Args:
        comparator: A trained or imported comparator.
        scorer: Scorer that finds segments.
        calibration: Calibration for the scorer.
        device: Device: ``cpu``, ``cuda``, ``cuda:1`` or ``auto``.
    """

    has_segments = True

    def __init__(
        self, comparator: Comparator, scorer: Scorer, calibration: Calibration, *, device: str = "cpu"
    ) -> None:
        self.name = "comparator"
        self._network = comparator.eval().to(resolve_device(device))
        self._arrays = comparator.on_arrays()
        self._finder = ScorerSystem(scorer, calibration)

    def prepare(self, features: FrameFeatures) -> tuple[torch.Tensor, FrameFeatures]:
        """Return the weighted features on the device, and the original features."""
        device = next(self._network.parameters()).device
        with torch.no_grad():
            return self._network.weigh(torch.from_numpy(features.whole).to(device)), features

    def compare(
        self,
        queries: Sequence[tuple[torch.Tensor, FrameFeatures]],
        targets: Sequence[tuple[torch.Tensor, FrameFeatures]],
        *,
        segments: bool,
    ) -> list[list[Scored]]:
        """Return raw scores in [-1, 1], with the scorer's segments if requested."""
        if segments:
            ready = [[self._finder.prepare(features) for _, features in part] for part in (queries, targets)]
            return self._finder.compare(ready[0], ready[1], segments=True)
        columns = [self._scores([query for query, _ in queries], target) for target, _ in targets]
        return [[(column[row], ()) for column in columns] for row in range(len(queries))]

    def _scores(self, queries: Sequence[torch.Tensor], target: torch.Tensor) -> list[float]:
        short = [row for row, query in enumerate(queries) if max(len(query), len(target)) <= _LONG]
        scores = [0.0] * len(queries)
        if short:
            values = self._network.score_queries([queries[row] for row in short], target).tolist()
            for number, value in zip(short, values, strict=True):
                scores[number] = value
        for number in set(range(len(queries))) - set(short):
            frame_map = self._network.frame_map(queries[number], target).cpu().numpy()
            scores[number] = self._arrays.video_score(self._arrays.learned_map(frame_map))
        return scores


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

    def prepare(self, features: FrameFeatures) -> FrameFeatures:
        """Return the calibrated features."""
        return self._calibration.calibrate(features)

    def compare(
        self, queries: Sequence[FrameFeatures], targets: Sequence[FrameFeatures], *, segments: bool
    ) -> list[list[Scored]]:
        """Return calibrated scores with their segments."""
        results: list[list[PairScore]] = [self._scorer.score(query, targets) for query in queries]
        return [[(result.score, result.segments) for result in row] for row in results]


def choose_system(
    extractor: FrameExtractor | None,
    scorer: Literal["own", "chamfer"] = "own",
    *,
    spatial_share: float | None = None,
    temporal_share: float | None = None,
    device: str = "cpu",
) -> PairSystem:
    """Choose the system that compares features.

    Args:
        extractor: Extractor of the features; None if unknown, which only allows Chamfer similarity.
        scorer: ``own``: a trained comparator, or the scorer declared by the extractor. ``chamfer``: Chamfer similarity.
        spatial_share, temporal_share: k_s and k_t of Chamfer similarity; those of a comparator are part of its name.
        device: Device for Chamfer similarity and comparators.

    Raises:
        InvalidArgumentError: k_s or k_t is invalid, or was passed for another scorer.
    """
    if scorer == "chamfer" or extractor is None:
        return ChamferSystem(spatial_share=spatial_share, temporal_share=temporal_share, device=device)
    if spatial_share is not None or temporal_share is not None:
        raise InvalidArgumentError(
            "spatial_share and temporal_share require the scorer chamfer; for a comparator, append them to its name: "
            "MODEL?spatial_share=0.35"
        )
    calibration = Calibration.of_extractor(extractor)
    if isinstance(extractor, ComparatorExtractor):
        folder = Path(parse_name(extractor.name).path.removeprefix("model:"))
        comparator = build_comparator(extractor.comparator.config, weights=folder / WEIGHTS_FILE)
        return ComparatorSystem(comparator, extractor.open_scorer(), calibration, device=device)
    return ScorerSystem(scorer_of(extractor), calibration)
