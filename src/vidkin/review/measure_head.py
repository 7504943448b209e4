"""Fit a scorer to verdicts with torch: one weight per dimension, three coefficients and two thresholds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vidkin.match.reviewed import ReviewMeasure
from vidkin.training.engine import take_steps
from vidkin.training.runner import StepStore

_RATE = 0.05

# Regularization strengths: pull dimension weights toward 1, and coefficients toward 0.
_HOLD, _SMALL = 0.5, 0.002


def fit_measure(
    pairs: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]],
    grades: NDArray[np.integer],
    *,
    trained: NDArray[np.bool_],
    center: NDArray[np.float32],
    fingerprint: str,
    steps: int,
    on_step: Callable[[int], None],
) -> tuple[ReviewMeasure, NDArray[np.float32]]:
    """Fit a scorer to the verdicts on pairs.

    Args:
        pairs: Pair features [N, 3] from the index's own scorer (see :data:`vidkin.match.reviewed.PAIR_NUMBERS`), and
            centered descriptors [N, D] of the first and the second videos.
        grades: [N], 0 for different, 1 for same kind, 2 for same.
        trained: [N], whether each pair is used for training.
        center: [D], mean descriptor of the index.
        fingerprint: Fingerprint of the index's features.
        steps: Number of training steps.
        on_step: Callback that receives the number of steps done.

    Returns:
        The scorer, and the weighted cosine similarities [N] of all pairs.
    """
    numbers, ones, others = map(torch.from_numpy, pairs)
    chosen = torch.from_numpy(trained)
    model = _Head(len(center))
    batch = numbers[chosen], ones[chosen], others[chosen], torch.from_numpy(grades)[chosen]
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=0.0)
    StepStore().follow(
        take_steps(model, _objective, optimizer, repeat(batch, steps)),
        model,
        optimizer,
        on_step=lambda step, terms: on_step(step),
    )
    with torch.no_grad():
        cosines = model.cosines(ones, others).numpy()
    return model.measure(fingerprint, center), cosines


class _Head(nn.Module):
    """Dimension weights, coefficients of the pair features, and two thresholds."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.scales = nn.Parameter(torch.zeros(dimensions))
        self.raw = nn.Parameter(torch.full((3,), 2.0))
        self.kind = nn.Parameter(torch.tensor(2.0))
        self.gap = nn.Parameter(torch.tensor(1.0))

    def cosines(self, ones: Tensor, others: Tensor) -> Tensor:
        """Compute weighted cosine similarities [N] of centered descriptors [N, D]."""
        weights = self.scales.exp()
        return torch.cosine_similarity(ones * weights, others * weights)

    def thresholds(self) -> tuple[Tensor, Tensor]:
        """Return the thresholds for ``same kind`` and ``same``."""
        return self.kind, self.kind + nn.functional.softplus(self.gap)

    def measure(self, fingerprint: str, center: NDArray[np.float32]) -> ReviewMeasure:
        """Return the scorer in the form in which it is saved."""
        first, second, third = nn.functional.softplus(self.raw.detach()).tolist()
        kind, same = (float(value.detach()) for value in self.thresholds())
        weights = self.scales.detach().exp().tolist()
        return ReviewMeasure(fingerprint, tuple(center.tolist()), tuple(weights), (first, second, third), kind, same)


def _objective(model: _Head, batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> Mapping[str, Tensor]:
    """Compute the ordinal regression loss: a binary decision per threshold, with both classes weighted equally."""
    numbers, ones, others, grades = batch
    columns = torch.cat([numbers[:, :2], model.cosines(ones, others)[:, None]], dim=1)
    total = columns @ nn.functional.softplus(model.raw)
    loss = _HOLD * model.scales.square().mean() * len(model.scales) ** 0.5
    loss = loss + _SMALL * model.raw.square().sum()
    for level, limit in enumerate(model.thresholds(), start=1):
        answers = (grades >= level).float()
        yes, no = answers.sum(), (1 - answers).sum()
        if yes == 0 or no == 0:
            continue
        weights = answers / yes + (1 - answers) / no
        losses = nn.functional.binary_cross_entropy_with_logits(total - limit, answers, reduction="none")
        loss = loss + (losses * weights).sum() / 2
    return {"loss": loss}
