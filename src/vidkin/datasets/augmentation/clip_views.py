"""Weak and strong views of clips for self-supervised training, using RandAugment and temporal edits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

import torch
from torch.nn import functional

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.values import check_share
from vidkin.datasets.augmentation.degrade import blur_clip, compress, luminance
from vidkin.datasets.augmentation.geometry import (
    add_borders,
    aspect_matrices,
    crop_matrices,
    film_screen,
    mirror_matrices,
    picture_in_picture,
    reframe,
    rotations,
    split_screen,
    stretch,
    video_in_video,
    warp,
)
from vidkin.datasets.augmentation.overlays import add_caption, add_sticker, lay_over
from vidkin.datasets.augmentation.sampling import Range, check_limits, make_generator, sample_uniform
from vidkin.errors import InvalidArgumentError

_STEPS = 30

_LEVELS = 256


@check_arguments
def rand_augment(clip: torch.Tensor, generator: torch.Generator, *, count: int = 2, magnitude: int = 9) -> torch.Tensor:
    """Apply ``count`` random operations to a clip (Cubuk et al., NeurIPS 2020), each identically to all frames.

    Args:
        clip: [T, 3, S, S] in 0..1.
        generator: Random number generator.
        count: Number of operations, sampled with replacement.
        magnitude: Strength of the operations, from 0 to 30.

    Raises:
        InvalidArgumentError: The magnitude or the count is out of range.
    """
    if not 0 <= magnitude <= _STEPS or count < 0:
        raise InvalidArgumentError(
            f"magnitude must be from 0 to {_STEPS} and count at least 0, got {magnitude} and {count}"
        )
    names = tuple(OPERATIONS)
    for _ in range(count):
        name = names[int(torch.randint(len(names), (), generator=generator))]
        sign = 1.0 if bool(torch.rand((), generator=generator) < 0.5) else -1.0
        clip = OPERATIONS[name](clip, magnitude / _STEPS * sign)
    return clip


def _extrapolate(clip: torch.Tensor, plain: torch.Tensor, strength: float) -> torch.Tensor:
    """Move a clip away from a degenerate version of it by up to 90 %, or toward it for a negative strength."""
    return (plain + (clip - plain) * (1.0 + 0.9 * strength)).clamp(0, 1)


def _autocontrast(clip: torch.Tensor, strength: float) -> torch.Tensor:
    low, high = clip.amin((0, 2, 3), keepdim=True), clip.amax((0, 2, 3), keepdim=True)
    return torch.where(high > low, (clip - low) / (high - low).clamp(min=1e-6), clip)


def _equalize(clip: torch.Tensor, strength: float) -> torch.Tensor:
    """Replace values by their ranks, separately in each channel."""
    levels = (clip * (_LEVELS - 1)).round().long().clamp(0, _LEVELS - 1)
    result = torch.empty_like(clip)
    for channel in range(3):
        counts = torch.bincount(levels[:, channel].flatten(), minlength=_LEVELS).float()
        ranks = (counts.cumsum(0) - counts / 2) / counts.sum()
        result[:, channel] = ranks.to(clip.dtype)[levels[:, channel]]
    return result


def _posterize(clip: torch.Tensor, strength: float) -> torch.Tensor:
    steps = float(2 ** (8 - round(4 * abs(strength))) - 1)
    return (clip * steps).round() / steps


def _sharpness(clip: torch.Tensor, strength: float) -> torch.Tensor:
    padded = functional.pad(clip, (1, 1, 1, 1), "replicate")
    rows = padded[..., :-2] + padded[..., 1:-1] + padded[..., 2:]
    smooth = (rows[..., :-2, :] + rows[..., 1:-1, :] + rows[..., 2:, :]) / 9
    return _extrapolate(clip, smooth, strength)


def _transform(clip: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Transform a clip by one matrix [3, 3], filling the outside with black."""
    return warp(clip, matrix.expand(len(clip), 3, 3), clip.shape[-1], padding="zeros")


def _shear(clip: torch.Tensor, strength: float, row: int, column: int) -> torch.Tensor:
    """Shear a clip along one axis by up to 0.3 times the other coordinate."""
    matrix = torch.eye(3)
    matrix[row, column] = 0.3 * strength
    return _transform(clip, matrix)


def _shift(clip: torch.Tensor, strength: float) -> torch.Tensor:
    """Shift a clip by whole pixels, up to 0.45 times its width."""
    shift = round(0.45 * strength * clip.shape[-1])
    return functional.pad(clip, (shift, -shift))


def _rotate(clip: torch.Tensor, strength: float) -> torch.Tensor:
    return _transform(clip, rotations(torch.tensor([strength * torch.pi / 6]))[0])


OPERATIONS: Mapping[str, Callable[[torch.Tensor, float], torch.Tensor]] = {
    "identity": lambda clip, strength: clip,
    "autocontrast": _autocontrast,
    "equalize": _equalize,
    "rotate": _rotate,
    "solarize": lambda clip, strength: torch.where(clip < 1.0 - abs(strength), clip, 1.0 - clip),
    "color": lambda clip, strength: _extrapolate(clip, luminance(clip).expand_as(clip), strength),
    "posterize": _posterize,
    "contrast": lambda clip, strength: _extrapolate(clip, luminance(clip).mean().expand_as(clip), strength),
    "brightness": lambda clip, strength: _extrapolate(clip, torch.zeros_like(clip), strength),
    "sharpness": _sharpness,
    "shear_x": lambda clip, strength: _shear(clip, strength, 0, 1),
    "shear_y": lambda clip, strength: _shear(clip, strength, 1, 0),
    "translate_x": lambda clip, strength: _shift(clip, strength),
    "translate_y": lambda clip, strength: _shift(clip.mT, strength).mT,
}

"""Operations of `rand_augment` by name: functions of (clip, strength from -1 to 1)."""


TemporalEdit = Literal["shuffle", "faster", "slower", "reverse", "pause", "none"]


@dataclass(frozen=True, slots=True, eq=False)
class FramePlan:
    """Source frame and fill of each frame in a temporally edited clip.

    Attributes:
        sources: [T'] int64, the source frame of each frame, even if a fill hides it.
        filled: [T'] int64: 0 for the source frame, 1 for black, 2 for noise.
    """

    sources: torch.Tensor
    filled: torch.Tensor

    def apply(self, clip: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Apply the edit to a clip [T, 3, H, W] and return frames [T', 3, H, W]; the generator produces the noise."""
        edited = clip[self.sources]
        if bool((self.filled > 0).any()):
            edited = edited.masked_fill((self.filled == 1)[:, None, None, None], 0.0)
            noisy = (self.filled == 2).nonzero()[:, 0]
            edited[noisy] = torch.rand(len(noisy), *clip.shape[1:], generator=generator).to(clip.dtype)
        return edited


@check_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalSettings:
    """Probabilities and strengths of temporal edits.

    Attributes:
        weights: Relative frequencies of shuffle, faster, slower, reverse, pause and none, in this order.
        segment: Minimum and maximum length of a segment of ``shuffle``, in frames.
        shuffled: Probability that ``shuffle`` reorders the segments of a clip.
        dropped: Probability that ``shuffle`` drops a segment: half of these are cut out, half become black or noise.
        speeds: Range of the speed of ``faster``.
        slowness: Factor by which ``slower`` lengthens a clip.
    """

    weights: tuple[float, ...] = (0.5, 0.1, 0.1, 0.1, 0.1, 0.1)
    segment: tuple[int, int] = (4, 16)
    shuffled: float = 0.5
    dropped: float = 0.3
    speeds: Range = (2.0, 3.0)
    slowness: float = 2.0

    def __post_init__(self) -> None:
        if len(self.weights) != len(get_args(TemporalEdit)) or min(self.weights) < 0 or not sum(self.weights):
            raise InvalidArgumentError(
                f"weights must be {len(get_args(TemporalEdit))} numbers of at least 0, not all 0, got {self.weights}"
            )
        check_limits("segment", self.segment, lowest=1)
        check_limits("speeds", self.speeds, lowest=1)
        check_share(shuffled=self.shuffled, dropped=self.dropped)
        if not self.slowness >= 1:
            raise InvalidArgumentError(f"slowness must be at least 1, got {self.slowness}")


def plan_frames(
    length: int,
    generator: torch.Generator,
    *,
    settings: TemporalSettings | None = None,
    edit: TemporalEdit | None = None,
) -> FramePlan:
    """Plan a temporal edit of a source of ``length`` frames; the result has at least one frame.

    Args:
        length: Number of frames in the source; a faster clip has fewer frames, a slower clip more.
        generator: Random number generator.
        settings: Probabilities and strengths of edits; default: the settings published for S2VS and HAP-VR.
        edit: Edit to apply instead of a random one.
    """
    if length < 1:
        raise InvalidArgumentError(f"length must be at least 1, got {length}")
    settings = settings or TemporalSettings()
    if edit is None:
        drawn = torch.multinomial(torch.tensor(settings.weights, dtype=torch.float32), 1, generator=generator)
        edit = get_args(TemporalEdit)[int(drawn)]
    frames = torch.arange(length)
    if edit == "shuffle":
        return _shuffle(frames, settings, generator)
    if edit == "faster":
        speed = float(sample_uniform(1, settings.speeds, generator))
        frames = (torch.arange(max(1, int(length / speed))) * speed).long().clamp(max=length - 1)
    elif edit == "slower":
        frames = (torch.arange(int(length * settings.slowness)) / settings.slowness).long()
    elif edit == "reverse":
        frames = frames.flip(0)
    elif edit == "pause":
        start = int(torch.randint(length, (), generator=generator))
        held = int(torch.randint(1, max(2, length // 2), (), generator=generator))
        frames = torch.cat([frames[:start], frames[start].repeat(held), frames[start:]])
    return FramePlan(frames, torch.zeros(len(frames), dtype=torch.int64))


def _shuffle(frames: torch.Tensor, settings: TemporalSettings, generator: torch.Generator) -> FramePlan:
    segments = []
    smallest, largest = settings.segment
    while len(frames):
        size = int(torch.randint(smallest, largest + 1, (), generator=generator))
        segments.append(frames[:size])
        frames = frames[size:]
    if float(torch.rand((), generator=generator)) < settings.shuffled:
        segments = [segments[index] for index in torch.randperm(len(segments), generator=generator)]
    kept: list[torch.Tensor] = []
    filled: list[torch.Tensor] = []
    for number, segment in enumerate(segments):
        fate = torch.rand(3, generator=generator)
        is_lost = bool(fate[0] < settings.dropped)
        # At least one segment must remain.
        if is_lost and bool(fate[1] < 0.5) and (kept or number + 1 < len(segments)):
            continue
        kept.append(segment)
        cover = 0 if not is_lost else 1 if bool(fate[2] < 0.5) else 2
        filled.append(torch.full_like(segment, cover))
    return FramePlan(torch.cat(kept), torch.cat(filled))


_ASPECT = 4 / 3

LEAST_SHARED = 0.25

"""Minimum fraction of the shorter view's frames that two views must share to be a positive pair."""


@dataclass(frozen=True, slots=True, eq=False)
class ClipView:
    """An edited clip, with the source frames it shows.

    Attributes:
        frames: [T', 3, S, S] in 0..1, T' at least 1.
        sources: [T'] int64, the source frame of each frame.
        filled: [T'] int64: 0 for the source frame, 1 for black, 2 for noise.
        donors: Indices of the donor clips visible in the frames; their videos also count as relevant.
    """

    frames: torch.Tensor
    sources: torch.Tensor
    filled: torch.Tensor
    donors: tuple[int, ...] = ()

    @property
    def shows_donor(self) -> bool:
        """Whether another video is visible in the frames."""
        return bool(self.donors)


@check_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class StrongSettings:
    """Settings of :func:`strong_view`; the defaults are the published settings, without video-platform layouts.

    Attributes:
        temporal: Temporal edits.
        crop: Range of the area of the random crop, relative to the frame.
        flip: Probability of flipping a clip left to right.
        operations: Number of RandAugment operations.
        magnitude: Magnitude of RandAugment.
        captions: Probability of a caption.
        stickers: Probability of a sticker.
        overlaid: Range of the fraction of randomly chosen frames that show the caption or sticker of a clip; (1, 1)
            selects all frames, as is usual for captions and logos in copies.
        blurred: Probability of a blur.
        sigma: Range of the standard deviation of the blur, in pixels.
        inset: Probability of an inset that shows another video.
        arranged: Probability of a video-platform layout: reframed, between borders, in a split screen, as an inset, or
            filmed from a screen, each equally likely.
        compressed: Probability of strong compression.
    """

    temporal: TemporalSettings = field(default_factory=TemporalSettings)
    crop: Range = (0.5, 1.0)
    flip: float = 0.5
    operations: int = 2
    magnitude: int = 9
    captions: float = 0.3
    stickers: float = 0.3
    overlaid: Range = (0.0, 1.0)
    blurred: float = 0.5
    sigma: Range = (0.1, 2.0)
    inset: float = 0.3
    arranged: float = 0.0
    compressed: float = 0.0

    def __post_init__(self) -> None:
        check_limits("crop", self.crop)
        check_limits("sigma", self.sigma)
        check_limits("overlaid", self.overlaid)
        check_share(overlaid=self.overlaid[1])
        check_share(
            flip=self.flip,
            captions=self.captions,
            stickers=self.stickers,
            blurred=self.blurred,
            inset=self.inset,
            arranged=self.arranged,
            compressed=self.compressed,
        )


@check_arguments
def weak_view(clip: torch.Tensor, seed: int | torch.Generator, *, length: int | None = None) -> ClipView:
    """Make a weak view of a clip: a crop of 0.8 to 1 times its area, mirrored with probability 1/2.

    Args:
        clip: [T, 3, S, S] in 0..1.
        seed: Seed or generator; the same seed gives the same view.
        length: Maximum number of frames, cut out at a random position; None: all frames.
    """
    _check(clip)
    generator = make_generator(seed)
    length = len(clip) if length is None else min(length, len(clip))
    start = int(torch.randint(len(clip) - length + 1, (), generator=generator))
    frames = torch.arange(start, start + length)
    edited = _crop(clip[frames], (0.8, 1.0), 0.5, generator)
    return ClipView(edited, frames, torch.zeros_like(frames))


@check_arguments
def strong_view(
    clip: torch.Tensor,
    donors: torch.Tensor,
    seed: int | torch.Generator,
    *,
    settings: StrongSettings | None = None,
    length: int | None = None,
    beside: torch.Tensor | None = None,
) -> ClipView:
    """Make a strong view of a clip: edits of time, space and color, overlays, and insets of other videos.

    The order is: temporal edit, crop and mirror, RandAugment, caption, sticker, blur, inset, layout, compression.
    Except for the temporal edit and the choice of frames with a caption or sticker, edits are the same for all frames
    or change smoothly. The temporally edited clip is cut to ``length`` at a random position, as in the published code.

    Args:
        clip: [T, 3, S, S] in 0..1.
        donors: [D, T, 3, S, S] clips of other videos, at least three.
        seed: Seed or generator; the same seed gives the same view.
        settings: Kinds and strengths of edits.
        length: Maximum number of frames; None: no limit.
        beside: [n] int64, source frames of the other view of the pair. The cut is at a random position where the two
            views share at least :data:`LEAST_SHARED` of the shorter view's frames, or, if there is no such position,
            where they share the most. None: any position.

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
    plan = _cut(plan, length, beside, generator)
    frames = _crop(plan.apply(clip, generator), settings.crop, settings.flip, generator)
    frames = rand_augment(frames, generator, count=settings.operations, magnitude=settings.magnitude)
    caption = partial(add_caption, height=(0.1, 0.3), share=1.0)
    for share, overlay in ((settings.captions, caption), (settings.stickers, add_sticker)):
        if _random_bool(share, generator):
            on = _sample_frame_mask(len(frames), settings.overlaid, generator)
            frames = torch.where(on[:, None, None, None], lay_over(frames, generator, overlay), frames)
    if _random_bool(settings.blurred, generator):
        frames = blur_clip(frames, float(sample_uniform(1, settings.sigma, generator)))
    chosen = torch.randperm(len(donors), generator=generator)
    visible = int(_random_bool(settings.inset, generator))
    if visible:
        frames = video_in_video(frames, _loop(donors[chosen[:1]], len(frames))[0], generator)
    if _random_bool(settings.arranged, generator):
        name = int(torch.randint(len(_ARRANGEMENTS), (), generator=generator))
        others = _loop(donors[chosen[:3]], len(frames))
        frames, arranged = _ARRANGEMENTS[name](frames, others, generator)
        visible = max(visible, arranged)
    if _random_bool(settings.compressed, generator):
        quality = sample_uniform(1, (5.0, 30.0), generator)
        frames = compress(frames, generator, quality=(float(quality), float(quality)), share=1.0)
    return ClipView(frames, plan.sources, plan.filled, tuple(chosen[:visible].tolist()))


def _cut(plan: FramePlan, length: int | None, beside: torch.Tensor | None, generator: torch.Generator) -> FramePlan:
    """Cut a plan to ``length`` frames, at a random position where it shares enough frames with the other view."""
    if length is None or len(plan.sources) <= length:
        return plan
    starts = torch.arange(len(plan.sources) - length + 1)
    if beside is not None:
        shares = torch.tensor([_overlap_fraction(plan, int(start), length, beside) for start in starts])
        starts = starts[shares >= min(LEAST_SHARED, float(shares.max()))]
    start = int(starts[int(torch.randint(len(starts), (), generator=generator))])
    return FramePlan(plan.sources[start : start + length], plan.filled[start : start + length])


def _overlap_fraction(plan: FramePlan, start: int, length: int, beside: torch.Tensor) -> float:
    """Return the fraction of the shorter view's distinct frames that both views show."""
    sources, filled = plan.sources[start : start + length], plan.filled[start : start + length]
    own, other = torch.unique(sources[filled == 0]), torch.unique(beside)
    return int(torch.isin(own, other).sum()) / max(1, min(len(own), len(other)))


# Function of (clip, three other clips, generator) that returns the edited clip and the number of visible other clips.
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
        raise InvalidArgumentError(f"clip must be [T, 3, S, S] floating point, got {list(clip.shape)} {clip.dtype}")
    if not len(clip):
        raise InvalidArgumentError("clip must have at least one frame, got none")


def _sample_frame_mask(count: int, share: Range, generator: torch.Generator) -> torch.Tensor:
    """Return a random selection of frames, [count] bool, whose fraction is within these limits; at least one frame."""
    if share[0] >= 1:
        return torch.ones(count, dtype=torch.bool)
    chosen = max(1, round(count * float(sample_uniform(1, share, generator))))
    return torch.randperm(count, generator=generator) < chosen


def _random_bool(probability: float, generator: torch.Generator) -> bool:
    return bool(torch.rand((), generator=generator) < probability)


def _crop(clip: torch.Tensor, area: Range, flip: float, generator: torch.Generator) -> torch.Tensor:
    """Apply the same random crop, aspect ratio and mirroring to all frames."""
    matrix = crop_matrices(1, (math.sqrt(area[0]), math.sqrt(area[1])), generator)
    matrix = matrix @ aspect_matrices(1, _ASPECT, generator) @ mirror_matrices(1, flip, generator)
    return stretch(clip, matrix[:, 0, [0, 2]], matrix[:, 1, 1:])


def _loop(clips: torch.Tensor, length: int) -> torch.Tensor:
    """Repeat clips [D, T, ...] up to this length: [D, length, ...]."""
    return clips[:, torch.arange(length) % clips.shape[1]]
