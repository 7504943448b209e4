"""Remove damaged parts of an index so that they can be rebuilt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vidkin._base.arguments import check_arguments
from vidkin._base.values import Result
from vidkin.errors import CollectionDamagedError, CollectionError
from vidkin.index.ingest.pruning import PruneGuard
from vidkin.index.ingest.update import RemovedPaths
from vidkin.index.query.calibration import Calibration
from vidkin.index.query.learned_scale import LearnedScale
from vidkin.index.storage.decisions import Decisions
from vidkin.index.storage.files import writing
from vidkin.index.storage.lists import SavedLists
from vidkin.index.storage.manifest import Manifest
from vidkin.index.storage.place import Place
from vidkin.index.storage.sound_files import SoundFiles, SoundTable
from vidkin.index.storage.stores import LastingStore, open_store


@dataclass(frozen=True, slots=True)
class DamagedPart(Result):
    """A part that was removed from an index.

    Attributes:
        part: Path of a video whose features were damaged, or of a file or folder of the index.
        cause: Description of the damage in one line.
    """

    part: str
    cause: str


@check_arguments
def repair(
    place: Place,
    *,
    wait: float = 0.0,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[DamagedPart, ...]:
    """Check a whole index and remove damaged parts.

    Windows are rebuilt immediately. Videos whose features were lost become stale, and the next :meth:`Index.add` of
    their files reads them again. User decisions are never changed.

    Args:
        place: Location of the index, from :func:`vidkin.index.open_place`.
        wait: Seconds to wait for another writer.
        on_progress: Callback that receives (videos read, total number of videos).

    Returns:
        The removed parts; empty if nothing is damaged.

    Raises:
        CollectionNotFoundError: There is no index.
        CollectionLockedError: Another process is writing.
        CollectionDamagedError: A part that cannot be rebuilt is damaged: the list of videos, or user data. Nothing is
            removed; the message says what to do.
    """
    manifest = Manifest.read(place)
    with place.exclusive(wait):
        Decisions.open(place)
        SavedLists.open(place)
        store = open_store(place, manifest)
        try:
            store.check_videos()
            return _repair_store(place, store, on_progress)
        finally:
            store.close()


def _repair_store(
    place: Place, store: LastingStore, on_progress: Callable[[int, int], None] | None
) -> tuple[DamagedPart, ...]:
    damaged = []
    rebuilt = (
        (Calibration.FILE, Calibration.read),
        (LearnedScale.FILE, LearnedScale.open),
    )
    for name, read in rebuilt:
        try:
            read(place)
        except CollectionDamagedError as error:
            with writing(place.uri):
                place.delete([name])
            damaged.append(DamagedPart(place.address(name), _cause(error)))
    damaged += [DamagedPart(path, cause.partition("; ")[0]) for path, cause in store.remove_damaged_windows().items()]
    readable = [record for record in store.videos() if record.status == "ok"]
    for done, record in enumerate(readable, start=1):
        cause = ""
        try:
            frames = len(store.read(record.id))
            if frames != record.frames:
                cause = f"it has features for {frames} frames instead of {record.frames}"
        except CollectionDamagedError as error:
            cause = _cause(error)
        if cause:
            store.discard_features([record.id])
            damaged.append(DamagedPart(record.path, cause))
        if on_progress is not None:
            on_progress(done, len(readable))
    paths = {record.content_hash: record.path for record in readable}
    for name, cause in SoundFiles(place).remove_damaged().items():
        damaged.append(DamagedPart(paths.get(name, place.address(name)), cause.partition("; ")[0]))
    store.recover()
    store.optimize()
    return tuple(damaged)


@check_arguments
def check_files(place: Place) -> None:
    """Check that the small files of an index outside its store are readable.

    Raises:
        CollectionDamagedError: One of the files exists but cannot be read.
    """
    readers = (
        Calibration.read,
        LearnedScale.open,
        Decisions.open,
        SavedLists.open,
        RemovedPaths.open,
        SoundTable.open,
        PruneGuard.read_devices,
    )
    for read in readers:
        read(place)


def _cause(error: CollectionError) -> str:
    """Return the cause without the advice to run a repair, because one is already running."""
    return str(error).partition("; ")[0]
