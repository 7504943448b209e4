"""Compare two files without an index."""

from __future__ import annotations

import os

from vidkin.features import open_extractor
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.match import Comparison
from vidkin.index.search.pairs import compare_pair
from vidkin.index.search.queries.query import describe_query
from vidkin.similarity import scorer_of

__all__ = ["compare"]


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
