"""Convert SoccerNet-v2 labels to shot labels, for one half of a game or for every half in a folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from vidkin._base.files import PathLike
from vidkin._base.values import check_choice
from vidkin.errors import DatasetError, InvalidArgumentError
from vidkin.media import probe
from vidkin.shots import ShotAnnotation, VideoAnnotation
from vidkin.shots.labels import read_json_object

SOCCERNET_EVENTS = ("Goal", "Penalty", "Shots off target", "Shots on target")
"""SoccerNet-v2 actions in which the ball is kicked toward the goal: the critical events of the sources."""

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

_LABELS = "Labels-v2.json"
_CAMERAS = "Labels-cameras.json"


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
    """Read the labels of one half of a game from SoccerNet-v2's ``Labels-v2.json``.

    A shot that contains an event is critical up to and including the frame of the event. Events that the broadcast does
    not show are left out.

    Args:
        labels: ``Labels-v2.json`` of the game.
        video: The video of this half.
        fps: Frames per second of the video.
        frames: Number of frames of the video.
        half: Half of the game in the video: 1 or 2.
        cameras: ``Labels-cameras.json`` of the same game, whose camera changes are the cuts. It is incomplete for some
            games, so shots can be passed instead.
        shots: [start, end) frames of the shots, for example from a detector. Pass either this or ``cameras``.
        events: Critical actions, out of the 17 in SoccerNet-v2.
        before: Maximum length in seconds of the critical part before the event; default: the whole shot up to the
            event. Set it to sample quadlets, which also need non-critical frames (windows in the sources last 2 s).

    Raises:
        InvalidArgumentError: A file does not have SoccerNet's format, or an argument is out of range.
    """
    check_choice("half", half, (1, 2))
    if (cameras is None) == (shots is None):
        raise InvalidArgumentError("pass either cameras (Labels-cameras.json) or shots")
    if not 0 < fps < math.inf or frames < 1:
        raise InvalidArgumentError(f"fps and frames must be above 0, got {fps} and {frames}")
    if before is not None and not 0 < before < math.inf:
        raise InvalidArgumentError(f"before must be above 0 s, or None, got {before}")
    unknown = [event for event in events if event not in _SOCCERNET_ACTIONS]
    if unknown:
        raise InvalidArgumentError(f"events must be among {', '.join(sorted(_SOCCERNET_ACTIONS))}, got {unknown[0]!r}")
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


@dataclass(frozen=True, slots=True)
class SoccerNetHalf:
    """One half of a game on disk.

    Attributes:
        video: The video of the half.
        half: 1 or 2.
        labels: ``Labels-v2.json`` of the game.
        cameras: ``Labels-cameras.json`` of the game, if it exists.
    """

    video: Path
    half: int
    labels: Path
    cameras: Path | None


def find_soccernet_halves(folder: PathLike) -> list[SoccerNetHalf]:
    """Find every half in a folder with SoccerNet-v2's layout ``league/season/game/``.

    The video of a half is ``1_224p.mkv``, else ``1_720p.mkv``, else ``1.mkv``, or has one of these names with another
    extension. The untrimmed ``1_HQ.mkv`` is not used, because the labels count from the kickoff.

    Raises:
        DatasetError: There is no ``Labels-v2.json``, or no video is next to one.
    """
    root = Path(folder).expanduser()
    games = sorted(root.rglob(_LABELS))
    if not games:
        raise DatasetError(
            f"{root}: no {_LABELS} at any depth; choose the SoccerNet-v2 folder (soccer-net.org) or a game's folder"
        )
    halves = []
    for labels in games:
        cameras = labels.with_name(_CAMERAS)
        for half in (1, 2):
            videos = [
                path
                for name in (f"{half}_224p", f"{half}_720p", str(half))
                for extension in (".mkv", ".mp4")
                if (path := labels.parent / f"{name}{extension}").is_file()
            ]
            if videos:
                halves.append(SoccerNetHalf(videos[0], half, labels, cameras if cameras.is_file() else None))
    if not halves:
        raise DatasetError(
            f"{games[0].parent}: has labels but no video; download 1_224p.mkv and 2_224p.mkv of the game"
        )
    return halves


def read_soccernet_half(
    half: SoccerNetHalf,
    *,
    find_shots: Callable[[Path], Sequence[tuple[int, int]]] | None = None,
    events: Sequence[str] = SOCCERNET_EVENTS,
    before: float | None = 2.0,
) -> VideoAnnotation:
    """Read the labels of a half, with the frame count and frame rate of its video.

    Args:
        half: A half from `find_soccernet_halves`.
        find_shots: Function that finds the [start, end) frames of the shots in a video; None uses the camera changes of
            the game.
        events: Events that make a shot critical, as in `read_soccernet`.
        before: Maximum length in seconds of the critical part, as in `read_soccernet`.

    Raises:
        MediaError: The video cannot be read.
        InvalidArgumentError: A file does not have SoccerNet's format, or the game has no camera changes.
    """
    if find_shots is None and half.cameras is None:
        raise InvalidArgumentError(
            f"{half.labels.parent}: no {_CAMERAS}; find the shots with a detector (--detector cuts)"
        )
    info = probe(half.video)
    return read_soccernet(
        half.labels,
        half.video,
        fps=info.frame_rate,
        frames=max(1, round(info.duration * info.frame_rate)),
        half=half.half,
        cameras=half.cameras if find_shots is None else None,
        shots=None if find_shots is None else find_shots(half.video),
        events=events,
        before=before,
    )


def _critical_part(
    start: int, end: int, moments: Sequence[int], fps: float, before: float | None
) -> tuple[int, int] | None:
    """Return the critical frames of the shot [start, end), which end at its last event; None without events."""
    inside = [moment for moment in moments if start <= moment < end]
    if not inside:
        return None
    # With several events, all frames up to the last one are critical.
    first = start if before is None else max(start, min(inside) + 1 - round(before * fps))
    return first, inside[-1] + 1


def _soccernet_moments(path: Path, half: int) -> list[tuple[float, Mapping[str, Any]]]:
    """Read (seconds from the start of the half, annotation) for each event of this half."""
    items = read_json_object(path).get("annotations")
    if not isinstance(items, list):
        raise InvalidArgumentError(f"{path}: not a SoccerNet-v2 label file; it must contain a list 'annotations'")
    moments = []
    for item in items:
        try:
            clock = str(item["gameTime"]).split(" - ")
            number = int(clock[0])
            # `position` is in milliseconds, so it is more precise than the game clock; some files lack it.
            minutes, seconds = clock[1].split(":")
            time = int(item["position"]) / 1000 if "position" in item else int(minutes) * 60 + int(seconds)
        except (KeyError, ValueError, IndexError, TypeError, AttributeError, OverflowError):
            raise InvalidArgumentError(
                f"{path}: the annotation {item!r} must have a 'gameTime' such as '1 - 12:34' (half - minutes:seconds) "
                "and a 'position' in milliseconds"
            ) from None
        if number == half:
            moments.append((float(time), item))
    return moments
