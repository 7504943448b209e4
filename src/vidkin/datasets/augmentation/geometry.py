"""Geometric edits: one warp, and how platforms arrange a picture.

Crop, shift, aspect, rotation, perspective and mirror are matrices that multiply.
A matrix [N, 3, 3] maps places of the output to places of the input, both in coordinates from -1 (left, top) to
1 (right, bottom). Composed first and sampled once, the edits cost a single interpolation and blur only once.

Layouts (reframed, between borders, in a split screen, as an inset, filmed from a screen) take square clips, as encoders
see them: a picture of another shape is squeezed to a square first, so a 9:16 reframe of a 16:9 picture keeps 81 / 256
of its width, and borders around it fill as much of the height.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn import functional

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.values import check_at_least, check_choice, check_share
from vidkin.datasets.augmentation.draws import Range, check_images, check_limits, draw_flags, draw_uniform
from vidkin.errors import InvalidArgumentError
from vidkin.media.layouts import Rectangle, centered, homographies, split_parts

_REFRAMED = (9 / 16) ** 2


@check_constructor
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


@check_arguments
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


@check_arguments
def warp(images: torch.Tensor, matrices: torch.Tensor, side: int, *, padding: str = "border") -> torch.Tensor:
    """The images [N, 3, H, W] seen through matrices [N, 3, 3]: [N, 3, side, side], bilinear.

    Args:
        images: Floating-point images of any range.
        matrices: Matrices from places of the output to places of the input, see the module.
        side: Side of the result in pixels. At less than half of the input's side the sampling would skip pixels;
            scale the images down before.
        padding: Content outside the image: ``"border"`` repeats the edge, ``"zeros"`` is black, ``"reflection"``
            mirrors.

    Raises:
        InvalidArgumentError: Shapes do not match, a number is out of range, or the padding is unknown.
    """
    check_choice("padding", padding, ("border", "zeros", "reflection"))
    check_at_least(1, side=side)
    if images.ndim != 4 or matrices.shape != (len(images), 3, 3):
        raise InvalidArgumentError(
            f"images must be [N, 3, H, W] and matrices [N, 3, 3], got {list(images.shape)} and {list(matrices.shape)}"
        )
    axis = (2.0 * torch.arange(side, dtype=torch.float32) + 1.0) / side - 1.0
    grid = torch.stack(
        [axis.expand(side, side), axis[:, None].expand(side, side), torch.ones(side, side)], dim=-1
    ).view(1, side * side, 3)
    places = grid @ matrices.transpose(1, 2)
    # Strong perspective could put the horizon inside the picture; far away is far enough.
    depth = places[..., 2:].clamp(min=1e-2)
    flow = (places[..., :2] / depth).view(len(matrices), side, side, 2).to(images.dtype)
    return functional.grid_sample(images, flow, mode="bilinear", padding_mode=padding, align_corners=False)


@check_arguments
def stretch(clip: torch.Tensor, across: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """A part of the picture stretched to all of it, bilinear, as products with matrices; edges are repeated.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        across: [T, 2] or [1, 2]: half the width of the part, below 0 mirrored, and its middle; the picture reaches
            from -1 to 1.
        down: The same for the height.

    Raises:
        InvalidArgumentError: The clip is not square, or one of the others has another shape.
    """
    if clip.ndim != 4 or clip.shape[2] != clip.shape[3] or not clip.is_floating_point():
        raise InvalidArgumentError(f"clip must be [T, 3, S, S] floating point, got {list(clip.shape)} {clip.dtype}")
    for name, given in (("across", across), ("down", down)):
        if given.ndim != 2 or given.shape[1] != 2 or len(given) not in (1, len(clip)):
            raise InvalidArgumentError(f"{name} must be [{len(clip)} or 1, 2], got {list(given.shape)}")
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


@check_arguments
def reframe(
    clip: torch.Tensor, generator: torch.Generator, *, share: float = _REFRAMED, moving: bool = False
) -> torch.Tensor:
    """A strip of the width ``share``, stretched to the whole picture: the middle, or one that moves across the picture.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        generator: Source of the start and end of a moving strip.
        share: Share of the width to keep; default: the part of 16:9 that a 9:16 reframe keeps.
        moving: Whether the strip moves from one random place to another in the course of the clip.
    """
    ends = torch.rand(2, generator=generator) * 2 - 1 if moving else torch.zeros(2)
    place = torch.lerp(ends[0], ends[1], torch.linspace(0, 1, len(clip))) * (1 - share)
    return stretch(clip, torch.stack([torch.full_like(place, share), place], dim=1), torch.tensor([[1.0, 0.0]]))


@check_arguments
def add_borders(
    clip: torch.Tensor,
    generator: torch.Generator,
    *,
    kind: Literal["blurred", "colored"] = "blurred",
    share: float = _REFRAMED,
    across: bool = True,
) -> torch.Tensor:
    """The picture squeezed to ``share`` of the height, with borders above and below; beside it if not ``across``.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        generator: Source of the color.
        kind: ``blurred``: the picture itself, enlarged and out of focus. ``colored``: one color.
        share: Share of the side that the picture keeps.
        across: Whether the borders are above and below.
    """
    side = clip.shape[-1]
    if kind == "blurred":
        small = functional.adaptive_avg_pool2d(reframe(clip if across else clip.mT, generator, share=share), side // 8)
        ground = functional.interpolate(
            small if across else small.mT, (side, side), mode="bilinear", align_corners=False
        )
    else:
        ground = torch.rand(1, 3, 1, 1, generator=generator).to(clip.dtype).expand_as(clip).clone()
    kept = max(1, round(share * side))
    return _put(ground, clip, centered((side, kept) if across else (kept, side), (side, side)))


@check_arguments
def split_screen(
    clip: torch.Tensor, others: torch.Tensor, generator: torch.Generator, *, parts: Literal[2, 4] = 2
) -> torch.Tensor:
    """The clip as one of two or four parts of the picture, other clips in the rest.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        others: [parts - 1, T, 3, S, S] clips of other videos.
        generator: Decides which part shows the clip, and whether two parts are side by side or one above the other.
        parts: Number of parts, 2 or 4.
    """
    if parts not in (2, 4) or len(others) != parts - 1:
        raise InvalidArgumentError(
            f"parts must be 2 or 4 with one other clip less, got {parts} with {len(others)} other clips"
        )
    side = clip.shape[-1]
    half = side // 2
    beside = parts == 2 and bool(torch.rand((), generator=generator) < 0.5)
    columns, rows = (2, 2) if parts == 4 else (2, 1) if beside else (1, 2)
    part = (half if columns == 2 else side, half if rows == 2 else side)
    own = int(torch.randint(parts, (), generator=generator))
    screen = torch.zeros_like(clip)
    rest = iter(others)
    for number, place in enumerate(split_parts(part, (side, side), columns, rows)):
        screen = _put(screen, clip if number == own else next(rest), place)
    return screen


@check_arguments
def picture_in_picture(
    clip: torch.Tensor, other: torch.Tensor, generator: torch.Generator, *, side: Range = (0.3, 0.7)
) -> torch.Tensor:
    """The clip as an inset anywhere on another one; its side is a share of the picture's drawn from ``side``.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        other: [T, 3, S, S], the clip around it.
        generator: Decides size and place.
        side: Limits of the side of the inset.
    """
    check_limits("side", side)
    whole = clip.shape[-1]
    small = max(1, min(whole, round(whole * float(draw_uniform(1, side, generator)))))
    top, left = (torch.rand(2, generator=generator) * (whole - small + 1)).long().tolist()
    return _put(other, clip, (left, top, left + small, top + small))


@check_arguments
def video_in_video(
    clip: torch.Tensor, donor: torch.Tensor, generator: torch.Generator, *, share: Range = (0.3, 0.7)
) -> torch.Tensor:
    """A smaller copy of another video on the clip, which then shows both: its area is 1 - lambda of the picture.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        donor: [T, 3, S, S].
        generator: Decides lambda and the place.
        share: Limits of lambda.
    """
    check_limits("share", share)
    side = math.sqrt(1.0 - float(draw_uniform(1, share, generator)))
    return picture_in_picture(donor, clip, generator, side=(side, side))


@check_arguments
def film_screen(
    clip: torch.Tensor, generator: torch.Generator, *, tilt: float = 0.15, moire: float = 0.06
) -> torch.Tensor:
    """The clip filmed from a screen: at an angle on a dark ground, with a pattern of fine lines and another exposure.

    Args:
        clip: [T, 3, S, S] in 0..1.
        generator: Source of all random numbers.
        tilt: How far corners move, as a share of the side.
        moire: Deviation that the pattern adds to the brightness.
    """
    side = clip.shape[-1]
    zoom = torch.diag(torch.tensor([1.0 + tilt, 1.0 + tilt, 1.0]))
    matrix = zoom @ perspective_matrices(1, tilt, generator)[0]
    seen = warp(clip, matrix.expand(len(clip), 3, 3), side, padding="zeros")
    angle, period = torch.rand(2, generator=generator).tolist()
    axis = torch.arange(side, dtype=torch.float32)
    turned = axis[:, None] * math.sin(math.pi * angle) + axis * math.cos(math.pi * angle)
    # The pattern creeps over the screen.
    drift = torch.rand((), generator=generator) * torch.arange(len(clip), dtype=torch.float32)
    waves = torch.sin(turned * (2 * math.pi / (2.5 + 3 * period)) + drift[:, None, None])
    exposure = float(draw_uniform(1, (0.7, 1.4), generator))
    lit = (seen > 0).any(1, keepdim=True)
    return torch.where(lit, seen * exposure + moire * waves[:, None].to(seen.dtype), seen + 0.05).clamp(0, 1)


def _put(ground: torch.Tensor, clip: torch.Tensor, place: Rectangle) -> torch.Tensor:
    """The ground with the whole picture of a clip scaled to fit a place."""
    left, top, right, bottom = place
    result = ground.clone()
    result[:, :, top:bottom, left:right] = functional.interpolate(
        clip, (bottom - top, right - left), mode="bilinear", antialias=True, align_corners=False
    )
    return result
