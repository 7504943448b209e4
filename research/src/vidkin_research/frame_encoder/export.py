"""A student as an ONNX file of small weights that takes uint8 frames, with its provenance in a file beside it."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from vidkin._base.registry import import_part
from vidkin_research.frame_encoder.held_back import HELD_BACK_EDITS
from vidkin_research.frame_encoder.network import Student
from vidkin_research.frame_encoder.sources import FOLDERS, PACKAGES
from vidkin_research.frame_encoder.train import Run

__all__ = ["export_student", "provenance"]

_OPSET = 17


class _OfPixels(nn.Module):
    """A student of frames [N, side, side, 3] of bytes."""

    def __init__(self, student: Student) -> None:
        super().__init__()
        self.student = student

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.student(image.permute(0, 3, 1, 2).float() / 127.5 - 1)  # type: ignore[no-any-return]


def export_student(run: Run, target: Path, *, teacher: str) -> Path:
    """Write the averaged weights of a run, and ``TARGET.json`` with where they come from.

    The input is ``image``, uint8 [N, side, side, 3] in RGB, the output ``embedding``, unit vectors [N, D]. Kernels are
    stored as float16 and the last layer as int8 with a scale for each row; all is computed in float32.

    Args:
        run: The run.
        target: The file to write.
        teacher: What the teacher was, for the provenance.

    Raises:
        MissingPartError: onnx is not installed.
    """
    onnx = import_part("onnx", extra="export")
    side = run.settings.student.side
    target.parent.mkdir(parents=True, exist_ok=True)
    student = run.averaged.eval().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the exporter itself; the other one needs another package
        torch.onnx.export(
            _OfPixels(student),
            (torch.zeros(2, side, side, 3, dtype=torch.uint8),),
            str(target),
            input_names=["image"],
            output_names=["embedding"],
            dynamic_axes={"image": {0: "frames"}, "embedding": {0: "frames"}},
            opset_version=_OPSET,
            dynamo=False,
        )
    model = onnx.load(str(target))
    _store_small(onnx, model)
    onnx.save(model, str(target))
    target.with_suffix(".json").write_text(json.dumps(provenance(run, teacher), indent=1) + "\n")
    return target


def _store_small(onnx: Any, model: Any) -> None:
    """Replace large float32 weights by smaller ones and what undoes it, which runtimes do once when they open the file.

    The file has to stay below 8 MB: float16 alone takes 8.2.
    """
    graph = model.graph
    stored, undone = [], []
    for tensor in graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        name = tensor.name
        if values.dtype != "float32" or values.size < 64:
            stored.append(tensor)
        elif values.ndim == 2:
            scale = np.maximum(np.abs(values).max(axis=1), 1e-12) / 127
            parts = {
                f"{name}.rounded": np.rint(values / scale[:, None]).astype(np.int8),
                f"{name}.scale": scale.astype(np.float32),
                f"{name}.zero": np.zeros(len(values), np.int8),
            }
            stored += [onnx.numpy_helper.from_array(part, title) for title, part in parts.items()]
            undone.append(onnx.helper.make_node("DequantizeLinear", list(parts), [name], axis=0))
        else:
            stored.append(onnx.numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
            undone.append(onnx.helper.make_node("Cast", [f"{name}.half"], [name], to=onnx.TensorProto.FLOAT))
    nodes = [*undone, *graph.node]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(stored)


def provenance(run: Run, teacher: str) -> dict[str, Any]:
    """What a network was made of: pictures with their terms, teacher, settings, steps and curve."""
    measured = [row for row in run.curve if "recall" in row]
    every = max(1, len(run.curve) // 60)
    return {
        "teacher": teacher,
        "settings": asdict(run.settings),
        "steps": run.step,
        "hours": round(run.seconds / 3600, 2),
        "images seen": run.step * run.settings.moments * 2,
        "parameters": sum(parameter.numel() for parameter in run.averaged.parameters()),
        "pictures": [
            *({"source": f"Debian package {package.name}", "terms": package.terms} for package in PACKAGES),
            *({"source": folder.name, "terms": folder.terms} for folder in FOLDERS),
            {"source": "pages, slides, charts and shapes drawn by drawn.py", "terms": "our own"},
        ],
        "held back": {
            "edits": list(HELD_BACK_EDITS),
            "sources": "the held-back half of the copy benchmark, the folder shots, every sixth scene of clips, one in "
            "ten of the photographs without a split",
        },
        "validation": measured,
        "curve": [row for row in run.curve if "loss" in row][::every],
    }
