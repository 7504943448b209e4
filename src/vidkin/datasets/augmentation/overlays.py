"""Overlays for batches of images and whole clips: bars, captions, blocks, logos, stickers, borders.

All functions take images [N, 3, H, W] in 0..1 and return the same shape and range; a ``share`` of 0 changes nothing.
Positions and colors are sampled for each image.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from vidkin._base.arguments import check_arguments
from vidkin.datasets.augmentation.sampling import (
    Range,
    apply_within,
    sample_flags,
    sample_uniform,
)

Overlay = Callable[[torch.Tensor, torch.Generator], torch.Tensor]

# Rows of letter-sized cells per caption, and cells per side of a logo.
_CAPTION_CELLS = 6
_LOGO_CELLS = 8


def add_bar(images: torch.Tensor, generator: torch.Generator, *, height: Range, share: float) -> torch.Tensor:
    """Put a bar of one color at the bottom (with probability 1/4, the top) of a ``share`` of the images.

    ``height`` is the range of the height of the bar, relative to the image.
    """

    def draw(chosen: torch.Tensor) -> torch.Tensor:
        count = len(chosen)
        row, _ = _axes(chosen)
        row = torch.where(sample_flags(count, 0.25, generator)[:, None, None, None], 1.0 - row, row)
        inside = row > 1.0 - sample_uniform(count, height, generator)[:, :, None, None]
        return torch.where(inside, _plain_colors(count, generator).to(chosen.dtype), chosen)

    return apply_within(images, generator, draw, share=share, height=height)


@check_arguments
def add_caption(images: torch.Tensor, generator: torch.Generator, *, height: Range, share: float) -> torch.Tensor:
    """Put lines of text on a band, transparent to opaque, across a ``share`` of the images.

    The text is a random pattern of letter-sized cells; at the resolution of the encoders, real text would not be
    readable either.

    Args:
        images: [N, 3, H, W] in 0..1.
        generator: Random number generator.
        height: Range of the band's height, relative to the image.
        share: Fraction of the images that get a caption.
    """

    def draw(chosen: torch.Tensor) -> torch.Tensor:
        count = len(chosen)
        row, column = _axes(chosen)
        tall = sample_uniform(count, height, generator)[:, :, None, None].clamp(min=1e-3)
        # Mostly near the bottom edge, where captions usually are.
        position = torch.where(
            sample_flags(count, 0.6, generator)[:, None],
            sample_uniform(count, (0.85, 1.0), generator),
            sample_uniform(count, (0.0, 1.0), generator),
        )
        along = (row - position[:, :, None, None] * (1.0 - tall)) / tall
        in_band = (along >= 0.0) & (along < 1.0)
        opaque = sample_uniform(count, (-0.3, 1.3), generator).clamp(0.0, 1.0)[:, :, None, None]
        banded = torch.lerp(chosen, _plain_colors(count, generator), in_band * opaque)
        margin = sample_uniform(count, (0.0, 0.4), generator)[:, :, None, None]
        written = in_band & (column > margin) & (column < 1.0 - margin)
        # Two lines of letters, with clear space above, between and below them.
        written = written & ((along - 0.5).abs() > 0.08) & ((along - 0.5).abs() < 0.42)
        cells = torch.rand(count, 1, _CAPTION_CELLS * 8, 24, generator=generator) > 0.45
        letters = functional.interpolate(cells.float(), chosen.shape[2:], mode="nearest") > 0.5
        return torch.where(written & letters, _plain_colors(count, generator), banded)

    return apply_within(images, generator, draw, share=share, height=height)


def add_block(images: torch.Tensor, generator: torch.Generator, *, side: Range, share: float) -> torch.Tensor:
    """Put an opaque rectangle of one color at a random position on a ``share`` of the images.

    ``side`` is the range of its width and height, relative to the image.
    """

    def draw(chosen: torch.Tensor) -> torch.Tensor:
        _, inside = _rectangles(chosen, side, generator)
        return torch.where(inside, _plain_colors(len(chosen), generator).to(chosen.dtype), chosen)

    return apply_within(images, generator, draw, share=share, side=side)


@check_arguments
def add_logo(images: torch.Tensor, generator: torch.Generator, *, side: Range, share: float) -> torch.Tensor:
    """Put a two-colored logo, round or square and possibly transparent, at a random position on a ``share`` of the
    images."""

    def draw(chosen: torch.Tensor) -> torch.Tensor:
        count = len(chosen)
        (row, column), inside = _rectangles(chosen, side, generator)
        circle = (row - 0.5).square() + (column - 0.5).square() < 0.25
        inside = inside & (circle | sample_flags(count, 0.5, generator)[:, None, None, None])
        cells = torch.rand(count, _LOGO_CELLS, _LOGO_CELLS, generator=generator) > 0.5
        spot_row = (row * _LOGO_CELLS).long().clamp(0, _LOGO_CELLS - 1)
        spot_column = (column * _LOGO_CELLS).long().clamp(0, _LOGO_CELLS - 1)
        spots = (spot_row * _LOGO_CELLS + spot_column).view(count, -1)
        drawn = cells.view(count, -1).gather(1, spots).view(count, 1, *chosen.shape[2:])
        first, second = _plain_colors(count, generator), _plain_colors(count, generator)
        opaque = sample_uniform(count, (0.5, 1.3), generator).clamp(max=1.0)[:, :, None, None]
        return torch.lerp(chosen, torch.where(drawn, first, second), inside * opaque)

    return apply_within(images, generator, draw, share=share, side=side)


def add_border(images: torch.Tensor, generator: torch.Generator, *, width: Range, share: float) -> torch.Tensor:
    """Put borders, of one color or from another image of the batch, along the edges of a ``share`` of the images.

    Inexact crops have such borders. ``width`` is the range of the width of each border, relative to the image.
    """

    def draw(chosen: torch.Tensor) -> torch.Tensor:
        count = len(chosen)
        row, column = _axes(chosen)
        strips = sample_uniform(count, width, generator, width=4) * (torch.rand(count, 4, generator=generator) < 0.5)
        top, bottom, left, right = (strip[:, :, None, None] for strip in torch.split(strips, 1, dim=1))
        outside = (row < top) | (row > 1.0 - bottom) | (column < left) | (column > 1.0 - right)
        plain = _plain_colors(count, generator).expand_as(chosen)
        other = sample_flags(count, 0.5, generator)[:, None, None, None]
        return torch.where(outside, torch.where(other, chosen.roll(1, dims=0), plain), chosen)

    return apply_within(images, generator, draw, share=share, width=width)


def blend_other(images: torch.Tensor, generator: torch.Generator, *, weight: Range, share: float) -> torch.Tensor:
    """Blend another image of the batch over a ``share`` of the images; ``weight`` is the range of its weight."""

    def draw(chosen: torch.Tensor) -> torch.Tensor:
        weights = sample_uniform(len(chosen), weight, generator)[:, :, None, None].to(chosen.dtype)
        return torch.lerp(chosen, chosen.roll(1, dims=0), weights)

    return apply_within(images, generator, draw, share=share, weight=weight)


def cover_with_other(images: torch.Tensor, generator: torch.Generator, *, side: Range, share: float) -> torch.Tensor:
    """Cover a random rectangle in a ``share`` of the images with the same region of another image of the batch.

    ``side`` is the range of its width and height, relative to the image.
    """

    def draw(chosen: torch.Tensor) -> torch.Tensor:
        _, inside = _rectangles(chosen, side, generator)
        return torch.where(inside, chosen.roll(1, dims=0), chosen)

    return apply_within(images, generator, draw, share=share, side=side)


@check_arguments
def lay_over(clip: torch.Tensor, generator: torch.Generator, overlay: Overlay) -> torch.Tensor:
    """Put the same overlay on all frames of a clip [T, 3, H, W].

    The overlay is rendered once on a black and once on a white image to determine its color and opacity, so that any
    function that draws on images, such as `add_caption`, can be used.

    Args:
        clip: The clip, with values in 0..1.
        generator: Random number generator.
        overlay: Function of (images [N, 3, H, W], generator). What it draws must not depend on the images.
    """
    state = generator.get_state()
    black, white = torch.zeros_like(clip[:1]), torch.ones_like(clip[:1])
    painted = overlay(black, generator)
    generator.set_state(state)
    cleared = overlay(white, generator) - painted
    return clip * cleared + painted


def add_stickers(images: torch.Tensor, generator: torch.Generator, *, side: Range, share: float) -> torch.Tensor:
    """Apply `add_sticker` to a ``share`` of the images."""
    return apply_within(
        images, generator, lambda chosen: add_sticker(chosen, generator, side=side), share=share, side=side
    )


@check_arguments
def add_sticker(
    images: torch.Tensor, generator: torch.Generator, *, side: tuple[float, float] = (0.15, 0.4)
) -> torch.Tensor:
    """Put a round, single-colored face with eyes and a mouth, similar to an emoji, on every image [N, 3, H, W].

    Args:
        images: Images with values in 0..1.
        generator: Random number generator.
        side: Range of the width of the face, relative to the image.
    """
    count = len(images)
    radius = sample_uniform(count, side, generator)[:, :, None, None] / 2
    middle = radius + sample_uniform(2 * count, (0.0, 1.0), generator).view(2, count, 1, 1, 1) * (1 - 2 * radius)
    rows, columns = _axes(images)
    # Offsets from the center of the face, in units of its radius.
    down, right = (rows - middle[0]) / radius, (columns - middle[1]) / radius
    face = down.square() + right.square() < 1
    eyes = (down + 0.3).square() + (right.abs() - 0.35).square() < 0.03
    smile = sample_uniform(count, (-0.5, 0.5), generator)[:, :, None, None]
    mouth = ((down - 0.4 + smile * (right.square() - 0.25)).abs() < 0.09) & (right.abs() < 0.5)
    color = torch.rand(count, 3, 1, 1, generator=generator) * 0.6 + 0.4
    drawn = torch.where(eyes | mouth, torch.zeros_like(color), color)
    return torch.where(face, drawn.to(images.dtype), images)


def _axes(images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the centers of rows [1, 1, H, 1] and columns [1, 1, 1, W], in 0..1."""
    height, width = images.shape[2:]
    row = (torch.arange(height, dtype=torch.float32) + 0.5) / height
    column = (torch.arange(width, dtype=torch.float32) + 0.5) / width
    return row[None, None, :, None], column[None, None, None, :]


def _rectangles(
    images: torch.Tensor, side: Range, generator: torch.Generator
) -> tuple[tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return coordinates relative to random rectangles (rows and columns [N, 1, H, W], 0..1 inside), and a mask of the
    pixels inside."""
    count = len(images)
    sides = sample_uniform(count, side, generator, width=2).clamp(min=1e-3)
    corners = torch.rand(count, 2, generator=generator) * (1.0 - sides)
    row, column = _axes(images)
    row = ((row - corners[:, :1, None, None]) / sides[:, :1, None, None]).expand(count, 1, *images.shape[2:])
    column = ((column - corners[:, 1:, None, None]) / sides[:, 1:, None, None]).expand_as(row)
    return (row, column), (row >= 0.0) & (row < 1.0) & (column >= 0.0) & (column < 1.0)


def _plain_colors(count: int, generator: torch.Generator) -> torch.Tensor:
    """Sample typical colors of bars and captions [count, 3, 1, 1]: a third black, a third white, a third any color."""
    colors = torch.rand(count, 3, generator=generator)
    kind = torch.randint(3, (count, 1), generator=generator)
    colors = torch.where(kind == 0, torch.zeros_like(colors), colors)
    return torch.where(kind == 1, torch.ones_like(colors), colors)[:, :, None, None]
