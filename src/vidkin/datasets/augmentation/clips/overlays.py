"""Overlays on a whole clip: captions, stickers, logos, bars."""

from __future__ import annotations

from collections.abc import Callable

import torch

from vidkin.datasets.augmentation._draws import draw_uniform

__all__ = ["add_sticker", "lay_over"]

Overlay = Callable[[torch.Tensor, torch.Generator], torch.Tensor]


def lay_over(clip: torch.Tensor, generator: torch.Generator, overlay: Overlay) -> torch.Tensor:
    """The same overlay in all frames of a clip [T, 3, H, W].

    It is drawn once on a black and once on a white picture, so that any function of pictures that puts
    something over them can be used, such as :func:`vidkin.datasets.augmentation.overlays.add_caption`.

    Args:
        clip: The clip, with values in 0..1.
        generator: Source of all random numbers.
        overlay: Function of (images [N, 3, H, W], generator) whose overlay does not depend on the images.
    """
    state = generator.get_state()
    black, white = torch.zeros_like(clip[:1]), torch.ones_like(clip[:1])
    painted = overlay(black, generator)
    generator.set_state(state)
    cleared = overlay(white, generator) - painted
    return clip * cleared + painted


def add_sticker(
    images: torch.Tensor, generator: torch.Generator, *, side: tuple[float, float] = (0.15, 0.4)
) -> torch.Tensor:
    """A round face of one color with eyes and a mouth on every image [N, 3, H, W], as emoji are.

    Args:
        images: Images with values in 0..1.
        generator: Source of all random numbers.
        side: Limits of its width as a share of the image's.
    """
    count, _, height, width = images.shape
    radius = draw_uniform(count, side, generator)[:, :, None, None] / 2
    middle = radius + draw_uniform(2 * count, (0.0, 1.0), generator).view(2, count, 1, 1, 1) * (
        1 - 2 * radius
    )
    rows = ((torch.arange(height) + 0.5) / height)[:, None]
    columns = (torch.arange(width) + 0.5) / width
    # In units of the radius, from the middle of the face.
    down, right = (rows - middle[0]) / radius, (columns - middle[1]) / radius
    face = down.square() + right.square() < 1
    eyes = (down + 0.3).square() + (right.abs() - 0.35).square() < 0.03
    smile = draw_uniform(count, (-0.5, 0.5), generator)[:, :, None, None]
    mouth = ((down - 0.4 + smile * (right.square() - 0.25)).abs() < 0.09) & (right.abs() < 0.5)
    color = torch.rand(count, 3, 1, 1, generator=generator) * 0.6 + 0.4
    drawn = torch.where(eyes | mouth, torch.zeros_like(color), color)
    return torch.where(face, drawn.to(images.dtype), images)
