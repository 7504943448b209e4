"""Two files side by side, without a collection."""

from __future__ import annotations

import os

from vidkin.index.match import Comparison
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.query import Query, query_from_file
from vidkin.similarity import FrameSet, ScoreSettings, score_pairs

__all__ = ["compare", "compare_query"]


def compare(
    query: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    extractor: str = "classical",
    weights: str | os.PathLike[str] | None = None,
    whitening: str | os.PathLike[str] | None = None,
    mirrored: bool = True,
    rate: float = 1.0,
) -> Comparison:
    """Score, matching segments and frame map of two video files.

    Args:
        query, target: Video files.
        extractor, weights, whitening: As in :func:`vidkin.features.open_extractor`.
        mirrored: Try the query flipped left to right as well.
        rate: Frames per second; videos of a few seconds are sampled more densely.

    Raises:
        MediaError: One of the files cannot be read.
    """
    from vidkin.features import measure_of, open_extractor

    opened = open_extractor(extractor, weights=weights, whitening=whitening)
    calibration, common = Calibration.of_extractor(opened), CommonFrames()
    asked = query_from_file(query, opened, calibration, common, rate=rate, mirrored=mirrored)
    found = query_from_file(target, opened, calibration, common, rate=rate, mirrored=False)
    return compare_query(asked, found.plain, ScoreSettings(measure=measure_of(opened)))


def compare_query(query: Query, target: FrameSet, settings: ScoreSettings | None = None) -> Comparison:
    """The better of the plain and the mirrored view of a query against one target."""
    best = score_pairs(query.plain, [target], settings=settings)[0]
    if query.mirrored is not None:
        flipped = score_pairs(query.mirrored, [target], mirrored=True, settings=settings)[0]
        best = flipped if flipped.score > best.score else best
    measure = "copies" if settings is None else settings.measure
    return Comparison(best.score, best.segments, best.map, query.plain.times, target.times, measure)
