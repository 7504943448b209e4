"""An approximate index of many window vectors, kept as plain arrays beside the vectors and searched by FAISS.

Vectors are in partitions around centroids, and a query looks into the nearest partitions only (inverted files). Of a
vector each part of up to four numbers is kept as four bits, the nearest of 16 values of that part (product
quantization, Jégou, Douze and Schmid, 2011), which processors compare fast by tables in registers (André, Kermarrec
and Le Scouarnec, 2015). The caller compares the candidates with the vectors themselves. The arrays are read by us and
handed to FAISS, whose own files are not made for untrusted input.

Shape legend: N vectors, E dimension, P partitions, M parts, Q queries, K candidates.
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

# Vectors of a partition, on average; research/results/scale_engines.json has figures of these numbers.
_ROWS_A_PARTITION = 4096
_MAX_PARTITIONS = 1024
# Vectors a partition that k-means sees, and at least of all.
_SAMPLES_A_PARTITION, _MIN_SAMPLES = 64, 1 << 14
# Partitions that a query looks into.
_PROBED = 64
_VALUES_OF_PART = 16
# Vectors that are added at a time.
_ADDED_AT_ONCE = 1 << 16
# An index of so many times as many vectors is made anew: its partitions have become long.
_GROWTH = 4
_SEED = 1


class WindowIndex:
    """The rows of one generation up to some row, searched approximately.

    Args:
        index: ``faiss.IndexIVFPQ`` over unit vectors, by inner product.
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
        sample = min(count, max(_MIN_SAMPLES, _SAMPLES_A_PARTITION * partitions))
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

    def packed(self) -> WindowIndex:
        """The same codes in the order in which they are compared fast; nothing can be added or saved."""
        import faiss

        index: Any = faiss.IndexIVFPQFastScan(self._index)
        # The centroids, which only the other index keeps.
        index.referenced_objects = self._index.referenced_objects
        return WindowIndex(index)

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
            "values": faiss.vector_to_array(index.pq.centroids),
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
                names = ("centroids", "values", "codes", "rows", "sizes")
                centroids, values, codes, rows, sizes = (arrays[name] for name in names)
            except SafetensorError as error:
                raise ValueError(str(error)) from error
            count = len(rows)
            if (
                centroids.dtype != np.float32
                or centroids.shape != (len(sizes), dimension)
                or values.dtype != np.float32
                or values.shape != (_VALUES_OF_PART * dimension,)
                or codes.dtype != np.uint8
                or codes.shape != (count, (_parts(dimension) + 1) // 2)
                or rows.dtype != np.int64
                or sizes.dtype != np.int64
                or not np.isfinite(centroids).all()
                or not np.isfinite(values).all()
                or (sizes < 0).any()
                or int(sizes.sum()) != count
                or count > most
                or not np.array_equal(np.sort(rows), np.arange(count))
            ):
                raise ValueError("the stored values are corrupted")
        index = _new_index(dimension, len(sizes))
        index.quantizer.add(centroids)
        faiss.copy_array_to_vector(values, index.pq.centroids)
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
    quantizer, bits = faiss.IndexFlatIP(dimension), int(math.log2(_VALUES_OF_PART))
    parts, metric = _parts(dimension), faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexIVFPQ(quantizer, dimension, partitions, parts, bits, metric)
    index.by_residual = False
    return index


def _parts(dimension: int) -> int:
    """M, parts of a vector: of the most numbers, four at most, that divide it evenly."""
    return next(dimension // size for size in (4, 3, 2, 1) if dimension % size == 0)


def _max_bytes(dimension: int, rows: int) -> int:
    """Bytes of the largest file that an index of so many rows can have."""
    partitions = min(_MAX_PARTITIONS, math.ceil(rows / _ROWS_A_PARTITION) + 1)
    values = 4 * _VALUES_OF_PART * dimension
    return (1 << 16) + rows * (dimension + 8) + partitions * (4 * dimension + 8) + values
