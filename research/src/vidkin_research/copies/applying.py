"""Make edited copies of videos; the segments that `apply_edit` returns are ground truth by construction."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain

from vidkin._base.files import PathLike
from vidkin._base.outputs import describe_source
from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media import probe, steady_frames, write_video
from vidkin.media.picture_edits import Image
from vidkin_research.copies.edits import EDITS, EditedSegment, TimeMap
from vidkin_research.copies.transforms import (
    EditSetting,
    fill_size,
)


@dataclass(frozen=True, slots=True)
class EditResult:
    """A finished copy.

    Attributes:
        path: Path of the copy.
        segments: Source segments with their positions in the copy, in the order of the copy.
        mirrored: Whether the copy is mirrored horizontally.
        time_map: Mapping between source and copy times in the first segment.
    """

    path: str
    segments: tuple[EditedSegment, ...]
    mirrored: bool
    time_map: TimeMap


# Maximum frame rate of a copy.
MAX_RATE = 30.0


def apply_edit(
    source: PathLike,
    target: PathLike,
    name: str,
    *,
    seed: int = 0,
    start: float | None = None,
    end: float | None = None,
    filler: PathLike | None = None,
    short_side: int | None = None,
    threads: int = 0,
    made_of: str | None = None,
) -> EditResult:
    """Make an edited copy of a video, frame by frame, so that memory use does not grow with its length.

    The copy has a constant frame rate, the source's average but at most 30 per second, and no sound.

    Args:
        source: The video.
        target: Where to write the copy, for example ``"copy.mp4"``.
        name: One of `EDITS`.
        seed: Random seed for positions, texts and noise.
        start: Start of the copied part in seconds; None for the start of the source.
        end: End of the copied part in seconds; None for the end of the source.
        filler: Unrelated footage for the edits that need it (``Edit.needs_filler``); looped if it is too short.
        short_side: First scale the source down so that its shorter side has this many pixels; None keeps its size.
        threads: Number of decoder and encoder threads; 0 lets FFmpeg choose.
        made_of: Description of the source; an existing file with the same description may be replaced, as in
            :func:`~vidkin.media.write_video`. None describes this edit of this source.

    Returns:
        The copy and the segments it shares with the source, exact to a frame.

    Raises:
        InvalidArgumentError: The edit is unknown, a required filler is missing, or the range is empty.
        MediaError: A video cannot be read, or the copy cannot be written.
    """
    edit = EDITS.get(name)
    if edit is None:
        raise InvalidArgumentError(f"unknown edit {name!r}; choose from {', '.join(EDITS)}")
    if edit.needs_filler and filler is None:
        raise InvalidArgumentError(f"the edit {name!r} needs unrelated footage; pass a video as filler")
    info = probe(source)
    first, last = start or 0.0, min(info.duration, info.duration if end is None else end)
    if first < 0 or (end is not None and end <= first):
        raise InvalidArgumentError(f"start and end must be 0 <= start < end, got {start} and {end}")
    if first >= info.duration:
        raise MediaError(source, f"start {first:.1f} s is beyond the end ({info.duration:.1f} s)")
    rate = Fraction(min(info.frame_rate, MAX_RATE)).limit_denominator(1001)
    plan = edit.plan(float(rate), first, last, seed)
    setting = EditSetting(
        rate=float(rate),
        count=plan.count,
        seed=seed,
        lead=plan.lead,
        trail=plan.trail,
        filler=None if filler is None else partial(endless_frames, filler, float(rate), threads),
    )
    step = edit.speed / float(rate)
    frames = chain.from_iterable(
        steady_frames(source, stretch.time_map.source_start, step, stretch.count, short_side, threads)
        for stretch in plan.stretches
    )
    image = next(frames, None)
    if image is None:
        raise MediaError(source, f"no frame between {first:.1f} s and {last:.1f} s")
    boxes = edit.boxes((image.shape[1], image.shape[0]), setting)
    write_video(
        target,
        edit.transform(chain([image], frames), setting),
        rate=rate,
        crf=edit.crf,
        threads=threads,
        made_of=made_of or describe_source(f"copy by {name}", source),
    )
    return EditResult(
        path=os.fspath(target),
        segments=plan.segments(*boxes),
        mirrored=edit.mirrored,
        time_map=plan.stretches[0].time_map,
    )


def endless_frames(path: PathLike, rate: float, threads: int, width: int, height: int) -> Iterator[Image]:
    """Yield frames of a video at this rate, cropped to fill this size, in an endless loop."""
    count = max(1, round(probe(path).duration * rate))
    while True:
        for image in steady_frames(path, 0.0, 1 / rate, count, None, threads):
            yield fill_size(image, width, height)
