"""Exact nearest windows by matrix products, and the result type that every store returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from vidkin.errors import InvalidArgumentError
from vidkin.index.records import WindowVectors
from vidkin.index.storage.contract import NO_WINDOW, NearestWindows

__all__ = ["WindowMatrix", "no_windows"]

# Rows converted to float32 at a time: the block and its scores about fit into the processor's cache.
_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class WindowMatrix:
    """All windows of a collection in memory.

    Attributes:
        vectors: [N, E] float16.
        video_ids: [N] int64.
        windows: [N] int64, number of the window within its video.
        starts: [N] float64, seconds.
        ends: [N] float64, seconds.
    """

    vectors: torch.Tensor
    video_ids: torch.Tensor
    windows: torch.Tensor
    starts: torch.Tensor
    ends: torch.Tensor

    def __len__(self) -> int:
        return int(self.vectors.shape[0])

    @classmethod
    def of_videos(cls, windows: Mapping[int, WindowVectors]) -> WindowMatrix:
        """The windows of these videos, by id, in the order of the ids."""
        parts = [(video_id, part) for video_id, part in sorted(windows.items()) if len(part)]
        if not parts:
            times, numbers = torch.zeros(0, dtype=torch.float64), torch.zeros(0, dtype=torch.int64)
            return cls(torch.zeros((0, 0), dtype=torch.float16), numbers, numbers, times, times)
        return cls(
            vectors=torch.cat([part.vectors for _, part in parts]),
            video_ids=torch.cat([torch.full((len(part),), video_id) for video_id, part in parts]),
            windows=torch.cat([torch.arange(len(part)) for _, part in parts]),
            starts=torch.cat([part.starts for _, part in parts]),
            ends=torch.cat([part.ends for _, part in parts]),
        )

    def of_known(self, known: torch.Tensor) -> WindowMatrix:
        """Only the windows for which ``known`` [N] is True."""
        if bool(known.all()):
            return self
        return WindowMatrix(
            self.vectors[known],
            self.video_ids[known],
            self.windows[known],
            self.starts[known],
            self.ends[known],
        )

    def nearest(self, queries: torch.Tensor, limit: int) -> NearestWindows:
        """The ``limit`` rows with the largest dot product with each of ``queries`` [Q, E] float32."""
        if len(self) == 0:
            return no_windows(len(queries), limit)
        if queries.shape[1] != self.vectors.shape[1]:
            raise InvalidArgumentError(
                f"query vectors must have dimension {self.vectors.shape[1]} as the index has, got {queries.shape[1]}"
            )
        best = torch.full((len(queries), 0), -1.0)
        rows = torch.zeros((len(queries), 0), dtype=torch.int64)
        for start in range(0, len(self), _BLOCK):
            block = queries @ self.vectors[start : start + _BLOCK].float().T
            scores, columns = block.topk(min(limit, block.shape[1]), dim=1)
            best = torch.cat([best, scores], dim=1)
            rows = torch.cat([rows, columns + start], dim=1)
            order = best.argsort(dim=1, descending=True, stable=True)[:, :limit]
            best, rows = best.gather(1, order), rows.gather(1, order)
        table = no_windows(len(best), limit)
        width = best.shape[1]
        table.scores[:, :width] = best.clamp(-1.0, 1.0)
        table.video_ids[:, :width] = self.video_ids[rows]
        table.windows[:, :width] = self.windows[rows]
        table.starts[:, :width] = self.starts[rows]
        table.ends[:, :width] = self.ends[rows]
        return table


def no_windows(queries: int, limit: int) -> NearestWindows:
    """A result [queries, limit] without any window."""
    return NearestWindows(
        video_ids=torch.full((queries, limit), NO_WINDOW, dtype=torch.int64),
        windows=torch.full((queries, limit), NO_WINDOW, dtype=torch.int64),
        starts=torch.zeros((queries, limit), dtype=torch.float64),
        ends=torch.zeros((queries, limit), dtype=torch.float64),
        scores=torch.full((queries, limit), -1.0),
    )
