"""The network that looks at the map of frame similarities of two videos and brings out where they match.

Shapes: B pairs; Tq, Tt frames of query and target; a primed length is a quarter of the length, rounded up.
"""

from __future__ import annotations

import itertools

import torch
from torch import nn
from torch.nn import functional

from vidkin.models.comparator.config import Padding

__all__ = ["REDUCTION", "MapNetwork", "reduced_length"]

REDUCTION = 4
"""Frames of a video for each row or column of the learned map."""

# Frames beyond a block that its learned cells depend on: 1 + 2 + 4, rounded up to a multiple of 4.
_HALO = 8
_CHANNELS = (1, 32, 64, 128)

Lengths = torch.Tensor | None


class MapNetwork(nn.Module):
    """Learned maps [B, Tq', Tt'], not bounded, of maps [B, Tq, Tt] of frame similarities.

    Three 3 x 3 convolutions (32, 64, 128 channels) with 2 x 2 maximum pools after the first two, and one 1 x 1
    convolution; any length from 1 up is accepted. At odd lengths the last row or column is pooled over the cells there
    are, so that no frame is lost and a padded batch gives the same numbers as each pair by itself.

    Args:
        padding: The padding around a map.

    Source: ViSiL (ICCV 2019), the video comparator; masks as in S2VS.
    """

    def __init__(self, padding: Padding = "zeros") -> None:
        super().__init__()
        self.conv1, self.conv2, self.conv3 = (
            nn.Conv2d(before, after, 3) for before, after in itertools.pairwise(_CHANNELS)
        )
        self.fconv = nn.Conv2d(_CHANNELS[-1], 1, 1)
        self._mode = "constant" if padding == "zeros" else "replicate"
        for layer in (self.conv1, self.conv2, self.conv3, self.fconv):
            nn.init.xavier_uniform_(layer.weight)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)

    def forward(
        self, maps: torch.Tensor, query_lengths: Lengths = None, target_lengths: Lengths = None
    ) -> torch.Tensor:
        """Learned maps [B, Tq', Tt'] of maps [B, Tq, Tt]; zero beyond the lengths.

        Args:
            maps: Similarities, cosines in [-1, 1].
            query_lengths: [B] int64, valid rows of each map; None: all.
            target_lengths: [B] int64, valid columns of each map; None: all.
        """
        if self._mode == "replicate" and not (query_lengths is None and target_lengths is None):
            # The padding of a replicated map depends on its own edge, so pairs of different lengths cannot share a
            # pass.
            learned = maps.new_zeros(len(maps), reduced_length(maps.shape[1]), reduced_length(maps.shape[2]))
            for position, frame_map in enumerate(maps):
                rows = maps.shape[1] if query_lengths is None else int(query_lengths[position])
                columns = maps.shape[2] if target_lengths is None else int(target_lengths[position])
                part = self.forward(frame_map[None, :rows, :columns])[0]
                learned[position, : part.shape[0], : part.shape[1]] = part
            return learned
        lengths = (query_lengths, target_lengths)
        signal = _cleared(maps[:, None], lengths)
        for layer, is_pooled in ((self.conv1, True), (self.conv2, True), (self.conv3, False)):
            signal = layer(functional.pad(signal, (1, 1, 1, 1), self._mode))
            signal = functional.relu(_cleared(signal, lengths))
            if is_pooled:
                signal = functional.max_pool2d(signal, 2, ceil_mode=True)
                lengths = (_half(lengths[0]), _half(lengths[1]))
        return _cleared(self.fconv(signal), lengths)[:, 0]

    def in_blocks(self, frame_map: torch.Tensor, *, side: int = 1024) -> torch.Tensor:
        """The learned map [Tq', Tt'] of one map [Tq, Tt] of any size, in bounded memory.

        Equal to :meth:`forward` except for rounding: a block is computed together with the surrounding frames its
        cells depend on.

        Args:
            frame_map: [Tq, Tt], similarities of frames.
            side: Maximum number of rows and columns of a block, a multiple of 4.
        """
        rows, columns = frame_map.shape
        result = frame_map.new_empty(reduced_length(rows), reduced_length(columns))
        for top in range(0, rows, side):
            for left in range(0, columns, side):
                first, start = max(0, top - _HALO), max(0, left - _HALO)
                part = frame_map[first : top + side + _HALO, start : left + side + _HALO]
                learned = self.forward(part[None])[0]
                inside = learned[(top - first) // REDUCTION :, (left - start) // REDUCTION :]
                inside = inside[: side // REDUCTION, : side // REDUCTION]
                above, before = top // REDUCTION, left // REDUCTION
                result[above : above + inside.shape[0], before : before + inside.shape[1]] = inside
        return result


def reduced_length(length: int) -> int:
    """Number of rows in the learned map of this many frames."""
    return -(-length // REDUCTION)


def _half(lengths: Lengths) -> Lengths:
    return None if lengths is None else (lengths + 1) // 2


def _cleared(signal: torch.Tensor, lengths: tuple[Lengths, Lengths]) -> torch.Tensor:
    """Set [B, C, Tq, Tt] to zero beyond the valid rows and columns."""
    for axis, valid in zip((2, 3), lengths, strict=True):
        if valid is not None:
            beyond = torch.arange(signal.shape[axis], device=signal.device) >= valid[:, None]
            shape = (len(signal), 1, -1, 1) if axis == 2 else (len(signal), 1, 1, -1)
            signal = signal.masked_fill(beyond.view(shape), 0.0)
    return signal
