"""The 3-D convolutional baseline in the layout of C3D."""

from __future__ import annotations

from torch import nn

from vidkin.models.config import EncoderConfig
from vidkin.models.networks.volume_network import VolumeNetwork, scaled

__all__ = ["VideoNetwork"]

# Channels of the convolutions, and after which of them a pool stands.
_CHANNELS = (64, 128, 256, 256, 512, 512, 512, 512)
_POOL_AFTER = (0, 1, 3, 5, 7)
_HIDDEN = 4096


class VideoNetwork(VolumeNetwork):
    """C3D (Tran et al., ICCV 2015): [B, 3, T, S, S] to logits; the embedding is its second hidden layer.

    Eight convolutions 3 x 3 x 3 of 64-128-256-256-512-512-512-512 channels with a ReLU, a pool of 1 x 2 x 2 after the
    first and of 2 x 2 x 2 after the second, fourth, sixth and eighth (sizes rounded up), hidden layers of 4096 and
    4096, classes. With 16 frames of 112 pixels and width 1 these are the sizes of the publication (the last maps are
    4 x 4); with other lengths what is left of the time is averaged. ``batch_norm`` puts one after each convolution,
    without which small collections train slowly.

    Args:
        config: Of kind ``c3d``, with mean and std; :func:`vidkin.models.build_model` makes all of it.
    """

    def __init__(self, config: EncoderConfig) -> None:
        layers: list[nn.Module] = []
        before = 3
        for place, after in enumerate(scaled(_CHANNELS, config.width)):
            layers.append(nn.Conv3d(before, after, 3, padding=1, bias=not config.batch_norm))
            if config.batch_norm:
                layers.append(nn.BatchNorm3d(after))
            layers.append(nn.ReLU())
            if place in _POOL_AFTER:
                kernel = (1, 2, 2) if place == 0 else (2, 2, 2)
                layers.append(nn.MaxPool3d(kernel, kernel, ceil_mode=True))
            before = after
        hidden = scaled((_HIDDEN, _HIDDEN), config.width)
        super().__init__(config, nn.Sequential(*layers), hidden=(hidden[0], hidden[1]), mean_over_time=True)
