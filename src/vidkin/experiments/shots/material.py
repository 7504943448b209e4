"""What ``vidkin benchmark shots`` trains and judges on: composed videos of two parts, and edited ones with labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vidkin.errors import InvalidArgumentError

if TYPE_CHECKING:
    from vidkin.datasets import VideoAnnotation
    from vidkin.shots.judging import BoundaryLabels

__all__ = ["HELD_OUT", "LabelledVideo", "annotation_of", "composed_part", "edited_videos"]

HELD_OUT = (
    "pig",
    "rabbit",
    "pattern",
    "doorknob",
    "night",
    "no",
    "please",
    "school",
    "sister",
    "sorry",
    "student",
    "thanks",
)
"""Clips whose names start so make the test part. The default detector was not trained on them either."""

# Recordings in which highlight videos are trained on stay out of both composed parts.
_HIGHLIGHTS = ("one-by-one-person-detection", "bottle-detection")
_VIDEOS = (".mp4", ".mkv", ".webm", ".mov", ".avi")
_PICTURES = (".jpg", ".jpeg", ".png")
_SIZE = (144, 256)
_MOST_PHOTOGRAPHS = 300


@dataclass(frozen=True, slots=True)
class LabelledVideo:
    """A video and where it is cut."""

    path: Path
    labels: BoundaryLabels
    fps: float = 25.0


def edited_videos(folder: Path) -> list[LabelledVideo]:
    """The videos of a folder with labels in ``truth.json``.

    Raises:
        InvalidArgumentError: There are no labels, or a video is missing.
    """
    from vidkin.shots.judging import read_boundary_labels

    labels = read_boundary_labels(folder / "truth.json")
    if not labels:
        raise InvalidArgumentError(f"{folder / 'truth.json'} has labels of no video")
    missing = [name for name in labels if not (folder / name).is_file()]
    if missing:
        raise InvalidArgumentError(f"{folder} has labels but no video for {', '.join(missing)}")
    return [LabelledVideo(folder / name, found) for name, found in labels.items()]


def composed_part(
    clips: Path,
    photographs: Path | None,
    folder: Path,
    *,
    test: bool,
    videos: int,
    frames: int,
    show: Callable[[int, int, str], None],
) -> list[LabelledVideo]:
    """Composed videos of the training or the test part: those of an earlier call with the same settings, or new ones.

    Clips whose names start with one of `HELD_OUT` make the test part, all others but the recordings of the highlight
    videos the training part; of photographs every fifth file is for the test part.
    """
    from vidkin.datasets import COMPOSED_LABELS, build_composed, read_footage
    from vidkin.shots.judging import read_boundary_labels

    settings = {"test": test, "videos": videos, "frames": frames, "photographs": photographs is not None}
    made = folder / "made.json"
    if not made.is_file() or json.loads(made.read_text(encoding="utf-8")) != settings:
        chosen = [path for path in _files(clips, _VIDEOS) if _is_test(path) == test]
        chosen = [path for path in chosen if not path.name.startswith(_HIGHLIGHTS)]
        if not chosen:
            raise InvalidArgumentError(
                f"{clips} holds no single-shot clips for the {'test' if test else 'training'} part"
            )
        pictures = _files(photographs, _PICTURES) if photographs is not None else []
        own = [path for place, path in enumerate(pictures) if (place % 5 == 0) == test]
        step = max(1, len(own) // _MOST_PHOTOGRAPHS)
        show(0, len(chosen), "reading clips")
        footage = read_footage(
            chosen,
            own[::step],
            height=_SIZE[0],
            width=_SIZE[1],
            on_progress=lambda done, total: show(done, total, "reading clips and photographs"),
        )
        build_composed(
            folder,
            footage,
            videos=videos,
            frames=frames,
            seed=int(test),
            on_progress=lambda done, total: show(done, total, "composing videos"),
        )
        made.write_text(json.dumps(settings), encoding="utf-8")
    labels = read_boundary_labels(folder / COMPOSED_LABELS)
    return [LabelledVideo(folder / name, found) for name, found in labels.items()]


def annotation_of(video: LabelledVideo, frames: int) -> VideoAnnotation:
    """Its shots: what lies between cuts and transitions."""
    from vidkin.datasets import ShotAnnotation, VideoAnnotation

    edges = sorted(
        [(cut, cut) for cut in video.labels.hard]
        + [(first, last + 1) for first, last in video.labels.gradual]
    )
    shots = []
    start = 0
    for end, following in edges:
        if end > start:
            shots.append(ShotAnnotation(start, end))
        start = max(start, following)
    if start < frames:
        shots.append(ShotAnnotation(start, frames))
    return VideoAnnotation(video.path, video.fps, tuple(shots))


def _is_test(path: Path) -> bool:
    return path.name.startswith(HELD_OUT)


def _files(folder: Path, endings: Sequence[str]) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in endings)
