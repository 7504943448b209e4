"""Pieces of a video, one per shot."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from vidkin.media import SplitReport, split_exactly, split_video
from vidkin.shots.export.names import NameTemplate

if TYPE_CHECKING:
    from vidkin.shots.shot import ShotDetection

__all__ = ["copy_shots", "split_shots"]

PathLike = str | os.PathLike[str]


def split_shots(
    detection: ShotDetection,
    folder: PathLike,
    *,
    quality: int = 18,
    template: NameTemplate | None = None,
    on_progress: Callable[[float, float | None], None] | None = None,
) -> SplitReport:
    """Write every shot as a file with exactly its frames; see `vidkin.media.split_exactly`.

    ``parts`` of the pieces are indices of ``detection.shots``. Without shots there are no pieces.
    """
    if not detection.shots:
        return SplitReport((), ())
    return split_exactly(
        detection.path,
        folder,
        detection.shots,
        times=detection.frame_times,
        names=_names(detection, template),
        quality=quality,
        on_progress=on_progress,
    )


def copy_shots(
    detection: ShotDetection, folder: PathLike, *, template: NameTemplate | None = None
) -> SplitReport:
    """Split the video before its shots without encoding, see `vidkin.media.split_video`.

    A piece begins at a key frame, at or before its shot, and has the number of the first shot in it. ``parts`` of the
    pieces are indices of ``detection.shots``. Frames between shots that are not adjacent are left out as far as key
    frames allow.
    """
    if not detection.shots:
        return SplitReport((), ())
    # A part that is not a shot has no name.
    starts: list[float] = [] if detection.shots[0].start <= 0 else [0.0]
    names: list[str | None] = [None] * len(starts)
    shots = [-1] * len(starts)
    for place, (shot, name) in enumerate(zip(detection.shots, _names(detection, template), strict=True)):
        if place and detection.shots[place - 1].end_frame < shot.start_frame:
            starts.append(detection.shots[place - 1].end)
            names.append(None)
            shots.append(-1)
        starts.append(shot.start)
        names.append(name)
        shots.append(place)
    report = split_video(detection.path, folder, [*starts, detection.shots[-1].end], names=[*names, None])
    shots.append(-1)
    pieces = tuple(
        replace(piece, parts=tuple(shots[part] for part in piece.parts if shots[part] >= 0))
        for piece in report.pieces
    )
    return replace(report, pieces=pieces)


def _names(detection: ShotDetection, template: NameTemplate | None) -> list[str]:
    names = template or NameTemplate()
    return [names.format(detection, number) for number in range(1, len(detection.shots) + 1)]
