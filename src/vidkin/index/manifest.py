"""What an index was made with, in one small file."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import Any

from vidkin._base.names import parse_name
from vidkin._version import __version__
from vidkin.errors import (
    CollectionDamagedError,
    CollectionError,
    CollectionMismatchError,
    CollectionNotFoundError,
)
from vidkin.index.ingest.files.rules import FolderRules
from vidkin.index.lock import HOLDER_FILE, LOCK_FILE, writer_lock
from vidkin.index.storage.files import write_whole
from vidkin.index.writer_queue import QUEUE_FOLDER
from vidkin.similarity import available_scorers, finds_segments

__all__ = ["FORMAT_VERSION", "MANIFEST_FILE", "Manifest", "create_manifest"]

FORMAT_VERSION = 1
MANIFEST_FILE = "collection.json"
# What may lie in a folder while an index is made there, or where that was interrupted.
_OWN_FILES = {MANIFEST_FILE, LOCK_FILE, HOLDER_FILE, QUEUE_FOLDER, "collection.partial", "config.toml"}
_REMEDY = "restore it from a copy, or make a new index in another folder (decisions.json can be copied there)"
_TYPES: dict[str, tuple[type, ...]] = {
    "extractor": (str,),
    "fingerprint": (str,),
    "weights": (str, NoneType),
    "whitening": (str, NoneType),
    "sampling_rate": (int, float),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The settings that all features of an index have in common.

    Attributes:
        extractor: Name, as :func:`vidkin.features.open_extractor` takes it.
        fingerprint: Of the extractor with its settings and weights.
        weights: Absolute path of the network's weights, if a file was named.
        whitening: Absolute path of the whitening, if a file was named.
        sampling_rate: Frames per second of ordinary videos.
        measure: Name of the scorer that the features are made for, see :func:`vidkin.similarity.open_scorer`.
        exclude, follow_links, images: What is taken of folders, see
            :class:`vidkin.index.FolderRules`.
        reviewed: Scores are those of the measure that ``vidkin train review`` stored in the folder.
        created: ISO 8601 time.
        vidkin_version: Of the program that made it.
        format_version: Of the layout on disk.
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
    reviewed: bool = False
    created: str = ""
    vidkin_version: str = ""
    format_version: int = FORMAT_VERSION

    @classmethod
    def exists(cls, folder: Path) -> bool:
        """There is an index in this folder."""
        return (folder / MANIFEST_FILE).is_file()

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """That of the index in this folder.

        Raises:
            CollectionNotFoundError: There is no index.
            CollectionError: It is damaged, or a newer vidkin made it.
        """
        path = folder / MANIFEST_FILE
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            _check_not_lost(folder)
            raise CollectionNotFoundError(
                f"there is no index at {folder}; make one with `vidkin index FOLDER --index {folder}`, in Python "
                "Index.open(..., create=True)"
            ) from None
        except (ValueError, RecursionError) as error:
            raise CollectionDamagedError(f"{path} is damaged ({error}); {_REMEDY}") from error
        version = values.get("format_version") if isinstance(values, dict) else None
        if not isinstance(version, int):
            raise CollectionDamagedError(f"{path} is damaged (no format version); {_REMEDY}")
        if version > FORMAT_VERSION:
            raise CollectionError(
                f"{folder} has format {version}, made by vidkin {values.get('vidkin_version', '?')}; "
                f"this vidkin reads formats up to {FORMAT_VERSION}: upgrade vidkin, or make a new index in another "
                "folder"
            )
        return cls._from_json(path, values)

    @classmethod
    def _from_json(cls, path: Path, values: dict[str, Any]) -> Manifest:
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
        for name in ("follow_links", "images", "reviewed"):
            if not isinstance(values.get(name, False), bool):
                problem = f"{name} is {values[name]!r}"
        if parse_name(str(values.get("measure", "copies"))).path not in available_scorers():
            problem = f"measure is {values['measure']!r}"
        if problem is not None:
            raise CollectionDamagedError(f"{path} is damaged ({problem}); {_REMEDY}")
        known = {field.name for field in fields(cls)}
        return cls(
            **{name: value for name, value in values.items() if name in known} | {"exclude": tuple(exclude)}
        )

    @property
    def rules(self) -> FolderRules:
        """What is taken of folders."""
        return FolderRules(self.exclude, self.follow_links, self.images)

    @property
    def scorer_name(self) -> str:
        """``copies``, ``kinds`` or ``learned``: the scorer without its constants."""
        return parse_name(self.measure).path

    @property
    def has_segments(self) -> bool:
        """Whether matches tell which segments match; otherwise scores only order videos, on a scale of the model."""
        return finds_segments(self.measure)

    def with_rules(self, folder: Path, rules: FolderRules) -> Manifest:
        """The manifest that remembers these rules, written if they are new; the caller holds the writer's lock."""
        if rules == self.rules:
            return self
        changed = replace(self, **asdict(rules))
        changed.write(folder)
        return changed

    def write(self, folder: Path) -> None:
        """Write it whole or not at all."""
        write_whole(folder / MANIFEST_FILE, json.dumps(asdict(self), indent=2).encode())

    def check(self, folder: Path, fingerprint: str) -> None:
        """:class:`CollectionMismatchError` unless the index was made with this fingerprint."""
        if fingerprint != self.fingerprint:
            raise CollectionMismatchError(
                f"{folder} was made with extractor {self.fingerprint}, got {fingerprint}: another extractor, or one "
                "whose weights or settings have changed. Their features cannot be compared: name no extractor, to open "
                "the index with its own, or make a new index in another folder (also after an update of vidkin that "
                "changed its features)"
            )


def create_manifest(
    folder: Path,
    *,
    extractor: str,
    fingerprint: str,
    measure: str,
    sampling_rate: float,
    weights: str | None = None,
    whitening: str | None = None,
) -> None:
    """Make an empty index in a folder, unless another process has just made one there.

    Args:
        folder: New or empty.
        extractor, fingerprint, measure, sampling_rate, weights, whitening: As in :class:`Manifest`.

    Raises:
        CollectionError: The folder holds other files, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = sorted(set(os.listdir(folder)) - _OWN_FILES)
    except OSError as error:
        raise CollectionError(
            f"{folder}: an index cannot be made there ({(error.strerror or str(error)).lower()})"
        ) from error
    _check_not_lost(folder)
    if foreign:
        raise CollectionError(
            f"{folder} is not an index and is not empty (it holds {foreign[0]!r}); choose another folder"
        )
    with writer_lock(folder, wait=10.0):
        if not Manifest.exists(folder):
            Manifest(
                extractor=extractor,
                fingerprint=fingerprint,
                weights=weights,
                whitening=whitening,
                sampling_rate=sampling_rate,
                measure=measure,
                created=datetime.now().astimezone().isoformat(timespec="seconds"),
                vidkin_version=__version__,
            ).write(folder)


def _check_not_lost(folder: Path) -> None:
    """:class:`CollectionDamagedError` if there are tables: the manifest, which is written first, was lost."""
    if (folder / "videos.lance").is_dir():
        raise CollectionDamagedError(f"{folder / MANIFEST_FILE} is missing; {_REMEDY}")
