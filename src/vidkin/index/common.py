"""Frames that many videos share although they are no copies of each other: intros, logo cards, test cards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from vidkin.index.windows import frame_vectors

if TYPE_CHECKING:
    from vidkin.index.store import VectorStore, WindowVectors

__all__ = ["CommonFrames", "find_common"]

_ALIKE = 0.85  # cosine of two window vectors that show the same
_NEIGHBOURS = 64
_COPY_SHARE = 0.5


class CommonFrames:
    """Vectors of frames that say nothing about which video one is looking at.

    Args:
        vectors: [C, E] unit vectors; C may be 0.
    """

    FILE = "common.safetensors"

    def __init__(self, vectors: torch.Tensor | None = None) -> None:
        self.vectors = torch.zeros(0, 0) if vectors is None else vectors.half().float()

    def __len__(self) -> int:
        return len(self.vectors)

    def share(self, values: torch.Tensor) -> torch.Tensor:
        """[T, R, D] to [T] in [0, 1]: 1 where a frame is one of the common ones.

        The largest cosine with a common vector, .75 to 0 and .85 to 1, linear between.
        """
        if len(self) == 0:
            return torch.zeros(len(values))
        nearest = (frame_vectors(values.float()) @ self.vectors.T).amax(dim=1)
        return ((nearest - (_ALIKE - 0.1)) / 0.1).clamp(0, 1)

    def merged(self, vectors: torch.Tensor) -> CommonFrames:
        """With these added, leaving out what is there already."""
        kept = self.vectors
        for vector in vectors.float():
            if len(kept) == 0 or float((kept @ vector).max()) < 0.97:
                kept = torch.cat([kept.reshape(-1, len(vector)), vector[None]])
        return CommonFrames(kept)

    @classmethod
    def open(cls, folder: Path) -> CommonFrames:
        """What the collection in this folder knows to be common; nothing if it has not looked yet."""
        from safetensors.torch import load_file

        path = folder / cls.FILE
        return cls(load_file(path)["vectors"]) if path.is_file() else cls()

    def save(self, folder: Path) -> None:
        """Write beside the store, whole or not at all."""
        from safetensors.torch import save_file

        path = folder / self.FILE
        partial = path.with_suffix(".partial")
        save_file({"vectors": self.vectors.half().contiguous()}, partial)
        partial.replace(path)


@dataclass(frozen=True, slots=True)
class _Hits:
    """Where the windows of one video were seen again."""

    by_window: list[set[int]]
    shared_here: dict[int, float]  # other video -> seconds of this one that it shows as well
    shared_there: dict[int, set[int]]  # other video -> its windows that this one shows


def find_common(
    store: VectorStore, video_ids: Iterable[int], *, minimum: int = 3, most: int = 2000
) -> torch.Tensor:
    """Vectors [C, E] of windows that ``minimum`` or more other videos show without being copies.

    Two videos that share half of either one's length are copies: what they share is what makes them so. An intro
    is short against both. Only the first ``most`` videos are looked at, which bounds the cost for large collections
    (what is common there is common among any two thousand of them).
    """
    records = {record.id: record for record in store.videos() if record.status == "ok"}
    found = []
    for video_id in list(video_ids)[:most]:
        record = records.get(video_id)
        if record is None or record.windows == 0:
            continue
        windows = store.read_windows(video_id)
        hits = _hits(store, video_id, windows)
        seconds = float((windows.ends - windows.starts).sum())
        copies = {
            other
            for other in hits.shared_here
            if hits.shared_here[other] >= _COPY_SHARE * seconds
            or other not in records
            or len(hits.shared_there[other]) >= _COPY_SHARE * records[other].windows
        }
        for index, others in enumerate(hits.by_window):
            if len(others - copies) >= minimum:
                found.append(windows.vectors[index].float())
    return torch.stack(found) if found else torch.zeros(0, 0)


def _hits(store: VectorStore, video_id: int, windows: WindowVectors) -> _Hits:
    nearest = store.nearest(windows.vectors.float(), _NEIGHBOURS)
    lengths = (windows.ends - windows.starts).tolist()
    by_window: list[set[int]] = []
    here: dict[int, float] = defaultdict(float)
    there: dict[int, set[int]] = defaultdict(set)
    rows = zip(
        nearest.video_ids.tolist(), nearest.windows.tolist(), nearest.scores.tolist(), lengths, strict=True
    )
    for ids, numbers, scores, length in rows:
        others: set[int] = set()
        for other, number, score in zip(ids, numbers, scores, strict=True):
            if other >= 0 and other != video_id and score >= _ALIKE:
                others.add(other)
                there[other].add(number)
        for other in others:
            here[other] += length
        by_window.append(others)
    return _Hits(by_window, here, there)
