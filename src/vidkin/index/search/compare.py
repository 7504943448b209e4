"""Two files side by side, without an index."""

from __future__ import annotations

import os

from vidkin.features import open_extractor
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.match import Comparison
from vidkin.index.search.query import Query, describe_query
from vidkin.similarity import FrameFeatures, Scorer, open_scorer

__all__ = ["compare", "compare_features"]


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
        mirrored: Also compare the query flipped left to right; default True, about half the time without.
        rate: Frames per second; videos of a few seconds are sampled more densely.

    Raises:
        MediaError: One of the files cannot be read.
    """
    maker = open_extractor(extractor, weights=weights, whitening=whitening)
    scorer = open_scorer(maker.scorer)
    parts = (maker, Calibration.of_extractor(maker), CommonFrames())
    first = describe_query(query, *parts, rate=rate, mirrored=mirrored)
    second = describe_query(target, *parts, rate=rate, mirrored=False)
    return compare_features(first, second.plain, scorer)


def compare_features(query: Query, target: FrameFeatures, scorer: Scorer) -> Comparison:
    """The better of the plain and the mirrored view of a query against one target."""
    best = scorer.score(query.plain, [target])[0]
    if query.mirrored is not None:
        flipped = scorer.score(query.mirrored, [target], mirrored=True)[0]
        best = flipped if flipped.score > best.score else best
    return Comparison(
        best.score, best.segments, best.map, query.plain.timestamps, target.timestamps, scorer.name
    )
