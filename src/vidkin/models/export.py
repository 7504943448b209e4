"""Write a model for other runtimes: as ONNX, or as a program of torch.export."""

from __future__ import annotations

import importlib.util
import json
import os
import warnings
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from vidkin._base.files import replace_file
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.models.encoder import Encoder, evaluation_mode
from vidkin.models.two_head import TwoHeadNetwork
from vidkin.models.volume_networks import VolumeNetwork

ExportFormat = Literal["onnx", "torch"]

# Larger models keep their weights in a second file because a protocol buffer holds at most 2 GB.
_LARGEST_FILE = 1_900_000_000


def export_model(model: Encoder, path: str | os.PathLike[str], *, format: ExportFormat = "onnx") -> Path:
    """Write a model as one file that runs without vidkin and normalizes its input itself; returns the path.

    Inputs, by the kind of the model, float32 with values from 0 to 1:

    ============================ ========================================================================
    ``clip``                     ``clips`` [B, T, 3, S, S] and ``lengths`` [B] int64 from 1 to T
    ``c3d``, ``deep_sbd``        ``clips`` [B, T, 3, S, S]
    ``image``, ``deep_ranking``  ``pictures`` [B, 3, S, S]
    ============================ ========================================================================

    B is free; T and S are set by the configuration. Pad a shorter clip with any values and pass its length.
    Outputs: ``embedding`` [B, D], unit vectors, and for the 3-D networks also ``logits`` [B, classes]. The
    configuration is included as JSON: in the metadata entry ``vidkin`` of an ONNX file, or in the extra file
    ``vidkin.json`` of a torch program.

    Args:
        model: The model to export; it is not changed.
        path: The file to write; an existing file is replaced.
        format: ``onnx``, or ``torch`` for a file that ``torch.export.load`` reads.

    Raises:
        InvalidArgumentError: The format is unknown, or the file cannot be written.
        MissingPartError: onnx or onnxscript is not installed.
    """
    if format not in ("onnx", "torch"):
        raise InvalidArgumentError(f"format must be onnx or torch, got {format!r}")
    target = Path(path).expanduser()
    if not target.absolute().parent.is_dir():
        raise InvalidArgumentError(f"{target.absolute().parent}: is not a folder; create it first")
    if target.is_dir():
        raise InvalidArgumentError(f"{target}: is a folder; choose a file in it, for example {target / 'model.onnx'}")
    missing = [name for name in ("onnx", "onnxscript") if importlib.util.find_spec(name) is None]
    if format == "onnx" and missing:
        raise MissingPartError(
            f"exporting to ONNX needs {' and '.join(missing)}; install with: pip install 'vidkin[export]'"
        )
    about = json.dumps({**model.config.to_mapping(), "class_names": list(model.class_names)})
    config = model.config
    shape = (3, config.size, config.size)
    clips = (config.frames, *shape) if config.takes_clips else shape
    # Two, because a batch of one would be exported as a fixed size.
    inputs: tuple[torch.Tensor, ...] = (torch.rand(2, *clips, device=model.device),)
    shapes: dict[str, Any] = {"inputs": {0: torch.export.Dim("batch", min=1)}}
    if config.kind == "clip":
        inputs += (torch.full((2,), config.frames, device=model.device),)
        shapes["lengths"] = dict(shapes["inputs"])
    try:
        with evaluation_mode(model), warnings.catch_warnings():
            # Both exporters emit warnings about their own internals.
            warnings.simplefilter("ignore")
            program = torch.export.export(_Exported(model), inputs, dynamic_shapes=shapes)
            if format == "torch":
                # The archive stores its own file name, so it cannot be written under a temporary name.
                torch.export.save(program, os.fspath(target), extra_files={"vidkin.json": about})
            else:
                _save_onnx(program, model, target, about)
    except OSError as error:
        raise InvalidArgumentError(f"{target}: {error.strerror or error}; choose a file that can be written") from error
    return target


class _Exported(nn.Module):
    """The model as exported: it returns the outputs of the file."""

    def __init__(self, model: Encoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> Any:
        if isinstance(self.model, VolumeNetwork):
            return self.model.embed(inputs), self.model.classify(inputs)
        if isinstance(self.model, TwoHeadNetwork):
            outputs = self.model(inputs)
            return outputs.embeddings, outputs.logits
        return self.model.embed(inputs, lengths)


def _save_onnx(program: torch.export.ExportedProgram, model: Encoder, target: Path, about: str) -> None:
    inputs = ["clips" if model.config.takes_clips else "pictures"]
    exported = torch.onnx.export(
        program,
        (),
        input_names=[*inputs, *(["lengths"] if model.config.kind == "clip" else [])],
        output_names=["embedding", *(["logits"] if model.config.is_classifier else [])],
        dynamo=True,
        verbose=False,
    )
    assert exported is not None  # never None with dynamo
    exported.model.metadata_props["vidkin"] = about
    if sum(tensor.nbytes for tensor in model.state_dict().values()) > _LARGEST_FILE:
        # The second file is named after the first, which therefore cannot be written under a temporary name.
        exported.save(os.fspath(target), external_data=True)
        return
    with replace_file(target) as temporary:
        exported.save(os.fspath(temporary), external_data=False)
