"""The settings of an index: its manifest, creation of an index, opening its extractor, and statistics."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Any

from vidkin._base.files import is_unfinished
from vidkin._base.registry import parse_name
from vidkin._base.values import Result, parse_json
from vidkin._version import __version__
from vidkin.errors import (
    CollectionDamagedError,
    CollectionError,
    CollectionMismatchError,
    CollectionNotFoundError,
    InvalidArgumentError,
    UnknownExtractorError,
)
from vidkin.features import FrameExtractor, absolute_name, default_extractor, open_extractor
from vidkin.index.storage.files import is_gone, write_atomically
from vidkin.index.storage.folder_rules import FolderRules
from vidkin.index.storage.opening import HOLDER_FILE, LOCK_FILE, QUEUE_FOLDER
from vidkin.index.storage.place import Place

if TYPE_CHECKING:
    from vidkin.index.storage.records import VideoRecord

PathLike = str | os.PathLike[str]

FORMAT_VERSION = 8
"""Version of the on-disk format; indexes with any other version cannot be opened."""

DISK = "disk"
"""Name of the default store of an index in a folder."""

PARTS_FOLDER = "shards"
"""Folder for the parts of a store that consists of several."""

MANIFEST_FILE = "collection.json"
SOUND_TABLE = "sound.table"

_MAX_RATE = 30.0

# Files that may exist in a folder while an index is being created there, or after an interruption.
_OWN_FILES = {MANIFEST_FILE, LOCK_FILE, HOLDER_FILE, QUEUE_FOLDER, "collection.partial", "config.toml"}

INDEX_REMEDY = "restore it from a backup, or create a new index in another folder (you can copy decisions.json there)"

_TYPES: dict[str, tuple[type, ...]] = {
    "extractor": (str,),
    "fingerprint": (str,),
    "weights": (str, NoneType),
    "whitening": (str, NoneType),
    "store": (str,),
    "sampling_rate": (int, float),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The settings of an index.

    Attributes:
        extractor: Name of the extractor, see :func:`vidkin.features.open_extractor`.
        fingerprint: Identifies the extractor with its settings and weights.
        weights: Absolute path of the network's weights, if a file was specified.
        whitening: Absolute path of the whitening, if a file was specified.
        sampling_rate: Sampling rate of ordinary videos in frames per second.
        measure: Name of the scorer for the features, see :func:`vidkin.match.open_scorer`.
        exclude, follow_links, images, include_bins: Rules for files in folders, see :class:`vidkin.index.FolderRules`.
        sound: Whether audio fingerprints are stored as well.
        reviewed: Whether searches use the measure that ``vidkin train review`` saved in the index.
        created: When the index was created, as an ISO 8601 time.
        vidkin_version: Version of vidkin that created the index.
        store: Name of the store of records, features and windows, see :mod:`vidkin.index.storage.stores`.
        format_version: Version of the on-disk format.
    """

    extractor: str
    fingerprint: str
    weights: str | None = None
    whitening: str | None = None
    sampling_rate: float = 1.0
    measure: str = "copies"
    exclude: tuple[str, ...] = ()
    follow_links: bool = False
    images: bool = False
    include_bins: bool = False
    sound: bool = False
    reviewed: bool = False
    created: str = ""
    vidkin_version: str = ""
    store: str = DISK
    format_version: int = FORMAT_VERSION

    @classmethod
    def exists(cls, place: Place) -> bool:
        """Whether there is an index at this location."""
        return place.has_file(MANIFEST_FILE)

    @classmethod
    def read(cls, place: Place) -> Manifest:
        """Read the manifest of the index at this location.

        Raises:
            CollectionNotFoundError: There is no index.
            CollectionError: The index is damaged, or was created by another version of vidkin.
        """
        path = place.address(MANIFEST_FILE)
        content = place.read(MANIFEST_FILE)
        if content is None:
            _check_not_lost(place)
            raise CollectionNotFoundError(
                f"there is no index at {place.uri}; create one with `vidkin index FOLDER --index INDEX`, or in Python "
                "with Index.open(..., create=True)"
            )
        try:
            values = parse_json(content.decode())
        except ValueError as error:
            raise CollectionDamagedError(f"{path} is damaged ({error}); {INDEX_REMEDY}") from error
        version = values.get("format_version") if isinstance(values, dict) else None
        if not isinstance(version, int):
            raise CollectionDamagedError(f"{path} is damaged (no format version); {INDEX_REMEDY}")
        if version != FORMAT_VERSION:
            age = "an earlier" if version < FORMAT_VERSION else "a newer"
            raise CollectionError(
                f"{place.uri} was created by {age} version of vidkin (format {version}, this version reads "
                f"{FORMAT_VERSION}); index the videos again: vidkin index FOLDER --index NEW_INDEX"
            )
        return cls._from_json(path, values)

    @classmethod
    def _from_json(cls, path: str, values: dict[str, Any]) -> Manifest:
        problem = None
        for name in ("extractor", "fingerprint"):
            if name not in values:
                problem = f"no {name}"
        for name, types in _TYPES.items():
            if name in values and (not isinstance(values[name], types) or isinstance(values[name], bool)):
                problem = f"{name} is {values[name]!r}"
        if problem is None and not 0 < values.get("sampling_rate", 1.0) < math.inf:
            problem = f"sampling_rate is {values['sampling_rate']}"
        exclude = values.get("exclude", [])
        if not isinstance(exclude, list) or not all(
            isinstance(pattern, str) and pattern.strip("/") for pattern in exclude
        ):
            problem = f"exclude is {exclude!r}"
        for name in ("follow_links", "images", "include_bins", "sound", "reviewed"):
            if not isinstance(values.get(name, False), bool):
                problem = f"{name} is {values[name]!r}"
        # Imported late because workers need this module but no scorers.
        from vidkin.match.scorers import available_scorers

        if parse_name(str(values.get("measure", "copies"))).path not in available_scorers():
            problem = f"measure is {values['measure']!r}"
        if problem is not None:
            raise CollectionDamagedError(f"{path} is damaged ({problem}); {INDEX_REMEDY}")
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known} | {"exclude": tuple(exclude)})

    @property
    def rules(self) -> FolderRules:
        """Rules for files in folders."""
        return FolderRules(self.exclude, self.follow_links, self.images, self.include_bins)

    @property
    def scorer_name(self) -> str:
        """Name of the scorer without its settings: ``copies``, ``kinds`` or ``learned``."""
        return parse_name(self.measure).path

    @property
    def has_segments(self) -> bool:
        """Whether matches have segments; otherwise scores only rank videos, on a scale specific to the model."""
        from vidkin.match.scorers import finds_segments

        return finds_segments(self.measure)

    def with_rules(self, place: Place, rules: FolderRules) -> Manifest:
        """Return the manifest with these rules, and save it if they changed; the caller must hold the write lock."""
        if rules == self.rules:
            return self
        changed = replace(self, **asdict(rules))
        changed.write(place)
        return changed

    def has_sound(self, place: Place) -> bool:
        """Whether the index has audio fingerprints."""
        return self.sound and place.has_file(SOUND_TABLE)

    def with_sound(self, place: Place, sound: bool) -> Manifest:
        """Return the manifest with or without sound, and save it; the caller must hold the write lock."""
        changed = replace(self, sound=sound)
        changed.write(place)
        return changed

    def write(self, place: Place) -> None:
        """Save the manifest, atomically."""
        write_atomically(place, MANIFEST_FILE, json.dumps(asdict(self), indent=2).encode())

    def check(self, place: Place, fingerprint: str) -> None:
        """Check that the index was created with the extractor that has this fingerprint.

        Raises:
            CollectionMismatchError: The fingerprints differ.
        """
        if fingerprint != self.fingerprint:
            raise CollectionMismatchError(
                f"{place.uri} was created with extractor {self.fingerprint}, got {fingerprint}: a different extractor, "
                "or the same one with other weights or settings. Their features cannot be compared; omit the extractor "
                "to use the one of the index, or create a new index in another folder (this is also necessary after an "
                "update of vidkin that changes its features)"
            )


def create_manifest(place: Place, manifest: Manifest) -> None:
    """Create an empty index, unless another process has just created one there.

    Args:
        place: A new or empty folder, or a prefix on object storage.
        manifest: Settings of the index; time and version are added.

    Raises:
        CollectionError: The location contains other files, or the index cannot be created.
    """
    try:
        place.prepare()
        # An interrupted creation of an index may leave an unfinished file.
        foreign = sorted(name for name in place.names() - _OWN_FILES if not is_unfinished(name))
    except OSError as error:
        raise CollectionError(
            f"{place.uri}: cannot create an index here ({(error.strerror or str(error)).lower()})"
        ) from error
    _check_not_lost(place)
    if foreign:
        raise CollectionError(
            f"{place.uri} is not an index and is not empty (it contains {foreign[0]!r}); choose another folder"
        )
    with place.exclusive(10.0):
        if not Manifest.exists(place):
            created = datetime.now().astimezone().isoformat(timespec="seconds")
            replace(manifest, created=created, vidkin_version=__version__).write(place)


def _check_not_lost(place: Place) -> None:
    """Check that the manifest was not lost, which is the case if there are tables, as these are written after it.

    Raises:
        CollectionDamagedError: The manifest was lost.
    """
    from vidkin.index.storage.video_table import VIDEOS_FILE

    if place.has_file(VIDEOS_FILE) or place.has_folder(PARTS_FOLDER):
        raise CollectionDamagedError(f"{place.address(MANIFEST_FILE)} is missing; {INDEX_REMEDY}")


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Settings that a worker needs to extract features.

    Attributes:
        extractor: Name of the extractor, see :func:`vidkin.features.open_extractor`.
        weights, whitening: Paths of the files, or None.
        base_rate: Sampling rate of ordinary videos in frames per second, see
            :func:`vidkin.index.storage.records.sampling_rate`.
        sound: Whether to extract audio landmarks as well.
        open_extractor: For extractors that are not in the registry, a function called as
            ``open_extractor(name, weights=..., whitening=...)``, at the top level of an importable module.
        device: Device of an extractor from the registry: ``auto``, ``cpu``, ``cuda``, ``cuda:1``.
    """

    extractor: str
    weights: str | None = None
    whitening: str | None = None
    base_rate: float = 1.0
    sound: bool = False
    open_extractor: Callable[..., FrameExtractor] | None = None
    device: str = "auto"

    def open(self) -> FrameExtractor:
        """Open the extractor with its weights and whitening; each worker calls this once."""
        if self.open_extractor is not None:
            return self.open_extractor(self.extractor, weights=self.weights, whitening=self.whitening)
        return open_extractor(self.extractor, weights=self.weights, whitening=self.whitening, device=self.device)


def create_index(place: Place, spec: WorkerSpec, *, store: str = DISK) -> None:
    """Create an empty index for the features of an extractor.

    Args:
        place: A new or empty folder, or a prefix on object storage.
        spec: Specification of the extractor.
        store: Name of the store.

    Raises:
        CollectionError: The location contains other files, or the index cannot be created.
        ExtractorError: The extractor cannot be opened.
    """
    extractor = spec.open()
    manifest = Manifest(
        extractor=spec.extractor,
        fingerprint=extractor.fingerprint,
        weights=spec.weights,
        whitening=spec.whitening,
        sampling_rate=spec.base_rate,
        measure=extractor.scorer,
        sound=spec.sound,
        store=store,
    )
    create_manifest(place, manifest)


def resolve_spec(
    manifest: Manifest | None,
    extractor: str | None = None,
    weights: PathLike | None = None,
    whitening: PathLike | None = None,
    rate: float | None = None,
    device: str = "auto",
) -> WorkerSpec:
    """Complete the settings given by the caller with those of the index.

    Args:
        manifest: Manifest of the index; None for a new index.
        extractor: Name of the extractor; default: that of the index, or ``default_extractor()`` for a new index.
        weights, whitening: Paths of the files; default: those of the index, unless a different extractor is given.
        rate: Sampling rate in frames per second; default: that of the index, or 1 for a new index.
        device: Device of the extractor, which is not stored in the index.

    Raises:
        InvalidArgumentError: The rate is out of range.
        CollectionMismatchError: The index was created with a different rate.
    """
    if rate is not None and not 0 < rate <= _MAX_RATE:
        raise InvalidArgumentError(f"rate must be above 0 and at most {_MAX_RATE:g} frames per second, got {rate}")
    if manifest is not None and rate not in (None, manifest.sampling_rate):
        raise CollectionMismatchError(
            f"the rate of the index is {manifest.sampling_rate:g} frames per second, got {rate:g}; omit the rate, or "
            "create a new index in another folder"
        )
    named = WorkerSpec(
        default_extractor(whitening) if extractor is None else absolute_name(extractor),
        _absolute(weights),
        _absolute(whitening),
        1.0 if rate is None else float(rate),
        sound=True if manifest is None else manifest.sound,
        device=device,
    )
    if manifest is None:
        return named
    made = WorkerSpec(
        manifest.extractor,
        manifest.weights,
        manifest.whitening,
        manifest.sampling_rate,
        sound=manifest.sound,
        device=named.device,
    )
    if extractor is not None and named.extractor != made.extractor:
        # Do not use the index's files with a different extractor; opening it checks that its features are compatible.
        return replace(named, base_rate=made.base_rate)
    return replace(made, weights=named.weights or made.weights, whitening=named.whitening or made.whitening)


def open_index_extractor(place: Place, manifest: Manifest, spec: WorkerSpec) -> FrameExtractor:
    """Open the extractor and check that its features are comparable with those of the index.

    Args:
        place, manifest: Location and manifest of the index.
        spec: Result of :func:`resolve_spec`.

    Raises:
        CollectionMismatchError: The index was created with a different extractor or weights.
        CollectionError: The weights or whitening file no longer exists.
        ExtractorError: The extractor cannot be opened.
    """
    for option, file, made in (
        ("weights", spec.weights, manifest.weights),
        ("whitening", spec.whitening, manifest.whitening),
    ):
        if file is not None and file == made and not os.path.exists(file):
            raise CollectionError(
                f"{place.uri} was created with the {option} {file}, which no longer exists; specify the new location "
                f"once (`vidkin index PATH... --{option} FILE`, or in Python Index.open(..., {option}=FILE)) to save "
                "it in the index"
            )
    try:
        extractor = spec.open()
    except UnknownExtractorError as error:
        # The model was specified by the index, so the caller may not know about it.
        if spec.extractor != manifest.extractor or not spec.extractor.startswith(("model:", "onnx:")):
            raise
        raise UnknownExtractorError(
            f"{error}; {place.uri} was created with this model: if it has moved, specify its new location "
            "(--model FOLDER, or once `vidkin index PATH... --extractor onnx:FILE`; in Python, extractor='FOLDER' or "
            "'onnx:FILE')"
        ) from error
    manifest.check(place, extractor.fingerprint)
    return extractor


def save_model_paths(place: Place, manifest: Manifest, spec: WorkerSpec) -> Manifest:
    """Save new locations of the model, weights and whitening of an index, after their content was verified.

    Args:
        place, manifest: Location and manifest of the index.
        spec: Result of :func:`resolve_spec`.

    Returns:
        The updated manifest.
    """
    changed = replace(manifest, extractor=spec.extractor, weights=spec.weights, whitening=spec.whitening)
    if changed != manifest:
        with place.exclusive(10.0):
            changed.write(place)
    return changed


def _absolute(path: PathLike | None) -> str | None:
    return None if path is None else os.path.abspath(os.path.expanduser(path))


@dataclass(frozen=True, slots=True)
class IndexInfo(Result):
    """Contents and size of an index.

    Attributes:
        path: Folder of the index, or its URL on object storage.
        extractor: Name of the extractor.
        whitening: Path of the whitening file used to create the index; None without whitening.
        fingerprint: Identifies the extractor with its settings, weights and whitening.
        measure: Name of the scorer: ``copies``, or ``kinds`` or ``learned`` for a trained model.
        sampling_rate: Sampling rate of ordinary videos in frames per second.
        videos: Number of videos that can be searched.
        photographs: Number of photographs that can be searched.
        broken: Number of files that cannot be read, or must be read again.
        missing: Number of files that no longer exist; their stored features can still be searched.
        damaged: Number of videos with unreadable parts, listed by ``vidkin info --videos``.
        frames: Number of frames with features.
        windows: Number of windows for the first search stage.
        seconds: Total duration of all videos in seconds.
        bytes: Total size of the index's files.
        created: When the index was created, as an ISO 8601 time.
    """

    path: str
    extractor: str
    whitening: str | None
    fingerprint: str
    measure: str
    sampling_rate: float
    videos: int
    photographs: int
    broken: int
    missing: int
    damaged: int
    frames: int
    windows: int
    seconds: float
    bytes: int
    created: str


def count_contents(place: Place, manifest: Manifest, records: Sequence[VideoRecord]) -> IndexInfo:
    """Compute the statistics of an index from its records."""
    return IndexInfo(
        path=place.uri,
        extractor=manifest.extractor,
        whitening=manifest.whitening,
        fingerprint=manifest.fingerprint,
        measure=manifest.scorer_name,
        sampling_rate=manifest.sampling_rate,
        videos=sum(record.status == "ok" and not record.is_photograph for record in records),
        photographs=sum(record.status == "ok" and record.is_photograph for record in records),
        broken=sum(record.status != "ok" for record in records),
        missing=sum(is_gone(record.path) for record in records),
        damaged=sum(bool(record.damage) for record in records),
        frames=sum(record.frames for record in records),
        windows=sum(record.windows for record in records),
        seconds=sum(record.duration for record in records),
        bytes=sum(place.sizes().values()),
        created=manifest.created,
    )
