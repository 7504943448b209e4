"""Frame networks: opening them by name, a small network that trains on a CPU, and the frame encoder as a model."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from vidkin._base.arguments import check_constructor
from vidkin._base.files import PathLike
from vidkin.errors import InvalidArgumentError
from vidkin.features import PooledNetwork, open_pooled_network
from vidkin.features.frame_encoder import FrameEncoder, FrameEncoderSettings, load_frame_encoder
from vidkin.models.config import PLAIN_MEAN, PLAIN_STD, EncoderConfig
from vidkin.models.encoder import Encoder, check_frames, evaluation_mode
from vidkin.models.randomness import seeded
from vidkin.models.weights import load_weights

_CHANNELS = (24, 48, 96, 128)

_GROUPS = 8


@check_constructor
class SmallNetwork(nn.Module):
    """A small network: features [N, F] of images [N, 3, S, S].

    Four 3 x 3 convolutions with stride 2 to 24, 48, 96 and 128 channels, each with a group norm (which is the same in
    training and eval mode and independent of the batch) and a ReLU; a residual block of two convolutions; then the
    concatenated mean and maximum over the image: F = 256. About 450,000 parameters; 12 million multiplications for an
    image of 64 x 64 pixels.

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
        """The last maps before pooling: [N, F / 2, S / 16, S / 16]."""
        maps: torch.Tensor = self.stem(images)
        return torch.relu(maps + self.block(maps))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Features [N, F] of normalized images [N, 3, S, S]."""
        maps = self.maps(images)
        return torch.cat([maps.mean(dim=(2, 3)), maps.amax(dim=(2, 3))], dim=1)


class FrameEncoderFeatures(nn.Module):
    """A `FrameEncoder` without its last layer, as a frame network: features [N, F] of images [N, 3, S, S] in 0..1.

    Args:
        encoder: The encoder, whose last layer is removed. F is ``widths[-1] * grid^2``, 3,072 by default; S can be any
            size.
    """

    def __init__(self, encoder: FrameEncoder) -> None:
        super().__init__()
        self.dimension = encoder.head.in_features
        encoder.head = nn.Identity()  # type: ignore[assignment]  # unused weights would be stored
        self.encoder = encoder

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Features [N, F] of images [N, 3, S, S]."""
        return self.encoder.features(images)

    def maps(self, images: torch.Tensor) -> torch.Tensor:
        """The last maps before averaging over the grid."""
        return self.encoder.maps(images)


def open_frame_network(
    config: EncoderConfig, *, weights: PathLike | Literal["random"] | None, seed: int
) -> PooledNetwork:
    """Open the backbone of a configuration; its parameters are frozen if only the head is trained.

    Args:
        config: Configuration of the encoder; ``backbone``, ``width``, ``size`` and ``trainable`` are used.
        weights: Weights as in :func:`vidkin.features.open_pooled_network`; without a safetensors file ``small`` starts
            from random weights and ``vidkin`` from the weights included in the package.
        seed: Seed of random weights.

    Raises:
        InvalidArgumentError: The name is unknown, or the network does not accept this size.
        WeightsUnavailableError: No weights were passed, and they cannot be downloaded.
    """
    name = config.backbone
    if name == "small":
        with seeded(seed):
            module = SmallNetwork(config.width)
        if weights is not None and weights != "random":
            load_weights(module, weights, label="backbone 'small'")
        network = PooledNetwork(module, module.dimension, config.size, PLAIN_MEAN, PLAIN_STD)
    elif name == "vidkin":
        if weights == "random":
            with seeded(seed):
                encoder = FrameEncoder()
        else:
            encoder = load_frame_encoder(weights)
        # Mean 0 and standard deviation 1, because this network normalizes its input itself.
        features = FrameEncoderFeatures(encoder)
        network = PooledNetwork(features, features.dimension, config.size, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    elif name.startswith(("timm:", "torchvision:")):
        network = open_pooled_network(name, weights=weights, seed=seed)
    else:
        raise InvalidArgumentError(f"backbone must be small, vidkin, timm:<model> or torchvision:<model>, got {name!r}")
    # Fails now rather than in the middle of training if the network does not accept this size.
    try:
        with evaluation_mode(network.module):
            network.module(torch.zeros(1, 3, config.size, config.size))
    except (AssertionError, RuntimeError) as error:
        raise InvalidArgumentError(
            f"backbone {config.backbone} does not accept images of {config.size} x {config.size} pixels: {error}"
        ) from error
    network.module.requires_grad_(config.trainable == "all")
    return network


@check_constructor
class FrameEncoderModel(Encoder):
    """A :class:`FrameEncoder` as a model: unit vectors [B, D] of squares [B, 3, S, S].

    Args:
        config: Configuration of kind ``frame_encoder``, as :func:`vidkin.models.build_model` completes it. S is
            ``size``, D is ``embedding`` (0: 128), and ``network`` holds the other settings of
            :class:`FrameEncoderSettings`.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        settings = FrameEncoderSettings()
        table = {"side": config.size, "dimension": config.embedding or settings.dimension}
        settings = FrameEncoderSettings.from_table({**(config.network or {}), **table})
        # Convolutions are much faster on a CPU with channels last.
        self.network = FrameEncoder(settings).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.dimension = settings.dimension

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Unit vectors [B, D] of squares [B, 3, S, S] from 0 to 1."""
        check_frames("frames", frames, 4, "[B, 3, S, S]", 1)
        vectors: torch.Tensor = self.network(frames.contiguous(memory_format=torch.channels_last))
        return vectors

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Same as calling the model; ``lengths`` must be None, because images have no length."""
        if lengths is not None:
            raise InvalidArgumentError("lengths must be None for single frames")
        return self.forward(inputs)

    @property
    def square_digest(self) -> str:
        """Digest of only the network, like that of vidkin's own encoder."""
        return str(self.network.digest())

    def head_parameters(self) -> list[nn.Parameter]:
        """All parameters, since none is pretrained."""
        return list(self.parameters())
