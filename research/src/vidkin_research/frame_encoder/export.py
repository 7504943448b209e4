"""Export a student as a quantized ONNX file that takes uint8 frames, with a provenance file."""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vidkin._base.registry import import_part
from vidkin.features.onnx_runtime import load_onnxruntime
from vidkin_research.frame_encoder.held_back import HELD_BACK_EDITS
from vidkin_research.frame_encoder.material import Material
from vidkin_research.frame_encoder.network import GRAY, Student
from vidkin_research.frame_encoder.sources import FOLDERS, PACKAGES
from vidkin_research.frame_encoder.teacher import open_pixel_encoder
from vidkin_research.frame_encoder.train import Run
from vidkin_research.frame_encoder.whitening import fit_whitening

__all__ = ["export_student", "provenance"]

_OPSET = 17
# Number of images for calibrating the activation ranges, each unedited and edited; and the batch size.
_CALIBRATION_IMAGES, _BATCH = 96, 8


class _Pooled(nn.Module):
    """Computes a student's pooled maps, scaled to unit length, for uint8 frames [N, side, side, 3]."""

    def __init__(self, student: Student) -> None:
        super().__init__()
        self.student = student

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(self.student.pooled(image.permute(0, 3, 1, 2).float()), dim=1)


def export_student(run: Run, material: Material, target: Path, *, teacher: str) -> Path:
    """Export the averaged weights of a run with a whitening head, and write their provenance to ``TARGET.json``.

    The input ``image`` is uint8 RGB [N, side, side, 3]; the output ``embedding`` contains unit vectors [N, D]. Weights
    and activations have eight bits, with one scale per channel for weights. The training head outputs vectors in the
    teacher's space; the exported head is fitted to the quantized network, so that it accounts for quantization noise.

    Args:
        run: The training run.
        material: Images for calibrating the activation ranges.
        target: Path of the file to write.
        teacher: Description of the teacher for the provenance file.

    Raises:
        MissingPartError: onnx is not installed.
    """
    import_part("onnx", extra="train")
    load_onnxruntime()
    quantization = import_part("onnxruntime.quantization", extra="train")
    side = run.settings.student.side
    target.parent.mkdir(parents=True, exist_ok=True)
    student = run.averaged.eval().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    with tempfile.TemporaryDirectory(dir=target.parent) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecation of this exporter; the newer one needs another package
        whole, prepared = Path(folder, "whole.onnx"), Path(folder, "prepared.onnx")
        torch.onnx.export(
            _Pooled(student),
            (torch.zeros(2, side, side, 3, dtype=torch.uint8),),
            str(whole),
            input_names=["image"],
            output_names=["pooled"],
            dynamic_axes={"image": {0: "frames"}, "pooled": {0: "frames"}},
            opset_version=_OPSET,
            dynamo=False,
        )
        quantization.quant_pre_process(str(whole), str(prepared))
        quantization.quantize_static(
            str(prepared),
            str(target),
            _CalibrationReader(material, side),
            op_types_to_quantize=["Conv", "Add", "Relu", "MaxPool"],
            per_channel=True,
            weight_type=quantization.QuantType.QInt8,
            activation_type=quantization.QuantType.QUInt8,
        )
        _take_bytes(target)
    _append_whitening(target, *_fit_head(target, run, material))
    facts = {"sha256": hashlib.sha256(target.read_bytes()).hexdigest(), **provenance(run, teacher)}
    target.with_suffix(".json").write_text(json.dumps(facts) + "\n")
    return target


def _take_bytes(file: Path) -> None:
    """Let the first layer take uint8 frames directly, with gray as the zero point.

    Otherwise each byte is converted to float, shifted and requantized, which takes a tenth of the network's run time.
    """
    onnx = import_part("onnx", extra="train")
    model = onnx.load(str(file))
    graph = model.graph
    made_by = {output: node for node in graph.node for output in node.output}
    used_by = {name: node for node in graph.node for name in node.input}
    lessened = next(node for node in graph.node if node.op_type == "Sub")
    made_float, made_whole = made_by[lessened.input[0]], used_by[lessened.output[0]]
    assert (made_float.op_type, made_whole.op_type) == ("Cast", "QuantizeLinear")
    unmade = used_by[made_whole.output[0]]
    scale, zero = "gray_scale", "gray_zero"
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(1.0, np.float32), scale))
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(int(GRAY), np.uint8), zero))
    unmade.input[:] = [made_float.input[0], scale, zero]
    for node in (made_float, lessened, made_whole):
        graph.node.remove(node)
    used = {name for node in graph.node for name in node.input}
    for tensor in [each for each in graph.initializer if each.name not in used]:
        graph.initializer.remove(tensor)
    onnx.save(model, str(file))


def _fit_head(file: Path, run: Run, material: Material) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit a whitening to the pooled maps of an exported network, with two edited views of each image."""
    settings, encode = run.settings, open_pixel_encoder(f"onnx:{file}")
    random = np.random.default_rng([settings.seed, 9])
    chosen = random.choice(
        material.training, size=settings.whitened, replace=settings.whitened > len(material.training)
    )
    features = [
        encode(
            np.stack(
                [
                    material.view(int(number), random, side=settings.student.side, edited=view > 0)
                    for number in chosen[first : first + _BATCH]
                ]
            )
        )
        for view in range(3)
        for first in range(0, len(chosen), _BATCH)
    ]
    plain, *edited = np.split(np.concatenate(features).astype(np.float64), 3)
    return fit_whitening(
        plain,
        np.stack(edited),
        dimension=settings.dimension,
        ridge=settings.whitening_ridge,
        power=settings.whitening_power,
    )


def _append_whitening(file: Path, projection: NDArray[np.float64], shift: NDArray[np.float64]) -> None:
    """Append a projection and a normalization to a network; the projection is stored in 16 bits."""
    onnx = import_part("onnx", extra="train")
    model = onnx.load(str(file))
    graph = model.graph
    scale = 1 / np.abs(projection).max()  # cancels out when the output is normalized
    stored = (scale * projection.T).astype(np.float16)
    graph.initializer.append(onnx.numpy_helper.from_array(stored, "whitening16"))
    graph.initializer.append(onnx.numpy_helper.from_array((scale * shift).astype(np.float32), "shift"))
    graph.node.extend(
        [
            onnx.helper.make_node("Cast", ["whitening16"], ["whitening"], to=onnx.TensorProto.FLOAT),
            onnx.helper.make_node("MatMul", ["pooled", "whitening"], ["projected"]),
            onnx.helper.make_node("Add", ["projected", "shift"], ["whitened"]),
            onnx.helper.make_node("LpNormalization", ["whitened"], ["embedding"], axis=1, p=2),
        ]
    )
    output = onnx.helper.make_tensor_value_info("embedding", onnx.TensorProto.FLOAT, ["frames", stored.shape[1]])
    del graph.output[:]
    graph.output.append(output)
    onnx.checker.check_model(model)
    onnx.save(model, str(file))


class _CalibrationReader:
    """Supplies calibration batches to ONNX Runtime's quantizer."""

    def __init__(self, material: Material, side: int) -> None:
        self._batches = self._sample_batches(material, side)

    def get_next(self) -> dict[str, NDArray[np.uint8]] | None:
        """Return the next batch, or None after the last one."""
        return next(self._batches, None)

    @staticmethod
    def _sample_batches(material: Material, side: int) -> Iterator[dict[str, NDArray[np.uint8]]]:
        random = np.random.default_rng(0)
        chosen = random.choice(material.training, size=_CALIBRATION_IMAGES)
        for first in range(0, len(chosen), _BATCH):
            images = [
                material.view(int(number), random, side=side, edited=edited)
                for number in chosen[first : first + _BATCH]
                for edited in (False, True)
            ]
            yield {"image": np.stack(images)}


def provenance(run: Run, teacher: str) -> dict[str, Any]:
    """Return the provenance of a network: images with their licenses, teacher, settings, steps and curve."""
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
