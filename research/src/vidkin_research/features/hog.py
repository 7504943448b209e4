"""Histograms of oriented gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch.nn import functional

from vidkin._base.values import check_choice
from vidkin_research.features.feature import CHUNK, Image, l1_distances, squares

__all__ = ["GradientHistogram", "GradientLayout"]

GradientLayout = Literal["cells", "blocks"]

_SIDE = 96
# Number of orientations, and side of a cell in pixels.
_SHAPES: dict[str, tuple[int, int]] = {"cells": (8, 16), "blocks": (9, 8)}
_CLIP = 0.2
_EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class GradientHistogram:
    """HOG: histograms of gradient orientations in the cells of a 96 x 96 image; the distance is L1.

    Source: Dalal and Triggs, "Histograms of oriented gradients for human detection", CVPR 2005; Wang et al., deep
    ranking, supplement, section 4 (cells of 16 x 16 with 32 values each, L1 without further normalization).
    Gradients are central differences in the color channel where they are largest; orientations are unsigned. Blocks of
    2 x 2 cells are normalized by L2-Hys (scaled to length 1, clipped at 0.2, scaled again).

    Attributes:
        layout: ``cells``: [T, 1152], 6 x 6 cells of 8 orientations, each normalized in the four blocks around it, so
            that a cell has 32 values; edge cells are replicated as padding. ``blocks``: [T, 4356], the usual layout of
            11 x 11 overlapping blocks of 8 x 8 pixel cells with 9 orientations.
    """

    name: ClassVar[str] = "hog"
    layout: GradientLayout = "cells"

    def __post_init__(self) -> None:
        check_choice("layout", self.layout, _SHAPES)

    def describe(self, images: Sequence[Image]) -> torch.Tensor:
        """Return descriptors [T, 1152] or [T, 4356] float32, from 0 to 1."""
        orientations, side = _SHAPES[self.layout]
        cells = _SIDE // side
        length = cells**2 * 4 * orientations if self.layout == "cells" else (cells - 1) ** 2 * 4 * orientations
        parts = [torch.zeros(0, length)]
        for first in range(0, len(images), CHUNK):
            pictures = torch.from_numpy(squares(images[first : first + CHUNK], _SIDE)).movedim(-1, 1)
            down, right = torch.zeros_like(pictures), torch.zeros_like(pictures)
            down[:, :, 1:-1] = pictures[:, :, 2:] - pictures[:, :, :-2]
            right[:, :, :, 1:-1] = pictures[:, :, :, 2:] - pictures[:, :, :, :-2]
            magnitude, channel = torch.hypot(down, right).max(dim=1, keepdim=True)
            angle = torch.rad2deg(torch.atan2(down.gather(1, channel), right.gather(1, channel))) % 180
            bins = (angle / (180 / orientations)).long() % orientations
            votes = torch.zeros(len(pictures), orientations, *pictures.shape[2:]).scatter_(1, bins, magnitude)
            histograms = functional.avg_pool2d(votes, side).movedim(1, -1)
            if self.layout == "blocks":
                parts.append(_blocks(histograms).flatten(1))
                continue
            blocks = _blocks(functional.pad(histograms.movedim(-1, 1), (1,) * 4, mode="replicate").movedim(1, -1))
            # A cell is the lower-right cell of the block that starts above and to its left, and so on.
            around = [
                blocks[:, row : row + cells, column : column + cells, 1 - row, 1 - column]
                for row in (0, 1)
                for column in (0, 1)
            ]
            parts.append(torch.cat(around, dim=-1).flatten(1))
        return torch.cat(parts)

    def distances(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return L1 distances [N, M], at least 0."""
        return l1_distances(first, second)

    def embed(self, descriptors: torch.Tensor) -> torch.Tensor:
        """Return the descriptors scaled to length 1."""
        return functional.normalize(descriptors, dim=1)


def _blocks(histograms: torch.Tensor) -> torch.Tensor:
    """Convert cells [T, R, C, O] to blocks [T, R - 1, C - 1, 2, 2, O], each normalized by L2-Hys."""
    blocks = histograms.unfold(1, 2, 1).unfold(2, 2, 1).permute(0, 1, 2, 4, 5, 3)
    lengths = (blocks.square().sum(dim=(-3, -2, -1), keepdim=True) + _EPSILON**2).sqrt()
    clipped = (blocks / lengths).clamp(max=_CLIP)
    return clipped / (clipped.square().sum(dim=(-3, -2, -1), keepdim=True) + _EPSILON**2).sqrt()
