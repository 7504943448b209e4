"""Pairs of views for training without labels: a nearly unedited and a heavily edited view of each image."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin.datasets.augmentation import degrade, overlays
from vidkin.datasets.augmentation.geometry import WarpSettings, random_warp
from vidkin.datasets.augmentation.sampling import Range, make_generator
from vidkin.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class EditSettings:
    """Kinds and strengths of edits for `edit_images`; the defaults change nothing.

    Each ``*_share`` is the probability that an image gets the edit. Sides, heights and widths are relative to the
    image.

    Attributes:
        warp: Crop, aspect ratio, rotation, perspective and mirroring.
        contrast: Range of the contrast factor.
        brightness: Range of the factor applied to values.
        brightness_shift: Maximum shift of values, up or down.
        gamma: Strength of the gamma change.
        gamma_share: Probability of a gamma change.
        tint: Maximum difference of the channels' factors from 1.
        tint_share: Probability of a color cast.
        gray_share: Probability of conversion to gray.
        compress_quality: Range of the JPEG quality of strong compression.
        compress_share: Probability of strong compression.
        blur_sigma: Range of the standard deviation of the blur, in pixels of the result.
        blur_share: Probability of a blur.
        down_sample_lowest: Minimum relative side to which images are scaled down.
        down_sample_share: Probability of scaling down and up again.
        blend_weight: Range of the weight of another image blended over an image.
        blend_share: Probability of another image blended over an image.
        cover_side: Range of the sides of a rectangle that shows another image.
        cover_share: Probability of such a rectangle.
        sticker_side: Range of the width of a sticker.
        sticker_share: Probability of a sticker.
        bar_height: Range of the height of a bar of one color.
        bar_share: Probability of a bar.
        caption_height: Range of the height of a caption.
        caption_share: Probability of a caption.
        block_side: Range of the sides of an opaque block.
        block_share: Probability of a block.
        logo_side: Range of the sides of a logo.
        logo_share: Probability of a logo.
        border_width: Range of the width of borders along the edges.
        border_share: Probability of borders.
        noise: Range of the standard deviation of the noise.
        noise_share: Probability of noise.
    """

    warp: WarpSettings = field(default_factory=WarpSettings)
    contrast: Range = (1.0, 1.0)
    brightness: Range = (1.0, 1.0)
    brightness_shift: float = 0.0
    gamma: float = 0.0
    gamma_share: float = 0.0
    tint: float = 0.0
    tint_share: float = 0.0
    gray_share: float = 0.0
    compress_quality: Range = (5.0, 50.0)
    compress_share: float = 0.0
    blur_sigma: Range = (0.0, 0.0)
    blur_share: float = 0.0
    down_sample_lowest: float = 1.0
    down_sample_share: float = 0.0
    blend_weight: Range = (0.0, 0.0)
    blend_share: float = 0.0
    cover_side: Range = (0.0, 0.0)
    cover_share: float = 0.0
    sticker_side: Range = (0.0, 0.0)
    sticker_share: float = 0.0
    bar_height: Range = (0.0, 0.0)
    bar_share: float = 0.0
    caption_height: Range = (0.0, 0.0)
    caption_share: float = 0.0
    block_side: Range = (0.0, 0.0)
    block_share: float = 0.0
    logo_side: Range = (0.0, 0.0)
    logo_share: float = 0.0
    border_width: Range = (0.0, 0.0)
    border_share: float = 0.0
    noise: Range = (0.0, 0.0)
    noise_share: float = 0.0


PLAIN = EditSettings(
    warp=WarpSettings(scale=(0.9, 1.0)),
    contrast=(0.9, 1.1),
    brightness_shift=0.03,
)
HEAVY = EditSettings(
    warp=WarpSettings(scale=(0.7, 1.0), aspect=1.15, rotation=6.0, perspective=0.06, distorted=0.5),
    contrast=(0.5, 1.5),
    brightness=(0.7, 1.2),
    brightness_shift=0.15,
    gamma=0.8,
    gamma_share=0.5,
    tint=0.25,
    tint_share=0.5,
    gray_share=0.25,
    compress_quality=(5.0, 40.0),
    compress_share=0.2,
    blur_sigma=(0.3, 1.6),
    blur_share=0.25,
    down_sample_lowest=0.3,
    down_sample_share=0.25,
    bar_height=(0.05, 0.25),
    bar_share=0.2,
    caption_height=(0.1, 0.3),
    caption_share=0.35,
    block_side=(0.1, 0.35),
    block_share=0.2,
    logo_side=(0.1, 0.35),
    logo_share=0.25,
    border_width=(0.0, 0.12),
    border_share=0.25,
    noise=(0.0, 0.1),
    noise_share=0.35,
)


@check_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class PairSettings:
    """Settings of the two views in a training pair; the defaults were used for the bundled frame encoder.

    Attributes:
        side: Side of both views in pixels.
        plain: Edits of the first view.
        heavy: Edits of the second view.
        mirror_both: Probability of flipping both views left to right, which adds variety to the images without
            training invariance to mirroring.
    """

    side: int = 64
    plain: EditSettings = PLAIN
    heavy: EditSettings = HEAVY
    mirror_both: float = 0.5

    def __post_init__(self) -> None:
        if self.side < 8:
            raise InvalidArgumentError(f"side must be at least 8, got {self.side}")


@check_arguments
def to_float(images: torch.Tensor) -> torch.Tensor:
    """Convert uint8 images to float in 0..1; floating-point images are returned unchanged."""
    return images if images.is_floating_point() else images.float().mul_(1.0 / 255.0)


@check_arguments
def edit_images(
    images: torch.Tensor, settings: EditSettings, seed: int | torch.Generator, *, side: int | None = None
) -> torch.Tensor:
    """Randomly edit images [N, 3, H, W]; return [N, 3, side, side] float in 0..1.

    The order of edits follows real copies, where overlays and reframing precede filming and encoding. The same images,
    settings and seed give the same result.

    Args:
        images: Images, uint8 or floating point in 0..1.
        settings: Kinds and strengths of edits.
        seed: A number, or a generator shared by several calls.
        side: Side of the result in pixels; None keeps the side of the images.
    """
    random = make_generator(seed)
    out = random_warp(to_float(images), random, settings=settings.warp, side=side)
    out = degrade.change_contrast(out, random, factors=settings.contrast)
    out = degrade.change_brightness(out, random, shift=settings.brightness_shift, factors=settings.brightness)
    out = degrade.change_gamma(out, random, strength=settings.gamma, share=settings.gamma_share)
    # Gray before tint, so that both together give sepia.
    out = degrade.to_gray(out, random, share=settings.gray_share)
    out = degrade.tint(out, random, strength=settings.tint, share=settings.tint_share)
    out = overlays.blend_other(out, random, weight=settings.blend_weight, share=settings.blend_share)
    out = overlays.cover_with_other(out, random, side=settings.cover_side, share=settings.cover_share)
    out = overlays.add_stickers(out, random, side=settings.sticker_side, share=settings.sticker_share)
    out = overlays.add_bar(out, random, height=settings.bar_height, share=settings.bar_share)
    out = overlays.add_caption(out, random, height=settings.caption_height, share=settings.caption_share)
    out = overlays.add_block(out, random, side=settings.block_side, share=settings.block_share)
    out = overlays.add_logo(out, random, side=settings.logo_side, share=settings.logo_share)
    out = overlays.add_border(out, random, width=settings.border_width, share=settings.border_share)
    out = degrade.blur(out, random, sigma=settings.blur_sigma, share=settings.blur_share)
    out = degrade.down_sample(out, random, lowest=settings.down_sample_lowest, share=settings.down_sample_share)
    out = degrade.add_noise(out, random, deviation=settings.noise, share=settings.noise_share)
    return degrade.compress(out, random, quality=settings.compress_quality, share=settings.compress_share)


@check_arguments
def make_pairs(
    images: torch.Tensor,
    settings: PairSettings,
    seed: int | torch.Generator,
    neighbors: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Make a nearly unedited and a heavily edited view of each image, both [N, 3, side, side] float in 0..1.

    Args:
        images: [N, 3, H, W] uint8, or floating point in 0..1.
        settings: Side of the views and strengths of the edits.
        seed: A number, or a generator shared by several calls.
        neighbors: Images to use for the heavily edited views instead of ``images``, such as the same scenes a moment
            later. They do not affect the random numbers.

    Raises:
        InvalidArgumentError: ``neighbors`` and ``images`` have different shapes.
    """
    random = make_generator(seed)
    sources = [to_float(images)]
    if neighbors is not None:
        if neighbors.shape != images.shape:
            raise InvalidArgumentError(
                f"neighbors must have the shape of the images, {list(images.shape)}, got {list(neighbors.shape)}"
            )
        sources.append(to_float(neighbors))
    if settings.mirror_both > 0.0:
        mirrored = torch.rand(len(images), generator=random) < settings.mirror_both
        sources = [torch.where(mirrored[:, None, None, None], source.flip(3), source) for source in sources]
    plain = edit_images(sources[0], settings.plain, random, side=settings.side)
    return plain, edit_images(sources[-1], settings.heavy, random, side=settings.side)
