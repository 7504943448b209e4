"""Local contrast normalisation of maps, the layer of the deep ranking network's supplement."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from vidkin.errors import InvalidArgumentError

__all__ = ["LocalNormalization"]

# Keeps flat blocks at 0 and their gradient finite.
_EPSILON = 1e-6


class LocalNormalization(nn.Module):
    """Every map brought to mean 0 and length 1 in the block around each place: [B, C, H, W] to the same shape.

    ``y_i = (x_i - m_i) / sqrt(sum over the block of (x_b - m_i)^2 + 1e-6)`` with m_i the mean of the block of
    ``side`` x ``side`` around i; at the border the part of the block that lies on the map counts. Adding to a map or
    multiplying it changes (nearly) nothing. There are no parameters.

    Args:
        side: Of the block: odd, 3 or more.

    Raises:
        InvalidArgumentError: ``side`` is not that.

    Source: Wang et al., CVPR 2014, supplement, equation 6. It leaves the size of the block open.
    """

    def __init__(self, side: int) -> None:
        super().__init__()
        if side < 3 or side % 2 == 0:
            raise InvalidArgumentError(
                f"the block of a local normalisation is {side} wide, allowed is 3, 5, 7 ..."
            )
        self.side = side

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """[B, C, H, W] to [B, C, H, W]."""
        # From the mean of the whole map: squares of what is left lose fewer digits.
        centred = maps - maps.mean(dim=(2, 3), keepdim=True)
        mean = self._over_blocks(centred)
        count = self._over_blocks(torch.ones_like(centred), share=True)
        squares = (self._over_blocks(centred.square()) - mean.square()).clamp(min=0.0) * count
        return (centred - mean) / torch.sqrt(squares + _EPSILON)

    def _over_blocks(self, maps: torch.Tensor, *, share: bool = False) -> torch.Tensor:
        """Means over the part of each block that lies on the map; with ``share`` of ones: how many places that is."""
        means = functional.avg_pool2d(
            maps, self.side, stride=1, padding=self.side // 2, count_include_pad=share
        )
        return means * self.side**2 if share else means

    def extra_repr(self) -> str:
        return f"side={self.side}"
