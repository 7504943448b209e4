"""Training of the network of bands, on noise that changes once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.shots.test_band import noise, planes_of
from vidkin.errors import InvalidArgumentError
from vidkin_research.detectors.band import cuts_from_probabilities
from vidkin_research.detectors.band_network import TransitionNetwork
from vidkin_research.detectors.band_training import LabeledSequence, fit_thresholds, train_transitions
from vidkin_research.learned.judging import evaluate_cuts


def sequences(count: int, length: int = 64) -> list[LabeledSequence]:
    """Noise that changes once: learnable in seconds."""
    made = []
    for seed in range(count):
        cut = int(np.random.default_rng(seed).integers(10, length - 10))
        shots = [np.repeat(noise(1, 2 * seed), cut, 0), np.repeat(noise(1, 2 * seed + 1), length - cut, 0)]
        made.append(LabeledSequence.from_planes(planes_of(np.concatenate(shots)), (cut,), ()))
    return made


def test_training_learns_and_is_deterministic() -> None:
    made = sequences(40)
    losses: list[float] = []
    network = train_transitions(made[:32], epochs=40, seed=1, on_progress=lambda *args: losses.append(args[2]))
    assert losses[-1] < losses[0] / 10
    network.thresholds = fit_thresholds(network, made[:32])
    found = [
        evaluate_cuts([(open_cuts(network, sequence), sequence.labels)], tolerance=0).every.f1 for sequence in made[32:]
    ]
    assert np.mean(found) == 1.0
    again = train_transitions(made[:32], epochs=2, seed=7)
    twice = train_transitions(made[:32], epochs=2, seed=7)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), twice.parameters(), strict=True))


def open_cuts(network: TransitionNetwork, sequence: LabeledSequence) -> list:
    return list(cuts_from_probabilities(network.probabilities(sequence.features), network.thresholds))


def test_training_needs_sequences_of_one_length() -> None:
    made = sequences(16)
    with pytest.raises(InvalidArgumentError, match="sequences must be at least 16, all of one length, got 15"):
        train_transitions(made[:15])
    with pytest.raises(InvalidArgumentError, match=r"of lengths \[32, 64\]"):
        train_transitions([*made[:15], *sequences(1, 32)])
