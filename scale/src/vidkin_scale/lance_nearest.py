"""Find nearest windows in a Lance table: exactly in memory if there are few, otherwise with an approximate index."""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidkin.index.storage.contract import NearestWindows, WindowMatrix, check_dimension, no_windows
from vidkin.index.storage.records import unit_vectors
from vidkin_scale.lance_rows import WINDOW_COLUMNS, vector_column, window_matrix
from vidkin_scale.lance_table import LanceTable

if TYPE_CHECKING:
    import pyarrow as pa

_logger = logging.getLogger(__name__)

INDEX_NAME = "window_vectors"

# Target number of windows per partition. Of 60,000 windows in 64 partitions the quantized index with
# refinement found 99.95 % of the true 50 nearest.
_WINDOWS_PER_PARTITION = 1024

# Fewer for a shard: comparing each vector with 4,096 centroids takes 0.7 ms on CPUs without half-precision
# instructions.
_MAX_PARTITIONS, _MAX_PARTITIONS_OF_A_SHARD = 4096, 1024

# Samples per partition for k-means, and number of its iterations.
_SAMPLES_PER_PARTITION, _ROUNDS = 64, 20

# Beyond this number of partitions, k-means runs in two levels: groups, then partitions of each group. A window is
# compared only with partitions of its nearest groups.
_MAX_WITHOUT_GROUPS, _GROUPS_PROBED = 256, 4

# Number of windows assigned to partitions at a time.
_ASSIGNED_AT_ONCE = 1 << 16

# If less than this fraction of the windows is new, they are added to the existing index.
_MAX_NEW_SHARE = 1 / 16

# Partitions read for each vector. With three million windows distributed like those of real videos, Lance's default
# finds two thirds of the true nearest windows; this number finds all of them in the same time. A shard needs fewer,
# depending on the number of requested windows: among 10,000 videos of real footage (1,024 windows), 32 partitions find
# one window in 50 more than 8; among a million (18,000 windows), 4 find as many as 8.
_PARTITIONS_READ, _MIN_READ_OF_A_SHARD, _WINDOWS_READ_OF_A_SHARD = 256, 4, 1 << 15

# A shard searches for twice its proportion of the requested windows, about as many as it contributes in the end.
_SHARES = 2

# If codes do not estimate cosines, this many times as many windows are requested and their vectors read.
_REFINE_FACTOR = 4

# Codes of five bits per dimension estimate cosines of real vectors to within 0.003 (one standard deviation; 0.007 for
# 98 %), and reading the vectors as well took as long as the rest of the first stage. Lance's undocumented distance is 2
# - 2 cos in an index, and 1 - cos for rows added later; exact cosines of a few windows of a few queries decide which
# applies, and whether codes are accurate (maximum mean deviation).
_CHECKED, _CHECKED_OF_EACH, _CODE_ERROR = 4, 64, 0.015

# Number of rows whose owners are read at a time, and limits on read-ahead, which by default takes a gigabyte.
_ROWS_AT_ONCE = 1 << 19
_AHEAD = {"batch_readahead": 2, "fragment_readahead": 1}

# Maximum number of candidate rows looked up at a time, and of pairs compared at a time.
_MAX_ROWS, _PAIRS_AT_ONCE = 500_000, 1 << 15

# Additional windows to request, because those of videos outside this snapshot are dropped.
_SPARE = 16


class WindowSearch:
    """Searches for nearest windows in one version of the table.

    Args:
        table: The table of windows.
        known: [V] int64, sorted ids of existing videos; windows of other videos are ignored.
        parts: Number of stores that share the videos, see :class:`~vidkin_scale.lance_store.LanceStore`.

    Attributes:
        is_indexed: Whether the approximate index is used.
    """

    def __init__(self, table: LanceTable, known: NDArray[np.int64], parts: int = 1) -> None:
        self._table = table
        self._share = 1.0 if parts == 1 else _SHARES / parts
        self._scale: float | None = None
        self._dataset = table.dataset
        self._known = known
        self._matrix: WindowMatrix | None = None
        with table.reading():
            partitions = 0 if self._dataset is None else _index_partitions(self._dataset)
        self.is_indexed = partitions > 0
        self._partitions_read = _PARTITIONS_READ
        if parts > 1 and partitions:
            enough = _WINDOWS_READ_OF_A_SHARD * partitions // max(1, table.row_count())
            self._partitions_read = max(_MIN_READ_OF_A_SHARD, enough)

    def nearest(self, queries: NDArray[np.float32], limit: int) -> NearestWindows:
        """Find the ``limit`` windows nearest to each of ``queries`` [Q, E] float32."""
        if self._dataset is None or len(queries) == 0:
            return no_windows(len(queries), limit)
        dimension = self._dataset.schema.field("vector").type.list_size
        check_dimension(queries, dimension)
        if self.is_indexed:
            return self._approximate(queries, limit)
        if self._matrix is None:
            with self._table.reading():
                rows = self._dataset.to_table(columns=list(WINDOW_COLUMNS))
            matrix = window_matrix(rows)
            self._matrix = matrix.of_known(np.isin(matrix.video_ids, self._known))
        return self._matrix.nearest(queries, limit)

    def rows_of(self, video_ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Read columns of all rows of some videos; unlike a filter, this does not read the ids of all rows of the
        table."""
        rows = self._owners.rows_of(np.array(video_ids, np.int64))
        with self._table.reading():
            # Not public in Lance, but its `take` needs positions in the table, which deleted rows shift.
            return self._dataset._take_rows(rows.tolist(), columns=list(columns))

    @cached_property
    def _owners(self) -> WindowOwners:
        with self._table.reading():
            return WindowOwners.of_table(self._dataset)

    def _approximate(self, queries: NDArray[np.float32], limit: int) -> NearestWindows:
        result = no_windows(len(queries), limit)
        limit = math.ceil(self._share * limit)
        wanted = limit + _SPARE
        block = max(1, _MAX_ROWS // wanted)
        for first in range(0, len(queries), block):
            part, count = queries[first : first + block], wanted
            while True:
                of_query, videos, windows, scores = self._candidates(part, count)
                known = np.isin(videos, self._known)
                returned = np.bincount(of_query, minlength=len(part))
                usable = np.bincount(of_query[known], minlength=len(part))
                # Too few are left, but the table has more: request more.
                if not bool(np.any((usable < limit) & (returned >= count))):
                    break
                count *= 4
            order = np.flatnonzero(known)[np.lexsort((-scores[known], of_query[known]))]
            of_query = of_query[order]
            place = np.arange(len(order)) - np.searchsorted(of_query, of_query)
            best = place < limit
            chosen = order[best]
            cells = first + of_query[best], place[best]
            result.put(cells, videos[chosen], windows[chosen], scores[chosen].clip(-1.0, 1.0))
        return result

    def _candidates(
        self, queries: NDArray[np.float32], count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Find the ``count`` windows with the nearest codes for each query: queries, videos, windows and scores [C]."""
        scale = self._scale_of_distances(queries)
        nearest = {
            "column": "vector",
            "q": queries,
            "k": count if scale else _REFINE_FACTOR * count,
            "metric": "cosine",
            "nprobes": self._partitions_read,
        }
        with self._table.reading():
            codes = self._dataset.to_table(columns=["_distance"], nearest=nearest, with_row_id=True)
        of_query, rows = codes["query_index"].to_numpy().astype(np.int64), codes["_rowid"].to_numpy()
        if scale:
            scores = 1 - codes["_distance"].to_numpy() / np.float32(scale)
        else:
            scores = self._exact_scores(queries, of_query, rows)
        return of_query, *self._owners.of(rows), scores

    def _exact_scores(
        self, queries: NDArray[np.float32], of_query: NDArray[np.int64], rows: NDArray[np.uint64]
    ) -> NDArray[np.float32]:
        """Compute the cosines [C] of queries and rows of the table.

        Frames of a query share many candidates. Each is read only once, whereas Lance's own refinement reads it for
        every frame, which took ten times as long with 200 frames.
        """
        ids, places = np.unique(rows, return_inverse=True)
        with self._table.reading():
            # Not public in Lance, but its `take` needs positions in the table, which deleted rows shift.
            vectors = vector_column(self._dataset._take_rows(ids.tolist(), columns=["vector"])).astype(np.float32)
        scores = np.empty(len(rows), np.float32)
        for at in range(0, len(rows), _PAIRS_AT_ONCE):
            pairs = slice(at, at + _PAIRS_AT_ONCE)
            scores[pairs] = np.vecdot(vectors[places[pairs]], queries[of_query[pairs]])
        return scores

    def _scale_of_distances(self, queries: NDArray[np.float32]) -> float:
        """Determine the factor of 1 - cos in the distances of this version; 0 if they do not estimate cosines."""
        if self._scale is None:
            nearest = {
                "column": "vector", "q": queries[:_CHECKED], "k": _CHECKED_OF_EACH, "metric": "cosine",
                "nprobes": self._partitions_read,
            }  # fmt: skip
            with self._table.reading():
                rows = self._dataset.to_table(columns=["vector", "_distance"], nearest=nearest)
            distances, asked = rows["_distance"].to_numpy(), queries[rows["query_index"].to_numpy()]
            exact = 1 - np.vecdot(vector_column(rows).astype(np.float32), asked)
            if exact.max(initial=0.0) < 8 * _CODE_ERROR:
                return 0.0  # too close to decide; later queries may be clearer
            errors = {scale: float(np.sqrt(((distances / scale - exact) ** 2).mean())) for scale in (1.0, 2.0)}
            best = min(errors, key=errors.__getitem__)
            self._scale = best if errors[best] < _CODE_ERROR else 0.0
        return self._scale


@dataclass(frozen=True)
class WindowOwners:
    """Maps rows of a version of the table to videos and windows.

    Rows of a video are consecutive, so one entry per run is enough. Reading these columns from a large table would take
    60 microseconds per window.

    Attributes:
        rows: [N] ids of the first rows of the runs, ascending.
        videos: [N] their videos.
        windows: [N] the numbers of these windows.
        lengths: [N] rows of each run.
    """

    rows: NDArray[np.uint64]
    videos: NDArray[np.int64]
    windows: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of_table(cls, dataset: Any) -> WindowOwners:
        """Build the runs of all rows."""
        nothing = np.zeros(0, np.int64)
        parts = [(nothing.astype(np.uint64), nothing, nothing, nothing)]
        columns = {"columns": ["video_id", "window"], "with_row_id": True, "batch_size": _ROWS_AT_ONCE}
        for batch in dataset.to_batches(**columns, **_AHEAD):
            rows, videos = batch["_rowid"].to_numpy(), batch["video_id"].to_numpy()
            windows = batch["window"].to_numpy().astype(np.int64)
            # A run ends with a video, at deleted rows, and at the start of another file.
            goes_on = (np.diff(videos) == 0) & (np.diff(windows) == 1) & (np.diff(rows) == 1)
            first = np.flatnonzero(np.concatenate([[True], ~goes_on])[: len(rows)])  # batches can be empty
            lengths = np.diff(np.append(first, len(rows)))
            parts.append((rows[first], videos[first], windows[first], lengths))
        columns_of_all = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(columns_of_all[0])
        return cls(*(column[order] for column in columns_of_all))

    def of(self, rows: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the videos and windows [C] of these rows, all of which are in the table."""
        runs = np.searchsorted(self.rows, rows, side="right") - 1
        return self.videos[runs], self.windows[runs] + (rows - self.rows[runs]).astype(np.int64)

    def rows_of(self, videos: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the ids of all rows of these videos, ascending."""
        runs = np.flatnonzero(np.isin(self.videos, videos))
        lengths = self.lengths[runs]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.repeat(self.rows[runs], lengths) + within.astype(np.uint64)


def build_window_index(table: LanceTable, *, exact_below: int, parts: int = 1) -> None:
    """Update the approximate index if there are enough windows to need one.

    Centroids and partitions are computed here: Lance would compare each window with all partitions in half precision,
    which takes seven times as long as in single precision and ten times as long as all other steps together.

    Args:
        table: The table of windows.
        exact_below: Number of windows below which no index is needed.
        parts: Number of stores that share the videos, see :class:`~vidkin_scale.lance_store.LanceStore`.
    """
    dataset, rows = table.dataset, table.row_count()
    if dataset is None or rows < exact_below:
        return
    with table.writing():
        most = _MAX_PARTITIONS if parts == 1 else _MAX_PARTITIONS_OF_A_SHARD
        wanted = max(1, min(most, rows // _WINDOWS_PER_PARTITION))
        present = _index_partitions(dataset)
        is_new = present == 0 or wanted >= 4 * present
        new = 0 if is_new else int(dataset.stats.index_stats(INDEX_NAME)["num_unindexed_rows"])
        if not is_new and new < _MAX_NEW_SHARE * rows:
            dataset.optimize.optimize_indices()
        else:
            dimension = dataset.schema.field("vector").type.list_size
            # The binary quantizer packs eight dimensions to a byte.
            kind = "IVF_RQ" if dimension % 8 == 0 else "IVF_FLAT"
            _logger.info("indexing %d windows: %s, %d partitions", rows, kind, wanted)
            _create_index(dataset, kind, Partitions.of_sample(_sample(dataset, wanted), wanted))
    table.refresh()


class Partitions:
    """Centroids [P, E] of partitions, ordered by group.

    Args:
        groups: For each group, at least one, its centroids [N, E] float32.
    """

    def __init__(self, groups: list[NDArray[np.float32]]) -> None:
        self.centroids: NDArray[np.float32] = np.concatenate(groups)
        self._groups = groups
        self._middles: NDArray[np.float32] = np.stack([group.mean(axis=0) for group in groups])
        self._first = np.cumsum([0, *map(len, groups)])

    @classmethod
    def of_sample(cls, sample: NDArray[np.float32], count: int) -> Partitions:
        """Build about ``count`` partitions, at most as many as there are vectors in the sample [N, E]."""
        count = min(count, len(sample))
        if count <= _MAX_WITHOUT_GROUPS:
            return cls([_cluster(sample, count)])
        middles = _cluster(sample, math.isqrt(count))
        owners = cls([middles]).of(sample)
        members = [sample[owners == group] for group in range(len(middles))]
        shares = [max(1, round(count * len(each) / len(sample))) for each in members]
        return cls([_cluster(each, share) for each, share in zip(members, shares, strict=True) if len(each)])

    def of(self, vectors: NDArray[np.float32]) -> NDArray[np.int64]:
        """Assign each vector [N, E] to the nearest partition [N] among its nearest groups."""
        if len(self._groups) == 1:
            nearest_of_all: NDArray[np.int64] = _closeness(vectors, self.centroids).argmax(axis=1)
            return nearest_of_all
        looked = min(_GROUPS_PROBED, len(self._groups))
        groups = np.argpartition(-_closeness(vectors, self._middles), looked - 1, axis=1)[:, :looked]
        best = np.full(len(vectors), -np.inf, np.float32)
        found = np.zeros(len(vectors), np.int64)
        for number, centroids in enumerate(self._groups):
            rows = np.flatnonzero((groups == number).any(axis=1))
            if not len(rows):
                continue
            close = _closeness(vectors[rows], centroids)
            nearest = close.argmax(axis=1)
            value = close[np.arange(len(rows)), nearest]
            better = value > best[rows]
            best[rows[better]] = value[better]
            found[rows[better]] = self._first[number] + nearest[better]
        return found


def _closeness(vectors: NDArray[np.float32], centroids: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute similarities [N, P] of vectors and centroids, larger for smaller distances."""
    close: NDArray[np.float32] = vectors @ centroids.T
    close -= np.vecdot(centroids, centroids) / np.float32(2)
    return close


def _cluster(vectors: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Compute the centroids [P, E] of at most ``count`` clusters."""
    from lance.util import KMeans

    distinct: NDArray[np.float32] = np.unique(vectors, axis=0)
    if len(distinct) <= count:
        return distinct
    means: Any = KMeans(count, max_iters=_ROUNDS)
    try:
        means.fit(np.ascontiguousarray(vectors))
    except RuntimeError:  # it refuses empty clusters, which many nearly equal vectors cause
        return distinct[np.linspace(0, len(distinct) - 1, count).astype(np.int64)]
    centroids: NDArray[np.float32] = np.stack(means.centroids.to_numpy(zero_copy_only=False)).astype(np.float32)
    return centroids[np.isfinite(centroids).all(axis=1)]


def _sample(dataset: Any, partitions: int) -> NDArray[np.float32]:
    """Sample unit vectors [N, E] for k-means, in whole blocks spread evenly over the table."""
    rows, wanted = dataset.count_rows(), _SAMPLES_PER_PARTITION * partitions
    if rows <= wanted:
        return unit_vectors(vector_column(dataset.to_table(columns=["vector"])))
    block = min(64, wanted)
    firsts = np.linspace(0, rows - block, wanted // block).astype(np.int64)
    places = np.unique(firsts[:, None] + np.arange(block))
    return unit_vectors(vector_column(dataset.take(places.tolist(), columns=["vector"])))


def _create_index(dataset: Any, kind: str, partitions: Partitions) -> None:
    """Replace the index of a table with one that has these partitions."""
    import lance
    import pyarrow as pa

    schema = pa.schema([pa.field("row_id", pa.uint64()), pa.field("partition", pa.uint32())])
    with tempfile.TemporaryDirectory(prefix="vidkin-partitions-") as folder:
        assigned = str(Path(folder) / "partitions.lance")
        batches = pa.RecordBatchReader.from_batches(schema, _assign_rows(dataset, partitions, schema))
        lance.write_dataset(batches, assigned, schema=schema, max_rows_per_file=dataset.count_rows())
        dataset.create_index(
            "vector",
            kind,
            metric="cosine",
            name=INDEX_NAME,
            replace=True,
            num_partitions=len(partitions.centroids),
            ivf_centroids=partitions.centroids,
            precomputed_partition_dataset=assigned,
        )


def _assign_rows(dataset: Any, partitions: Partitions, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the ids of all rows with their partitions."""
    import pyarrow as pa

    for batch in dataset.to_batches(columns=["vector"], with_row_id=True, batch_size=_ASSIGNED_AT_ONCE, **_AHEAD):
        vectors = unit_vectors(vector_column(pa.table(batch)))
        columns = [batch["_rowid"], pa.array(partitions.of(vectors).astype(np.uint32))]
        yield pa.record_batch(columns, schema=schema)


def _index_partitions(dataset: Any) -> int:
    if not any(index.name == INDEX_NAME for index in dataset.describe_indices()):
        return 0
    return int(dataset.stats.index_stats(INDEX_NAME)["indices"][0]["num_partitions"])
