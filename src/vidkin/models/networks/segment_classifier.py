"""The network of DeepSBD: does a segment of 16 frames hold a transition?"""

from __future__ import annotations

from torch import nn

from vidkin.models.config import EncoderConfig
from vidkin.models.networks.volume_network import VolumeNetwork, scaled

__all__ = ["DeepSBDNetwork"]

_CHANNELS = (96, 256, 384, 384, 256)
_POOL_AFTER = (0, 1, 4)
_HIDDEN = 2048


class DeepSBDNetwork(VolumeNetwork):
    """Segments [B, 3, T, S, S] to logits of their classes, as {none, gradual, sharp}.

    Five 3-D convolutions of 96-256-384-384-256 channels, hidden layers of 2048 and 2048, classes: the widths of
    DeepSBD (Hassanien et al., 2017), whose segments have 16 frames of 112 pixels. What that publication does besides is
    not among our sources and chosen here: the first convolution is 3 x 7 x 7 with stride 2 in space, the others
    3 x 3 x 3; pools of 1 x 2 x 2 after the first and 2 x 2 x 2 after the second and fifth. All of T is kept until the
    second pool, so that a hard cut stays sharp in time.

    The number of frames is fixed: ``config.frames``.

    Args:
        config: Of kind ``deep_sbd``, with mean and std; :func:`vidkin.models.build_model` makes all of it.
    """

    def __init__(self, config: EncoderConfig) -> None:
        layers: list[nn.Module] = []
        before = 3
        for place, after in enumerate(scaled(_CHANNELS, config.width)):
            kernel, stride, padding = ((3, 3, 3), (1, 1, 1), (1, 1, 1))
            if place == 0:
                kernel, stride, padding = ((3, 7, 7), (1, 2, 2), (1, 3, 3))
            layers.append(nn.Conv3d(before, after, kernel, stride, padding, bias=not config.batch_norm))
            if config.batch_norm:
                layers.append(nn.BatchNorm3d(after))
            layers.append(nn.ReLU())
            if place in _POOL_AFTER:
                pool = (1, 2, 2) if place == 0 else (2, 2, 2)
                layers.append(nn.MaxPool3d(pool, pool, ceil_mode=True))
            before = after
        hidden = scaled((_HIDDEN, _HIDDEN), config.width)
        super().__init__(config, nn.Sequential(*layers), hidden=(hidden[0], hidden[1]), mean_over_time=False)
