"""Detections validate themselves, and the detectors of the package fulfill the contract."""

from __future__ import annotations

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.shots import (
    DetectedCut,
    DetectedCuts,
    KnownCutsDetector,
    PlanesDetector,
    ShotDetector,
    open_detector,
)


def test_detected_cut_is_validated() -> None:
    assert not DetectedCut(5).is_gradual
    assert DetectedCut(5, "wipe").is_gradual
    with pytest.raises(InvalidArgumentError, match="frame must be at least 1, got 0"):
        DetectedCut(0)
    with pytest.raises(InvalidArgumentError, match=r"kind must be one of 'hard', .*, got 'zoom'"):
        DetectedCut(5, "zoom")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"confidence must be in \[0, 1\], got -1"):
        DetectedCut(5, confidence=-1)


def test_detected_cuts_are_ordered_with_one_score_per_shot() -> None:
    cuts = (DetectedCut(5), DetectedCut(9))
    assert DetectedCuts(cuts, critical=(0.1, 0.2, 0.3)).cuts == cuts
    for frames in ([5, 5], [9, 5]):
        with pytest.raises(InvalidArgumentError, match=r"with at most one per frame, got \[\d, 5\]"):
            DetectedCuts(tuple(DetectedCut(frame) for frame in frames))
    with pytest.raises(InvalidArgumentError, match="one score per shot, 2 for 1 cuts, got 1"):
        DetectedCuts((DetectedCut(5),), None, (0.5,))


def test_detectors_take_images_or_planes() -> None:
    assert isinstance(open_detector("cuts"), PlanesDetector)
    assert not isinstance(open_detector("cuts"), ShotDetector)
    for detector in (open_detector("shotdetect"), open_detector("svd"), KnownCutsDetector()):
        assert isinstance(detector, ShotDetector)
        assert not isinstance(detector, PlanesDetector)


@pytest.mark.parametrize("name", ["cuts", "shotdetect", "svd", "content"])
def test_detectors_find_no_cuts_without_frames(name: str) -> None:
    assert open_detector(name).finish().cuts == ()
