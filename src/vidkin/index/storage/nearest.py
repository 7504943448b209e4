"""Nearest windows in a Lance table: exact in memory while there are few, by an approximate index beyond."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.index.storage.contract import NearestWindows
from vidkin.index.storage.files import reading, writing
from vidkin.index.storage.memory import WindowMatrix, no_windows
from vidkin.index.storage.rows import WINDOW_COLUMNS, window_matrix
from vidkin.index.storage.table import LanceTable

__all__ = ["WindowSearch", "build_window_index"]

_logger = logging.getLogger(__name__)

INDEX_NAME = "window_vectors"
# Partitions of about this many windows. Of 60,000 windows in 64 partitions the quantized index with
# refinement found 99.95 % of the true 50 nearest.
_WINDOWS_A_PARTITION = 1024
_MOST_PARTITIONS = 4096
# Vectors a partition that k-means sees. The store's 256 made clustering most of the 14 minutes that 2.4 million
# windows took; at 64 every centroid is still the mean of dozens.
_SAMPLES_A_PARTITION = 64
# Partitions that are read for each vector. Where three million windows lie as narrowly as those of real videos, Lance's
# own number finds two thirds of what comparing all vectors finds; this one finds all of it in the same time.
_PARTITIONS_READ = 256
# Number of candidates whose true distance is computed, as a multiple of the requested number.
_REFINE_FACTOR = 4
# Candidates of several queries that are looked up at a time.
_MOST_ROWS = 500_000
# Requested in addition, as windows of videos that are not in this snapshot (yet) are dropped.
_SPARE = 16


def build_window_index(table: LanceTable, *, exact_below: int) -> None:
    """Bring the approximate index up to date once there are enough windows to need one."""
    dataset, rows = table.dataset, table.row_count()
    if dataset is None or rows < exact_below:
        return
    with writing(table.uri):
        partitions = max(1, min(_MOST_PARTITIONS, rows // _WINDOWS_A_PARTITION))
        present = _index_partitions(dataset)
        if present and partitions < 4 * present:
            dataset.optimize.optimize_indices()
        else:
            dimension = dataset.schema.field("vector").type.list_size
            # The binary quantizer packs eight dimensions to a byte.
            kind = "IVF_RQ" if dimension % 8 == 0 else "IVF_FLAT"
            _logger.info("indexing %d windows: %s, %d partitions", rows, kind, partitions)
            dataset.create_index(
                "vector",
                kind,
                metric="cosine",
                name=INDEX_NAME,
                replace=True,
                num_partitions=partitions,
                sample_rate=_SAMPLES_A_PARTITION,
            )
    table.refresh()


class WindowSearch:
    """Nearest windows at one version of the table.

    Args:
        table: The table of windows.
        known: [V] int64, sorted ids of the videos that exist; windows of others are ignored.
    """

    def __init__(self, table: LanceTable, known: NDArray[np.int64]) -> None:
        self._uri = table.uri
        self._dataset = table.dataset
        self._known = known
        self._matrix: WindowMatrix | None = None
        with reading(table.uri):
            self._indexed = self._dataset is not None and _index_partitions(self._dataset) > 0

    def nearest(self, queries: torch.Tensor, limit: int) -> NearestWindows:
        """The ``limit`` windows nearest to each of ``queries`` [Q, E] float32."""
        if self._dataset is None or len(queries) == 0:
            return no_windows(len(queries), limit)
        dimension = self._dataset.schema.field("vector").type.list_size
        if queries.shape[1] != dimension:
            raise InvalidArgumentError(
                f"query vectors must have dimension {dimension} as the index has, got {queries.shape[1]}"
            )
        if self._indexed:
            return self._approximate(queries, limit)
        if self._matrix is None:
            with reading(self._uri):
                rows = self._dataset.to_table(columns=list(WINDOW_COLUMNS))
            matrix = window_matrix(rows)
            self._matrix = matrix.of_known(torch.from_numpy(np.isin(matrix.video_ids.numpy(), self._known)))
        return self._matrix.nearest(queries, limit)

    def _approximate(self, queries: torch.Tensor, limit: int) -> NearestWindows:
        result = no_windows(len(queries), limit)
        block = max(1, _MOST_ROWS // (_REFINE_FACTOR * (limit + _SPARE)))
        for first in range(0, len(queries), block):
            part = queries[first : first + block]
            count = _REFINE_FACTOR * (limit + _SPARE)
            while True:
                of_query, rows, matrix = self._candidates(part, count)
                known = np.isin(matrix.video_ids.numpy(), self._known)[rows]
                returned = np.bincount(of_query, minlength=len(part))
                usable = np.bincount(of_query[known], minlength=len(part))
                # Too few are left although the table has more: request more.
                if not bool(np.any((usable < limit) & (returned >= count))):
                    break
                count *= 4
            for query in range(len(part)):
                chosen = torch.from_numpy(rows[known & (of_query == query)])
                # Distances of a quantized index are not exact: score again from the vectors.
                scores = (matrix.vectors[chosen].float() * part[query]).sum(dim=1).clamp(-1.0, 1.0)
                order = scores.argsort(descending=True, stable=True)[:limit]
                place, chosen = (first + query, slice(len(order))), chosen[order]
                result.scores[place] = scores[order]
                result.video_ids[place] = matrix.video_ids[chosen]
                result.windows[place] = matrix.windows[chosen]
                result.starts[place] = matrix.starts[chosen]
                result.ends[place] = matrix.ends[chosen]
        return result

    def _candidates(
        self, queries: torch.Tensor, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], WindowMatrix]:
        """The ``count`` windows of each query whose codes are nearest: queries [C], rows [C] of the matrix, matrix.

        Frames of one query have many candidates in common. Each is read once, where Lance's own refinement reads it
        for every frame: with 200 frames that took ten times as long.
        """
        nearest = {
            "column": "vector",
            "q": queries.numpy(),
            "k": count,
            "metric": "cosine",
            "nprobes": _PARTITIONS_READ,
        }
        with reading(self._uri):
            codes = self._dataset.to_table(columns=["_distance"], nearest=nearest, with_row_id=True)
            ids, rows = np.unique(codes["_rowid"].to_numpy(), return_inverse=True)
            # Not public in Lance, whose `take` wants places in the table, which deleted rows shift.
            stored = self._dataset._take_rows(ids.tolist(), columns=list(WINDOW_COLUMNS))
        return codes["query_index"].to_numpy().astype(np.int64), rows, window_matrix(stored)


def _index_partitions(dataset: Any) -> int:
    if not any(index.name == INDEX_NAME for index in dataset.describe_indices()):
        return 0
    return int(dataset.stats.index_stats(INDEX_NAME)["indices"][0]["num_partitions"])
