"""Estimate the requirements of a training without data or weights: operations, memory and hours."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from vidkin.features.sessions import resolve_device
from vidkin.models import Encoder, EncoderConfig, build_model

__all__ = [
    "ASSUMED_SPEED",
    "StepCost",
    "Workload",
    "cost_of_forward",
    "cost_of_step",
    "hours_of",
    "measure_speed",
]

ASSUMED_SPEED = 1e13
"""Floating-point operations a second of a GPU that is not here: what a card of 24 GB sustains in float32."""

_GIB = 2**30
# Weights, gradients and two moments of each, in float32.
_BYTES_OF_WEIGHT = 16
# Forward once, backward about twice as much.
_PASSES = 3
_MEASURED_SECONDS = 0.3


@dataclass(frozen=True, kw_only=True)
class StepCost:
    """The cost of a training step.

    Attributes:
        operations: Floating-point operations; a multiplication and an addition are two.
        gib: GiB of the device for weights, optimizer and activations.
    """

    operations: float
    gib: float


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Steps that cost the same.

    Attributes:
        what: What is trained, in a few words.
        runs: Number of trainings.
        steps: Steps of each.
        cost: Cost of a step.
        core_seconds: Seconds of one processor core that a step needs besides, for decoding and editing.
    """

    what: str
    runs: int
    steps: int
    cost: StepCost
    core_seconds: float = 0.0


def cost_of_step(config: EncoderConfig, *, items: int) -> StepCost:
    """Cost of a step of an encoder, counted on shapes alone: nothing is computed, and no weights are needed.

    Args:
        config: The encoder; a frozen backbone is counted once, forward.
        items: Images or clips of a step.
    """
    model = build_model(config, weights="random").to("meta")
    shape = (config.frames, 3, config.size, config.size) if config.takes_clips else (3, config.size, config.size)
    inputs = torch.empty((1, *shape), device="meta")
    return cost_of_forward(model, lambda: _outputs(model, inputs), scale=items)


def cost_of_forward(model: nn.Module, forward: Callable[[], object], *, scale: float = 1.0) -> StepCost:
    """Cost of a training step whose forward pass is ``scale`` times this one, of a model on the device ``meta``."""
    held = 0

    def pack(tensor: Tensor) -> Tensor:
        nonlocal held
        held += tensor.numel() * tensor.element_size()
        return tensor

    with FlopCounterMode(display=False) as counted, torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
        forward()
    trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    passes = _PASSES if all(weight.requires_grad for weight in model.parameters()) else 1
    return StepCost(
        operations=passes * scale * counted.get_total_flops(),
        gib=(scale * held + _BYTES_OF_WEIGHT * trained) / _GIB,
    )


def measure_speed(device: str) -> tuple[float, str]:
    """Floating-point operations a second of a convolution on a device, and in words where the figure is from.

    Of a GPU that is not here `ASSUMED_SPEED`.
    """
    if device.startswith("cuda") and not torch.cuda.is_available():
        return ASSUMED_SPEED, f"a GPU of {ASSUMED_SPEED / 1e12:g} teraflops assumed, as there is none here"
    where = torch.device(resolve_device(device))
    layer, images = nn.Conv2d(128, 128, 3, padding=1).to(where), torch.zeros(16, 128, 28, 28, device=where)
    operations = 2.0 * 128 * 128 * 9 * images.shape[0] * 28 * 28
    count, began = 0, 0.0
    with torch.no_grad():
        layer(images)
        _wait(where)
        began = time.perf_counter()
        while count < 2 or time.perf_counter() - began < _MEASURED_SECONDS:
            layer(images)
            _wait(where)
            count += 1
    speed = count * operations / (time.perf_counter() - began)
    return speed, f"{where.type} here, {speed / 1e9:.0f} gigaflops a second measured"


def hours_of(workloads: Sequence[Workload], *, speed: float, cores: int) -> float:
    """Hours of all steps: of the device or of the cores, whichever takes longer."""
    seconds = 0.0
    for load in workloads:
        of_step = max(load.cost.operations / speed, load.core_seconds / max(1, cores))
        seconds += load.runs * load.steps * of_step
    return seconds / 3600


def _outputs(model: Encoder, inputs: Tensor) -> object:
    # A classifier's logits cost next to nothing more; its call also gives those of two heads.
    return model(inputs) if model.config.kind == "two_head" else model.embed(inputs)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
