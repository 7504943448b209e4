"""The student network: fewer and narrower residual blocks than the teacher, for smaller frames.

The public teacher is a ResNet-50 (He et al. 2016) with generalized-mean pooling and one linear layer, stored with
quantized weights. A student has the same kind of blocks with fewer channels (`vidkin_research.frame_encoder.fold`) and
learns to reproduce the teacher's embeddings from smaller frames. Batch norms are already folded into the convolutions,
and pixel normalization into the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from vidkin._base.registry import import_part
from vidkin.errors import InvalidArgumentError

__all__ = ["GRAY", "Block", "Student", "StudentSettings", "generalized_mean", "load_student", "load_teacher"]

# ResNet-50 stages: channels inside a block, output channels, number of blocks, stride.
_STAGES = ((64, 256, 3, 1), (128, 512, 4, 2), (256, 1024, 6, 2), (512, 2048, 3, 2))
_STEM = 64
# Mean and standard deviation of ImageNet pixels, used to normalize the input of a ResNet-50.
_MEAN, _DEVIATION = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
# Subtracted from every channel instead of the means, so that the input stays uint8 with this zero point.
GRAY = 114.0
# Minimum value in pooling, and the teacher's pooling exponent.
_MIN_POOLED, _POWER = 1e-6, 3.0
_DIMENSION = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentSettings:
    """Architecture of a `Student`.

    Attributes:
        side: Side of the input in pixels.
        blocks: Indices of the teacher's blocks to keep in each of the four stages; the first block is required.
        inside: Number of channels inside the blocks of each stage.
        outside: Number of output channels of the last stage.
        frozen: Number of frozen stages, counted from the first; if above 0, the stem is frozen too.
    """

    side: int = 176
    blocks: tuple[tuple[int, ...], ...] = tuple(tuple(range(count)) for _, _, count, _ in _STAGES)
    inside: tuple[int, ...] = (32, 64, 128, 208)
    outside: int = 960
    frozen: int = 1

    @classmethod
    def whole(cls, side: int) -> StudentSettings:
        """Return the settings of the teacher's architecture."""
        return cls(side=side, inside=tuple(inside for inside, *_ in _STAGES), outside=_STAGES[-1][1])

    def __post_init__(self) -> None:
        if self.side < 32:
            raise InvalidArgumentError(f"side must be at least 32, got {self.side}")
        if len(self.blocks) != len(_STAGES) or len(self.inside) != len(_STAGES):
            raise InvalidArgumentError(f"blocks and inside must have one entry for each of the {len(_STAGES)} stages")
        for (most, _, count, _), kept, inside in zip(_STAGES, self.blocks, self.inside, strict=True):
            if list(kept) != sorted({0, *kept}) or kept[-1] >= count:
                raise InvalidArgumentError(f"blocks of a stage must increase from 0 to at most {count - 1}, got {kept}")
            if not 1 <= inside <= most:
                raise InvalidArgumentError(f"inside must be from 1 to {most} for this stage, got {inside}")
        if not 1 <= self.outside <= _STAGES[-1][1]:
            raise InvalidArgumentError(f"outside must be from 1 to {_STAGES[-1][1]}, got {self.outside}")
        if not 0 <= self.frozen <= len(_STAGES):
            raise InvalidArgumentError(f"frozen must be from 0 to {len(_STAGES)}, got {self.frozen}")


class Block(nn.Module):
    """Residual block of three convolutions and a shortcut."""

    def __init__(self, inward: int, inside: int, outward: int, stride: int, *, widens: bool) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(inward, inside, 1)
        self.middle = nn.Conv2d(inside, inside, 3, stride, 1)
        self.expand = nn.Conv2d(inside, outward, 1)
        self.shortcut = nn.Conv2d(inward, outward, 1, stride) if widens else nn.Identity()

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        inner = functional.relu(self.middle(functional.relu(self.reduce(maps))))
        return functional.relu(self.expand(inner) + self.shortcut(maps))


class Student(nn.Module):
    """Network that maps frames [N, 3, side, side] with values from 0 to 255 to unit vectors [N, 512]."""

    def __init__(self, settings: StudentSettings) -> None:
        super().__init__()
        self.settings = settings
        self.stem = nn.Conv2d(3, _STEM, 7, 2, 3)
        self.stages = nn.ModuleList()
        width = _STEM
        for stage, (_, outward, _, stride) in enumerate(_STAGES):
            outward = settings.outside if stage == len(_STAGES) - 1 else outward
            blocks = []
            for number in settings.blocks[stage]:
                step = stride if number == 0 else 1
                blocks.append(Block(width, settings.inside[stage], outward, step, widens=number == 0))
                width = outward
            self.stages.append(nn.Sequential(*blocks))
        self.head = nn.Linear(width, _DIMENSION)

    def trained(self) -> Iterator[nn.Parameter]:
        """Yield the backbone parameters that are trained."""
        frozen = self.settings.frozen
        for part in (*([] if frozen else [self.stem]), *self.stages[frozen:]):
            yield from part.parameters()

    def begin(self, images: torch.Tensor) -> torch.Tensor:
        """Compute the input maps of the first stage."""
        return functional.max_pool2d(functional.relu(self.stem(images - GRAY)), 3, 2, 1)

    def pooled(self, images: torch.Tensor) -> torch.Tensor:
        """Compute the generalized mean of the last maps, [N, outside], which is the input of the head."""
        maps = self.begin(images)
        for stage in self.stages:
            maps = stage(maps)
        return generalized_mean(maps)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Compute unit vectors [N, 512] of images [N, 3, side, side] with values from 0 to 255."""
        return functional.normalize(self.head(self.pooled(images)), dim=1)


def generalized_mean(maps: torch.Tensor) -> torch.Tensor:
    """Pool maps [N, C, H, W] to [N, C] like the teacher: the cubic mean of positive values."""
    return maps.float().clamp(min=_MIN_POOLED).pow(_POWER).mean(dim=(2, 3)).pow(1.0 / _POWER)


def load_teacher(file: Path, *, side: int) -> Student:
    """Load the teacher as a `Student` for frames of any side.

    Args:
        file: ONNX file of a quantized ResNet-50 (QDQ) that ends in a linear layer.
        side: Side of the input in pixels.

    Raises:
        InvalidArgumentError: The file contains another network.
        MissingPartError: onnx is not installed.
    """
    convolutions, head = _read(file)
    expected = 1 + sum(3 * count + 1 for _, _, count, _ in _STAGES)
    if len(convolutions) != expected or head[0].shape != (_DIMENSION, _STAGES[-1][1]):
        raise InvalidArgumentError(
            f"{file} must be a ResNet-50 with {expected} convolutions and a layer of {_DIMENSION} x {_STAGES[-1][1]}, "
            f"got {len(convolutions)} convolutions and {' x '.join(map(str, head[0].shape))}"
        )
    teacher = Student(StudentSettings.whole(side)).eval().requires_grad_(False)
    given = iter(convolutions)
    weight, bias = next(given)
    weight = weight / np.array(_DEVIATION, np.float32)[:, None, None]
    # Adjust the bias so that subtracting gray gives the same result as subtracting the mean.
    bias = bias + weight.sum(axis=(2, 3)) @ (GRAY - np.array(_MEAN, np.float32))
    _set_weights(teacher.stem, weight, bias)
    for stage in teacher.stages:
        for number, block in enumerate(stage.children()):
            _set_weights(block.reduce, *next(given))
            if number == 0:
                _set_weights(block.shortcut, *next(given))
            _set_weights(block.middle, *next(given))
            _set_weights(block.expand, *next(given))
    _set_weights(teacher.head, *head)
    return teacher


def load_student(student: Student, file: Path) -> None:
    """Load all weights except the head from an exported student with the same architecture.

    Args:
        student: The network to fill.
        file: ONNX file written by `vidkin_research.frame_encoder.export.export_student`.

    Raises:
        InvalidArgumentError: The file contains another network.
        MissingPartError: onnx is not installed.
    """
    _, values = _open(file)
    with torch.no_grad():
        for name, parameter in student.named_parameters():
            if name.startswith("head."):
                continue
            try:
                stored = torch.tensor(values(f"student.{name}"))
            except KeyError:
                raise InvalidArgumentError(
                    f"{file} must be an exported student, got a network without {name}"
                ) from None
            if stored.shape != parameter.shape:
                raise InvalidArgumentError(
                    f"{file}: {name} must be {tuple(parameter.shape)}, got {tuple(stored.shape)}; use the recipe "
                    "that the student was trained with"
                )
            parameter.copy_(stored)


_Layer = tuple[NDArray[np.float32], NDArray[np.float32]]


def _set_weights(layer: Any, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> None:
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        layer.bias.copy_(torch.tensor(bias))


def _read(file: Path) -> tuple[list[_Layer], _Layer]:
    """Read the weights and biases of the convolutions, in order, and of the linear layer."""
    nodes, values = _open(file)
    layers = [(values(node.input[1]), values(node.input[2])) for node in nodes if node.op_type == "Conv"]
    heads = [(values(node.input[1]), values(node.input[2])) for node in nodes if node.op_type == "Gemm"]
    if len(heads) != 1:
        raise InvalidArgumentError(f"{file} must have one linear layer, got {len(heads)}")
    return layers, heads[0]


def _open(file: Path) -> tuple[list[Any], Callable[[str], NDArray[np.float32]]]:
    """Open a network; return its nodes, and a function that returns a tensor by name or raises KeyError."""
    onnx = import_part("onnx", extra="train")
    graph = onnx.load(str(file)).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    undone = {node.output[0]: node.input for node in graph.node if node.op_type == "DequantizeLinear"}

    def values(name: str) -> NDArray[np.float32]:
        if name in stored:
            return np.asarray(stored[name], dtype=np.float32)
        parts: Sequence[str] = undone[name if name in undone else f"{name}_DequantizeLinear_Output"]
        whole, scale = (np.asarray(stored[part], dtype=np.float32) for part in parts[:2])
        zero = np.asarray(stored[parts[2]], dtype=np.float32) if len(parts) > 2 else np.zeros_like(scale)
        shape = (-1, *(1,) * (whole.ndim - 1)) if scale.size > 1 else ()
        return np.asarray((whole - zero.reshape(shape)) * scale.reshape(shape), np.float32)

    return list(graph.node), values
