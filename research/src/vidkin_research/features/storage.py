"""Open classical features by name and store them in files: fitted values as tensors, settings as JSON."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import as_file, files
from typing import Any, ClassVar, Self

import torch
from torch.nn import functional

from vidkin._base.outputs import open_output
from vidkin._base.registry import parse_name
from vidkin._base.values import check_positive, parse_json
from vidkin.errors import InvalidArgumentError, UnknownExtractorError
from vidkin.features.whitening import read_safetensors
from vidkin_research.features.color import ColorHistogram
from vidkin_research.features.feature import Image, ImageFeature
from vidkin_research.features.fisher import FisherVectors
from vidkin_research.features.hashed import HashedHistograms
from vidkin_research.features.hog import GradientHistogram
from vidkin_research.features.texture import TextonPyramid, WaveletSignature
from vidkin_research.features.words import VisualWords

__all__ = [
    "BilinearSimilarity",
    "available_features",
    "feature_digest",
    "learn_bilinear",
    "load_feature",
    "open_feature",
    "save_feature",
]


# Bilinear similarity learned online from triplets.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BilinearSimilarity:
    """OASIS: bilinear similarity p^T W q of another feature's vectors [T, D]; the distance is -p^T W q.

    Source: Chechik, Sharma, Shalit and Bengio, "Large scale online learning of image similarity through ranking", JMLR
    2010; Wang et al., deep ranking, learn it on L1HashKPCA. W need not be symmetric. In an index the similarity is
    symmetric: embeddings use the positive part of (W + W^T) / 2.

    Attributes:
        base: The feature whose embeddings are compared.
        matrix: The matrix W, [D, D] float32.
    """

    name: ClassVar[str] = "oasis"
    base: ImageFeature
    matrix: torch.Tensor

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1]:
            raise InvalidArgumentError(f"matrix must be [D, D], got {list(self.matrix.shape)}")

    @classmethod
    def fit(
        cls,
        base: ImageFeature,
        descriptors: torch.Tensor,
        triplets: Iterable[tuple[int, int, int]],
        *,
        aggressiveness: float = 0.1,
    ) -> Self:
        """Learn W.

        Args:
            base: The feature whose embeddings are compared.
            descriptors: [N, D'] descriptors of the training images by ``base``.
            triplets: Rows of query, positive and negative, in training order.
            aggressiveness: Maximum step size; see :func:`learn_bilinear`.
        """
        return cls(base, learn_bilinear(base.embed(descriptors), triplets, aggressiveness=aggressiveness))

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Return the vectors [T, D] of the base feature, of length 1 or 0."""
        return self.base.embed(self.base.describe(images))

    def distances(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return -p^T W q, [N, M]; queries must come first, because W need not be symmetric."""
        return -(first @ self.matrix @ second.T)

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """Return ``L p``, scaled to length 1, where L^T L is the positive part of the symmetric part of W."""
        values, vectors = torch.linalg.eigh(((self.matrix + self.matrix.T) / 2).double())
        root = (vectors * values.clamp_min(0).sqrt()).float()
        return functional.normalize(descriptors @ root, dim=1)


def learn_bilinear(
    vectors: torch.Tensor, triplets: Iterable[tuple[int, int, int]], *, aggressiveness: float = 0.1
) -> torch.Tensor:
    """Learn W [D, D] with passive-aggressive updates, starting from the identity (OASIS).

    For each triplet of rows (p, p+, p-): ``l = max(0, 1 - p^T W p+ + p^T W p-)``, ``V = p (p+ - p-)^T``,
    ``tau = min(C, l / ||V||^2)``, ``W += tau V``. An update changes W just enough to make the loss 0, with a step size
    of at most C.

    Args:
        vectors: [N, D] unit vectors.
        triplets: Row numbers of query, positive and negative.
        aggressiveness: Maximum step size C, above 0.

    Raises:
        InvalidArgumentError: C is not above 0.
    """
    check_positive(aggressiveness=aggressiveness)
    rows = vectors.double()
    matrix = torch.eye(rows.shape[1], dtype=torch.float64)
    for query, positive, negative in triplets:
        difference = rows[positive] - rows[negative]
        loss = 1 - float(rows[query] @ matrix @ difference)
        # ||p d^T||^2 = ||p||^2 ||d||^2
        size = float(rows[query].square().sum() * difference.square().sum())
        if loss > 0 and size > 0:
            matrix.addr_(rows[query], difference, alpha=min(aggressiveness, loss / size))
    return matrix.float()


PathLike = str | os.PathLike[str]

_CLASSES: dict[str, type[Any]] = {
    feature.name: feature
    for feature in (
        *(WaveletSignature, ColorHistogram, VisualWords, FisherVectors, GradientHistogram),
        *(TextonPyramid, HashedHistograms, BilinearSimilarity),
    )
}

# Features shipped with a fit to 700 flower photographs, so that they work offline.
_SHIPPED = (VisualWords.name, FisherVectors.name, TextonPyramid.name, HashedHistograms.name)

_FORMAT = "vidkin.image_feature"


def available_features() -> tuple[str, ...]:
    """Return the names of all classical image features, in the order of the published table."""
    return tuple(_CLASSES)


def open_feature(name: str, *, weights: PathLike | None = None) -> ImageFeature:
    """Open a feature by name.

    Args:
        name: One of :func:`available_features`; settings follow a question mark: ``color?space=hsv``.
        weights: A file written by :func:`save_feature`. Without one, fitted features are loaded from the package.

    Raises:
        UnknownExtractorError: No feature has this name.
        InvalidArgumentError: A setting is invalid, the file contains another feature, or a file is required.
    """
    parsed = parse_name(name)
    if parsed.path not in _CLASSES:
        raise UnknownExtractorError(
            f"{name!r} is not a classical feature; choose from {', '.join(available_features())}"
        )
    make = _CLASSES[parsed.path]
    # Field types are strings here; fields that are neither numbers nor strings cannot be settings.
    types = {field.name: int if field.type == "int" else str for field in fields(make)}
    plain = all(field.type not in ("torch.Tensor", "ImageFeature") for field in fields(make))
    settings = parsed.typed_settings(types if plain else {})
    if weights is not None:
        feature = load_feature(weights)
        if feature.name != parsed.path or settings:
            raise InvalidArgumentError(
                f"{os.fspath(weights)}: contains the feature {feature.name!r} with its own settings, got {name!r}; "
                f"open it as 'classical:{feature.name}'"
            )
        return feature
    if plain:
        made: ImageFeature = make(**settings)
        return made
    if parsed.path not in _SHIPPED:
        raise InvalidArgumentError(
            f"the feature {parsed.path!r} is learned from labels; pass its file as weights (written by "
            "vidkin_research.features.save_feature)"
        )
    return _shipped(parsed.path)


def save_feature(feature: ImageFeature, path: PathLike, *, source: str | None = None) -> None:
    """Write a feature as safetensors: fitted tensors, and settings as JSON in the metadata.

    Raises:
        MediaError: The file cannot be written; an existing file is not changed.
    """
    from safetensors.torch import save

    tensors: dict[str, torch.Tensor] = {}
    settings = _serialize(feature, "", tensors)
    # A safetensors file needs at least one tensor.
    tensors = tensors or {"nothing": torch.zeros(1)}
    metadata = {"format": _FORMAT, "version": "1", "feature": json.dumps(settings)}
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata)
    with open_output(path, source=source) as partial:
        partial.write_bytes(content)


def load_feature(path: PathLike) -> ImageFeature:
    """Read a file written by :func:`save_feature`.

    Raises:
        InvalidArgumentError: The file is missing, is not safetensors, or contains something else.
    """
    tensors, metadata = read_safetensors(path, purpose="feature", framework="pt")
    if metadata.get("format") != _FORMAT:
        raise InvalidArgumentError(
            f"{os.fspath(path)}: not a classical image feature; use a file written by save_feature"
        )
    try:
        return _deserialize(parse_json(metadata["feature"]), "", tensors)
    # Features can be nested; nesting that is too deep raises a RecursionError.
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, InvalidArgumentError) as error:
        raise InvalidArgumentError(f"{os.fspath(path)}: damaged feature file: {error!r}") from error


def feature_digest(feature: ImageFeature) -> str:
    """Return the SHA-256 of the settings and fitted values; features with equal digests give equal descriptors."""
    tensors: dict[str, torch.Tensor] = {}
    digest = hashlib.sha256(json.dumps(_serialize(feature, "", tensors), sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _serialize(feature: ImageFeature, prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Return the feature's name and settings, including nested features, and add its tensors to ``tensors``."""
    settings: dict[str, Any] = {"name": feature.name}
    for field in fields(feature):  # type: ignore[arg-type]
        value = getattr(feature, field.name)
        if isinstance(value, torch.Tensor):
            tensors[prefix + field.name] = value
        elif hasattr(value, "describe"):
            settings[field.name] = _serialize(value, f"{prefix}{field.name}.", tensors)
        else:
            settings[field.name] = value
    return settings


def _deserialize(settings: Mapping[str, Any], prefix: str, tensors: Mapping[str, torch.Tensor]) -> ImageFeature:
    make = _CLASSES[settings["name"]]
    values: dict[str, Any] = {}
    for field in fields(make):
        value = settings.get(field.name)
        if isinstance(value, Mapping):
            values[field.name] = _deserialize(value, f"{prefix}{field.name}.", tensors)
        elif field.name in settings:
            values[field.name] = value
        else:
            tensor = tensors[prefix + field.name]
            # Codebooks are stored in half precision, but arithmetic needs float32.
            values[field.name] = tensor.float() if tensor.is_floating_point() else tensor
    feature: ImageFeature = make(**values)
    return feature


@cache
def _shipped(name: str) -> ImageFeature:
    with as_file(files("vidkin_research.features") / "data" / f"{name}.safetensors") as path:
        return load_feature(path)
