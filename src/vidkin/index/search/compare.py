"""Two files side by side, without a collection."""

from __future__ import annotations

import os

from vidkin.index.match import Comparison
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.query import Query, query_from_file
from vidkin.similarity import CopyScorer, FrameFeatures, Scorer, open_scorer

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
    from vidkin.features import open_extractor

    opened = open_extractor(extractor, weights=weights, whitening=whitening)
    calibration, common = Calibration.of_extractor(opened), CommonFrames()
    asked = query_from_file(query, opened, calibration, common, rate=rate, mirrored=mirrored)
    found = query_from_file(target, opened, calibration, common, rate=rate, mirrored=False)
    return compare_query(asked, found.plain, open_scorer(opened.scorer))


def compare_query(query: Query, target: FrameFeatures, scorer: Scorer | None = None) -> Comparison:
    """The better of the plain and the mirrored view of a query against one target."""
    scorer = scorer or CopyScorer()
    best = scorer.score(query.plain, [target])[0]
    if query.mirrored is not None:
        flipped = scorer.score(query.mirrored, [target], mirrored=True)[0]
        best = flipped if flipped.score > best.score else best
    return Comparison(
        best.score, best.segments, best.map, query.plain.timestamps, target.timestamps, scorer.name
    )
