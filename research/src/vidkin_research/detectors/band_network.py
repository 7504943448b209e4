"""The network that finds transitions in a band: in torch for training, and as files that run without torch."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from vidkin._base.files import PathLike, replace_file
from vidkin._base.registry import import_part
from vidkin.features.sessions import weights_digest
from vidkin.shots.band import (
    BAND_CHANNELS,
    BAND_CONTEXT,
    BAND_LAYERS,
    Probabilities,
    Rows,
    read_weights,
    refuse_unreadable,
)
from vidkin_research.detectors.band import TransitionThresholds, read_thresholds

_FRAMES_PER_PASS = 4096


class TransitionNetwork(nn.Module):
    """Logits [B, T, 2] from features [B, T, C]: hard cut at this frame, and this frame inside a gradual transition.

    Seven convolutions over time with growing dilation on 32 channels, each added to its input: 29,000 parameters. The
    output for a frame depends on 62 frames on either side.

    Args:
        width: Number of channels.
        outputs: Number of logits per frame; after the first two, one for each kind of gradual transition.
        channels: C, number of features: those of the band, or with those between frames (`vidkin.shots.between`).
    """

    def __init__(self, width: int = 32, outputs: int = 2, channels: int = BAND_CHANNELS) -> None:
        super().__init__()
        self.thresholds = TransitionThresholds()
        self.enter = nn.Conv1d(channels, width, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, kernel, padding=kernel // 2 * dilation, dilation=dilation)
            for kernel, dilation in BAND_LAYERS
        )
        self.leave = nn.Conv1d(width, outputs, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Logits [B, T, outputs] of features [B, T, C]."""
        # The logarithm, because distances span orders of magnitude, from slow dissolves to cuts.
        values = torch.log1p(20 * features.clamp(min=-0.049)).transpose(1, 2)
        values = torch.relu(self.enter(values))
        for layer in self.layers:
            values = values + torch.relu(layer(values))
        logits: torch.Tensor = self.leave(values)
        return logits.transpose(1, 2)

    @torch.no_grad()
    def probabilities(self, features: Rows) -> Probabilities:
        """Probabilities [T, outputs] of features [T, C], both NumPy, in blocks to bound memory, which does not change
        the result."""
        self.eval()
        rows = torch.as_tensor(features)
        parts = [torch.zeros(0, self.leave.out_channels)]
        for start in range(0, len(rows), _FRAMES_PER_PASS):
            before = min(start, BAND_CONTEXT)
            block = rows[start - before : start + _FRAMES_PER_PASS + BAND_CONTEXT]
            parts.append(torch.sigmoid(self(block[None]))[0, before : before + _FRAMES_PER_PASS])
        probabilities: Probabilities = torch.cat(parts).numpy()
        return probabilities

    def save(self, path: PathLike) -> None:
        """Write weights and thresholds as a safetensors file, and the network as an ONNX file next to it."""
        write_network(self, path, {"thresholds": asdict(self.thresholds)})

    @classmethod
    def load(cls, path: PathLike) -> TransitionNetwork:
        """Load the network from a file written by :meth:`save`.

        Raises:
            InvalidArgumentError: The file does not hold a transition network.
        """
        with refuse_unreadable(f"{os.fspath(path)}: not a network of transitions"):
            network, metadata = read_network(path)
            network.thresholds = read_thresholds(metadata)
        return network


def write_network(network: TransitionNetwork, path: PathLike, notes: Mapping[str, Any]) -> None:
    """Write the weights as a safetensors file with notes as JSON in its metadata, and FILE.onnx next to it.

    Raises:
        MissingPartError: onnx or onnxscript is not installed.
    """
    from safetensors.torch import save_file

    state = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    with replace_file(path) as temporary:
        save_file(state, os.fspath(temporary), {name: json.dumps(note) for name, note in notes.items()})
    export_network(network, path)


def read_network(path: PathLike) -> tuple[TransitionNetwork, Mapping[str, str]]:
    """Read the network in a safetensors file, in eval mode, and the file's metadata; use it in `refuse_unreadable`."""
    weights, metadata = read_weights(path)
    width, channels = weights["enter.weight"].shape[:2]
    network = TransitionNetwork(width=width, outputs=len(weights["leave.weight"]), channels=channels)
    network.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in weights.items()})
    return network.eval(), metadata


def export_network(network: TransitionNetwork, path: PathLike) -> Path:
    """Write the network, from features [1, T, C] to probabilities [1, T, outputs], as FILE.onnx next to its weights.

    Args:
        network: The network.
        path: The file of its weights, FILE.safetensors; the ONNX file names their digest.

    Returns:
        The ONNX file.

    Raises:
        MissingPartError: onnx or onnxscript is not installed.
    """
    onnx = import_part("onnx", extra="train")
    import_part("onnxscript", extra="train")
    target = Path(path).with_suffix(".onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about its own internals
        exported = torch.onnx.export(
            nn.Sequential(network, nn.Sigmoid()).eval(),
            (torch.zeros(1, 4 * BAND_CONTEXT, network.enter.in_channels),),
            input_names=["features"],
            output_names=["probabilities"],
            dynamic_shapes=[{1: torch.export.Dim("frames", min=1)}],
            dynamo=True,
            verbose=False,
        )
    assert exported is not None  # never None with dynamo
    model = exported.model_proto
    # Drop the source locations of the steps, which are larger than the weights and differ between machines.
    for node in model.graph.node:
        del node.metadata_props[:]
    del model.metadata_props[:]
    state = {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}
    onnx.helper.set_model_props(model, {"weights": weights_digest({}, state)})
    with replace_file(target) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return target
