"""The videos behind the stored copy results: how they are split into halves, and their families and scenes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from vidkin.errors import InvalidArgumentError
from vidkin_research.copies.recordings import ClipSize, Recording, find_recordings

__all__ = ["HALVES", "SMALL", "Half", "find_divided_recordings"]

Half = Literal["development", "held-back"]

# This split predates all constants for views, boxes and scores: constants are chosen on the first half, and the second
# half is only evaluated at the end. Takes of one subject are in the same half; the sign-language clips, which share a
# room, are split by name.
HALVES: dict[Half, tuple[str, ...]] = {
    "development": (
        "tmk/chair*",
        "tmk/doorknob*",
        "intel/car-detection.*",
        "mdn/crystal.*",
        "mdn/elf.*",
        "mdn/frog.*",
        "intel/again.mkv",
        "intel/bird.mkv",
        "intel/book.mkv",
        "intel/brother.mkv",
        "intel/eat.mkv",
        "intel/help.mkv",
        "intel/hungry.mkv",
        "intel/learn.mkv",
        "intel/milk.mkv",
    ),
    "held-back": (
        "tmk/pattern*",
        "intel/bottle-detection.*",
        "intel/one-by-one-person-detection.*",
        "mdn/monster.*",
        "mdn/pig.*",
        "mdn/rabbit*",
        "intel/night.mkv",
        "intel/no.mkv",
        "intel/please.mkv",
        "intel/school.mkv",
        "intel/sister.mkv",
        "intel/sorry.mkv",
        "intel/student.mkv",
        "intel/thanks.mkv",
        "intel/walk.mkv",
        "intel/want.mkv",
        "intel/yes.mkv",
    ),
}


SMALL = ClipSize(seconds=9.0, clips=2, short_side=360, rate=12.0)


def find_divided_recordings(
    folder: Path, half: Half | Literal["all"] = "all", *, left_out: Iterable[str] = ()
) -> list[Recording]:
    """Find the videos listed in `HALVES`, with families and scenes derived from their names.

    Args:
        folder: Folder that contains the collection.
        half: The half to use; ``"all"`` uses every video.
        left_out: Names, without extension, of files to leave out.

    Raises:
        InvalidArgumentError: The folder has no video of this half.
        MediaError: A video cannot be read.
    """
    patterns = ("*",) if half == "all" else HALVES[half]
    recordings = []
    for recording in find_recordings(folder, left_out=left_out):
        name = recording.path.relative_to(folder).as_posix()
        if any(fnmatch(name, pattern) for pattern in patterns):
            family, scene = _family_and_scene(recording.path)
            recordings.append(replace(recording, family=family, scene=scene))
    if not recordings:
        raise InvalidArgumentError(f"{folder}: no video of the {half} half; use --half all for your own videos")
    return recordings


def _family_and_scene(path: Path) -> tuple[str, str]:
    """Derive the family (copies share a name up to '-' or a digit) and the scene (a shared room or table)."""
    family = path.stem.split("-")[0] if path.parent.name == "tmk" else path.stem.rstrip("0123456789")
    shared = path.suffix == ".mkv" or path.parent.name == "mdn"
    return family, path.parent.name + path.suffix if shared else family
