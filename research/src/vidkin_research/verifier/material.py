"""Videos in three levels for the verifier: copies in all edits, other footage of the same scene, and strangers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from vidkin._base.values import read_json
from vidkin_research.copies.halves import find_divided_recordings
from vidkin_research.copies.recordings import Recording, find_recordings
from vidkin_research.frame_encoder.held_back import is_held_back_clip

__all__ = ["Half", "find_material"]

Half = Literal["development", "held-back"]

# Of the clips that a half may use, every so many is a source of copies; the others are strangers.
_SOURCE_STEP = {"development": 5, "held-back": 3}


def find_material(data: Path, half: Half) -> tuple[list[Recording], list[Recording]]:
    """The recordings that copies are made of, and the videos that none is made of.

    Sources are the half of `copy_halves.HALVES` and some of the scenes of ``clips``, which are held back by scene as in
    training the frame encoder; strangers are the other clips of these scenes, and, held back, the edited films.

    Args:
        data: The measurement data.
        half: To develop on, or held back.
    """
    scenes = read_json(data / "clips" / "clips.json")
    clips = []
    for recording in find_recordings(data / "clips"):
        scene = int(scenes[recording.path.name]["scene"])
        if is_held_back_clip(scene) == (half == "held-back"):
            clips.append(Recording(recording.path, f"clip {recording.path.stem}", f"scene {scene}", recording.duration))
    sources = find_divided_recordings(data / "videos", half) + clips[:: _SOURCE_STEP[half]]
    taken = {recording.path for recording in sources}
    strangers = [recording for recording in clips if recording.path not in taken]
    if half == "held-back":
        strangers += find_recordings(data / "shots")
    return sources, strangers
