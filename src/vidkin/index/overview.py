"""A map of a collection: every video as a point, near to what is similar to it, and in a cluster of such videos."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from vidkin._base.registry import import_part
from vidkin._base.values import Result, check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.similarity.reviewed import describe_video_whole

if TYPE_CHECKING:
    from vidkin.index.collection import Index

MapMethod = Literal["auto", "pca", "umap"]

# Dimensions in which clusters are found and from which UMAP begins, neighbors that it looks at, and the fewest videos.
_DIMENSIONS, _NEIGHBORS, _FEWEST = 32, 15, 10
_MOST_CLUSTERS, _ROUNDS, _CENTRAL = 24, 25, 8
# Videos whose features are in memory at a time.
_AT_A_TIME = 32
_SEED = 0


@dataclass(frozen=True, slots=True, eq=False)
class CollectionMap(Result):
    """Videos as points in a square.

    Attributes:
        method: ``pca``: the two directions in which the videos differ most; ``umap``: neighbors stay neighbors.
        videos: [N] int64, ids of the videos.
        points: [N, 2] float32, positions in [0, 1]; only who is near to whom has a meaning.
        clusters: [N] int64, number of the cluster of each video, 0 is the largest.
        central: For each cluster the ids of some videos, the most typical ones first.
    """

    method: Literal["pca", "umap"]
    videos: NDArray[np.int64]
    points: NDArray[np.float32]
    clusters: NDArray[np.int64]
    central: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        count = len(self.videos)
        if self.points.shape != (count, 2) or self.clusters.shape != (count,):
            raise InvalidArgumentError(
                f"points must be [{count}, 2] and clusters [{count}], as there are {count} videos, got "
                f"{list(self.points.shape)} and {list(self.clusters.shape)}"
            )


def map_collection(
    index: Index, *, method: MapMethod = "auto", on_progress: Callable[[int, int], None] | None = None
) -> CollectionMap:
    """Place the videos of an index so that similar ones are near to each other, and cluster them.

    Each video is the mean of its frames. The same videos give the same map.

    Args:
        index: The index.
        method: ``auto`` is ``umap`` where umap-learn is installed (``pip install 'vidkin[map]'``), else ``pca``.
        on_progress: Callback that receives (videos read, total number of videos).

    Raises:
        InvalidArgumentError: There is no such method.
        MissingPartError: ``umap`` was named and is not installed.
    """
    check_choice("method", method, ("auto", "pca", "umap"))
    index.refresh()
    videos = np.array(
        [record.id for record in index.videos() if record.status == "ok" and record.frames], dtype=np.int64
    )
    vectors = np.zeros((len(videos), 1), dtype=np.float32)
    for start in range(0, len(videos), _AT_A_TIME):
        read = index.store.read_many(videos[start : start + _AT_A_TIME].tolist())
        means = np.stack([describe_video_whole(features) for features in read])
        if start == 0:
            vectors = np.empty((len(videos), means.shape[1]), dtype=np.float32)
        vectors[start : start + len(means)] = means
        if on_progress is not None:
            on_progress(start + len(means), len(videos))
    return lay_out(videos, vectors, method=method)


def lay_out(videos: NDArray[np.int64], vectors: NDArray[np.float32], *, method: MapMethod = "auto") -> CollectionMap:
    """The map of vectors [N, D], one of each video; see :func:`map_collection`."""
    reduced = principal_components(vectors, min(_DIMENSIONS, *vectors.shape) if len(vectors) else 0)
    used: Literal["pca", "umap"] = "pca"
    if method == "umap" or (method == "auto" and len(videos) >= _FEWEST and find_spec("umap") is not None):
        umap = import_part("umap", extra="map", purpose="a map by UMAP")
        if len(videos) >= _FEWEST:
            neighbors = min(_NEIGHBORS, len(videos) - 1)
            placed = umap.UMAP(n_neighbors=neighbors, random_state=_SEED, n_jobs=1).fit_transform(reduced)
            used = "umap"
    if used == "pca":
        placed = np.zeros((len(videos), 2))
        placed[:, : min(2, reduced.shape[1])] = reduced[:, :2]
    clusters, centers = cluster_vectors(reduced)
    central = []
    for number, center in enumerate(centers):
        members = np.flatnonzero(clusters == number)
        distances = ((reduced[members] - center) ** 2).sum(1)
        central.append(tuple(videos[members[np.argsort(distances, kind="stable")[:_CENTRAL]]].tolist()))
    return CollectionMap(used, videos, _into_square(np.asarray(placed, dtype=np.float64)), clusters, tuple(central))


def principal_components(vectors: NDArray[np.floating], count: int) -> NDArray[np.float64]:
    """Coordinates [N, count] of vectors [N, D] along the directions in which they differ most, the widest first.

    The sign of a direction is such that its largest share is positive.
    """
    centered = np.asarray(vectors, dtype=np.float64)
    if not len(centered):
        return np.zeros((0, 0))
    centered = centered - centered.mean(0)
    _, directions = np.linalg.eigh(centered.T @ centered)
    chosen = directions[:, ::-1][:, :count]
    largest = chosen[np.abs(chosen).argmax(0), np.arange(chosen.shape[1])]
    coordinates: NDArray[np.float64] = centered @ (chosen * np.where(largest < 0, -1.0, 1.0))
    return coordinates


def cluster_vectors(vectors: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The number of the cluster of each vector [N], the largest cluster first, and their centers [K, D]: k-means.

    K is the square root of half of the number of vectors, at most 24.
    """
    if not len(vectors):
        return np.zeros(0, dtype=np.int64), vectors
    count = min(max(round((len(vectors) / 2) ** 0.5), 1), _MOST_CLUSTERS)
    draw = np.random.default_rng(_SEED)
    centers = vectors[:1].copy()
    while len(centers) < count:  # k-means++: far from those that there are
        nearest = _distances(vectors, centers).min(1)
        if nearest.sum() <= 0:
            break
        centers = np.concatenate([centers, vectors[draw.choice(len(vectors), p=nearest / nearest.sum())][None]])
    clusters = np.zeros(len(vectors), dtype=np.int64)
    for number_of_round in range(_ROUNDS):
        chosen = _distances(vectors, centers).argmin(1)
        if number_of_round and (chosen == clusters).all():
            break
        clusters = chosen
        for number in range(len(centers)):
            if (clusters == number).any():
                centers[number] = vectors[clusters == number].mean(0)
    sizes = np.bincount(clusters, minlength=len(centers))
    order = [number for number in np.argsort(-sizes, kind="stable") if sizes[number]]
    renumbered = np.zeros(len(centers), dtype=np.int64)
    renumbered[order] = np.arange(len(order))
    return renumbered[clusters], centers[order]


def _distances(vectors: NDArray[np.float64], centers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared distances [N, K]."""
    squares = (vectors**2).sum(1)[:, None] + (centers**2).sum(1)[None]
    distances: NDArray[np.float64] = np.maximum(squares - 2 * vectors @ centers.T, 0.0)
    return distances


def _into_square(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """Points scaled by one factor and moved, so that they fill [0, 1] in the wider direction."""
    if not len(points):
        return np.zeros((0, 2), dtype=np.float32)
    low, high = points.min(0), points.max(0)
    width = max(float((high - low).max()), 1e-12)
    scaled: NDArray[np.float32] = ((points - (low + high) / 2) / width + 0.5).astype(np.float32)
    return scaled
