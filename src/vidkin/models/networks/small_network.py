"""A frame network that trains on a CPU in minutes."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["SmallNetwork"]

_CHANNELS = (24, 48, 96, 128)
_GROUPS = 8


class SmallNetwork(nn.Module):
    """Four halvings and a residual block: features [N, F] of images [N, 3, S, S].

    Convolutions 3 x 3 with stride 2 to 24, 48, 96 and 128 channels, each with a group norm (the same in training and
    in eval mode, whatever the batch) and a ReLU, a residual block of two convolutions, then mean and maximum over
    the image side by side: F = 256. About 450,000 parameters; 25 million multiplications for an image of 64 x 64
        pixels.

    Args:
        width: Factor applied to the channels, which are rounded to multiples of 8.
    """

    def __init__(self, width: float = 1.0) -> None:
        super().__init__()
        channels = [max(_GROUPS, round(count * width / _GROUPS) * _GROUPS) for count in _CHANNELS]
        layers: list[nn.Module] = []
        for before, after in zip([3, *channels], channels, strict=False):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False)]
            layers += [nn.GroupNorm(_GROUPS, after), nn.ReLU()]
        self.stem = nn.Sequential(*layers)
        last = channels[-1]
        self.block = nn.Sequential(
            nn.Conv2d(last, last, 3, padding=1, bias=False),
            nn.GroupNorm(_GROUPS, last),
            nn.ReLU(),
            nn.Conv2d(last, last, 3, padding=1, bias=False),
            nn.GroupNorm(_GROUPS, last),
        )
        self.dimension = 2 * last
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")

    def maps(self, images: torch.Tensor) -> torch.Tensor:
        """The last maps, before they are pooled: [N, F / 2, S / 16, S / 16]."""
        maps: torch.Tensor = self.stem(images)
        return torch.relu(maps + self.block(maps))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Features [N, F] of normalized images [N, 3, S, S]."""
        maps = self.maps(images)
        return torch.cat([maps.mean(dim=(2, 3)), maps.amax(dim=(2, 3))], dim=1)
