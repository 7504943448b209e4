"""Small features, fitted on crops of photographs from scikit-image."""

from __future__ import annotations

import pytest
from research.tests.features.pictures import photographs

from vidkin_research.features import (
    BilinearSimilarity,
    ColorHistogram,
    FisherVectors,
    GradientHistogram,
    HashedHistograms,
    ImageFeature,
    TextonPyramid,
    VisualWords,
    WaveletSignature,
)

NAMES = ("wavelet", "color", "words", "fisher", "hog", "textons", "hash_kpca", "oasis")


@pytest.fixture(scope="session")
def features() -> dict[str, ImageFeature]:
    """All eight features by name."""
    pictures = photographs(24)
    words = VisualWords.fit(pictures, words=24)
    hashed = HashedHistograms.fit(pictures, words=words, hashes=64, length=8)
    oasis = BilinearSimilarity.fit(hashed, hashed.describe(pictures), [(0, 1, 12), (6, 7, 18), (12, 13, 0)])
    fisher = FisherVectors.fit(pictures, gaussians=4, length=8)
    every: tuple[ImageFeature, ...] = (
        *(WaveletSignature(), ColorHistogram(), words, fisher, GradientHistogram()),
        *(TextonPyramid.fit(pictures, textons=32), hashed, oasis),
    )
    return {feature.name: feature for feature in every}


@pytest.fixture(params=NAMES)
def feature(request: pytest.FixtureRequest, features: dict[str, ImageFeature]) -> ImageFeature:
    """Each of the eight features, one at a time."""
    return features[request.param]
