"""Videos for the verifier: a separate training part, and both halves of the copy benchmark for evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from vidkin._base.values import read_json
from vidkin_research.copies.edits import EDITS
from vidkin_research.copies.halves import find_divided_recordings
from vidkin_research.copies.material import DISTRACTOR, CopyMaterial, GalleryVideo, make_copies
from vidkin_research.copies.recordings import ClipSize, Recording, find_recordings
from vidkin_research.frame_encoder.held_back import is_held_back_clip

__all__ = ["MEASURED_SIZE", "Half", "Part", "find_halves", "find_material", "make_material"]

Half = Literal["development", "held-back"]
Part = Literal["training", "development", "held-back"]

# One in this many clips of a half is a source of copies; the others are unrelated videos.
_SOURCE_STEP = {"development": 5, "held-back": 3}
# Minimum length in seconds of a source of training copies, as in `choose_queries`.
_SHORTEST_SOURCE = 3.8
# Number of recordings in `clips` that are sources of training copies.
_TRAINING_SOURCES = 32
# Each query gets a quarter of the edits, because more queries help more than more edits per query.
_EDIT_GROUPS = 4
# Two queries from a long recording are two moments from one camera, which form the middle level.
_TRAINING_SIZE = ClipSize(seconds=4.0, clips=2, short_side=240, rate=4.0)
# One in this many videos in `labelled` is unrelated footage for training, and the next one for development.
_LABELED_STEP = 4
MEASURED_SIZE = ClipSize(seconds=4.0, clips=1, short_side=240, rate=4.0, recordings=6)
"""Settings of the copies that the frame encoder is also evaluated on."""


def find_material(data: Path, part: Part) -> tuple[list[Recording], list[Recording]]:
    """Find the source recordings of copies, and the unrelated videos of the gallery.

    No recording is in two parts. For training, copies are made from scenes in ``clips``; for evaluation, from the two
    halves of `copies.halves.HALVES`. Unrelated videos are, for training, the other clips of these scenes and some
    videos in ``labelled`` (skies and turntables, which resemble each other); for the development half, other videos in
    ``labelled``; for the held-back half, the scenes in ``clips`` that the frame encoder was not trained on, and the
    edited films.

    Args:
        data: Folder with the measurement data.
        part: Training, development or held-back part.
    """
    if part == "development":
        return find_divided_recordings(data / "videos", part), _labeled(data)[1::_LABELED_STEP]
    clips = _find_clips(data, is_held_back=part == "held-back")
    if part == "held-back":
        return find_divided_recordings(data / "videos", part), [*clips, *find_recordings(data / "shots")]
    sources = [recording for recording in clips if recording.duration >= _SHORTEST_SOURCE][:_TRAINING_SOURCES]
    taken = {recording.path for recording in sources}
    others = [recording for recording in clips if recording.path not in taken]
    return sources, others + _labeled(data)[::_LABELED_STEP]


def make_material(data: Path, part: Part, work: Path) -> CopyMaterial:
    """Create the queries, copies and unrelated videos of a part, reusing existing files.

    Args:
        data: Folder with the measurement data.
        part: Training, development or held-back part.
        work: Folder for the copies.
    """
    sources, others = find_material(data, part)
    unrelated = tuple(GalleryVideo(each.path, each.family, each.scene, DISTRACTOR) for each in others)
    if part != "training":
        made = [make_copies(sources, work, MEASURED_SIZE)]
    else:
        kinds, shares = list(EDITS), _EDIT_GROUPS
        made = [
            make_copies(sources[share::shares], work, _TRAINING_SIZE, edits=kinds[share::shares])
            for share in range(shares)
        ]
    queries = tuple(query for each in made for query in each.queries)
    filler = frozenset().union(*(each.filler for each in made))
    return CopyMaterial(queries, (*(video for each in made for video in each.gallery), *unrelated), filler)


def find_halves(data: Path, half: Half) -> tuple[list[Recording], list[Recording]]:
    """Find recordings and unrelated videos of two halves that include clips, to train on one and evaluate on the other.

    Sources are the half of `copies.halves.HALVES` and some scenes in ``clips``, which are split by scene as for
    training the frame encoder. Unrelated videos are the other clips of these scenes and, in the held-back half, the
    edited films.

    Args:
        data: Folder with the measurement data.
        half: Development or held-back half.
    """
    clips = _find_clips(data, is_held_back=half == "held-back")
    sources = find_divided_recordings(data / "videos", half) + clips[:: _SOURCE_STEP[half]]
    taken = {recording.path for recording in sources}
    strangers = [recording for recording in clips if recording.path not in taken]
    if half == "held-back":
        strangers += find_recordings(data / "shots")
    return sources, strangers


def _find_clips(data: Path, *, is_held_back: bool) -> list[Recording]:
    """Find the clips of scenes that are held out, or of the other scenes."""
    scenes = read_json(data / "clips" / "clips.json")
    clips = []
    for recording in find_recordings(data / "clips"):
        scene = int(scenes[recording.path.name]["scene"])
        if is_held_back_clip(scene) == is_held_back:
            clips.append(Recording(recording.path, f"clip {recording.path.stem}", f"scene {scene}", recording.duration))
    return clips


def _labeled(data: Path) -> list[Recording]:
    """Find the videos of skies and turntables; videos of one class and object may show the same location."""
    return [
        Recording(each.path, str(each.path), "/".join(each.path.parts[-3:-1]), each.duration)
        for folder in ("aerial", "fruit")
        for each in find_recordings(data / "labelled" / folder)
    ]
