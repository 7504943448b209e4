"""A small temporal network that reads transitions from the band of a video's self-similarity."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import resources

import torch
from torch import nn

from vidkin._base.plain_values import parse_json
from vidkin.errors import InvalidArgumentError
from vidkin.shots.band.features import BAND_CHANNELS

__all__ = ["TransitionNetwork", "TransitionThresholds", "one_thread", "read_network", "refuse_unreadable"]

PathLike = str | os.PathLike[str]

# (kernel, dilation) of the layers: together they see 64 frames to each side.
_LAYERS = ((5, 1), (5, 1), (5, 2), (3, 4), (3, 8), (3, 16), (3, 24))
_CONTEXT = sum((kernel // 2) * dilation for kernel, dilation in _LAYERS)
_FRAMES_A_PASS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionThresholds:
    """Least probabilities that count, fitted on composed videos and stored with the weights.

    Attributes:
        hard: Least probability of a hard cut at its frame.
        gradual: Least probability of a frame inside a gradual transition.
    """

    hard: float = 0.5
    gradual: float = 0.5

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0 < value < 1:
                raise InvalidArgumentError(f"threshold {name} must be above 0 and below 1, got {value}")


class TransitionNetwork(nn.Module):
    """Logits [B, T, 2] from band features [B, T, 48]: hard cut at this frame, and this frame inside a gradual
    transition.

    Seven convolutions over time with growing dilation on 32 channels, each added to its input: 29,000 parameters,
    about 4 microseconds per frame. A frame's answer depends on 62 frames to each side.

    Args:
        width: Number of channels.
        outputs: Number of logits per frame; after the first two, one for each kind of gradual transition.
    """

    def __init__(self, width: int = 32, outputs: int = 2) -> None:
        super().__init__()
        self.thresholds = TransitionThresholds()
        self.enter = nn.Conv1d(BAND_CHANNELS, width, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, kernel, padding=kernel // 2 * dilation, dilation=dilation)
            for kernel, dilation in _LAYERS
        )
        self.leave = nn.Conv1d(width, outputs, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Logits [B, T, 2] of features [B, T, 48]."""
        # Distances span orders of magnitude: a slow dissolve beside a cut.
        values = torch.log1p(20 * features.clamp(min=-0.049)).transpose(1, 2)
        values = torch.relu(self.enter(values))
        for layer in self.layers:
            values = values + torch.relu(layer(values))
        logits: torch.Tensor = self.leave(values)
        return logits.transpose(1, 2)

    @torch.no_grad()
    def probabilities(self, features: torch.Tensor) -> torch.Tensor:
        """Probabilities [T, 2] of features [T, 48], in blocks to bound memory; the blocks do not change the result."""
        self.eval()
        parts = []
        with one_thread():
            for start in range(0, len(features), _FRAMES_A_PASS):
                before = min(start, _CONTEXT)
                block = features[start - before : start + _FRAMES_A_PASS + _CONTEXT]
                parts.append(torch.sigmoid(self(block[None]))[0, before : before + _FRAMES_A_PASS])
        return torch.cat(parts) if parts else torch.zeros(0, self.leave.out_channels)

    def save(self, path: PathLike) -> None:
        """Write weights and thresholds as one safetensors file."""
        from safetensors.torch import save_file

        save_file(
            {name: value.contiguous() for name, value in self.state_dict().items()},
            os.fspath(path),
            metadata={"thresholds": json.dumps(asdict(self.thresholds))},
        )

    @classmethod
    def load(cls, path: PathLike | None = None) -> TransitionNetwork:
        """Load the network from a file written by :meth:`save`; None is the bundled network.

        Raises:
            InvalidArgumentError: The file does not hold a transition network.
        """
        shipped = resources.files("vidkin.shots").joinpath("data/band.safetensors")
        file = str(shipped) if path is None else os.fspath(path)
        with refuse_unreadable(f"{file}: not a network of transitions"):
            network, metadata = read_network(file)
            network.thresholds = TransitionThresholds(**parse_json(metadata["thresholds"]))
        return network


def read_network(
    path: PathLike, *, outputs: int | None = None
) -> tuple[TransitionNetwork, Mapping[str, str]]:
    """The network in a safetensors file, in eval mode, and the file's metadata; use it in `refuse_unreadable`.

    Args:
        path: The file.
        outputs: Number of logits per frame that it must have; None takes that of the file.
    """
    from safetensors import safe_open

    with safe_open(os.fspath(path), framework="pt") as file:
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata() or {}
    for name, tensor in state.items():
        if not bool(tensor.isfinite().all()):
            raise InvalidArgumentError(
                f"{os.fspath(path)}: {name} has values that are not finite; train it again"
            )
    network = TransitionNetwork(
        width=state["enter.weight"].shape[0], outputs=outputs or state["leave.weight"].shape[0]
    )
    network.load_state_dict(state)
    return network.eval(), metadata


@contextmanager
def refuse_unreadable(message: str) -> Iterator[None]:
    """Raise InvalidArgumentError with this message if the file read inside is damaged or something else."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{message}: {' '.join(str(error).split())}") from error


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread for steps so small that several would wait for each other, hundreds of times longer on a busy
    machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
