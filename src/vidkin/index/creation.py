"""Create and open an index, check that the extractor still matches it, and count what is in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vidkin._base.values import Result
from vidkin.errors import (
    CollectionError,
    CollectionMismatchError,
    InvalidArgumentError,
    UnknownExtractorError,
)
from vidkin.features import FrameExtractor, absolute_name, default_extractor
from vidkin.index.storage.files import is_gone
from vidkin.index.storage.manifest import FORMAT_VERSION, MOST_SHARDS, Manifest, WorkerSpec, create_manifest
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord

PathLike = str | os.PathLike[str]

_HIGHEST_RATE = 30.0


def create_index(place: Place, spec: WorkerSpec, shards: int = 0) -> None:
    """Create an empty index for the features of an extractor.

    Args:
        place: A folder or a prefix on object storage, new or empty.
        spec: Specification of the extractor.
        shards: Number of stores that share the videos; 0 for one.

    Raises:
        InvalidArgumentError: The number of shards is out of its range.
        CollectionError: There are other files, or it cannot be created.
        ExtractorError: The extractor cannot be opened.
    """
    if not 0 <= shards <= MOST_SHARDS:
        raise InvalidArgumentError(f"shards must be from 0 to {MOST_SHARDS}, got {shards}")
    extractor = spec.open()
    manifest = Manifest(
        extractor=spec.extractor,
        fingerprint=extractor.fingerprint,
        weights=spec.weights,
        whitening=spec.whitening,
        sampling_rate=spec.base_rate,
        measure=extractor.scorer,
        shards=shards,
        format_version=FORMAT_VERSION if shards else 1,
    )
    create_manifest(place, manifest)


def resolve_spec(
    manifest: Manifest | None,
    extractor: str | None = None,
    weights: PathLike | None = None,
    whitening: PathLike | None = None,
    rate: float | None = None,
) -> WorkerSpec:
    """Complete the settings given by the caller with those of the index.

    Args:
        manifest: Manifest of the index; None for a new one.
        extractor: Name; default that of the index, ``default_extractor()`` for a new one.
        weights, whitening: Files; default those of the index, unless another extractor is named.
        rate: Frames per second; default that of the index, 1 for a new one.

    Raises:
        InvalidArgumentError: The rate is out of range.
        CollectionMismatchError: The index was made with a different rate.
    """
    if rate is not None and not 0 < rate <= _HIGHEST_RATE:
        raise InvalidArgumentError(f"rate must be above 0 and at most {_HIGHEST_RATE:g} frames per second, got {rate}")
    if manifest is not None and rate not in (None, manifest.sampling_rate):
        raise CollectionMismatchError(
            f"the rate of the index is {manifest.sampling_rate:g} (frames per second), got {rate:g}; leave it out, or "
            "make a new index in another folder"
        )
    named = WorkerSpec(
        default_extractor(whitening) if extractor is None else absolute_name(extractor),
        _absolute(weights),
        _absolute(whitening),
        1.0 if rate is None else float(rate),
    )
    if manifest is None:
        return named
    made = WorkerSpec(manifest.extractor, manifest.weights, manifest.whitening, manifest.sampling_rate)
    if extractor is not None and named.extractor != made.extractor:
        # Files of one extractor do not fit another; opening it checks that its features fit the index.
        return replace(named, base_rate=made.base_rate)
    return replace(made, weights=named.weights or made.weights, whitening=named.whitening or made.whitening)


def open_index_extractor(place: Place, manifest: Manifest, spec: WorkerSpec) -> FrameExtractor:
    """Open the extractor and check that its features can be compared with those of the index.

    Args:
        place, manifest: Place and manifest of the index.
        spec: Result of :func:`resolve_spec`.

    Raises:
        CollectionMismatchError: The index was made with a different extractor or weights.
        CollectionError: The weights or the whitening have moved.
        ExtractorError: The extractor cannot be opened.
    """
    for option, file, made in (
        ("weights", spec.weights, manifest.weights),
        ("whitening", spec.whitening, manifest.whitening),
    ):
        if file is not None and file == made and not os.path.exists(file):
            raise CollectionError(
                f"{place.uri} was made with the {option} {file}, which do not exist any more; name the new place once "
                f"(`vidkin index PATH... --{option} FILE`, in Python Index.open(..., {option}=FILE)) and the index "
                "remembers it"
            )
    try:
        extractor = spec.open()
    except UnknownExtractorError as error:
        # Named by the index, not by the caller, who may not even know that there is a model.
        if spec.extractor != manifest.extractor or not spec.extractor.startswith(("model:", "onnx:")):
            raise
        raise UnknownExtractorError(
            f"{error}; {place.uri} was made with the model there: if it has moved, name its new place "
            "(--model FOLDER, or once `vidkin index PATH... --extractor onnx:FILE`, in Python extractor='FOLDER' or "
            "'onnx:FILE')"
        ) from error
    manifest.check(place, extractor.fingerprint)
    return extractor


def remember_places(place: Place, manifest: Manifest, spec: WorkerSpec) -> Manifest:
    """Store the new location of model, weights and whitening of an index; their content was checked to be the same.

    Args:
        place, manifest: Place and manifest of the index.
        spec: Result of :func:`resolve_spec`.
    """
    changed = replace(manifest, extractor=spec.extractor, weights=spec.weights, whitening=spec.whitening)
    if changed != manifest:
        with place.exclusive(10.0):
            changed.write(place)
    return changed


def _absolute(path: PathLike | None) -> str | None:
    return None if path is None else os.path.abspath(os.path.expanduser(path))


# Numbers about an index.


@dataclass(frozen=True, slots=True)
class IndexInfo(Result):
    """Contents and size of an index.

    Attributes:
        path: Folder of the index, or its address on object storage.
        extractor: Name of what makes its features.
        whitening: File of the whitening that the index was made with; None without one.
        fingerprint: Identifies the extractor with its settings, weights and whitening.
        measure: Kind of its scores: ``copies``, or ``kinds`` for a trained model.
        sampling_rate: Frames per second of ordinary videos.
        videos: Number of videos that can be searched.
        broken: Number of files that cannot be read, or must be read again.
        missing: Number of files that no longer exist; their stored features can still be searched.
        damaged: Number of videos of which a part could not be read; ``vidkin info --videos`` says what.
        frames: Number of frames with features.
        windows: Number of windows that the first stage of search looks at.
        seconds: Duration of all videos.
        bytes: Size of all its files.
        created: ISO 8601 time.
    """

    path: str
    extractor: str
    whitening: str | None
    fingerprint: str
    measure: str
    sampling_rate: float
    videos: int
    broken: int
    missing: int
    damaged: int
    frames: int
    windows: int
    seconds: float
    bytes: int
    created: str


def count_contents(place: Place, manifest: Manifest, records: Sequence[VideoRecord]) -> IndexInfo:
    """The numbers of an index with these records."""
    return IndexInfo(
        path=place.uri,
        extractor=manifest.extractor,
        whitening=manifest.whitening,
        fingerprint=manifest.fingerprint,
        measure=manifest.scorer_name,
        sampling_rate=manifest.sampling_rate,
        videos=sum(record.status == "ok" for record in records),
        broken=sum(record.status != "ok" for record in records),
        missing=sum(is_gone(record.path) for record in records),
        damaged=sum(bool(record.damage) for record in records),
        frames=sum(record.frames for record in records),
        windows=sum(record.windows for record in records),
        seconds=sum(record.duration for record in records),
        bytes=sum(place.sizes().values()),
        created=manifest.created,
    )
