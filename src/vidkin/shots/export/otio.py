"""Shots as an OpenTimelineIO timeline."""

from __future__ import annotations

import importlib
import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vidkin._base.outputs import open_output
from vidkin.errors import MissingPartError
from vidkin.shots.export.timecode import frame_at, timeline_rate

if TYPE_CHECKING:
    from vidkin.shots.shot import ShotDetection

__all__ = ["import_otio", "write_otio"]


def write_otio(
    detection: ShotDetection, path: str | os.PathLike[str], *, rate: Fraction | None = None
) -> None:
    """Write the shots as clips of one video track, all of them parts of one file.

    Each clip holds its range in the source, and under the metadata key ``vidkin`` the kind and the confidence of the
    transition that opens it, the exact times in seconds and, if judged, how critical it is; critical clips also have a
    red marker. Positions are wall-clock times rounded to the frames of the timeline; shots without a frame at its
    rate are omitted.

    Args:
        detection: The shots.
        path: Where to write; readers expect ``.otio``.
        rate: Frames per second of the timeline; None uses the video's `timeline_rate`.

    Raises:
        MissingPartError: opentimelineio is not installed.
        MediaError: The file cannot be written.
    """
    otio = import_otio()
    rate = rate or timeline_rate(np.asarray(detection.frame_times))

    def span(first: int, last: int) -> Any:
        time = otio.opentime.RationalTime
        return otio.opentime.TimeRange(time(first, float(rate)), time(last - first, float(rate)))

    name = _text(Path(detection.path).name)
    address = Path(detection.path).absolute().as_uri()
    whole = span(0, max((frame_at(shot.end, rate) for shot in detection.shots), default=0))
    timeline = otio.schema.Timeline(name=_text(Path(detection.path).stem))
    track = otio.schema.Track(name="shots", kind=otio.schema.TrackKind.Video)
    timeline.tracks.append(track)
    for number, shot in enumerate(detection.shots, start=1):
        first, last = frame_at(shot.start, rate), frame_at(shot.end, rate)
        if last <= first:
            continue
        facts: dict[str, Any] = {
            "shot": number,
            "start": shot.start,
            "end": shot.end,
            "kind": shot.kind,
            "confidence": shot.confidence,
        }
        clip = otio.schema.Clip(
            name=f"{name} {number}",
            media_reference=otio.schema.ExternalReference(target_url=address, available_range=whole),
            source_range=span(first, last),
        )
        if shot.critical is not None:
            facts["critical"] = shot.critical
            if shot.is_critical:
                red = otio.schema.MarkerColor.RED
                clip.markers.append(otio.schema.Marker("critical", span(first, last), color=red))
        clip.metadata["vidkin"] = facts
        track.append(clip)
    with open_output(path) as partial:
        partial.write_text(timeline.to_json_string(indent=2) + "\n", encoding="utf-8")


def import_otio() -> Any:
    """The module opentimelineio, or `MissingPartError` with the command that installs it."""
    try:
        return importlib.import_module("opentimelineio")
    except ImportError as error:
        raise MissingPartError(
            "OpenTimelineIO files need the package opentimelineio, which is not installed; "
            "install it with: pip install 'vidkin[otio]'"
        ) from error


def _text(name: str) -> str:
    """A file name as Unicode; invalid bytes become question marks."""
    return os.fsencode(name).decode("utf-8", "replace")
