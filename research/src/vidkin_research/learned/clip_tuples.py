"""Sample quadlets and triplets of clips from videos with labeled shots and critical moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from vidkin._base.values import check_not_negative
from vidkin.errors import InvalidArgumentError
from vidkin.metric.sampling.tuples import generator_of, uniform_below
from vidkin.shots import check_shot

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class AnnotatedShot:
    """One shot of a video, in frames.

    Attributes:
        video: Index of the video in the caller's list.
        start: First frame.
        end: First frame after the shot.
        critical: [start, end) of the critical frames within the shot; None if the shot is not critical.
    """

    video: int
    start: int
    end: int
    critical: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        check_shot(self.start, self.end, self.critical)


@dataclass(frozen=True, slots=True, order=True)
class ClipWindow:
    """Consecutive frames [start, end) of a video."""

    video: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ClipQuadlet:
    """Query and positive from the non-critical frames of a shot, intermediate from its critical frames, negative from
    the next shot."""

    query: ClipWindow
    positive: ClipWindow
    intermediate: ClipWindow
    negative: ClipWindow


@dataclass(frozen=True, slots=True)
class ClipTriplet:
    """Query and positive from a shot that is not critical, negative from the next shot."""

    query: ClipWindow
    positive: ClipWindow
    negative: ClipWindow


def sample_critical_quadlets(
    shots: Sequence[AnnotatedShot],
    count: int,
    *,
    seed: int | torch.Generator,
    clip_frames: int = 40,
    minimum_frames: int | None = None,
) -> list[ClipQuadlet]:
    """Sample critical-clip quadlets (Radial loss, ICIP, section 3), with replacement.

    The shot is sampled uniformly from the eligible ones, then q and p from different windows of its non-critical
    frames, i from the windows of its critical frames, and n from the windows of the next shot in the same video. A shot
    is eligible if it is critical, its non-critical frames have at least two windows, and its critical frames and the
    next shot have at least one.

    Args:
        shots: Shots of any number of videos, in any order.
        count: Number of quadlets.
        seed: Random seed, or a generator whose state advances.
        clip_frames: Window length in frames; the paper uses 40 at 20 fps.
        minimum_frames: A run of frames shorter than ``clip_frames`` but at least this long is a single window; default:
            ``clip_frames``, so that all windows have that length. Lower it if critical moments are short and the
            encoder takes clips of any length.

    Raises:
        InvalidArgumentError: No shot is eligible (the message counts the reasons), or the lengths are invalid.
    """
    lengths = _check_lengths(clip_frames, minimum_frames, count)
    candidates: list[tuple[str, tuple[_Windows, _Windows, _Windows]]] = []
    for shot, following in _pair_with_next(shots):
        if shot.critical is None:
            continue
        around = _Windows.of(shot.video, [(shot.start, shot.critical[0]), (shot.critical[1], shot.end)], lengths)
        event = _Windows.of(shot.video, [shot.critical], lengths)
        after = _windows_of(following, lengths)
        reason = (
            "fewer than two windows of non-critical frames"
            if around.total < 2
            else "no window of critical frames"
            if event.total < 1
            else "no window in the next shot"
            if after.total < 1
            else ""
        )
        candidates.append((reason, (around, event, after)))
    generator = generator_of(seed)
    quadlets = []
    for around, event, after in _sample_shots(candidates, count, generator, "critical", clip_frames):
        query, positive = around.sample_two(generator)
        quadlets.append(ClipQuadlet(query, positive, event.sample(generator), after.sample(generator)))
    return quadlets


def sample_shot_triplets(
    shots: Sequence[AnnotatedShot],
    count: int,
    *,
    seed: int | torch.Generator,
    clip_frames: int = 40,
    minimum_frames: int | None = None,
) -> list[ClipTriplet]:
    """Sample triplets from shots that are not critical: q and p from two windows of a shot, n from the next shot.

    The arguments and errors are those of `sample_critical_quadlets`; the loss on these triplets has a margin of 0.7.
    """
    lengths = _check_lengths(clip_frames, minimum_frames, count)
    candidates: list[tuple[str, tuple[_Windows, _Windows]]] = []
    for shot, following in _pair_with_next(shots):
        if shot.critical is not None:
            continue
        own, after = _windows_of(shot, lengths), _windows_of(following, lengths)
        reason = "fewer than two windows" if own.total < 2 else "no window in the next shot" if after.total < 1 else ""
        candidates.append((reason, (own, after)))
    generator = generator_of(seed)
    triplets = []
    for own, after in _sample_shots(candidates, count, generator, "non-critical", clip_frames):
        query, positive = own.sample_two(generator)
        triplets.append(ClipTriplet(query, positive, after.sample(generator)))
    return triplets


@dataclass(frozen=True, slots=True)
class _Windows:
    """All windows in several frame intervals of a video: (first start, number of starts, length) of each interval."""

    video: int
    stretches: tuple[tuple[int, int, int], ...]
    total: int

    @classmethod
    def of(cls, video: int, stretches: Sequence[tuple[int, int]], lengths: tuple[int, int]) -> _Windows:
        clip, minimum = lengths
        kept = []
        for start, end in stretches:
            length = min(clip, end - start)
            if length >= minimum:
                kept.append((start, end - start - length + 1, length))
        return cls(video, tuple(kept), sum(starts for _, starts, _ in kept))

    def window(self, number: int) -> ClipWindow:
        for first, starts, length in self.stretches:
            if number < starts:
                return ClipWindow(self.video, first + number, first + number + length)
            number -= starts
        raise IndexError(number)

    def sample(self, generator: torch.Generator) -> ClipWindow:
        return self.window(_choices(self.total, 1, generator)[0])

    def sample_two(self, generator: torch.Generator) -> tuple[ClipWindow, ClipWindow]:
        """Sample two different windows; every ordered pair is equally likely."""
        first = _choices(self.total, 1, generator)[0]
        second = _choices(self.total - 1, 1, generator)[0]
        return self.window(first), self.window(second + (second >= first))


def _choices(limit: int, count: int, generator: torch.Generator) -> list[int]:
    return [int(number) for number in uniform_below(torch.full((count,), limit), generator).tolist()]


def _windows_of(shot: AnnotatedShot | None, lengths: tuple[int, int]) -> _Windows:
    return _Windows(0, (), 0) if shot is None else _Windows.of(shot.video, [(shot.start, shot.end)], lengths)


def _pair_with_next(shots: Sequence[AnnotatedShot]) -> list[tuple[AnnotatedShot, AnnotatedShot | None]]:
    ordered = sorted(shots, key=lambda shot: (shot.video, shot.start))
    pairs: list[tuple[AnnotatedShot, AnnotatedShot | None]] = []
    for number, shot in enumerate(ordered):
        following = ordered[number + 1] if number + 1 < len(ordered) else None
        if following is not None and following.video != shot.video:
            following = None
        if following is not None and following.start < shot.end:
            raise InvalidArgumentError(
                f"shots must not overlap, got [{shot.start}, {shot.end}) and [{following.start}, {following.end}) "
                f"of video {shot.video}"
            )
        pairs.append((shot, following))
    return pairs


def _check_lengths(clip_frames: int, minimum_frames: int | None, count: int) -> tuple[int, int]:
    minimum = clip_frames if minimum_frames is None else minimum_frames
    if not 1 <= minimum <= clip_frames:
        raise InvalidArgumentError(
            "clip_frames and minimum_frames must be 1 <= minimum_frames <= clip_frames, "
            f"got {clip_frames} and {minimum}"
        )
    check_not_negative(count=count)
    return clip_frames, minimum


def _sample_shots(
    candidates: Sequence[tuple[str, P]], count: int, generator: torch.Generator, kind: str, clip_frames: int
) -> list[P]:
    """Sample the windows of ``count`` eligible shots, with replacement."""
    eligible = [windows for reason, windows in candidates if not reason]
    if not eligible:
        if not candidates:
            raise InvalidArgumentError(f"there is no {kind} shot to sample from")
        reasons = Counter(reason for reason, _ in candidates)
        why = ", ".join(f"{reason} ({number} shots)" for reason, number in sorted(reasons.items()))
        raise InvalidArgumentError(
            f"no {kind} shot is eligible with {clip_frames} frames per clip: {why}; shorten the clips (clip_frames or "
            "minimum_frames; in a recipe, window)"
        )
    return [eligible[number] for number in _choices(len(eligible), count, generator)]
