"""Training of the network on drawn sequences; every batch follows from the seed and the number of its step."""

from __future__ import annotations

import copy
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from vidkin._base.files import replace_file
from vidkin_research.cut_network.drawn import Pool, targets
from vidkin_research.cut_network.network import CutNetwork, Measured

__all__ = ["CHECKPOINT", "STORED", "Recipe", "load_network", "loss_terms", "save_network", "train"]

CHECKPOINT = "network.safetensors"

STORED = Path(__file__).with_name("data") / CHECKPOINT
"""The network whose figures are in ``research/results/shots.md``."""

logger = logging.getLogger(__name__)

# Sequences that the scale of the measures is taken from, and steps between two reports.
_SCALED, _REPORT = 32, 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a network learns.

    Attributes:
        steps: Number of batches.
        minutes: Time after which training has come to its end, whatever the number of steps; None for no such limit.
        batch: Sequences in a batch.
        length: Frames of a sequence.
        width: Channels over time.
        rate: Highest learning rate; it rises over a tenth of the steps and falls as a cosine.
        decay: Of AdamW.
        spliced: Share of sequences with new transitions between shots.
        lit: Share of sequences under stage lights that change at once.
        dips: Share of sequences with a moment of a plain color within a shot.
        titles: Share of sequences with titles that come and go.
        short: Share of batches of very short films.
        average: Decay of the running mean of the weights, which is what is kept.
        seed: Source of everything random.
        held: Sequences in memory, each of which is used several times, mirrored or not: they cost more than a step.
        new: Sequences of a step that are new; the oldest ones go.
        shares: How often each group of pieces is drawn from.
        weights: What cuts, jumps, being inside, kinds and extents weigh.
        cut: What a frame with a cut weighs, as one of hundreds.
    """

    steps: int = 1500
    minutes: float | None = None
    batch: int = 8
    length: int = 208
    width: int = 96
    rate: float = 3e-3
    decay: float = 1e-3
    spliced: float = 0.45
    lit: float = 0.12
    dips: float = 0.1
    titles: float = 0.12
    short: float = 0.06
    average: float = 0.995
    seed: int = 0
    held: int = 240
    new: int = 2
    shares: Mapping[str, float] = field(
        default_factory=lambda: {
            "takes": 0.14,
            "films": 0.24,
            "gradual": 0.15,
            "mixed": 0.08,
            "families": 0.18,
            "little": 0.07,
            "restless": 0.04,
            "families-restless": 0.07,
            "slides": 0.03,
            "whips": 0.05,
        }
    )
    weights: tuple[float, float, float, float, float] = (4.0, 0.3, 2.0, 0.4, 0.3)
    cut: float = 4.0


def loss_terms(answers: torch.Tensor, wanted: torch.Tensor, cut: float) -> tuple[torch.Tensor, ...]:
    """Errors of answers [B, T, 8] about cuts, jumps, being inside of a transition, its kind, and its extent."""
    hard = functional.binary_cross_entropy_with_logits(
        answers[..., 0], wanted[..., 0], pos_weight=torch.tensor(cut, device=answers.device)
    )
    inside = functional.binary_cross_entropy_with_logits(answers[..., 2], wanted[..., 2])
    known, within = wanted[..., 1] >= 0, wanted[..., 2] > 0
    nothing = answers.sum() * 0
    jump = nothing
    if known.any():
        jump = functional.binary_cross_entropy_with_logits(answers[..., 1][known], wanted[..., 1][known])
    if not within.any():
        return hard, jump, inside, nothing, nothing
    kind = functional.cross_entropy(answers[..., 3:6][within], wanted[..., 3:6][within].argmax(-1))
    extent = functional.smooth_l1_loss(answers[..., 6:][within], wanted[..., 6:][within])
    return hard, jump, inside, kind, extent


def train(
    pool: Pool,
    recipe: Recipe,
    work: Path,
    *,
    start: CutNetwork | None = None,
    on_step: Callable[[int, CutNetwork], None] | None = None,
    every: int = 200,
) -> CutNetwork:
    """A network that learned from drawn sequences.

    Args:
        pool: Where sequences come from.
        recipe: How it learns.
        work: Folder for its checkpoint, ``network.safetensors``.
        start: A network to go on from; None begins anew.
        on_step: Callback that receives the number of steps done and the averaged network, every so many steps.
        every: Steps between two calls, which store a checkpoint as well.
    """
    torch.manual_seed(recipe.seed)
    network = CutNetwork(recipe.width) if start is None else copy.deepcopy(start).train()
    drawn = _Drawn(pool, recipe, network)
    if start is None:
        network.fit_scale(drawn.rows())
    averaged = copy.deepcopy(network)
    optimizer = torch.optim.AdamW(network.parameters(), recipe.rate, weight_decay=recipe.decay)
    began, totals = time.monotonic(), np.zeros(5)
    step, share = 0, 0.0
    while share < 1:
        rate = recipe.rate * min(1.0, 10 * share + 0.02) * (0.5 + 0.5 * math.cos(math.pi * share))
        for group in optimizer.param_groups:
            group["lr"] = rate
        luma, chroma, measured, wanted = drawn.batch(step)
        terms = loss_terms(network.answer(luma, chroma, measured), wanted, recipe.cut)
        optimizer.zero_grad()
        loss = torch.stack([weight * term for weight, term in zip(recipe.weights, terms, strict=True)]).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        decay = min(recipe.average, (1 + step) / (10 + step))
        with torch.no_grad():
            for mean, value in zip(averaged.parameters(), network.parameters(), strict=True):
                mean.lerp_(value, 1 - decay)
        totals += [float(term.detach()) for term in terms]
        step, minutes = step + 1, (time.monotonic() - began) / 60
        share = max(step / recipe.steps, minutes / recipe.minutes if recipe.minutes else 0.0)
        if step % _REPORT == 0:
            words = ", ".join(f"{total / _REPORT:.4f}" for total in totals)
            logger.info("step %d, %.1f minutes: %s", step, minutes, words)
            totals[:] = 0
        if step % every == 0 or share >= 1:
            save_network(averaged, work / CHECKPOINT, step)
            if on_step is not None:
                on_step(step, averaged)
    return averaged.eval()


def save_network(network: CutNetwork, path: Path, step: int) -> None:
    """Write a checkpoint, a safetensors file."""
    state = {name: value.detach().clone().contiguous() for name, value in network.state_dict().items()}
    with replace_file(path) as temporary:
        save_file(state, str(temporary), {"steps": str(step)})


def load_network(path: Path) -> CutNetwork:
    """The network of a checkpoint."""
    state = load_file(str(path))
    network = CutNetwork(state["enter.weight"].shape[0])
    network.load_state_dict(state)
    return network.eval()


class _Drawn:
    """Sequences in memory with what is measured of them."""

    def __init__(self, pool: Pool, recipe: Recipe, network: CutNetwork) -> None:
        self._pool, self._recipe, self._measures = pool, recipe, network.measures
        self._held: deque[tuple[torch.Tensor, ...]] = deque(maxlen=recipe.held)
        self._add(min(_SCALED, recipe.held), np.random.default_rng((recipe.seed, 1 << 30)))

    def rows(self) -> torch.Tensor:
        """All measures in memory, [N, C]."""
        return torch.cat([rows for _, _, rows, _, _ in self._held])

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor, Measured, torch.Tensor]:
        """Luma, chroma, measures and targets of the sequences of a step."""
        recipe = self._recipe
        random = np.random.default_rng((recipe.seed, step))
        self._add(recipe.new, random)
        places = [len(self._held) - 1 - place for place in range(recipe.new)]
        places += random.choice(len(self._held) - recipe.new, recipe.batch - recipe.new, replace=False).tolist()
        luma, chroma, rows, maps, wanted = map(torch.stack, zip(*(self._held[place] for place in places), strict=True))
        if random.random() < recipe.short:
            return self._cut_short(luma, chroma, wanted, random)
        # What is measured of a mirrored frame is the same, mirrored.
        sides = [side for side in (-1, -2) if random.random() < (0.5 if side == -1 else 0.15)]
        if sides:
            luma, chroma, maps = (torch.flip(values, sides) for values in (luma, chroma, maps))
        return luma, chroma, Measured(rows, maps), wanted

    @torch.no_grad()
    def _cut_short(
        self, luma: torch.Tensor, chroma: torch.Tensor, wanted: torch.Tensor, random: np.random.Generator
    ) -> tuple[torch.Tensor, torch.Tensor, Measured, torch.Tensor]:
        """Films of a few frames, most of them with a cut."""
        count = min(int(random.integers(2, 30)), luma.shape[1])
        parts = []
        for rows in zip(luma, chroma, wanted, strict=True):
            cuts = np.flatnonzero(rows[2][:, 0].numpy())
            frame = (
                int(random.choice(cuts)) if len(cuts) and random.random() < 0.7 else int(random.integers(len(rows[0])))
            )
            first = min(max(0, frame - int(random.integers(1, count))), len(rows[0]) - count)
            parts.append([values[first : first + count] for values in rows])
        luma, chroma, wanted = map(torch.stack, zip(*parts, strict=True))
        return luma, chroma, self._measures(luma, chroma), wanted

    @torch.no_grad()
    def _add(self, count: int, random: np.random.Generator) -> None:
        recipe = self._recipe
        for _ in range(count):
            piece = self._pool.draw(
                recipe.length, random, spliced=recipe.spliced, lit=recipe.lit, dips=recipe.dips, titles=recipe.titles
            )
            luma, chroma = (torch.from_numpy(np.ascontiguousarray(rows)) for rows in (piece.luma, piece.chroma))
            measured = self._measures(luma[None], chroma[None])
            self._held.append((luma, chroma, measured.rows[0], measured.maps[0], torch.from_numpy(targets(piece))))
