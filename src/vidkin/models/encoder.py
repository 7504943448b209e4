"""Base classes of encoders, and the clip encoder: frame network, fully connected layer, LSTM."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin.errors import InvalidArgumentError
from vidkin.features import PooledNetwork
from vidkin.features.sessions import resolve_device
from vidkin.models.config import EncoderConfig
from vidkin.models.extractor import CHUNK
from vidkin.models.stored import weights_digest
from vidkin.models.weights import state_arrays


@check_constructor
class Encoder(nn.Module, ABC):
    """A network that embeds images or clips as unit vectors.

    Inputs have values from 0 to 1; the network normalizes them by mean and standard deviation.

    Attributes:
        config: Configuration of the network, with mean and std set (except for kind ``frame_encoder``).
        dimension: D, dimension of the embedding.
        class_names: Classes or labels the network was trained on, if known.
    """

    config: EncoderConfig
    dimension: int

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        mean, std = config.mean, config.std
        if config.kind == "frame_encoder":
            mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        if mean is None or std is None:
            raise InvalidArgumentError("the configuration must include the input's mean and std; use build_model")
        self.config = config
        self.class_names: tuple[str, ...] = ()
        # Not persistent, because the configuration already stores them.
        self.register_buffer("_mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("_std", torch.tensor(std)[:, None, None], persistent=False)

    @abstractmethod
    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Embed images [B, 3, S, S] or clips [B, T, 3, S, S] (``config.takes_clips``) as unit vectors [B, D].

        Args:
            inputs: Images or clips with values from 0 to 1.
            lengths: [B] int64, number of frames in each clip; later frames are padding. None: no clip is padded.
        """

    @abstractmethod
    def head_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the new layers, which get a higher learning rate than a pretrained backbone."""

    def parameter_groups(self, learning_rate: float, *, head_factor: float = 10.0) -> list[dict[str, Any]]:
        """Return parameter groups and learning rates for an optimizer.

        If the backbone is trained, it gets ``learning_rate``, and the layers after it get ``head_factor`` times that
        rate (10 in the paper). If only the head is trained, or there is no backbone, all parameters get
        ``learning_rate``.

        Returns:
            One or two dictionaries with ``params``, ``lr`` and ``name`` (``backbone``, ``head``).
        """
        head = [parameter for parameter in self.head_parameters() if parameter.requires_grad]
        in_head = {id(parameter) for parameter in head}
        rest = [
            parameter for parameter in self.parameters() if parameter.requires_grad and id(parameter) not in in_head
        ]
        if not rest:
            return [{"params": head, "lr": learning_rate, "name": "head"}]
        return [
            {"params": rest, "lr": learning_rate, "name": "backbone"},
            {"params": head, "lr": learning_rate * head_factor, "name": "head"},
        ]

    def normalize(self, images: torch.Tensor) -> torch.Tensor:
        """Normalize images [..., 3, S, S] with values from 0 to 1 by mean and standard deviation."""
        mean, std = self.get_buffer("_mean"), self.get_buffer("_std")
        return (images - mean) / std

    @property
    def square_digest(self) -> str:
        """For kind ``frame_encoder``: digest of the network alone, like that of vidkin's built-in encoder; else ""."""
        return ""

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.get_buffer("_mean").device

    def train(self, mode: bool = True) -> Self:
        """Switch to training or eval mode; a frozen backbone and frozen batch norms stay in eval mode."""
        super().train(mode)
        backbone = getattr(self, "backbone", None)
        if mode and isinstance(backbone, nn.Module):
            if self.config.trainable == "head":
                backbone.eval()
            elif self.config.frozen_batch_norm:
                for part in backbone.modules():
                    # The base class includes timm's batch norms with activation.
                    if isinstance(part, nn.modules.batchnorm._BatchNorm):
                        part.eval()
        return self

    def backbone_features(self, frames: torch.Tensor) -> torch.Tensor:
        """Compute backbone features [N, F] of frames [N, 3, S, S] from 0 to 1; no gradients for a frozen backbone."""
        check_frames("frames", frames, 4, "[N, 3, S, S]", 1)
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.config.trainable == "all"):
            features: torch.Tensor = self.get_submodule("backbone")(self.normalize(frames))
        return features


class BackboneEncoder(Encoder):
    """An encoder whose head turns backbone features into unit vectors."""

    def frame_features(self, frames: torch.Tensor) -> torch.Tensor:
        """Compute the input of :meth:`head` from frames or images with values from 0 to 1; no gradients if the backbone
        is frozen."""
        return self.backbone_features(frames)

    @abstractmethod
    def head(self, features: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Compute unit vectors [B, D] from features."""

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Embed the inputs as unit vectors [B, D] by applying the head to their features."""
        return self.head(self.frame_features(inputs), lengths)


@check_arguments
def model_digest(model: Encoder) -> str:
    """SHA-256 of the configuration and the names and values of all weights; independent of the model's folder."""
    return weights_digest(model.config.to_mapping(), state_arrays(model))


class TorchEncoder:
    """Runs an encoder with torch on NumPy arrays; see :class:`vidkin.models.extractor.EncoderNetwork`.

    Args:
        model: The encoder, which is moved to the device.
        device: ``auto`` (CUDA if available), ``cpu``, ``cuda``, ``cuda:1``.
    """

    def __init__(self, model: Encoder, *, device: str = "cpu") -> None:
        where = resolve_device(device)
        self.config = model.config
        self.dimension = model.dimension
        self.digest = model_digest(model)
        self.square_digest = model.square_digest
        self.batch = CHUNK[where.partition(":")[0]]
        self._model = model.eval().requires_grad_(False).to(where)

    def embed(self, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Embed images [B, 3, S, S] or clips [B, T, 3, S, S] from 0 to 1 as unit vectors [B, D]."""
        return self._run(self._model.embed, inputs)

    def frame_features(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute features [B, F] of frames [B, 3, S, S] from 0 to 1."""
        assert isinstance(self._model, BackboneEncoder)
        return self._run(self._model.frame_features, images)

    def head(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute unit vectors [B, D] of clips from their frame features [B, T, F]."""
        assert isinstance(self._model, BackboneEncoder)
        return self._run(self._model.head, features)

    def _run(self, network: Callable[[torch.Tensor], torch.Tensor], inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            output: NDArray[np.float32] = network(torch.tensor(inputs).to(self._model.device)).float().cpu().numpy()
        return output


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Put a module into eval mode and disable gradients inside the block; both are restored afterward."""
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(training)


def unit(vectors: torch.Tensor) -> torch.Tensor:
    """Scale vectors [..., D] to unit length."""
    return nn.functional.normalize(vectors, dim=-1, eps=1e-12)


def linear(inputs: int, outputs: int) -> nn.Linear:
    """Create a fully connected layer with Xavier-initialized weights and zero bias."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def check_frames(name: str, frames: torch.Tensor, dimensions: int, layout: str, channel: int) -> None:
    """Raise :class:`InvalidArgumentError` unless ``frames`` is floating point with this layout."""
    if frames.ndim != dimensions or frames.shape[channel] != 3 or not frames.is_floating_point():
        raise InvalidArgumentError(
            f"{name} must be {layout} floating point from 0 to 1, got {list(frames.shape)} {frames.dtype}"
        )


def check_features(features: torch.Tensor, length: int, lengths: torch.Tensor | None) -> None:
    """Raise :class:`InvalidArgumentError` unless ``features`` is [B, length] and ``lengths`` is None."""
    if features.ndim != 2 or features.shape[1] != length or lengths is not None:
        raise InvalidArgumentError(
            f"features must be [B, {length}] without lengths, got {list(features.shape)}"
            + ("" if lengths is None else " with lengths")
        )


@check_constructor
class ClipEncoder(BackboneEncoder):
    """Clip encoder: frame network, fully connected layer (Xavier), and the normalized last state of an LSTM.

    ``f(clip) = h_T / ||h_T||`` with ``h_t = LSTM(relu(W phi(frame_t) + b), h_{t-1})`` and frame network phi. This is
    the clip encoder of Radial loss (ICIP), for any frame network. The state is read at each clip's last frame, so
    padding has no effect.

    B clips, T frames, S pixels per side, F features per frame, D = ``lstm`` or ``embedding``.

    Args:
        config: Configuration of kind ``clip``, with mean and std set as by :func:`vidkin.models.build_model`.
        network: The frame network.
    """

    def __init__(self, config: EncoderConfig, network: PooledNetwork) -> None:
        super().__init__(config)
        self.backbone = network.module
        self.feature_dimension = network.dimension
        self.fully_connected = linear(network.dimension, config.hidden)
        self.dropout = nn.Dropout(config.dropout)
        self.lstm = nn.LSTM(config.hidden, config.lstm, batch_first=True)
        self.projection = linear(config.lstm, config.embedding) if config.embedding else nn.Identity()
        self.dimension = config.embedding or config.lstm

    def head(self, features: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Compute unit vectors [B, D] from frame features [B, T, F].

        Args:
            features: Output of :meth:`frame_features`; frames beyond a clip's length are ignored.
            lengths: [B] int64 in [1, T], number of frames in each clip; None: T for all.

        Raises:
            InvalidArgumentError: A shape or a length is invalid.
        """
        if features.ndim != 3 or features.shape[1] == 0 or features.shape[2] != self.feature_dimension:
            raise InvalidArgumentError(
                f"features must be [B, T, {self.feature_dimension}] with at least one frame, got {list(features.shape)}"
            )
        hidden = self.fully_connected(features)
        if self.config.activation == "relu":
            hidden = torch.relu(hidden)
        states, _ = self.lstm(self.dropout(hidden))
        if lengths is None:
            last = states[:, -1]
        else:
            clips, frames = features.shape[:2]
            if tuple(lengths.shape) != (clips,) or lengths.is_floating_point():
                raise InvalidArgumentError(
                    f"lengths must be [{clips}] integers, got {list(lengths.shape)} {lengths.dtype}"
                )
            if not torch.compiler.is_compiling():  # an exported program cannot branch on values
                low, high = int(lengths.min()), int(lengths.max())
                if low < 1 or high > frames:
                    raise InvalidArgumentError(f"lengths must be from 1 to {frames}, got {low} to {high}")
            # An LSTM sees only earlier frames, so the state at a clip's last frame does not depend on the padding.
            position = (lengths.to(states.device) - 1)[:, None, None].expand(-1, 1, states.shape[2])
            last = states.gather(1, position)[:, 0]
        return unit(self.projection(last))

    def forward(self, frames: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Embed clips [B, T, 3, S, S] from 0 to 1 as unit vectors [B, D]; ``lengths`` as in :meth:`head`."""
        check_frames("frames", frames, 5, "[B, T, 3, S, S]", 2)
        features = self.frame_features(frames.flatten(0, 1))
        return self.head(features.reshape(frames.shape[0], frames.shape[1], -1), lengths)

    def embed(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Same as calling the model."""
        return self.forward(inputs, lengths)

    def head_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the fully connected layer, the LSTM and the projection."""
        parts = (self.fully_connected, self.lstm, self.projection)
        return [parameter for part in parts for parameter in part.parameters()]
