"""The batch of a training step of a comparator: clips, and which of them show the same video."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from vidkin.similarity import length_mask
from vidkin.training.clips.views import ClipFeatures

__all__ = ["ClipBatch", "make_batch"]


@dataclass(frozen=True, slots=True, eq=False)
class ClipBatch:
    """N clips, each compared with each.

    Attributes:
        values: [N, T, R, D] float32, zero beyond the lengths.
        lengths: [N] int64, valid frames of each.
        relevance: [N, N] int64: 1 where both show a common window, 0 where their videos are different, -1 (does not
            count) where they show different windows of one video, which may look alike.
        same_window: [N, N] bool: both were made from one window.
        labeled: [N, T] bool: frames that show a frame of the window, and not noise.
        teacher: [N, T, D'] float32 unit vectors of those frames before they were edited, by the teacher; None without
            one.
    """

    values: torch.Tensor
    lengths: torch.Tensor
    relevance: torch.Tensor
    same_window: torch.Tensor
    labeled: torch.Tensor
    teacher: torch.Tensor | None = None

    def to(self, device: torch.device) -> ClipBatch:
        """The same on a device."""
        return ClipBatch(
            self.values.to(device),
            self.lengths.to(device),
            self.relevance.to(device),
            self.same_window.to(device),
            self.labeled.to(device),
            None if self.teacher is None else self.teacher.to(device),
        )


def make_batch(clips: Sequence[ClipFeatures], teacher: Sequence[torch.Tensor] | None = None) -> ClipBatch:
    """The batch of some clips.

    Args:
        clips: Views of windows.
        teacher: For each video [T, D'], vectors of its frames; None without a teacher.
    """
    lengths = torch.tensor([len(clip.values) for clip in clips])
    pad = torch.nn.utils.rnn.pad_sequence
    sources = pad([clip.sources for clip in clips], batch_first=True, padding_value=-1)
    vectors = None
    if teacher is not None:
        seen = [teacher[clip.videos[0]][clip.sources.clamp(min=0)] for clip in clips]
        vectors = pad(seen, batch_first=True)
    own = torch.tensor([clip.windows[0] for clip in clips])
    common = _any_common([clip.windows for clip in clips])
    related = _any_common([clip.videos for clip in clips])
    return ClipBatch(
        values=pad([clip.values for clip in clips], batch_first=True),
        lengths=lengths,
        relevance=torch.where(common, 1, torch.where(related, -1, 0)),
        same_window=own[:, None] == own,
        labeled=(sources >= 0) & length_mask(lengths, sources.shape[1]),
        teacher=vectors,
    )


def _any_common(numbers: Sequence[tuple[int, ...]]) -> torch.Tensor:
    """[N, N] bool: both have a common number."""
    rows = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(own) for own in numbers], batch_first=True, padding_value=-1
    )
    equal = (rows[:, None, :, None] == rows[None, :, None, :]) & (rows >= 0)[:, None, :, None]
    return equal.flatten(2).any(2)
