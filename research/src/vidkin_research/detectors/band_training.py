"""Train the transition network on sequences with known cuts, and choose its thresholds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from vidkin.errors import InvalidArgumentError
from vidkin.media import FramePlanes
from vidkin.metric.measures import DetectionScores, boundary_scores
from vidkin.shots.band import Probabilities, Rows, band_features
from vidkin.training.engine import read_terms, take_steps
from vidkin.training.schedules import OneCycle
from vidkin_research.detectors.band import TransitionThresholds, cuts_from_probabilities
from vidkin_research.detectors.band_network import TransitionNetwork
from vidkin_research.learned.judging import BoundaryLabels, cut_boundaries

__all__ = ["LabeledSequence", "fit_thresholds", "sequence_scores", "train_transitions"]

_BATCH = 16
_RATE = 4e-3
_DECAY = 1e-3
_CLIP = 1.0
# Higher weight of cuts, which are one frame among hundreds.
_CUT_WEIGHT, _CUT_SHARE = 4.0, 2.0
_GRID = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


@dataclass(frozen=True, slots=True, eq=False)
class LabeledSequence:
    """Features of a sequence with its cuts.

    Attributes:
        features: [T, C] features from `band_features`.
        labels: Cuts and transitions of the sequence.
    """

    features: Rows
    labels: BoundaryLabels

    @classmethod
    def from_planes(
        cls, planes: FramePlanes, hard: Sequence[int], gradual: Sequence[tuple[int, int]]
    ) -> LabeledSequence:
        """Make a sequence from frames, the first frames of new shots, and [first, last] of transitions."""
        return cls(band_features(planes), BoundaryLabels(tuple(hard), tuple(gradual)))


def train_transitions(
    sequences: Sequence[LabeledSequence],
    *,
    epochs: int = 24,
    seed: int = 0,
    on_progress: Callable[[int, int, float], None] | None = None,
) -> TransitionNetwork:
    """Train a new network with the binary cross-entropy of both outputs, AdamW and one cycle of the learning rate.

    Args:
        sequences: At least 16 sequences, all of the same length.
        epochs: Number of passes over the sequences.
        seed: Seed of initial weights and order. The same machine, sequences and seed give the same network.
        on_progress: Callback that receives (epoch, number of epochs, mean loss).

    Returns:
        The network with thresholds of 1/2; `fit_thresholds` finds better ones.
    """
    lengths = {len(sequence.features) for sequence in sequences}
    if len(sequences) < _BATCH or len(lengths) != 1:
        raise InvalidArgumentError(
            f"sequences must be at least {_BATCH}, all of one length, got {len(sequences)} of lengths "
            f"{sorted(lengths)[:5]}"
        )
    features = torch.from_numpy(np.stack([sequence.features for sequence in sequences]))
    targets = torch.zeros(*features.shape[:2], 2)
    for target, sequence in zip(targets, sequences, strict=True):
        target[list(sequence.labels.hard), 0] = 1
        for first, last in sequence.labels.gradual:
            target[first : last + 1, 1] = 1
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = TransitionNetwork()
        optimizer = torch.optim.AdamW(network.parameters(), _RATE, weight_decay=_DECAY)
        per_epoch = len(sequences) // _BATCH
        losses: list[float] = []
        # Each epoch has a new order; sequences that do not fill the last batch are left out.
        batches = (
            (features[chosen], targets[chosen])
            for _ in range(epochs)
            for chosen in torch.split(torch.randperm(len(features)), _BATCH)
            if len(chosen) == _BATCH
        )
        for step in take_steps(
            network,
            _objective,
            optimizer,
            batches,
            schedule=OneCycle(per_epoch * epochs),
            clip=_CLIP,
        ):
            losses.append(read_terms([step])[0]["loss"])
            if on_progress is not None and step.number % per_epoch == 0:
                on_progress(step.number // per_epoch, epochs, sum(losses[-per_epoch:]) / per_epoch)
    return network.eval()


def fit_thresholds(
    network: TransitionNetwork, sequences: Sequence[LabeledSequence], *, tolerance: float = 2
) -> TransitionThresholds:
    """Choose from a small grid the thresholds with the highest F1 over these sequences (the first if equal)."""
    probabilities = [network.probabilities(sequence.features) for sequence in sequences]
    best, chosen = -1.0, network.thresholds
    for hard in _GRID:
        for gradual in _GRID:
            thresholds = TransitionThresholds(hard=hard, gradual=gradual)
            scores = _score(probabilities, sequences, thresholds, tolerance)
            if scores.f1 > best:
                best, chosen = scores.f1, thresholds
    return chosen


def sequence_scores(
    network: TransitionNetwork, sequences: Sequence[LabeledSequence], *, tolerance: float = 2
) -> DetectionScores:
    """Score the transitions that the network finds in sequences with its thresholds."""
    probabilities = [network.probabilities(sequence.features) for sequence in sequences]
    return _score(probabilities, sequences, network.thresholds, tolerance)


def _score(
    probabilities: Sequence[Probabilities],
    sequences: Sequence[LabeledSequence],
    thresholds: TransitionThresholds,
    tolerance: float,
) -> DetectionScores:
    total = DetectionScores(0, 0, 0)
    for sequence, values in zip(sequences, probabilities, strict=True):
        detected = cut_boundaries(cuts_from_probabilities(values, thresholds))
        total += boundary_scores(detected, sequence.labels.boundaries, tolerance=tolerance)
    return total


def _objective(network: TransitionNetwork, batch: tuple[torch.Tensor, torch.Tensor]) -> dict[str, torch.Tensor]:
    features, targets = batch
    logits = network(features)
    weight = torch.tensor(_CUT_WEIGHT, device=logits.device)
    hard = functional.binary_cross_entropy_with_logits(logits[..., 0], targets[..., 0], pos_weight=weight)
    gradual = functional.binary_cross_entropy_with_logits(logits[..., 1], targets[..., 1])
    return {"loss": _CUT_SHARE * hard + gradual}
