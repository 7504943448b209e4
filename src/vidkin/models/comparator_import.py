"""Import public checkpoints of ViSiL, DnS, S2VS and HAP-VR as comparators.

Names, shapes and defaults follow the published code: MKLab-ITI/visil (model/visil.py, layers.py and
similarities.py), mever-team/distill-and-select (model/students.py), gkordo/s2vs and yafeng19/HAP-VR
(model/similarity_network.py, utils.save_model).
"""

from __future__ import annotations

import argparse
import io
import mmap
import os
import pickle
import pickletools
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
import torch
from safetensors.torch import save_file

from vidkin._base.files import PathLike
from vidkin.errors import InvalidArgumentError
from vidkin.features import Whitening, open_extractor
from vidkin.models.comparator import Comparator
from vidkin.models.comparator_extractor import measure_unrelated
from vidkin.models.comparator_folder import save_comparator
from vidkin.models.config import ComparatorConfig, Padding, Weighting
from vidkin.models.weights import fit_state

# The frame network of all four systems: short side 256, center crop 224, ImageNet weights from 2015.
_EXTRACTOR = "timm:resnet50.tv_in1k?fit=crop"
_DIMENSION = 512

# Maximum ratio of a checkpoint's size in memory to its file size: values of one or two bytes are converted to float32.
_MAX_EXPANSION = 4
# Maximum number of pickle opcodes. A tensor takes about 40; objects built by this many opcodes take less than 100 MB.
_MAX_STEPS = 300_000
# Globals that a pickle of tensors may import, as "module name".
_ALLOWED_CALLS = re.compile(
    r"collections (OrderedDict|Counter)|argparse Namespace|(builtins|__builtin__) (set|complex)|_codecs encode"
    r"|torch\._utils _rebuild_(tensor(_v2)?|parameter)|torch\.nn\.parameter Parameter"
    r"|torch(\.cuda|\.storage)? \w*Storage|torch (Size|device|bool|(b?float|complex|u?int)\d+)"
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Weight names and settings in a system's published code.

    Attributes:
        network: Prefix of the map network's weight names.
        outer: Additional prefix in files that also contain the frame network.
        padding, symmetric, spatial_share, temporal_share: Settings as in :class:`ComparatorConfig`.
    """

    network: str
    outer: str = ""
    padding: Padding = "zeros"
    symmetric: bool = False
    spatial_share: float | None = None
    temporal_share: float | None = None


LAYOUTS: Mapping[str, _Layout] = {
    "visil": _Layout("video_comperator.", outer="visil_head.", padding="replicate"),
    "visil-symmetric": _Layout("video_comperator.", outer="visil_head.", padding="replicate", symmetric=True),
    "dns": _Layout("visil_head."),
    "s2vs": _Layout("visil_head."),
    "hap-vr": _Layout("comparator_module.", spatial_share=0.1, temporal_share=0.03),
}
"""Checkpoint layouts by system name."""


def import_comparator(
    path: PathLike,
    folder: PathLike,
    *,
    layout: str,
    extractor: str | None = None,
    weights: PathLike | None = None,
    whitening: PathLike | None = None,
) -> ComparatorConfig:
    """Convert a public checkpoint to a comparator's folder, and return its configuration.

    PyTorch files are loaded with ``weights_only=True``; files with other objects are rejected.

    Args:
        path: Checkpoint file: a state dictionary, or a dictionary with one under ``model``.
        folder: Output folder; created if missing.
        layout: System that published the checkpoint, one of :data:`LAYOUTS`.
        extractor: Extractor of frame descriptors; default: the ResNet-50 used by these systems.
        weights: Extractor weights: a safetensors or PyTorch file (``resnet50-0676ba61.pth``). None: downloaded from
            the hub when the model is first used.
        whitening: Extractor whitening: a file from ``vidkin whiten``, or a file with ``mean``, ``d`` and ``V`` as
            published by these systems (``pca_resnet50_vcdb_1M.pth``, ``pca.npz``). Required unless ``extractor`` is
            set.

    Raises:
        InvalidArgumentError: A file cannot be read or does not have this layout.
        ExtractorError: The name of the extractor is unknown, or its weights cannot be used.
    """
    if layout not in LAYOUTS:
        raise InvalidArgumentError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    if whitening is None and extractor is None:
        raise InvalidArgumentError(
            f"layout {layout} compares whitened ResNet-50 descriptors; specify the whitening used in its training "
            "(pca_resnet50_vcdb_1M.pth), or another extractor"
        )
    content = _read_torch(path)
    # Training scripts store their arguments in the checkpoint.
    arguments = content.get("args", {})
    arguments = vars(arguments) if isinstance(arguments, argparse.Namespace) else dict(arguments)
    stored = content.get("model", content)
    if not isinstance(stored, dict) or not all(isinstance(value, torch.Tensor) for value in stored.values()):
        raise InvalidArgumentError(f"{os.fspath(path)}: must contain a state dictionary, got something else")
    state = {name.removeprefix("module."): value for name, value in stored.items()}
    if not any(name.removeprefix(LAYOUTS[layout].outer).startswith(LAYOUTS[layout].network) for name in state):
        raise InvalidArgumentError(
            f"{os.fspath(path)}: a checkpoint with layout {layout} must contain weights named "
            f"{LAYOUTS[layout].network}*, got {', '.join(sorted(state)[:4]) or 'none'}"
        )
    config, named = _convert_state(state, arguments, LAYOUTS[layout], extractor or _EXTRACTOR)
    comparator = Comparator(config)
    fit_state(comparator, named, source=path, label=f"a checkpoint with layout {layout}")
    with TemporaryDirectory() as scratch:
        target = Path(scratch)
        network = None if weights is None else _convert_weights(weights, target / "network.safetensors")
        white = (
            None if whitening is None else _convert_whitening(whitening, config.dimension, target / "white.safetensors")
        )
        if weights is not None or extractor is not None:
            opened = open_extractor(config.extractor, weights=network, whitening=white)
            comparator.config = config = ComparatorConfig.from_mapping(
                {**config.to_mapping(), "unrelated": list(measure_unrelated(comparator.on_arrays(), opened))}
            )
        notes = {"imported_from": os.path.basename(os.fspath(path)), "layout": layout}
        save_comparator(comparator, folder, weights=network, whitening=white, notes=notes)
    return config


def _read_torch(path: PathLike) -> dict[str, Any]:
    name = os.fspath(path)
    try:
        _check_checkpoint(os.path.expanduser(name))
        # Training scripts store their parsed arguments, a plain container, in the checkpoint.
        with torch.serialization.safe_globals([argparse.Namespace]):
            content = torch.load(os.path.expanduser(name), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise InvalidArgumentError(
            f"{name}: is not a PyTorch file, or contains objects other than tensors, which are not loaded; save only "
            "its state dictionary"
        ) from error
    except (OSError, RuntimeError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise InvalidArgumentError(f"{name}: cannot be read as a checkpoint: {error}") from error
    if not isinstance(content, dict):
        raise InvalidArgumentError(f"{name}: must contain a state dictionary, got {type(content).__name__}")
    _check_expansion(content, os.path.getsize(os.path.expanduser(name)), name)
    return content


def _check_checkpoint(path: str) -> None:
    """Check, without loading a checkpoint, that it contains only tensors and cannot expand in memory.

    Raises:
        UnpicklingError: The file contains objects other than tensors, or is not a checkpoint.
        ValueError: The file is compressed, uses the same bytes more than once, or has too many pickle opcodes.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        # Like PyTorch, detect a zip archive by its first bytes; zipfile would look at the end of the file.
        if content[:4] != b"PK\x03\x04":
            # The format before PyTorch 1.6 has five pickles: magic number, version, system info, tensors and storages.
            for _ in range(5):
                _check_pickle(content)
            return
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
            if archive.comment or any(part.compress_type != zipfile.ZIP_STORED for part in parts):
                raise ValueError("a checkpoint must be stored without compression, as torch.save writes it")
            if sum(part.file_size for part in parts) > len(content):
                raise ValueError("the parts of a checkpoint must be at most as large as the file, got more")
            for part in parts:
                if part.filename.lower().endswith(".pkl"):
                    _check_pickle(io.BytesIO(archive.read(part)))


def _check_pickle(file: IO[bytes] | mmap.mmap) -> None:
    """Check the number of opcodes and the imports of one pickle, which bound its memory; read up to its end."""
    recent = ["", ""]
    try:
        for step, (operation, argument, _) in enumerate(pickletools.genops(file)):  # type: ignore[arg-type]
            if step > _MAX_STEPS:
                raise ValueError(f"a checkpoint must have at most {_MAX_STEPS:,} pickle opcodes, got more")
            if operation.name == "STACK_GLOBAL":
                _check_call(" ".join(recent))
            elif operation.name in ("GLOBAL", "INST"):
                _check_call(str(argument))
            elif isinstance(argument, str):
                recent = [recent[1], argument]
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        if "must have at most" in str(error):
            raise
        raise pickle.UnpicklingError(str(error)) from error


def _check_call(name: str) -> None:
    # Stricter than weights_only, which also allows calls such as bytearray(10**9).
    if _ALLOWED_CALLS.fullmatch(name) is None:
        raise pickle.UnpicklingError(f"{name} is not needed for tensors")


def _check_expansion(content: Mapping[Any, Any], size: int, name: str) -> None:
    """Check that the tensors, at four or more bytes per value, take at most a small multiple of the file size."""
    tensors: list[torch.Tensor] = []
    waiting: list[Any] = [content]
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, torch.Tensor):
            # A repeated tensor counts every time, because each occurrence becomes a separate tensor.
            tensors.append(value)
        elif isinstance(value, Mapping | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            waiting += value.values() if isinstance(value, Mapping) else value
    needed = sum(tensor.numel() * max(tensor.element_size(), 4) for tensor in tensors)
    if needed > _MAX_EXPANSION * size:
        raise InvalidArgumentError(
            f"{name}: the tensors in a checkpoint must take at most {_MAX_EXPANSION} times the file size of {size:,} "
            f"bytes, got {needed:,} bytes"
        )


def _convert_state(
    state: Mapping[str, torch.Tensor], arguments: Mapping[str, Any], layout: _Layout, extractor: str
) -> tuple[ComparatorConfig, dict[str, torch.Tensor]]:
    """Return the configuration implied by the weights, and the weights by their names in :class:`Comparator`."""
    if layout.outer and any(name.startswith(layout.outer) for name in state):
        state = {
            name.removeprefix(layout.outer): value for name, value in state.items() if name.startswith(layout.outer)
        }
    named = {}
    for name, value in state.items():
        for old, new in ((layout.network, "visil_head."), ("binarization.", "attention.")):
            if name.startswith(old):
                name = new + name.removeprefix(old)
        named[name] = value.float()
    weighting: Weighting = "none"
    dimension = _DIMENSION
    if "attention.W" in named:
        weighting, dimension = "signs", named["attention.W"].shape[0]
    elif "attention.context_vector.weight" in named:
        weighting = "attention" if "attention.transform.weight" in named else "direction"
        dimension = named["attention.context_vector.weight"].shape[-1]
    config = ComparatorConfig(
        extractor=extractor,
        dimension=dimension,
        weighting=weighting,
        padding=layout.padding,
        remainder="dropped",
        symmetric=bool(arguments.get("symmetric", layout.symmetric)),
        spatial_share=arguments.get("f_topk_rate", layout.spatial_share),
        temporal_share=arguments.get("v_topk_rate", layout.temporal_share),
    )
    return config, named


def _convert_weights(path: PathLike, target: Path) -> PathLike:
    """Return the path of a safetensors file: the file itself, or a converted copy of a PyTorch file."""
    if os.fspath(path).endswith(".safetensors"):
        return path
    state = _read_torch(path)
    if not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise InvalidArgumentError(f"{os.fspath(path)}: must contain only network weights, got other objects")
    save_file({name: value.contiguous().clone() for name, value in state.items()}, target)
    return target


def _convert_whitening(path: PathLike, dimension: int, target: Path) -> PathLike:
    """Return the path of a vidkin whitening file: the file itself, or one with the top published components."""
    name = os.fspath(path)
    if name.endswith(".safetensors"):
        return path
    if name.endswith(".npz"):
        try:
            _check_arrays(os.path.expanduser(name))
            with np.load(os.path.expanduser(name), allow_pickle=False) as arrays:
                parts = {key: arrays[key] for key in arrays.files}
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise InvalidArgumentError(f"{name}: cannot be read as a whitening: {error}") from error
    else:
        parts = {key: np.asarray(value) for key, value in _read_torch(path).items()}
    if not {"mean", "d", "V"} <= set(parts):
        raise InvalidArgumentError(
            f"{name}: a published whitening must contain mean, d and V, got {', '.join(sorted(parts)[:6])}"
        )
    values, vectors = parts["d"].real, parts["V"].real
    largest = np.argsort(-values, kind="stable")[:dimension]
    # d holds eigenvalues of the scatter matrix, not the covariance, but vectors are normalized later, so the scale of d
    # is irrelevant.
    Whitening.from_eigen(parts["mean"], vectors[:, largest], values[largest]).save(target)
    return target


def _check_arrays(path: str) -> None:
    """Raise ValueError if the arrays in an npz file, which may be compressed, expand to too many times its size."""
    with zipfile.ZipFile(path) as archive:
        needed = sum(part.file_size for part in archive.infolist())
    size = os.path.getsize(path)
    if needed > _MAX_EXPANSION * size:
        raise ValueError(f"the arrays must take at most {_MAX_EXPANSION} times the file size of {size:,} bytes")
