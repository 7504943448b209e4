"""The band of a video's self-similarity: features by hand, and the network that reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vidkin.media import FramePlanes
from vidkin.shots import band
from vidkin.shots.band import BAND_CHANNELS, BAND_LAGS, BandFeatures, TransitionSession, band_features

DATA = Path(band.__file__).with_name("data")


def planes_of(luma: np.ndarray) -> FramePlanes:
    length, height, width = luma.shape
    chroma = np.full((length, 2, height // 2, width // 2), 128, np.uint8)
    return FramePlanes(luma.astype(np.uint8), chroma, np.arange(length) / 25)


def noise(length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (length, 36, 64))


def test_a_still_has_no_distances() -> None:
    features = band_features(planes_of(np.repeat(noise(1), 40, 0)))
    assert features.shape == (40, BAND_CHANNELS)
    assert np.abs(features[:, : 4 * len(BAND_LAGS)]).max() < 2e-3
    assert np.abs(features[:, -4:]).max() == 0


def test_a_cut_shows_at_every_lag_that_spans_it() -> None:
    luma = np.concatenate([np.repeat(noise(1, 1), 20, 0), np.repeat(noise(1, 2), 20, 0)])
    structure = band_features(planes_of(luma))[:, : len(BAND_LAGS)]
    for column, lag in enumerate(BAND_LAGS):
        spans = [t for t in range(lag, 40) if t - lag < 20 <= t]
        others = [t for t in range(40) if t not in spans]
        # Independent unit vectors are sqrt(2) apart.
        assert structure[spans, column] == pytest.approx(2**0.5, abs=0.12)
        assert structure[others, column].max() < 2e-3


def test_structure_does_not_see_brightness() -> None:
    base = np.random.default_rng(3).integers(60, 120, (1, 36, 64))
    luma = np.concatenate([base, base + 80])
    features = band_features(planes_of(luma))
    assert features[1, 0] < 0.02
    assert features[1, len(BAND_LAGS)] > 0.2  # color and brightness
    assert features[1, -4] == pytest.approx(8 * 80 / 255, abs=1e-4)


def test_blocks_change_nothing() -> None:
    whole = planes_of(noise(90))
    expected = band_features(whole)
    parts = BandFeatures()
    for first, last in ((0, 1), (1, 8), (8, 70), (70, 70), (70, 90)):
        parts.push(FramePlanes(whole.luma[first:last], whole.chroma[first:last], whole.timestamps[first:last]))
    np.testing.assert_allclose(parts.take(), expected, atol=1e-6)


def test_no_frames_have_no_features() -> None:
    assert BandFeatures().take().shape == (0, BAND_CHANNELS)


def test_pieces_of_a_long_video_change_nothing() -> None:
    network = TransitionSession(DATA / "cuts.onnx")
    features = np.random.default_rng(0).random((9000, BAND_CHANNELS), np.float32)
    (expected,) = network._session.run(None, {"features": features[None]})
    np.testing.assert_allclose(network.probabilities(features), expected[0], atol=1e-5)
    assert network.probabilities(features[:0]).shape == (0, 5)
