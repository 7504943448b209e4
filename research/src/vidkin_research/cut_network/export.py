"""Export a trained network as an ONNX file with 16-bit weights."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from vidkin._base.files import replace_file, write_text
from vidkin._base.registry import import_part
from vidkin.shots.network import SHIPPED, SMALL, Numbers
from vidkin_research.cut_network.network import OUTPUTS, CutNetwork

__all__ = ["export_network"]

_OPSET = 17
# Number of frames in the traced example, and minimum size of a tensor that is stored in 16 bits.
_TRACED, _FEWEST = 16, 64


class _Answers(nn.Module):
    def __init__(self, network: CutNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, luma: torch.Tensor, chroma: torch.Tensor) -> torch.Tensor:
        return self.network.probabilities(luma, chroma)


def export_network(
    network: CutNetwork, target: Path, *, numbers: Numbers | None = None, provenance: Mapping[str, Any] | None = None
) -> Path:
    """Write the network as an ONNX file: uint8 ``luma`` [1, T, 32, 64] and ``chroma`` [1, T, 2, 16, 32] to ``answers``
    [1, T, 8] in the order of `OUTPUTS`; next to it a JSON file with its numbers.

    Args:
        network: The network.
        target: The ONNX file to write.
        numbers: The numbers by which its answers are read; None takes those of the shipped network.
        provenance: Where it comes from, as plain values.

    Raises:
        MissingPartError: onnx is not installed.
    """
    onnx = import_part("onnx", extra="export")
    target.parent.mkdir(parents=True, exist_ok=True)
    example = (
        torch.zeros(1, _TRACED, *SMALL, dtype=torch.uint8),
        torch.zeros(1, _TRACED, 2, SMALL[0] // 2, SMALL[1] // 2, dtype=torch.uint8),
    )
    with replace_file(target) as temporary:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the legacy exporter is deprecated; the new one requires onnxscript
            torch.onnx.export(
                _Answers(network).eval(),
                example,
                str(temporary),
                input_names=["luma", "chroma"],
                output_names=["answers"],
                dynamic_axes={name: {1: "frames"} for name in ("luma", "chroma", "answers")},
                opset_version=_OPSET,
                dynamo=False,
            )
        model = onnx.load(str(temporary))
        _store_halves(onnx, model)
        onnx.helper.set_model_props(model, {"outputs": " ".join(OUTPUTS)})
        onnx.save(model, str(temporary))
    notes = {"numbers": asdict(numbers or Numbers.load(SHIPPED)), "provenance": dict(provenance or {})}
    write_text(target.with_suffix(".json"), json.dumps(notes, indent=1) + "\n")
    return target


def _store_halves(onnx: object, model: object) -> None:
    """Store the weights in 16 bits; they are converted to 32 bits when the file is opened."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper  # type: ignore[attr-defined]
    graph = model.graph  # type: ignore[attr-defined]
    casts = []
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.size >= _FEWEST:
            half = f"{tensor.name}_half"
            casts.append(helper.make_node("Cast", [half], [tensor.name], to=onnx.TensorProto.FLOAT))  # type: ignore[attr-defined]
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), half))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
