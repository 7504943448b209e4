"""The network of DeepSBD: does a segment of 16 frames hold a transition?"""

from __future__ import annotations

from torch import nn

from vidkin.models.config import EncoderConfig
from vidkin.models.networks.volume_network import VolumeNetwork, convolutions, scale_channels

__all__ = ["DeepSBDNetwork"]

_SEGMENT_CHANNELS = (96, 256, 384, 384, 256)
_SEGMENT_POOLS = (0, 1, 4)
_SEGMENT_HIDDEN = 2048


class DeepSBDNetwork(VolumeNetwork):
    """Logits of the classes of segments [B, 3, T, S, S], such as {none, gradual, sharp}.

    Five 3-D convolutions with 96-256-384-384-256 channels, two hidden layers of 2048 units, and the classes: the
    widths of DeepSBD (Hassanien et al., 2017), whose segments have 16 frames of 112 pixels. The sources do not give
    the rest, which was chosen here: the first convolution is 3 x 7 x 7 with stride 2 in space, the others 3 x 3 x 3;
    pools of 1 x 2 x 2 after the first and 2 x 2 x 2 after the second and fifth. T is not reduced before the second
    pool, so that a hard cut stays sharp in time.

    The number of frames is fixed: ``config.frames``.

    Args:
        config: Configuration of kind ``deep_sbd``, with mean and std, as :func:`vidkin.models.build_model` completes
            it.
    """

    def __init__(self, config: EncoderConfig) -> None:
        (hidden,) = scale_channels([_SEGMENT_HIDDEN], config.width)
        channels = scale_channels(_SEGMENT_CHANNELS[:1], config.width)[0]
        first = nn.Conv3d(3, channels, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=not config.batch_norm)
        volume = convolutions(config, _SEGMENT_CHANNELS, _SEGMENT_POOLS, first=first)
        super().__init__(config, volume, hidden=(hidden, hidden), mean_over_time=False)
