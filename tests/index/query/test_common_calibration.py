"""Calibration uses the extractor's own cohort, or photographs that are measured once and stored."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from vidkin.features import open_extractor
from vidkin.index import Calibration, open_place
from vidkin.media import Frames
from vidkin.similarity import FrameFeatures


def test_default_extractor_is_calibrated_on_its_own_cohort(monkeypatch: pytest.MonkeyPatch) -> None:
    extractor = open_extractor("vidkin")
    monkeypatch.setattr(type(extractor), "extract", None)  # no frames are described
    background = Calibration.of_extractor(extractor).background
    assert background.shape == (1000, 1, 256)
    np.testing.assert_allclose(np.linalg.norm(background, axis=-1), 1, atol=1e-3)
    # The images are unrelated.
    assert float(np.median(background[:, 0] @ background[:, 0].T)) == pytest.approx(0, abs=0.02)


def test_other_networks_are_calibrated_on_photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.onnx"
    # The same network with a description, which changes its file and digest.
    shipped = files("vidkin.features") / "data" / "frame_encoder.onnx"
    other.write_bytes(shipped.read_bytes() + b"\x32\x05other")
    extractor = open_extractor("vidkin", weights=other)

    def extract(extractor: object, frames: Frames) -> FrameFeatures:
        ones = np.ones((len(frames), 1, 256)) / 16
        return FrameFeatures.of_whole(ones, frames.timestamps)

    monkeypatch.setattr(type(extractor), "extract", extract)
    assert np.allclose(Calibration.of_extractor(extractor).background, 1 / 16)


def test_extractor_without_a_cohort_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extractor = open_extractor("classical")
    measured = Calibration.open(open_place(tmp_path), extractor)
    assert measured.background.shape == (96, 10, 128)
    monkeypatch.setattr(type(extractor), "extract", None)
    assert np.array_equal(Calibration.open(open_place(tmp_path), extractor).background, measured.background)
