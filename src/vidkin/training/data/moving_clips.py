"""Clips at random positions of labeled videos, from frames that are decoded once where memory allows."""

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
    """Items as all their frames at a rate, of which a clip is ``config.frames`` consecutive ones.

    N items, R frames that are kept, F length of a frame's features, S pixels a side, W frames a clip.

    Attributes:
        labelled: The items, in the order of the numbers.
        config: With ``frames`` and ``rate``.
        frames: [R, F] float32 features or [R, S, S, 3] uint8 images of the items that are kept, one after another.
        first: [N] int64 row of each item's first frame; -1: not kept, decoded again whenever it is drawn.
        lengths: [N] int64 frames of each item.
        describe: Images [T, S, S, 3] uint8 to what ``frames`` holds: features, or the images themselves.
    """

    labelled: LabelledSet
    config: EncoderConfig
    frames: Tensor
    first: Tensor
    lengths: Tensor
    describe: Callable[[Tensor], Tensor]

    def cut(self, indices: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Clips [B, W, ...] of some items, and the number of real frames of each [B]: the last one is repeated.

        Args:
            indices: [B] int64.
            generator: Where each clip begins, evenly among all positions that leave room for it; None: with the item.

        Raises:
            MediaError: An item that is not kept can no longer be read.
        """
        window = self.config.frames
        starts = torch.zeros(len(indices), dtype=torch.int64)
        if generator is not None:
            positions = (self.lengths[indices] - window).clamp(min=0) + 1
            # One number an item whatever its length, so that the draws do not depend on what is kept.
            starts = (torch.rand(len(indices), generator=generator, dtype=torch.float64) * positions).long()
        clips = []
        for place, start in zip(indices.tolist(), starts.tolist(), strict=True):
            end, first = min(start + window, int(self.lengths[place])), int(self.first[place])
            if first >= 0:
                rows = self.frames[first + start : first + end]
            else:
                # From the item's start on: a decoder that begins later may be given other frames.
                item = self.labelled.items[place]
                images = read_frames_at_rate(item, self.labelled.kind, self.config, most=end)
                rows = self.describe(torch.from_numpy(images[start:end]))
            missing = window - len(rows)
            clips.append(torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])]) if missing else rows)
        return torch.stack(clips), self.lengths[indices].clamp(max=window)
