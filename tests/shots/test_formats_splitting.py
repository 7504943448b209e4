"""Pieces of real videos: exact ones, and copied ones that begin at key frames."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.detections import cut_video, detection
from tests.support.videos import encode, pan
from vidkin.media import read_frames
from vidkin.shots import NameTemplate, copy_shots, drop_short_shots, split_shots

EVERY_8 = {"x264-params": "keyint=8:min-keyint=8:scenecut=0"}


def test_pieces_have_exactly_the_frames_of_their_shots(tmp_path: Path) -> None:
    source = encode(tmp_path / "film.mp4", pan("coffee", 60), options=EVERY_8)
    report = split_shots(detection(source), tmp_path / "pieces")
    assert [(piece.start, piece.end, piece.parts) for piece in report.pieces] == [
        (0.0, 2.0, (0,)),
        (2.0, 4.5, (1,)),
        (4.5, 6.0, (2,)),
    ]
    assert [len(read_frames(piece.path, rate=None)) for piece in report.pieces] == [20, 25, 15]
    assert 0 < sum(piece.encoded for piece in report.pieces) < 20
    assert [Path(piece.path).name for piece in report.pieces] == [f"film-00{number}.mp4" for number in (1, 2, 3)]


def test_pieces_keep_the_numbers_of_remaining_shots(tmp_path: Path) -> None:
    source = cut_video(tmp_path / "film.mp4")
    given = drop_short_shots(detection(source), 1.8)
    assert len(given.shots) == 2
    template = NameTemplate("{shot}-{start_frame}")
    for split in (split_shots, copy_shots):
        report = split(given, tmp_path / split.__name__, template=template)
        assert [Path(piece.path).name for piece in report.pieces] == ["1-0.mp4", "2-20.mp4"]
        assert [piece.parts for piece in report.pieces] == [(0,), (1,)]
        assert [len(read_frames(piece.path, rate=None)) for piece in report.pieces] == [20, 25]


def test_empty_list_of_shots_gives_no_pieces(tmp_path: Path) -> None:
    given = replace(detection("gone.mp4"), shots=())
    assert split_shots(given, tmp_path / "a").pieces == copy_shots(given, tmp_path / "b").pieces == ()


def test_copied_pieces_equal_the_shots_if_they_start_with_key_frames(tmp_path: Path) -> None:
    """Every fifth frame is a key frame, including those at both cuts."""
    source = cut_video(tmp_path / "film.mp4")
    report = copy_shots(detection(source), tmp_path / "pieces")
    assert [(piece.start, piece.parts) for piece in report.pieces] == [(0.0, (0,)), (2.0, (1,)), (4.5, (2,))]
    assert [len(read_frames(piece.path, rate=None)) for piece in report.pieces] == [20, 25, 15]


def test_copied_piece_has_its_actual_start(tmp_path: Path) -> None:
    """The shots at frames 20 and 45 are in the pieces from the key frames 16 and 40."""
    source = encode(tmp_path / "film.mp4", pan("coffee", 60), options=EVERY_8)
    report = copy_shots(detection(source), tmp_path / "pieces")
    assert [piece.start for piece in report.pieces] == pytest.approx([0.0, 1.6, 4.0])
    assert [len(read_frames(piece.path, rate=None)) for piece in report.pieces] == [16, 24, 20]


def test_copied_piece_has_the_number_of_its_first_shot(tmp_path: Path) -> None:
    """Without a key frame between them, the second and third shots share a piece."""
    options = {"x264-params": "keyint=100:min-keyint=100:scenecut=0"}
    source = encode(tmp_path / "film.mp4", pan("coffee", 60), options=options)
    (piece,) = copy_shots(detection(source), tmp_path / "pieces").pieces
    assert (Path(piece.path).name, piece.parts) == ("film-001.mp4", (0, 1, 2))
