"""A model for other runtimes: ONNX, or a program of torch.export."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.models.networks.encoder import Encoder
from vidkin.models.networks.volume_network import VolumeNetwork

__all__ = ["export_model"]

_ONNX_PARTS = ("onnx", "onnxscript")
# Larger models keep their weights beside the file: a protocol buffer holds no more.
_LARGEST_FILE = 1_900_000_000


def export_model(
    model: Encoder, path: str | os.PathLike[str], *, format: Literal["onnx", "torch"] = "onnx"
) -> Path:
    """Write a model as one file that runs without vidkin. Normalisation of the input is inside.

    Inputs, by what the model takes, float32 with values from 0 to 1:

    ============================ ========================================================================
    ``clip``                     ``clips`` [B, T, 3, S, S] and ``lengths`` [B] int64 from 1 to T
    ``c3d``, ``deep_sbd``        ``clips`` [B, T, 3, S, S]
    ``image``, ``deep_ranking``  ``pictures`` [B, 3, S, S]
    ============================ ========================================================================

    B is free; T and S are those of the configuration. A shorter clip is padded with anything and its length given.
    Outputs: ``embedding`` [B, D], unit vectors, and of the 3-D networks ``logits`` [B, classes], too. The
    configuration goes along as JSON: in the metadata ``vidkin`` of an ONNX file, in the extra file ``vidkin.json`` of a
    torch program.

    Args:
        model: Stays as it is, on its device.
        path: The file; replaced if it is there.
        format: ``onnx``, or ``torch`` for a file that ``torch.export.load`` reads.

    Returns:
        The path.

    Raises:
        InvalidArgumentError: There is no such format, or the file cannot be written.
        MissingPartError: onnx or onnxscript is not installed.
    """
    if format not in ("onnx", "torch"):
        raise InvalidArgumentError(f"format is {format!r}, allowed are onnx and torch")
    target = Path(path).expanduser()
    if not target.absolute().parent.is_dir():
        raise InvalidArgumentError(f"there is no folder {target.absolute().parent}; make it first")
    if target.is_dir():
        raise InvalidArgumentError(
            f"{target} is a folder; give the name of a file, as {target / 'model.onnx'}"
        )
    if format == "onnx":
        _require_onnx()
    about = json.dumps({**model.config.to_mapping(), "class_names": list(model.class_names)})
    with _in_eval_mode(model), warnings.catch_warnings():
        # Both exporters warn about their own inner workings.
        warnings.simplefilter("ignore")
        program = _program(model)
        partial = target.with_name(f".{target.name}.part")
        try:
            if format == "torch":
                # The file's name inside the archive is the name it was saved under: no partial file here.
                torch.export.save(program, os.fspath(target), extra_files={"vidkin.json": about})
            else:
                _save_onnx(program, model, target, partial, about)
        except OSError as error:
            raise InvalidArgumentError(f"{target} cannot be written: {error.strerror or error}") from error
        finally:
            partial.unlink(missing_ok=True)
    return target


class _Exported(nn.Module):
    """The model with the outputs of the exported file."""

    def __init__(self, model: Encoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: torch.Tensor, lengths: torch.Tensor | None = None) -> Any:
        if isinstance(self.model, VolumeNetwork):
            return self.model.embed(inputs), self.model.classify(inputs)
        return self.model.embed(inputs, lengths)


def _program(model: Encoder) -> torch.export.ExportedProgram:
    config = model.config
    shape = (3, config.size, config.size)
    clips = (config.frames, *shape) if config.takes_clips else shape
    # Two, as a batch of one would be taken for a batch that is always one.
    inputs: tuple[torch.Tensor, ...] = (torch.rand(2, *clips, device=model.device),)
    batch = torch.export.Dim("batch", min=1)
    shapes: dict[str, Any] = {"inputs": {0: batch}}
    if config.kind == "clip":
        inputs += (torch.full((2,), config.frames, device=model.device),)
        shapes["lengths"] = {0: batch}
    with torch.no_grad():
        return torch.export.export(_Exported(model), inputs, dynamic_shapes=shapes)


def _save_onnx(
    program: torch.export.ExportedProgram, model: Encoder, target: Path, partial: Path, about: str
) -> None:
    names = ["clips" if model.config.takes_clips else "pictures"]
    names += ["lengths"] if model.config.kind == "clip" else []
    outputs = ["embedding", *(["logits"] if model.config.is_classifier else [])]
    size = sum(tensor.nbytes for tensor in model.state_dict().values())
    exported = torch.onnx.export(
        program, (), input_names=names, output_names=outputs, dynamo=True, verbose=False
    )
    assert exported is not None  # it is with dynamo
    exported.model.metadata_props["vidkin"] = about
    beside = size > _LARGEST_FILE
    place = target if beside else partial
    exported.save(os.fspath(place), external_data=beside)
    if not beside:
        partial.replace(target)


@contextlib.contextmanager
def _in_eval_mode(model: Encoder) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def _require_onnx() -> None:
    missing = [name for name in _ONNX_PARTS if not _is_installed(name)]
    if missing:
        raise MissingPartError(
            f"{' and '.join(missing)} is not installed; install what ONNX needs with: pip install 'vidkin[export]'"
        )


def _is_installed(name: str) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    return importlib.util.find_spec(name) is not None
