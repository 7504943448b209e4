"""Turned copies: a few frames of the query are described turned; only where they point to a video is it read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from vidkin._base.blas import median
from vidkin.errors import MediaError
from vidkin.index.query.query import Query, QueryTurns
from vidkin.index.storage.contract import NO_WINDOW, VectorStore
from vidkin.index.storage.records import frame_vectors
from vidkin.similarity import FrameFeatures, PairScore

SURE_ENOUGH = 0.5
"""Below this score, parts of the query are compared with parts of the video, and the query is tried turned."""

TURN_MARGIN = 0.05
"""By how much a turned query must score more than the query as it is: many textures look the same turned."""

# Least mean cosine of the few frames with the most similar windows of a video; of whitened ones, where one in a hundred
# of those that reach .6 otherwise is below it.
_LEAST_TURNED, _LEAST_WHITENED = 0.6, 0.4
# Windows looked up for each of these frames, and videos of each turn that are scored with them.
_TURNED_WINDOWS, _MOST_TURNED = 64, 6
# The query is read again if the few frames score that much, or if half of them have a frame in the video that is so
# similar (calibrated): footage with little detail scores next to nothing by eight frames. Of 45 turned clips of other
# footage all had .16 or more and .5 or more; of other videos one in thirty had .05.
_LEAST_SCORE, _LEAST_SEEN = 0.05, 0.7
ScoreQuery = Callable[[Query, Sequence[int]], list[tuple[int, PairScore]]]
"""Scores of a query and some videos by their ids."""


def find_turned(
    store: VectorStore,
    turns: QueryTurns,
    scored: Mapping[int, PairScore],
    score_look: ScoreQuery,
    score: ScoreQuery,
) -> dict[int, PairScore]:
    """Videos that match the query turned by 90, 180 or 270 degrees clearly better than as it is.

    Args:
        store: Store of the index.
        turns: The query, turned.
        scored: Scores of the query as it is, by the id of the video.
        score_look: Scores the few frames with stored features.
        score: Scores what is read again.

    Returns:
        Scores by id; the segments state the turn.
    """
    looks = list(turns.looks())
    promising: dict[int, list[int]] = {}
    for (degrees, features), ids in zip(looks, _similar_windows(store, looks), strict=True):
        unsure = [video for video in ids if score_of(scored, video) < SURE_ENOUGH][:_MOST_TURNED]
        for video, pair in score_look(Query(features), unsure):
            if is_promising(pair):
                promising.setdefault(degrees, []).append(video)
    found: dict[int, PairScore] = {}
    for degrees, videos in promising.items():
        try:
            query = turns.read(degrees)
        except MediaError:
            continue  # it was read a moment ago; what is known of it stays
        for video, pair in score(query, list(dict.fromkeys(videos))):
            if pair.score > max(score_of(scored, video) + TURN_MARGIN, score_of(found, video)):
                found[video] = say_turned(pair, degrees)
    return found


def _similar_windows(store: VectorStore, looks: Sequence[tuple[int, FrameFeatures]]) -> list[list[int]]:
    """For each turn the videos with windows like its few frames, the most similar first."""
    vectors = [frame_vectors(features.whole) for _, features in looks]
    if not vectors:
        return []
    nearest = store.nearest(np.concatenate(vectors), _TURNED_WINDOWS)
    least = _LEAST_WHITENED if store.is_whitened else _LEAST_TURNED
    result, first = [], 0
    for rows in map(len, vectors):
        cells = slice(first, first + rows)
        first += rows
        videos, columns = np.unique(nearest.video_ids[cells], return_inverse=True)
        best = np.zeros((rows, len(videos)))
        columns = columns.reshape(rows, -1)
        np.maximum.at(best, (np.arange(rows)[:, None], columns), np.maximum(nearest.scores[cells], 0.0))
        mean = np.where(videos != NO_WINDOW, best.mean(axis=0), 0.0)
        ranked = np.argsort(-mean, kind="stable")
        result.append([int(videos[place]) for place in ranked if mean[place] >= least])
    return result


def is_promising(look: PairScore) -> bool:
    """Whether the score of a few turned frames calls for all of them."""
    return look.score >= _LEAST_SCORE or float(median(look.map.max(axis=1), 0)) >= _LEAST_SEEN


def score_of(scored: Mapping[int, PairScore], video: int) -> float:
    """Score of a video; 0 if it has none."""
    return scored[video].score if video in scored else 0.0


def say_turned(pair: PairScore, degrees: int) -> PairScore:
    """The score of a query that was turned by so many degrees; its segments state it."""
    return replace(pair, segments=tuple(replace(segment, turned=degrees) for segment in pair.segments))
