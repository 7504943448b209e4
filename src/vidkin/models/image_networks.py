"""Image encoders: a frame network with a fully connected layer, and the deep ranking network."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from vidkin._base.arguments import check_constructor
from vidkin.errors import InvalidArgumentError
from vidkin.features import PooledNetwork
from vidkin.models.config import EncoderConfig
from vidkin.models.encoder import BackboneEncoder, check_features, linear, unit


@check_constructor
class ImageEncoder(BackboneEncoder):
    """Image encoder: frame network and fully connected layer (Xavier), normalized; the clip encoder without its LSTM.

    ``f(image) = g / ||g||`` with ``g = W phi(image) + b``; if ``embedding`` is set, a ReLU and another linear layer
    follow. B images, S pixels per side, F features per image, D = ``hidden`` or ``embedding``.

    Args:
        config: Configuration of kind ``image``, with mean and std set as by :func:`vidkin.models.build_model`.
        network: The frame network.
    """

    def __init__(self, config: EncoderConfig, network: PooledNetwork) -> None:
        super().__init__(config)
        self.backbone = network.module
        self.feature_dimension = network.dimension
        self.fully_connected = linear(network.dimension, config.hidden)
        self.dropout = nn.Dropout(config.dropout)
        self.projection = linear(config.hidden, config.embedding) if config.embedding else nn.Identity()
        self.dimension = config.embedding or config.hidden

    def head(self, features: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Compute unit vectors [B, D] from features [B, F]; ``lengths`` must be None, because the inputs are images."""
        check_features(features, self.feature_dimension, lengths)
        hidden = self.dropout(self.fully_connected(features))
        if self.config.embedding:
            hidden = torch.relu(hidden)
        return unit(self.projection(hidden))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Embed images [B, 3, S, S] from 0 to 1 as unit vectors [B, D]."""
        return self.head(self.frame_features(frames))

    def head_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the fully connected layer and the projection."""
        return [*self.fully_connected.parameters(), *self.projection.parameters()]


# Keeps the gradient of uniform blocks finite.
_EPSILON = 1e-6


class LocalNormalization(nn.Module):
    """Normalizes maps [B, C, H, W] to zero mean and unit length within the block around each position.

    ``y_i = (x_i - m_i) / sqrt(sum over the block of (x_b - m_i)^2 + 1e-6)``, where m_i is the mean of the
    ``side`` x ``side`` block around i; at the border only the part of the block inside the map counts. The result is
    almost invariant to adding a constant to a map or scaling it. There are no parameters.

    Args:
        side: Side of the block, odd, at least 3.

    Raises:
        InvalidArgumentError: ``side`` is even or below 3.

    Source: Wang et al., CVPR 2014, supplement, equation 6, which does not specify the block size.
    """

    def __init__(self, side: int) -> None:
        super().__init__()
        if side < 3 or side % 2 == 0:
            raise InvalidArgumentError(f"side must be an odd number of at least 3, got {side}")
        self.side = side

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Normalize maps [B, C, H, W]."""
        # Subtract the mean of the whole map first, to lose less precision when squaring.
        centered = maps - maps.mean(dim=(2, 3), keepdim=True)
        mean = self._block_means(centered)
        count = self._block_means(torch.ones_like(centered), is_count=True)
        squares = (self._block_means(centered.square()) - mean.square()).clamp(min=0.0) * count
        return (centered - mean) / torch.sqrt(squares + _EPSILON)

    def _block_means(self, maps: torch.Tensor, *, is_count: bool = False) -> torch.Tensor:
        """Average over the part of each block inside the map; if ``is_count``, sum instead, to count cells of ones."""
        means = functional.avg_pool2d(maps, self.side, stride=1, padding=self.side // 2, count_include_pad=is_count)
        return means * self.side**2 if is_count else means

    def extra_repr(self) -> str:
        return f"side={self.side}"


_SUBSAMPLING = (4, 8)


class LowResolutionPath(nn.Module):
    """Shallow path of deep ranking: subsampling, a convolution and max pooling turn [B, 3, S, S] into [B, F].

    The supplement of the publication does not specify the kernel, stride and pooling of the shallow paths. The 8 x 8
    kernel with stride 4 and the 96 channels follow secondary sources; the pooling is our choice. All are arguments.

    Args:
        size: S, side of the input.
        subsampling: Factor by which the image is downsampled, by averaging (225 pixels to 57 by 4, to 29 by 8).
        channels: Number of output channels of the convolution.
        kernel: Side of the convolution kernel.
        stride: Stride of the convolution.
        pool: Side and stride of the max pooling; reduced to the map size if the maps are smaller.
        local_normalization: Block side of the :class:`LocalNormalization` before pooling; 0: no normalization.
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
                f"size must be at least {subsampling * (kernel - 1) + 1}, so that the image subsampled {subsampling}x "
                f"is not smaller than the {kernel} x {kernel} kernel, got {size}"
            )
        self.convolution = nn.Conv2d(3, channels, kernel, stride)
        maps = (self.side - kernel) // stride + 1
        self.normalization = LocalNormalization(local_normalization) if local_normalization else nn.Identity()
        self.pool = nn.MaxPool2d(min(pool, maps), ceil_mode=True)
        self.dimension = channels * (-(-maps // min(pool, maps))) ** 2

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Compute vectors [B, F] from normalized images [B, 3, S, S]."""
        small = functional.adaptive_avg_pool2d(images, self.side)
        maps: torch.Tensor = self.pool(self.normalization(torch.relu(self.convolution(small))))
        return maps.flatten(1)


@check_constructor
class DeepRankingNetwork(BackboneEncoder):
    """Deep ranking network: embeds images [B, 3, S, S] as unit vectors [B, D] with three paths.

    The paths are a frame network (similar to AlexNet in the publication) and two :class:`LowResolutionPath` at a
    quarter and an eighth of the resolution. Their outputs are normalized and concatenated; a linear layer follows,
    whose output is normalized.

    Args:
        config: Configuration of kind ``deep_ranking``, with mean and std; D is ``embedding``, or ``hidden`` if
            ``embedding`` is 0.
        network: The frame network of the deep path.

    Source: Wang et al., CVPR 2014.
    """

    def __init__(self, config: EncoderConfig, network: PooledNetwork) -> None:
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
        """Concatenate the unit vectors of the three paths: [N, F] for images [N, 3, S, S] from 0 to 1."""
        return self.join_paths(frames, self.backbone_features(frames))

    def join_paths(self, frames: torch.Tensor, deep: torch.Tensor) -> torch.Tensor:
        """Same as :meth:`frame_features`, given the deep path's features [N, F'], which can be cached if the deep path
        is frozen."""
        images = self.normalize(frames)
        return torch.cat([unit(part) for part in (deep, *(path(images) for path in self.shallow))], dim=1)

    def head(self, features: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Compute unit vectors [B, D] from the concatenated paths [B, F]; ``lengths`` must be None."""
        check_features(features, self.feature_dimension, lengths)
        return unit(self.linear(self.dropout(features)))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Embed images [B, 3, S, S] from 0 to 1 as unit vectors [B, D]."""
        return self.head(self.frame_features(frames))

    def head_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the shallow paths and the linear layer."""
        return [parameter for part in (self.shallow, self.linear) for parameter in part.parameters()]
