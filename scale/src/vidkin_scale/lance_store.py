"""The Lance store: two tables and the files of features, in one folder or on object storage."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index.storage.contract import (
    Catalog,
    NearestWindows,
    WindowMatrix,
    check_entries,
    check_path_is_free,
    check_vectors,
)
from vidkin.index.storage.feature_files import FeatureFiles
from vidkin.index.storage.files import REMEDY, writing
from vidkin.index.storage.manifest import Manifest
from vidkin.index.storage.missing_parts import find_missing_parts, rebuild_parts
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import Entry, VideoRecord
from vidkin.index.storage.stores import StoreKind
from vidkin.similarity import FrameFeatures
from vidkin_scale.lance_nearest import WindowSearch, build_window_index
from vidkin_scale.lance_rows import (
    VIDEO_COLUMNS,
    WINDOW_COLUMNS,
    all_windows,
    record_rows,
    records_from_rows,
    video_schema,
    window_rows,
)
from vidkin_scale.lance_snapshot import Snapshot, read_snapshot, state_of_tables, write_snapshot
from vidkin_scale.lance_table import LanceTable, new_session

_Result = TypeVar("_Result")

# Number of commits after which small files are merged, because they slow down commits and reads.
_COMMITS_UNTIL_COMPACTION = 256

# Grace period for readers that started before a compaction; later they restart by themselves.
_KEEP_VERSIONS = timedelta(minutes=2)

_NEXT_ID = "vidkin.next_id"

# Number of ids skipped after a fence: a writer that lost its lock may still write files for them.
_IDS_TO_SKIP = 1000

VIDEOS_TABLE, WINDOWS_TABLE = TABLES = "videos.lance", "windows.lance"

# Maximum number of attempts of a reader while a busy writer keeps replacing files.
_MAX_READINGS = 10

# The list of videos cannot be rebuilt from anything else in the index.
REMEDY_OF_VIDEOS = (
    "restore it from a backup, or delete videos.lance, windows.lance and features there (not decisions.json) and run "
    "`vidkin index` to read all videos again"
)


class LanceStore:
    """A :class:`~vidkin.index.storage.contract.VectorStore` in a folder, on disk or on object storage.

    * ``videos.lance``: one row per video. Written last and removed first: a video without a row here does not exist.
    * ``windows.lance``: one row per window, searched exactly in memory while there are fewer than
      ``exact_below``, and by an approximate index (IVF with binary quantization, true distances for the
      best) beyond.
    * ``features``: one file per video.

    Each commit is atomic, so a killed writer leaves at worst features without a video, which
    :meth:`recover` removes. Readers keep their versions and are never blocked; for the same reason files of removed
    videos are only deleted by the next :meth:`recover`. A killed process loses nothing that was committed; a power cut
    may lose what the file system has not yet written. Reading a missing or damaged part raises
    :class:`CollectionDamagedError`, never returns an incomplete result; :meth:`recover` rebuilds windows from the
    features, and marks videos without features as stale.

    While the tables are unchanged since the last :meth:`optimize` or :meth:`remove`, reading needs only their snapshot
    (:mod:`vidkin_scale.lance_snapshot`); otherwise they are opened in the newest version.

    Args:
        place: Where the store is, from :func:`vidkin.index.open_place`.
        exact_below: Number of windows from which :meth:`optimize` builds the approximate index.
        keep_versions: How long superseded versions stay readable.
        parts: Number of stores among which the videos of the index are distributed. Each is asked for all requested
            nearest windows but has only a fraction of them, so with an approximate index it searches for somewhat more
            than that fraction.
    """

    def __init__(
        self,
        place: Place,
        *,
        exact_below: int = 50_000,
        keep_versions: timedelta = _KEEP_VERSIONS,
        parts: int = 1,
    ) -> None:
        self._place = place
        self._parts = parts
        self._features = FeatureFiles(self._place)
        self._exact_below = exact_below
        self._keep_versions = keep_versions
        self._lock = threading.RLock()
        self._commits = 0
        self._next_id: int | None = None
        self._search: WindowSearch | WindowMatrix | None = None
        self._tables: tuple[LanceTable, LanceTable] | None = None
        self._snapshot = read_snapshot(self._place, TABLES)
        if self._snapshot is None:
            self._open_tables()
        else:
            self._catalog = Catalog(self._snapshot.records)

    def refresh(self) -> bool:
        with self._lock:
            if self._snapshot is not None and self._snapshot.state == state_of_tables(self._place, TABLES):
                return False
            if self._tables is None:
                self._open_tables()
                return True
            before = self._versions()
            self._open_together()
            if self._versions() == before:
                return False
            self._load()
            return True

    def videos(self) -> list[VideoRecord]:
        with self._lock:
            return self._catalog.by_path()

    def select(self, wanted: Callable[[VideoRecord], bool]) -> list[VideoRecord]:
        with self._lock:
            return self._catalog.select(wanted)

    def count(self) -> int:
        return len(self._catalog)

    def get(self, video_id: int) -> VideoRecord:
        return self._catalog.get(video_id)

    def find(self, path: str) -> VideoRecord | None:
        with self._lock:
            return self._catalog.find(path)

    def append(
        self,
        record: VideoRecord,
        features: FrameFeatures | None = None,
        windows: NDArray[np.floating] | None = None,
    ) -> VideoRecord:
        return self.append_many([Entry(record, features, windows)])[0]

    def append_many(self, entries: Sequence[Entry]) -> list[VideoRecord]:
        check_entries(entries)
        if not entries:
            return []
        with self._lock:
            self._videos.check_present()
            first = self._first_free_id()
            if self._videos.dataset is None:
                # Create the table first: features without a list of videos would mean that the list was lost.
                self._videos.append(record_rows([]))
            records = [replace(entry.record, id=first + at) for at, entry in enumerate(entries)]
            described = [
                (record.id, entry.features, entry.windows)
                for record, entry in zip(records, entries, strict=True)
                if entry.features is not None and entry.windows is not None
            ]
            self._features.write_many([(video_id, features) for video_id, features, _ in described])
            if (rows := window_rows([(video_id, windows) for video_id, _, windows in described])) is not None:
                self._windows.append(rows)
            replaced = [self._catalog.ids[r.path] for r in records if r.path in self._catalog.ids]
            if replaced:
                self._videos.upsert(record_rows(records), key="path")
                self._forget(replaced)
            else:
                self._videos.append(record_rows(records))
            self._next_id = first + len(records)
            for record in records:
                self._catalog.put(record)
            self._note_commit()
        return records

    def update(self, records: Sequence[VideoRecord]) -> None:
        with self._lock:
            for record in records:
                self._catalog.get(record.id)
                check_path_is_free(record, self._catalog.ids)
            if not records:
                return
            self._videos.check_present()
            self._videos.upsert(record_rows(records), key="id")
            for record in records:
                self._catalog.put(record)
            self._note_commit()

    def read(self, video_id: int) -> FrameFeatures:
        return self.read_many([video_id])[0]

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        def read() -> list[FrameFeatures]:
            for video_id in video_ids:
                self._catalog.get_described(video_id, "features")
            return self._features.read_many(video_ids)

        return self._again_if_pruned(read)

    def read_windows(self, video_id: int) -> NDArray[np.float16]:
        return self.read_windows_many([video_id])[0]

    def read_windows_many(self, video_ids: Sequence[int]) -> list[NDArray[np.float16]]:
        return self._again_if_pruned(lambda: self._read_windows(video_ids))

    def nearest(self, vectors: NDArray[np.floating], limit: int) -> NearestWindows:
        queries = check_vectors(vectors, limit)
        return self._again_if_pruned(lambda: self._window_search().nearest(queries, limit))

    def window_count(self) -> int:
        with self._lock:
            return sum(record.windows for record in self._catalog)

    def remove(self, video_ids: Iterable[int]) -> None:
        with self._lock:
            present = [video_id for video_id in set(video_ids) if video_id in self._catalog]
            if not present:
                return
            if max(present) == max(self._catalog.by_id):
                # An id identifies one video forever, also in notes that users keep elsewhere.
                self._videos.note(_NEXT_ID, str(self._first_free_id()))
            self._videos.delete("id", present)
            self._forget(present)
            self._note_commit()
            # Often this is the last step, and without a snapshot readers would have to open the tables.
            self._write_snapshot()

    def recover(self) -> int:
        with self._lock:
            self.refresh()
            if self._place.needs_fence():
                self._fence()
            self._videos.add_columns(video_schema())
            self._features.remove_unfinished()
            self._next_id = None
            files, counts = self._features.sizes(), self._window_counts()
            orphans = (files.keys() | counts.keys()) - self._catalog.by_id.keys()
            if orphans:
                self._windows.delete("video_id", orphans)
                self._features.remove(orphans)
                self._note_commit()
            missing = find_missing_parts(self._catalog, files, counts)
            if missing:
                changed = rebuild_parts(missing, self._catalog.by_id, self._features, self._replace_windows)
                self._windows.delete("video_id", [record.id for record in changed])
                self.update(changed)
            return len(orphans)

    def missing(self) -> dict[int, str]:
        with self._lock:
            parts = find_missing_parts(self._catalog, self._features.sizes(), self._window_counts())
            return {part.video_id: part.cause for part in parts}

    def discard_features(self, video_ids: Iterable[int]) -> None:
        """Delete the features of videos, so that :meth:`recover` marks them as stale."""
        with self._lock:
            self._features.remove(video_ids)

    def check_videos(self) -> None:
        """Read the entire list of videos; raise :class:`CollectionDamagedError` if it is damaged."""
        LanceTable(self._place, VIDEOS_TABLE, session=new_session, remedy=REMEDY_OF_VIDEOS).read_through()

    def remove_damaged_windows(self) -> dict[str, str]:
        """Read all windows; if that fails, delete them, so that :meth:`recover` rebuilds them.

        Returns:
            Cause of each deletion, by deleted path.
        """
        address = self._place.address(WINDOWS_TABLE)
        with self._lock:
            try:
                LanceTable(self._place, WINDOWS_TABLE, session=new_session).read_through()
            except CollectionDamagedError as error:
                with writing(self._place.uri):
                    self._place.delete_folder(WINDOWS_TABLE)
                self._tables = self._search = self._snapshot = None
                return {address: str(error)}
            return {}

    def optimize(self) -> None:
        with self._lock:
            self._compact()
            build_window_index(self._windows, exact_below=self._exact_below, parts=self._parts)
            self._search = None
            self._write_snapshot()

    def close(self) -> None:
        with self._lock:
            if self._tables is not None:
                self._videos.dataset = self._windows.dataset = None
            self._snapshot = None
            self._catalog.clear()
            self._search = None

    @property
    def _videos(self) -> LanceTable:
        return self._open_tables()[0]

    @property
    def _windows(self) -> LanceTable:
        return self._open_tables()[1]

    def _open_tables(self) -> tuple[LanceTable, LanceTable]:
        """Return the tables, opening them in their current state if only the snapshot was used so far."""
        with self._lock:
            if self._tables is None:
                session = cache(new_session)
                self._tables = (
                    LanceTable(self._place, VIDEOS_TABLE, session=session, remedy=REMEDY_OF_VIDEOS),
                    LanceTable(self._place, WINDOWS_TABLE, session=session),
                )
                self._open_together()
                self._load()
            return self._tables

    def _write_snapshot(self) -> None:
        """Write a snapshot for readers, so that they need not open the tables."""
        before, tables = state_of_tables(self._place, TABLES), self._open_tables()
        if before is None or any(table.dataset is None or not table.is_newest() for table in tables):
            return
        known, windows = self._known_ids(), None
        if not WindowSearch(self._windows, known).is_indexed:
            windows = all_windows(self._windows.read(WINDOW_COLUMNS))
            if len(windows.vectors) != self.window_count() or not np.isin(windows.video_ids, known).all():
                return  # incomplete, for example after a killed writer
        if state_of_tables(self._place, TABLES) == before:
            self._snapshot = Snapshot(before, self._catalog.by_path(), windows)
            write_snapshot(self._place, self._snapshot)

    def _known_ids(self) -> NDArray[np.int64]:
        return np.sort(np.fromiter(self._catalog.by_id, np.int64, len(self._catalog)))

    def _fence(self) -> None:
        """Prevent changes by a writer that has lost its lock without knowing.

        Its commits fail from now on, and files it may still write or delete belong to unused ids.
        """
        self._videos.fence()
        self._windows.fence()
        self._next_id = None
        self._videos.note(_NEXT_ID, str(self._first_free_id() + _IDS_TO_SKIP))
        self._place.note_fence()

    def _versions(self) -> tuple[int, int]:
        return self._videos.version, self._windows.version

    def _open_together(self) -> None:
        """Move both tables to their newest versions, as far as possible to versions that belong together."""
        # A removal deletes the record first, then the windows: if no record changed while the other
        # table was opened, it holds everything that the records promise.
        for _ in range(5):
            self._videos.refresh()
            self._windows.refresh()
            if self._videos.is_newest():
                break
        if self._videos.version == 0 and (self._windows.version > 0 or self._features.any()):
            self._videos.refresh()  # A writer may have just started.
            if self._videos.version == 0:
                raise CollectionDamagedError(f"{self._videos.uri} is missing; {self._videos.remedy}")
            self._windows.refresh()

    def _load(self) -> None:
        rows = self._videos.read(list(VIDEO_COLUMNS))
        self._catalog = Catalog([] if rows is None else records_from_rows(rows))
        self._search = self._snapshot = None

    def _note_commit(self) -> None:
        self._search = self._snapshot = None
        self._commits += 1
        if self._commits % _COMMITS_UNTIL_COMPACTION == 0:
            self._compact()

    def _compact(self) -> None:
        self._videos.compact(keep=self._keep_versions)
        self._windows.compact(keep=self._keep_versions)
        self._search = None

    def _forget(self, video_ids: Sequence[int]) -> None:
        """Remove windows and cached data, but not files, of records no longer in the table of videos."""
        self._windows.delete("video_id", video_ids)
        self._catalog.drop(video_ids)

    def _first_free_id(self) -> int:
        if self._next_id is None:
            noted = int(self._videos.read_note(_NEXT_ID) or 1)
            used = self._features.sizes().keys() | self._window_counts().keys() | self._catalog.by_id.keys()
            self._next_id = max([noted, *(number + 1 for number in used)])
        return self._next_id

    def _replace_windows(self, rebuilt: Mapping[int, NDArray[np.floating]]) -> None:
        """Replace all windows of videos."""
        self._windows.delete("video_id", rebuilt)
        if (rows := window_rows(list(rebuilt.items()))) is not None:
            self._windows.append(rows)
        self.update([replace(self._catalog.get(video_id), windows=len(own)) for video_id, own in rebuilt.items()])

    def _window_counts(self) -> dict[int, int]:
        """Return the number of windows of each video with windows."""
        rows = self._windows.read(["video_id"])
        if rows is None:
            return {}
        ids, counts = np.unique(rows["video_id"].to_numpy(), return_counts=True)
        return dict(zip(ids.tolist(), counts.tolist(), strict=True))

    def _again_if_pruned(self, action: Callable[[], _Result]) -> _Result:
        """Run a read, and repeat it at the newest version if files of this version have been deleted."""
        for _ in range(_MAX_READINGS):
            try:
                return action()
            except CollectionDamagedError:
                # Nothing was written in the meantime, so the data is really missing.
                if not self.refresh():
                    raise
        return action()

    def _read_windows(self, video_ids: Sequence[int]) -> list[NDArray[np.float16]]:
        counts = [self._catalog.get_described(video_id, "windows").windows for video_id in video_ids]
        some = [video_id for video_id, count in zip(video_ids, counts, strict=True) if count]
        if not some:
            return [np.zeros((0, 0), np.float16) for _ in video_ids]
        windows = None if self._snapshot is None else self._snapshot.windows
        if windows is None:
            search = self._window_search()
            if isinstance(search, WindowSearch) and search.is_indexed:
                rows = search.rows_of(some, WINDOW_COLUMNS)
            else:
                wanted = f"video_id in ({', '.join(map(str, some))})"
                rows = self._windows.read(WINDOW_COLUMNS, filter=wanted)
            if rows is None:
                raise self._incomplete()
            windows = all_windows(rows)
        found = windows.of_videos(video_ids)
        if [len(each) for each in found] != counts:
            raise self._incomplete()
        return found

    def _window_search(self) -> WindowSearch | WindowMatrix:
        with self._lock:
            if self._snapshot is not None and self._snapshot.windows is not None:
                return self._snapshot.windows.matrix
            if self._search is None:
                # Cheap and sufficient: windows can lack a record, but a record never lacks its windows.
                if self._windows.row_count() < self.window_count():
                    raise self._incomplete()
                self._search = WindowSearch(self._windows, self._known_ids(), self._parts)
            return self._search

    def _incomplete(self) -> CollectionDamagedError:
        return CollectionDamagedError(
            f"{self._windows.uri} is damaged: it has {self._windows.row_count()} of the {self.window_count()} windows "
            f"of the videos; {REMEDY}"
        )


def _open_lance(place: Place, manifest: Manifest) -> LanceStore:
    return LanceStore(place)


def _lance_places(place: Place, address: str | None) -> list[Place]:
    if address is not None:
        raise InvalidArgumentError(f"the store lance has no address, got {address!r}")
    return [place]


LANCE = StoreKind(open=_open_lance, places=_lance_places)
"""The kind of store for indexes on object storage, with tables that Lance and LanceDB can read."""
