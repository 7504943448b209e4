"""An approximate index of many window vectors, stored as plain arrays next to the vectors and searched by FAISS.

Vectors are partitioned by their nearest centroid, and a query is compared only with the nearest partitions (inverted
files). Each part of up to four dimensions is quantized to four bits, the nearest of 16 values of that part (product
quantization; Jégou, Douze and Schmid, 2011), which processors compare fast with tables in registers (André, Kermarrec
and Le Scouarnec, 2015). Callers compare the candidates with the original vectors. The arrays are parsed by this module
rather than FAISS, whose file format is not safe for untrusted input.

Shapes: N vectors, E dimensions, P partitions, M parts, Q queries, K candidates.
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

# Mean number of vectors per partition; research/results/scale_engines.json has measurements for these numbers.
_ROWS_PER_PARTITION = 4096
_MAX_PARTITIONS = 1024
# Number of vectors per partition in the training sample of k-means, and minimum size of the sample.
_SAMPLES_PER_PARTITION, _MIN_SAMPLES = 64, 1 << 14
# Number of partitions searched per query.
_PROBED = 64
_VALUES_PER_PART = 16
# Number of vectors added at a time.
_BATCH = 1 << 16
# The index is rebuilt once it has grown by this factor, because its partitions have become large.
_GROWTH = 4
_SEED = 1


class WindowIndex:
    """Approximate search over the first rows of a generation.

    Args:
        index: ``faiss.IndexIVFPQ`` over unit vectors, by inner product.
    """

    def __init__(self, index: Any) -> None:
        self._index = index

    @property
    def rows(self) -> int:
        """Number of rows in the index, counted from row 0 and including those of removed videos."""
        return int(self._index.ntotal)

    @classmethod
    def build(cls, vectors: NDArray[np.floating]) -> WindowIndex:
        """Build an index from unit vectors [N, E]."""
        count, dimension = vectors.shape
        partitions = max(1, min(_MAX_PARTITIONS, count // _ROWS_PER_PARTITION))
        _logger.info("indexing %d windows in %d partitions", count, partitions)
        index = _new_index(dimension, partitions)
        index.cp.seed = _SEED
        generator = np.random.default_rng(_SEED)
        sample = min(count, max(_MIN_SAMPLES, _SAMPLES_PER_PARTITION * partitions))
        index.train(vectors[np.sort(generator.choice(count, sample, replace=False))].astype(np.float32))
        made = cls(index)
        made.add(vectors)
        return made

    def add(self, vectors: NDArray[np.floating]) -> None:
        """Add the vectors [N, E] of the following rows."""
        for first in range(0, len(vectors), _BATCH):
            self._index.add(vectors[first : first + _BATCH].astype(np.float32))

    def is_outgrown(self, rows: int) -> bool:
        """Whether the index should be rebuilt for this number of rows."""
        partitions = int(self._index.nlist)
        return partitions < _MAX_PARTITIONS and rows >= _GROWTH * partitions * _ROWS_PER_PARTITION

    def packed(self) -> WindowIndex:
        """The same codes in the order in which they are compared fast; nothing can be added or saved."""
        import faiss

        index: Any = faiss.IndexIVFPQFastScan(self._index)
        # The centroids, which only the other index keeps.
        index.referenced_objects = self._index.referenced_objects
        return WindowIndex(index)

    def search(self, queries: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """Find the rows [Q, K] nearest to each query [Q, E]; padded with -1."""
        self._index.nprobe = min(_PROBED, int(self._index.nlist))
        _, rows = self._index.search(np.ascontiguousarray(queries), count)
        return np.asarray(rows, np.int64)

    def save(self, path: Path) -> None:
        """Save the arrays to a file, atomically."""
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
        """Load an index from a file; None if the file does not exist.

        Args:
            path: Path of the file.
            dimension: Expected dimension E.
            most: Number of rows in use; the index may not contain the last ones.

        Raises:
            CollectionDamagedError: The file is damaged.
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
                or values.shape != (_VALUES_PER_PART * dimension,)
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

    # The Python wrapper keeps a reference to the quantizer, so it is not garbage-collected.
    quantizer, bits = faiss.IndexFlatIP(dimension), int(math.log2(_VALUES_PER_PART))
    parts, metric = _parts(dimension), faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexIVFPQ(quantizer, dimension, partitions, parts, bits, metric)
    index.by_residual = False
    return index


def _parts(dimension: int) -> int:
    """Number of parts M of a vector, each of the most dimensions, at most four, that divide it evenly."""
    return next(dimension // size for size in (4, 3, 2, 1) if dimension % size == 0)


def _max_bytes(dimension: int, rows: int) -> int:
    """Maximum size in bytes of the file of an index with this many rows."""
    partitions = min(_MAX_PARTITIONS, math.ceil(rows / _ROWS_PER_PARTITION) + 1)
    values = 4 * _VALUES_PER_PART * dimension
    return (1 << 16) + rows * (dimension + 8) + partitions * (4 * dimension + 8) + values
