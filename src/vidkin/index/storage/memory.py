"""A store in memory, for tests and for collections that need not outlive the process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch

from vidkin.index.records import Entry, VideoRecord, WindowVectors, to_stored
from vidkin.index.storage.catalog import Catalog
from vidkin.index.storage.contract import (
    NearestWindows,
    check_entries,
    check_path_is_free,
    check_vectors,
)
from vidkin.index.storage.exact import WindowMatrix
from vidkin.similarity import FrameFeatures

__all__ = ["MemoryStore"]


class MemoryStore:
    """A :class:`~vidkin.index.storage.contract.VectorStore` that exists only within the process. Search is exact."""

    def __init__(self) -> None:
        self._catalog = Catalog()
        self._features: dict[int, FrameFeatures] = {}
        self._windows: dict[int, WindowVectors] = {}
        self._next_id = 1
        self._matrix: WindowMatrix | None = None

    def refresh(self) -> bool:
        return False

    def videos(self) -> list[VideoRecord]:
        return self._catalog.by_path()

    def count(self) -> int:
        return len(self._catalog)

    def get(self, video_id: int) -> VideoRecord:
        return self._catalog.get(video_id)

    def find(self, path: str) -> VideoRecord | None:
        return self._catalog.find(path)

    def append(
        self,
        record: VideoRecord,
        features: FrameFeatures | None = None,
        windows: WindowVectors | None = None,
    ) -> VideoRecord:
        return self.append_many([Entry(record, features, windows)])[0]

    def append_many(self, entries: Sequence[Entry]) -> list[VideoRecord]:
        check_entries(entries)
        records = []
        for entry in entries:
            record = replace(entry.record, id=self._next_id)
            self._next_id += 1
            self.remove([before.id for before in [self._catalog.find(record.path)] if before is not None])
            self._catalog.put(record)
            if entry.features is not None and entry.windows is not None:
                self._features[record.id] = to_stored(entry.features)
                vectors = entry.windows.vectors.to(torch.float16)
                self._windows[record.id] = replace(entry.windows, vectors=vectors)
            records.append(record)
        self._matrix = None
        return records

    def update(self, records: Sequence[VideoRecord]) -> None:
        for record in records:
            self._catalog.get(record.id)
            check_path_is_free(record, self._catalog.ids)
            self._catalog.put(record)
        self._matrix = None

    def read(self, video_id: int) -> FrameFeatures:
        self._catalog.get_described(video_id, "features")
        return self._features[video_id]

    def read_many(self, video_ids: Sequence[int]) -> list[FrameFeatures]:
        return [self.read(video_id) for video_id in video_ids]

    def read_windows(self, video_id: int) -> WindowVectors:
        self._catalog.get_described(video_id, "windows")
        return self._windows[video_id]

    def nearest(self, vectors: torch.Tensor, limit: int) -> NearestWindows:
        queries = check_vectors(vectors, limit)
        if self._matrix is None:
            self._matrix = WindowMatrix.of_videos(self._windows)
        return self._matrix.nearest(queries, limit)

    def window_count(self) -> int:
        return sum(record.windows for record in self._catalog)

    def remove(self, video_ids: Iterable[int]) -> None:
        for video_id in list(video_ids):
            self._catalog.drop([video_id])
            self._features.pop(video_id, None)
            self._windows.pop(video_id, None)
        self._matrix = None

    def recover(self) -> int:
        return 0

    def missing(self) -> dict[int, str]:
        return {record.id: record.cause for record in self._catalog if record.needs_reindex}

    def optimize(self) -> None:
        return None

    def close(self) -> None:
        self.remove([record.id for record in self._catalog])
