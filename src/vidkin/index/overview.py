"""Two-dimensional maps of an index: each video or shot is a point near similar ones, and belongs to a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.registry import import_part
from vidkin._base.values import Result, check_choice
from vidkin.errors import InvalidArgumentError
from vidkin.match.reviewed import describe_video_whole
from vidkin.similarity import FrameFeatures

if TYPE_CHECKING:
    from vidkin.index.collection import Index

UsedMethod = Literal["pca", "tsne", "pacmap", "umap"]
MapMethod = Literal["auto", "pca", "tsne", "pacmap", "umap"]

# Principal components used for clustering and as input to the other methods; number of neighbors these consider;
# minimum number of points for methods other than PCA.
_DIMENSIONS, _NEIGHBORS, _MIN_POINTS = 32, 15, 10
# Maximum number of clusters, maximum number of k-means iterations, and number of central points reported per cluster.
_MAX_CLUSTERS, _MAX_ITERATIONS, _CENTRAL = 24, 25, 8
# Number of videos whose features are in memory at a time.
_BATCH = 32
# Maximum number of shots on a map; larger sets are subsampled at random.
_MAX_SHOTS = 50_000
_SEED = 0
# Maximum number of points placed by t-SNE, and number of nearest landmarks that determine each remaining point.
_LANDMARKS, _NEAREST_LANDMARKS = 800, 3


@check_constructor
@dataclass(frozen=True, slots=True, eq=False)
class CollectionMap(Result):
    """A map of videos or shots as points in the unit square.

    Attributes:
        method: ``pca``: the two directions of largest variance; ``tsne``, ``umap``, ``pacmap``: neighborhood-preserving
            layouts.
        videos: [N] int64, video ids; for shots, the id of each shot's video.
        points: [N, 2] float32, positions in [0, 1]; only proximity is meaningful.
        clusters: [N] int64, cluster of each point, numbered from 0 by decreasing size.
        central: For each cluster, positions in ``videos`` of its most typical points, most typical first.
        spans: [N, 2] float64, start and end of each shot in seconds; None for whole videos.
        total: Number of videos or shots; more than N if shots were subsampled.
    """

    method: UsedMethod
    videos: NDArray[np.int64]
    points: NDArray[np.float32]
    clusters: NDArray[np.int64]
    central: tuple[tuple[int, ...], ...]
    spans: NDArray[np.float64] | None = None
    total: int = 0

    def __post_init__(self) -> None:
        count = len(self.videos)
        if self.points.shape != (count, 2) or self.clusters.shape != (count,):
            raise InvalidArgumentError(
                f"points must be [{count}, 2] and clusters [{count}] for {count} videos, got "
                f"{list(self.points.shape)} and {list(self.clusters.shape)}"
            )
        if self.spans is not None and self.spans.shape != (count, 2):
            raise InvalidArgumentError(f"spans must be [{count}, 2] for {count} shots, got {list(self.spans.shape)}")
        object.__setattr__(self, "total", max(self.total, count))


@check_arguments
def map_collection(
    index: Index, *, method: MapMethod = "auto", on_progress: Callable[[int, int], None] | None = None
) -> CollectionMap:
    """Lay out the videos of an index so that similar ones are close together, and cluster them.

    Each video is represented by the mean descriptor of its frames. The result is deterministic.

    Args:
        index: The index.
        method: ``auto`` selects ``umap`` if umap-learn is installed, otherwise ``pacmap`` if PaCMAP is installed (the
            extra ``map``), otherwise ``tsne``. Fewer than ten points are always laid out by ``pca``.
        on_progress: Callback that receives (videos read, total number of videos).

    Raises:
        InvalidArgumentError: There is no such method.
        MissingPartError: ``umap`` or ``pacmap`` was requested but is not installed.
    """
    check_choice("method", method, get_args(MapMethod))
    index.refresh()
    videos = [record.id for record in index.videos() if record.status == "ok" and record.frames]
    vectors = _describe(index, videos, lambda _, features: describe_video_whole(features)[None], on_progress)
    return lay_out(np.array(videos, dtype=np.int64), vectors, method=method)


@check_arguments
def map_shots(
    index: Index,
    shots: Mapping[int, Sequence[tuple[float, float]]],
    *,
    method: MapMethod = "auto",
    on_progress: Callable[[int, int], None] | None = None,
) -> CollectionMap:
    """Lay out shots so that similar ones are close together, and cluster them.

    Each shot is represented by the mean descriptor of its indexed frames or, if it has none, by the frame nearest to
    its middle. More than 50,000 shots are subsampled at random. The result is deterministic.

    Args:
        index: The index.
        shots: Start and end of each shot in seconds, keyed by video id; unknown ids are ignored.
        method: As in :func:`map_collection`.
        on_progress: Callback that receives (videos read, total number of videos).

    Raises:
        InvalidArgumentError: There is no such method, or a shot has a negative start or does not end after it.
        MissingPartError: ``umap`` or ``pacmap`` was requested but is not installed.
    """
    check_choice("method", method, get_args(MapMethod))
    for spans in shots.values():
        for start, end in spans:
            if not 0 <= start < end:
                raise InvalidArgumentError(f"a shot must start at 0 or later and end after it, got {start} to {end}")
    index.refresh()
    videos = [
        record.id for record in index.videos() if record.frames and record.status == "ok" and shots.get(record.id)
    ]
    rows = [(video, start, end) for video in videos for start, end in shots[video]]
    total = len(rows)
    if total > _MAX_SHOTS:
        sampled = np.random.default_rng(_SEED).choice(total, _MAX_SHOTS, replace=False)
        rows = [rows[position] for position in np.sort(sampled)]
    chosen: dict[int, list[tuple[float, float]]] = {}
    for video, start, end in rows:
        chosen.setdefault(video, []).append((start, end))
    vectors = _describe(
        index, list(chosen), lambda video, features: describe_spans(features, chosen[video]), on_progress
    )
    laid = lay_out(np.array([video for video, _, _ in rows], dtype=np.int64), vectors, method=method)
    spans_of_rows = np.array([span for _, *span in rows], dtype=np.float64).reshape(-1, 2)
    return replace(laid, spans=spans_of_rows, total=total)


def _describe(
    index: Index,
    videos: Sequence[int],
    describe: Callable[[int, FrameFeatures], NDArray[np.float32]],
    on_progress: Callable[[int, int], None] | None,
) -> NDArray[np.float32]:
    """Stack the results [K, D] of ``describe(video, features)`` for all videos, reading them in batches."""
    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(videos), _BATCH):
        some = list(videos[start : start + _BATCH])
        for video, features in zip(some, index.store.read_many(some), strict=True):
            parts.append(describe(video, features))
        if on_progress is not None:
            on_progress(start + len(some), len(videos))
    return np.concatenate(parts) if parts else np.zeros((0, 1), dtype=np.float32)


def lay_out(videos: NDArray[np.int64], vectors: NDArray[np.float32], *, method: MapMethod = "auto") -> CollectionMap:
    """Compute a map from vectors [N, D], one for each video or shot; see :func:`map_collection`."""
    reduced = principal_components(vectors, min(_DIMENSIONS, *vectors.shape) if len(vectors) else 0)
    used = _choose_method(method, len(videos))
    if used == "umap":
        umap = import_part("umap", extra="map", purpose="a UMAP map")
        neighbors = min(_NEIGHBORS, len(videos) - 1)
        placed = umap.UMAP(n_neighbors=neighbors, random_state=_SEED, n_jobs=1).fit_transform(reduced)
    elif used == "pacmap":
        pacmap = import_part("pacmap", extra="map", purpose="a PaCMAP map")
        neighbors = min(_NEIGHBORS, len(videos) - 1)
        maker = pacmap.PaCMAP(n_components=2, n_neighbors=neighbors, random_state=_SEED, apply_pca=False)
        placed = maker.fit_transform(reduced.astype(np.float32))
    elif used == "tsne":
        placed = place_neighbors(reduced)
    else:
        placed = np.zeros((len(videos), 2))
        placed[:, : min(2, reduced.shape[1])] = reduced[:, :2]
    clusters, centers = cluster_vectors(reduced)
    central = []
    for number, center in enumerate(centers):
        members = np.flatnonzero(clusters == number)
        distances = ((reduced[members] - center) ** 2).sum(1)
        central.append(tuple(members[np.argsort(distances, kind="stable")[:_CENTRAL]].tolist()))
    return CollectionMap(used, videos, _fit_square(np.asarray(placed, dtype=np.float64)), clusters, tuple(central))


def describe_spans(features: FrameFeatures, spans: Sequence[tuple[float, float]]) -> NDArray[np.float32]:
    """Mean descriptors [N, D] of a video's whole frames in each time span, weighted by information."""
    times = np.asarray(features.timestamps, dtype=np.float64)
    values = features.whole.astype(np.float32).mean(1)
    weights = np.maximum(features.information.astype(np.float32), 1e-6)
    rows = np.empty((len(spans), values.shape[1]), dtype=np.float32)
    for position, (start, end) in enumerate(spans):
        first, last = np.searchsorted(times, (start, end))
        if first == last:
            first = int(np.abs(times - (start + end) / 2).argmin())
            last = first + 1
        inside = weights[first:last]
        rows[position] = (values[first:last] * inside[:, None]).sum(0) / inside.sum()
    return rows


def _choose_method(method: MapMethod, count: int) -> UsedMethod:
    """Choose the layout method; always PCA if there are too few points for the others.

    Raises:
        MissingPartError: The requested method is not installed.
    """
    for name, module, title in (("umap", "umap", "UMAP"), ("pacmap", "pacmap", "PaCMAP")):
        if method == name:
            import_part(module, extra="map", purpose=f"a {title} map")
        if method == name or (method == "auto" and find_spec(module) is not None):
            return cast("UsedMethod", name) if count >= _MIN_POINTS else "pca"
    if method in ("auto", "tsne") and count >= _MIN_POINTS:
        return "tsne"
    return "pca"


def place_neighbors(
    vectors: NDArray[np.float64], *, landmarks: int = _LANDMARKS, rounds: int = 300
) -> NDArray[np.float64]:
    """Compute points [N, 2] by exact t-SNE, initialized with principal components; deterministic.

    Args:
        vectors: [N, D] with N at least 4.
        landmarks: Maximum number of vectors placed by t-SNE; the others are interpolated from their nearest landmarks.
        rounds: Number of gradient descent steps.
    """
    if len(vectors) <= landmarks:
        return _run_tsne(vectors, rounds)
    chosen = np.sort(np.random.default_rng(_SEED).choice(len(vectors), landmarks, replace=False))
    anchors = _run_tsne(vectors[chosen], rounds)
    points = np.empty((len(vectors), 2))
    for start in range(0, len(vectors), landmarks):
        distances = _distances(vectors[start : start + landmarks], vectors[chosen])
        nearest = np.argpartition(distances, _NEAREST_LANDMARKS, axis=1)[:, :_NEAREST_LANDMARKS]
        weights = 1 / np.maximum(np.take_along_axis(distances, nearest, 1), 1e-12)
        weights /= weights.sum(1, keepdims=True)
        points[start : start + landmarks] = (anchors[nearest] * weights[:, :, None]).sum(1)
    return points


def _run_tsne(vectors: NDArray[np.float64], rounds: int) -> NDArray[np.float64]:
    """Run t-SNE on all vectors, with early exaggeration for the first quarter of the steps."""
    wanted = _neighbor_probabilities(vectors).astype(np.float32)
    start = principal_components(vectors, 2)
    points = (1e-2 * start / max(float(start[:, 0].std()), 1e-12)).astype(np.float32)
    speed = np.zeros_like(points)
    exaggerated = rounds // 4
    rate = max(len(vectors) / 48, 5.0)
    for number in range(rounds):
        squares = (points**2).sum(1)
        near = 1 / (1 + np.maximum(squares[:, None] + squares[None] - 2 * points @ points.T, 0))
        np.fill_diagonal(near, 0)
        factor, momentum = (12.0, 0.5) if number < exaggerated else (1.0, 0.8)
        forces = (factor * wanted - near / near.sum()) * near
        speed = momentum * speed - rate * 4 * (forces.sum(1)[:, None] * points - forces @ points)
        points = points + speed
    return points.astype(np.float64)


def _neighbor_probabilities(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Symmetric neighbor probabilities [N, N] that sum to 1, with the same perplexity for each vector."""
    distances = _distances(vectors, vectors)
    np.fill_diagonal(distances, np.inf)
    distances -= distances.min(1)[:, None]
    target = np.log(max(min(_NEIGHBORS, (len(vectors) - 1) / 3), 1.0))
    low, high = np.zeros(len(vectors)), np.full(len(vectors), np.inf)
    sharpness = 1 / np.maximum(np.median(distances, axis=1), 1e-12)
    for _ in range(40):
        weights = np.exp(-distances * sharpness[:, None])
        weights /= weights.sum(1, keepdims=True)
        is_wide = -(weights * np.log(np.maximum(weights, 1e-300))).sum(1) > target
        low, high = np.where(is_wide, sharpness, low), np.where(is_wide, high, sharpness)
        sharpness = np.where(np.isinf(high), 2 * sharpness, (low + high) / 2)
    return np.maximum((weights + weights.T) / (2 * len(vectors)), 1e-12)


def principal_components(vectors: NDArray[np.floating], count: int) -> NDArray[np.float64]:
    """Project vectors [N, D] onto their first principal components; return coordinates [N, count].

    The sign of each component is chosen so that its coefficient with the largest magnitude is positive.
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
    """Cluster vectors by k-means; return labels [N], numbered by decreasing size, and centers [K, D].

    K is the square root of half the number of vectors, at most 24.
    """
    if not len(vectors):
        return np.zeros(0, dtype=np.int64), vectors
    count = min(max(round((len(vectors) / 2) ** 0.5), 1), _MAX_CLUSTERS)
    generator = np.random.default_rng(_SEED)
    centers = vectors[:1].copy()
    while len(centers) < count:  # k-means++: prefer vectors far from existing centers
        nearest = _distances(vectors, centers).min(1)
        if nearest.sum() <= 0:
            break
        centers = np.concatenate([centers, vectors[generator.choice(len(vectors), p=nearest / nearest.sum())][None]])
    clusters = np.zeros(len(vectors), dtype=np.int64)
    for iteration in range(_MAX_ITERATIONS):
        chosen = _distances(vectors, centers).argmin(1)
        if iteration and (chosen == clusters).all():
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
    """Squared Euclidean distances [N, K]."""
    squares = (vectors**2).sum(1)[:, None] + (centers**2).sum(1)[None]
    distances: NDArray[np.float64] = np.maximum(squares - 2 * vectors @ centers.T, 0.0)
    return distances


def _fit_square(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """Center points and scale them uniformly so that they span [0, 1] along the wider axis."""
    if not len(points):
        return np.zeros((0, 2), dtype=np.float32)
    low, high = points.min(0), points.max(0)
    width = max(float((high - low).max()), 1e-12)
    scaled: NDArray[np.float32] = ((points - (low + high) / 2) / width + 0.5).astype(np.float32)
    return scaled
