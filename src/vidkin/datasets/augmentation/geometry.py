"""Geometric edits as one warp: crop, shift, aspect, rotation, perspective and mirror are matrices that multiply.

A matrix [N, 3, 3] maps places of the output to places of the input, both in coordinates from -1 (left, top) to
1 (right, bottom). Composed first and sampled once, the edits cost a single interpolation and blur only once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional

from vidkin._base.values import check_share
from vidkin.datasets.augmentation.draws import Range, check_images, check_limits, draw_flags, draw_uniform
from vidkin.errors import InvalidArgumentError
from vidkin.media.layouts import homographies


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpSettings:
    """How strongly `random_warp` moves an image; the defaults leave it in place.

    Attributes:
        scale: Side of the crop as a share of the image, (lowest, highest). Above 1 the image shrinks and a border
            shows; the crop lies anywhere inside the image, and the image anywhere inside a larger crop.
        aspect: Width to height of the crop is stretched by at most this factor, either way; 1 keeps it.
        rotation: Maximum rotation in degrees, either way.
        perspective: Maximum shift of each corner as a share of the side.
        mirror: Share of images flipped left to right.
        distorted: Share of images that get rotation and perspective; the others are only cropped.
    """

    scale: Range = (1.0, 1.0)
    aspect: float = 1.0
    rotation: float = 0.0
    perspective: float = 0.0
    mirror: float = 0.0
    distorted: float = 1.0

    def __post_init__(self) -> None:
        check_limits("scale", self.scale, lowest=0.01)
        if self.aspect < 1.0:
            raise InvalidArgumentError(f"aspect must be at least 1, got {self.aspect}")
        if not 0.0 <= self.rotation <= 180.0:
            raise InvalidArgumentError(f"rotation must be between 0 and 180 degrees, got {self.rotation}")
        if not 0.0 <= self.perspective < 0.5:
            raise InvalidArgumentError(f"perspective must be at least 0 and below 0.5, got {self.perspective}")
        check_share(mirror=self.mirror)
        check_share(distorted=self.distorted)


def crop_matrices(count: int, scale: Range, generator: torch.Generator) -> torch.Tensor:
    """[count, 3, 3]: crops of a side drawn from ``scale``, placed evenly wherever they fit."""
    side = draw_uniform(count, scale, generator)
    shift = (1.0 - side).abs() * draw_uniform(count, (-1.0, 1.0), generator, width=2)
    return _affine(side, side, shift)


def aspect_matrices(count: int, factor: float, generator: torch.Generator) -> torch.Tensor:
    """[count, 3, 3]: width stretched and height squeezed by up to the square root of ``factor``, or the reverse.

    The crop never leaves the image: the longer side stays, the other gets shorter.
    """
    stretch = (draw_uniform(count, (-1.0, 1.0), generator) * math.log(factor)).exp()
    return _affine(stretch.clamp(max=1.0), (1.0 / stretch).clamp(max=1.0), torch.zeros(count, 2))


def rotation_matrices(count: int, degrees: float, generator: torch.Generator) -> torch.Tensor:
    """[count, 3, 3]: turned around the middle by up to ``degrees`` either way."""
    return rotations(draw_uniform(count, (-1.0, 1.0), generator)[:, 0] * math.radians(degrees))


def rotations(angles: torch.Tensor) -> torch.Tensor:
    """[N, 3, 3]: turned around the middle by these angles [N], in radians."""
    cosine, sine = angles.cos(), angles.sin()
    zero, one = torch.zeros_like(angles), torch.ones_like(angles)
    return torch.stack([cosine, -sine, zero, sine, cosine, zero, zero, zero, one], dim=1).view(-1, 3, 3)


def perspective_matrices(count: int, shift: float, generator: torch.Generator) -> torch.Tensor:
    """[count, 3, 3]: homographies that move each corner inwards or outwards by up to ``shift`` of the side."""
    corners = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    moved = corners + 2.0 * shift * draw_uniform(4 * count, (-1.0, 1.0), generator, width=2).view(count, 4, 2)
    matrices: torch.Tensor = homographies(corners.expand(count, 4, 2), moved)
    return matrices


def mirror_matrices(count: int, share: float, generator: torch.Generator) -> torch.Tensor:
    """[count, 3, 3]: left and right changed for a ``share`` of the images."""
    sign = 1.0 - 2.0 * draw_flags(count, share, generator).float()[:, None]
    return _affine(sign, torch.ones_like(sign), torch.zeros(count, 2))


def random_warp(
    images: torch.Tensor, generator: torch.Generator, *, settings: WarpSettings, side: int | None = None
) -> torch.Tensor:
    """The images [N, 3, H, W] cropped, stretched, turned and mirrored at random: [N, 3, side, side].

    Args:
        images: Floating-point images of any range.
        generator: Source of all random numbers.
        settings: Strengths of the edits.
        side: Side of the result in pixels; None keeps the size, which must then be square.

    Raises:
        InvalidArgumentError: The images are not [N, 3, H, W], or not square where ``side`` is None.
    """
    check_images(images)
    if side is None and images.shape[2] != images.shape[3]:
        raise InvalidArgumentError(f"images must be square when side is None, got {list(images.shape[2:])}")
    count = len(images)
    matrices = crop_matrices(count, settings.scale, generator)
    if settings.aspect > 1.0:
        matrices = matrices @ aspect_matrices(count, settings.aspect, generator)
    if settings.rotation > 0.0 or settings.perspective > 0.0:
        turned = rotation_matrices(count, settings.rotation, generator)
        turned = turned @ perspective_matrices(count, settings.perspective, generator)
        chosen = draw_flags(count, settings.distorted, generator)[:, None, None]
        matrices = matrices @ torch.where(chosen, turned, torch.eye(3))
    if settings.mirror > 0.0:
        matrices = matrices @ mirror_matrices(count, settings.mirror, generator)
    return warp(images, matrices, images.shape[2] if side is None else side)


def warp(images: torch.Tensor, matrices: torch.Tensor, side: int, *, padding: str = "border") -> torch.Tensor:
    """The images [N, 3, H, W] seen through matrices [N, 3, 3]: [N, 3, side, side], bilinear.

    Args:
        images: Floating-point images of any range.
        matrices: Matrices from places of the output to places of the input, see the module.
        side: Side of the result in pixels. At less than half of the input's side the sampling would skip pixels;
            scale the images down before.
        padding: Content outside the image: ``"border"`` repeats the edge, ``"zeros"`` is black, ``"reflection"``
            mirrors.
    """
    axis = (2.0 * torch.arange(side, dtype=torch.float32) + 1.0) / side - 1.0
    grid = torch.stack(
        [axis.expand(side, side), axis[:, None].expand(side, side), torch.ones(side, side)], dim=-1
    ).view(1, side * side, 3)
    places = grid @ matrices.transpose(1, 2)
    # Strong perspective could put the horizon inside the picture; far away is far enough.
    depth = places[..., 2:].clamp(min=1e-2)
    flow = (places[..., :2] / depth).view(len(matrices), side, side, 2).to(images.dtype)
    return functional.grid_sample(images, flow, mode="bilinear", padding_mode=padding, align_corners=False)


def stretch(clip: torch.Tensor, across: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """A part of the picture stretched to all of it, bilinear, as products with matrices; edges are repeated.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        across: [T, 2] or [1, 2]: half the width of the part, below 0 mirrored, and its middle; the picture reaches
            from -1 to 1.
        down: The same for the height.
    """
    rows, columns = _weights(down, clip.shape[-1]), _weights(across, clip.shape[-1])
    return along_height(along_width(clip, columns.to(clip.dtype)), rows.to(clip.dtype))


def along_width(clip: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The clip [T, 3, S, S] with each row multiplied by weights [S, S], or by those of its frame, [T or 1, 1, S, S]."""
    if weights.ndim == 2 or len(weights) == 1:
        # One product of all rows is much faster than one for each frame.
        return functional.linear(clip, weights if weights.ndim == 2 else weights[0, 0])
    return clip @ weights.mT


def along_height(clip: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The same of every column."""
    return along_width(clip.mT, weights).mT


def _weights(part: torch.Tensor, side: int) -> torch.Tensor:
    """[T, 1, S, S]: the share of each input place in each output place of one axis."""
    axis = (2 * torch.arange(side, dtype=torch.float32) + 1) / side - 1
    place = ((axis * part[:, :1] + part[:, 1:] + 1) * side - 1) / 2
    distance = (place.clamp(0, side - 1)[..., None] - torch.arange(side, dtype=torch.float32)).abs()
    return (1 - distance).clamp(min=0)[:, None]


def _affine(width: torch.Tensor, height: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """[N, 3, 3] of scales [N, 1] and shifts [N, 2]."""
    matrices = torch.zeros(len(width), 3, 3)
    matrices[:, 0, 0] = width[:, 0]
    matrices[:, 1, 1] = height[:, 0]
    matrices[:, :2, 2] = shift
    matrices[:, 2, 2] = 1.0
    return matrices
