"""The records of a store in memory, by id and by path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vidkin.errors import NotIndexedError
from vidkin.index.records import VideoRecord

__all__ = ["Catalog"]


class Catalog:
    """Records with ids; a path has one record.

    Args:
        records: Initial records.
    """

    def __init__(self, records: Iterable[VideoRecord] = ()) -> None:
        self._records = {record.id: record for record in records}
        self._ids = {record.path: record.id for record in self._records.values()}

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[VideoRecord]:
        return iter(self._records.values())

    def __contains__(self, video_id: int) -> bool:
        return video_id in self._records

    @property
    def by_id(self) -> dict[int, VideoRecord]:
        """Id -> record."""
        return self._records

    @property
    def ids(self) -> dict[str, int]:
        """Path -> id."""
        return self._ids

    def by_path(self) -> list[VideoRecord]:
        """All records, sorted by path."""
        return sorted(self._records.values(), key=lambda record: record.path)

    def get(self, video_id: int) -> VideoRecord:
        """The record with this id; :class:`NotIndexedError` if there is none."""
        record = self._records.get(video_id)
        if record is None:
            raise NotIndexedError(f"there is no video with id {video_id} in the index")
        return record

    def get_described(self, video_id: int, part: str) -> VideoRecord:
        """The record with this id if it has features; :class:`NotIndexedError` names the missing part otherwise."""
        record = self.get(video_id)
        if record.status != "ok":
            raise NotIndexedError(f"video {video_id} is {record.status} and has no {part}")
        return record

    def find(self, path: str) -> VideoRecord | None:
        """The record of this path, or None."""
        video_id = self._ids.get(path)
        return None if video_id is None else self._records[video_id]

    def put(self, record: VideoRecord) -> None:
        """Add a record; replaces one with the same id."""
        before = self._records.get(record.id)
        if before is not None:
            del self._ids[before.path]
        self._records[record.id] = record
        self._ids[record.path] = record.id

    def drop(self, video_ids: Iterable[int]) -> None:
        """Remove these records; unknown ids are ignored."""
        for video_id in video_ids:
            record = self._records.pop(video_id, None)
            if record is not None and self._ids.get(record.path) == video_id:
                del self._ids[record.path]

    def clear(self) -> None:
        """Remove all records."""
        self._records.clear()
        self._ids.clear()
