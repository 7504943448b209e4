"""Edits in time: which frame of the source each frame of the result shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch

from vidkin._base.checks import check_share
from vidkin.datasets.augmentation._draws import Range, check_limits, draw_uniform
from vidkin.errors import InvalidArgumentError

__all__ = ["FramePlan", "TemporalEdit", "TemporalSettings", "plan_frames"]

TemporalEdit = Literal["shuffle", "faster", "slower", "reverse", "pause", "none"]


@dataclass(frozen=True, slots=True, eq=False)
class FramePlan:
    """The frames that an edited clip shows.

    Attributes:
        sources: [T'] int64, the source frame of each frame, even where it is covered.
        filled: [T'] int64: 0 the source frame, 1 black, 2 noise.
    """

    sources: torch.Tensor
    filled: torch.Tensor

    def apply(self, clip: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """The frames [T', 3, H, W] of a clip [T, 3, H, W]; the generator makes the noise."""
        edited = clip[self.sources]
        if bool((self.filled > 0).any()):
            edited = edited.masked_fill((self.filled == 1)[:, None, None, None], 0.0)
            noisy = (self.filled == 2).nonzero()[:, 0]
            edited[noisy] = torch.rand(len(noisy), *clip.shape[1:], generator=generator).to(clip.dtype)
        return edited


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalSettings:
    """How often and how strongly each edit in time is applied.

    Attributes:
        weights: Weights of shuffle, faster, slower, reverse, pause and none, in this order.
        segment: Least and largest number of frames of a segment of ``shuffle``.
        shuffled: Share of such clips whose segments change places.
        dropped: Share of segments that are lost: half of them are cut out, half are black or noise.
        speeds: Limits of the speed of ``faster``.
        slowness: How many times as long ``slower`` takes.
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
    """An edit in time of a source of ``length`` frames, at least one frame long.

    Args:
        length: Frames of the source; a faster clip has fewer of them, a slower one more.
        generator: Source of all random numbers.
        settings: Frequency and strength of edits; default as published for S2VS and HAP-VR.
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
        return _shuffled(frames, settings, generator)
    if edit == "faster":
        speed = float(draw_uniform(1, settings.speeds, generator))
        frames = (torch.arange(max(1, int(length / speed))) * speed).long().clamp(max=length - 1)
    elif edit == "slower":
        frames = (torch.arange(int(length * settings.slowness)) / settings.slowness).long()
    elif edit == "reverse":
        frames = frames.flip(0)
    elif edit == "pause":
        place = int(torch.randint(length, (), generator=generator))
        held = int(torch.randint(1, max(2, length // 2), (), generator=generator))
        frames = torch.cat([frames[:place], frames[place].repeat(held), frames[place:]])
    return FramePlan(frames, torch.zeros(len(frames), dtype=torch.int64))


def _shuffled(frames: torch.Tensor, settings: TemporalSettings, generator: torch.Generator) -> FramePlan:
    segments = []
    least, largest = settings.segment
    while len(frames):
        size = int(torch.randint(least, largest + 1, (), generator=generator))
        segments.append(frames[:size])
        frames = frames[size:]
    if float(torch.rand((), generator=generator)) < settings.shuffled:
        segments = [segments[place] for place in torch.randperm(len(segments), generator=generator)]
    kept: list[torch.Tensor] = []
    filled: list[torch.Tensor] = []
    for number, segment in enumerate(segments):
        fate = torch.rand(3, generator=generator)
        is_lost = bool(fate[0] < settings.dropped)
        # Something has to be left.
        if is_lost and bool(fate[1] < 0.5) and (kept or number + 1 < len(segments)):
            continue
        kept.append(segment)
        cover = 0 if not is_lost else 1 if bool(fate[2] < 0.5) else 2
        filled.append(torch.full_like(segment, cover))
    return FramePlan(torch.cat(kept), torch.cat(filled))
