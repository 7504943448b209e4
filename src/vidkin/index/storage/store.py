"""The disk store: the video table, windows and feature files of an index, in one folder."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vidkin._base import disk
from vidkin._base.arguments import check_constructor
from vidkin.errors import CollectionDamagedError, IndexClosedError, InvalidArgumentError
from vidkin.index.storage.contract import (
    Catalog,
    NearestWindows,
    check_entries,
    check_path_is_free,
    check_vectors,
)
from vidkin.index.storage.feature_files import FeatureFiles
from vidkin.index.storage.files import writing
from vidkin.index.storage.missing_parts import find_missing_parts, rebuild_parts
from vidkin.index.storage.opening import folder_of
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import (
    Entry,
    VideoRecord,
)
from vidkin.index.storage.video_table import REMEDY_OF_VIDEOS, VIDEOS_FILE, StoredVideo, VideoTable, WindowState
from vidkin.index.storage.window_files import WindowFiles
from vidkin.index.storage.window_index import WindowIndex
from vidkin.index.storage.windows import StoredWindows
from vidkin.similarity import FrameFeatures

_Result = TypeVar("_Result")

# Windows are copied to new files once more than this fraction and this number of rows belong to removed videos.
_MAX_DEAD_RATIO, _MAX_DEAD_ROWS = 0.25, 1 << 14
# Maximum number of attempts of a reader while a busy writer keeps replacing files.
_MAX_ATTEMPTS = 10

_WINDOW_FILE = re.compile(r"windows-(\d{1,9})\.(vectors|index)")


@check_constructor
class DiskStore:
    """A :class:`~vidkin.index.storage.contract.VectorStore` in a local folder.

    * ``videos.sqlite``: one row per video (:mod:`vidkin.index.storage.video_table`), written last and removed first; a
      video without a row does not exist.
    * ``windows-N.vectors`` (:mod:`vidkin.index.storage.window_files`). Fewer than ``exact_below`` windows are compared
      exactly in memory; otherwise, ``windows-N.index`` (:mod:`vidkin.index.storage.window_index`) provides candidates,
      which are then compared exactly.
    * ``features``: one file per video.

    Features and windows are on disk before the row that refers to them is committed, so a crash leaves at worst some
    without a row: :meth:`recover` removes such files, and window rows are overwritten, or dropped from the next
    generation. Readers hold all records in memory and are never blocked; files of removed videos and earlier
    generations are only deleted by the next :meth:`recover`. Reading a missing or damaged part raises
    :class:`CollectionDamagedError` and never returns an incomplete result; :meth:`recover` rebuilds windows from
    features, and marks videos without features as stale.

    Args:
        place: Location of the store, from :func:`vidkin.index.open_place`; must be a local folder.
        exact_below: :meth:`optimize` builds the approximate index if there are at least this many windows.

    Raises:
        CollectionDamagedError: The video table is missing or damaged.
        CollectionError: The place is not a local folder.
    """

    def __init__(self, place: Place, *, exact_below: int = 50_000) -> None:
        self._folder = folder_of(place)
        self._table = VideoTable(self._folder / VIDEOS_FILE)
        self._features = FeatureFiles(place)
        self._exact_below = exact_below
        self._lock = threading.RLock()
        self._is_closed = False
        self._version: tuple[int, int] | None = None
        self._found: StoredWindows | None = None
        self._load()

    def refresh(self) -> bool:
        with self._lock:
            self._check_open()
            if self._table.version() == self._version:
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
            if self._version is None:
                self._commit([], [])  # create the table first: features without it would mean that it was lost
            self._table.check_present()
            first = self._table.first_free_id()
            records = [replace(entry.record, id=first + at) for at, entry in enumerate(entries)]
            described = [
                (record, entry.features, entry.windows)
                for record, entry in zip(records, entries, strict=True)
                if entry.features is not None and entry.windows is not None
            ]
            self._features.write_many([(record.id, features) for record, features, _ in described])
            placed = self._write_windows([(record, windows) for record, _, windows in described])
            videos = [placed.get(record.id, StoredVideo(record)) for record in records]
            replaced = [self._catalog.ids[r.path] for r in records if r.path in self._catalog.ids]
            self._commit(replaced, videos)
        return [video.record for video in videos]

    def update(self, records: Sequence[VideoRecord]) -> None:
        with self._lock:
            for record in records:
                self._catalog.get(record.id)
                check_path_is_free(record, self._catalog.ids)
            if records:
                self._table.check_present()
                self._commit([], [replace(self._videos[record.id], record=record) for record in records])

    def read(self, video_id: int) -> FrameFeatures:
        return self.read_many([video_id])[0]

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        def read() -> list[FrameFeatures]:
            for video_id in video_ids:
                self._catalog.get_described(video_id, "features")
            return self._features.read_many(video_ids)

        return self._retry_if_outdated(read)

    def read_windows(self, video_id: int) -> NDArray[np.float16]:
        return self.read_windows_many([video_id])[0]

    def read_windows_many(self, video_ids: Sequence[int]) -> list[NDArray[np.float16]]:
        def read() -> list[NDArray[np.float16]]:
            with self._lock:
                for video_id in video_ids:
                    self._catalog.get_described(video_id, "windows")
                return self._windows.read(video_ids)

        return self._retry_if_outdated(read)

    def nearest(self, vectors: NDArray[np.floating], limit: int) -> NearestWindows:
        queries = check_vectors(vectors, limit)
        return self._retry_if_outdated(lambda: self._windows.nearest(queries, limit))

    def window_count(self) -> int:
        return len(self._windows)

    def remove(self, video_ids: Iterable[int]) -> None:
        with self._lock:
            present = [video_id for video_id in set(video_ids) if video_id in self._catalog]
            if present:
                self._commit(present, [])

    def recover(self) -> int:
        with self._lock:
            self.refresh()
            self._features.remove_unfinished()
            self._delete_other_generations()
            files = self._features.sizes()
            orphans = files.keys() - self._catalog.by_id.keys()
            self._features.remove(orphans)
            missing = find_missing_parts(self._catalog, files, self._windows.counts())
            if missing:
                self.update(rebuild_parts(missing, self._catalog.by_id, self._features, self._replace_windows))
            return len(orphans)

    def missing(self) -> dict[int, str]:
        with self._lock:
            parts = find_missing_parts(self._catalog, self._features.sizes(), self._windows.counts())
            return {part.video_id: part.cause for part in parts}

    def discard_features(self, video_ids: Iterable[int]) -> None:
        """Delete the features of videos, so that :meth:`recover` marks the videos as stale."""
        with self._lock:
            self._features.remove(video_ids)

    def check_videos(self) -> None:
        """Check the whole video table.

        Raises:
            CollectionDamagedError: The table is damaged.
        """
        with self._lock:
            self._table.check()
            self._load()

    def remove_damaged_windows(self) -> dict[str, str]:
        """Check all windows; if any are damaged, delete their files, so that :meth:`recover` rebuilds them.

        Returns:
            The cause, keyed by the path of the deleted file.
        """
        with self._lock:
            windows = self._windows
            try:
                windows.read(run.video for run in windows.runs)
                windows.open_index()
            except CollectionDamagedError as error:
                windows.files.delete()
                with suppress(FileNotFoundError):
                    disk.unlink(windows.index_path)
                self._found = None
                return {str(windows.files.vector_path): str(error)}
            return {}

    def optimize(self) -> None:
        with self._lock:
            dead = self._state.rows - len(self._windows)
            if dead > max(_MAX_DEAD_ROWS, _MAX_DEAD_RATIO * self._state.rows):
                self._copy_windows()
            self._update_index()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._table.close()
            self._version = None
            self._set(WindowState(), ())

    def _check_open(self) -> None:
        if self._is_closed:
            raise IndexClosedError(f"the index {self._folder} was closed; open it again")

    def _load(self) -> None:
        """Read the current video table."""
        version = self._table.version()
        state, videos = self._table.read()
        if version is None and (self._features.any() or any(self._window_files())):
            raise CollectionDamagedError(f"{self._table.path} is missing; {REMEDY_OF_VIDEOS}")
        self._version = version
        self._set(state, videos)

    def _set(self, state: WindowState, videos: Iterable[StoredVideo]) -> None:
        self._state = state
        self._videos = {video.record.id: video for video in videos}
        self._catalog = Catalog(video.record for video in self._videos.values())
        self._found = None

    @property
    def _windows(self) -> StoredWindows:
        with self._lock:
            self._check_open()
            if self._found is None:
                self._found = StoredWindows(self._folder, self._state, self._videos.values())
            return self._found

    def _commit(self, removed: Iterable[int], changed: Sequence[StoredVideo], state: WindowState | None = None) -> None:
        """Change the video table, on disk and in memory."""
        self._check_open()
        removed = list(removed)
        self._table.commit(removed, changed, state or self._state)
        self._state, self._version, self._found = state or self._state, self._table.version(), None
        self._catalog.drop(removed)
        for video_id in removed:
            del self._videos[video_id]
        for video in changed:
            self._catalog.put(video.record)
            self._videos[video.record.id] = video

    def _write_windows(self, windows: Sequence[tuple[VideoRecord, NDArray[np.floating]]]) -> dict[int, StoredVideo]:
        """Write windows after all existing rows; the next commit records that the rows are in use.

        Returns:
            The videos that have windows, with the position of these, keyed by id.
        """
        filled = [(record, own) for record, own in windows if len(own)]
        dimensions = {own.shape[1] for _, own in filled} | {self._state.dimension} - {0}
        if len(dimensions) > 1:
            raise InvalidArgumentError(f"all windows in a store must have the same dimension, got {sorted(dimensions)}")
        placed, first = {}, self._state.rows
        checksums = self._windows.files.write(first, [own for _, own in filled])
        for (record, own), checksum in zip(filled, checksums, strict=True):
            placed[record.id] = StoredVideo(replace(record, windows=len(own)), first, checksum)
            first += len(own)
        self._state = replace(self._state, rows=first, dimension=max(dimensions, default=0))
        return placed

    def _replace_windows(self, rebuilt: Mapping[int, NDArray[np.floating]]) -> None:
        """Save rebuilt windows of videos whose windows were lost."""
        windows = [(self._catalog.get(number), own) for number, own in rebuilt.items()]
        placed = self._write_windows(windows)
        videos = [placed.get(record.id, StoredVideo(replace(record, windows=0))) for record, _ in windows]
        self._commit([], videos)

    def _copy_windows(self) -> None:
        """Copy the windows to the files of a new generation, without the rows of removed videos."""
        windows, state = self._windows, self._state
        generation = max([state.generation, *(number for number, _ in self._window_files())]) + 1
        windows.files.copy_rows(windows.runs, state.dimension, WindowFiles(self._folder, generation))
        moved, first = [], 0
        for run in windows.runs:
            moved.append(replace(self._videos[run.video], first_row=first))
            first += run.length
        self._commit([], moved, WindowState(generation, state.dimension, first))

    def _update_index(self) -> None:
        """Build or update the approximate index, if there are enough windows."""
        windows, rows = self._windows, self._state.rows
        if len(windows) < self._exact_below:
            return
        try:
            index = windows.open_index()
        except CollectionDamagedError:
            index = None  # rebuild it from the vectors
        if index is None or index.is_outgrown(rows):
            index = WindowIndex.build(windows.vectors(0))
        elif index.rows < rows:
            index.add(windows.vectors(index.rows))
        else:
            return
        index.save(windows.index_path)
        self._found = None

    def _window_files(self) -> list[tuple[int, Path]]:
        """Window files with the number of their generation."""
        found = ((_WINDOW_FILE.fullmatch(path.name), path) for path in self._folder.glob("windows-*"))
        return [(int(name[1]), path) for name, path in found if name is not None]

    def _delete_other_generations(self) -> None:
        with writing(self._folder):
            for generation, path in self._window_files():
                if generation != self._state.generation:
                    with suppress(FileNotFoundError):
                        disk.unlink(path)

    def _retry_if_outdated(self, action: Callable[[], _Result]) -> _Result:
        """Run a read, and repeat it with the latest video table if files were replaced in the meantime."""
        for _ in range(_MAX_ATTEMPTS):
            try:
                return action()
            except CollectionDamagedError:
                # If nothing was written in the meantime, the data is actually missing.
                if not self.refresh():
                    raise
        return action()
