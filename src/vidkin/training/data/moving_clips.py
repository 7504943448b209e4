"""Clips at random positions of labeled videos, from frames that are decoded once if memory allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vidkin.datasets import LabelledSet
from vidkin.models import EncoderConfig
from vidkin.training.data.item_inputs import read_frames_at_rate

__all__ = ["MovingClips"]


@dataclass(frozen=True, eq=False)
class MovingClips:
    """Items as all their frames at a rate, from which a clip takes ``config.frames`` consecutive ones.

    N items, R kept frames, F length of a frame's features, S pixels per side, W frames per clip.

    Attributes:
        labelled: The items, in the order of the numbers.
        config: Configuration with ``frames`` and ``rate``.
        frames: [R, F] float32 features or [R, S, S, 3] uint8 images of the kept items, one after another.
        first: [N] int64 row of each item's first frame; -1: not kept, so decoded again whenever it is drawn.
        lengths: [N] int64 number of frames of each item.
        describe: Function from images [T, S, S, 3] uint8 to the content of ``frames``: features, or the images
            themselves.
    """

    labelled: LabelledSet
    config: EncoderConfig
    frames: Tensor
    first: Tensor
    lengths: Tensor
    describe: Callable[[Tensor], Tensor]

    def cut(self, indices: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Clips [B, W, ...] of some items, and the number of real frames of each [B]; the last frame is repeated.

        Args:
            indices: [B] int64.
            generator: Source of the random start of each clip, uniform among all positions that leave room for it;
                None: the start of the item.

        Raises:
            MediaError: An item that is not kept can no longer be read.
        """
        window = self.config.frames
        starts = torch.zeros(len(indices), dtype=torch.int64)
        if generator is not None:
            positions = (self.lengths[indices] - window).clamp(min=0) + 1
            # One number per item whatever its length, so that the draws do not depend on what is kept.
            starts = (torch.rand(len(indices), generator=generator, dtype=torch.float64) * positions).long()
        clips = []
        for place, start in zip(indices.tolist(), starts.tolist(), strict=True):
            end, first = min(start + window, int(self.lengths[place])), int(self.first[place])
            if first >= 0:
                rows = self.frames[first + start : first + end]
            else:
                # From the item's start, because a decoder that begins later can get other frames.
                item = self.labelled.items[place]
                images = read_frames_at_rate(item, self.labelled.kind, self.config, most=end)
                rows = self.describe(torch.from_numpy(images[start:end]))
            missing = window - len(rows)
            clips.append(torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])]) if missing else rows)
        return torch.stack(clips), self.lengths[indices].clamp(max=window)
