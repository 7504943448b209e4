"""How platforms arrange a picture: reframed, between borders, in a split screen, as an inset, filmed from a screen.

Every function takes square clips, as encoders see them: a picture of another shape is squeezed to a square first, so a
9:16 reframe of a 16:9 picture keeps 81 / 256 of its width, and borders around it fill as much of the height.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch.nn import functional

from vidkin.datasets.augmentation.draws import Range, check_limits, draw_uniform
from vidkin.datasets.augmentation.geometry import perspective_matrices, stretch, warp
from vidkin.errors import InvalidArgumentError
from vidkin.media.layouts import Rectangle, centered, split_parts

_REFRAMED = (9 / 16) ** 2


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
