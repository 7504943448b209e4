"""What unrelated frames look like to an extractor: as it ships, or measured once and kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vidkin.features import open_extractor
from vidkin.index import Calibration, open_place


def test_views_of_the_query_alone_have_the_background_of_all_views(monkeypatch: pytest.MonkeyPatch) -> None:
    query, both = open_extractor("vidkin?views=query"), open_extractor("vidkin")
    assert query.fingerprint != both.fingerprint
    monkeypatch.setattr(type(query), "extract", None)  # nothing is described
    np.testing.assert_array_equal(Calibration.of_extractor(query).background, Calibration.of_extractor(both).background)


def test_an_extractor_that_is_not_of_the_package_is_measured_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extractor = open_extractor("classical")
    monkeypatch.setattr(type(extractor), "fingerprint", "another")
    measured = Calibration.open(open_place(tmp_path), extractor)
    assert measured.background.shape == (96, 10, 128)
    monkeypatch.setattr(extractor, "extract", None)
    assert np.array_equal(Calibration.open(open_place(tmp_path), extractor).background, measured.background)
