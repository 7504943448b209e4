"""Which videos are worth exact scores: those whose windows are nearest to a query, as it is and turned.

The first stage looks up the windows nearest to the vectors of a query, and orders the videos that they are of. Turned
copies: a few frames of the query are described turned; only where they point to a video is it read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vidkin._base.blas import median
from vidkin.errors import MediaError
from vidkin.index.query.query import Query, QueryTurns
from vidkin.index.storage.contract import NO_WINDOW, NearestWindows, VectorStore
from vidkin.index.storage.records import frame_vectors
from vidkin.similarity import FrameFeatures, PairScore

_MOST_QUERY_VECTORS = 64

_MOST_PART_VECTORS = 8

# Windows looked up for each candidate. In a collection of so many videos half a window for each, and at least so many:
# there the nearest few tell a copy from strangers better, and more take longer (research/scale.md).
_WINDOWS_PER_CANDIDATE = 4
_MANY_VIDEOS, _LEAST_WINDOWS = 4096, 64

# A cosine a little above that of the same picture, so that what all strangers reach does not divide by nothing; and how
# much more a vector tells that is far above strangers.
_SAME_PICTURE, _PROMISE_POWER = 1.02, 3
# Among so many of the most promising videos the first that are unlike are looked for, then among twice as many.
_FIRST_LOOKED_AT = 1024

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


def find_candidates(store: VectorStore, query: Query, count: int) -> list[int]:
    """First stage: find the ids of at most ``count`` videos, most promising first.

    The query has a vector for each informative frame and for parts of some, plain and mirrored. How promising a video
    is says :func:`ways_of`, by the better of both, and :func:`rank_candidates` chooses.
    """
    windows = _WINDOWS_PER_CANDIDATE * count
    if store.count() >= _MANY_VIDEOS:
        windows = min(windows, max(_LEAST_WINDOWS, count // 2))
    sides = [
        ways_of(store.nearest(vectors, windows))
        for view in (query.plain, query.mirrored)
        if view is not None and len(vectors := query_vectors(view)[0])
    ]
    return rank_candidates(sides, count)


def ways_of(nearest: NearestWindows) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Ids of the videos with the nearest windows [V], and how well each vector finds each [Q, V], in [0, 1].

    What counts is how far a video is above strangers, not how near it is: a plain sky is near to many others. What a
    stranger reaches for a vector is the score of the last of its nearest windows; what a video's best window has of the
    way from there to the same picture is cubed. Summed over the vectors, it says how promising a video is: a copy,
    which is above strangers for many vectors, comes before a stranger that is nearer for a few. research/scale.md
    compares other ways.
    """
    scores = nearest.scores.astype(np.float64)
    ids, columns = np.unique(nearest.video_ids, return_inverse=True)
    # The best cosine [Q, videos] of each vector with each video; -1 where none of its windows is among the nearest.
    best = np.full((len(scores), len(ids)), -1.0)
    np.maximum.at(best, (np.arange(len(scores))[:, None], columns.reshape(scores.shape)), scores)
    best, ids = best[:, ids != NO_WINDOW], ids[ids != NO_WINDOW]
    strangers = np.where(nearest.video_ids == NO_WINDOW, 1.0, scores).min(axis=1, keepdims=True)
    way = np.maximum(best - strangers, 0.0) / (_SAME_PICTURE - strangers)
    return ids, (way**_PROMISE_POWER).astype(np.float32)


def rank_candidates(sides: Sequence[tuple[NDArray[np.int64], NDArray[np.float32]]], count: int) -> list[int]:
    """Ids of at most ``count`` videos, from what :func:`ways_of` says of the query and of its mirror image.

    Half of them are chosen one after the other by what the others leave open: a vector whose ways to the videos chosen
    before are w counts 1 / (1 + sum of w)^2. So where a query shows a clip inside of a film, or one that covers
    another, and hundreds have the film, the video of the clip is chosen soon after the first of the film. The other
    half are the most promising of what is left, so that many copies of one video stay many.

    Returns:
        The most promising first; of equal ones the lower id.
    """
    if not sides:
        return []
    videos = np.unique(np.concatenate([ids for ids, _ in sides]))
    tables = [np.zeros((len(ways), len(videos)), np.float32) for _, ways in sides]
    for table, (ids, ways) in zip(tables, sides, strict=True):
        table[:, np.searchsorted(videos, ids)] = ways
    promise = _promise(tables, [np.ones(len(table), np.float32) for table in tables]).max(axis=0)
    order = np.argsort(-promise, kind="stable")
    if len(order) > count:
        unlike = _unlike([table[:, order] for table in tables], promise[order], count // 2)
        rest = np.setdiff1d(np.arange(len(order)), unlike)[: count - len(unlike)]
        order = order[np.sort(np.concatenate([np.array(unlike, np.int64), rest]))]
    ranked: list[int] = videos[order].tolist()
    return ranked


def _promise(tables: Sequence[NDArray[np.float32]], weights: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """[sides, V], weighted sums of the ways; row after row, so that equal columns have equal sums."""
    return np.array([(table * weight[:, None]).sum(axis=0) for table, weight in zip(tables, weights, strict=True)])


def _unlike(tables: Sequence[NDArray[np.float32]], promise: NDArray[np.float32], count: int) -> list[int]:
    """Columns of tables [Q, V], each with what those before it leave open; promise [V] is falling."""
    explained = [np.zeros(len(table), np.float32) for table in tables]
    chosen: list[int] = []
    looked = min(_FIRST_LOOKED_AT, len(promise))
    while len(chosen) < min(count, len(promise)):
        weights = [np.float32(1) / (1 + each) ** 2 for each in explained]
        left = _promise([table[:, :looked] for table in tables], weights)
        left[:, chosen] = -1.0
        best = int(left.max(axis=0).argmax())
        # What is not looked at was less promising from the start, and has only become so.
        if looked < len(promise) and promise[looked] > left[:, best].max():
            looked = min(2 * looked, len(promise))
            continue
        side = int(left[:, best].argmax())
        explained[side] += tables[side][:, best]
        chosen.append(best)
    return chosen


def query_vectors(view: FrameFeatures) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.int64]]:
    """Window-like vectors [Q, E] of informative frames, evenly spread, the times of their frames [Q] and their views
    [Q]; vectors of black frames are near zero and left out."""
    informative = np.flatnonzero(view.information >= 0.05)
    some = _spread(informative, _MOST_QUERY_VECTORS)
    few = _spread(informative, _MOST_PART_VECTORS)
    whole = frame_vectors(view.whole[some])
    parts = frame_vectors(view.values[few, 1:]).swapaxes(0, 1)
    vectors: NDArray[np.float32] = np.concatenate([whole, parts.reshape(-1, whole.shape[1])])
    frames = np.concatenate([some, np.tile(few, len(parts))])
    views = np.concatenate([np.zeros(len(some), np.int64), np.repeat(np.arange(1, len(parts) + 1), len(few))])
    is_informative: NDArray[np.bool_] = np.vecdot(vectors, vectors) > 0.25
    return vectors[is_informative], view.timestamps[frames[is_informative]].astype(np.float64), views[is_informative]


def _spread(places: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most ``most`` of these, evenly spread."""
    if len(places) <= most:
        return places
    return places[np.rint(np.linspace(0, len(places) - 1, most)).astype(np.int64)]


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
