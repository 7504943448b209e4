"""Motion as the input of an image network: the channels are differences of consecutive gray frames."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vidkin.media.frames import LUMINANCE

__all__ = ["stack_of_differences", "widen_input"]

# Luma of ITU-R BT.601.


def stack_of_differences(clips: Tensor) -> Tensor:
    """Differences of consecutive gray frames: [B, T, 3, S, S] from 0 to 1 to [B, T - 1, S, S] from -1 to 1.

    A still clip gives zeros. Source: Fernando et al., "Self-supervised video representation learning with odd-one-out
    networks", CVPR 2017; "In defense of the triplet loss for visual recognition" uses 6 frames of 2 s.
    """
    luma = torch.tensor(LUMINANCE, dtype=clips.dtype, device=clips.device)
    gray = (clips * luma[:, None, None]).sum(dim=2)
    return gray[:, 1:] - gray[:, :-1]


@torch.no_grad()
def widen_input(network: nn.Module, channels: int) -> None:
    """Give the first convolution of a network this many input channels instead of three.

    Its weights are repeated over the new channels and scaled by 3 / channels, so that the sum of its inputs keeps its
    magnitude and pretrained weights stay useful.

    Args:
        network: The network, changed in place.
        channels: Number of input channels, at least 1.
    """
    first = next(part for part in network.modules() if isinstance(part, nn.Conv2d) and part.in_channels == 3)
    weight = first.weight
    first.weight = nn.Parameter(
        weight[:, torch.arange(channels, device=weight.device) % 3] * (3 / channels),
        requires_grad=weight.requires_grad,
    )
    first.in_channels = channels
