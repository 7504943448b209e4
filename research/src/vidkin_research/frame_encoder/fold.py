"""Fold a teacher into a narrower student: prune the channels of every block and refit the rest by least squares.

Block by block, from the first, remove the channels that the remaining ones can best compensate for (structured form of
Hassibi and Stork 1993, "Second order derivatives for network pruning"), then fit every convolution by ridge regression
to the output of the teacher's block for the same images (He, Zhang and Sun 2017, "Channel pruning for accelerating very
deep neural networks"). Each fit uses the student's own maps as inputs, so a block also corrects the errors of earlier
blocks. No gradients are computed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from vidkin_research.frame_encoder.material import to_input
from vidkin_research.frame_encoder.network import Block, Student, generalized_mean

__all__ = ["Normal", "channels_to_keep", "fold_teacher"]

logger = logging.getLogger(__name__)

Maps = list[torch.Tensor]
Positions = list[torch.Tensor]

# Number of images per batch, and of sampled map positions per image.
_BATCH, _POSITIONS = 32, 48
# Ridge penalties, relative to the mean square of the inputs.
_RIDGE, _PRUNING_RIDGE = 1e-4, 1e-3


class Normal:
    """Normal equations of a linear map with a bias, accumulated over batches of rows.

    Args:
        inputs: Number of input columns.
        outputs: Number of target columns.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        self._squares = torch.zeros(inputs + 1, inputs + 1, dtype=torch.float64)
        self._products = torch.zeros(inputs + 1, outputs, dtype=torch.float64)
        self._rows = 0

    def add(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        """Add rows of inputs [N, inputs] and targets [N, outputs]."""
        design = torch.cat([inputs, torch.ones(len(inputs), 1)], dim=1)
        with torch.autocast("cpu", enabled=False):  # bfloat16 sums would have only 8 bits of precision
            self._squares += (design.T @ design).double()
            self._products += (design.T @ targets).double()
        self._rows += len(inputs)

    def covariance(self) -> torch.Tensor:
        """Return the covariance of the inputs, [inputs, inputs]."""
        mean = self._squares[:-1, -1] / self._rows
        return self._squares[:-1, :-1] / self._rows - mean[:, None] * mean

    def solve(self, ridge: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Solve for the weights [outputs, inputs] and bias [outputs]; the ridge penalty does not apply to the bias."""
        penalty = ridge * self._squares.diagonal()[:-1].mean() * torch.eye(len(self._squares), dtype=torch.float64)
        penalty[-1, -1] = 0.0
        solved = torch.linalg.solve(self._squares + penalty, self._products)
        return solved[:-1].T.float(), solved[-1].float()


def channels_to_keep(covariance: torch.Tensor, weights: torch.Tensor, taps: int, count: int) -> torch.Tensor:
    """Select the input channels that a linear layer needs most, if the kept ones compensate for the removed ones.

    Args:
        covariance: Covariance of the inputs, [C * taps, C * taps].
        weights: Weights of the layer, [outputs, C * taps].
        taps: Number of adjacent inputs per channel: 9 for a 3 x 3 convolution.
        count: Number of channels to keep.

    Returns:
        Indices of the kept channels in ascending order.
    """
    channels = len(covariance) // taps
    strength = covariance.diagonal().mean()
    inverse = torch.linalg.inv(covariance + _PRUNING_RIDGE * strength * torch.eye(len(covariance), dtype=torch.float64))
    weights = weights.double().clone()
    kept = torch.ones(channels, dtype=torch.bool)
    while int(kept.sum()) > count:
        left = kept.nonzero()[:, 0]
        own = inverse.view(channels, taps, channels, taps)[left, :, left, :]
        lost = weights.view(-1, channels, taps)[:, left].permute(1, 2, 0)
        worth = (lost * torch.linalg.solve(own, lost)).sum(dim=(1, 2))
        # Remove one channel at a time: of two identical channels, either can be removed, but not both.
        leaving = left[worth.argmin()]
        inputs = leaving * taps + torch.arange(taps)
        # Update the weights of the remaining inputs to compensate, and reduce the inverse covariance to these inputs.
        share = torch.linalg.solve(inverse[inputs][:, inputs], inverse[inputs])
        weights -= weights[:, inputs] @ share
        inverse -= inverse[inputs].T @ share
        kept[leaving] = False
        weights[:, inputs] = 0.0
        inverse[inputs], inverse[:, inputs] = 0.0, 0.0
        inverse[inputs, inputs] = 1.0
    return kept.nonzero()[:, 0]


@torch.no_grad()
def fold_teacher(
    student: Student, teacher: Student, images: NDArray[np.uint8], *, seed: int = 0, bfloat16: bool = True
) -> None:
    """Set all weights of a student except its head, which is fitted to the teacher's embeddings afterward.

    Args:
        student: The network to fill. If it lacks a block of the teacher, its next block compensates.
        teacher: The full network.
        images: About a thousand images [N, side, side, 3] uint8, unedited and edited, shuffled.
        seed: Random seed for sampling map positions.
        bfloat16: Whether to compute maps in bfloat16.
    """
    random = torch.Generator().manual_seed(seed)
    student.stem.load_state_dict(teacher.stem.state_dict())
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        theirs = [teacher.begin(to_input(images[first : first + _BATCH])) for first in range(0, len(images), _BATCH)]
    ours = list(theirs)
    for number, (stage, whole) in enumerate(zip(student.stages, teacher.stages, strict=True)):
        blocks = dict(zip(student.settings.blocks[number], stage.children(), strict=True))
        outside = _select_outside(student, teacher, theirs, bfloat16) if number == len(student.stages) - 1 else None
        for position, original in enumerate(whole.children()):
            block = blocks.get(position)
            if block is not None:
                with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
                    _fold_block(block, original, ours, theirs, outside, random)  # type: ignore[arg-type]
                ours = _apply(block, ours, bfloat16)
            theirs = _apply(original, theirs, bfloat16)
            if block is not None:
                lost = _unexplained_variance(ours, theirs, outside)
                logger.info("stage %d, block %d: lost %.3f of the variance of its maps", number, position, lost)


def _select_outside(student: Student, teacher: Student, maps: Maps, bfloat16: bool) -> torch.Tensor:
    """Select the output channels of a student's last stage from the inputs of the teacher's last stage."""
    for block in teacher.stages[-1].children():
        maps = _apply(block, maps, bfloat16)
    normal = Normal(teacher.head.in_features, 1)
    for each in maps:
        pooled = generalized_mean(each)
        normal.add(pooled, pooled[:, :1])
    return channels_to_keep(normal.covariance(), teacher.head.weight, 1, student.settings.outside)


def _apply(block: Callable[[torch.Tensor], torch.Tensor], maps: Maps, bfloat16: bool) -> Maps:
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        return [block(each) for each in maps]


def _unexplained_variance(ours: Maps, theirs: Maps, outside: torch.Tensor | None) -> float:
    """Return the squared error of a student's maps as a fraction of the variance of the teacher's maps."""
    wrong = spread = 0.0
    for own, their in zip(ours, theirs, strict=True):
        right = _select(their, outside).float()
        wrong += float((own.float() - right).square().sum())
        spread += float((right - right.mean(dim=(0, 2, 3), keepdim=True)).square().sum())
    return wrong / spread


def _fold_block(
    block: Block, original: Block, ours: Maps, theirs: Maps, outside: torch.Tensor | None, random: torch.Generator
) -> None:
    """Select the inner channels of a block and fit its three convolutions in order.

    Args:
        block: The student's block.
        original: The teacher's block.
        ours: Inputs of the student's block.
        theirs: Inputs of the teacher's block.
        outside: Output channels of the teacher's block to fit; None for all.
        random: Random generator for sampling positions.
    """
    stride = original.middle.stride[0]
    before = list(_sample_positions(theirs, 1, _POSITIONS * stride * stride, random))
    after = list(_sample_positions(theirs, stride, _POSITIONS, random))
    reduced = [original.reduce(each) for each in theirs]
    middled = [original.middle(functional.relu(each)) for each in reduced]
    inner, outer = _select_inside(block, original, reduced, middled, outside, after)

    normal = Normal(block.reduce.in_channels, len(inner))
    for own, right, positions in zip(ours, reduced, before, strict=True):
        normal.add(_rows(own, positions), _rows(right[:, inner], positions))
    _set_weights(block.reduce, *normal.solve(_RIDGE))

    maps = [functional.relu(block.reduce(each)) for each in ours]
    normal = Normal(9 * len(inner), len(outer))
    for own, right, positions in zip(maps, middled, after, strict=True):
        normal.add(_patches(own, stride, positions), _rows(right[:, outer], positions))
    _set_weights(block.middle, *normal.solve(_RIDGE))

    widens = isinstance(block.shortcut, nn.Conv2d)
    entering = block.reduce.in_channels if widens else 0
    normal = Normal(len(outer) + entering, block.expand.out_channels)
    for own, inside, their, right, positions in zip(ours, maps, theirs, middled, after, strict=True):
        leaving = _select(original.expand(functional.relu(right)) + original.shortcut(their), outside)
        inputs, targets = _rows(functional.relu(block.middle(inside)), positions), _rows(leaving, positions)
        entered = _rows(own[:, :, ::stride, ::stride], positions)
        if widens:
            normal.add(torch.cat([inputs, entered], dim=1), targets)
        else:
            normal.add(inputs, targets - entered)
    weight, shift = normal.solve(_RIDGE)
    _set_weights(block.expand, weight[:, : len(outer)], shift)
    if isinstance(block.shortcut, nn.Conv2d):
        _set_weights(block.shortcut, weight[:, len(outer) :], torch.zeros_like(shift))


def _select_inside(
    block: Block, original: Block, reduced: Maps, middled: Maps, outside: torch.Tensor | None, positions: Positions
) -> tuple[torch.Tensor, torch.Tensor]:
    """Select which channels of the teacher's block to keep before and after its middle convolution."""
    count, stride = block.reduce.out_channels, original.middle.stride[0]
    expand = original.expand.weight.flatten(1)
    normal = Normal(original.middle.out_channels, 1)
    for each, sampled in zip(middled, positions, strict=True):
        rows = _rows(functional.relu(each), sampled)
        normal.add(rows, rows[:, :1])
    outer = channels_to_keep(normal.covariance(), expand if outside is None else expand[outside], 1, count)
    if count == original.reduce.out_channels:
        return torch.arange(count), outer
    normal = Normal(9 * original.reduce.out_channels, 1)
    for each, sampled in zip(reduced, positions, strict=True):
        rows = _patches(functional.relu(each), stride, sampled)
        normal.add(rows, rows[:, :1])
    return channels_to_keep(normal.covariance(), original.middle.weight.flatten(1)[outer], 9, count), outer


def _sample_positions(maps: Maps, stride: int, count: int, random: torch.Generator) -> Iterator[torch.Tensor]:
    """Sample positions [N, count] of the strided maps for each batch."""
    for each in maps:
        height, width = (-(-size // stride) for size in each.shape[2:])
        total = height * width
        yield torch.stack([torch.randperm(total, generator=random)[: min(count, total)] for _ in each])


def _rows(maps: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Return the values [N * P, C] of maps [N, C, H, W] at positions [N, P]."""
    channels = maps.shape[1]
    chosen = maps.flatten(2).gather(2, positions[:, None].expand(-1, channels, -1))
    return chosen.transpose(1, 2).reshape(-1, channels).float()


def _patches(maps: torch.Tensor, stride: int, positions: torch.Tensor) -> torch.Tensor:
    """Return the inputs [N * P, 9 * C] of a 3 x 3 convolution at output positions [N, P]."""
    unfolded = functional.unfold(maps.float(), 3, padding=1, stride=stride)
    return _rows(unfolded[..., None], positions)


def _select(maps: torch.Tensor, channels: torch.Tensor | None) -> torch.Tensor:
    return maps if channels is None else maps[:, channels]


def _set_weights(layer: nn.Conv2d, weight: torch.Tensor, shift: torch.Tensor) -> None:
    layer.weight.copy_(weight.view(layer.weight.shape))
    assert layer.bias is not None
    layer.bias.copy_(shift)
