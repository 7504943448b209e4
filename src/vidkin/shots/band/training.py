"""Training of the transition network on sequences whose cuts are known, and the choice of its thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from vidkin.errors import InvalidArgumentError
from vidkin.media import FramePlanes
from vidkin.metric.measures import Boundary, DetectionScores, boundary_scores
from vidkin.models.engine import read_terms, take_steps
from vidkin.models.schedules import OneCycle
from vidkin.shots.band.features import band_features
from vidkin.shots.band.network import TransitionNetwork, TransitionThresholds
from vidkin.shots.band.rules import cuts_of_probabilities
from vidkin.shots.judging.detections import boundaries_of_cuts

__all__ = ["LabelledSequence", "fit_thresholds", "sequence_scores", "train_transitions"]

_BATCH = 16
_RATE = 4e-3
_DECAY = 1e-3
_CLIP = 1.0
# A cut is one frame among hundreds.
_CUT_WEIGHT, _CUT_SHARE = 4.0, 2.0
_GRID = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


@dataclass(frozen=True, slots=True, eq=False)
class LabelledSequence:
    """Features of a sequence with its cuts.

    Attributes:
        features: [T, C] from `band_features`.
        hard: First frames of new shots.
        gradual: First and last frames of gradual transitions.
    """

    features: torch.Tensor
    hard: tuple[int, ...]
    gradual: tuple[tuple[int, int], ...]

    @classmethod
    def of_planes(
        cls, planes: FramePlanes, hard: Sequence[int], gradual: Sequence[tuple[int, int]]
    ) -> LabelledSequence:
        """From samples of its frames."""
        return cls(band_features(planes), tuple(hard), tuple(gradual))

    @property
    def boundaries(self) -> list[Boundary]:
        """As measures take them."""
        return [*self.hard, *((float(first), float(last)) for first, last in self.gradual)]


def train_transitions(
    sequences: Sequence[LabelledSequence],
    *,
    epochs: int = 24,
    seed: int = 0,
    on_progress: Callable[[int, int, float], None] | None = None,
) -> TransitionNetwork:
    """Train a network from nothing: binary cross-entropy of both answers, AdamW, one cycle of the learning rate.

    Args:
        sequences: All of one length, 16 or more.
        epochs: Passes over them.
        seed: Of weights and order. The same machine, sequences and seed give the same network.
        on_progress: Called with (epoch, epochs, mean loss).

    Returns:
        The network with thresholds of 1/2; `fit_thresholds` chooses better ones.
    """
    lengths = {len(sequence.features) for sequence in sequences}
    if len(sequences) < _BATCH or len(lengths) != 1:
        raise InvalidArgumentError(
            f"training needs {_BATCH} or more sequences of one length, given are {len(sequences)} of lengths "
            f"{sorted(lengths)[:5]}"
        )
    features = torch.stack([sequence.features for sequence in sequences])
    targets = torch.stack([_targets(sequence) for sequence in sequences])
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = TransitionNetwork()
        optimizer = torch.optim.AdamW(network.parameters(), _RATE, weight_decay=_DECAY)
        per_epoch = len(sequences) // _BATCH
        losses: list[float] = []
        for step in take_steps(
            network,
            _objective,
            optimizer,
            _batches(features, targets, epochs),
            schedule=OneCycle(per_epoch * epochs),
            clip=_CLIP,
        ):
            losses.append(read_terms([step])[0]["loss"])
            if on_progress is not None and step.number % per_epoch == 0:
                on_progress(step.number // per_epoch, epochs, sum(losses[-per_epoch:]) / per_epoch)
    return network.eval()


def fit_thresholds(
    network: TransitionNetwork, sequences: Sequence[LabelledSequence], *, tolerance: float = 2
) -> TransitionThresholds:
    """The thresholds of a small grid with the best F1 over these sequences (the first of equals)."""
    probabilities = [network.probabilities(sequence.features).numpy() for sequence in sequences]
    best, chosen = -1.0, network.thresholds
    for hard in _GRID:
        for gradual in _GRID:
            thresholds = TransitionThresholds(hard=hard, gradual=gradual)
            total = DetectionScores(0, 0, 0)
            for sequence, given in zip(sequences, probabilities, strict=True):
                found = boundaries_of_cuts(cuts_of_probabilities(given, thresholds))
                total += boundary_scores(found, sequence.boundaries, tolerance=tolerance)
            if total.f1 > best:
                best, chosen = total.f1, thresholds
    return chosen


def sequence_scores(
    network: TransitionNetwork, sequences: Sequence[LabelledSequence], *, tolerance: float = 2
) -> DetectionScores:
    """What the network finds in sequences, with its thresholds."""
    total = DetectionScores(0, 0, 0)
    for sequence in sequences:
        given = network.probabilities(sequence.features).numpy()
        found = boundaries_of_cuts(cuts_of_probabilities(given, network.thresholds))
        total += boundary_scores(found, sequence.boundaries, tolerance=tolerance)
    return total


def _targets(sequence: LabelledSequence) -> torch.Tensor:
    wanted = np.zeros((len(sequence.features), 2), np.float32)
    wanted[list(sequence.hard), 0] = 1
    for first, last in sequence.gradual:
        wanted[first : last + 1, 1] = 1
    return torch.from_numpy(wanted)


def _batches(
    features: torch.Tensor, targets: torch.Tensor, epochs: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Each epoch's sequences in a new order; the few that do not fill a batch wait for the next epoch."""
    for _ in range(epochs):
        for chosen in torch.split(torch.randperm(len(features)), _BATCH):
            if len(chosen) == _BATCH:
                yield features[chosen], targets[chosen]


def _objective(
    network: TransitionNetwork, batch: tuple[torch.Tensor, torch.Tensor]
) -> dict[str, torch.Tensor]:
    features, targets = batch
    logits = network(features)
    weight = torch.tensor(_CUT_WEIGHT, device=logits.device)
    hard = functional.binary_cross_entropy_with_logits(logits[..., 0], targets[..., 0], pos_weight=weight)
    gradual = functional.binary_cross_entropy_with_logits(logits[..., 1], targets[..., 1])
    return {"loss": _CUT_SHARE * hard + gradual}
