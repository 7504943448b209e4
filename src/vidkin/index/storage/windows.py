"""A snapshot of the windows of all videos: read by video, and searched for the nearest windows.

Shapes: V videos with windows, E dimensions of a vector, Q query vectors, K candidates.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import CollectionDamagedError
from vidkin.index.storage.contract import NearestWindows, WindowMatrix, check_dimension, no_windows
from vidkin.index.storage.files import REMEDY
from vidkin.index.storage.video_table import StoredVideo, WindowState
from vidkin.index.storage.window_files import WindowFiles, WindowRun
from vidkin.index.storage.window_index import WindowIndex

# Number of candidates by codes per result, because quantized scores are inexact, and number of additional ones, because
# rows of removed videos are dropped.
_CANDIDATES, _SPARE = 4, 64
# Number of candidates compared with their vectors at a time.
_BATCH = 1 << 15


class StoredWindows:
    """The windows of a snapshot of the video table.

    Args:
        folder: Folder of the store.
        state: Which files contain the windows.
        videos: All videos.
    """

    def __init__(self, folder: Path, state: WindowState, videos: Iterable[StoredVideo]) -> None:
        self.files = WindowFiles(folder, state.generation)
        self.index_path = folder / f"windows-{state.generation}.index"
        self._state = state
        # Sorted by row.
        self.runs = sorted(
            WindowRun(video.first_row, video.record.windows, video.record.id, video.row_checksum)
            for video in videos
            if video.record.windows
        )
        columns = np.array(self.runs, np.int64).reshape(-1, 4)
        # [V] int64: first row, number of rows, and video id of each run.
        self._firsts, self._counts, self._ids, _ = np.ascontiguousarray(columns.T)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return int(self._counts.sum())

    def counts(self) -> dict[int, int]:
        """Number of windows actually on disk, keyed by the ids of videos that should have windows."""
        there = self.files.rows(self._state.dimension)
        left = np.clip(there - self._firsts, 0, self._counts)
        return dict(zip(self._ids.tolist(), left.tolist(), strict=True))

    def read(self, video_ids: Iterable[int]) -> list[NDArray[np.float16]]:
        """Read the window vectors [W, E] of these videos; empty for videos without windows.

        Raises:
            CollectionDamagedError: Windows are missing or corrupted.
        """
        runs = [self._run_of.get(video_id) for video_id in video_ids]
        none = np.zeros((0, self._state.dimension), np.float16)
        return [none if run is None else self.files.read(self._mapped, run) for run in runs]

    def nearest(self, queries: NDArray[np.float32], limit: int) -> NearestWindows:
        """Find the ``limit`` windows nearest to each query [Q, E], exactly or with the approximate index."""
        if not len(self) or not len(queries):
            return no_windows(len(queries), limit)
        check_dimension(queries, self._state.dimension)
        with self._lock:
            index = self.index
            if index is None:
                return self._matrix.nearest(queries, limit)
        return self._approximate(index, queries, limit)

    @cached_property
    def _run_of(self) -> dict[int, WindowRun]:
        return {run.video: run for run in self.runs}

    @cached_property
    def index(self) -> WindowIndex | None:
        """The approximate index, ready to be searched; None if there is none.

        Raises:
            CollectionDamagedError: The index is damaged.
        """
        index = self.open_index()
        return None if index is None else index.packed()

    def open_index(self) -> WindowIndex | None:
        """Read the approximate index, to which rows can be added; see :attr:`index`."""
        return WindowIndex.open(self.index_path, self._state.dimension, self._state.rows)

    def vectors(self, first: int) -> NDArray[np.float16]:
        """Vectors [N, E] of all rows starting at ``first``, including those of removed videos."""
        return self._mapped[first:]

    @cached_property
    def _mapped(self) -> NDArray[np.float16]:
        state = self._state
        try:
            return self.files.vectors(state.dimension, state.rows)
        except CollectionDamagedError as error:
            raise CollectionDamagedError(
                f"{self.files.vector_path} is damaged: it has only {sum(self.counts().values())} of {len(self)} "
                f"windows; {REMEDY}"
            ) from error

    @cached_property
    def _matrix(self) -> WindowMatrix:
        """All windows in memory, after verifying their checksums."""
        ids = self._ids.tolist()
        return WindowMatrix.of_videos(dict(zip(ids, self.read(ids), strict=True)))

    def _approximate(self, index: WindowIndex, queries: NDArray[np.float32], limit: int) -> NearestWindows:
        result = no_windows(len(queries), limit)
        # Rows added after the index was last updated are compared exactly.
        tail = self._unindexed_rows(index.rows)
        wanted = min(_CANDIDATES * limit + _SPARE, index.rows)
        rows = index.search(queries, wanted)
        while wanted < index.rows and not self._has_enough(rows, limit):
            wanted = min(4 * wanted, index.rows)
            rows = index.search(queries, wanted)
        for number, (query, found) in enumerate(zip(queries, rows, strict=True)):
            candidates = np.concatenate([found[found >= 0], tail])
            videos, windows = self._owners(candidates)
            alive = videos >= 0
            scores = self._compare(query, candidates[alive])
            best = np.argsort(-scores, kind="stable")[:limit]
            place = slice(number, number + 1), slice(len(best))
            result.put(place, videos[alive][best], windows[alive][best], scores[best].clip(-1.0, 1.0))
        return result

    def _has_enough(self, rows: NDArray[np.int64], limit: int) -> bool:
        """Whether, for each query, ``limit`` of the rows [Q, K] belong to videos, or all rows were found (padding with
        -1)."""
        alive = self._owners(rows)[0] >= 0
        return bool(((alive.sum(axis=1) >= limit) | (rows < 0).any(axis=1)).all())

    def _unindexed_rows(self, first: int) -> NDArray[np.int64]:
        """Rows starting at ``first`` that belong to a video."""
        rows = [
            np.arange(max(run.first, first), run.first + run.length)
            for run in self.runs
            if run.first + run.length > first
        ]
        return np.concatenate(rows) if rows else np.zeros(0, np.int64)

    def _owners(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Video ids and window numbers of these rows; the id is -1 for rows of removed videos."""
        runs = np.clip(np.searchsorted(self._firsts, rows, side="right") - 1, 0, None)
        windows = rows - self._firsts[runs]
        return np.where((windows >= 0) & (windows < self._counts[runs]), self._ids[runs], -1), windows

    def _compare(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Cosine similarities [K] of a query and the vectors of these rows."""
        parts = [rows[at : at + _BATCH] for at in range(0, len(rows), _BATCH)]
        scores = [self._mapped[part].astype(np.float32) @ query for part in parts]
        return np.concatenate(scores) if scores else np.zeros(0, np.float32)
