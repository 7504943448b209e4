"""Estimate operations, memory and hours of a training run without data or weights."""

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
"""Floating-point operations per second assumed for a GPU: the sustained float32 speed of a 24 GB card."""

_GIB = 2**30
# Bytes per weight: the weight, its gradient and two moments, in float32.
_BYTES_OF_WEIGHT = 16
# A backward pass costs about twice as much as a forward pass.
_PASSES = 3
_MEASURED_SECONDS = 0.3


@dataclass(frozen=True, kw_only=True)
class StepCost:
    """The cost of a training step.

    Attributes:
        operations: Number of floating-point operations; a multiply-add counts as two.
        gib: Device memory for weights, optimizer and activations, in GiB.
    """

    operations: float
    gib: float


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Training runs with the same cost per step.

    Attributes:
        what: Short description of the runs.
        runs: Number of runs.
        steps: Number of steps per run.
        cost: Cost of a step.
        core_seconds: Additional CPU seconds per step, for decoding and editing.
    """

    what: str
    runs: int
    steps: int
    cost: StepCost
    core_seconds: float = 0.0


def cost_of_step(config: EncoderConfig, *, items: int) -> StepCost:
    """Compute the cost of an encoder's training step from shapes alone.

    Args:
        config: The encoder; for a frozen backbone, only the forward pass is counted.
        items: Number of images or clips per step.
    """
    model = build_model(config, weights="random").to("meta")
    shape = (config.frames, 3, config.size, config.size) if config.takes_clips else (3, config.size, config.size)
    inputs = torch.empty((1, *shape), device="meta")
    return cost_of_forward(model, lambda: _outputs(model, inputs), scale=items)


def cost_of_forward(model: nn.Module, forward: Callable[[], object], *, scale: float = 1.0) -> StepCost:
    """Compute the cost of a training step whose forward pass costs ``scale`` times this one, on the ``meta`` device."""
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
    """Measure the floating-point operations per second of a convolution on a device; return it with a description.

    If there is no GPU, `ASSUMED_SPEED` is used.
    """
    if device.startswith("cuda") and not torch.cuda.is_available():
        return ASSUMED_SPEED, f"assuming a GPU with {ASSUMED_SPEED / 1e12:g} teraflops, because this machine has none"
    where = torch.device(resolve_device(device))
    layer, images = nn.Conv2d(128, 128, 3, padding=1).to(where), torch.zeros(16, 128, 28, 28, device=where)
    operations = 2.0 * 128 * 128 * 9 * images.shape[0] * 28 * 28
    count, began = 0, 0.0
    with torch.no_grad():
        layer(images)
        _synchronize(where)
        began = time.perf_counter()
        while count < 2 or time.perf_counter() - began < _MEASURED_SECONDS:
            layer(images)
            _synchronize(where)
            count += 1
    speed = count * operations / (time.perf_counter() - began)
    return speed, f"{where.type} of this machine, measured at {speed / 1e9:.0f} gigaflops"


def hours_of(workloads: Sequence[Workload], *, speed: float, cores: int) -> float:
    """Estimate the hours for all steps, on the device or on the CPU cores, whichever takes longer."""
    seconds = 0.0
    for load in workloads:
        of_step = max(load.cost.operations / speed, load.core_seconds / max(1, cores))
        seconds += load.runs * load.steps * of_step
    return seconds / 3600


def _outputs(model: Encoder, inputs: Tensor) -> object:
    # Computing a classifier's logits as well costs almost nothing, and one call covers both heads.
    return model(inputs) if model.config.kind == "two_head" else model.embed(inputs)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
