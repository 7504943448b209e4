"""What `train_cuts.py` and `train_gradual.py` share: their networks, proposals with labels, and the scores of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch.nn import functional

from vidkin.features.sessions import shipped_encoder
from vidkin.media import iter_planes
from vidkin.shots.band import TransitionReader
from vidkin.shots.cuts import GradualModel, Proposal, ProposalMaker, ProposalScore
from vidkin.shots.frame_vectors import GRID
from vidkin_research.detectors.band_network import TransitionNetwork
from vidkin_research.made import Film

UNITS, STEPS, DECAY, SEEDS = 16, 1200, 2e-3, 3
_BATCH, _RATE, _FURTHER_RATE = 16, 4e-3, 1.2e-3


def label_proposals(path: Path, film: Film, network: TransitionReader) -> Iterator[tuple[Proposal, bool]]:
    """Proposals in an encoded film, and whether they are right; doubtful ones are left out."""
    maker = ProposalMaker(network, GradualModel.load().network, shipped_encoder())
    for planes in iter_planes(path, height=GRID[0], width=GRID[1]):
        maker.push(planes)
    maker.finish()
    for proposal in maker.hard:
        near = any(abs(proposal.first - cut) <= 1 for cut in film.hard)
        inside = any(first - 2 <= proposal.first <= last + 2 for first, last in film.gradual)
        if not inside and (proposal.first in film.hard or not near):
            yield proposal, proposal.first in film.hard
    for proposal in maker.gradual:
        first, last = proposal.first, proposal.last
        right = any(
            min(last, end) - max(first, start) >= 0.3 * min(last - first + 1, end - start + 1)
            for start, end in film.gradual
        )
        if right or not any(first - 1 <= cut <= last + 1 for cut in film.hard):
            yield proposal, right


def fit_score(rows: Sequence[tuple[Proposal, bool]]) -> ProposalScore:
    """Cross-entropy with decay; the sum of several networks, of one seed each, as one with the units of all."""
    numbers = torch.tensor([proposal.numbers for proposal, _ in rows])
    right = torch.tensor([float(correct) for _, correct in rows])
    mean, deviation = numbers.mean(0), numbers.std(0) + 1e-3
    values = ((numbers - mean) / deviation).clamp(-4, 4)
    weights, bias = torch.zeros(values.shape[1]), 0.0
    units: list[list[float]] = []
    shares: list[float] = []
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        enter, leave = torch.nn.Linear(values.shape[1], UNITS), torch.nn.Linear(UNITS, 1)
        direct = torch.nn.Linear(values.shape[1], 1, bias=False)
        parameters = [*enter.parameters(), *leave.parameters(), *direct.parameters()]
        optimizer = torch.optim.Adam(parameters, 0.01)
        for _ in range(STEPS):
            logits = (leave(torch.tanh(enter(values))) + direct(values))[:, 0]
            decay = sum((matrix**2).sum() for matrix in (enter.weight, leave.weight, direct.weight))
            loss = functional.binary_cross_entropy_with_logits(logits, right) + DECAY * decay
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            weights += direct.weight[0] / SEEDS
            bias += leave.bias.item() / SEEDS
            units += torch.cat([enter.weight, enter.bias[:, None]], 1).tolist()
            shares += (leave.weight[0] / SEEDS).tolist()
    return ProposalScore(
        means=_rounded(mean.tolist()),
        deviations=_rounded(deviation.tolist()),
        weights=_rounded(weights.tolist()),
        bias=round(bias, 5),
        units=tuple(_rounded(unit) for unit in units),
        shares=_rounded(shares),
    )


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(value, 5) for value in values)


def learn_transitions(
    features: torch.Tensor,
    wanted: torch.Tensor,
    *,
    epochs: int,
    seed: int,
    weights: tuple[float, float, float],
    start: TransitionNetwork | None = None,
    **shape: int,
) -> TransitionNetwork:
    """A network with five answers; a cut is one frame among hundreds, so it weighs more.

    Args:
        features: [N, T, C].
        wanted: [N, T, 5].
        epochs: Number of passes.
        seed: Decides initial weights and order.
        weights: What cuts, gradual transitions and the kinds of these weigh in the loss.
        start: The network to go on from, more carefully; None begins anew.
        shape: Width and channels of the network.
    """
    torch.manual_seed(seed)
    network = TransitionNetwork(outputs=5, **shape) if start is None else start.train()
    rate = _RATE if start is None else _FURTHER_RATE
    optimizer = torch.optim.AdamW(network.parameters(), rate, weight_decay=1e-3)
    steps = len(features) // _BATCH * epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    for _ in range(epochs):
        order = torch.randperm(len(features))
        for start in range(0, len(features) - _BATCH + 1, _BATCH):
            chosen = order[start : start + _BATCH]
            terms = _terms(network(features[chosen]), wanted[chosen])
            optimizer.zero_grad()
            sum(weight * term for weight, term in zip(weights, terms, strict=True)).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return network.eval()


def _terms(logits: torch.Tensor, wanted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """How wrong the answers are: about cuts, about gradual transitions, and about the kinds of these."""
    hard = functional.binary_cross_entropy_with_logits(logits[..., 0], wanted[..., 0], pos_weight=torch.tensor(4.0))
    gradual = functional.binary_cross_entropy_with_logits(logits[..., 1], wanted[..., 1])
    inside = wanted[..., 1] > 0
    return hard, gradual, functional.cross_entropy(logits[..., 2:][inside], wanted[..., 2:][inside].argmax(-1))
