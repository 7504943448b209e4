"""Whitening: weight each direction of descriptors by how well it discriminates, not by how much it varies."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import PathLike
from vidkin._base.outputs import open_output
from vidkin.errors import InvalidArgumentError
from vidkin.features.contracts import FrameExtractor
from vidkin.features.networks import unit_vectors

if TYPE_CHECKING:
    from vidkin.media import Frames

EPSILON = 1e-7

# Directions with less than this fraction of the largest variance contain only rounding errors of float32 descriptors.
_RANK_TOLERANCE = 1e-10


@check_constructor
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Whitening:
    """A linear map to unit vectors: ``y = L2((x - mean) @ projection)``.

    Create one with :meth:`fit` (principal components of the data), :meth:`fit_pairs` (discriminative: directions that
    edits change get less weight), :meth:`from_eigen` (a published matrix) or :meth:`load`.

    Attributes:
        mean: [D] float32.
        projection: [D, D'] float32.
        eigenvalues: [D'] float32, in decreasing order: variances of the data along the kept directions (``pca``:
            eigenvalues of the covariance, not of the scatter matrix; ``pairs``: ratios of total to within-pair
            variance).
        kind: ``pca`` or ``pairs``.
    """

    mean: NDArray[np.float32]
    projection: NDArray[np.float32]
    eigenvalues: NDArray[np.float32]
    kind: Literal["pca", "pairs"] = "pca"

    def __post_init__(self) -> None:
        if self.projection.ndim != 2:
            raise InvalidArgumentError(f"projection must be [D, D'], got {list(self.projection.shape)}")
        before, after = self.projection.shape
        for name, length in (("mean", before), ("eigenvalues", after)):
            given = getattr(self, name)
            if tuple(given.shape) != (length,):
                raise InvalidArgumentError(
                    f"{name} must be [{length}] as projection is [{before}, {after}], got {list(given.shape)}"
                )
        for name in ("mean", "projection", "eigenvalues"):
            given = getattr(self, name)
            if given.dtype != np.float32 or not np.isfinite(given).all():
                raise InvalidArgumentError(f"{name} must be finite float32, got {given.dtype}")
        if self.kind not in ("pca", "pairs"):
            raise InvalidArgumentError(f"kind must be 'pca' or 'pairs', got {self.kind!r}")

    def __repr__(self) -> str:
        return f"Whitening({self.kind}, {self.projection.shape[0]} -> {self.projection.shape[1]})"

    @property
    def dimension(self) -> int:
        """D', the length of the vectors returned by :meth:`apply`."""
        return int(self.projection.shape[1])

    def apply(self, values: NDArray[np.floating]) -> NDArray[np.float32]:
        """Compute ``L2((values - mean) @ projection)``: [..., D] to [..., D'], float32.

        A zero vector means "no content" and stays zero.

        Raises:
            InvalidArgumentError: The vectors do not have length D.
        """
        if values.shape[-1] != self.mean.shape[0]:
            raise InvalidArgumentError(
                f"vectors must have length {self.mean.shape[0]} for this whitening, got {values.shape[-1]}; "
                "it was made with another extractor"
            )
        whitened: NDArray[np.float32] = np.matmul(values.astype(np.float32, copy=False) - self.mean, self.projection)
        whitened = unit_vectors(whitened)
        whitened *= (values != 0).any(axis=-1, keepdims=True)
        return whitened

    def check_length(self, length: int, extractor: str) -> None:
        """Raise InvalidArgumentError unless the whitening fits descriptors [..., length], which ``extractor``
        returns."""
        if len(self.mean) != length:
            raise InvalidArgumentError(
                f"the whitening is for descriptors of length {len(self.mean)}, but {extractor} has {length}; fit one "
                "to its own descriptors"
            )

    def digest(self) -> str:
        """Return the SHA-256 of the kind and the arrays, which is part of an extractor's fingerprint."""
        digest = hashlib.sha256(self.kind.encode())
        for array in (self.mean, self.projection, self.eigenvalues):
            digest.update(array.tobytes())
        return digest.hexdigest()

    @classmethod
    def fit(cls, batches: Iterable[NDArray[np.floating]], *, dimension: int, epsilon: float = EPSILON) -> Whitening:
        """Fit principal components, each divided by its standard deviation.

        Let m be the mean and C = V diag(d) V^T the covariance of all vectors (one pass, float64, memory for two D x D
        matrices). Then ``projection = V diag(1 / sqrt(d + epsilon))`` for the D' largest d.

        Args:
            batches: Arrays [..., D]. Zero vectors (regions without content) are skipped.
            dimension: D', at most D and at most the number of directions in which the vectors vary.
            epsilon: Constant that prevents directions without variance from exploding.

        Raises:
            InvalidArgumentError: There are no vectors, or too few for ``dimension``, or D differs between batches.
        """
        moments = _Moments()
        for batch in batches:
            rows = _rows(batch)
            moments.add(rows[_has_content(rows)])
        mean, covariance = moments.mean_and_covariance()
        values, vectors = _largest_eigen(covariance, dimension)
        return cls.from_eigen(mean, vectors, values, epsilon=epsilon)

    @classmethod
    def fit_pairs(
        cls,
        pairs: Iterable[tuple[NDArray[np.floating], NDArray[np.floating]]],
        *,
        dimension: int,
        shrinkage: float = 0.05,
        power: float = 0.0,
    ) -> Whitening:
        """Fit a discriminative whitening, which suppresses directions that edits change before taking components.

        ``C_w = mean (a - b)(a - b)^T`` over the pairs, shrunk to ``(1 - shrinkage) C_w + shrinkage tr(C_w)/D I``;
        ``W = C_w^{-1/2}``; ``W C_t W = U diag(e) U^T`` with C_t the covariance of all vectors;
        ``projection = W U diag(e^{-power/2})`` for the D' largest e.
        (Mikolajczyk and Matas, "Improving descriptors for fast tree matching by optimal linear projection", ICCV 2007.)

        Args:
            pairs: Pairs of arrays [..., D]; vectors at the same position are a region and its edited copy. Pairs with a
                zero vector are skipped.
            dimension: D', at most D.
            shrinkage: Strength of the shrinkage in (0, 1]; use more for fewer pairs. 1 ignores the pairs' directions.
            power: Exponent in [0, 1]; 0 leaves the weights of the directions unchanged, 1 also equalizes their total
                variance.

        Raises:
            InvalidArgumentError: There are no pairs, both vectors are equal in every pair, shapes differ, or a setting
                is out of range.
        """
        if not 0 < shrinkage <= 1:
            raise InvalidArgumentError(f"shrinkage must be in (0, 1], got {shrinkage}")
        if not 0 <= power <= 1:
            raise InvalidArgumentError(f"power must be in [0, 1], got {power}")
        total, within = _Moments(), _Moments(centered=False)
        for first, second in pairs:
            if first.shape != second.shape:
                raise InvalidArgumentError(
                    f"the arrays of a pair must have the same shape, got {list(first.shape)} and {list(second.shape)}"
                )
            a, b = _rows(first), _rows(second)
            content = _has_content(a) & _has_content(b)
            within.add(a[content] - b[content])
            total.add(np.concatenate([a[content], b[content]]))
        mean, total_covariance = total.mean_and_covariance()
        _, scatter = within.mean_and_covariance()
        scale = float(scatter.diagonal().mean())
        if scale == 0:
            raise InvalidArgumentError("the arrays of every pair are equal; pair vectors with their edited copies")
        scatter = (1 - shrinkage) * scatter + shrinkage * scale * np.eye(len(scatter))
        values, vectors = np.linalg.eigh(scatter)
        root = (vectors / np.sqrt(values)) @ vectors.T
        ratios, directions = _largest_eigen(root @ total_covariance @ root, dimension)
        weights = (ratios + EPSILON) ** (-power / 2)
        return cls._in_float32(mean, root @ directions * weights, ratios, "pairs")

    @classmethod
    def from_eigen(
        cls,
        mean: NDArray[np.floating],
        vectors: NDArray[np.floating],
        eigenvalues: NDArray[np.floating],
        *,
        count: int | None = None,
        epsilon: float = EPSILON,
    ) -> Whitening:
        """Create a whitening from known principal components: ``projection = V diag(1 / sqrt(d + epsilon))``.

        Args:
            mean: [D], mean of the vectors.
            vectors: V [D, D'], components as columns.
            eigenvalues: d [D'], in decreasing order.
            count: Number of vectors, if d contains eigenvalues of the *scatter* matrix ``X^T X``; they, and
                ``epsilon``, which was then added to the scatter matrix, are divided by this. None: d contains
                eigenvalues of the covariance.
            epsilon: Constant to add to the eigenvalues as given.
        """
        divisor = 1 if count is None else count
        if divisor < 1:
            raise InvalidArgumentError(f"count must be at least 1, got {count}")
        values = np.maximum(eigenvalues.astype(np.float64), 0) / divisor
        projection = vectors.astype(np.float64) / np.sqrt(values + epsilon / divisor)
        return cls._in_float32(mean, projection, values, "pca")

    @classmethod
    def _in_float32(
        cls,
        mean: NDArray[np.floating],
        projection: NDArray[np.floating],
        eigenvalues: NDArray[np.floating],
        kind: Literal["pca", "pairs"],
    ) -> Whitening:
        mean, projection, eigenvalues = (
            np.ascontiguousarray(array, np.float32) for array in (mean, projection, eigenvalues)
        )
        return cls(mean, projection, eigenvalues, kind)

    def save(self, path: PathLike, *, source: str | None = None) -> None:
        """Write ``mean``, ``projection`` and ``eigenvalues`` as safetensors, with the kind and the conventions in the
        metadata.

        Args:
            path: The file to write.
            source: What the whitening was fitted to; see :func:`vidkin._base.outputs.open_output`.

        Raises:
            MediaError: The file cannot be written; an existing file is not changed.
        """
        from safetensors.numpy import save

        arrays = {"mean": self.mean, "projection": self.projection, "eigenvalues": self.eigenvalues}
        metadata = {
            "format": "vidkin.whitening",
            "version": "1",
            "kind": self.kind,
            "eigenvalues": "covariance",
        }
        content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata)
        with open_output(path, source=source) as partial:
            partial.write_bytes(content)

    @classmethod
    def load(cls, path: PathLike, *, count: int | None = None) -> Whitening:
        """Read a file written by :meth:`save`, or one with ``mean`` [D], ``vectors`` [D, D'] and ``eigenvalues`` [D'].

        Args:
            path: A safetensors file.
            count: For the second form, as in :meth:`from_eigen`.

        Raises:
            InvalidArgumentError: The file is missing, is not safetensors, or contains something else.
        """
        arrays, metadata = read_safetensors(path, purpose="whitening")
        names = set(arrays)
        if {"mean", "vectors", "eigenvalues"} <= names:
            return cls.from_eigen(arrays["mean"], arrays["vectors"], arrays["eigenvalues"], count=count)
        if not {"mean", "projection", "eigenvalues"} <= names:
            raise InvalidArgumentError(
                f"{os.fspath(path)}: a whitening must contain mean, eigenvalues and projection (or vectors), "
                f"got {', '.join(sorted(names)[:6]) or 'nothing'}"
            )
        kind = metadata.get("kind", "pca")
        if kind not in ("pca", "pairs"):
            raise InvalidArgumentError(f"{os.fspath(path)}: kind must be 'pca' or 'pairs', got {kind!r}")
        return cls._in_float32(
            arrays["mean"], arrays["projection"], arrays["eigenvalues"], "pairs" if kind == "pairs" else "pca"
        )


@check_arguments
def fit_whitening(extractor: FrameExtractor, frames: Iterable[Frames], *, dimension: int = 512) -> Whitening:
    """Fit a whitening to an extractor's own descriptors of your frames (one pass, bounded memory).

    Args:
        extractor: An extractor without whitening.
        frames: Batches of frames; a few thousand frames of varied videos are enough.
        dimension: D', the length of the whitened descriptors.

    Returns:
        The whitening; use it with ``whitening.save(path)`` and ``open_extractor(name, whitening=path)``.
    """

    def batches() -> Iterator[NDArray[np.floating]]:
        for batch in frames:
            yield extractor.extract(batch).whole

    return Whitening.fit(batches(), dimension=dimension)


@check_arguments
def read_safetensors(
    path: PathLike, *, purpose: str, framework: Literal["numpy", "pt"] = "numpy"
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read all arrays of a file (as torch tensors with ``pt``) and its metadata.

    Args:
        path: A safetensors file.
        purpose: What the file is used for, for error messages: ``whitening``.
        framework: ``numpy``, or ``pt`` for weights in bfloat16, which NumPy does not support.

    Raises:
        InvalidArgumentError: The file is missing, is not safetensors, or contains non-finite values.
    """
    from safetensors import SafetensorError, safe_open

    name = os.fspath(path)
    if not os.path.isfile(name):
        raise InvalidArgumentError(f"{name}: no such {purpose} file")
    try:
        with safe_open(name, framework=framework) as file:
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a mapping)
            metadata = dict(file.metadata() or {})
    except SafetensorError as error:
        raise InvalidArgumentError(
            f"{name}: not a safetensors file ({error}); convert the {purpose} to safetensors"
        ) from error
    for key, array in arrays.items():
        finite = np.isfinite(array) if isinstance(array, np.ndarray) else array.isfinite()
        if not bool(finite.all()):
            raise InvalidArgumentError(f"{name}: {key} contains non-finite values; use another {purpose} file")
    return arrays, metadata


class _Moments:
    """Mean and second moments of a stream of vectors, merged batch by batch (Chan, Golub and LeVeque, 1979)."""

    def __init__(self, *, centered: bool = True) -> None:
        self._centered = centered
        self._count = 0
        self._mean = np.zeros(0)
        self._scatter = np.zeros((0, 0))

    def add(self, rows: NDArray[np.float64]) -> None:
        """Add vectors [N, D] float64."""
        if self._count == 0:
            dimension = rows.shape[1]
            self._mean = np.zeros(dimension)
            self._scatter = np.zeros((dimension, dimension))
        elif rows.shape[1] != len(self._mean):
            raise InvalidArgumentError(
                f"all vectors must have the same length, got {len(self._mean)} and {rows.shape[1]}"
            )
        if not len(rows):
            return
        count = self._count + len(rows)
        batch_mean = rows.mean(axis=0) if self._centered else np.zeros_like(self._mean)
        centered = rows - batch_mean
        shift = batch_mean - self._mean
        self._scatter += centered.T @ centered
        self._scatter += np.outer(shift, shift) * (self._count * len(rows) / count)
        self._mean += shift * (len(rows) / count)
        self._count = count

    def mean_and_covariance(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean [D] and the covariance [D, D]."""
        if self._count == 0:
            raise InvalidArgumentError("a whitening must be fitted to at least one nonzero vector, got none")
        return self._mean, self._scatter / self._count


def _rows(batch: NDArray[np.floating]) -> NDArray[np.float64]:
    """Reshape vectors [..., D] to [N, D] float64."""
    return batch.reshape(-1, batch.shape[-1]).astype(np.float64)


def _has_content(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether each vector has a nonzero value, [N] bool."""
    content: NDArray[np.bool_] = (rows != 0).any(axis=-1)
    return content


def _largest_eigen(matrix: NDArray[np.float64], dimension: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest eigenvalues [D'] in decreasing order and their vectors [D, D'], with deterministic signs."""
    if not 1 <= dimension <= len(matrix):
        raise InvalidArgumentError(f"dimension must be from 1 to {len(matrix)}, got {dimension}")
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1][:, :dimension]
    rank = int((values > _RANK_TOLERANCE * values[0]).sum())
    if dimension > rank:
        raise InvalidArgumentError(
            f"dimension must be at most {rank}, because the vectors vary in only that many directions, got "
            f"{dimension}; use more varied frames, or a smaller dimension"
        )
    strongest = np.abs(vectors).argmax(axis=0)
    return values[:dimension], vectors * np.sign(np.take_along_axis(vectors, strongest[None], axis=0))
