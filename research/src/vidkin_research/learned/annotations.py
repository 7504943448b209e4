"""Labels of shots and critical moments, and vidkin's JSON format for them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from vidkin._base.files import PathLike
from vidkin._base.outputs import describe_source, open_output
from vidkin._base.values import check_shot, read_json
from vidkin.errors import InvalidArgumentError

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
        check_shot(self.start, self.end, self.critical)


@dataclass(frozen=True, slots=True)
class VideoAnnotation:
    """The labeled shots of one video.

    Frames between two shots belong to a gradual transition; adjacent shots have a hard cut between them.

    Attributes:
        video: The file.
        fps: Frames per second, only for times; labels are defined by frame numbers.
        shots: Shots in order of time, without overlap.
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

    Raises:
        MediaError: The file cannot be written, or there are other labels than these videos had before.
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
    source = describe_source("labels", *(annotation.video for annotation in annotations))
    with open_output(target, source=source) as partial:
        partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read_shot_annotations(path: PathLike) -> list[VideoAnnotation]:
    """Read labels that `write_shot_annotations` or a person wrote.

    A relative name of a video is relative to the file. The file can also hold a single video: an object with
    ``video``, ``fps`` and ``shots``.

    Raises:
        InvalidArgumentError: The file cannot be read, is not such JSON, or its labels contradict each other; the
            message names the video and the shot.
    """
    source = Path(path)
    document = read_json_object(source)
    videos = [document] if "shots" in document else document.get("videos")
    if not isinstance(videos, list) or document.get("format", _FORMAT) != _FORMAT:
        raise InvalidArgumentError(
            f"{source}: must hold an object with 'format': {_FORMAT!r} and 'videos', got the keys {sorted(document)}"
        )
    return [_video(item, number, source) for number, item in enumerate(videos)]


def read_json_object(path: Path) -> dict[str, Any]:
    """The object of a JSON file.

    Raises:
        InvalidArgumentError: The file cannot be read, or contains something else.
    """
    try:
        document = read_json(path)
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


# Labels of several annotators, merged by the rule of the paper.


def merge_annotators(labels: Sequence[Sequence[VideoAnnotation]]) -> list[VideoAnnotation]:
    """Merge the labels of several annotators into one per video; shots are the same for all, critical frames are
    merged.

    Args:
        labels: For each annotator the labels of the same videos, in any order.

    Raises:
        InvalidArgumentError: There is no annotator, or annotators differ in videos, rates or shots.
    """
    if not labels:
        raise InvalidArgumentError("labels must be of at least one annotator, got none")
    by_video = [{one.video.resolve(): one for one in own} for own in labels]
    for number, own in enumerate(by_video[1:], start=2):
        other = sorted(path.name for path in set(own) ^ set(by_video[0]))
        if other:
            raise InvalidArgumentError(
                f"annotators must label the same videos, got {other[0]} from only one of annotators 1 and {number}"
            )
    return [_merge(first, [own[first.video.resolve()] for own in by_video]) for first in labels[0]]


def merge_critical(shot: tuple[int, int], marked: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    """The critical frames of a shot [start, end) by the rule of the paper.

    A shot is critical if more than half of the annotators say so. Its critical frames are those marked by the largest
    number of these annotators. If there are several stretches of such frames, the longest is used, or the last of
    equally long ones, because the event ends the shot.

    Args:
        shot: First frame, and one past the last one.
        marked: For each annotator, [start, end) of the critical frames, or None.

    Source: Radial loss for learning fine-grained video similarity metric, Sports Dataset.
    """
    said = [interval for interval in marked if interval is not None]
    if 2 * len(said) <= len(marked):
        return None
    start, end = shot
    votes = [sum(first <= frame < last for first, last in said) for frame in range(start, end)]
    agreed = max(votes)
    runs: list[tuple[int, int]] = []
    for place, count in enumerate(votes):
        frame = start + place
        if count == agreed and runs and runs[-1][1] == frame:
            runs[-1] = (runs[-1][0], frame + 1)
        elif count == agreed:
            runs.append((frame, frame + 1))
    return max(runs, key=lambda run: (run[1] - run[0], run[0]))


def _merge(first: VideoAnnotation, all_labels: Sequence[VideoAnnotation]) -> VideoAnnotation:
    for number, other in enumerate(all_labels[1:], start=2):
        if other.fps != first.fps or len(other.shots) != len(first.shots):
            raise InvalidArgumentError(
                f"annotators must agree on the shots of {first.video.name}, got {len(first.shots)} at {first.fps:g} a "
                f"second from annotator 1 and {len(other.shots)} at {other.fps:g} from annotator {number}"
            )
        for mine, theirs in zip(first.shots, other.shots, strict=True):
            if (mine.start, mine.end) != (theirs.start, theirs.end):
                raise InvalidArgumentError(
                    f"annotators must agree on the shots of {first.video.name}, got [{mine.start}, {mine.end}) from "
                    f"annotator 1 and [{theirs.start}, {theirs.end}) from annotator {number}"
                )
    shots = tuple(
        ShotAnnotation(
            same[0].start,
            same[0].end,
            merge_critical((same[0].start, same[0].end), [shot.critical for shot in same]),
        )
        for same in zip(*(one.shots for one in all_labels), strict=True)
    )
    return replace(first, shots=shots)
