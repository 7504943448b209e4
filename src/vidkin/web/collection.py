"""The index behind the pages: its records, and handles for searches."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from vidkin._base.temporary import TemporaryFolder
from vidkin.errors import CollectionMismatchError, CollectionNotFoundError, NotIndexedError
from vidkin.index import ClusterSearch, Index, VideoRecord, is_gone, open_cluster
from vidkin.index.storage.manifest import MANIFEST_FILE
from vidkin.index.storage.opening import folder_of
from vidkin.index.storage.place import Place

# Seconds for which a list of videos is reused before checking whether another process wrote.
_MAX_AGE = 1.0


@dataclass(frozen=True, slots=True)
class Listing:
    """The records of an index at one moment.

    Attributes:
        records: All records, including broken and stale ones, sorted by path.
        by_id: The same records by number.
        by_path: The same records by path.
    """

    records: Sequence[VideoRecord]
    by_id: Mapping[int, VideoRecord]
    by_path: Mapping[str, VideoRecord]

    def find(self, path: str) -> VideoRecord | None:
        """The record of a file that exists; None if there is none."""
        return None if is_gone(path) else self.by_path.get(path)


class SharedIndex:
    """An index shared by many simultaneous requests.

    An :class:`~vidkin.index.Index` serves one caller at a time; this class lends handles, so that a stuck search blocks
    only its own. Records are read through a separate handle.

    Attributes:
        place: Where the index is.
        location: Folder or address of the index, as text.
        folder: Folder of the index, with thumbnails, verdicts and corrected shots; for an index on object storage an
            empty temporary folder.

    Args:
        place: Where the index is.
        cluster: Name of a cluster that searches it, see :mod:`vidkin.index.clusters`; None searches in this process.
        read_only: Do not store comparisons in the index.

    Raises:
        CollectionNotFoundError: There is no index.
        ClusterError: The cluster does not answer.
    """

    def __init__(self, place: Place, *, cluster: str | None = None, read_only: bool = False) -> None:
        self.place = place
        self._remembers = not read_only
        self._cluster: ClusterSearch | None = None
        if cluster is not None:
            self._cluster = open_cluster(cluster).search(place)
        self.location = place.uri
        self._lister = self._open()
        self._temporary = None if place.folder else TemporaryFolder()
        self.folder = self._temporary.path if self._temporary else folder_of(place)
        self._lock = threading.Lock()
        self._listing: Listing | None = None
        self._looked = 0.0
        self._idle: queue.SimpleQueue[Index] = queue.SimpleQueue()

    def _open(self) -> Index:
        return Index.open(self.location, read_only=True, remember=self._remembers)

    @property
    def has_sound(self) -> bool:
        """Whether the index has audio fingerprints for searches by sound."""
        return self._lister.manifest.sound

    @property
    def has_segments(self) -> bool:
        """Whether scores identify copies and where they match; otherwise they only order kinds of videos."""
        return self._lister.manifest.has_segments

    def check_segments(self) -> None:
        """Raise :class:`CollectionMismatchError` if scores only order kinds of videos."""
        if not self.has_segments:
            raise CollectionMismatchError(
                "the scores of this index order kinds of videos and cannot identify copies; serve another index"
            )

    def check_present(self) -> None:
        """Raise :class:`CollectionNotFoundError` if the folder of the index was moved away or deleted."""
        if self.place.folder is not None and not self.place.has_file(MANIFEST_FILE):
            raise CollectionNotFoundError(
                f"{self.location} no longer exists; restore the index, or start another server"
            )

    def listing(self) -> Listing:
        """All records; at most one second old.

        Raises:
            CollectionNotFoundError: The index is gone.
        """
        self.check_present()
        with self._lock:
            now = time.monotonic()
            if self._listing is None or now - self._looked > _MAX_AGE:
                if self._lister.refresh() or self._listing is None:
                    records = self._lister.videos()
                    by_path = {record.path: record for record in records}
                    self._listing = Listing(records, {record.id: record for record in records}, by_path)
                self._looked = now
            return self._listing

    def record(self, video: int) -> VideoRecord:
        """The record of a video by its number.

        Raises:
            NotIndexedError: The index has no such video.
        """
        record = self.listing().by_id.get(video)
        if record is None:
            raise NotIndexedError(f"video {video} is not in the index; reload the library")
        return record

    def records(self, videos: Sequence[int]) -> list[VideoRecord]:
        """The records of videos by their numbers; raises as :meth:`record` does."""
        return [self.record(video) for video in videos]

    def reopen(self) -> None:
        """Reopen idle handles after the scorer of the index changed."""
        while not self._idle.empty():
            self._idle.get_nowait().close()

    def forget(self) -> None:
        """Read the store again for the next listing; called after this process wrote."""
        with self._lock:
            self._looked = 0.0

    @contextmanager
    def reader(self) -> Iterator[Index]:
        """Lend a handle for searches to this caller alone; open a new one if all are in use.

        Raises:
            CollectionNotFoundError: The index is gone.
        """
        self.check_present()
        try:
            index = self._idle.get_nowait()
        except queue.Empty:
            index = self._open()
            if self._cluster is not None:
                index.on_cluster(self._cluster)
        try:
            yield index
        finally:
            self._idle.put(index)

    @contextmanager
    def writer(self) -> Iterator[Index]:
        """Lend a handle that may write; the lock of the index admits one writer at a time."""
        self.check_present()
        try:
            with Index.open(self.location) as index:
                yield index
        finally:
            self.forget()

    def close(self) -> None:
        """Release memory and files."""
        self._lister.close()
        self.reopen()
        if self._cluster is not None:
            self._cluster.close()
        if self._temporary is not None:
            self._temporary.close()
