"""First stage of a search: choose the videos that are worth an exact score, by the windows nearest to the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.index.storage.contract import NO_WINDOW, NearestWindows, VectorStore
from vidkin.index.storage.records import frame_vectors
from vidkin.similarity import FrameFeatures

_MAX_QUERY_VECTORS = 64

_MAX_PART_VECTORS = 8

# Windows looked up per candidate. In large indexes only half a window per candidate, but at least the minimum: there
# the nearest few separate copies from unrelated videos better, and more take longer (research/scale.md).
_WINDOWS_PER_CANDIDATE = 4
_LARGE_INDEX, _MIN_WINDOWS = 4096, 64

# Slightly more than the cosine of identical frames, which keeps the divisor positive. The power favors vectors for
# which a video stands out clearly.
_ABOVE_IDENTICAL, _PROMISE_POWER = 1.02, 3
# Number of the most promising videos among which diverse ones are chosen at first; doubled while that is too few.
_FIRST_POOL = 1024


def find_candidates(store: VectorStore, query: FrameFeatures, count: int) -> list[int]:
    """First stage: find the ids of at most ``count`` videos, most promising first.

    The query has a vector for each informative frame, and for the boxes found in some. :func:`margin_votes` says how
    promising each video is, and :func:`rank_candidates` chooses.
    """
    windows = _WINDOWS_PER_CANDIDATE * count
    if store.count() >= _LARGE_INDEX:
        windows = min(windows, max(_MIN_WINDOWS, count // 2))
    vectors = query_vectors(query)[0]
    return rank_candidates(*margin_votes(store.nearest(vectors, windows)), count) if len(vectors) else []


def margin_votes(nearest: NearestWindows) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Ids of the videos with the nearest windows [V], and the vote of each query vector for each video [Q, V], in [0,
    1].

    A vote counts how far a video stands out from unrelated ones, not how near it is: a plain sky is near to many
    others. The last of the nearest windows gives the level of unrelated videos; the vote is the cube of the share of
    the way from there to an identical frame that the video's best window covers. Summed over vectors, votes rank a
    copy, which stands out for many, before an unrelated video that is nearer for a few. research/scale.md compares
    alternatives.
    """
    scores = nearest.scores.astype(np.float64)
    ids, columns = np.unique(nearest.video_ids, return_inverse=True)
    # The best cosine [Q, videos] of each vector with each video; -1 if no window of the video is among the nearest.
    best = np.full((len(scores), len(ids)), -1.0)
    np.maximum.at(best, (np.arange(len(scores))[:, None], columns.reshape(scores.shape)), scores)
    best, ids = best[:, ids != NO_WINDOW], ids[ids != NO_WINDOW]
    unrelated = np.where(nearest.video_ids == NO_WINDOW, 1.0, scores).min(axis=1, keepdims=True)
    margin = np.maximum(best - unrelated, 0.0) / (_ABOVE_IDENTICAL - unrelated)
    return ids, (margin**_PROMISE_POWER).astype(np.float32)


def rank_candidates(ids: NDArray[np.int64], votes: NDArray[np.float32], count: int) -> list[int]:
    """Choose at most ``count`` of these videos [V] by the votes of :func:`margin_votes` [Q, V].

    Half of them are chosen one by one for diversity: a vector that gave the videos chosen so far the votes w counts 1 /
    (1 + sum of w)^2. So if a query shows a clip inside a film, or a clip that covers another, and hundreds of videos
    have the film, the clip's video is chosen soon after the first of the film. The other half are the most promising of
    the rest, so that all copies of one video have a chance.

    Returns:
        The ids, most promising first; ties in the order of ids.
    """
    promise = _promise(votes, np.ones(len(votes), np.float32))
    order = np.argsort(-promise, kind="stable")
    if len(order) > count:
        diverse = _choose_diverse(votes[:, order], promise[order], count // 2)
        rest = np.setdiff1d(np.arange(len(order)), diverse)[: count - len(diverse)]
        order = order[np.sort(np.concatenate([np.array(diverse, np.int64), rest]))]
    ranked: list[int] = ids[order].tolist()
    return ranked


def _promise(votes: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weighted sums of the votes [V], added row by row, so that equal columns have equal sums."""
    return np.asarray((votes * weights[:, None]).sum(axis=0))


def _choose_diverse(votes: NDArray[np.float32], promise: NDArray[np.float32], count: int) -> list[int]:
    """Choose columns of votes [Q, V], each by what those chosen before leave unexplained; promise [V] is descending."""
    explained = np.zeros(len(votes), np.float32)
    chosen: list[int] = []
    pool = min(_FIRST_POOL, len(promise))
    while len(chosen) < min(count, len(promise)):
        left = _promise(votes[:, :pool], np.float32(1) / (1 + explained) ** 2)
        left[chosen] = -1.0
        best = int(left.argmax())
        # Weights only fall, so a video outside the pool is worth at most its first promise.
        if pool < len(promise) and promise[pool] > left[best]:
            pool = min(2 * pool, len(promise))
            continue
        explained += votes[:, best]
        chosen.append(best)
    return chosen


def query_vectors(view: FrameFeatures) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.int64]]:
    """Vectors [Q, E] of evenly spread informative frames, comparable with windows, with the times of the frames [Q] and
    their views [Q]; for boxes and crops, of frames that have them. Black frames, whose vectors are near zero, are left
    out."""
    informative = np.flatnonzero(view.information >= 0.01)
    rows = [_spread(informative, _MAX_QUERY_VECTORS)]
    for part in range(1, view.values.shape[1]):
        described = informative[view.values[informative, part].any(axis=(1, 2))]
        rows.append(_spread(described, _MAX_PART_VECTORS))
    vectors = np.concatenate([frame_vectors(view.values[chosen, part]) for part, chosen in enumerate(rows)])
    frames = np.concatenate(rows)
    views = np.repeat(np.arange(len(rows)), [len(chosen) for chosen in rows])
    is_informative: NDArray[np.bool_] = np.vecdot(vectors, vectors) > 0.25
    return vectors[is_informative], view.timestamps[frames[is_informative]].astype(np.float64), views[is_informative]


def _spread(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most ``most`` of the rows, evenly spread."""
    if len(rows) <= most:
        return rows
    return rows[np.rint(np.linspace(0, len(rows) - 1, most)).astype(np.int64)]
