"""Video frames embedded in a page, and matching moments across the files in a group of copies."""

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

# Frames are shown at these fractions of the footage common to all files.
SHARES = (0.15, 0.5, 0.85)
_WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
# Number of moments in the best file to try.
_CANDIDATES = 60


@dataclass(frozen=True, slots=True)
class AlignedPart(Result):
    """A part of the best file that another file also contains.

    The time ``t`` in the best file, in ``[start, end]``, corresponds to ``at + (t - start) * rate`` in the other file.

    Attributes:
        start, end: Times in the best file in seconds.
        at: Time in the other file that corresponds to ``start``, in seconds.
        rate: Seconds in the other file per second in the best file; negative if the other file runs backwards.
        mirrored: Whether the other file is mirrored.
        box: Part of the other file's frame that shows the best file, as fractions of the frame's width and height.
    """

    start: float
    end: float
    at: float
    rate: float = 1.0
    mirrored: bool = False
    box: Box = _WHOLE

    def time(self, moment: float) -> float:
        """Convert a time in the best file to a time in the other file, in seconds."""
        return self.at + (moment - self.start) * self.rate


def align_group(group: DuplicateGroup) -> dict[str, tuple[AlignedPart, ...]]:
    """Map the path of each file to the parts of the best file that it contains, in order of time.

    A file that was compared with another file than the best one is aligned through that file. If two files are copies
    only by the user's decision, the single part is the whole video, stretched to the other file's duration.
    """
    members = {member.path: member for member in group.members}
    aligned: dict[str, tuple[AlignedPart, ...]] = {}
    for member in group.members:
        aligned[member.path] = _align(member, group.best, members, frozenset())
    return aligned


def matching_moments(group: DuplicateGroup, shares: Sequence[float] = SHARES) -> list[list[float | None]]:
    """Find the times in seconds at which the files in a group show the same moments; None where a file does not.

    Args:
        group: The group; the result has its order.
        shares: Positions of the moments, as fractions of the footage that most files have in common.
    """
    best, aligned = group.best, align_group(group)
    tried = [(position + 0.5) / _CANDIDATES * best.duration for position in range(_CANDIDATES)]
    shown = [sum(_at(parts, moment) is not None for parts in aligned.values()) for moment in tried]
    common = [moment for moment, count in zip(tried, shown, strict=True) if count == max(shown)]
    moments = [common[min(int(share * len(common)), len(common) - 1)] for share in shares]
    return [[_at(aligned[member.path], moment) for moment in moments] for member in group.members]


def _at(parts: Sequence[AlignedPart], moment: float) -> float | None:
    return next((part.time(moment) for part in parts if part.start <= moment <= part.end), None)


def _align(
    member: DuplicateMember, best: DuplicateMember, members: dict[str, DuplicateMember], seen: frozenset[str]
) -> tuple[AlignedPart, ...]:
    if member.path == best.path:
        return (AlignedPart(0.0, best.duration, 0.0),)
    if member.path in seen:
        return ()  # a cycle of files that match each other, but not the best one
    reference = members.get(member.compared_with or best.path, best)
    parts = _parts_of(member, reference)
    if reference.path == best.path:
        return parts
    between = _align(reference, best, members, seen | {member.path})
    joined = [_join(first, then) for first in between for then in parts]
    return tuple(sorted((part for part in joined if part is not None), key=lambda part: part.start))


def _parts_of(member: DuplicateMember, reference: DuplicateMember) -> tuple[AlignedPart, ...]:
    if not member.segments:
        rate = member.duration / reference.duration if reference.duration > 0 else 1.0
        return (AlignedPart(0.0, reference.duration, 0.0, rate, member.mirrored),)
    segments = sorted(member.segments, key=lambda segment: -segment.score)
    return tuple(map(_part, segments))


def _part(segment: Segment) -> AlignedPart:
    """Convert a segment whose query is the file and whose target is the file it was compared with."""
    return AlignedPart(
        segment.target_start,
        segment.target_end,
        segment.query_end if segment.backwards else segment.query_start,
        (-1.0 if segment.backwards else 1.0) / segment.speed,
        segment.mirrored,
        segment.query_box,
    )


def _join(first: AlignedPart, then: AlignedPart) -> AlignedPart | None:
    """Compose two alignments: best file to intermediate file, and intermediate file to file; None if disjoint."""
    low, high = sorted((first.time(first.start), first.time(first.end)))
    low, high = max(low, then.start), min(high, then.end)
    if low > high:
        return None
    start, end = sorted(first.start + (time - first.at) / first.rate for time in (low, high))
    mirrored = first.mirrored != then.mirrored
    return AlignedPart(start, end, then.time(first.time(start)), first.rate * then.rate, mirrored, then.box)


def frame_strip(
    path: str,
    times: Iterable[float],
    *,
    short_side: int,
    turn: Callable[[NDArray[np.uint8]], NDArray[np.uint8]] | None = None,
) -> str:
    """Return HTML with embedded frames of a video, or with the cause if the file cannot be read.

    Args:
        path: The video.
        times: Times of the frames in seconds.
        short_side: Shorter side of the frames in pixels.
        turn: Function applied to each frame before encoding.
    """
    from PIL import Image

    pictures = []
    for time in times:
        try:
            image = thumbnail(path, time, short_side=short_side)
        except MediaError as error:
            return f"<small>{html.escape(printable(error.cause))}</small>"
        buffer = io.BytesIO()
        Image.fromarray(image if turn is None else turn(image)).save(buffer, "JPEG", quality=_JPEG_QUALITY)
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        pictures.append(f'<img alt="at {clock(time)}" title="{clock(time)}" src="data:image/jpeg;base64,{data}">')
    return "".join(pictures)
