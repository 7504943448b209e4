"""Shots and curves as tables: CSV, and plain values for JSON."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

import numpy as np

from vidkin._base.outputs import open_output
from vidkin._base.plain_values import replace_controls
from vidkin.shots.export.timecode import frame_at, timecode, timeline_rate

if TYPE_CHECKING:
    from vidkin.shots.shot import ShotDetection

__all__ = ["ShotTable", "write_shots_csv", "write_stats_csv"]

PathLike = str | os.PathLike[str]

_CSV_COLUMNS = (
    "file",
    "shot",
    "start",
    "end",
    "start_frame",
    "end_frame",
    "start_timecode",
    "end_timecode",
    "kind",
    "confidence",
    "transition_start",
    "transition_end",
    "critical",
)


def write_shots_csv(detections: Sequence[ShotDetection], path: PathLike) -> None:
    """Write the shots of one or more videos as CSV (UTF-8), one line per shot.

    Columns: file, shot (from 1), start and end in seconds, start_frame, end_frame (the first frame after the shot),
    start_timecode and end_timecode (non-drop), kind and confidence of the transition that opens the shot,
    transition_start and transition_end in seconds if it is gradual, critical (empty if not judged).

    Raises:
        MediaError: The file cannot be written.
    """
    table = ShotTable()
    for detection in detections:
        table.add(detection)
    table.write(path)


class ShotTable:
    """The lines of `write_shots_csv`, gathered video by video without keeping detections in memory."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []
        self._videos = 0

    def __len__(self) -> int:
        """Number of videos added."""
        return self._videos

    def add(self, detection: ShotDetection) -> None:
        """Add the shots of a video."""
        self._videos += 1
        rate = timeline_rate(np.asarray(detection.frame_times))
        opening = {cut.frame: cut for cut in detection.cuts if cut.is_gradual}
        for number, shot in enumerate(detection.shots, start=1):
            cut = opening.get(shot.start_frame)
            self._rows.append(
                [
                    replace_controls(detection.path),
                    str(number),
                    _seconds(shot.start),
                    _seconds(shot.end),
                    str(shot.start_frame),
                    str(shot.end_frame),
                    timecode(frame_at(shot.start, rate), rate),
                    timecode(frame_at(shot.end, rate), rate),
                    shot.kind,
                    _score(shot.confidence),
                    "" if cut is None else _seconds(cut.start),
                    "" if cut is None else _seconds(cut.end),
                    _score(shot.critical),
                ]
            )

    def write(self, path: PathLike) -> None:
        """Write the table.

        Raises:
            MediaError: The file cannot be written.
        """
        with (
            open_output(path) as partial,
            partial.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file,
        ):
            self.write_to(file)

    def write_to(self, file: IO[str]) -> None:
        """Write the table to an open file, such as standard output."""
        csv.writer(file).writerows(self.lines())

    def lines(self) -> Iterator[Sequence[str]]:
        """The headings, and the cells of each shot."""
        yield _CSV_COLUMNS
        yield from self._rows


def write_stats_csv(detection: ShotDetection, path: PathLike) -> None:
    """Write the detector's curve as CSV, one line per frame.

    Columns: frame, time in seconds, the curve under its own name (empty without a value), cut (the confidence, at the
    first frame of a new shot) and transition (the confidence, at all frames of a gradual transition).

    Raises:
        MediaError: The file cannot be written.
    """
    times = np.asarray(detection.frame_times, dtype=np.float64)
    values = [""] * len(times)
    name = "curve"
    if detection.curve is not None:
        name = detection.curve.name
        places = np.searchsorted(times, np.asarray(detection.curve.times) - 1e-6)
        for place, value in zip(places.tolist(), detection.curve.values.tolist(), strict=True):
            if place < len(values) and math.isfinite(value):
                values[place] = f"{value:.6g}"
    cuts = {cut.frame: _score(cut.confidence) for cut in detection.cuts}
    inside = {
        frame: _score(cut.confidence)
        for cut in detection.cuts
        if cut.is_gradual
        for frame in range(cut.start_frame, cut.end_frame + 1)
    }
    with open_output(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["frame", "time", name, "cut", "transition"])
        for frame, time in enumerate(times.tolist()):
            rows.writerow([frame, _seconds(time), values[frame], cuts.get(frame, ""), inside.get(frame, "")])


def _seconds(time: float) -> str:
    return f"{time:.6f}"


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
