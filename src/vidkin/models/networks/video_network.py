"""The 3-D convolutional baseline in the layout of C3D."""

from __future__ import annotations

from vidkin.models.config import EncoderConfig
from vidkin.models.networks.volume_network import VolumeNetwork, convolutions, scale_channels

__all__ = ["VideoNetwork"]

# Channels of the convolutions, and the convolutions followed by a pool.
_VIDEO_CHANNELS = (64, 128, 256, 256, 512, 512, 512, 512)
_VIDEO_POOLS = (0, 1, 3, 5, 7)
_VIDEO_HIDDEN = 4096


class VideoNetwork(VolumeNetwork):
    """C3D (Tran et al., ICCV 2015): logits of clips [B, 3, T, S, S]; the embedding is its second hidden layer.

    Eight convolutions 3 x 3 x 3 of 64-128-256-256-512-512-512-512 channels with a ReLU, a pool of 1 x 2 x 2 after the
    first and of 2 x 2 x 2 after the second, fourth, sixth and eighth (sizes rounded up), hidden layers of 4096 and
    4096, classes. With 16 frames of 112 pixels and width 1 these are the sizes of the publication (the last maps are
    4 x 4); with other lengths the remaining time is averaged. Small collections train slowly without ``batch_norm``.

    Args:
        config: Configuration of kind ``c3d``, with mean and std, as :func:`vidkin.models.build_model` completes it.
    """

    def __init__(self, config: EncoderConfig) -> None:
        (hidden,) = scale_channels([_VIDEO_HIDDEN], config.width)
        volume = convolutions(config, _VIDEO_CHANNELS, _VIDEO_POOLS)
        super().__init__(config, volume, hidden=(hidden, hidden), mean_over_time=True)
