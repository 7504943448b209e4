"""Thumbnails and pieces of real videos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.detections import cut_video, detection
from tests.support.videos import encode, pan
from vidkin.errors import MediaError
from vidkin.media import read_frames
from vidkin.shots import split_shots, write_thumbnails


def test_a_thumbnail_is_the_middle_frame_of_its_shot(tmp_path: Path) -> None:
    source = cut_video(tmp_path / "film 山.mp4")
    paths = write_thumbnails(detection(source), tmp_path / "pictures", short_side=128)
    assert [path.name for path in paths] == ["film 山-0001.jpg", "film 山-0002.jpg", "film 山-0003.jpg"]
    images = read_frames(source, rate=None).images.astype(int)
    for path, middle in zip(paths, (9, 32, 52), strict=True):
        with Image.open(path) as picture:
            shown = np.asarray(picture).astype(int)
        differences = np.abs(images - shown).mean((1, 2, 3))
        assert int(differences.argmin()) == middle


def test_thumbnails_are_scaled(tmp_path: Path) -> None:
    source = cut_video(tmp_path / "film.mp4")
    for path in write_thumbnails(detection(source), tmp_path, short_side=64):
        with Image.open(path) as picture:
            assert picture.size == (96, 64)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    source = cut_video(tmp_path / "film.mp4")
    with pytest.raises(MediaError, match=r"film.mp4: the folder cannot be created"):
        write_thumbnails(detection(source), source)


def test_pieces_are_the_shots_where_key_frames_allow(tmp_path: Path) -> None:
    """Key frames stand at every fifth frame, and so at both cuts."""
    source = cut_video(tmp_path / "film.mp4")
    report = split_shots(detection(source), tmp_path / "pieces")
    assert [(piece.start, piece.parts) for piece in report.pieces] == [(0.0, (0,)), (2.0, (1,)), (4.5, (2,))]
    assert [len(read_frames(piece.path, rate=None)) for piece in report.pieces] == [20, 25, 15]


def test_a_piece_tells_where_it_really_begins(tmp_path: Path) -> None:
    """Key frames every 8 frames: the shot at frame 20 begins in the piece from frame 16, that at 45 in that from 40."""
    options = {"x264-params": "keyint=8:min-keyint=8:scenecut=0"}
    source = encode(tmp_path / "film.mp4", pan("coffee", 60), options=options)
    report = split_shots(detection(source), tmp_path / "pieces")
    assert [piece.start for piece in report.pieces] == pytest.approx([0.0, 1.6, 4.0])
    assert [len(read_frames(piece.path, rate=None)) for piece in report.pieces] == [16, 24, 20]
