"""The teacher folded into a narrower student: channels leave every block, and what stays is fitted by least squares.

Block by block, from the first: those channels leave that are missed least once all others make up for them (the
structured form of Hassibi and Stork 1993, "Second order derivatives for network pruning"), then every convolution is
fitted by ridge regression to what the teacher's own block says of the same pictures (He, Zhang and Sun 2017, "Channel
pruning for accelerating very deep neural networks"). Its inputs are the student's own maps, so each block makes up for
what the blocks before it have lost. No gradient is taken.
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
Places = list[torch.Tensor]

# Pictures at a time, and positions of a map that count of each picture.
_BATCH, _POSITIONS = 32, 48
# Ridge, as a share of the mean square of an input.
_RIDGE, _PRUNING_RIDGE = 1e-4, 1e-3


class Normal:
    """Normal equations of a linear map with a shift, from rows that come in pieces.

    Args:
        inputs: Numbers of a row of inputs.
        outputs: Numbers of a row of targets.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        self._squares = torch.zeros(inputs + 1, inputs + 1, dtype=torch.float64)
        self._products = torch.zeros(inputs + 1, outputs, dtype=torch.float64)
        self._rows = 0

    def add(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        """Take rows of inputs [N, inputs] and of targets [N, outputs] into account."""
        design = torch.cat([inputs, torch.ones(len(inputs), 1)], dim=1)
        with torch.autocast("cpu", enabled=False):  # sums of products would be of eight bits otherwise
            self._squares += (design.T @ design).double()
            self._products += (design.T @ targets).double()
        self._rows += len(inputs)

    def covariance(self) -> torch.Tensor:
        """Of the inputs, [inputs, inputs]."""
        mean = self._squares[:-1, -1] / self._rows
        return self._squares[:-1, :-1] / self._rows - mean[:, None] * mean

    def solve(self, ridge: float) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights [outputs, inputs] and the shift [outputs] of least squared error; the shift is free of charge."""
        penalty = ridge * self._squares.diagonal()[:-1].mean() * torch.eye(len(self._squares), dtype=torch.float64)
        penalty[-1, -1] = 0.0
        solved = torch.linalg.solve(self._squares + penalty, self._products)
        return solved[:-1].T.float(), solved[-1].float()


def channels_to_keep(covariance: torch.Tensor, weights: torch.Tensor, taps: int, count: int) -> torch.Tensor:
    """The channels of an input that are worth most to a linear layer, once the others make up for those that leave.

    Args:
        covariance: [C * taps, C * taps] of the inputs.
        weights: [outputs, C * taps] of the layer.
        taps: Inputs of one channel, next to each other: 9 for a 3 x 3 convolution.
        count: Channels to keep.

    Returns:
        Their numbers, rising.
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
        # One at a time: of two that say the same either can leave, not both.
        leaving = left[worth.argmin()]
        inputs = leaving * taps + torch.arange(taps)
        # The best weights of the others without these inputs, and the inverse covariance of the others.
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
    """Fill a student but for its head, which is fitted to the teacher's vectors afterwards.

    Args:
        student: The network to fill. Blocks that it lacks are made up for by the next one that it has.
        teacher: The whole network.
        images: [N, side, side, 3] of bytes, some thousand, as they are and edited, in no order.
        seed: Of the positions of the maps that count.
        bfloat16: Whether maps are computed in bfloat16.
    """
    random = torch.Generator().manual_seed(seed)
    student.stem.load_state_dict(teacher.stem.state_dict())
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        theirs = [teacher.begin(to_input(images[first : first + _BATCH])) for first in range(0, len(images), _BATCH)]
    ours = list(theirs)
    for number, (stage, whole) in enumerate(zip(student.stages, teacher.stages, strict=True)):
        blocks = dict(zip(student.settings.blocks[number], stage.children(), strict=True))
        outside = _streams(student, teacher, theirs, bfloat16) if number == len(student.stages) - 1 else None
        for place, original in enumerate(whole.children()):
            block = blocks.get(place)
            if block is not None:
                with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
                    _fold_block(block, original, ours, theirs, outside, random)  # type: ignore[arg-type]
                ours = _mapped(block, ours, bfloat16)
            theirs = _mapped(original, theirs, bfloat16)
            if block is not None:
                logger.info("stage %d, block %d: %.3f of its maps is lost", number, place, _lost(ours, theirs, outside))


def _streams(student: Student, teacher: Student, maps: Maps, bfloat16: bool) -> torch.Tensor:
    """Channels that leave the last stage of a student, from the maps that this stage of the teacher gets."""
    for block in teacher.stages[-1].children():
        maps = _mapped(block, maps, bfloat16)
    normal = Normal(teacher.head.in_features, 1)
    for each in maps:
        pooled = generalized_mean(each)
        normal.add(pooled, pooled[:, :1])
    return channels_to_keep(normal.covariance(), teacher.head.weight, 1, student.settings.outside)


def _mapped(block: Callable[[torch.Tensor], torch.Tensor], maps: Maps, bfloat16: bool) -> Maps:
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        return [block(each) for each in maps]


def _lost(ours: Maps, theirs: Maps, outside: torch.Tensor | None) -> float:
    """The squared error of a student's maps, as a share of the variance of the teacher's."""
    wrong = spread = 0.0
    for own, their in zip(ours, theirs, strict=True):
        right = _chosen(their, outside).float()
        wrong += float((own.float() - right).square().sum())
        spread += float((right - right.mean(dim=(0, 2, 3), keepdim=True)).square().sum())
    return wrong / spread


def _fold_block(
    block: Block, original: Block, ours: Maps, theirs: Maps, outside: torch.Tensor | None, random: torch.Generator
) -> None:
    """Choose the channels inside of a block and fit its convolutions, in their order, to the original's.

    Args:
        block: The student's block.
        original: The teacher's block.
        ours: Maps that the block gets.
        theirs: Maps that the original gets.
        outside: Channels of the original that leave the block; None for all.
        random: Source of the positions that count.
    """
    stride = original.middle.stride[0]
    before = list(_places(theirs, 1, _POSITIONS * stride * stride, random))
    after = list(_places(theirs, stride, _POSITIONS, random))
    reduced = [original.reduce(each) for each in theirs]
    middled = [original.middle(functional.relu(each)) for each in reduced]
    inner, outer = _channels(block, original, reduced, middled, outside, after)

    normal = Normal(block.reduce.in_channels, len(inner))
    for own, right, places in zip(ours, reduced, before, strict=True):
        normal.add(_rows(own, places), _rows(right[:, inner], places))
    _put(block.reduce, *normal.solve(_RIDGE))

    maps = [functional.relu(block.reduce(each)) for each in ours]
    normal = Normal(9 * len(inner), len(outer))
    for own, right, places in zip(maps, middled, after, strict=True):
        normal.add(_patches(own, stride, places), _rows(right[:, outer], places))
    _put(block.middle, *normal.solve(_RIDGE))

    widens = isinstance(block.shortcut, nn.Conv2d)
    entering = block.reduce.in_channels if widens else 0
    normal = Normal(len(outer) + entering, block.expand.out_channels)
    for own, inside, their, right, places in zip(ours, maps, theirs, middled, after, strict=True):
        leaving = _chosen(original.expand(functional.relu(right)) + original.shortcut(their), outside)
        inputs, targets = _rows(functional.relu(block.middle(inside)), places), _rows(leaving, places)
        entered = _rows(own[:, :, ::stride, ::stride], places)
        if widens:
            normal.add(torch.cat([inputs, entered], dim=1), targets)
        else:
            normal.add(inputs, targets - entered)
    weight, shift = normal.solve(_RIDGE)
    _put(block.expand, weight[:, : len(outer)], shift)
    if isinstance(block.shortcut, nn.Conv2d):
        _put(block.shortcut, weight[:, len(outer) :], torch.zeros_like(shift))


def _channels(
    block: Block, original: Block, reduced: Maps, middled: Maps, outside: torch.Tensor | None, places: Places
) -> tuple[torch.Tensor, torch.Tensor]:
    """Channels of the original that stay before its middle convolution, and after it."""
    count, stride = block.reduce.out_channels, original.middle.stride[0]
    expand = original.expand.weight.flatten(1)
    normal = Normal(original.middle.out_channels, 1)
    for each, there in zip(middled, places, strict=True):
        rows = _rows(functional.relu(each), there)
        normal.add(rows, rows[:, :1])
    outer = channels_to_keep(normal.covariance(), expand if outside is None else expand[outside], 1, count)
    if count == original.reduce.out_channels:
        return torch.arange(count), outer
    normal = Normal(9 * original.reduce.out_channels, 1)
    for each, there in zip(reduced, places, strict=True):
        rows = _patches(functional.relu(each), stride, there)
        normal.add(rows, rows[:, :1])
    return channels_to_keep(normal.covariance(), original.middle.weight.flatten(1)[outer], 9, count), outer


def _places(maps: Maps, stride: int, count: int, random: torch.Generator) -> Iterator[torch.Tensor]:
    """For each batch of maps, positions [N, count] that count, of the maps that a stride leaves."""
    for each in maps:
        height, width = (-(-size // stride) for size in each.shape[2:])
        total = height * width
        yield torch.stack([torch.randperm(total, generator=random)[: min(count, total)] for _ in each])


def _rows(maps: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Values [N * P, C] of maps [N, C, H, W] at positions [N, P]."""
    channels = maps.shape[1]
    chosen = maps.flatten(2).gather(2, places[:, None].expand(-1, channels, -1))
    return chosen.transpose(1, 2).reshape(-1, channels).float()


def _patches(maps: torch.Tensor, stride: int, places: torch.Tensor) -> torch.Tensor:
    """What a 3 x 3 convolution sees at positions [N, P] of its output, [N * P, 9 * C]."""
    unfolded = functional.unfold(maps.float(), 3, padding=1, stride=stride)
    return _rows(unfolded[..., None], places)


def _chosen(maps: torch.Tensor, channels: torch.Tensor | None) -> torch.Tensor:
    return maps if channels is None else maps[:, channels]


def _put(layer: nn.Conv2d, weight: torch.Tensor, shift: torch.Tensor) -> None:
    layer.weight.copy_(weight.view(layer.weight.shape))
    assert layer.bias is not None
    layer.bias.copy_(shift)
