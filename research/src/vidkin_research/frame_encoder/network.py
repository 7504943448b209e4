"""The student: residual blocks of the teacher itself, fewer and narrower, for smaller frames.

The public teacher is a ResNet-50 (He et al. 2016) with generalized-mean pooling and one linear layer, stored in whole
numbers. A student begins as what is left of it when blocks and channels are taken out, and learns to say at a smaller
side what the whole network says at its own. Batch norms are folded into the convolutions already.
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

__all__ = ["Student", "StudentSettings", "load_student", "load_teacher"]

# Of each stage of a ResNet-50: channels inside of a block, channels that leave it, blocks, stride.
_STAGES = ((64, 256, 3, 1), (128, 512, 4, 2), (256, 1024, 6, 2), (512, 2048, 3, 2))
_STEM = 64
# What a ResNet-50 gets: pixels less the mean, by the deviation, of ImageNet.
_MEAN, _DEVIATION = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
# Pooled values are at least this; the teacher's power.
_LEAST, _POWER = 1e-6, 3.0
_DIMENSION = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentSettings:
    """Architecture of a `Student`.

    Attributes:
        side: Side of the input in pixels.
        blocks: Numbers of the teacher's blocks that stay, for each of its four stages; the first of each stage must.
        inside: Channels that stay inside of the blocks, for each stage.
        outside: Channels that leave the blocks of the last stage.
        frozen: Stages that are not trained, from the first; the stem is not if one is.
    """

    side: int = 144
    blocks: tuple[tuple[int, ...], ...] = ((0, 1), (0, 2), (0, 4, 5), (0,))
    inside: tuple[int, ...] = (64, 128, 256, 320)
    outside: int = 1024
    frozen: int = 1

    def __post_init__(self) -> None:
        if self.side < 32:
            raise InvalidArgumentError(f"side must be at least 32, got {self.side}")
        if len(self.blocks) != len(_STAGES) or len(self.inside) != len(_STAGES):
            raise InvalidArgumentError(f"blocks and inside must name {len(_STAGES)} stages")
        for (most, _, count, _), kept, inside in zip(_STAGES, self.blocks, self.inside, strict=True):
            if list(kept) != sorted({0, *kept}) or kept[-1] >= count:
                raise InvalidArgumentError(f"blocks of a stage must be 0 and others below {count}, rising, got {kept}")
            if not 1 <= inside <= most:
                raise InvalidArgumentError(f"inside must be from 1 to {most} for this stage, got {inside}")
        if not 1 <= self.outside <= _STAGES[-1][1]:
            raise InvalidArgumentError(f"outside must be from 1 to {_STAGES[-1][1]}, got {self.outside}")
        if not 0 <= self.frozen <= len(_STAGES):
            raise InvalidArgumentError(f"frozen must be from 0 to {len(_STAGES)}, got {self.frozen}")


class _Block(nn.Module):
    """Three convolutions around a shortcut."""

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
    """Unit vectors [N, 512] of frames [N, 3, side, side] with values from 0 to 255."""

    mean: torch.Tensor
    deviation: torch.Tensor

    def __init__(self, settings: StudentSettings) -> None:
        super().__init__()
        self.settings = settings
        self.register_buffer("mean", torch.tensor(_MEAN).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(_DEVIATION).view(1, 3, 1, 1), persistent=False)
        self.stem = nn.Conv2d(3, _STEM, 7, 2, 3)
        self.stages = nn.ModuleList()
        width = _STEM
        for stage, (_, outward, _, stride) in enumerate(_STAGES):
            outward = settings.outside if stage == len(_STAGES) - 1 else outward
            blocks = []
            for number in settings.blocks[stage]:
                step = stride if number == 0 else 1
                blocks.append(_Block(width, settings.inside[stage], outward, step, widens=number == 0))
                width = outward
            self.stages.append(nn.Sequential(*blocks))
        self.head = nn.Linear(width, _DIMENSION)

    def trained(self) -> Iterator[nn.Parameter]:
        """The parameters of the backbone that are trained."""
        frozen = self.settings.frozen
        for part in (*([] if frozen else [self.stem]), *self.stages[frozen:]):
            yield from part.parameters()

    def pooled(self, images: torch.Tensor) -> torch.Tensor:
        """The generalized mean of the last maps, [N, outside], from which the head makes vectors."""
        maps = functional.relu(self.stem((images - self.mean) / self.deviation))
        maps = functional.max_pool2d(maps, 3, 2, 1)
        for stage in self.stages:
            maps = stage(maps)
        return maps.float().clamp(min=_LEAST).pow(_POWER).mean(dim=(2, 3)).pow(1.0 / _POWER)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Vectors of unit length, [N, 512], of images [N, 3, side, side] with values from 0 to 255."""
        return functional.normalize(self.head(self.pooled(images)), dim=1)


def load_teacher(student: Student, file: Path) -> None:
    """Fill a student with those blocks and channels of the teacher that it keeps.

    Of the channels inside of a block those stay whose weights are largest, on both sides of them; of those that leave
    the last stage those that weigh most in the vector.

    Args:
        student: The network to fill.
        file: The teacher: an ONNX file of a ResNet-50 in whole numbers (QDQ), with a linear layer at its end.

    Raises:
        InvalidArgumentError: The file holds another network.
        MissingPartError: onnx is not installed.
    """
    convolutions, head = _read(file)
    expected = 1 + sum(3 * count + 1 for _, _, count, _ in _STAGES)
    if len(convolutions) != expected or head[0].shape != (_DIMENSION, _STAGES[-1][1]):
        raise InvalidArgumentError(
            f"{file} must be a ResNet-50 with {expected} convolutions and a layer of {_DIMENSION} x {_STAGES[-1][1]}, "
            f"got {len(convolutions)} convolutions and {' x '.join(map(str, head[0].shape))}"
        )
    given = iter(convolutions)
    _put(student.stem, *next(given))
    settings = student.settings
    kept_outside = np.arange(_STEM)
    for stage, (_, outward, count, _) in enumerate(_STAGES):
        last = stage == len(_STAGES) - 1
        outside = _largest(np.linalg.norm(head[0], axis=0), settings.outside) if last else np.arange(outward)
        blocks = iter(student.stages[stage].children())
        for number in range(count):
            reduce = next(given)
            shortcut = next(given) if number == 0 else None
            middle, expand = next(given), next(given)
            if number not in settings.blocks[stage]:
                continue
            block = next(blocks)
            strength = _norms(middle[0], 1) * _norms(reduce[0], 0) * _norms(expand[0], 1)
            inside = _largest(strength, settings.inside[stage])
            inward = kept_outside if number == 0 else outside
            _put(block.reduce, reduce[0][inside][:, inward], reduce[1][inside])
            _put(block.middle, middle[0][inside][:, inside], middle[1][inside])
            _put(block.expand, expand[0][outside][:, inside], expand[1][outside])
            if shortcut is not None:
                _put(block.shortcut, shortcut[0][outside][:, inward], shortcut[1][outside])
        kept_outside = outside
    _put(student.head, head[0][:, kept_outside], head[1])


def load_student(student: Student, file: Path) -> None:
    """Fill a student from an exported one of the same architecture, to go on where only that file is left.

    Args:
        student: The network to fill.
        file: An ONNX file that `vidkin_research.frame_encoder.export.export_student` wrote.

    Raises:
        InvalidArgumentError: The file holds another network.
        MissingPartError: onnx is not installed.
    """
    _, values = _open(file)
    with torch.no_grad():
        for name, parameter in student.named_parameters():
            try:
                stored = torch.tensor(values(f"student.{name}"))
            except KeyError:
                raise InvalidArgumentError(
                    f"{file} must be an exported student, got a network without {name}"
                ) from None
            if stored.shape != parameter.shape:
                raise InvalidArgumentError(
                    f"{name} of {file} must be {tuple(parameter.shape)}, got {tuple(stored.shape)}; give the recipe "
                    "that it was trained with"
                )
            parameter.copy_(stored)


_Layer = tuple[NDArray[np.float32], NDArray[np.float32]]


def _put(layer: Any, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> None:
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        layer.bias.copy_(torch.tensor(bias))


def _norms(weight: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """The norm of the weights of each channel on this axis."""
    moved = np.moveaxis(weight, axis, 0)
    norms: NDArray[np.float32] = np.linalg.norm(moved.reshape(len(moved), -1), axis=1)
    return norms


def _largest(strength: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    return np.sort(np.argsort(-strength, kind="stable")[:count])


def _read(file: Path) -> tuple[list[_Layer], _Layer]:
    """Weights and biases of the convolutions, in their order, and of the linear layer."""
    nodes, values = _open(file)
    layers = [(values(node.input[1]), values(node.input[2])) for node in nodes if node.op_type == "Conv"]
    heads = [(values(node.input[1]), values(node.input[2])) for node in nodes if node.op_type == "Gemm"]
    if len(heads) != 1:
        raise InvalidArgumentError(f"{file} must have one linear layer, got {len(heads)}")
    return layers, heads[0]


def _open(file: Path) -> tuple[list[Any], Callable[[str], NDArray[np.float32]]]:
    """The nodes of a network, and a function that gives the values of a tensor by its name; KeyError if it has none."""
    onnx = import_part("onnx", extra="export")
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
