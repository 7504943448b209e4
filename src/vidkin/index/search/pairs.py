"""One score for a pair of videos, whichever of them is called the query."""

from __future__ import annotations

from vidkin.index.search.match import Comparison
from vidkin.index.search.moments import is_picture, without_length
from vidkin.index.search.queries.query import Query
from vidkin.similarity import PairScore, Scorer

__all__ = ["compare_pair", "score_pair", "swap_sides"]


def compare_pair(first: Query, second: Query, scorer: Scorer) -> Comparison:
    """Score, segments and frame map of two videos; see :func:`score_pair`. A picture matches for no length of time."""
    best = score_pair(first, second, scorer)
    pictures = {"query": is_picture(first), "target": is_picture(second)}
    segments = tuple(without_length(segment, **pictures) for segment in best.segments)
    times = first.plain.timestamps, second.plain.timestamps
    return Comparison(best.score, segments, best.map, *times, scorer.name)


def score_pair(first: Query, second: Query, scorer: Scorer) -> PairScore:
    """Score in both directions and take the best; the same number if the two are exchanged.

    A scorer walks along the query's frames, so a line through the map may be detected in one direction and missed by
    one frame in the other. Each video is therefore the query once, and so is its mirror image if it was described.

    Args:
        first: The query of the segments that are returned.
        second: The target of these pairs.
        scorer: Scorer of the index.
    """
    results = [
        scorer.score(first.plain, [second.plain])[0],
        swap_sides(scorer.score(second.plain, [first.plain])[0]),
    ]
    if first.mirrored is not None:
        results.append(scorer.score(first.mirrored, [second.plain], mirrored=True)[0])
    if second.mirrored is not None:
        results.append(swap_sides(scorer.score(second.mirrored, [first.plain], mirrored=True)[0]))
    return max(results, key=lambda result: result.score)


def swap_sides(result: PairScore) -> PairScore:
    """The same result with query and target exchanged."""
    segments = tuple(segment.swapped() for segment in result.segments)
    return PairScore(result.score, segments, result.map.T.contiguous())
