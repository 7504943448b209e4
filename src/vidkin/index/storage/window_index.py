"""An approximate index of many window vectors, kept as plain arrays beside the vectors and searched by FAISS.

Vectors are in partitions around centroids, and a query looks into the nearest partitions only (inverted files, Jégou,
Douze and Schmid, 2011). Each number of a vector is kept in a byte; who asks compares the candidates with the vectors
themselves. The arrays are read by us and handed to FAISS, whose own files are not made for strangers.

Shape legend: N vectors, E dimension, P partitions, Q queries, K candidates.
"""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import open_regular_file, replace_file
from vidkin.index.storage.files import reading, writing

_logger = logging.getLogger(__name__)

# Vectors of a partition, on average. Of 60,000 windows of real videos in 64 partitions the index with exact values
# of the best found 99.95 % of the true 50 nearest.
_ROWS_A_PARTITION = 1024
_MAX_PARTITIONS = 4096
# Vectors a partition that k-means sees.
_SAMPLES_A_PARTITION = 64
# Partitions that a query looks into. Where three million windows lie as narrowly as those of real videos, this finds
# all that comparing all vectors finds.
_PROBED = 256
# Vectors that are added at a time.
_ADDED_AT_ONCE = 1 << 16
# An index of so many times as many vectors is made anew: its partitions have become long.
_GROWTH = 4
_SEED = 1


class WindowIndex:
    """The rows of one generation up to some row, searched approximately.

    Args:
        index: ``faiss.IndexIVFScalarQuantizer`` over unit vectors, by inner product.
    """

    def __init__(self, index: Any) -> None:
        self._index = index

    @property
    def rows(self) -> int:
        """Number of rows from 0 on that are in it, dead ones too."""
        return int(self._index.ntotal)

    @classmethod
    def build(cls, vectors: NDArray[np.floating]) -> WindowIndex:
        """Of vectors [N, E] of length 1."""
        count, dimension = vectors.shape
        partitions = max(1, min(_MAX_PARTITIONS, count // _ROWS_A_PARTITION))
        _logger.info("indexing %d windows in %d partitions", count, partitions)
        index = _new_index(dimension, partitions)
        index.cp.seed = _SEED
        generator = np.random.default_rng(_SEED)
        sample = min(count, _SAMPLES_A_PARTITION * partitions)
        index.train(vectors[np.sort(generator.choice(count, sample, replace=False))].astype(np.float32))
        made = cls(index)
        made.add(vectors)
        return made

    def add(self, vectors: NDArray[np.floating]) -> None:
        """Add the rows that follow, vectors [N, E]."""
        for first in range(0, len(vectors), _ADDED_AT_ONCE):
            self._index.add(vectors[first : first + _ADDED_AT_ONCE].astype(np.float32))

    def is_outgrown(self, rows: int) -> bool:
        """Whether so many rows should have an index of their own."""
        partitions = int(self._index.nlist)
        return partitions < _MAX_PARTITIONS and rows >= _GROWTH * partitions * _ROWS_A_PARTITION

    def search(self, queries: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """The rows [Q, K] that are nearest to each query [Q, E]; -1 where there are no more."""
        self._index.nprobe = min(_PROBED, int(self._index.nlist))
        _, rows = self._index.search(np.ascontiguousarray(queries), count)
        return np.asarray(rows, np.int64)

    def save(self, path: Path) -> None:
        """Write the arrays whole or not at all."""
        import faiss
        from safetensors.numpy import save_file

        lists, index = self._index.invlists, self._index
        sizes = np.array([lists.list_size(number) for number in range(index.nlist)], np.int64)
        codes, rows = np.empty((index.ntotal, index.code_size), np.uint8), np.empty(index.ntotal, np.int64)
        at = 0
        for number, size in enumerate(sizes.tolist()):
            if size:
                own = faiss.rev_swig_ptr(lists.get_codes(number), size * index.code_size)
                codes[at : at + size] = own.reshape(size, index.code_size)
                rows[at : at + size] = faiss.rev_swig_ptr(lists.get_ids(number), size)
            at += size
        arrays = {
            "centroids": index.quantizer.reconstruct_n(0, index.nlist),
            "ranges": faiss.vector_to_array(index.sq.trained),
            "codes": codes,
            "rows": rows,
            "sizes": sizes,
        }
        with writing(path), replace_file(path) as temporary:
            save_file(arrays, temporary)

    @classmethod
    def open(cls, path: Path, dimension: int, most: int) -> WindowIndex | None:
        """The index of a file; None if there is none.

        Args:
            path: The file.
            dimension: E.
            most: Number of rows that there are; it may lack the last ones.

        Raises:
            CollectionDamagedError: It is not what was written.
        """
        import faiss
        from safetensors import SafetensorError
        from safetensors.numpy import load

        with reading(path):
            try:
                with open_regular_file(path, follow_links=False) as file:
                    content = file.read(_max_bytes(dimension, most) + 1)
            except FileNotFoundError:
                return None
            try:
                arrays = load(content)
                names = ("centroids", "ranges", "codes", "rows", "sizes")
                centroids, ranges, codes, rows, sizes = (arrays[name] for name in names)
            except SafetensorError as error:
                raise ValueError(str(error)) from error
            count = len(rows)
            if (
                centroids.dtype != np.float32
                or centroids.shape != (len(sizes), dimension)
                or ranges.dtype != np.float32
                or ranges.shape != (2 * dimension,)
                or codes.dtype != np.uint8
                or codes.shape != (count, dimension)
                or rows.dtype != np.int64
                or sizes.dtype != np.int64
                or not np.isfinite(centroids).all()
                or not np.isfinite(ranges).all()
                or (sizes < 0).any()
                or int(sizes.sum()) != count
                or count > most
                or not np.array_equal(np.sort(rows), np.arange(count))
            ):
                raise ValueError("the stored values are corrupted")
        index = _new_index(dimension, len(sizes))
        index.quantizer.add(centroids)
        faiss.copy_array_to_vector(ranges, index.sq.trained)
        at = 0
        for number, size in enumerate(sizes.tolist()):
            if size:
                own, ids = np.ascontiguousarray(codes[at : at + size]), np.ascontiguousarray(rows[at : at + size])
                index.invlists.add_entries(number, size, faiss.swig_ptr(ids), faiss.swig_ptr(own))
            at += size
        index.ntotal = count
        index.is_trained = True
        return cls(index)


def _new_index(dimension: int, partitions: int) -> Any:
    import faiss

    # In Python an index keeps a reference to the one that it is given.
    return faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(dimension),
        dimension,
        partitions,
        faiss.ScalarQuantizer.QT_8bit,
        faiss.METRIC_INNER_PRODUCT,
        False,
    )


def _max_bytes(dimension: int, rows: int) -> int:
    """Bytes of the largest file that an index of so many rows can have."""
    partitions = min(_MAX_PARTITIONS, math.ceil(rows / _ROWS_A_PARTITION) + 1)
    return (1 << 16) + rows * (dimension + 8) + partitions * (4 * dimension + 8) + 8 * dimension
