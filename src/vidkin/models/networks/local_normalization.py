"""Local contrast normalization of maps, the layer of the deep ranking network's supplement."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from vidkin.errors import InvalidArgumentError

__all__ = ["LocalNormalization"]

# Keeps flat blocks at 0 and their gradient finite.
_EPSILON = 1e-6


class LocalNormalization(nn.Module):
    """Every map shifted and scaled to mean 0 and length 1 in the block around each place, [B, C, H, W].

    ``y_i = (x_i - m_i) / sqrt(sum over the block of (x_b - m_i)^2 + 1e-6)`` with m_i the mean of the block of
    ``side`` x ``side`` around i; at the border the part of the block that lies on the map counts. Adding to a map or
    multiplying it changes next to nothing. There are no parameters.

    Args:
        side: Of the block, odd, at least 3.

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
        """[B, C, H, W] to [B, C, H, W]."""
        # Around the mean of the whole map, so that squares lose fewer digits.
        centered = maps - maps.mean(dim=(2, 3), keepdim=True)
        mean = self._over_blocks(centered)
        count = self._over_blocks(torch.ones_like(centered), share=True)
        squares = (self._over_blocks(centered.square()) - mean.square()).clamp(min=0.0) * count
        return (centered - mean) / torch.sqrt(squares + _EPSILON)

    def _over_blocks(self, maps: torch.Tensor, *, share: bool = False) -> torch.Tensor:
        """Means over the part of each block that lies on the map; with ``share`` of ones: the number of its places."""
        means = functional.avg_pool2d(
            maps, self.side, stride=1, padding=self.side // 2, count_include_pad=share
        )
        return means * self.side**2 if share else means

    def extra_repr(self) -> str:
        return f"side={self.side}"
