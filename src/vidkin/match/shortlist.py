"""The videos of a collection that may match a query, and where: votes of similar frames by video and rough offset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin.errors import InvalidArgumentError
from vidkin.match.compare import MIN_SIMILARITY, MapWindow
from vidkin.match.lines import SPEED_LIMITS
from vidkin.match.measure import Sequenced

__all__ = ["MAX_PRODUCT", "Gallery", "GalleryCandidate", "shortlist"]

Floats = NDArray[np.float32]

# Frames from which on a FAISS index is faster than one matrix product, its training included.
MAX_PRODUCT = 50_000
# Neighbors of a query frame that FAISS returns: a hundred copies with two or three similar frames each.
_NEIGHBORS = 256
# Frames of a product at once: 256 of the query with 50,000 of the gallery are 50 MB.
_ROWS = 256
# Frames of a query whose windows are found together: a minute at two frames a second.
_CHUNK = 128
# Windows of a chunk in one video: reordered footage comes back at several offsets.
_MAX_WINDOWS = 4
# Pairs of frames up to which the whole map is compared: less work than finding windows.
_MAX_CELLS = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class GalleryCandidate:
    """A sequence that may match.

    Attributes:
        position: Its position in the gallery.
        votes: Frames of the query at the offset with the most votes, each counted by its similarity.
        windows: Where to compare; None for the whole of both.
    """

    position: int
    votes: float
    windows: tuple[MapWindow, ...] | None


@check_constructor
class Gallery:
    """The frames of a collection.

    Args:
        sequences: Frames of each video, of one extractor; one may have none.
        videos: Number of the video of each sequence, where a video has more than one: of its whole frames and of boxes
            in them. None numbers the sequences.
        max_product: Frames up to which one matrix product is used, and FAISS above.
    """

    def __init__(
        self,
        sequences: Sequence[Sequenced],
        videos: Sequence[int] | None = None,
        *,
        max_product: int = MAX_PRODUCT,
    ) -> None:
        self.sequences = tuple(sequences)
        self._videos = tuple(range(len(self.sequences))) if videos is None else tuple(videos)
        if len(self._videos) != len(self.sequences):
            raise InvalidArgumentError(
                f"videos must have a number for each of {len(self.sequences)} sequences, got {len(self._videos)}"
            )
        self._max_product = max_product
        self._filled = np.array([number for number, frames in enumerate(self.sequences) if len(frames)], np.intp)
        if not len(self._filled):
            raise InvalidArgumentError("a gallery must have at least one video with frames")
        shown = [self.sequences[number] for number in self._filled]
        dimensions = sorted({video.vectors.shape[1] for video in shown})
        if len(dimensions) > 1:
            raise InvalidArgumentError(f"vectors of a gallery must have one dimension, got {dimensions}")
        counts = np.array([len(video) for video in shown])
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._vectors = np.concatenate([video.vectors for video in shown])
        self._times = np.concatenate([video.times for video in shown])
        self._levels = np.concatenate([video.levels for video in shown])
        self._owners = np.repeat(self._filled, counts)
        self._index: Any = None

    def video_of(self, position: int) -> int:
        """Number of the video of a sequence."""
        return self._videos[position]

    @property
    def frames(self) -> int:
        """Frames of all videos."""
        return len(self._vectors)

    def nearest(self, query: Sequenced) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Pairs of a query frame and a gallery frame that are similar beyond unrelated ones.

        Returns:
            Position of the query frame, of the gallery frame, and the calibrated similarity of the two, less
            `MIN_SIMILARITY`. Of each video and query frame the most similar frame; with FAISS, of the videos that own
            the nearest frames.
        """
        blocks = [self._nearest_of(query.cut(first, first + _ROWS), first) for first in range(0, len(query), _ROWS)]
        rows, frames, values = (np.concatenate(each) for each in zip(*blocks, strict=True))
        return rows, frames, values

    def times(self, frames: NDArray[np.intp]) -> NDArray[np.float64]:
        """Seconds of gallery frames."""
        return np.asarray(self._times[frames], np.float64)

    def owners(self, frames: NDArray[np.intp]) -> NDArray[np.intp]:
        """Positions of the videos of gallery frames."""
        return np.asarray(self._owners[frames], np.intp)

    def _nearest_of(self, query: Sequenced, first_row: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        vectors = query.vectors.astype(np.float32, copy=False)
        if self.frames <= self._max_product:
            cosines = vectors @ self._vectors.T.astype(np.float32, copy=False)
            level = (query.levels[:, None] + self._levels[None]) / 2
            values = _calibrate(cosines, level)
            best = np.maximum.reduceat(values, self._starts[:-1], axis=1)
            rows, owners = np.nonzero(best > 0)
            # The frame that is the best one: looked up only in the pairs that count.
            frames = np.array(
                [
                    self._starts[owner] + values[row, self._starts[owner] : self._starts[owner + 1]].argmax()
                    for row, owner in zip(rows, owners, strict=True)
                ],
                np.intp,
            )
            return rows + first_row, frames, best[rows, owners]
        if self._index is None:
            self._index = _faiss_index(self._vectors)
        cosines, found = self._index.search(vectors, min(_NEIGHBORS, self.frames))
        rows = np.repeat(np.arange(len(vectors)), found.shape[1])
        frames, cosines = found.ravel(), cosines.ravel()
        # FAISS fills up with -1 where its lists hold fewer neighbors.
        is_found = frames >= 0
        rows, frames, cosines = rows[is_found], frames[is_found].astype(np.intp), cosines[is_found]
        values = _calibrate(cosines, (query.levels[rows] + self._levels[frames]) / 2)
        # Of each video and query frame only the best: neighbors come in order of the cosine, which is nearly it.
        order = np.lexsort((-values, self._owners[frames], rows))
        rows, frames, values = rows[order], frames[order], values[order]
        owners = self._owners[frames]
        is_first = np.append(True, (rows[1:] != rows[:-1]) | (owners[1:] != owners[:-1]))
        keep = is_first & (values > 0)
        return rows[keep] + first_row, frames[keep], values[keep]


@check_arguments
def shortlist(gallery: Gallery, query: Sequenced, k: int) -> list[GalleryCandidate]:
    """The sequences with the most votes, most first, and the windows in which those votes lie.

    A frame of the query votes for its most similar frame in each video, as much as that frame is more similar than
    unrelated frames are. Votes are counted by video, by minute of the query, and by rough offset.

    Args:
        gallery: Where to look.
        query: Frames of a video.
        k: Candidates to return at most.
    """
    rows, frames, values = gallery.nearest(query)
    if not len(rows):
        return []
    owners = gallery.owners(frames)
    chunks = rows // _CHUNK
    offsets = gallery.times(frames) - query.times[rows]
    # Offsets drift by as much as a chunk is long where the speed is 2; a shift of half a bin catches those at its edge.
    width = max(_chunk_seconds(query), 1.0)
    votes: dict[int, float] = {}
    for shift in (0.0, 0.5):
        bins = np.floor(offsets / width + shift).astype(np.int64)
        keys, inverse = np.unique(np.stack([owners, chunks, bins], axis=1), axis=0, return_inverse=True)
        sums = np.bincount(inverse.ravel(), values)
        for owner, total in zip(keys[:, 0].tolist(), sums.tolist(), strict=True):
            votes[owner] = max(votes.get(owner, 0.0), total)
    chosen = sorted(votes, key=lambda owner: (-votes[owner], owner))[:k]
    result = []
    for owner in chosen:
        is_own = owners == owner
        target = gallery.sequences[owner]
        windows = None
        if len(query) * len(target) > _MAX_CELLS:
            windows = tuple(_windows(query, target, rows[is_own], gallery.times(frames[is_own]), values[is_own]))
        result.append(GalleryCandidate(owner, votes[owner], windows))
    return result


def _windows(
    query: Sequenced, target: Sequenced, rows: NDArray[np.intp], times: NDArray[np.float64], values: Floats
) -> Iterator[MapWindow]:
    """For each chunk of the query the stretches of the target with the most votes, long enough for every speed."""
    for first in range(0, len(query), _CHUNK):
        end = min(first + _CHUNK, len(query))
        inside = (rows >= first) & (rows < end)
        at, weights = times[inside], values[inside].astype(np.float64)
        reach = SPEED_LIMITS[1] * (query.times[end - 1] - query.times[first]) + 2 * target.period
        spans: list[tuple[float, float]] = []
        while len(at) and len(spans) < _MAX_WINDOWS:
            # Votes within half of the reach on either side; the window is centered on those of the best one.
            near = np.abs(at[:, None] - at[None]) <= reach / 2
            best = near[int(np.argmax(near @ weights))]
            middle = float((at[best] * weights[best]).sum() / weights[best].sum())
            spans.append((middle - reach, middle + reach))
            at, weights = at[~best], weights[~best]
        for start, stop in _merge(spans):
            low = int(np.searchsorted(target.times, start))
            high = int(np.searchsorted(target.times, stop, side="right"))
            if low < high:
                yield MapWindow(first, end, low, high)


def _merge(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans, in order, those that overlap as one."""
    merged: list[tuple[float, float]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged


def _chunk_seconds(query: Sequenced) -> float:
    end = min(_CHUNK, len(query)) - 1
    return float(query.times[end] - query.times[0]) + query.period


def _calibrate(cosines: Floats, level: Floats) -> Floats:
    """Similarity as in the map, less what speaks for a match."""
    return np.asarray((cosines - level) / np.maximum(1.0 - level, 0.05) - MIN_SIMILARITY, np.float32)


def _spread(vectors: Floats, count: int) -> Floats:
    """At most ``count`` of the vectors, evenly spaced."""
    return vectors[np.unique(np.linspace(0, len(vectors) - 1, min(count, len(vectors))).astype(np.intp))]


def _faiss_index(vectors: Floats) -> Any:
    """An inverted file over all vectors, searched in one of eight lists."""
    import faiss

    data = np.ascontiguousarray(vectors, np.float32)
    lists = max(1, int(np.sqrt(len(data))))
    quantizer = faiss.IndexFlatIP(data.shape[1])
    index = faiss.IndexIVFScalarQuantizer(
        quantizer, data.shape[1], lists, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    # Forty vectors a list are enough to place its center.
    index.train(_spread(data, 40 * lists))
    index.add(data)
    index.nprobe = max(1, lists // 8)
    return index
