"""3-D convolutional networks that classify clips: base class, DeepSBD, and C3D."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from vidkin._base.arguments import check_constructor
from vidkin.errors import InvalidArgumentError
from vidkin.models.config import EncoderConfig
from vidkin.models.encoder import Encoder, check_frames, unit


class VolumeNetwork(Encoder):
    """Base class of C3D and DeepSBD: convolutions over time and space, two hidden layers, and a classifier.

    B clips, T frames, S pixels per side, D units in the second hidden layer.

    Args:
        config: Configuration with mean, std, ``frames`` and ``size``.
        volume: Network that turns normalized volumes [B, 3, T, S, S] into [B, C, T', S', S'].
        hidden: Numbers of units in the two hidden layers.
        mean_over_time: Average the output of ``volume`` over T', so that T can vary.
    """

    def __init__(
        self,
        config: EncoderConfig,
        volume: nn.Sequential,
        *,
        hidden: tuple[int, int],
        mean_over_time: bool,
    ) -> None:
        super().__init__(config)
        self._mean_over_time = mean_over_time
        self.volume = volume
        with torch.no_grad():
            probe = self._flat(volume.eval()(torch.zeros(1, 3, config.frames, config.size, config.size)))
        volume.train()
        self.fully_connected = nn.Sequential(nn.Linear(probe.shape[1], hidden[0]), nn.ReLU())
        self.fully_connected_2 = nn.Sequential(nn.Linear(hidden[0], hidden[1]), nn.ReLU())
        self.classifier = nn.Linear(hidden[1], config.classes)
        self.dropout = nn.Dropout(config.dropout)
        self.dimension = hidden[1]
        for part in self.modules():
            if isinstance(part, nn.Conv3d | nn.Linear):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
                if part.bias is not None:
                    nn.init.zeros_(part.bias)
        nn.init.xavier_uniform_(self.classifier.weight)

    def forward(self, volumes: torch.Tensor) -> torch.Tensor:
        """Compute logits [B, classes] for volumes [B, 3, T, S, S] from 0 to 1."""
        logits: torch.Tensor = self.classifier(self.dropout(self.hidden_features(volumes)))
        return logits

    def hidden_features(self, volumes: torch.Tensor) -> torch.Tensor:
        """Compute the second hidden layer [B, D], not normalized, for volumes [B, 3, T, S, S] from 0 to 1."""
        check_frames("volumes", volumes, 5, "[B, 3, T, S, S]", 1)
        if not self._mean_over_time and volumes.shape[2] != self.config.frames:
            raise InvalidArgumentError(f"volumes must have {self.config.frames} frames, got {volumes.shape[2]}")
        images = self.normalize(volumes.transpose(1, 2)).transpose(1, 2)
        first = self.fully_connected(self._flat(self.volume(images)))
        second: torch.Tensor = self.fully_connected_2(self.dropout(first))
        return second

    def classify(self, clips: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Compute logits [B, classes] for clips [B, T, 3, S, S] from 0 to 1; ``lengths`` as in :meth:`embed`."""
        return self.forward(self._volumes(clips, lengths))

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Embed clips [B, T, 3, S, S] as unit vectors [B, D]: the normalized second hidden layer.

        Args:
            inputs: Clips with values from 0 to 1.
            lengths: [B], number of frames in each clip; the last frame of a shorter clip is repeated up to T.
        """
        return unit(self.hidden_features(self._volumes(inputs, lengths)))

    def head_parameters(self) -> list[nn.Parameter]:
        """Return all parameters, since none is pretrained."""
        return list(self.parameters())

    def _flat(self, maps: torch.Tensor) -> torch.Tensor:
        return (maps.mean(dim=2) if self._mean_over_time else maps).flatten(1)

    @staticmethod
    def _volumes(clips: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
        check_frames("clips", clips, 5, "[B, T, 3, S, S]", 2)
        if lengths is not None:
            if tuple(lengths.shape) != clips.shape[:1] or int(lengths.min()) < 1:
                raise InvalidArgumentError(
                    f"lengths must be [{len(clips)}] integers of at least 1, got {lengths.tolist()}"
                )
            position = torch.arange(clips.shape[1], device=clips.device)[None]
            position = torch.minimum(position, lengths.to(clips.device)[:, None] - 1)
            clips = clips[torch.arange(len(clips), device=clips.device)[:, None], position]
        return clips.transpose(1, 2)


def scale_channels(channels: Sequence[int], width: float) -> list[int]:
    """Multiply channel counts by a factor and round to multiples of 8."""
    return [max(8, round(count * width / 8) * 8) for count in channels]


def convolutions(
    config: EncoderConfig,
    channels: Sequence[int],
    pool_after: Sequence[int],
    *,
    first: nn.Conv3d | None = None,
) -> nn.Sequential:
    """Build a stack of 3 x 3 x 3 convolutions with ReLU, max pooling and, if configured, batch norms.

    Args:
        config: Configuration of the network; only ``width`` and ``batch_norm`` are used.
        channels: Output channels of each convolution, before multiplying by ``width``.
        pool_after: Indices of convolutions followed by pooling: 1 x 2 x 2 after the first, 2 x 2 x 2 after the others,
            with sizes rounded up.
        first: Layer that replaces the first convolution.
    """
    layers: list[nn.Module] = []
    before = 3
    for position, after in enumerate(scale_channels(channels, config.width)):
        bias = not config.batch_norm
        if position == 0 and first is not None:
            layers.append(first)
        else:
            layers.append(nn.Conv3d(before, after, 3, padding=1, bias=bias))
        if config.batch_norm:
            layers.append(nn.BatchNorm3d(after))
        layers.append(nn.ReLU())
        if position in pool_after:
            pool = (1, 2, 2) if position == 0 else (2, 2, 2)
            layers.append(nn.MaxPool3d(pool, pool, ceil_mode=True))
        before = after
    return nn.Sequential(*layers)


_SEGMENT_CHANNELS = (96, 256, 384, 384, 256)

_SEGMENT_POOLS = (0, 1, 4)

_SEGMENT_HIDDEN = 2048


@check_constructor
class DeepSBDNetwork(VolumeNetwork):
    """DeepSBD (Hassanien et al., 2017): classifies segments [B, 3, T, S, S], for example as none, gradual or sharp.

    As published: five 3-D convolutions with 96-256-384-384-256 channels, two hidden layers of 2048 units, and the
    classifier; segments there have 16 frames of 112 x 112 pixels. The sources do not specify the other sizes, which are
    our choice: the first convolution is 3 x 7 x 7 with spatial stride 2, the others are 3 x 3 x 3; pooling is 1 x 2 x 2
    after the first and 2 x 2 x 2 after the second and fifth. T is not reduced before the second pooling, so that a hard
    cut stays sharp in time.

    The number of frames is fixed: ``config.frames``.

    Args:
        config: Configuration of kind ``deep_sbd``, with mean and std set as by :func:`vidkin.models.build_model`.
    """

    def __init__(self, config: EncoderConfig) -> None:
        (hidden,) = scale_channels([_SEGMENT_HIDDEN], config.width)
        channels = scale_channels(_SEGMENT_CHANNELS[:1], config.width)[0]
        first = nn.Conv3d(3, channels, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=not config.batch_norm)
        volume = convolutions(config, _SEGMENT_CHANNELS, _SEGMENT_POOLS, first=first)
        super().__init__(config, volume, hidden=(hidden, hidden), mean_over_time=False)


# Channels of the convolutions, and indices of the convolutions followed by pooling.
_VIDEO_CHANNELS = (64, 128, 256, 256, 512, 512, 512, 512)

_VIDEO_POOLS = (0, 1, 3, 5, 7)

_VIDEO_HIDDEN = 4096


@check_constructor
class VideoNetwork(VolumeNetwork):
    """C3D (Tran et al., ICCV 2015): classifies clips [B, 3, T, S, S]; the embedding is the second hidden layer.

    Eight 3 x 3 x 3 convolutions with 64-128-256-256-512-512-512-512 channels and ReLU, pooling of 1 x 2 x 2 after the
    first and 2 x 2 x 2 after the second, fourth, sixth and eighth (sizes rounded up), two hidden layers of 4096 units,
    and the classifier. With 16 frames of 112 x 112 pixels and width 1, all sizes match the publication (the last maps
    are 4 x 4); for longer clips the output is averaged over time. Without ``batch_norm``, training on small datasets is
    slow.

    Args:
        config: Configuration of kind ``c3d``, with mean and std set as by :func:`vidkin.models.build_model`.
    """

    def __init__(self, config: EncoderConfig) -> None:
        (hidden,) = scale_channels([_VIDEO_HIDDEN], config.width)
        volume = convolutions(config, _VIDEO_CHANNELS, _VIDEO_POOLS)
        super().__init__(config, volume, hidden=(hidden, hidden), mean_over_time=True)
