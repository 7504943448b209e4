"""The shot list of a video: from any source, still a shot list when sliced, and exported to files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vidkin
from tests.support.detections import cut_video
from vidkin.errors import InvalidArgumentError
from vidkin.media import Frames, probe, read_frames
from vidkin.shots import DetectedCut, KnownCutsDetector, Shots, detect


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut_video(tmp_path_factory.mktemp("list") / "film.mp4")


def make_detector() -> KnownCutsDetector:
    return KnownCutsDetector([DetectedCut(15), DetectedCut(30)])


def test_in_memory_frames_have_the_shots_of_their_file(film: Path) -> None:
    frames, rate = read_frames(film, rate=None), probe(film).frame_rate
    expected = vidkin.detect_shots(film)
    assert len(expected) > 1
    for source in (frames.images, Frames(frames.images, frames.timestamps), iter(frames.images), film.read_bytes()):
        shots = vidkin.detect_shots(source, frame_rate=rate)
        assert [shot.start_frame for shot in shots] == [shot.start_frame for shot in expected]
        assert shots[-1].end == pytest.approx(expected[-1].end, abs=0.01)
    assert vidkin.detect_shots(film.read_bytes()).path == ""


def test_part_and_threshold_equal_detect(film: Path) -> None:
    part = vidkin.detect_shots(film, threshold=0.9, start="0:01", end="5.5")
    assert part == list(detect(film, "default", threshold=0.9, start=1.0, end=5.5).shots)
    assert part[0].start >= 1.0
    assert len(vidkin.detect_shots(film, threshold=0.99999)) < len(vidkin.detect_shots(film, threshold=0.2))
    with pytest.raises(InvalidArgumentError, match="threshold requires a detector name"):
        vidkin.detect_shots(film, make_detector(), threshold=0.5)


def test_slices_and_sorted_shots_keep_their_detection(film: Path) -> None:
    shots = vidkin.detect_shots(film, make_detector())
    for some in (shots[1:], shots.sorted(key=lambda shot: -shot.start), shots.where(lambda shot: shot.start > 0)):
        assert isinstance(some, Shots)
        assert some.cuts == shots.detection.cuts
        assert some.path == str(film)
    curve = vidkin.detect_shots(film).curve
    assert curve is not None
    assert len(curve.values) == len(curve.times) == len(shots.detection.frame_times)


def test_images_pieces_and_lists_contain_only_remaining_shots(film: Path, tmp_path: Path) -> None:
    shots = vidkin.detect_shots(film, make_detector())[1:]
    images = shots.save_images(tmp_path / "images", count=2)
    assert [path.name for path in images] == ["film-001-1.jpg", "film-001-2.jpg", "film-002-1.jpg", "film-002-2.jpg"]
    with Image.open(images[0]) as image:
        assert min(image.size) == probe(film).short_side
    pieces = shots.sorted(key=lambda shot: -shot.start).split(tmp_path / "pieces").pieces
    assert [round(probe(piece.path).duration, 1) for piece in pieces] == [round(s.end - s.start, 1) for s in shots]
    assert len(shots.split(tmp_path / "copies", at_key_frames=True).pieces) >= 1
    shots.export(tmp_path / "film.edl")
    assert (tmp_path / "film.edl").read_text().count("AX") == 2
    shots.export(tmp_path / "film.csv")
    assert len((tmp_path / "film.csv").read_text().splitlines()) == 3
    with pytest.raises(InvalidArgumentError, match="the ending chooses the format"):
        shots.export(tmp_path / "film.unknown")


def test_error_for_in_memory_frames_names_the_methods_that_need_a_file(tmp_path: Path) -> None:
    shots = vidkin.detect_shots(np.zeros((5, 32, 48, 3), np.uint8), frame_rate=5)
    for write in (shots.save_images, shots.split, shots.export):
        with pytest.raises(InvalidArgumentError, match="requires shots from a file"):
            write(tmp_path / "a")
