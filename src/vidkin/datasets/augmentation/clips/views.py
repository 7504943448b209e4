"""The two views of a clip that self-supervised training compares: a weak one and a strong one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch

from vidkin._base.checks import check_share
from vidkin.datasets.augmentation._draws import Range, check_limits, draw_uniform, make_generator
from vidkin.datasets.augmentation.clips.layouts import (
    add_borders,
    film_screen,
    picture_in_picture,
    reframe,
    split_screen,
    video_in_video,
)
from vidkin.datasets.augmentation.clips.rand_augment import rand_augment
from vidkin.datasets.augmentation.clips.temporal import TemporalSettings, plan_frames
from vidkin.datasets.augmentation.degrade import blur_clip, compress
from vidkin.datasets.augmentation.geometry import aspect_matrices, crop_matrices, mirror_matrices, stretch
from vidkin.datasets.augmentation.overlays import add_caption, add_sticker, lay_over
from vidkin.errors import InvalidArgumentError

__all__ = ["ClipView", "StrongSettings", "strong_view", "weak_view"]

_ASPECT = 4 / 3


@dataclass(frozen=True, slots=True, eq=False)
class ClipView:
    """An edited clip and the frames that it shows.

    Attributes:
        frames: [T', 3, S, S] in 0..1, T' at least 1.
        sources: [T'] int64, the source frame of each frame.
        filled: [T'] int64: 0 the source frame, 1 black, 2 noise.
        donors: Indices of the donors visible in the picture: the clip belongs to them, too.
    """

    frames: torch.Tensor
    sources: torch.Tensor
    filled: torch.Tensor
    donors: tuple[int, ...] = ()

    @property
    def shows_donor(self) -> bool:
        """Whether another video is in the picture."""
        return bool(self.donors)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrongSettings:
    """Settings of :func:`strong_view`; the defaults are the published ones, without layouts of platforms.

    Shares are probabilities for a clip.

    Attributes:
        temporal: Edits in time.
        crop: Limits of the area of the random crop.
        flip: Share that is flipped left to right.
        operations: Number of RandAugment operations.
        magnitude: Magnitude of RandAugment.
        captions: Share with a caption.
        stickers: Share with a sticker.
        blurred: Share out of focus.
        sigma: Limits of the deviation of the blur, pixels.
        inset: Share with another video in the picture.
        arranged: Share arranged as on video platforms: reframed, between borders, in a split screen, as an inset, or
            filmed from a screen, all equally often.
        compressed: Share that is strongly compressed.
    """

    temporal: TemporalSettings = field(default_factory=TemporalSettings)
    crop: Range = (0.5, 1.0)
    flip: float = 0.5
    operations: int = 2
    magnitude: int = 9
    captions: float = 0.3
    stickers: float = 0.3
    blurred: float = 0.5
    sigma: Range = (0.1, 2.0)
    inset: float = 0.3
    arranged: float = 0.0
    compressed: float = 0.0

    def __post_init__(self) -> None:
        check_limits("crop", self.crop)
        check_limits("sigma", self.sigma)
        check_share(
            flip=self.flip,
            captions=self.captions,
            stickers=self.stickers,
            blurred=self.blurred,
            inset=self.inset,
            arranged=self.arranged,
            compressed=self.compressed,
        )


def weak_view(clip: torch.Tensor, seed: int | torch.Generator, *, length: int | None = None) -> ClipView:
    """Nearly the clip itself: cropped to .8 to 1 of the area, half of the clips mirrored.

    Args:
        clip: [T, 3, S, S] in 0..1.
        seed: The same seed gives the same view.
        length: Number of frames from the first one on; None: all.
    """
    _check(clip)
    frames = torch.arange(len(clip) if length is None else min(length, len(clip)))
    edited = _cropped(clip[frames], (0.8, 1.0), 0.5, make_generator(seed))
    return ClipView(edited, frames, torch.zeros_like(frames))


def strong_view(
    clip: torch.Tensor,
    donors: torch.Tensor,
    seed: int | torch.Generator,
    *,
    settings: StrongSettings | None = None,
    length: int | None = None,
) -> ClipView:
    """The clip after heavy edits in time, in space, in color, with overlays, and with another video in the picture.

    In this order: time, crop and mirror, RandAugment, captions, stickers and blur, another video, arrangement,
    compression; everything but time is the same for all frames or moves steadily.

    Args:
        clip: [T, 3, S, S] in 0..1.
        donors: [D, T, 3, S, S] clips of other videos, at least three.
        seed: The same seed gives the same view.
        settings: Kinds and strengths of edits.
        length: Maximum number of frames; None: as many as the edit in time gives.

    Raises:
        InvalidArgumentError: The clip is not [T, 3, S, S], or there are too few donors.
    """
    _check(clip)
    if donors.ndim != 5 or len(donors) < 3 or donors.shape[2:] != clip.shape[1:]:
        raise InvalidArgumentError(
            f"donors must be at least 3 clips of the clip's size, got {list(donors.shape)} for {list(clip.shape)}"
        )
    settings, generator = settings or StrongSettings(), make_generator(seed)
    plan = plan_frames(len(clip), generator, settings=settings.temporal)
    frames = plan.apply(clip, generator)[:length]
    frames = _cropped(frames, settings.crop, settings.flip, generator)
    frames = rand_augment(frames, generator, count=settings.operations, magnitude=settings.magnitude)
    caption = partial(add_caption, height=(0.1, 0.3), share=1.0)
    for share, overlay in ((settings.captions, caption), (settings.stickers, add_sticker)):
        if _happens(share, generator):
            frames = lay_over(frames, generator, overlay)
    if _happens(settings.blurred, generator):
        frames = blur_clip(frames, float(draw_uniform(1, settings.sigma, generator)))
    chosen = torch.randperm(len(donors), generator=generator)
    shown = int(_happens(settings.inset, generator))
    if shown:
        frames = video_in_video(frames, _looped(donors[chosen[:1]], len(frames))[0], generator)
    if _happens(settings.arranged, generator):
        name = int(torch.randint(len(_ARRANGEMENTS), (), generator=generator))
        others = _looped(donors[chosen[:3]], len(frames))
        frames, arranged = _ARRANGEMENTS[name](frames, others, generator)
        shown = max(shown, arranged)
    if _happens(settings.compressed, generator):
        quality = draw_uniform(1, (5.0, 30.0), generator)
        frames = compress(frames, generator, quality=(float(quality), float(quality)), share=1.0)
    return ClipView(frames, plan.sources[:length], plan.filled[:length], tuple(chosen[:shown].tolist()))


# Of a clip, three other clips and a generator, to the edited clip and how many of the others are in it.
_Arrangement = Callable[[torch.Tensor, torch.Tensor, torch.Generator], tuple[torch.Tensor, int]]

_ARRANGEMENTS: tuple[_Arrangement, ...] = (
    lambda clip, others, generator: (reframe(clip, generator), 0),
    lambda clip, others, generator: (reframe(clip, generator, moving=True), 0),
    lambda clip, others, generator: (add_borders(clip, generator), 0),
    lambda clip, others, generator: (add_borders(clip, generator, kind="colored"), 0),
    lambda clip, others, generator: (split_screen(clip, others[:1], generator), 1),
    lambda clip, others, generator: (split_screen(clip, others[:3], generator, parts=4), 3),
    lambda clip, others, generator: (picture_in_picture(clip, others[0], generator), 1),
    lambda clip, others, generator: (film_screen(clip, generator), 0),
)


def _check(clip: torch.Tensor) -> None:
    if clip.ndim != 4 or clip.shape[1] != 3 or clip.shape[2] != clip.shape[3] or not clip.is_floating_point():
        raise InvalidArgumentError(
            f"clip must be [T, 3, S, S] floating point, got {list(clip.shape)} {clip.dtype}"
        )
    if not len(clip):
        raise InvalidArgumentError("clip must have at least one frame, got none")


def _happens(share: float, generator: torch.Generator) -> bool:
    return bool(torch.rand((), generator=generator) < share)


def _cropped(clip: torch.Tensor, area: Range, flip: float, generator: torch.Generator) -> torch.Tensor:
    """One random crop and aspect for all frames."""
    matrix = crop_matrices(1, (math.sqrt(area[0]), math.sqrt(area[1])), generator)
    matrix = matrix @ aspect_matrices(1, _ASPECT, generator) @ mirror_matrices(1, flip, generator)
    return stretch(clip, matrix[:, 0, [0, 2]], matrix[:, 1, 1:])


def _looped(clips: torch.Tensor, length: int) -> torch.Tensor:
    """[D, length, ...]: the clips repeated until they are long enough."""
    return clips[:, torch.arange(length) % clips.shape[1]]
