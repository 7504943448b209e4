"""Export networks for use without vidkin, as ONNX files or torch.export programs."""

from __future__ import annotations

import importlib.util
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, write_bytes
from vidkin._base.install import install_command
from vidkin._base.outputs import check_free, open_output
from vidkin.errors import InvalidArgumentError, MissingPartError, VidkinError
from vidkin.features.sessions import open_session
from vidkin.models.encoder import ClipEncoder, Encoder, evaluation_mode
from vidkin.models.stored import GRAPH_ENTRY, GRAPH_FILE, HEAD_FILE
from vidkin.models.two_head import TwoHeadNetwork
from vidkin.models.volume_networks import VolumeNetwork

ExportFormat = Literal["onnx", "torch"]

# A protocol buffer is limited to 2 GB, and vidkin does not read ONNX files with external data.
_MAX_WEIGHT_BYTES = 1_900_000_000

# The newest opset that all supported versions of onnxruntime can read.
_OPSET = 18

# Maximum difference from torch's output; a larger one means that tracing turned example values into constants.
_TOLERANCE = 1e-3


class ExportError(MissingPartError):
    """A network cannot be written as ONNX: the exporter is not installed or does not support one of its layers."""


@check_arguments
def export_model(model: Encoder, path: PathLike, *, format: ExportFormat = "onnx", source: str | None = None) -> Path:
    """Write a model to a single file that runs without vidkin and normalizes its input itself; return the path.

    Inputs for each kind of model, float32 with values from 0 to 1:

    ============================ ========================================================================
    ``clip``                     ``clips`` [B, T, 3, S, S] and ``lengths`` [B] int64 from 1 to T
    ``c3d``, ``deep_sbd``        ``clips`` [B, T, 3, S, S]
    ``image``, ``deep_ranking``  ``pictures`` [B, 3, S, S]
    ============================ ========================================================================

    B is dynamic; T and S are fixed by the configuration, except that the ONNX files of ``clip`` and ``c3d`` accept any
    T. For ``clip``, pad shorter clips with any values and pass their lengths.
    Outputs: ``embedding`` [B, D], unit vectors, and for classifiers also ``logits`` [B, classes]. The configuration is
    included as JSON: in the metadata entry ``vidkin`` of an ONNX file, or in the extra file ``vidkin.json`` of a torch
    program.

    Args:
        model: The model to export; it is not changed.
        path: Output file.
        format: ``onnx``, or ``torch`` for a file to be read by ``torch.export.load``.
        source: Description of the source, see :func:`vidkin._base.outputs.open_output`; None: never replace a file.

    Raises:
        InvalidArgumentError: The format is unknown, or the file cannot be written.
        MediaError: The path exists and must not be replaced.
        MissingPartError: onnx is not installed, or the network has a layer that ONNX does not support.
    """
    if format not in ("onnx", "torch"):
        raise InvalidArgumentError(f"format must be onnx or torch, got {format!r}")
    target = Path(path).expanduser()
    if not target.absolute().parent.is_dir():
        raise InvalidArgumentError(f"{target.absolute().parent}: is not a folder; create it first")
    if target.is_dir():
        raise InvalidArgumentError(f"{target}: is a folder; choose a file in it, for example {target / 'model.onnx'}")
    check_free(target, source=source)
    # Both formats store their file name, so the draft is written to a temporary folder under its final name.
    try:
        with TemporaryDirectory(dir=target.parent, prefix=".vidkin-") as scratch:
            draft = Path(scratch, target.name)
            if format == "onnx":
                _write_whole(model, draft, {})
            else:
                _write_program(model, draft)
            for file in sorted(Path(scratch).iterdir(), reverse=True):  # external data before the file that needs it
                with open_output(target.with_name(file.name), source=source) as partial:
                    file.replace(partial)
    except OSError as error:
        raise _unwritable(target, error) from error
    return target


def _write_program(model: Encoder, target: Path) -> None:
    inputs = _example(model)
    shapes: dict[str, Any] = {"inputs": {0: torch.export.Dim("batch", min=1)}}
    if len(inputs) > 1:
        shapes["lengths"] = dict(shapes["inputs"])
    with evaluation_mode(model), warnings.catch_warnings():
        # The exporter warns about its own internals.
        warnings.simplefilter("ignore")
        program = torch.export.export(_Exported(model), inputs, dynamic_shapes=shapes)
        torch.export.save(program, os.fspath(target), extra_files={"vidkin.json": _about(model)})


def write_encoder_graphs(model: Encoder, folder: Path, digest: str) -> list[Path]:
    """Write the ONNX files in an encoder's folder, for use without torch, and return their paths.

    Args:
        model: The model.
        folder: The model's folder.
        digest: :func:`vidkin.models.model_digest` of the model. It is stored in the files, so that they are used only
            with the weights they were exported from.

    Raises:
        InvalidArgumentError: A file cannot be written.
        ExportError: onnx is not installed, or the network has a layer that ONNX does not support.
    """
    facts = {"weights": digest, "dimension": model.dimension, "squares": model.square_digest}
    entry = {GRAPH_ENTRY: json.dumps(facts)}
    if not isinstance(model, ClipEncoder):
        return [_write_whole(model, folder / GRAPH_FILE, entry)]
    size = model.config.size
    with evaluation_mode(model):
        return [
            write_graph(
                _CalledMethod(model, "frame_features").eval(),
                (_noise(model, 2, 3, size, size),),
                folder / GRAPH_FILE,
                {"pictures": {0: "batch"}, "features": {0: "batch"}},
                metadata={"vidkin": _about(model), **entry},
            ),
            write_graph(
                _CalledMethod(model, "head").eval(),
                (_noise(model, 2, 3, model.feature_dimension),),
                folder / HEAD_FILE,
                {"features": {0: "batch", 1: "time"}, "embedding": {0: "batch"}},
                metadata=entry,
            ),
        ]


def write_graph(
    network: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    target: Path,
    axes: Mapping[str, Mapping[int, str]],
    *,
    metadata: Mapping[str, str],
    last_input: int = 0,
) -> Path:
    """Write a network as an ONNX file, check that it reproduces torch's output, and return the path.

    Uses torch's tracing exporter, which is about twenty times as fast as the torch.export-based one, supports recurrent
    networks with dynamic lengths, and depends only on onnx.

    Args:
        network: The network in eval mode; its first output is checked.
        inputs: Example inputs.
        target: Output file; replaced if it exists.
        axes: Names of the inputs, then of the outputs, each with the names of its dynamic axes.
        metadata: Metadata entries of the file.
        last_input: Position of the last input in ``axes``.

    Raises:
        InvalidArgumentError: The file cannot be written.
        ExportError: onnx is not installed, or the network has a layer that ONNX does not support.
    """
    if importlib.util.find_spec("onnx") is None:
        raise ExportError(f"exporting to ONNX needs onnx; install it with: {install_command('train')}")
    import onnx

    if sum(tensor.nbytes for tensor in network.state_dict().values()) > _MAX_WEIGHT_BYTES:
        raise ExportError(f"{target.name} cannot be written: an ONNX file can hold at most 1.9 GB of weights")
    names = list(axes)
    with torch.no_grad(), warnings.catch_warnings(), _exportable_pools(network), TemporaryDirectory() as scratch:
        # The exporter warns about its own internals and about shape checks it cannot trace.
        warnings.simplefilter("ignore")
        expected = network(*inputs)
        expected = expected[0] if isinstance(expected, tuple) else expected
        draft = os.path.join(scratch, target.name)
        try:
            with _quiet_exporter():
                torch.onnx.export(
                    network,
                    inputs,
                    draft,
                    input_names=names[: last_input + 1],
                    output_names=names[last_input + 1 :],
                    dynamic_axes={name: dict(free) for name, free in axes.items()},
                    opset_version=_OPSET,
                    dynamo=False,
                )
        except (RuntimeError, torch.onnx.OnnxExporterError) as error:
            cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ExportError(
                f"{target.name} cannot be written: ONNX does not support part of this network: {cause}"
            ) from error
        values = [tensor.cpu().numpy() for tensor in inputs]
        output = open_session(draft).run(None, dict(zip(names, values, strict=False)))[0]
        if not np.allclose(output, expected.cpu().numpy(), atol=_TOLERANCE, rtol=_TOLERANCE):
            raise ExportError(f"{target.name} cannot be written: the ONNX network's output differs from torch's")
        document = onnx.load(draft)
        onnx.helper.set_model_props(document, dict(metadata))
        try:
            write_bytes(target, document.SerializeToString())
        except OSError as error:
            raise _unwritable(target, error) from error
    return target


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Suppress the graph dump printed when an export in the block fails; torch 2.13 has no option to disable it."""
    log = torch._C._jit_onnx_log
    torch._C._jit_onnx_log = lambda *words: None
    try:
        yield
    finally:
        torch._C._jit_onnx_log = log


@contextmanager
def _exportable_pools(network: nn.Module) -> Iterator[None]:
    """Make adaptive average pooling exportable inside the block by computing it as matrix products where needed.

    ONNX supports it only if each side of the map is a multiple of the output side, which is not the case in AlexNet for
    small images.
    """
    pools = [module for module in network.modules() if isinstance(module, nn.AdaptiveAvgPool2d)]
    for pool in pools:
        pool.forward = partial(_average_cells, pool.output_size)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for pool in pools:
            del pool.forward


def _average_cells(output: int | tuple[int | None, int | None] | None, maps: torch.Tensor) -> torch.Tensor:
    """Adaptive average pooling of maps [B, C, H, W]."""
    sizes = output if isinstance(output, tuple) else (output, output)
    sides = [int(side) for side in maps.shape[2:]]
    target = [side if size is None else size for side, size in zip(sides, sizes, strict=True)]
    if all(side % size == 0 for side, size in zip(sides, target, strict=True)):
        return nn.functional.adaptive_avg_pool2d(maps, (target[0], target[1]))
    rows, columns = (
        # Pooling the identity matrix gives the weight of each position in each cell.
        nn.functional.adaptive_avg_pool1d(torch.eye(side, device=maps.device), size).T
        for side, size in zip(sides, target, strict=True)
    )
    return rows @ maps @ columns.T


def _write_whole(model: Encoder, target: Path, metadata: Mapping[str, str]) -> Path:
    """Write the whole model as one ONNX file."""
    config = model.config
    free = {0: "batch", 1: "time"} if config.kind in ("clip", "c3d") else {0: "batch"}
    axes: dict[str, dict[int, str]] = {"clips" if config.takes_clips else "pictures": free}
    if config.kind == "clip":
        axes["lengths"] = {0: "batch"}
    last_input = len(axes) - 1
    axes["embedding"] = {0: "batch"}
    if config.is_classifier:
        axes["logits"] = {0: "batch"}
    with evaluation_mode(model):
        return write_graph(
            _Exported(model).eval(),
            _example(model),
            target,
            axes,
            metadata={"vidkin": _about(model), **metadata},
            last_input=last_input,
        )


def _example(model: Encoder) -> tuple[torch.Tensor, ...]:
    """Create example inputs: two images or clips, because a batch of one would be exported as a fixed size."""
    config = model.config
    shape = (3, config.size, config.size)
    clips = (config.frames, *shape) if config.takes_clips else shape
    inputs = (_noise(model, 2, *clips),)
    return (*inputs, torch.full((2,), config.frames, device=model.device)) if config.kind == "clip" else inputs


def _noise(model: Encoder, *shape: int) -> torch.Tensor:
    """Return random values from 0 to 1 from a fixed seed; the caller's random state is not changed."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0)).to(model.device)


def _about(model: Encoder) -> str:
    return json.dumps({**model.config.to_mapping(), "class_names": list(model.class_names)})


def _unwritable(target: Path, error: OSError) -> VidkinError:
    return InvalidArgumentError(f"{target}: {error.strerror or error}; choose a file that can be written")


class _Exported(nn.Module):
    """A model whose ``forward`` returns the outputs of the exported file."""

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


class _CalledMethod(nn.Module):
    """A module whose ``forward`` calls another method of a network."""

    def __init__(self, network: nn.Module, name: str) -> None:
        super().__init__()
        self.network, self._name = network, name

    def forward(self, inputs: torch.Tensor) -> Any:
        return getattr(self.network, self._name)(inputs)
