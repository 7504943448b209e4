"""First stage of a search: choose the videos to score exactly, by the indexed windows nearest to the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vidkin.index.storage.contract import NO_WINDOW, NearestWindows, VectorStore
from vidkin.index.storage.records import frame_vectors
from vidkin.similarity import FrameFeatures

# Maximum number of query vectors: whole frames, and each kind of box or crop.
_MAX_QUERY_VECTORS = 64
_MAX_PART_VECTORS = 8

# Nearest windows retrieved per candidate. Indexes with many videos use only half a window per candidate, but at least
# the minimum: there, fewer windows separate copies from unrelated videos better and are faster (research/scale.md).
_WINDOWS_PER_CANDIDATE = 4
_LARGE_INDEX, _MIN_WINDOWS = 4096, 64

# Slightly above the cosine of identical frames, to keep the denominator positive. The exponent favors vectors for which
# a video clearly stands out.
_ABOVE_IDENTICAL, _PROMISE_POWER = 1.02, 3
# Initial number of most promising videos from which diverse ones are chosen; doubled when it is too small.
_FIRST_POOL = 1024


def find_candidates(store: VectorStore, query: FrameFeatures, count: int) -> list[int]:
    """Return the ids of at most ``count`` videos, most promising first.

    Query vectors come from informative frames and from boxes and crops in them (:func:`query_vectors`). They vote for
    videos (:func:`margin_votes`), and :func:`rank_candidates` chooses by these votes.
    """
    windows = _WINDOWS_PER_CANDIDATE * count
    if store.count() >= _LARGE_INDEX:
        windows = min(windows, max(_MIN_WINDOWS, count // 2))
    vectors = query_vectors(query)[0]
    return rank_candidates(*margin_votes(store.nearest(vectors, windows)), count) if len(vectors) else []


def margin_votes(nearest: NearestWindows) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Compute the votes [Q, V] of query vectors for videos, in [0, 1]; return the video ids [V] and the votes.

    A vote measures how far a video stands out from unrelated ones rather than its absolute similarity, because a plain
    sky is similar to many others. The least similar of the nearest windows estimates the level of unrelated videos. The
    vote is the cube of (similarity of the video's best window - level) / (similarity of an identical frame - level).
    Summed over query vectors, votes rank a copy, which stands out for many of them, above an unrelated video that is
    more similar for a few. research/scale.md compares alternatives.
    """
    scores = nearest.scores.astype(np.float64)
    ids, columns = np.unique(nearest.video_ids, return_inverse=True)
    # Highest cosine similarity [Q, V] of each vector to each video; -1 if none of its windows is among the nearest.
    best = np.full((len(scores), len(ids)), -1.0)
    np.maximum.at(best, (np.arange(len(scores))[:, None], columns.reshape(scores.shape)), scores)
    best, ids = best[:, ids != NO_WINDOW], ids[ids != NO_WINDOW]
    unrelated = np.where(nearest.video_ids == NO_WINDOW, 1.0, scores).min(axis=1, keepdims=True)
    margin = np.maximum(best - unrelated, 0.0) / (_ABOVE_IDENTICAL - unrelated)
    return ids, (margin**_PROMISE_POWER).astype(np.float32)


def rank_candidates(ids: NDArray[np.int64], votes: NDArray[np.float32], count: int) -> list[int]:
    """Choose at most ``count`` of the videos [V] by the votes [Q, V] of :func:`margin_votes`.

    Half of them are chosen greedily for diversity: a vector's weight is 1 / (1 + sum of its votes for the videos chosen
    so far)^2. If a query contains a clip inserted into a film, or overlaid on another clip, and hundreds of videos
    contain the film, the clip's video is thus chosen soon after the first copy of the film. The other half are the most
    promising of the rest, so that all copies of one video have a chance.

    Returns:
        The ids, most promising first; ties are in ascending order of ids.
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
    """Weighted sums [V] of the votes, accumulated row by row so that equal columns have exactly equal sums."""
    return np.asarray((votes * weights[:, None]).sum(axis=0))


def _choose_diverse(votes: NDArray[np.float32], promise: NDArray[np.float32], count: int) -> list[int]:
    """Greedily choose columns of votes [Q, V] by what the columns already chosen leave unexplained.

    ``promise`` [V] must be in descending order.
    """
    explained = np.zeros(len(votes), np.float32)
    chosen: list[int] = []
    pool = min(_FIRST_POOL, len(promise))
    while len(chosen) < min(count, len(promise)):
        left = _promise(votes[:, :pool], np.float32(1) / (1 + explained) ** 2)
        left[chosen] = -1.0
        best = int(left.argmax())
        # Weights only decrease, so the initial promise is an upper bound for videos outside the pool.
        if pool < len(promise) and promise[pool] > left[best]:
            pool = min(2 * pool, len(promise))
            continue
        explained += votes[:, best]
        chosen.append(best)
    return chosen


def query_vectors(view: FrameFeatures) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.int64]]:
    """Return vectors [Q, E] of evenly spaced informative frames, to be compared with windows, and of the boxes and
    crops in such frames; also the frame times [Q] and view numbers [Q]. Black frames, whose vectors are near zero, are
    excluded."""
    informative = np.flatnonzero(view.information >= 0.01)
    rows = [_select_evenly(informative, _MAX_QUERY_VECTORS)]
    for part in range(1, view.values.shape[1]):
        described = informative[view.values[informative, part].any(axis=(1, 2))]
        rows.append(_select_evenly(described, _MAX_PART_VECTORS))
    vectors = np.concatenate([frame_vectors(view.values[chosen, part]) for part, chosen in enumerate(rows)])
    frames = np.concatenate(rows)
    views = np.repeat(np.arange(len(rows)), [len(chosen) for chosen in rows])
    is_informative: NDArray[np.bool_] = np.vecdot(vectors, vectors) > 0.25
    return vectors[is_informative], view.timestamps[frames[is_informative]].astype(np.float64), views[is_informative]


def _select_evenly(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Select at most ``most`` of the rows, evenly spaced."""
    if len(rows) <= most:
        return rows
    return rows[np.rint(np.linspace(0, len(rows) - 1, most)).astype(np.int64)]
