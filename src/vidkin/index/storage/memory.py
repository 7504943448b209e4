"""A store in memory: for tests, and for comparing two videos without a collection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch

from vidkin.errors import NotIndexedError
from vidkin.index.storage.contract import (
    Entry,
    NearestWindows,
    StoredFeatures,
    VideoRecord,
    WindowVectors,
    check_entries,
    check_path_is_free,
    checked_vectors,
)
from vidkin.index.storage.exact import WindowMatrix

__all__ = ["MemoryStore"]


class MemoryStore:
    """A :class:`~vidkin.index.storage.contract.VectorStore` that lives and dies with the process. Search is exact."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._ids: dict[str, int] = {}
        self._next_id = 1
        self._matrix: WindowMatrix | None = None

    def refresh(self) -> bool:
        return False

    def videos(self) -> list[VideoRecord]:
        return sorted((entry.record for entry in self._entries.values()), key=lambda record: record.path)

    def count(self) -> int:
        return len(self._entries)

    def get(self, video_id: int) -> VideoRecord:
        return self._entry(video_id).record

    def find(self, path: str) -> VideoRecord | None:
        video_id = self._ids.get(path)
        return None if video_id is None else self._entries[video_id].record

    def append(
        self,
        record: VideoRecord,
        features: StoredFeatures | None = None,
        windows: WindowVectors | None = None,
    ) -> VideoRecord:
        return self.append_many([Entry(record, features, windows)])[0]

    def append_many(self, entries: Sequence[Entry]) -> list[VideoRecord]:
        check_entries(entries)
        records = []
        for entry in entries:
            record = replace(entry.record, id=self._next_id)
            self._next_id += 1
            windows = entry.windows
            if windows is not None:
                windows = replace(windows, vectors=windows.vectors.to(torch.float16))
            self._entries.pop(self._ids.get(record.path, -1), None)
            self._entries[record.id] = Entry(record, entry.features, windows)
            self._ids[record.path] = record.id
            records.append(record)
        self._matrix = None
        return records

    def update(self, records: Sequence[VideoRecord]) -> None:
        for record in records:
            entry = self._entry(record.id)
            check_path_is_free(record, self._ids)
            del self._ids[entry.record.path]
            self._ids[record.path] = record.id
            self._entries[record.id] = replace(entry, record=record)
        self._matrix = None

    def read(self, video_id: int) -> StoredFeatures:
        features = self._entry(video_id).features
        if features is None:
            raise NotIndexedError(f"video {video_id} is broken and has no features")
        return features

    def read_many(self, video_ids: Sequence[int]) -> list[StoredFeatures]:
        return [self.read(video_id) for video_id in video_ids]

    def read_windows(self, video_id: int) -> WindowVectors:
        windows = self._entry(video_id).windows
        if windows is None:
            raise NotIndexedError(f"video {video_id} is broken and has no windows")
        return windows

    def nearest(self, vectors: torch.Tensor, limit: int) -> NearestWindows:
        queries = checked_vectors(vectors, limit)
        if self._matrix is None:
            self._matrix = self._windows_together()
        return self._matrix.nearest(queries, limit)

    def window_count(self) -> int:
        return sum(entry.record.windows for entry in self._entries.values())

    def remove(self, video_ids: Iterable[int]) -> None:
        for video_id in video_ids:
            entry = self._entries.pop(video_id, None)
            if entry is not None:
                del self._ids[entry.record.path]
        self._matrix = None

    def recover(self) -> int:
        return 0

    def missing(self) -> dict[int, str]:
        return {}

    def optimise(self) -> None:
        return None

    def close(self) -> None:
        self._entries.clear()
        self._ids.clear()
        self._matrix = None

    def _entry(self, video_id: int) -> Entry:
        entry = self._entries.get(video_id)
        if entry is None:
            raise NotIndexedError(f"there is no video with id {video_id} in the index")
        return entry

    def _windows_together(self) -> WindowMatrix:
        parts = [
            (video_id, entry.windows)
            for video_id, entry in sorted(self._entries.items())
            if entry.windows is not None and len(entry.windows)
        ]
        if not parts:
            empty = torch.zeros(0, dtype=torch.float64)
            none = torch.zeros(0, dtype=torch.int64)
            return WindowMatrix(torch.zeros((0, 0), dtype=torch.float16), none, none, empty, empty)
        return WindowMatrix(
            vectors=torch.cat([windows.vectors for _, windows in parts]),
            video_ids=torch.cat([torch.full((len(windows),), video_id) for video_id, windows in parts]),
            windows=torch.cat([torch.arange(len(windows)) for _, windows in parts]),
            starts=torch.cat([windows.starts for _, windows in parts]),
            ends=torch.cat([windows.ends for _, windows in parts]),
        )
