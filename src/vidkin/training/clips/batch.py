"""The batch of a comparator's training step: clips, and which of them show the same video."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from vidkin.similarity import length_mask
from vidkin.training.clips.views import ClipFeatures

__all__ = ["ClipBatch", "make_batch"]


@dataclass(frozen=True, slots=True, eq=False)
class ClipBatch:
    """N clips, each to be compared with each.

    Attributes:
        values: [N, T, R, D] float32 descriptors, zero beyond the lengths.
        lengths: [N] int64, valid frames of each clip.
        relevance: [N, N] int64: 1 if both show a common window, 0 if their videos are different, -1 (ignored) if they
            show different windows of one video, which can look alike.
        same_window: [N, N] bool, whether both were made from the same window.
        labeled: [N, T] bool, frames that show a frame of the window rather than noise.
        teacher: [N, T, D'] float32, the teacher's unit vectors of those frames before editing; None without a teacher.
    """

    values: torch.Tensor
    lengths: torch.Tensor
    relevance: torch.Tensor
    same_window: torch.Tensor
    labeled: torch.Tensor
    teacher: torch.Tensor | None = None

    def to(self, device: torch.device) -> ClipBatch:
        """The same batch on a device."""
        return ClipBatch(
            self.values.to(device),
            self.lengths.to(device),
            self.relevance.to(device),
            self.same_window.to(device),
            self.labeled.to(device),
            None if self.teacher is None else self.teacher.to(device),
        )


def make_batch(clips: Sequence[ClipFeatures], teacher: Sequence[torch.Tensor] | None = None) -> ClipBatch:
    """Make a batch of clips.

    Args:
        clips: Views of windows.
        teacher: The teacher's vectors [T, D'] of each video's frames; None without a teacher.
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
    """[N, N] bool, whether both have a number in common."""
    rows = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(own) for own in numbers], batch_first=True, padding_value=-1
    )
    equal = (rows[:, None, :, None] == rows[None, :, None, :]) & (rows >= 0)[:, None, :, None]
    return equal.flatten(2).any(2)
