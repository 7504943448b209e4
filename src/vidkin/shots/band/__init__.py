"""The detector ``band``: the band of a video's self-similarity, read by a small network."""

from vidkin.shots.band.detector import BandDetector
from vidkin.shots.band.features import BAND_CHANNELS, BAND_LAGS, BandFeatures, band_features
from vidkin.shots.band.network import TransitionNetwork, TransitionThresholds

__all__ = [
    "BAND_CHANNELS",
    "BAND_LAGS",
    "BandDetector",
    "BandFeatures",
    "TransitionNetwork",
    "TransitionThresholds",
    "band_features",
]
