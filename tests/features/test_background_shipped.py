"""The embeddings of unrelated frames included for the default extractor."""

from __future__ import annotations

import numpy as np

from tests.support.videos import photograph
from vidkin.features import open_extractor
from vidkin.index import Calibration
from vidkin.match import levels
from vidkin.media import Frames

NAMES = ("astronaut", "coffee", "chelsea", "rocket")


def test_shipped_frames_are_unrelated_to_each_other_and_to_photographs() -> None:
    extractor = open_extractor("vidkin", device="cpu")
    cohort = Calibration.of_extractor(extractor).background[:, 0]
    assert cohort.shape == (1000, 256)
    np.testing.assert_allclose(np.linalg.norm(cohort, axis=1), 1, atol=1e-3)
    cosines = (cohort @ cohort.T)[np.triu_indices(len(cohort), 1)]
    assert abs(float(cosines.mean())) < 0.05
    assert float(np.quantile(cosines, 0.99)) < 0.35
    for name in NAMES:
        (vector,) = extractor.extract(Frames(photograph(name)[None], np.zeros(1))).whole[:, 0]
        # The cohort contains none of the photographs, so the nearest cosine shows what unrelated frames reach.
        assert float((cohort @ vector).max()) < 0.6
        assert 0.05 < float(levels(vector[None].astype(np.float32), cohort)[0]) < 0.5


def test_other_extractors_are_calibrated_on_background_photographs() -> None:
    background = Calibration.of_extractor(open_extractor("squares", device="cpu")).background
    assert background.shape == (96, 1, 128)
