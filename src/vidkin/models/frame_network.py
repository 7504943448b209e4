"""Open frame networks by name; a small network that trains on a CPU; and the frame encoder as a model."""

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
    """Small network that computes features [N, F] of images [N, 3, S, S].

    Four 3 x 3 convolutions with stride 2 and 24, 48, 96 and 128 channels, each followed by a group norm (which behaves
    the same in training and eval mode and does not depend on the batch) and a ReLU; a residual block of two
    convolutions; then mean and max pooling over the image, concatenated: F = 256. About 450,000 parameters and
    12 million multiplications for a 64 x 64 image.

    Args:
        width: Factor by which the channels are multiplied; the results are rounded to multiples of 8.
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
        """Compute the last maps before pooling: [N, F / 2, S / 16, S / 16]."""
        maps: torch.Tensor = self.stem(images)
        return torch.relu(maps + self.block(maps))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Compute features [N, F] of normalized images [N, 3, S, S]."""
        maps = self.maps(images)
        return torch.cat([maps.mean(dim=(2, 3)), maps.amax(dim=(2, 3))], dim=1)


class FrameEncoderFeatures(nn.Module):
    """A `FrameEncoder` without its last layer: features [N, F] of images [N, 3, S, S] with values from 0 to 1.

    Args:
        encoder: The encoder; its last layer is removed in place. F is ``widths[-1] * grid^2`` (3,072 by default); S can
            be any size.
    """

    def __init__(self, encoder: FrameEncoder) -> None:
        super().__init__()
        self.dimension = encoder.head.in_features
        encoder.head = nn.Identity()  # type: ignore[assignment]  # its weights are unused and would be saved
        self.encoder = encoder

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Compute features [N, F] of images [N, 3, S, S]."""
        return self.encoder.features(images)

    def maps(self, images: torch.Tensor) -> torch.Tensor:
        """Compute the last maps before averaging over the grid."""
        return self.encoder.maps(images)


def open_frame_network(
    config: EncoderConfig, *, weights: PathLike | Literal["random"] | None, seed: int
) -> PooledNetwork:
    """Open the backbone named in a configuration; its parameters are frozen if only the head is trained.

    Args:
        config: Configuration of the encoder; only ``backbone``, ``width``, ``size`` and ``trainable`` are used.
        weights: As in :func:`vidkin.features.open_pooled_network`. If None, ``small`` is initialized at random, and
            ``vidkin`` with the weights included in the package.
        seed: Seed for random weights.

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
        # Mean 0 and standard deviation 1, because this network normalizes its own input.
        features = FrameEncoderFeatures(encoder)
        network = PooledNetwork(features, features.dimension, config.size, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    elif name.startswith(("timm:", "torchvision:")):
        network = open_pooled_network(name, weights=weights, seed=seed)
    else:
        raise InvalidArgumentError(f"backbone must be small, vidkin, timm:<model> or torchvision:<model>, got {name!r}")
    # Run the network once, so that an unsupported size is reported now rather than in the middle of training.
    try:
        with evaluation_mode(network.module):
            network.module(torch.zeros(1, 3, config.size, config.size))
    except (AssertionError, RuntimeError) as error:
        raise InvalidArgumentError(
            f"backbone {config.backbone} does not accept {config.size} x {config.size} images: {error}"
        ) from error
    network.module.requires_grad_(config.trainable == "all")
    return network


@check_constructor
class FrameEncoderModel(Encoder):
    """A :class:`FrameEncoder` as a model that embeds squares [B, 3, S, S] as unit vectors [B, D].

    Args:
        config: Configuration of kind ``frame_encoder``, from :func:`vidkin.models.build_model`. S is ``size``, D is
            ``embedding`` (128 if that is 0), and ``network`` holds the other settings of
            :class:`FrameEncoderSettings`.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        settings = FrameEncoderSettings()
        table = {"side": config.size, "dimension": config.embedding or settings.dimension}
        settings = FrameEncoderSettings.from_table({**(config.network or {}), **table})
        # On a CPU, convolutions are much faster in channels-last layout.
        self.network = FrameEncoder(settings).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.dimension = settings.dimension

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Embed squares [B, 3, S, S] from 0 to 1 as unit vectors [B, D]."""
        check_frames("frames", frames, 4, "[B, 3, S, S]", 1)
        vectors: torch.Tensor = self.network(frames.contiguous(memory_format=torch.channels_last))
        return vectors

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Same as calling the model; ``lengths`` must be None, because the inputs are single frames."""
        if lengths is not None:
            raise InvalidArgumentError("lengths must be None for single frames")
        return self.forward(inputs)

    @property
    def square_digest(self) -> str:
        """Digest of the network alone, like that of vidkin's built-in encoder."""
        return str(self.network.digest())

    def head_parameters(self) -> list[nn.Parameter]:
        """Return all parameters, since none is pretrained."""
        return list(self.parameters())
