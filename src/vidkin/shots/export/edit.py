"""Shots for editing systems and players: edit decision lists and chapters."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vidkin._base.outputs import open_output
from vidkin.shots.export.timecode import frame_at, require_drop_frame, timecode, timeline_rate

if TYPE_CHECKING:
    from vidkin.shots.shot import ShotDetection

__all__ = ["write_chapters", "write_edl"]

PathLike = str | os.PathLike[str]


def write_edl(
    detection: ShotDetection, path: PathLike, *, rate: Fraction | None = None, drop_frame: bool = False
) -> None:
    """Write the shots as a CMX 3600 edit decision list: one cut event per shot, from one source reel ``AX``.

    Positions are wall-clock times rounded to the frames of the timeline, so what an editing system shows lies within
    half a frame of the shot. Gradual transitions are already in the footage, so they become comments, not dissolves.
    Events have the numbers of their shots; shots without a frame at the timeline's rate are omitted.

    Args:
        detection: The shots.
        path: Where to write.
        rate: Frames per second of the timeline; None uses the video's `timeline_rate`.
        drop_frame: Write drop-frame time code (29.97 and 59.94 only). The default, non-drop, counts frames and is
            read correctly by every system; choose drop-frame if your sequence uses it.

    Raises:
        InvalidArgumentError: Drop-frame time code does not exist at this rate.
        MediaError: The file cannot be written.
    """
    rate = rate or timeline_rate(np.asarray(detection.frame_times))
    if drop_frame:
        require_drop_frame(rate)
    source = _one_line(Path(detection.path).name)
    lines = [f"TITLE: {_one_line(Path(detection.path).stem)}"]
    lines += [f"FCM: {'DROP FRAME' if drop_frame else 'NON-DROP FRAME'}", ""]
    record = 0
    for number, shot in enumerate(detection.shots, start=1):
        first, last = frame_at(shot.start, rate), frame_at(shot.end, rate)
        if last <= first:
            continue
        places = (first, last, record, record + last - first)
        codes = " ".join(timecode(place, rate, drop_frame=drop_frame) for place in places)
        lines += [f"{number:03d}  AX       V     C        {codes}", f"* FROM CLIP NAME: {source}"]
        if shot.kind != "start":
            lines.append(f"* VIDKIN: {shot.kind} transition, confidence {shot.confidence:.2f}")
        if shot.critical is not None:
            lines.append(f"* VIDKIN: critical {shot.critical:.2f}")
        record += last - first
    _write_text(path, "\n".join([*lines, ""]))


def write_chapters(detection: ShotDetection, path: PathLike) -> None:
    """Write the shots as chapters in FFmpeg's metadata format, times in milliseconds.

    ``ffmpeg -i film.mp4 -i chapters.txt -map_metadata 1 -map_chapters 1 -codec copy out.mp4`` puts them into a file.

    Raises:
        MediaError: The file cannot be written.
    """
    lines = [";FFMETADATA1", f"title={_escaped(Path(detection.path).stem)}"]
    for number, shot in enumerate(detection.shots, start=1):
        critical = " (critical)" if shot.is_critical else ""
        lines += [
            "[CHAPTER]",
            "TIMEBASE=1/1000",
            f"START={round(shot.start * 1000)}",
            f"END={round(shot.end * 1000)}",
            f"title={_escaped(f'Shot {number}{critical}')}",
        ]
    _write_text(path, "\n".join([*lines, ""]))


def _one_line(text: str) -> str:
    """A name without line breaks and other control characters, which would start another statement."""
    return "".join(char if char.isprintable() or "\ud800" <= char <= "\udfff" else "_" for char in text)


def _escaped(text: str) -> str:
    """The text with a backslash before characters that are special in FFmpeg's metadata format."""
    return "".join(f"\\{char}" if char in "=;#\\\n" else char for char in text)


def _write_text(path: PathLike, text: str) -> None:
    with open_output(path) as partial:
        partial.write_bytes(text.encode("utf-8", "surrogateescape"))
