"""Labels of shots and critical parts: the JSON format, and conversion of detections to labels."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from vidkin._base.arguments import check_arguments, check_constructor
from vidkin._base.files import PathLike
from vidkin._base.outputs import describe_source, open_output
from vidkin._base.values import read_json
from vidkin.errors import InvalidArgumentError
from vidkin.media.frames import first_at
from vidkin.shots.contract import ShotDetection

_FORMAT = "vidkin-shots-1"


@check_arguments
def check_shot(start: int, end: int, critical: tuple[int, int] | None) -> None:
    """Raise InvalidArgumentError unless [start, end) is a valid frame range that contains the critical frames."""
    if not 0 <= start < end:
        raise InvalidArgumentError(f"a shot must have 0 <= start < end, got [{start}, {end})")
    if critical is not None and not start <= critical[0] < critical[1] <= end:
        raise InvalidArgumentError(
            f"critical frames must be inside their shot [{start}, {end}), got [{critical[0]}, {critical[1]})"
        )


@dataclass(frozen=True, slots=True)
class ShotAnnotation:
    """A labeled shot, in frames numbered from 0 in presentation order.

    Attributes:
        start: First frame.
        end: First frame after the shot.
        critical: Critical frames [start, end) inside the shot; None if there are none.
    """

    start: int
    end: int
    critical: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        check_shot(self.start, self.end, self.critical)


@check_constructor
@dataclass(frozen=True, slots=True)
class VideoAnnotation:
    """The labeled shots of a video.

    Frames between two shots belong to a gradual transition; there is a hard cut between adjacent shots.

    Attributes:
        video: The file.
        fps: Frames per second, only used to compute times; labels are defined by frame numbers.
        shots: Non-overlapping shots in order of time.
    """

    video: Path
    fps: float
    shots: tuple[ShotAnnotation, ...]

    def __post_init__(self) -> None:
        if not (self.fps > 0 and math.isfinite(self.fps)):
            raise InvalidArgumentError(f"fps must be above 0, got {self.fps} for {self.video}")
        for before, after in pairwise(self.shots):
            if after.start < before.end:
                raise InvalidArgumentError(
                    f"shots of {self.video} must be in order and not overlap, got [{before.start}, {before.end}) and "
                    f"[{after.start}, {after.end})"
                )

    @property
    def cuts(self) -> tuple[int | tuple[int, int], ...]:
        """Boundaries in the form of `metric.measures.boundary_scores`: the first frame of the new shot, or the
        (first, last) frames of a gradual transition."""
        return tuple(
            after.start if after.start == before.end else (before.end, after.start - 1)
            for before, after in pairwise(self.shots)
        )


@check_arguments
def write_shot_annotations(
    path: PathLike, annotations: Sequence[VideoAnnotation], *, source: str | None = None
) -> None:
    """Write labels as JSON. Paths of videos in the same folder or below are relative to the file.

    Format: ``{"format": "vidkin-shots-1", "videos": [{"video": "a.mp4", "fps": 25.0, "shots": [{"start": 0,
    "end": 90, "critical": [60, 90]}, {"start": 90, "end": 200, "critical": null}]}]}``, where intervals are
    [start, end) in frames.

    Raises:
        MediaError: The file cannot be written, or already contains labels of other videos.
    """
    target = Path(path)
    folder = target.absolute().parent
    document = {
        "format": _FORMAT,
        "videos": [
            {
                "video": (video.relative_to(folder) if video.is_relative_to(folder) else video).as_posix(),
                "fps": annotation.fps,
                "shots": [
                    {
                        "start": shot.start,
                        "end": shot.end,
                        "critical": None if shot.critical is None else list(shot.critical),
                    }
                    for shot in annotation.shots
                ],
            }
            for annotation in annotations
            for video in (annotation.video.absolute(),)
        ],
    }
    made_of = source or describe_source("labels", *(annotation.video for annotation in annotations))
    with open_output(target, source=made_of) as partial:
        partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


@check_arguments
def read_shot_annotations(path: PathLike) -> list[VideoAnnotation]:
    """Read labels written by `write_shot_annotations` or by hand.

    Relative video paths are relative to the file. The file may also contain a single video: an object with ``video``,
    ``fps`` and ``shots``.

    Raises:
        InvalidArgumentError: The file cannot be read, is not JSON in this format, or has inconsistent labels; the
            message names the video and the shot.
    """
    source = Path(path)
    document = read_json_object(source)
    videos = [document] if "shots" in document else document.get("videos")
    if not isinstance(videos, list) or document.get("format", _FORMAT) != _FORMAT:
        raise InvalidArgumentError(
            f"{source}: must contain an object with 'format': {_FORMAT!r} and 'videos', got the keys {sorted(document)}"
        )
    return [_video(item, number, source) for number, item in enumerate(videos)]


def read_json_object(path: Path) -> dict[str, Any]:
    """Read a JSON file that contains an object.

    Raises:
        InvalidArgumentError: The file cannot be read or does not contain a JSON object.
    """
    try:
        document = read_json(path)
    except OSError as error:
        raise InvalidArgumentError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InvalidArgumentError(f"{path}: is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidArgumentError(f"{path}: must contain a JSON object, got a {type(document).__name__}")
    return document


def _video(item: Any, number: int, source: Path) -> VideoAnnotation:
    try:
        shots = tuple(_shot(shot) for shot in item["shots"])
        if not isinstance(item["video"], str) or not item["video"]:
            raise InvalidArgumentError(f"'video' must be a file name, got {item['video']!r}")
        return VideoAnnotation(source.parent / item["video"], float(item["fps"]), shots)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{source}, video {number}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidArgumentError(
            f"{source}, video {number}: expected 'video', 'fps' and 'shots' with 'start', 'end' and 'critical' "
            f"([start, end) or null); {type(error).__name__}: {error}"
        ) from None


def _shot(entry: Mapping[str, Any]) -> ShotAnnotation:
    # Reject unknown keys, because a misspelled "critical" would silently make a shot not critical.
    unknown = sorted(set(entry) - {"start", "end", "critical"})
    if unknown:
        raise InvalidArgumentError(f"a shot may only have 'start', 'end' and 'critical', got {unknown[0]!r}")
    critical = entry.get("critical")
    part = None
    if critical is not None:
        start, end = critical
        part = (_frame(start), _frame(end))
    return ShotAnnotation(_frame(entry["start"]), _frame(entry["end"]), part)


def _frame(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise InvalidArgumentError(f"frames must be whole numbers, got {value!r}")
    return int(value)


@check_arguments
def annotate_shots(detection: ShotDetection) -> VideoAnnotation:
    """Convert a detection to labels, for correction or comparison.

    Frames of a gradual transition belong to no shot, except for a fade at the start or end of the video. Critical
    frames are those marked by a person; without marks, a shot that the detector reports as critical is critical as a
    whole.
    """
    times = np.asarray(detection.frame_times)
    shots: list[ShotAnnotation] = []
    spans = [[shot.start_frame, shot.end_frame] for shot in detection.shots]
    for position, shot in enumerate(detection.shots[1:], start=1):
        first, last = (int(first_at(times, time)) for time in (shot.transition_start, shot.transition_end))
        is_adjacent = spans[position - 1][1] == spans[position][0]
        if last > first and is_adjacent:
            # Each shot keeps at least one frame.
            spans[position - 1][1] = max(first, spans[position - 1][0] + 1)
            spans[position][0] = min(last + 1, spans[position][1] - 1)
    for shot, (start, end) in zip(detection.shots, spans, strict=True):
        marked = [(max(first, start), min(last, end)) for first, last in detection.critical]
        inside = [(first, last) for first, last in marked if first < last]
        whole = (start, end) if shot.is_critical and not detection.critical else None
        longest = max(inside, key=lambda part: part[1] - part[0], default=whole)
        shots.append(ShotAnnotation(start, end, longest))
    return VideoAnnotation(Path(detection.path), float(detection.clock().rate), tuple(shots))


class LabelTable:
    """Collects the labels of several videos into one file."""

    def __init__(self) -> None:
        self._annotations: list[VideoAnnotation] = []

    def __len__(self) -> int:
        """Number of videos added."""
        return len(self._annotations)

    def add(self, detection: ShotDetection) -> None:
        """Add the shots of a video."""
        self._annotations.append(annotate_shots(detection))

    def write(self, path: PathLike, *, source: str) -> None:
        """Write the labels; ``source`` describes the videos, see :func:`vidkin._base.outputs.describe_source`.

        Raises:
            MediaError: The file cannot be written, or already contains labels of other videos.
        """
        write_shot_annotations(path, self._annotations, source=source)


@check_arguments
def is_shot_labels(path: PathLike) -> bool:
    """Whether a file contains shot labels."""
    try:
        document = read_json(path)
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and (document.get("format") == _FORMAT or "shots" in document)
