"""Local contrast normalization of maps, a layer from the supplement of the deep ranking paper."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from vidkin.errors import InvalidArgumentError

__all__ = ["LocalNormalization"]

# Keeps flat blocks at 0 and their gradient finite.
_EPSILON = 1e-6


class LocalNormalization(nn.Module):
    """Shifts and scales every map to mean 0 and length 1 in the block around each place, [B, C, H, W].

    ``y_i = (x_i - m_i) / sqrt(sum over the block of (x_b - m_i)^2 + 1e-6)`` with m_i the mean of the block of
    ``side`` x ``side`` around i; at the border only the part of the block on the map counts. Adding a constant to a
    map or multiplying the map changes next to nothing. There are no parameters.

    Args:
        side: Side of the block, odd, at least 3.

    Raises:
        InvalidArgumentError: ``side`` is even or below 3.

    Source: Wang et al., CVPR 2014, supplement, equation 6. It leaves the size of the block open.
    """

    def __init__(self, side: int) -> None:
        super().__init__()
        if side < 3 or side % 2 == 0:
            raise InvalidArgumentError(f"side must be an odd number of at least 3, got {side}")
        self.side = side

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Normalized maps [B, C, H, W]."""
        # Subtract the mean of the whole map first, so that squares lose fewer digits.
        centered = maps - maps.mean(dim=(2, 3), keepdim=True)
        mean = self._over_blocks(centered)
        count = self._over_blocks(torch.ones_like(centered), share=True)
        squares = (self._over_blocks(centered.square()) - mean.square()).clamp(min=0.0) * count
        return (centered - mean) / torch.sqrt(squares + _EPSILON)

    def _over_blocks(self, maps: torch.Tensor, *, share: bool = False) -> torch.Tensor:
        """Means over the part of each block on the map; with ``share`` and maps of ones, the number of places in that
        part."""
        means = functional.avg_pool2d(
            maps, self.side, stride=1, padding=self.side // 2, count_include_pad=share
        )
        return means * self.side**2 if share else means

    def extra_repr(self) -> str:
        return f"side={self.side}"
