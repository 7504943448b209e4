"""The deep ranking network: one deep path and two shallow ones that see less detail."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from vidkin.errors import InvalidArgumentError
from vidkin.models.config import EncoderConfig
from vidkin.models.networks.encoder import Encoder, check_features, linear, unit
from vidkin.models.networks.frame_network import FrameNetwork
from vidkin.models.networks.local_normalization import LocalNormalization

__all__ = ["DeepRankingNetwork", "LowResolutionPath"]

_SUBSAMPLING = (4, 8)


class LowResolutionPath(nn.Module):
    """Vectors [B, F] of images [B, 3, S, S]: subsampling, one convolution, one pool.

    The kernel, stride and pool of the publication's shallow paths are not in its supplement; 8 x 8 with stride 4 and
    96 maps follow secondary sources, the pool was chosen here. All are parameters.

    Args:
        size: S, side of the input.
        subsampling: Factor by which the image is averaged down (225 pixels: 57 with 4, 29 with 8).
        channels: Number of maps.
        kernel: Side of the convolution's kernel.
        stride: Stride of the convolution.
        pool: Side and stride of the maximum pool; reduced to the size of the maps if they are smaller.
        local_normalization: Block side of the :class:`LocalNormalization` before the pool; 0: none.
    """

    def __init__(
        self,
        size: int,
        subsampling: int,
        *,
        channels: int = 96,
        kernel: int = 8,
        stride: int = 4,
        pool: int = 3,
        local_normalization: int = 0,
    ) -> None:
        super().__init__()
        self.side = -(-size // subsampling)
        if self.side < kernel:
            raise InvalidArgumentError(
                f"size must be at least {subsampling * (kernel - 1) + 1}, so that subsampled {subsampling}x it holds a "
                f"convolution of {kernel}, got {size}"
            )
        self.convolution = nn.Conv2d(3, channels, kernel, stride)
        maps = (self.side - kernel) // stride + 1
        self.normalization = LocalNormalization(local_normalization) if local_normalization else nn.Identity()
        self.pool = nn.MaxPool2d(min(pool, maps), ceil_mode=True)
        self.dimension = channels * (-(-maps // min(pool, maps))) ** 2

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Vectors [B, F] of normalized images [B, 3, S, S]."""
        small = functional.adaptive_avg_pool2d(images, self.side)
        maps: torch.Tensor = self.pool(self.normalization(torch.relu(self.convolution(small))))
        return maps.flatten(1)


class DeepRankingNetwork(Encoder):
    """Unit vectors [B, D] of images [B, 3, S, S] from three paths (Wang et al., CVPR 2014).

    A frame network (AlexNet in spirit) and two :class:`LowResolutionPath` at a quarter and an eighth of the size. Each
    path's vector is scaled to length 1; the three are concatenated and go through a linear layer, whose output is
    scaled to length 1.

    Args:
        config: Configuration of kind ``deep_ranking``, with mean and std; D is ``embedding``, or ``hidden`` if that is
            0.
        network: The frame network of the deep path.
    """

    def __init__(self, config: EncoderConfig, network: FrameNetwork) -> None:
        super().__init__(config)
        self.backbone = network.module
        self.shallow = nn.ModuleList(
            LowResolutionPath(config.size, factor, local_normalization=config.local_normalization)
            for factor in _SUBSAMPLING
        )
        lengths = [path.dimension for path in self.shallow if isinstance(path, LowResolutionPath)]
        self.feature_dimension = network.dimension + sum(lengths)
        self.dimension = config.embedding or config.hidden
        self.linear = linear(self.feature_dimension, self.dimension)
        self.dropout = nn.Dropout(config.dropout)

    def frame_features(self, frames: torch.Tensor) -> torch.Tensor:
        """The concatenated vectors of the three paths, each of length 1: [N, F] of images [N, 3, S, S] from 0 to 1."""
        return self.join_paths(frames, self.backbone_features(frames))

    def join_paths(self, frames: torch.Tensor, deep: torch.Tensor) -> torch.Tensor:
        """Same as :meth:`frame_features` for given features of the deep path [N, F']: a frozen path is computed only
        once."""
        images = self.normalize(frames)
        return torch.cat([unit(part) for part in (deep, *(path(images) for path in self.shallow))], dim=1)

    def head(self, features: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Unit vectors [B, D] of the concatenated paths [B, F]; ``lengths`` must be None."""
        check_features(features, self.feature_dimension, lengths)
        return unit(self.linear(self.dropout(features)))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Unit vectors [B, D] of images [B, 3, S, S] from 0 to 1."""
        return self.head(self.frame_features(frames))

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Same as calling the model; ``lengths`` must be None."""
        return self.head(self.frame_features(inputs), lengths)

    def head_parameters(self) -> list[nn.Parameter]:
        """Parameters of the shallow paths and the linear layer."""
        return [parameter for part in (self.shallow, self.linear) for parameter in part.parameters()]
