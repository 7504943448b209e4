"""A Lance table that may not exist yet: commits, compaction, pruning."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from vidkin._base.files import check_regular_files
from vidkin.errors import CollectionError
from vidkin.index.storage.files import CONFLICT, REMEDY, reading, writing
from vidkin.index.storage.place import Place

if TYPE_CHECKING:
    import pyarrow as pa

# Avoids Lance's deprecation warning about these statistics, which are not used.
os.environ.setdefault("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")

# Lance also prints warnings about errors that it raises anyway.
os.environ.setdefault("LANCE_LOG", "error")

# Longer lists of ids are split: a filter is parsed as an expression.
_IDS_PER_FILTER = 1000

_INDEX_CACHE = 512 << 20

_METADATA_CACHE = 64 << 20

# Maximum number of rows per merged file, and number of rows in memory at a time during compaction.
_ROWS_PER_FILE = 100_000

_ROWS_PER_BATCH = 8192


def new_session() -> Any:
    """Create caches of bounded size; Lance's default is up to 7 GiB and grows with every file written."""
    import lance

    # Public in lance, but missing from its type hints.
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
        """Name the table and the cause in errors of Lance while reading."""
        return reading(self.uri, self.remedy, self.place.explain)

    def writing(self) -> AbstractContextManager[None]:
        """Name the table and the cause in errors of Lance while writing."""
        return writing(self.uri, self.remedy, self.place.explain)

    def is_newest(self) -> bool:
        """Whether the version being read is the newest."""
        with self.reading():
            return self.dataset is None or bool(self.dataset.latest_version == self.dataset.version)

    def refresh(self) -> None:
        """Move to the newest version. Results of earlier reads stay valid."""
        with self.reading():
            if self.place.folder is not None:
                check_regular_files(self.uri)  # Lance would wait for pipes
            if self.dataset is not None and self.is_newest():
                return
            if self.dataset is None and self.place.folder is not None and not self.place.has_folder(self.name):
                return  # loading Lance just for an error would take long
            try:
                self.dataset = self._open()
            except ValueError as error:
                if self.dataset is not None or "not found" not in str(error).lower():
                    raise
                return
        # A writer that has lost the lock must not see versions after the fence, or it could write on top of them.
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
        """Raise :class:`CollectionError` if the folder of the opened table is gone."""
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
        """Commit missing columns as empty columns; does nothing if there is no table."""
        missing = [] if self.dataset is None else [field for field in schema if field.name not in self.columns()]
        if missing:
            import pyarrow as pa

            with self.writing():
                self.dataset.add_columns(pa.schema(missing))
            self.refresh()

    def read_through(self) -> None:
        """Read everything once; raise :class:`CollectionDamagedError` if anything cannot be read."""
        with self.reading():
            if self.dataset is not None:
                for _ in self.dataset.to_batches(batch_size=_ROWS_PER_BATCH):
                    pass

    def row_count(self) -> int:
        """Number of rows at this version; 0 if there is no table."""
        with self.reading():
            return 0 if self.dataset is None else int(self.dataset.count_rows())

    def append(self, rows: pa.Table) -> None:
        """Append rows; the first commit creates the table."""
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
        for start in range(0, len(values), _IDS_PER_FILTER):
            listed = ", ".join(str(number) for number in values[start : start + _IDS_PER_FILTER])
            with self.writing():
                self.dataset.delete(f"{column} in ({listed})")

    def note(self, key: str, value: str) -> None:
        """Commit a note that stays with the table; does nothing if there is no table."""
        if self.dataset is not None:
            # The only commit that passes a fence.
            self.place.check_writer(ask=True)
            with self.writing():
                self.dataset.update_config({key: value})

    def read_note(self, key: str) -> str | None:
        """Return the note stored under this key, or None."""
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
            # Based on a later version, this would undo commits by others.
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
        """Merge small files and delete versions older than ``keep`` with the files that only they use.

        Only for the holder of the writer's lock. If the lock allows, this also deletes files of commits that never
        happened.
        """
        if self.dataset is None:
            return
        with self.writing():
            self.dataset.optimize.compact_files(
                target_rows_per_fragment=_ROWS_PER_FILE, batch_size=_ROWS_PER_BATCH, num_threads=1
            )
            self.dataset.cleanup_old_versions(
                older_than=keep,
                # Otherwise only files of commits begun at least a week ago are deleted.
                delete_unverified=self.place.lock_ends_writing,
                error_if_tagged_old_versions=False,
            )
        self.refresh()

    def _open(self) -> Any:
        import lance

        return lance.dataset(self.uri, session=self.session(), storage_options=self._options())

    def _options(self) -> dict[str, str] | None:
        return None if self.place.storage_options is None else dict(self.place.storage_options)
