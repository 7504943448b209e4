"""Data for training and evaluating shot detectors: composed videos in two splits, and edited videos."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS, write_text
from vidkin._base.values import read_json
from vidkin.errors import InvalidArgumentError
from vidkin.media import iter_planes
from vidkin.shots import ShotAnnotation, Transition, VideoAnnotation
from vidkin.shots.contract import SUDDEN
from vidkin.shots.network import SHIPPED, Numbers
from vidkin_research.learned.judging import BoundaryLabels, read_boundary_labels
from vidkin_research.made.edited_videos import COMPOSED_LABELS, build_composed
from vidkin_research.made.footage import read_footage
from vidkin_research.runs import OnStudyProgress
from vidkin_research.shots.extents import LabeledTransition
from vidkin_research.shots.labels import SHOT_COLLECTIONS, labels_of_video, read_shot_labels

__all__ = [
    "TEST_CLIPS",
    "LabelledVideo",
    "annotation_of",
    "composed_part",
    "edited_videos",
    "labeled_collection",
    "test_takes",
    "with_whole_fades",
]

TEST_CLIPS = (
    *(
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
    ),
    "thanks",
)
"""Prefixes of clip names in the test split; the default detector was not trained on these clips."""

# Recordings used in highlight videos are excluded from both composed splits.
_HIGHLIGHTS = ("one-by-one-person-detection", "bottle-detection")
_MAX_PHOTOGRAPHS = 300
_MOVED_PHOTOGRAPHS = 30

# Prefixes of the kinds in ``truth.json``, and the transition they stand for.
_KINDS: tuple[tuple[str, Transition], ...] = (
    *(("fade", "fade"), ("through", "fade"), ("dissolve", "dissolve"), ("wipe", "wipe")),
)


@dataclass(frozen=True, slots=True)
class LabelledVideo:
    """A video and its labeled cuts.

    Attributes:
        path: Path of the video.
        labels: Cuts and gradual transitions.
        fps: Frames per second.
        kinds: Kinds of its gradual transitions, in the order of ``labels``; () if they are not labeled.
        jumps: Cuts that are labeled as jumps; None if its labels do not distinguish jumps.
    """

    path: Path
    labels: BoundaryLabels
    fps: float = 25.0
    kinds: tuple[Transition, ...] = ()
    jumps: frozenset[int] | None = None

    @property
    def transitions(self) -> tuple[LabeledTransition, ...]:
        """The transitions with extents and kinds, in frame order; the kind is ``gradual`` if unknown."""
        jumps = self.jumps or frozenset()
        kinds: Iterable[Transition] = self.kinds or repeat("gradual")
        return tuple(
            sorted(
                [
                    *(LabeledTransition("jump" if cut in jumps else "hard", cut, cut) for cut in self.labels.hard),
                    *(LabeledTransition(kind, *ends) for kind, ends in zip(kinds, self.labels.gradual, strict=False)),
                ],
                key=lambda one: one.start,
            )
        )


def edited_videos(folder: Path) -> list[LabelledVideo]:
    """Open the videos in a folder with labels in ``truth.json``; a gradual transition may have a descriptive ``kind``.

    Fades to or from black or white become ``fade``, and transitions of titles or logos become ``gradual``.

    Raises:
        InvalidArgumentError: There are no labels, or a video is missing.
    """
    labels = read_boundary_labels(folder / "truth.json")
    if not labels:
        raise InvalidArgumentError(f"{folder / 'truth.json'}: no labels")
    missing = [name for name in labels if not (folder / name).is_file()]
    if missing:
        raise InvalidArgumentError(f"{folder}: labeled videos are missing: {', '.join(missing)}")
    entries = read_json(folder / "truth.json")["videos"]
    return [
        LabelledVideo(folder / name, own, kinds=tuple(map(_kind_of, entries[name].get("gradual", ()))))
        for name, own in labels.items()
    ]


def _kind_of(label: Mapping[str, Any]) -> Transition:
    """Parse the kind of a gradual transition from a description such as ``fade-in`` or ``title overlay out``."""
    words = str(label.get("kind", ""))
    return next((kind for begin, kind in _KINDS if words.startswith(begin)), "gradual")


def composed_part(
    clips: Path,
    photographs: Path | None,
    folder: Path,
    *,
    test: bool,
    videos: int,
    frames: int,
    size: tuple[int, int],
    on_progress: OnStudyProgress,
) -> list[LabelledVideo]:
    """Compose the videos of the training or test split; videos from an earlier call with equal settings are reused.

    Clips with prefixes in `TEST_CLIPS` form the test split; all others, except recordings of highlight videos, form the
    training split. Every fifth photograph belongs to the test split.

    Args:
        clips: Folder of single-shot clips.
        photographs: Folder of photographs that add scenes; None adds no scenes.
        folder: Folder for the composed videos.
        test: Whether to compose the test split.
        videos: Number of videos.
        frames: Number of frames per video.
        size: Height and width in pixels.
        on_progress: Callback called while clips are read and videos are written.

    Raises:
        InvalidArgumentError: There are no clips for this split.
    """
    settings = {"test": test, "videos": videos, "frames": frames, "photographs": photographs is not None}
    record = folder / "made.json"
    if not record.is_file() or read_json(record) != settings:
        chosen = [path for path in _files(clips, VIDEO_EXTENSIONS) if path.name.startswith(TEST_CLIPS) == test]
        chosen = [path for path in chosen if not path.name.startswith(_HIGHLIGHTS)]
        if not chosen:
            part = "test" if test else "training"
            raise InvalidArgumentError(f"{clips}: no single-shot clips for the {part} split")
        stills = _files(photographs, IMAGE_EXTENSIONS) if photographs is not None else []
        own = [path for number, path in enumerate(stills) if (number % 5 == 0) == test]
        step = max(1, len(own) // _MAX_PHOTOGRAPHS)
        on_progress(0, len(chosen), "reading clips")
        footage = read_footage(
            chosen,
            own[::step],
            height=size[0],
            width=size[1],
            on_progress=lambda done, total: on_progress(done, total, "reading clips and photographs"),
        )
        build_composed(
            folder,
            footage,
            videos=videos,
            frames=frames,
            seed=int(test),
            on_progress=lambda done, total: on_progress(done, total, "composing videos"),
        )
        write_text(record, json.dumps(settings))
    labels = read_boundary_labels(folder / COMPOSED_LABELS)
    return [LabelledVideo(folder / name, own) for name, own in labels.items()]


def labeled_collection(folder: Path, name: str, labels: Path) -> list[LabelledVideo]:
    """Find the videos in a folder that have labels in a public collection, see `vidkin_research.shots.labels`.

    Raises:
        InvalidArgumentError: The collection is unknown, or the folder contains none of its videos.
    """
    known = read_shot_labels(name, labels)
    own = [(path, labels_of_video(name, known, path.stem)) for path in _files(folder, VIDEO_EXTENSIONS)]
    has_kinds = SHOT_COLLECTIONS[name].has_kinds
    videos = [_labeled(path, found, has_kinds=has_kinds) for path, found in own if found is not None]
    if not videos:
        raise InvalidArgumentError(f"{folder}: contains none of the videos labeled in {labels}")
    return videos


def _labeled(path: Path, transitions: Sequence[LabeledTransition], *, has_kinds: bool) -> LabelledVideo:
    gradual = [one for one in transitions if one.kind not in SUDDEN]
    cuts = tuple(one.start for one in transitions if one.kind in SUDDEN)
    return LabelledVideo(
        path,
        BoundaryLabels(cuts, tuple((one.start, one.end) for one in gradual)),
        kinds=tuple(one.kind for one in gradual),
        jumps=frozenset(one.start for one in transitions if one.kind == "jump") if has_kinds else None,
    )


def with_whole_fades(video: LabelledVideo) -> LabelledVideo:
    """Merge the labels of a fade-out and the following fade-in into one transition, as the detector does.

    They are merged if they are at most a second apart with a plain background in between.
    """
    blocks = list(iter_planes(video.path))
    if not blocks or len(video.labels.gradual) < 2:
        return video
    times = np.concatenate([block.timestamps for block in blocks])
    contrasts = np.concatenate([block.luma.reshape(len(block), -1).std(axis=1) for block in blocks])
    numbers = Numbers.load(SHIPPED)
    joined: list[tuple[int, int]] = []
    kinds: list[Transition] = []
    for one in (one for one in video.transitions if one.kind not in SUDDEN):
        first, last = one.start, one.end
        if joined and last < len(times):
            before = joined[-1][1]
            is_near = first > before and times[first] - times[before] <= numbers.fade_gap
            if (
                is_near
                and contrasts[before : first + 1].min() < numbers.plain
                and (contrasts[before + 1 : first] < numbers.plain).all()
            ):
                joined[-1], kinds[-1] = (joined[-1][0], last), "fade"
                continue
        joined.append((first, last))
        kinds.append(one.kind)
    if len(joined) == len(video.labels.gradual):
        return video
    return replace(video, labels=BoundaryLabels(video.labels.hard, tuple(joined)), kinds=tuple(kinds))


def test_takes(clips: Path, photographs: Path | None) -> list[Path]:
    """Return the test clips of `composed_part` and a few test photographs, on which no detector was trained."""
    takes = [path for path in _files(clips, VIDEO_EXTENSIONS) if path.name.startswith(TEST_CLIPS)]
    stills = _files(photographs, IMAGE_EXTENSIONS)[::5] if photographs is not None else []
    return takes + stills[:: max(1, len(stills) // _MOVED_PHOTOGRAPHS)]


def annotation_of(video: LabelledVideo, frames: int) -> VideoAnnotation:
    """Return the shots of a video with this number of frames: the intervals between its cuts and transitions."""
    edges = sorted(
        [(cut, cut) for cut in video.labels.hard] + [(first, last + 1) for first, last in video.labels.gradual]
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


def _files(folder: Path, extensions: frozenset[str]) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in extensions)
