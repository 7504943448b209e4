"""Videos for the verifier: a separate training part, and the two halves of the copy benchmark for measurement."""

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
# Minimum seconds of a recording for training copies, as in `choose_queries`.
_SHORTEST_SOURCE = 3.8
# Number of recordings of `clips` that are sources of training copies.
_TRAINING_SOURCES = 32
# Each query gets a quarter of the kinds of edits, because more queries help more than more edits of each.
_TRAINING_SHARES = 4
# Two queries of a long recording are two moments of one camera: the middle level.
_TRAINING_SIZE = ClipSize(seconds=4.0, clips=2, short_side=240, rate=4.0)
# One in this many videos of `labeled` is unrelated footage in training, and the next one in development.
_LABELED_STEP = 4
MEASURED_SIZE = ClipSize(seconds=4.0, clips=1, short_side=240, rate=4.0, recordings=6)
"""The copies on which the frame encoder is also measured."""


def find_material(data: Path, part: Part) -> tuple[list[Recording], list[Recording]]:
    """Find the recordings for copies, and the unrelated videos of the gallery.

    No recording is in two parts. Copies are made of scenes of ``clips`` for training, and of the two halves of
    `copy_halves.HALVES` to measure on. Unrelated are, in training, the other clips of these scenes and some
    videos of ``labelled`` (skies and turntables, which resemble each other); on the development half other videos
    of ``labelled``; on the held-back half the scenes of ``clips`` that training the frame encoder never saw, and the
    edited films.

    Args:
        data: The measurement data.
        part: To train on, to develop on, or held back.
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
    """Make the queries, copies and unrelated videos of a part; existing files are reused.

    Args:
        data: The measurement data.
        part: To train on, to develop on, or held back.
        work: Folder of the copies.
    """
    sources, others = find_material(data, part)
    unrelated = tuple(GalleryVideo(each.path, each.family, each.scene, DISTRACTOR) for each in others)
    if part != "training":
        made = [make_copies(sources, work, MEASURED_SIZE)]
    else:
        kinds, shares = list(EDITS), _TRAINING_SHARES
        made = [
            make_copies(sources[share::shares], work, _TRAINING_SIZE, edits=kinds[share::shares])
            for share in range(shares)
        ]
    queries = tuple(query for each in made for query in each.queries)
    filler = frozenset().union(*(each.filler for each in made))
    return CopyMaterial(queries, (*(video for each in made for video in each.gallery), *unrelated), filler)


def find_halves(data: Path, half: Half) -> tuple[list[Recording], list[Recording]]:
    """Find recordings and unrelated videos of halves that both include clips, for training on one half and measuring on
    the other.

    Sources are the half of `copy_halves.HALVES` and some of the scenes of ``clips``, which are held back by scene as in
    training the frame encoder; unrelated videos are the other clips of these scenes, and, held back, the edited films.

    Args:
        data: The measurement data.
        half: To develop on, or held back.
    """
    clips = _find_clips(data, is_held_back=half == "held-back")
    sources = find_divided_recordings(data / "videos", half) + clips[:: _SOURCE_STEP[half]]
    taken = {recording.path for recording in sources}
    strangers = [recording for recording in clips if recording.path not in taken]
    if half == "held-back":
        strangers += find_recordings(data / "shots")
    return sources, strangers


def _find_clips(data: Path, *, is_held_back: bool) -> list[Recording]:
    """The clips of scenes that are held back, or of the other scenes."""
    scenes = read_json(data / "clips" / "clips.json")
    clips = []
    for recording in find_recordings(data / "clips"):
        scene = int(scenes[recording.path.name]["scene"])
        if is_held_back_clip(scene) == is_held_back:
            clips.append(Recording(recording.path, f"clip {recording.path.stem}", f"scene {scene}", recording.duration))
    return clips


def _labeled(data: Path) -> list[Recording]:
    """Videos of skies and turntables; videos of one class and object may show the same place."""
    return [
        Recording(each.path, str(each.path), "/".join(each.path.parts[-3:-1]), each.duration)
        for folder in ("aerial", "fruit")
        for each in find_recordings(data / "labelled" / folder)
    ]
