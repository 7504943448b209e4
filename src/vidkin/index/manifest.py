"""What a collection was made with, in one small file."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import Any

from vidkin.errors import (
    CollectionDamagedError,
    CollectionError,
    CollectionMismatchError,
    CollectionNotFoundError,
)
from vidkin.index.ingest.worker import WorkerSpec
from vidkin.index.lock import HOLDER_FILE, LOCK_FILE, writer_lock
from vidkin.index.storage.files import write_whole

__all__ = ["FORMAT_VERSION", "MANIFEST_FILE", "Manifest", "create_collection"]

FORMAT_VERSION = 1
MANIFEST_FILE = "collection.json"
_PARTIAL_FILE = "collection.partial"
# What may lie in a folder whose making was interrupted or is going on.
_OWN_FILES = {MANIFEST_FILE, _PARTIAL_FILE, LOCK_FILE, HOLDER_FILE}
_REMEDY = "restore it from a copy, or index anew into another folder (decisions.json can be copied there)"
_KINDS: dict[str, tuple[type, ...]] = {
    "extractor": (str,),
    "fingerprint": (str,),
    "weights": (str, NoneType),
    "whitening": (str, NoneType),
    "sampling_rate": (int, float),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The settings that all features of a collection have in common.

    Attributes:
        extractor: Name, as :func:`vidkin.features.open_extractor` takes it.
        fingerprint: Of the extractor with its settings and weights.
        weights: Absolute path of the network's weights, if a file was given.
        whitening: Absolute path of the whitening, if a file was given.
        sampling_rate: Frames per second of ordinary videos.
        measure: What similarity means to the extractor, see :func:`vidkin.similarity.open_scorer`.
        created: ISO 8601 time.
        vidkin_version: That made it.
        format_version: Of the layout on disk.
    """

    extractor: str
    fingerprint: str
    weights: str | None = None
    whitening: str | None = None
    sampling_rate: float = 1.0
    measure: str = "copies"
    created: str = ""
    vidkin_version: str = ""
    format_version: int = FORMAT_VERSION

    @classmethod
    def exists(cls, folder: Path) -> bool:
        """There is a collection in this folder."""
        return (folder / MANIFEST_FILE).is_file()

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """That of the collection in this folder.

        Raises:
            CollectionNotFoundError: There is none.
            CollectionError: It is damaged, or a newer vidkin made it.
        """
        path = folder / MANIFEST_FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            if _held_an_index(folder):
                raise CollectionDamagedError(f"{path} is missing; {_REMEDY}") from None
            raise CollectionNotFoundError(
                f"there is no index at {folder}; make one with `vidkin index FOLDER --index {folder}`"
            ) from None
        except ValueError as error:
            raise CollectionDamagedError(f"{path} is damaged ({error}); {_REMEDY}") from error
        version = found.get("format_version") if isinstance(found, dict) else None
        if not isinstance(version, int):
            raise CollectionDamagedError(f"{path} is damaged (no format version); {_REMEDY}")
        if version > FORMAT_VERSION:
            raise CollectionError(
                f"{folder} has format {version}, made by vidkin {found.get('vidkin_version', '?')}; "
                f"this vidkin reads formats up to {FORMAT_VERSION}: upgrade vidkin, or index anew elsewhere"
            )
        return cls._from_json(path, found)

    @classmethod
    def _from_json(cls, path: Path, found: dict[str, Any]) -> Manifest:
        known = {field.name for field in fields(cls)}
        missing = {"extractor", "fingerprint"} - set(found)
        if missing:
            raise CollectionDamagedError(f"{path} is damaged (no {', '.join(sorted(missing))}); {_REMEDY}")
        for name, kinds in _KINDS.items():
            value = found.get(name, "")
            if name in found and (not isinstance(value, kinds) or isinstance(value, bool)):
                raise CollectionDamagedError(f"{path} is damaged ({name} is {value!r}); {_REMEDY}")
        if not 0 < found.get("sampling_rate", 1.0) < math.inf:
            raise CollectionDamagedError(
                f"{path} is damaged (sampling_rate is {found['sampling_rate']}); {_REMEDY}"
            )
        if found.get("measure", "copies") not in ("copies", "kinds"):
            raise CollectionDamagedError(f"{path} is damaged (measure is {found['measure']!r}); {_REMEDY}")
        return cls(**{name: value for name, value in found.items() if name in known})

    def write(self, folder: Path) -> None:
        """Write it whole or not at all."""
        write_whole(folder / MANIFEST_FILE, json.dumps(asdict(self), indent=2).encode())

    def check(self, folder: Path, fingerprint: str) -> None:
        """:class:`CollectionMismatchError` unless this is the fingerprint that the collection was made with."""
        if fingerprint != self.fingerprint:
            raise CollectionMismatchError(
                f"{folder} was made with extractor {self.fingerprint}, this one is {fingerprint}: another extractor, "
                "or its weights or settings have changed since. Features of the two cannot be compared: open it with "
                "what made it (that is so when none is named), or index anew into another folder (needed, too, after "
                "an update of vidkin that changed its own features)"
            )


def create_collection(folder: Path, spec: WorkerSpec) -> None:
    """Make an empty collection, unless another process has just made it.

    Raises:
        CollectionError: The folder holds other things, or cannot be made.
        ExtractorError: The extractor cannot be opened.
    """
    from vidkin._version import __version__

    extractor = spec.open()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = sorted(set(os.listdir(folder)) - _OWN_FILES)
    except OSError as error:
        raise CollectionError(
            f"an index cannot be made at {folder}: {(error.strerror or str(error)).lower()}"
        ) from error
    if _held_an_index(folder):
        raise CollectionDamagedError(f"{folder / MANIFEST_FILE} is missing; {_REMEDY}")
    if strange:
        raise CollectionError(
            f"{folder} is no index and not empty (it holds {strange[0]!r}); name a new folder for the index"
        )
    with writer_lock(folder, wait=10.0):
        if not Manifest.exists(folder):
            Manifest(
                extractor=spec.extractor,
                fingerprint=extractor.fingerprint,
                weights=spec.weights,
                whitening=spec.whitening,
                sampling_rate=spec.base_rate,
                measure=extractor.scorer,
                created=datetime.now().astimezone().isoformat(timespec="seconds"),
                vidkin_version=__version__,
            ).write(folder)


def _held_an_index(folder: Path) -> bool:
    """There are tables here: an index whose manifest is gone. It is written before everything else."""
    return (folder / "videos.lance").is_dir()
