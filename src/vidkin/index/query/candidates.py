"""Which videos are worth exact scores: those whose windows are nearest to the vectors of a query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.index.storage.contract import NO_WINDOW, NearestWindows, VectorStore
from vidkin.index.storage.records import frame_vectors
from vidkin.similarity import FrameFeatures

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


def find_candidates(store: VectorStore, query: FrameFeatures, count: int) -> list[int]:
    """First stage: find the ids of at most ``count`` videos, most promising first.

    The query has a vector for each informative frame, and for the boxes found in some. How promising a video is says
    :func:`ways_of`, and :func:`rank_candidates` chooses.
    """
    windows = _WINDOWS_PER_CANDIDATE * count
    if store.count() >= _MANY_VIDEOS:
        windows = min(windows, max(_LEAST_WINDOWS, count // 2))
    vectors = query_vectors(query)[0]
    return rank_candidates(*ways_of(store.nearest(vectors, windows)), count) if len(vectors) else []


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


def rank_candidates(ids: NDArray[np.int64], ways: NDArray[np.float32], count: int) -> list[int]:
    """Ids of at most ``count`` of these videos [V], from what :func:`ways_of` says of the vectors of a query [Q, V].

    Half of them are chosen one after the other by what the others leave open: a vector whose ways to the videos chosen
    before are w counts 1 / (1 + sum of w)^2. So where a query shows a clip inside of a film, or one that covers
    another, and hundreds have the film, the video of the clip is chosen soon after the first of the film. The other
    half are the most promising of what is left, so that many copies of one video stay many.

    Returns:
        The most promising first; of equal ones the lower id.
    """
    promise = _promise(ways, np.ones(len(ways), np.float32))
    order = np.argsort(-promise, kind="stable")
    if len(order) > count:
        unlike = _unlike(ways[:, order], promise[order], count // 2)
        rest = np.setdiff1d(np.arange(len(order)), unlike)[: count - len(unlike)]
        order = order[np.sort(np.concatenate([np.array(unlike, np.int64), rest]))]
    ranked: list[int] = ids[order].tolist()
    return ranked


def _promise(ways: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """[V], weighted sums of the ways; row after row, so that equal columns have equal sums."""
    return np.asarray((ways * weights[:, None]).sum(axis=0))


def _unlike(ways: NDArray[np.float32], promise: NDArray[np.float32], count: int) -> list[int]:
    """Columns of ways [Q, V], each with what those before it leave open; promise [V] is falling."""
    explained = np.zeros(len(ways), np.float32)
    chosen: list[int] = []
    looked = min(_FIRST_LOOKED_AT, len(promise))
    while len(chosen) < min(count, len(promise)):
        left = _promise(ways[:, :looked], np.float32(1) / (1 + explained) ** 2)
        left[chosen] = -1.0
        best = int(left.argmax())
        # What is not looked at was less promising from the start, and has only become so.
        if looked < len(promise) and promise[looked] > left[best]:
            looked = min(2 * looked, len(promise))
            continue
        explained += ways[:, best]
        chosen.append(best)
    return chosen


def query_vectors(view: FrameFeatures) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.int64]]:
    """Window-like vectors [Q, E] of informative frames, evenly spread, the times of their frames [Q] and their views
    [Q]; of each box and crop, those of frames that have it. Vectors of black frames are near zero and left out."""
    informative = np.flatnonzero(view.information >= 0.01)
    rows = [_spread(informative, _MOST_QUERY_VECTORS)]
    for part in range(1, view.values.shape[1]):
        described = informative[view.values[informative, part].any(axis=(1, 2))]
        rows.append(_spread(described, _MOST_PART_VECTORS))
    vectors = np.concatenate([frame_vectors(view.values[chosen, part]) for part, chosen in enumerate(rows)])
    frames = np.concatenate(rows)
    views = np.repeat(np.arange(len(rows)), [len(chosen) for chosen in rows])
    is_informative: NDArray[np.bool_] = np.vecdot(vectors, vectors) > 0.25
    return vectors[is_informative], view.timestamps[frames[is_informative]].astype(np.float64), views[is_informative]


def _spread(places: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most ``most`` of these, evenly spread."""
    if len(places) <= most:
        return places
    return places[np.rint(np.linspace(0, len(places) - 1, most)).astype(np.int64)]
