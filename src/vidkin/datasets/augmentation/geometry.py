"""Geometric edits: random warps of images, and clip layouts as on video platforms.

Crop, shift, aspect ratio, rotation, perspective and mirroring are matrices, which are multiplied. A matrix [N, 3, 3]
maps output positions to input positions, in coordinates from -1 (left, top) to 1 (right, bottom). The image is
sampled once with the product, so that all edits together cost one interpolation and its blur.

Layouts (reframed, between borders, in a split screen, as an inset, filmed from a screen) take square clips, the input
format of encoders. Frames with another aspect ratio are squeezed to a square first; a 9:16 reframe of a 16:9 frame
therefore keeps 81 / 256 of its width, and a frame between borders keeps the same fraction of its height.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn import functional

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.values import check_at_least, check_choice, check_share
from vidkin.datasets.augmentation.sampling import Range, check_images, check_limits, sample_flags, sample_uniform
from vidkin.errors import InvalidArgumentError
from vidkin.media.layouts import Rectangle, center_box, homographies, split_parts

_REFRAMED = (9 / 16) ** 2


@check_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class WarpSettings:
    """Strengths of the edits of `random_warp`; the defaults change nothing.

    Attributes:
        scale: Range of the side of the crop, relative to the image. The crop has a random position inside the image;
            above 1, the image is smaller than the crop and has a random position inside it, surrounded by a border.
        aspect: Maximum factor by which the aspect ratio of the crop changes, in either direction; 1 keeps it.
        rotation: Maximum rotation in degrees, in either direction.
        perspective: Maximum shift of each corner, relative to the side.
        mirror: Probability of flipping an image left to right.
        distorted: Probability of rotation and perspective; other images are only cropped.
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
    """Return matrices [count, 3, 3] of crops with sides sampled from ``scale``, at uniformly random positions."""
    side = sample_uniform(count, scale, generator)
    shift = (1.0 - side).abs() * sample_uniform(count, (-1.0, 1.0), generator, width=2)
    return _affine(side, side, shift)


def aspect_matrices(count: int, factor: float, generator: torch.Generator) -> torch.Tensor:
    """Return matrices [count, 3, 3] that change the aspect ratio of the crop by up to ``factor``, in either direction.

    The longer side is kept and the other one shortened, so that the crop never leaves the image.
    """
    stretch = (sample_uniform(count, (-1.0, 1.0), generator) * math.log(factor)).exp()
    return _affine(stretch.clamp(max=1.0), (1.0 / stretch).clamp(max=1.0), torch.zeros(count, 2))


def rotation_matrices(count: int, degrees: float, generator: torch.Generator) -> torch.Tensor:
    """Return matrices [count, 3, 3] of rotations around the center by up to ``degrees`` in either direction."""
    return rotations(sample_uniform(count, (-1.0, 1.0), generator)[:, 0] * math.radians(degrees))


def rotations(angles: torch.Tensor) -> torch.Tensor:
    """Return matrices [N, 3, 3] of rotations around the center by angles [N] in radians."""
    cosine, sine = angles.cos(), angles.sin()
    zero, one = torch.zeros_like(angles), torch.ones_like(angles)
    return torch.stack([cosine, -sine, zero, sine, cosine, zero, zero, zero, one], dim=1).view(-1, 3, 3)


def perspective_matrices(count: int, shift: float, generator: torch.Generator) -> torch.Tensor:
    """Return homographies [count, 3, 3] that move each corner inward or outward by up to ``shift`` times the side."""
    corners = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    moved = corners + 2.0 * shift * sample_uniform(4 * count, (-1.0, 1.0), generator, width=2).view(count, 4, 2)
    matrices: torch.Tensor = homographies(corners.expand(count, 4, 2), moved)
    return matrices


def mirror_matrices(count: int, share: float, generator: torch.Generator) -> torch.Tensor:
    """Return matrices [count, 3, 3] that flip a ``share`` of the images left to right."""
    sign = 1.0 - 2.0 * sample_flags(count, share, generator).float()[:, None]
    return _affine(sign, torch.ones_like(sign), torch.zeros(count, 2))


@check_arguments
def random_warp(
    images: torch.Tensor, generator: torch.Generator, *, settings: WarpSettings, side: int | None = None
) -> torch.Tensor:
    """Randomly crop, stretch, rotate, distort and mirror images [N, 3, H, W]; return [N, 3, side, side].

    Args:
        images: Floating-point images of any range.
        generator: Random number generator.
        settings: Strengths of the edits.
        side: Side of the result in pixels; None keeps the size of the images, which must then be square.

    Raises:
        InvalidArgumentError: The images are not [N, 3, H, W], or are not square although ``side`` is None.
    """
    check_images(images)
    if side is None and images.shape[2] != images.shape[3]:
        raise InvalidArgumentError(f"images must be square when side is None, got {list(images.shape[2:])}")
    count = len(images)
    matrices = crop_matrices(count, settings.scale, generator)
    if settings.aspect > 1.0:
        matrices = matrices @ aspect_matrices(count, settings.aspect, generator)
    if settings.rotation > 0.0 or settings.perspective > 0.0:
        distortions = rotation_matrices(count, settings.rotation, generator)
        distortions = distortions @ perspective_matrices(count, settings.perspective, generator)
        chosen = sample_flags(count, settings.distorted, generator)[:, None, None]
        matrices = matrices @ torch.where(chosen, distortions, torch.eye(3))
    if settings.mirror > 0.0:
        matrices = matrices @ mirror_matrices(count, settings.mirror, generator)
    return warp(images, matrices, images.shape[2] if side is None else side)


@check_arguments
def warp(images: torch.Tensor, matrices: torch.Tensor, side: int, *, padding: str = "border") -> torch.Tensor:
    """Transform images [N, 3, H, W] by matrices [N, 3, 3] with bilinear interpolation; return [N, 3, side, side].

    Args:
        images: Floating-point images of any range.
        matrices: Matrices from output positions to input positions, in coordinates from -1 to 1.
        side: Side of the result in pixels. Below half of the input's side, interpolation would skip pixels; downscale
            the images first.
        padding: Content outside the image: ``"border"`` repeats the edge, ``"zeros"`` fills with black,
            ``"reflection"`` mirrors the image.

    Raises:
        InvalidArgumentError: Shapes do not match, ``side`` is out of range, or the padding is unknown.
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
    points = grid @ matrices.transpose(1, 2)
    # A strong perspective can place the horizon inside the image, where the depth would be 0 or negative.
    depth = points[..., 2:].clamp(min=1e-2)
    flow = (points[..., :2] / depth).view(len(matrices), side, side, 2).to(images.dtype)
    return functional.grid_sample(images, flow, mode="bilinear", padding_mode=padding, align_corners=False)


@check_arguments
def stretch(clip: torch.Tensor, across: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """Stretch part of each frame to the whole frame, bilinearly, by matrix products; edges are repeated.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        across: [T, 2] or [1, 2]: half the width of the part, negative to mirror it, and the center of the part, in
            coordinates from -1 to 1.
        down: The same values for the height.

    Raises:
        InvalidArgumentError: The clip is not square, or ``across`` or ``down`` has another shape.
    """
    if clip.ndim != 4 or clip.shape[2] != clip.shape[3] or not clip.is_floating_point():
        raise InvalidArgumentError(f"clip must be [T, 3, S, S] floating point, got {list(clip.shape)} {clip.dtype}")
    for name, given in (("across", across), ("down", down)):
        if given.ndim != 2 or given.shape[1] != 2 or len(given) not in (1, len(clip)):
            raise InvalidArgumentError(f"{name} must be [{len(clip)} or 1, 2], got {list(given.shape)}")
    rows, columns = _weights(down, clip.shape[-1]), _weights(across, clip.shape[-1])
    return multiply_columns(multiply_rows(clip, columns.to(clip.dtype)), rows.to(clip.dtype))


def multiply_rows(clip: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Multiply each row of a clip [T, 3, S, S] by weights [S, S], or by weights per frame [T or 1, 1, S, S]."""
    if weights.ndim == 2 or len(weights) == 1:
        # A single product for all rows is much faster than one per frame.
        return functional.linear(clip, weights if weights.ndim == 2 else weights[0, 0])
    return clip @ weights.mT


def multiply_columns(clip: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Multiply each column of a clip by weights; see `multiply_rows`."""
    return multiply_rows(clip.mT, weights).mT


def _weights(part: torch.Tensor, side: int) -> torch.Tensor:
    """Return the weight of each input position for each output position along one axis, [T, 1, S, S]."""
    axis = (2 * torch.arange(side, dtype=torch.float32) + 1) / side - 1
    position = ((axis * part[:, :1] + part[:, 1:] + 1) * side - 1) / 2
    distance = (position.clamp(0, side - 1)[..., None] - torch.arange(side, dtype=torch.float32)).abs()
    return (1 - distance).clamp(min=0)[:, None]


def _affine(width: torch.Tensor, height: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """Return matrices [N, 3, 3] from scales [N, 1] and shifts [N, 2]."""
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
    """Stretch a vertical strip of the frame, in the middle or moving, to the whole frame.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        generator: Random number generator for the start and end of a moving strip.
        share: Width of the strip, relative to the frame; default: the fraction of a 16:9 frame that a 9:16 reframe
            keeps.
        moving: Whether the strip moves from one random position to another during the clip.
    """
    ends = torch.rand(2, generator=generator) * 2 - 1 if moving else torch.zeros(2)
    center = torch.lerp(ends[0], ends[1], torch.linspace(0, 1, len(clip))) * (1 - share)
    return stretch(clip, torch.stack([torch.full_like(center, share), center], dim=1), torch.tensor([[1.0, 0.0]]))


@check_arguments
def add_borders(
    clip: torch.Tensor,
    generator: torch.Generator,
    *,
    kind: Literal["blurred", "colored"] = "blurred",
    share: float = _REFRAMED,
    across: bool = True,
) -> torch.Tensor:
    """Squeeze the frame to ``share`` of its height and add borders above and below, or, without ``across``, to
    ``share`` of its width and add borders left and right.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        generator: Random number generator for the color.
        kind: ``blurred`` shows the frame itself, enlarged and blurred, in the borders; ``colored`` fills them with one
            color.
        share: Fraction of the side that the frame keeps.
        across: Whether the borders are above and below rather than left and right.
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
    return _put(ground, clip, center_box((side, kept) if across else (kept, side), (side, side)))


@check_arguments
def split_screen(
    clip: torch.Tensor, others: torch.Tensor, generator: torch.Generator, *, parts: Literal[2, 4] = 2
) -> torch.Tensor:
    """Show the clip in one of two or four parts of the frame, and other clips in the remaining parts.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        others: [parts - 1, T, 3, S, S] clips of other videos.
        generator: Random number generator that chooses the part with the clip, and whether two parts are next to each
            other or one above the other.
        parts: Number of parts, 2 or 4.
    """
    if parts not in (2, 4) or len(others) != parts - 1:
        raise InvalidArgumentError(
            f"parts must be 2 with 1 other clip or 4 with 3, got {parts} with {len(others)} other clips"
        )
    side = clip.shape[-1]
    half = side // 2
    side_by_side = parts == 2 and bool(torch.rand((), generator=generator) < 0.5)
    columns, rows = (2, 2) if parts == 4 else (2, 1) if side_by_side else (1, 2)
    part = (half if columns == 2 else side, half if rows == 2 else side)
    own = int(torch.randint(parts, (), generator=generator))
    screen = torch.zeros_like(clip)
    rest = iter(others)
    for number, box in enumerate(split_parts(part, (side, side), columns, rows)):
        screen = _put(screen, clip if number == own else next(rest), box)
    return screen


@check_arguments
def picture_in_picture(
    clip: torch.Tensor, other: torch.Tensor, generator: torch.Generator, *, side: Range = (0.3, 0.7)
) -> torch.Tensor:
    """Show the clip as an inset at a random position over another clip.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        other: [T, 3, S, S], the clip around the inset.
        generator: Random number generator for size and position.
        side: Range of the side of the inset, relative to the frame.
    """
    check_limits("side", side)
    whole = clip.shape[-1]
    small = max(1, min(whole, round(whole * float(sample_uniform(1, side, generator)))))
    top, left = (torch.rand(2, generator=generator) * (whole - small + 1)).long().tolist()
    return _put(other, clip, (left, top, left + small, top + small))


@check_arguments
def video_in_video(
    clip: torch.Tensor, donor: torch.Tensor, generator: torch.Generator, *, share: Range = (0.3, 0.7)
) -> torch.Tensor:
    """Show another video as an inset over the clip; the inset has an area of 1 - lambda of the frame.

    Args:
        clip: [T, 3, S, S], the clip to edit.
        donor: [T, 3, S, S], the video in the inset.
        generator: Random number generator for lambda and the position.
        share: Range of lambda, the fraction of the frame that still shows the clip.
    """
    check_limits("share", share)
    side = math.sqrt(1.0 - float(sample_uniform(1, share, generator)))
    return picture_in_picture(donor, clip, generator, side=(side, side))


@check_arguments
def film_screen(
    clip: torch.Tensor, generator: torch.Generator, *, tilt: float = 0.15, moire: float = 0.06
) -> torch.Tensor:
    """Simulate filming the clip from a screen: at an angle, on a dark background, with moire and a different exposure.

    Args:
        clip: [T, 3, S, S] in 0..1.
        generator: Random number generator.
        tilt: Maximum shift of the corners, relative to the side.
        moire: Amplitude of the moire pattern.
    """
    side = clip.shape[-1]
    zoom = torch.diag(torch.tensor([1.0 + tilt, 1.0 + tilt, 1.0]))
    matrix = zoom @ perspective_matrices(1, tilt, generator)[0]
    tilted = warp(clip, matrix.expand(len(clip), 3, 3), side, padding="zeros")
    angle, period = torch.rand(2, generator=generator).tolist()
    axis = torch.arange(side, dtype=torch.float32)
    distance = axis[:, None] * math.sin(math.pi * angle) + axis * math.cos(math.pi * angle)
    # The pattern drifts slowly over the screen.
    drift = torch.rand((), generator=generator) * torch.arange(len(clip), dtype=torch.float32)
    waves = torch.sin(distance * (2 * math.pi / (2.5 + 3 * period)) + drift[:, None, None])
    exposure = float(sample_uniform(1, (0.7, 1.4), generator))
    lit = (tilted > 0).any(1, keepdim=True)
    return torch.where(lit, tilted * exposure + moire * waves[:, None].to(tilted.dtype), tilted + 0.05).clamp(0, 1)


def _put(ground: torch.Tensor, clip: torch.Tensor, box: Rectangle) -> torch.Tensor:
    """Paste the frames of a clip, scaled to a box, onto other frames."""
    left, top, right, bottom = box
    result = ground.clone()
    result[:, :, top:bottom, left:right] = functional.interpolate(
        clip, (bottom - top, right - left), mode="bilinear", antialias=True, align_corners=False
    )
    return result
