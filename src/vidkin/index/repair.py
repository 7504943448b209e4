"""Taking out of a collection what is damaged, so that it is made anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vidkin.errors import CollectionDamagedError, CollectionError
from vidkin.index.lock import writer_lock
from vidkin.index.manifest import Manifest
from vidkin.index.search.calibration import Calibration
from vidkin.index.search.common import CommonFrames, find_common
from vidkin.index.search.decisions import Decisions
from vidkin.index.storage.contract import VideoRecord
from vidkin.index.storage.files import writing
from vidkin.index.storage.lance import REMEDY_OF_VIDEOS, LanceStore, windows_address
from vidkin.index.storage.table import LanceTable, new_session

__all__ = ["DamagedPart", "repair"]


@dataclass(frozen=True, slots=True)
class DamagedPart:
    """What was taken out of a collection.

    Attributes:
        part: The path of a video whose features were damaged, or of a file or folder of the collection.
        cause: One line.
    """

    part: str
    cause: str


def repair(
    path: str | os.PathLike[str],
    *,
    wait: float = 0.0,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[DamagedPart, ...]:
    """Read all of a collection and take out what is damaged.

    Windows, and what is known of frames that many videos share, are made anew at once. Videos whose features are lost
    become broken ones, and are read again by the next :meth:`Index.add` of their files. What users said about pairs of
    videos is never touched.

    Args:
        path: The folder of the collection.
        wait: Seconds to wait for another writer.
        on_progress: Called with (videos read, videos in all).

    Raises:
        CollectionNotFoundError: There is no collection.
        CollectionLockedError: Another process is writing.
        CollectionDamagedError: What cannot be made anew is damaged: the list of videos, or what users said about
            pairs; the message says what to do. Nothing is taken out then.
    """
    folder = Path(path).expanduser().absolute()
    Manifest.read(folder)
    with writer_lock(folder, wait=wait):
        Decisions.open(folder)
        LanceTable(f"{folder}/videos.lance", session=new_session(), remedy=REMEDY_OF_VIDEOS).read_through()
        found = [*_small_files(folder), *_windows(folder)]
        store = LanceStore(folder)
        try:
            readable = [record for record in store.videos() if record.status == "ok"]
            for done, record in enumerate(readable, start=1):
                cause = _features(store, record)
                if cause is not None:
                    store.discard_features([record.id])
                    found.append(DamagedPart(record.path, cause))
                if on_progress is not None:
                    on_progress(done, len(readable))
            store.recover()
            store.optimise()
            if any(part.part == str(folder / CommonFrames.FILE) for part in found):
                readable = [record for record in store.videos() if record.status == "ok"]
                vectors = find_common(store, [record.id for record in readable])
                CommonFrames(vectors).save(folder)
        finally:
            store.close()
    return tuple(found)


def _small_files(folder: Path) -> list[DamagedPart]:
    found = []
    for name, read in (
        (Calibration.FILE, lambda: Calibration.open(folder, None)),
        (CommonFrames.FILE, lambda: CommonFrames.open(folder)),
    ):
        if not (folder / name).is_file():
            continue
        try:
            read()
        except CollectionDamagedError as error:
            with writing(folder):
                (folder / name).unlink()
            found.append(DamagedPart(str(folder / name), _cause(error)))
    return found


def _windows(folder: Path) -> list[DamagedPart]:
    """The table of windows, if it cannot be read from end to end. All of it can be made anew."""
    address = windows_address(folder)
    try:
        LanceTable(address, session=new_session()).read_through()
    except CollectionDamagedError as error:
        with writing(folder):
            shutil.rmtree(address)
        return [DamagedPart(address, _cause(error))]
    return []


def _features(store: LanceStore, record: VideoRecord) -> str | None:
    """What is wrong with the features of a video."""
    try:
        features = store.read(record.id)
    except CollectionDamagedError as error:
        return _cause(error)
    if len(features) != record.frames:
        return f"there are features of {len(features)} frames and not of {record.frames}"
    return None


def _cause(error: CollectionError) -> str:
    """Without the advice to do what is being done."""
    return str(error).partition("; ")[0]
