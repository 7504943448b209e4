"""Make an edited copy of a video, with the exact times and places of the copied material.

Benchmarks, the demo and tests use it: the segments that `apply_edit` returns are ground truth by construction.
"""

from __future__ import annotations

import os
from fractions import Fraction
from functools import partial
from itertools import chain

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.media.editing.edits import EditResult
from vidkin.media.editing.named_edits import EDITS
from vidkin.media.editing.picture_edits import EditSetting
from vidkin.media.editing.steady_frames import endless_frames, steady_frames
from vidkin.media.encode import write_video
from vidkin.media.probe import probe

__all__ = ["apply_edit"]

# Copies have at most this many frames per second.
HIGHEST_RATE = 30.0


def apply_edit(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    name: str,
    *,
    seed: int = 0,
    start: float | None = None,
    end: float | None = None,
    filler: str | os.PathLike[str] | None = None,
    short_side: int | None = None,
    threads: int = 0,
) -> EditResult:
    """Make an edited copy of a video, frame by frame, so that memory does not grow with its length.

    The copy has the source's average frame rate, at most 30 per second, evenly spaced, and no sound.

    Args:
        source: The video.
        target: Where to write the copy, for example ``"copy.mp4"``.
        name: One of `EDITS`.
        seed: Seed of places, texts and noise.
        start: Start of the copied part in seconds; None is the start of the source.
        end: End of the copied part in seconds; None is the end of the source.
        filler: Unrelated footage for the edits that need it (``Edit.needs_filler``); repeated if it is too short.
        short_side: Scale the source down to this many pixels at the shorter side first; None keeps its size.
        threads: Threads of the decoder and the encoder; 0 lets them choose.

    Returns:
        The times that source and copy share, exact to a frame.

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
    rate = Fraction(min(info.frame_rate, HIGHEST_RATE)).limit_denominator(1001)
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
        raise MediaError(source, f"there is no frame between {first:.1f} s and {last:.1f} s")
    boxes = edit.boxes((image.shape[1], image.shape[0]), setting)
    write_video(
        target, edit.transform(chain([image], frames), setting), rate=rate, crf=edit.crf, threads=threads
    )
    return EditResult(
        path=os.fspath(target),
        segments=plan.segments(*boxes),
        mirrored=edit.mirrored,
        time_map=plan.stretches[0].time_map,
    )
