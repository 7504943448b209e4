"""Update an index: add files, remove files by name, and keep removed files from being added again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from vidkin._base.values import parse_json
from vidkin.errors import CollectionDamagedError, CollectionError
from vidkin.index.ingest.executor import Executor
from vidkin.index.ingest.pruning import Prune, PruneGuard
from vidkin.index.ingest.report import IngestInterrupted, IngestReport, OnProgress
from vidkin.index.ingest.scan import Scan, use_indexed_paths
from vidkin.index.ingest.session import ERRORS_FILE, ingest
from vidkin.index.storage.contract import VectorStore
from vidkin.index.storage.decisions import find_records
from vidkin.index.storage.files import NamedFolders, is_same_file, write_atomically
from vidkin.index.storage.manifest import MANIFEST_FILE, Manifest
from vidkin.index.storage.place import Place
from vidkin.index.storage.sound_files import SoundFiles
from vidkin.similarity import FrameFeatures


@dataclass(frozen=True, slots=True)
class RemovedPaths:
    """Files and folders removed by name, which are not added again until they are named again.

    Attributes:
        paths: Absolute paths.
    """

    FILE = "removed.json"

    paths: frozenset[str] = frozenset()
    _folded: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_folded", {path.casefold(): path for path in self.paths})

    @classmethod
    def open(cls, place: Place) -> RemovedPaths:
        """Load the removed paths of an index.

        Raises:
            CollectionDamagedError: The file exists but cannot be read.
        """
        content = place.read(cls.FILE)
        if content is None:
            return cls()
        try:
            names = parse_json(content.decode())["removed"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TypeError("'removed' must be a list of paths")
        except (ValueError, KeyError, TypeError) as error:
            raise CollectionDamagedError(
                f"{place.address(cls.FILE)} is damaged ({error}); delete it, but note that `vidkin index` then adds "
                "files again that were removed by name"
            ) from error
        return cls(frozenset(names))

    def save(self, place: Place) -> None:
        """Save the paths, atomically."""
        # JSON escapes non-ASCII characters, which preserves names that are not valid UTF-8.
        write_atomically(place, self.FILE, json.dumps({"removed": sorted(self.paths)}, indent=2).encode())

    def with_paths(self, paths: Iterable[str]) -> RemovedPaths:
        """Return a copy with these paths added."""
        return RemovedPaths(self.paths | frozenset(paths))

    def without(self, paths: Iterable[str]) -> RemovedPaths:
        """Return a copy without these paths, which were named again; removed paths below them stay removed."""
        return RemovedPaths(self.paths - frozenset(paths))

    def holds(self, path: str) -> bool:
        """Whether a file, or a folder that contains it, was removed."""
        while path not in self.paths:
            # Names that differ in case are the same file only on case-insensitive file systems.
            other = self._folded.get(path.casefold())
            if other is not None and is_same_file(path, other):
                return True
            parent = os.path.dirname(path)
            if parent == path:
                return False
            path = parent
        return True


def remove_records(place: Place, store: VectorStore, names: Iterable[str | os.PathLike[str]]) -> int:
    """Remove files and folders, and keep them from being added again; the caller must hold the write lock.

    Args:
        place, store: Location and store of the index.
        names: Files and folders.

    Returns:
        The number of records removed.

    Raises:
        NotIndexedError: A name is not in the index; nothing is removed.
    """
    store.recover()
    records: dict[int, str] = {}
    paths: set[str] = set()
    for name in names:
        named = find_records(store, name)
        records |= {record.id: record.path for record in named}
        path = os.path.abspath(os.path.expanduser(os.fspath(name)))
        inside = NamedFolders([path])
        # Save names as spelled in the index, because a given name may differ in case or Unicode normalization.
        # Removing a folder also keeps out files added to it later.
        paths |= {path if record.path == path else inside.holding(record.path) or record.path for record in named}
    RemovedPaths.open(place).with_paths(paths).save(place)
    contents = {record.content_hash for record in store.videos() if record.id in records}
    store.remove(records)
    SoundFiles(place).remove(contents - {record.content_hash for record in store.videos()} - {""})
    return len(records)


def drop_removed(scan: Scan, removed: RemovedPaths, known: Callable[[str], bool]) -> Scan:
    """Drop removed files from a scan, except files that were named or are already back in the index.

    Args:
        scan: The new scan.
        removed: Paths that are still removed, excluding those named in this scan.
        known: Function that returns whether a path is in the index.
    """
    named = NamedFolders(folder for folder in scan.folders if removed.holds(folder))
    left_out = {
        file.path
        for file in scan.files
        if removed.holds(file.path)
        and file.path not in scan.named
        and named.holding(file.path) is None
        and not known(file.path)
    }
    if not left_out:
        return scan
    reasons = ((path, "removed from the index; pass its path to add it again") for path in left_out)
    return replace(
        scan,
        files=tuple(file for file in scan.files if file.path not in left_out),
        skipped=tuple(sorted([*scan.skipped, *reasons])),
    )


def update_index(
    place: Place,
    manifest: Manifest,
    store: VectorStore,
    scan: Scan,
    executor: Executor,
    *,
    calibrate: Callable[[FrameFeatures], FrameFeatures],
    update_scale: Callable[[], None],
    prune: Prune,
    retry_broken: bool,
    on_progress: OnProgress | None,
) -> IngestReport:
    """Update an index with the files of a scan; the caller must hold the write lock.

    Files removed by name stay out of the index, unless they are named in this scan.

    Args:
        place, manifest, store: Location, manifest and store of the index.
        scan: Scan made with the rules of the manifest.
        executor: Extracts the features.
        calibrate, prune, retry_broken, on_progress: As for :func:`vidkin.index.ingest.session.ingest`.
        update_scale: Callback that updates the score scale of a trained comparator once all videos are saved.

    Raises:
        IngestInterrupted: Ctrl-C was pressed; contains the report so far.
        CollectionError: The index folder was deleted in the meantime.
    """
    store.recover()
    before = RemovedPaths.open(place)
    removed = before.without(scan.named)
    if removed != before:
        removed.save(place)
    sounds = SoundFiles(place)
    report = ingest(
        store,
        use_indexed_paths(
            drop_removed(scan, removed, lambda path: store.find(path) is not None),
            (record.path for record in store.videos()),
        ),
        executor,
        base_rate=manifest.sampling_rate,
        calibrate=calibrate,
        rules=manifest.rules,
        prune=prune,
        guard=PruneGuard(place, partial(_removed_by_plan, place)),
        retry_broken=retry_broken,
        on_progress=on_progress,
        errors_file=None if place.folder is None else place.folder / ERRORS_FILE,
        sounds=sounds if manifest.sound else None,
    )
    if place.folder is not None and not (place.folder / MANIFEST_FILE).is_file():
        raise CollectionError(
            f"{place.folder} was deleted or moved while videos were being added; delete what is left of it and add the "
            "videos again"
        )
    try:
        store.optimize()
        update_scale()
        if manifest.sound:
            sounds.update(record.content_hash for record in store.videos() if record.status == "ok")
    except KeyboardInterrupt:
        # All videos are saved; the interrupted steps only improve searches.
        raise IngestInterrupted(report) from None
    return report


def _removed_by_plan(place: Place) -> set[str]:
    """Paths of files that removal plans of this index have moved away."""
    from vidkin.index.duplicates.history import Removals

    removals = [] if place.folder is None else Removals(place).all()
    return {file.path for removal in removals for file in removal.files if file.fate == "removed"}
