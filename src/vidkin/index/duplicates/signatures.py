"""First stage for many videos at once: candidates for copies as a whole, by what each video shows on average.

A copy as a whole shows the same scenes, whatever their speed, so that the mean over time of its pictures is near that
of the original, or near the mean of one of its parts if it was cropped. One product of matrices compares all of them,
where looking up the windows of each video by itself takes a search each.

Shapes: V videos; N views of all videos; D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin.features.contracts import Turn
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.records import WindowVectors
from vidkin.similarity import FrameFeatures

# Videos whose windows are read at a time, and cosines that are held at a time.
_VIDEOS_A_BLOCK, _MOST_COSINES = 256, 1 << 24
# Least cosine of a candidate, as it is and after a turn. Of 840 pairs of edited copies one in a hundred was below .4 in
# one direction; so are half of all unrelated pairs.
_LEAST_ALIKE, _LEAST_TURNED = 0.25, 0.4

Predict = Callable[[FrameFeatures, Turn], FrameFeatures | None]
"""Whole pictures after a turn, predicted; None if nobody can tell. See
:class:`vidkin.features.contracts.PredictsTurns`."""


@dataclass(frozen=True, slots=True, eq=False)
class Signatures:
    """Mean vectors of videos, for finding candidates of all of them.

    The mean of all videos is subtracted first: what all pictures have in common makes none of them alike.

    Attributes:
        rows: Id of a video -> its place among the V videos; videos without windows have none.
        ids: [V] int64.
        views: [N, D] float32, unit vectors of all views of all videos, the whole picture first.
        firsts: [V] int64, the first view of each video.
        turned: Turn -> [V, D] float32, unit vectors of the whole pictures after it, as far as that can be told.
    """

    rows: dict[int, int]
    ids: NDArray[np.int64]
    views: NDArray[np.float32]
    firsts: NDArray[np.int64]
    turned: dict[Turn, NDArray[np.float32]]

    @classmethod
    def of(
        cls, store: VectorStore, video_ids: Sequence[int], predict: Predict | None = None, turns: Sequence[Turn] = ()
    ) -> Signatures:
        """Read the windows of these videos, block by block.

        Args:
            store: Store of the index.
            video_ids: The videos.
            predict: Predicts pictures after a turn; None if no turns are asked for.
            turns: The turns.

        Raises:
            NotIndexedError: A video was removed meanwhile.
        """
        ids: list[int] = []
        means: list[NDArray[np.float32]] = []
        counts: list[int] = []
        after: dict[Turn, list[NDArray[np.float32]]] = {turn: [] for turn in turns}
        for first in range(0, len(video_ids), _VIDEOS_A_BLOCK):
            block = video_ids[first : first + _VIDEOS_A_BLOCK]
            read = [
                (video, part) for video, part in zip(block, store.read_windows_many(block), strict=True) if len(part)
            ]
            if not read:
                continue
            ids += [video for video, _ in read]
            parts = [_views_of(part) for _, part in read]
            means += parts
            counts += map(len, parts)
            wholes = [part.of_whole() for _, part in read]
            for turn, found in list(after.items()):
                predicted = None if predict is None else _predicted(wholes, turn, predict)
                if predicted is None:
                    del after[turn]  # for no video, then
                else:
                    found.append(predicted)
        views = np.concatenate(means) if means else np.zeros((0, 0), np.float32)
        number = np.array(counts, np.int64)
        firsts = np.cumsum(number) - number
        center = views[firsts].mean(axis=0) if len(ids) else np.zeros(0, np.float32)
        _center(views, center)
        turned = {turn: _center(np.concatenate(found), center) for turn, found in after.items() if found}
        return cls({video: row for row, video in enumerate(ids)}, np.array(ids, np.int64), views, firsts, turned)

    def neighbors(
        self, video_ids: Sequence[int], count: int, *, turn: Turn | None = None, both: bool = False
    ) -> Iterator[tuple[int, list[int]]]:
        """The most similar other videos of each of these, best first; at most ``count``, and only what is alike at all.

        A video's whole picture is compared with all views of the others; turned by degrees, with their whole pictures.

        Args:
            video_ids: The videos; those without windows have no neighbors.
            count: Number of neighbors.
            turn: Compare the videos as they look after this turn; none are found if that cannot be told.
            both: Also compare their views with the whole pictures of the others, which else is left to the others.
        """
        wholes = self.views[self.firsts] if turn is None else self.turned.get(turn)
        step = max(1, _MOST_COSINES // max(1, len(self.views)))
        for first in range(0, len(video_ids), step):
            block = video_ids[first : first + step]
            rows = np.array([self.rows[video] for video in block if video in self.rows], np.int64)
            if wholes is None or not len(rows):
                yield from ((video, []) for video in block)
                continue
            if turn in (None, "mirrored"):
                alike = np.maximum.reduceat(wholes[rows] @ self.views.T, self.firsts, axis=1)
            else:
                alike = wholes[rows] @ self.views[self.firsts].T
            if both and turn is None:
                alike = np.maximum(alike, self._as_parts(rows))
            alike[np.arange(len(rows)), rows] = -1.0
            least = _LEAST_ALIKE if turn is None else _LEAST_TURNED
            found = dict(zip(self.ids[rows].tolist(), self._best(alike, count, least), strict=True))
            yield from ((video, found.get(video, [])) for video in block)

    def _as_parts(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The best cosine [rows, V] of the views of some videos with the whole pictures of all."""
        ends = np.append(self.firsts[1:], len(self.views))
        wholes = self.views[self.firsts]
        best = [(wholes @ self.views[self.firsts[row] : ends[row]].T).max(axis=1) for row in rows.tolist()]
        return np.stack(best)

    def _best(self, alike: NDArray[np.float32], count: int, least: float) -> list[list[int]]:
        """Ids of the best columns of each row, best first; of equals the lower place."""
        most = min(count, alike.shape[1])
        columns = np.sort(np.argpartition(-alike, most - 1, axis=1)[:, :most], axis=1)
        cosines = np.take_along_axis(alike, columns, axis=1)
        order = np.argsort(-cosines, axis=1, kind="stable")
        columns, cosines = np.take_along_axis(columns, order, axis=1), np.take_along_axis(cosines, order, axis=1)
        return [self.ids[own[near >= least]].tolist() for own, near in zip(columns, cosines, strict=True)]


def _views_of(windows: WindowVectors) -> NDArray[np.float32]:
    """Mean vectors [views, D] of the views of one video: the windows of each start over in time."""
    starts = np.flatnonzero(np.append(True, windows.first_frames[1:] <= windows.last_frames[:-1]))
    return _means(windows.vectors.astype(np.float32), windows.ends - windows.starts, starts)


def _predicted(wholes: Sequence[WindowVectors], turn: Turn, predict: Predict) -> NDArray[np.float32] | None:
    """Mean vectors [videos, D] of whole pictures after a turn."""
    vectors = np.concatenate([whole.vectors for whole in wholes]).astype(np.float32)
    after = predict(FrameFeatures.of_whole(vectors[:, None], np.arange(float(len(vectors)))), turn)
    if after is None:
        return None
    lengths = np.array([len(whole) for whole in wholes])
    seconds = np.concatenate([whole.ends - whole.starts for whole in wholes])
    return _means(after.values[:, 0, 0], seconds, np.cumsum(lengths) - lengths)


def _means(
    vectors: NDArray[np.float32], seconds: NDArray[np.float64], firsts: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Means of runs of vectors, weighted by their seconds."""
    # Of a single frame nobody knows how long it lasts.
    weights = np.maximum(seconds, 1e-3).astype(np.float32)[:, None]
    sums, total = np.add.reduceat(vectors * weights, firsts), np.add.reduceat(weights, firsts)
    return np.asarray(sums / total, np.float32)


def _center(vectors: NDArray[np.float32], center: NDArray[np.float32]) -> NDArray[np.float32]:
    """Subtract the center and make them unit vectors, in place."""
    vectors -= center
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    return vectors
