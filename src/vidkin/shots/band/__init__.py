"""The detector ``band``: the band of a video's self-similarity, read by a small network."""

from vidkin.shots.band.detector import BandDetector
from vidkin.shots.band.features import BAND_CHANNELS, BAND_LAGS, BandFeatures, band_features
from vidkin.shots.band.network import TransitionNetwork, TransitionThresholds
from vidkin.shots.band.training import LabeledSequence, fit_thresholds, sequence_scores, train_transitions

__all__ = [
    "BAND_CHANNELS",
    "BAND_LAGS",
    "BandDetector",
    "BandFeatures",
    "LabeledSequence",
    "TransitionNetwork",
    "TransitionThresholds",
    "band_features",
    "fit_thresholds",
    "sequence_scores",
    "train_transitions",
]
