"""One Lance table that may not exist yet (commits, compaction, pruning), the rows of records and windows, and
rebuilding missing parts."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import CollectionDamagedError, CollectionError
from vidkin.index.storage.contract import WindowMatrix
from vidkin.index.storage.feature_files import FeatureFiles
from vidkin.index.storage.files import CONFLICT, REMEDY, reading, writing
from vidkin.index.storage.place import Place
from vidkin.index.storage.records import VideoRecord, WindowVectors, window_vectors
from vidkin.index.storage.snapshot import SnapshotWindows

if TYPE_CHECKING:
    import pyarrow as pa

# Lance warns on standard error that it will drop these numbers one day; we do not use them.
os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")

# It also prints warnings about errors that it raises anyway.
os.environ.setdefault("LANCE_LOG", "error")

# Longer lists of ids are split: a filter is parsed as an expression.
_IDS_A_FILTER = 1000

_INDEX_CACHE = 512 << 20

_METADATA_CACHE = 64 << 20

# Compaction merges files until they have so many rows, and holds so many in memory at a time.
_ROWS_A_FILE = 100_000

_ROWS_A_BATCH = 8192


def new_session() -> Any:
    """Caches of bounded size; by default Lance keeps up to 7 GiB, which grows with every file written."""
    import lance

    # Public in lance, but not in its type hints.
    return lance.Session(  # type: ignore[attr-defined]
        index_cache_size_bytes=_INDEX_CACHE, metadata_cache_size_bytes=_METADATA_CACHE
    )


class LanceTable:
    """A table in a folder or on object storage.

    Reading happens at one version, moved by :meth:`refresh` and by writes through this object. A commit is one rename,
    or one conditional write: it is complete or does not exist, and readers of older versions are not disturbed.
    Unreadable data raises :class:`CollectionDamagedError`, a failed write :class:`CollectionError`.

    Args:
        place: Place of the store.
        name: Name of the table's folder, which the first append creates.
        session: Makes the session from :func:`new_session`, shared by all tables of a store, when a table is opened.
        remedy: Advice to the user if the table is damaged.
    """

    def __init__(self, place: Place, name: str, *, session: Callable[[], Any], remedy: str = REMEDY) -> None:
        self.place = place
        self.name = name
        self.uri = place.address(name)
        self.session = session
        self.remedy = remedy
        self.dataset: Any = None
        self.refresh()

    @property
    def version(self) -> int:
        """Number of the version being read; 0 if there is no table."""
        return 0 if self.dataset is None else int(self.dataset.version)

    def reading(self) -> AbstractContextManager[None]:
        """Names what is wrong with the table in errors of Lance that reads it."""
        return reading(self.uri, self.remedy, self.place.explain)

    def writing(self) -> AbstractContextManager[None]:
        """Names what is wrong with the table in errors of Lance that writes it."""
        return writing(self.uri, self.remedy, self.place.explain)

    def is_newest(self) -> bool:
        """Whether the version being read is the newest."""
        with self.reading():
            return self.dataset is None or bool(self.dataset.latest_version == self.dataset.version)

    def refresh(self) -> None:
        """Move to the newest version. Results of earlier reads stay valid."""
        with self.reading():
            if self.dataset is not None and self.is_newest():
                return
            if self.dataset is None and self.place.folder is not None and not self.place.has_folder(self.name):
                return  # Lance takes longer to load than to say so.
            try:
                self.dataset = self._open()
            except ValueError as error:
                if self.dataset is not None or "not found" not in str(error).lower():
                    raise
                return
        # A writer that has lost its right must not see versions after the fence, or it could write on top of them.
        self.place.check_writer(ask=True)

    def read(self, columns: Sequence[str], **options: Any) -> pa.Table | None:
        """Read these columns of all rows, in order of their addition; None if there is no table.

        Args:
            columns: Names of the columns.
            options: Additional arguments of ``lance.LanceDataset.to_table``, such as ``filter``.

        Raises:
            CollectionDamagedError: The table cannot be read, or lacks one of the columns.
        """
        with self.reading():
            return None if self.dataset is None else self.dataset.to_table(columns=list(columns), **options)

    def check_present(self) -> None:
        """:class:`CollectionError` if the folder of the table that was opened is gone."""
        if self.dataset is not None and not self.place.has_folder(self.name):
            raise CollectionError(
                f"{self.place.uri} was deleted while it was being written to; run the same command again to make a new "
                "index"
            )

    def columns(self) -> set[str]:
        """Names of the columns; none if there is no table."""
        with self.reading():
            return set() if self.dataset is None else set(self.dataset.schema.names)

    def add_columns(self, schema: pa.Schema) -> None:
        """Commit the columns of this schema that the table lacks, empty; does nothing if there is no table."""
        missing = [] if self.dataset is None else [field for field in schema if field.name not in self.columns()]
        if missing:
            import pyarrow as pa

            with self.writing():
                self.dataset.add_columns(pa.schema(missing))
            self.refresh()

    def read_through(self) -> None:
        """Read everything once and keep nothing; :class:`CollectionDamagedError` if something cannot be read."""
        with self.reading():
            if self.dataset is not None:
                for _ in self.dataset.to_batches(batch_size=_ROWS_A_BATCH):
                    pass

    def row_count(self) -> int:
        """Number of rows at this version; 0 if there is no table."""
        with self.reading():
            return 0 if self.dataset is None else int(self.dataset.count_rows())

    def append(self, rows: pa.Table) -> None:
        """Commit more rows; the first makes the table."""
        import lance

        with self.writing():
            if self.dataset is None:
                lance.write_dataset(rows, self.uri, mode="create", storage_options=self._options())
                self.dataset = self._open()
            else:
                self.dataset = lance.write_dataset(rows, self.dataset, mode="append")

    def upsert(self, rows: pa.Table, *, key: str) -> None:
        """Commit rows in one step; each replaces the row with the same key, if any."""
        if self.dataset is None:
            self.append(rows)
            return
        with self.writing():
            self.dataset.merge_insert(key).when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def delete(self, column: str, ids: Iterable[int]) -> None:
        """Commit the removal of rows whose column has one of these values."""
        if self.dataset is None:
            return
        values = sorted(set(ids))
        for start in range(0, len(values), _IDS_A_FILTER):
            listed = ", ".join(str(number) for number in values[start : start + _IDS_A_FILTER])
            with self.writing():
                self.dataset.delete(f"{column} in ({listed})")

    def note(self, key: str, value: str) -> None:
        """Commit a note that stays with the table; does nothing if there is no table."""
        if self.dataset is not None:
            # The one commit that a fence lets pass.
            self.place.check_writer(ask=True)
            with self.writing():
                self.dataset.update_config({key: value})

    def noted(self, key: str) -> str | None:
        """The note stored under this key, or None."""
        with self.reading():
            return None if self.dataset is None else self.dataset.config().get(key)

    def fence(self) -> None:
        """Commit the current version once more, so that commits based on an earlier one fail.

        Lance merges most commits that are made at the same time, but none with this kind.
        """
        import lance

        if self.dataset is None:
            return
        version = self.version

        @contextmanager
        def is_next(attempted: int) -> Iterator[None]:
            # Based on a later version, this would undo what others have committed meanwhile.
            if attempted != version + 1:
                raise OSError(f"{CONFLICT}: version {attempted - 1} was written meanwhile")
            self.place.check_writer(ask=True)
            yield

        with self.writing():
            lance.LanceDataset.commit(
                self.dataset, lance.LanceOperation.Restore(version), read_version=version, commit_lock=is_next
            )
        self.refresh()

    def compact(self, *, keep: timedelta) -> None:
        """Merge small files and delete versions older than ``keep`` with all that only they use.

        Only the sole writer may call this. If its lock allows, this also deletes files of commits that never happened.
        """
        if self.dataset is None:
            return
        with self.writing():
            self.dataset.optimize.compact_files(
                target_rows_per_fragment=_ROWS_A_FILE, batch_size=_ROWS_A_BATCH, num_threads=1
            )
            self.dataset.cleanup_old_versions(
                older_than=keep,
                # Otherwise only those of commits that began at least a week ago.
                delete_unverified=self.place.lock_ends_writing,
                error_if_tagged_old_versions=False,
            )
        self.refresh()

    def _open(self) -> Any:
        import lance

        return lance.dataset(self.uri, session=self.session(), storage_options=self._options())

    def _options(self) -> dict[str, str] | None:
        return None if self.place.storage_options is None else dict(self.place.storage_options)


_logger = logging.getLogger(__name__)

# Of a frame at least one value, its time, its information and its baseline; and of a file its header.
_LEAST_BYTES_A_FRAME = 2 + 8 + 4 + 4

_LEAST_HEADER = 8

_VIDEOS_A_COMMIT = 256


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A missing part of one video.

    Attributes:
        video_id: Id of the video.
        part: Its "features"; only its "windows", which can be rebuilt from them; or "both" of a stale video, which is
            known to have none until its file is read again.
        cause: One line.
    """

    video_id: int
    part: Literal["features", "windows", "both"]
    cause: str


def find_missing_parts(
    records: Iterable[VideoRecord], files: Mapping[int, int], windows: Mapping[int, int]
) -> list[MissingPart]:
    """Find missing parts, as far as sizes tell without reading the features.

    Args:
        records: Records of all videos.
        files: Size in bytes of the feature file of each video that has one.
        windows: Number of windows in the table for each video that has any.
    """
    missing = []
    for record in records:
        size, count = files.get(record.id), windows.get(record.id, 0)
        if record.needs_reindex:
            missing.append(MissingPart(record.id, "both", record.cause))
        elif record.status == "broken":
            continue
        elif size is None:
            missing.append(MissingPart(record.id, "features", "its features are missing"))
        elif size < _LEAST_HEADER + record.frames * _LEAST_BYTES_A_FRAME:
            missing.append(MissingPart(record.id, "features", f"its features are cut off at {size} bytes"))
        elif count != record.windows:
            cause = f"it has {count} of its {record.windows} windows"
            missing.append(MissingPart(record.id, "windows", cause))
    return missing


def rebuild_parts(
    missing: Sequence[MissingPart],
    records: Mapping[int, VideoRecord],
    features: FeatureFiles,
    windows: LanceTable,
    as_stored: Callable[[WindowVectors], WindowVectors],
) -> list[VideoRecord]:
    """Rebuild windows, as they are stored, and remove the remains of videos whose features are lost.

    Returns:
        The records to rewrite.
    """
    lost = {part.video_id: part.cause for part in missing if part.part == "features"}
    without_windows = [part.video_id for part in missing if part.part == "windows"]
    changed: list[VideoRecord] = []
    for start in range(0, len(without_windows), _VIDEOS_A_COMMIT):
        rebuilt: list[tuple[int, WindowVectors]] = []
        for video_id in without_windows[start : start + _VIDEOS_A_COMMIT]:
            try:
                rebuilt.append((video_id, as_stored(window_vectors(features.read(video_id)))))
            except CollectionDamagedError:
                lost[video_id] = "its features are damaged"
        windows.delete("video_id", [video_id for video_id, _ in rebuilt])
        rows = window_rows(rebuilt)
        if rows is not None:
            windows.append(rows)
        changed += [replace(records[video_id], windows=len(vectors)) for video_id, vectors in rebuilt]
    if changed:
        _logger.warning("windows of %d videos were missing; rebuilt from their features", len(changed))
    if lost:
        _logger.warning(
            "features of %d videos are missing or damaged; run `vidkin index` with their files to rebuild them",
            len(lost),
        )
        windows.delete("video_id", lost)
        features.remove(lost)
    return changed + [
        records[video_id].as_stale(f"{cause} in the index; index the file again")
        for video_id, cause in sorted(lost.items())
    ]


# Columns and their types in Arrow. The path is bytes, because a file name need not be valid text.
_VIDEO_TYPES = {
    "id": "int64",
    "path": "binary",
    "size": "int64",
    "mtime_ns": "int64",
    "content_hash": "string",
    "status": "string",
    "cause": "string",
    "duration": "float64",
    "width": "int32",
    "height": "int32",
    "frame_rate": "float64",
    "codec": "string",
    "bit_depth": "int32",
    "has_audio": "bool_",
    "frames": "int64",
    "sampling_rate": "float64",
    "windows": "int64",
    "added_at": "float64",
    "damage": "string",
}

_NEVER_EMPTY = ("id", "path")

VIDEO_COLUMNS = tuple(_VIDEO_TYPES)


def video_schema() -> pa.Schema:
    """The schema of the table of videos."""
    import pyarrow as pa

    return pa.schema(
        pa.field(name, getattr(pa, kind)(), nullable=name not in _NEVER_EMPTY) for name, kind in _VIDEO_TYPES.items()
    )


# A stale record is written as a broken one with an impossible modification time, as version 0.1 did, so that old and
# new versions can read each other's indexes.
_STALE_MTIME = -1

LATER_VIDEO_COLUMNS = frozenset({"damage"})

"""Columns that tables of version 0.1 lack."""

WINDOW_COLUMNS = ("video_id", "window", "vector")

VIDEO_WINDOW_COLUMNS = (*WINDOW_COLUMNS, "start", "end", "first_frame", "last_frame")


def record_rows(records: Iterable[VideoRecord]) -> pa.Table:
    """The rows of these records."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    for record in records:
        rows.append({name: getattr(record, name) for name in VIDEO_COLUMNS})
        if record.status == "stale":
            rows[-1] |= {"status": "broken", "mtime_ns": _STALE_MTIME}
        rows[-1]["path"] = os.fsencode(record.path)
        # A cause may quote a file name that is not valid text.
        rows[-1]["cause"] = record.cause.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return pa.Table.from_pylist(rows, schema=video_schema())


def records_from_rows(rows: pa.Table) -> list[VideoRecord]:
    """The records in these rows."""
    names = rows.column_names
    columns = [rows[name].to_pylist() for name in names]
    at = names.index("path")
    columns[at] = [os.fsdecode(path) for path in columns[at]]
    records = []
    for row in zip(*columns, strict=True):
        fields = dict(zip(names, row, strict=True))
        if fields["status"] == "broken" and fields["mtime_ns"] == _STALE_MTIME:
            fields |= {"status": "stale", "mtime_ns": 0}
        records.append(VideoRecord(**{**fields, "damage": fields.get("damage") or ""}))
    return records


def window_rows(videos: Sequence[tuple[int, WindowVectors]]) -> pa.Table | None:
    """One row per window, or None if there are no windows."""
    videos = [(video_id, windows) for video_id, windows in videos if len(windows)]
    if not videos:
        return None
    import pyarrow as pa

    vectors = np.concatenate([windows.vectors for _, windows in videos], dtype=np.float16)
    columns = {
        "video_id": np.concatenate([np.full(len(windows), video_id) for video_id, windows in videos]),
        "window": np.concatenate([np.arange(len(windows), dtype=np.int32) for _, windows in videos]),
        "start": np.concatenate([windows.starts for _, windows in videos]),
        "end": np.concatenate([windows.ends for _, windows in videos]),
        "first_frame": np.concatenate([windows.first_frames for _, windows in videos]),
        "last_frame": np.concatenate([windows.last_frames for _, windows in videos]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1]),
    }
    return pa.table(columns)


def window_matrix(rows: pa.Table) -> WindowMatrix:
    """All rows (columns :data:`WINDOW_COLUMNS`) as arrays."""
    windows = _column(rows, "window").astype(np.int64)
    return WindowMatrix(vector_column(rows).astype(np.float32), _column(rows, "video_id"), windows)


def all_windows(rows: pa.Table) -> SnapshotWindows:
    """All rows (columns :data:`VIDEO_WINDOW_COLUMNS`) as arrays."""
    return SnapshotWindows(
        vectors=vector_column(rows),
        video_ids=_column(rows, "video_id"),
        windows=_column(rows, "window").astype(np.int64),
        starts=_column(rows, "start"),
        ends=_column(rows, "end"),
        first_frames=_column(rows, "first_frame"),
        last_frames=_column(rows, "last_frame"),
    )


def vector_column(rows: pa.Table) -> NDArray[np.float16]:
    """The column ``vector`` as a writable matrix [N, E]."""
    column = rows["vector"].combine_chunks()
    dimension = column.type.list_size
    return np.array(column.flatten(), dtype=np.float16).reshape(-1, dimension)


def _column(rows: pa.Table, name: str) -> NDArray[Any]:
    return np.array(rows[name].to_numpy())
