"""Copies of one small video, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.videos import encode, pan
from vidkin.experiments.copies import CopyMaterial, Families, make_copies
from vidkin.experiments.copies import material as material_module


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``coffee.mp4`` of 8 s, ``copy.mp4`` of 7 s left out by name, and two clips of 2 s."""
    root = tmp_path_factory.mktemp("videos")
    encode(root / "coffee.mp4", pan("coffee", 80, width=96, height=64))
    encode(root / "unused.mp4", pan("rocket", 80, width=96, height=64))
    encode(root / "chelsea.mp4", pan("chelsea", 20, width=96, height=64))
    encode(root / "gravel.mp4", pan("gravel", 20, width=96, height=64))
    return root


@pytest.fixture(scope="package")
def material(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> CopyMaterial:
    """``coffee`` edited in three ways."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(material_module, "EDITS", ("reencode", "crop", "mirror"))
        return make_copies(folder, tmp_path_factory.mktemp("work"), Families(alone=True), left_out=["unused"])
