"""Baseline detectors on encoded videos, on the labeled files, and compared with the original programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.detections import CUTS, cut_video
from tests.support.videos import encode, pan, photograph
from vidkin.errors import InvalidArgumentError, MissingPartError
from vidkin.metric.measures import boundary_scores
from vidkin.shots import RgbFrame, ShotDetection, detect, open_detector
from vidkin_research.detectors.shotdetect import color_difference


def hard_cuts(found: ShotDetection) -> list[int]:
    return [cut.frame for cut in found.cuts if cut.kind == "hard"]


@pytest.mark.parametrize("name", ["content", "adaptive", "shotdetect", "svd"])
def test_hard_cuts_between_photographs_are_found(tmp_path: Path, name: str) -> None:
    detection = detect(cut_video(tmp_path / "film.mp4"), name)
    assert hard_cuts(detection) == list(CUTS)
    assert detection.detector == name
    assert [shot.start for shot in detection.shots] == [0.0, 2.0, 4.5]
    assert detection.curve is not None
    assert all(0.0 <= cut.confidence <= 1.0 for cut in detection.cuts)


@pytest.mark.parametrize("name", ["content", "adaptive", "shotdetect", "svd"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_short_videos_have_no_cuts(tmp_path: Path, name: str, count: int) -> None:
    detection = detect(encode(tmp_path / "film.mp4", pan("coffee", count)), name)
    assert detection.cuts == ()
    assert len(detection.shots) == 1


@pytest.mark.parametrize("name", ["content", "adaptive", "shotdetect", "svd"])
def test_detector_without_frames_returns_no_cuts(name: str) -> None:
    assert open_detector(name).finish().cuts == ()


def test_color_difference_equals_hand_computed_values() -> None:
    first = np.zeros((2, 2, 3), np.uint8)
    second = first.copy()
    second[0, 0] = (255, 10, 6)
    # (255 + 10 + 6) / 4 pixels = 67.75, rounded down.
    assert color_difference(first, second) == color_difference(second, first) == 67


def test_shotdetect_also_requires_a_sudden_increase_of_the_score() -> None:
    """Scores 0, 40, 80, 5, 40: an increase of 40 at frames 1 and 2, a low score at 3, and an increase of 35 at 4."""
    levels = np.cumsum([0, 40, 80, 5, 40])
    detector = open_detector("shotdetect")
    for index, level in enumerate(levels.tolist()):
        image = np.zeros((4, 4, 3), np.uint8)
        image[..., 0] = level
        detector.push(RgbFrame(index, index / 10, image))
    found = detector.finish()
    assert found.curve is not None
    assert found.curve.values.tolist() == [0, 40, 80, 5, 40]
    assert [cut.frame for cut in found.cuts] == [1, 2, 4]


@pytest.mark.parametrize(("threshold", "expected"), [(30, [1, 2, 4]), (36, [1, 2]), (75, [])])
def test_shotdetect_threshold(threshold: int, expected: list[int]) -> None:
    detector = open_detector(f"shotdetect?threshold={threshold}")
    for index, level in enumerate(np.cumsum([0, 40, 80, 5, 40]).tolist()):
        detector.push(RgbFrame(index, index / 10, np.full((4, 4, 3), (level, 0, 0), np.uint8)))
    assert [cut.frame for cut in detector.finish().cuts] == expected


def test_dissolve_is_gradual_for_svd(tmp_path: Path) -> None:
    """Frames 40 to 60 dissolve from one still photograph to another."""
    from skimage import transform

    first, last = (
        transform.resize(photograph(name), (128, 192), anti_aliasing=True) * 255 for name in ("coffee", "rocket")
    )
    weights = np.clip((np.arange(100) - 40) / 20, 0, 1)
    images = [((1 - weight) * first + weight * last).astype(np.uint8) for weight in weights]
    detection = detect(encode(tmp_path / "film.mp4", images), "svd")
    assert [(cut.kind, cut.start_frame, cut.end_frame) for cut in detection.cuts] == [("gradual", 40, 60)]
    assert detection.cuts[0].frame == 50


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("content?min_scene_len=0", r"min_scene_len must be at least 1, got 0"),
        ("content?threshold=0", r"threshold must be above 0, got 0.0"),
        ("shotdetect?threshold=-1", r"threshold must be at least 0, got -1.0"),
        ("shotdetect?min_scene_len=0", r"min_scene_len must be at least 1, got 0"),
    ],
)
def test_settings_out_of_range_are_rejected(name: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        open_detector(name)


def test_pyscenedetect_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scenedetect", None)
    with pytest.raises(
        MissingPartError,
        match=r"PySceneDetect, which is not installed; install it with: pip install .*research\[bas",
    ):
        open_detector("content")


@pytest.mark.data
@pytest.mark.parametrize("file", ["sintel_trailer.mp4", "bikes.mp4"])
@pytest.mark.parametrize("length", [1, 15])
@pytest.mark.large
def test_cuts_equal_those_of_pyscenedetect(shared_data: Path, file: str, length: int) -> None:
    scenedetect = pytest.importorskip("scenedetect")
    source = shared_data / "shots" / file
    for name, peer in (
        ("content", scenedetect.ContentDetector(threshold=30.0, min_scene_len=length)),
        ("adaptive", scenedetect.AdaptiveDetector(min_scene_len=length)),
    ):
        expected = [scene[0].frame_num for scene in scenedetect.detect(str(source), peer)][1:]
        assert [cut.frame for cut in detect(source, f"{name}?min_scene_len={length}").cuts] == expected


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "right", "false"),
    [
        ("content", 5, 3),
        ("adaptive?min_scene_len=1", 7, 1),
        ("shotdetect", 10, 8),
        ("shotdetect?threshold=75", 7, 0),
    ],
)
def test_published_settings_on_the_sintel_trailer(shared_data: Path, name: str, right: int, false: int) -> None:
    """Of 10 hard cuts, counts those found within a frame; false cuts match neither these nor the 15 transitions."""
    truth = json.loads((shared_data / "shots" / "truth.json").read_text())["videos"]["sintel_trailer.mp4"]
    cuts = hard_cuts(detect(shared_data / "shots" / "sintel_trailer.mp4", name))
    spans = [(gradual["start"], gradual["end"]) for gradual in truth["gradual"]]
    assert boundary_scores(cuts, truth["hard"], tolerance=1).true_positives == right
    assert boundary_scores(cuts, truth["hard"] + spans, tolerance=1).false_positives == false
