"""Training copies with mixed edits: each is a single edit of an entire segment, made only once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.videos import encode, pan
from vidkin.media import read_frames
from vidkin_research.copies.material import CopyMaterial
from vidkin_research.copies.recordings import QueryClip, Recording
from vidkin_research.frame_encoder.material import Material
from vidkin_research.frame_encoder.pictures import Picture
from vidkin_research.verifier.edited import MIXED, add_edited


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Material:
    from PIL import Image as PILImage

    folder = tmp_path_factory.mktemp("pictures")
    shown = next(iter(pan("coffee", 1, width=96, height=64)))
    PILImage.fromarray(shown).save(folder / "one.png")
    one = np.zeros(1, np.int64)
    training = np.zeros(12, np.int64)
    return Material(
        folder, (Picture("one.png", "made", "one", 0.0),), one, np.zeros((1, 4), np.float16), training, one, {}
    )


def test_every_query_gets_copies_of_most_of_it_and_they_are_reused(pictures: Material, tmp_path: Path) -> None:
    path = encode(tmp_path / "street.mp4", list(pan("chelsea", 20, width=96, height=64)), rate=5)
    query = QueryClip("street-0", path, Recording(path, "street", "street", 4.0), 0.0, 4.0)
    material = add_edited(CopyMaterial((query,), (), frozenset()), pictures, tmp_path / "mixed")
    assert {(video.edit, video.source, video.family) for video in material.gallery} == {(MIXED, query, "street")}
    lengths = [len(read_frames(video.path, rate=4.0)) for video in material.gallery]
    assert len(lengths) == 6
    assert 9 <= min(lengths) <= max(lengths) <= 16
    written = [video.path.stat().st_mtime_ns for video in material.gallery]
    again = add_edited(CopyMaterial((query,), (), frozenset()), pictures, tmp_path / "mixed")
    assert [video.path.stat().st_mtime_ns for video in again.gallery] == written
