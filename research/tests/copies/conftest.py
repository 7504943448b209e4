"""Copies of a small video, made once per session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin_research.copies.material import CopyMaterial, make_copies
from vidkin_research.copies.recordings import ClipSize, find_recordings

SMALL = ClipSize(seconds=6.0, clips=1, short_side=64, rate=10.0)


def write_pan(path: Path, photograph: str, frames: int) -> None:
    """Write a small video; create its folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    encode(path, pan(photograph, frames, width=96, height=64))


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``coffee.mp4`` of 8 s, ``unused.mp4`` of 7 s, and two clips of 2 s."""
    root = tmp_path_factory.mktemp("videos")
    write_pan(root / "coffee.mp4", "coffee", 80)
    write_pan(root / "unused.mp4", "rocket", 70)
    write_pan(root / "chelsea.mp4", "chelsea", 20)
    write_pan(root / "gravel.mp4", "gravel", 20)
    return root


@pytest.fixture(scope="package")
def material(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> CopyMaterial:
    """Six seconds of ``coffee`` with three edits."""
    recordings = find_recordings(folder, left_out=["unused"])
    return make_copies(recordings, tmp_path_factory.mktemp("work"), SMALL, edits=("reencode", "crop", "mirror"))
