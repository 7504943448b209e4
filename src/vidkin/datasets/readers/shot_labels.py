"""Labels of shots and of critical moments: vidkin's JSON format, and SoccerNet-v2 labels read into it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from vidkin._base.atomic import write_text
from vidkin._base.checks import check_choice
from vidkin.errors import InvalidArgumentError

__all__ = [
    "SOCCERNET_EVENTS",
    "ShotAnnotation",
    "VideoAnnotation",
    "read_shot_annotations",
    "read_soccernet",
    "write_shot_annotations",
]

PathLike = str | os.PathLike[str]

SOCCERNET_EVENTS = ("Goal", "Penalty", "Shots off target", "Shots on target")
"""SoccerNet-v2 actions in which the ball is hit toward the goal: the sources' notion of a critical event."""

_SOCCERNET_ACTIONS = (
    *SOCCERNET_EVENTS,
    *(
        "Ball out of play",
        "Clearance",
        "Corner",
        "Direct free-kick",
        "Foul",
        "Indirect free-kick",
        "Kick-off",
    ),
    *("Offside", "Red card", "Substitution", "Throw-in", "Yellow card", "Yellow->red card"),
)

_FORMAT = "vidkin-shots-1"


@dataclass(frozen=True, slots=True)
class ShotAnnotation:
    """One labeled shot, in frames from 0 in the order of presentation.

    Attributes:
        start: First frame.
        end: One past the last frame.
        critical: [start, end) of the critical frames, inside the shot; None if there are none.
    """

    start: int
    end: int
    critical: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise InvalidArgumentError(f"a shot must have 0 <= start < end, got [{self.start}, {self.end})")
        if self.critical is not None and not self.start <= self.critical[0] < self.critical[1] <= self.end:
            raise InvalidArgumentError(
                f"critical frames must be inside their shot [{self.start}, {self.end}), "
                f"got [{self.critical[0]}, {self.critical[1]})"
            )


@dataclass(frozen=True, slots=True)
class VideoAnnotation:
    """The labeled shots of one video.

    Frames between two shots belong to a gradual transition; shots that touch have a hard cut between them.

    Attributes:
        video: The file.
        fps: Frames a second, for times; frame numbers are what counts.
        shots: In order of time, without overlap.
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
        """Boundaries as `metric.measures.boundary_scores` takes them: the first frame of the new shot, or the
        (first, last) frame of a gradual transition."""
        return tuple(
            after.start if after.start == before.end else (before.end, after.start - 1)
            for before, after in pairwise(self.shots)
        )


def write_shot_annotations(path: PathLike, annotations: Sequence[VideoAnnotation]) -> None:
    """Write labels as JSON. Videos in the same folder or below are named relative to the file.

    The format: ``{"format": "vidkin-shots-1", "videos": [{"video": "a.mp4", "fps": 25.0, "shots": [{"start": 0,
    "end": 90, "critical": [60, 90]}, {"start": 90, "end": 200, "critical": null}]}]}``; every interval is
    [start, end) in frames.
    """
    target = Path(path)
    folder = target.absolute().parent
    document = {
        "format": _FORMAT,
        "videos": [
            {
                "video": _relative(annotation.video, folder),
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
        ],
    }
    write_text(target, json.dumps(document, indent=1) + "\n")


def read_shot_annotations(path: PathLike) -> list[VideoAnnotation]:
    """Read labels that `write_shot_annotations` or a person wrote.

    A relative name of a video is relative to the file. The file may also hold a single video: an object with
    ``video``, ``fps`` and ``shots``.

    Raises:
        InvalidArgumentError: The file cannot be read, is not such JSON, or its labels contradict each other; the
            message names the video and the shot.
    """
    source = Path(path)
    document = _load(source)
    videos = [document] if "shots" in document else document.get("videos")
    if not isinstance(videos, list) or document.get("format", _FORMAT) != _FORMAT:
        raise InvalidArgumentError(
            f"{source}: must hold an object with 'format': {_FORMAT!r} and 'videos', got the keys {sorted(document)}"
        )
    return [_video(item, number, source) for number, item in enumerate(videos)]


def read_soccernet(
    labels: PathLike,
    video: PathLike,
    *,
    fps: float,
    frames: int,
    half: int = 1,
    cameras: PathLike | None = None,
    shots: Sequence[tuple[int, int]] | None = None,
    events: Sequence[str] = SOCCERNET_EVENTS,
    before: float | None = None,
) -> VideoAnnotation:
    """Labels of one half of a game from SoccerNet-v2's ``Labels-v2.json``.

    An event makes the shot that contains it critical; the frames of that shot before the event, up to and with the
    frame of the event, are critical. Events that the broadcast does not show are left out.

    Args:
        labels: ``Labels-v2.json`` of the game.
        video: The video of this half.
        fps: Its frames a second.
        frames: How many frames it has.
        half: 1 or 2: which half the video shows.
        cameras: ``Labels-cameras.json`` of the same game, whose camera changes are the cuts. Not every game has
            complete ones, so shots can be given instead.
        shots: [start, end) frames of the shots, for example from a detector. Exactly one of both is needed.
        events: Labels of the actions that count, of the 17 that SoccerNet-v2 has.
        before: Seconds before the event that are critical at most; default all of the shot up to the event. Set
            it (the windows of the sources last 2 s) to draw quadlets, which also need non-critical frames.

    Raises:
        InvalidArgumentError: A file is not as SoccerNet writes it, or an argument is out of range.
    """
    check_choice("half", half, (1, 2))
    if (cameras is None) == (shots is None):
        raise InvalidArgumentError("either cameras (Labels-cameras.json) or shots must be given, not both")
    if not 0 < fps < math.inf or frames < 1:
        raise InvalidArgumentError(f"fps and frames must be above 0, got {fps} and {frames}")
    if before is not None and not 0 < before < math.inf:
        raise InvalidArgumentError(f"before must be above 0 s, or None, got {before}")
    unknown = [event for event in events if event not in _SOCCERNET_ACTIONS]
    if unknown:
        raise InvalidArgumentError(
            f"events must be among {', '.join(sorted(_SOCCERNET_ACTIONS))}, got {unknown[0]!r}"
        )
    if cameras is not None:
        changes = {round(time * fps) for time, _ in _soccernet_moments(Path(cameras), half)}
        edges = [0, *sorted(frame for frame in changes if 0 < frame < frames), frames]
        shots = list(pairwise(edges))
    assert shots is not None
    behind = [(start, end) for start, end in shots if end > frames]
    if behind:
        raise InvalidArgumentError(
            f"shots must be within the {frames} frames of the video, got [{behind[0][0]}, {behind[0][1]})"
        )
    moments = sorted(
        int(time * fps + 1e-6)
        for time, item in _soccernet_moments(Path(labels), half)
        if item.get("label") in events and item.get("visibility", "visible") == "visible"
    )
    annotations = tuple(
        ShotAnnotation(start, end, _critical_part(start, end, moments, fps, before)) for start, end in shots
    )
    return VideoAnnotation(Path(video), fps, annotations)


def _critical_part(
    start: int, end: int, moments: Sequence[int], fps: float, before: float | None
) -> tuple[int, int] | None:
    """Frames up to the last event of the shot [start, end)."""
    inside = [moment for moment in moments if start <= moment < end]
    if not inside:
        return None
    # With several events in one shot (a shot, then the goal) all frames up to the last are critical.
    first = start if before is None else max(start, min(inside) + 1 - round(before * fps))
    return first, inside[-1] + 1


def _soccernet_moments(path: Path, half: int) -> list[tuple[float, Mapping[str, Any]]]:
    """(seconds from the start of the half, annotation) of this half."""
    items = _load(path).get("annotations")
    if not isinstance(items, list):
        raise InvalidArgumentError(
            f"{path}: has no list 'annotations', so it is not a label file of SoccerNet-v2"
        )
    found = []
    for item in items:
        try:
            clock = str(item["gameTime"]).split(" - ")
            number = int(clock[0])
            # `position` is in milliseconds and finer than the clock of the game; some files lack it.
            minutes, seconds = clock[1].split(":")
            time = int(item["position"]) / 1000 if "position" in item else int(minutes) * 60 + int(seconds)
        except (KeyError, ValueError, IndexError, TypeError, AttributeError, OverflowError):
            raise InvalidArgumentError(
                f"{path}: the annotation {item!r} has no 'gameTime' as '1 - 12:34' (half - minutes:seconds) "
                "with a 'position' in milliseconds"
            ) from None
        if number == half:
            found.append((float(time), item))
    return found


def _load(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgumentError(f"{path}: cannot be read, {error.strerror}") from error
    except ValueError as error:
        raise InvalidArgumentError(f"{path}: is not JSON, {error}") from error
    if not isinstance(document, dict):
        raise InvalidArgumentError(f"{path}: must hold a JSON object, got a {type(document).__name__}")
    return document


def _video(item: Any, number: int, source: Path) -> VideoAnnotation:
    try:
        shots = tuple(_shot(shot) for shot in item["shots"])
        if not isinstance(item["video"], str) or not item["video"]:
            raise InvalidArgumentError(f"'video' must be the name of a file, got {item['video']!r}")
        return VideoAnnotation(source.parent / item["video"], float(item["fps"]), shots)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{source}, video {number}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidArgumentError(
            f"{source}, video {number}: expected 'video', 'fps' and 'shots' with 'start', 'end' and 'critical' "
            f"([start, end) or null); {type(error).__name__}: {error}"
        ) from None


def _shot(entry: Mapping[str, Any]) -> ShotAnnotation:
    # A misspelled "critical" would silently make every shot uncritical.
    unknown = sorted(set(entry) - {"start", "end", "critical"})
    if unknown:
        raise InvalidArgumentError(f"a shot must have 'start', 'end' and 'critical' only, got {unknown[0]!r}")
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


def _relative(video: Path, folder: Path) -> str:
    absolute = video.absolute()
    inside = absolute.is_relative_to(folder)
    return (absolute.relative_to(folder) if inside else absolute).as_posix()
