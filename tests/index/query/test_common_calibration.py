"""What unrelated frames look like to an extractor: as it ships, or measured once and kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vidkin.features import open_extractor
from vidkin.index import Calibration, open_place


def test_the_background_of_the_default_extractor_ships_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    extractor = open_extractor("vidkin")
    monkeypatch.setattr(type(extractor), "extract", None)  # nothing is described
    background = Calibration.of_extractor(extractor).background
    assert background.shape[1:] == (1, 256)
    np.testing.assert_allclose(np.linalg.norm(background, axis=2), 1, atol=1e-2)


def test_an_extractor_that_is_not_of_the_package_is_measured_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extractor = open_extractor("classical")
    monkeypatch.setattr(type(extractor), "fingerprint", "another")
    measured = Calibration.open(open_place(tmp_path), extractor)
    assert measured.background.shape == (96, 10, 128)
    monkeypatch.setattr(extractor, "extract", None)
    assert np.array_equal(Calibration.open(open_place(tmp_path), extractor).background, measured.background)
