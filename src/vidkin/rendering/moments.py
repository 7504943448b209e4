"""Moments of videos as pictures in a page, and the same moments in all files of a group of copies: where each of them
shows what the best one shows."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidkin._base.values import Result
from vidkin.errors import MediaError
from vidkin.index import DuplicateGroup, DuplicateMember
from vidkin.media import thumbnail
from vidkin.rendering.text import clock, printable
from vidkin.similarity import Box, Segment

_JPEG_QUALITY = 80

# Shares of what all files have in common at which their pictures are from.
SHARES = (0.15, 0.5, 0.85)
_WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
# Moments of the best file that are tried.
_TRIED = 60


@dataclass(frozen=True, slots=True)
class AlignedPart(Result):
    """A part of the best file that another file shows, too.

    A moment ``t`` of the best file in ``[start, end]`` is at ``at + (t - start) * rate`` in the other one.

    Attributes:
        start, end: Seconds of the best file.
        at: Seconds of the other file at ``start``.
        rate: Seconds of the other file per second of the best one.
        mirrored: Whether the other one is flipped left to right.
        box: Part of the other one's picture that shows the best one, shares of its sides without black bars.
    """

    start: float
    end: float
    at: float
    rate: float = 1.0
    mirrored: bool = False
    box: Box = _WHOLE

    def time(self, moment: float) -> float:
        """Seconds of the other file at a moment of the best one."""
        return self.at + (moment - self.start) * self.rate


def align_group(group: DuplicateGroup) -> dict[str, tuple[AlignedPart, ...]]:
    """Path of each file -> the parts of the best one that it shows, in the order of time.

    A file that was compared with another than the best one is aligned by way of that one. Where two files are copies by
    the user's word only, there is one part: the whole, stretched to the length of the other.
    """
    members = {member.path: member for member in group.members}
    aligned: dict[str, tuple[AlignedPart, ...]] = {}
    for member in group.members:
        aligned[member.path] = _aligned(member, group.best, members, frozenset())
    return aligned


def matching_moments(group: DuplicateGroup, shares: Sequence[float] = SHARES) -> list[list[float | None]]:
    """For each file of a group, in its order, the seconds at which it shows the same as the others; None where it does
    not.

    The moments lie where most files have something in common, at these shares of that.
    """
    best, aligned = group.best, align_group(group)
    tried = [(position + 0.5) / _TRIED * best.duration for position in range(_TRIED)]
    shown = [sum(_at(parts, moment) is not None for parts in aligned.values()) for moment in tried]
    common = [moment for moment, count in zip(tried, shown, strict=True) if count == max(shown)]
    moments = [common[min(int(share * len(common)), len(common) - 1)] for share in shares]
    return [[_at(aligned[member.path], moment) for moment in moments] for member in group.members]


def _at(parts: Sequence[AlignedPart], moment: float) -> float | None:
    return next((part.time(moment) for part in parts if part.start <= moment <= part.end), None)


def _aligned(
    member: DuplicateMember, best: DuplicateMember, members: dict[str, DuplicateMember], seen: frozenset[str]
) -> tuple[AlignedPart, ...]:
    if member.path == best.path:
        return (AlignedPart(0.0, best.duration, 0.0),)
    if member.path in seen:
        return ()  # two that match each other, and neither the best one
    reference = members.get(member.compared_with or best.path, best)
    parts = _parts_of(member, reference)
    if reference.path == best.path:
        return parts
    between = _aligned(reference, best, members, seen | {member.path})
    joined = [_join(first, then) for first in between for then in parts]
    return tuple(sorted((part for part in joined if part is not None), key=lambda part: part.start))


def _parts_of(member: DuplicateMember, reference: DuplicateMember) -> tuple[AlignedPart, ...]:
    if not member.segments:
        rate = member.duration / reference.duration if reference.duration > 0 else 1.0
        return (AlignedPart(0.0, reference.duration, 0.0, rate, member.mirrored),)
    segments = sorted(member.segments, key=lambda segment: -segment.score)
    return tuple(map(_part, segments))


def _part(segment: Segment) -> AlignedPart:
    """The part of a segment whose query is the file, and whose target is the one it was compared with."""
    return AlignedPart(
        segment.target_start,
        segment.target_end,
        segment.query_start,
        1.0 / segment.speed,
        segment.mirrored,
        segment.query_box,
    )


def _join(first: AlignedPart, then: AlignedPart) -> AlignedPart | None:
    """What a file shows of the best one by way of a third; None if that is nothing."""
    low, high = sorted((first.time(first.start), first.time(first.end)))
    low, high = max(low, then.start), min(high, then.end)
    if low > high:
        return None
    start = first.start + (low - first.at) / first.rate
    end = first.start + (high - first.at) / first.rate
    mirrored = first.mirrored != then.mirrored
    return AlignedPart(start, end, then.time(low), first.rate * then.rate, mirrored, then.box)


def picture_strip(
    path: str,
    times: Iterable[float],
    *,
    short_side: int,
    turn: Callable[[NDArray[np.uint8]], NDArray[np.uint8]] | None = None,
) -> str:
    """HTML of the pictures of a video at these times, seconds, which stand in the page itself; why there are none, if
    the file cannot be read.

    Args:
        path: The video.
        times: One for each picture.
        short_side: Length of the shorter side, pixels.
        turn: What is done to each picture first.
    """
    from PIL import Image

    pictures = []
    for time in times:
        try:
            image = thumbnail(path, time, short_side=short_side)
        except MediaError as error:
            return f"<small>{html.escape(printable(error.cause))}</small>"
        held = io.BytesIO()
        Image.fromarray(image if turn is None else turn(image)).save(held, "JPEG", quality=_JPEG_QUALITY)
        data = base64.b64encode(held.getvalue()).decode("ascii")
        pictures.append(f'<img alt="at {clock(time)}" title="{clock(time)}" src="data:image/jpeg;base64,{data}">')
    return "".join(pictures)
