"""Save and load a comparator's folder: its weights, settings, and extractor files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike, replace_file
from vidkin.errors import InvalidArgumentError
from vidkin.models.comparator import Comparator, build_comparator
from vidkin.models.comparator_extractor import (
    EXTRACTOR_GRAPH_FILE,
    EXTRACTOR_WEIGHTS_FILE,
    WHITENING_FILE,
    comparator_facts,
    read_comparator_info,
)
from vidkin.models.encoder import evaluation_mode
from vidkin.models.export import write_graph
from vidkin.models.model_folder import write_model_folder
from vidkin.models.stored import GRAPH_ENTRY, GRAPH_FILE, WEIGHTS_FILE, weights_digest
from vidkin.models.weights import state_arrays


@check_arguments
def save_comparator(
    comparator: Comparator,
    folder: PathLike,
    *,
    weights: PathLike | None = None,
    whitening: PathLike | None = None,
    metrics: Mapping[str, float] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write a comparator and its extractor files to a self-contained folder, and return the folder.

    Args:
        comparator: A trained or imported comparator.
        folder: Output folder; created if missing.
        weights, whitening: Extractor files (:func:`vidkin.features.open_extractor`) to copy into the folder. If None,
            a file left by an earlier model in the folder is removed.
        metrics: Metric values by name.
        notes: Metadata by name: strings, numbers, booleans, or lists of these.

    Raises:
        InvalidArgumentError: A file cannot be read, or the folder cannot be written.
    """
    path = Path(folder).expanduser()
    try:
        path.mkdir(parents=True, exist_ok=True)
        # The weights file may come with an ONNX file, which runs without torch; some extractors have only an ONNX file.
        graph = None if weights is None else Path(weights).expanduser().with_suffix(".onnx")
        is_graph = weights is not None and Path(weights).suffix == ".onnx"
        sources = {
            EXTRACTOR_WEIGHTS_FILE: None if is_graph else weights,
            EXTRACTOR_GRAPH_FILE: graph if graph and (is_graph or graph.is_file()) else None,
            WHITENING_FILE: whitening,
        }
        for name, source in sources.items():
            target = path / name
            if source is None:
                target.unlink(missing_ok=True)
            elif not (target.exists() and os.path.samefile(source, target)):
                with replace_file(target) as temporary:
                    shutil.copyfile(os.path.expanduser(source), temporary)
    except OSError as error:
        raise InvalidArgumentError(
            f"{path}: {error.strerror or error} ({error.filename}); choose files that can be read and a folder that "
            "can be written"
        ) from error
    return write_model_folder(
        path,
        comparator,
        {
            "model": comparator.config.to_mapping(),
            "metrics": {name: float(value) for name, value in (metrics or {}).items()},
            "notes": dict(notes or {}),
        },
        lambda target: write_comparator_graphs(comparator, target),
    )


@check_arguments
def load_comparator(folder: PathLike, *, device: str = "cpu") -> Comparator:
    """Load a comparator from a folder, in eval mode.

    Raises:
        UnknownExtractorError: The folder does not contain a model.
        InvalidArgumentError: The folder is damaged, or contains a different kind of model.
    """
    info = read_comparator_info(folder)
    comparator = build_comparator(info.config, weights=Path(folder).expanduser() / WEIGHTS_FILE)
    return comparator.eval().requires_grad_(False).to(device)


def write_comparator_graphs(comparator: Comparator, folder: Path) -> list[Path]:
    """Write a comparator's map network as an ONNX file, for use without torch, and return the path in a list.

    The list is empty if the comparator has no map network.

    Raises:
        InvalidArgumentError: The file cannot be written.
        ExportError: onnx is not installed.
    """
    if comparator.visil_head is None:
        return []
    maps = torch.rand(2, 9, 13, generator=torch.Generator().manual_seed(0)).to(
        comparator.visil_head.fconv.weight.device
    )
    with evaluation_mode(comparator):
        return [
            write_graph(
                comparator.visil_head,
                (maps,),
                folder / GRAPH_FILE,
                {
                    "maps": {0: "batch", 1: "query", 2: "target"},
                    "learned_maps": {0: "batch", 1: "query_cells", 2: "target_cells"},
                },
                metadata={GRAPH_ENTRY: json.dumps({"weights": comparator_digest(comparator)})},
            )
        ]


@check_arguments
def comparator_digest(comparator: Comparator) -> str:
    """SHA-256 of the names and values of all weights and the settings they depend on."""
    return weights_digest(comparator_facts(comparator.config), state_arrays(comparator))
