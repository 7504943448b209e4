"""Train the default shot detector, as it ships in the package.

    python benchmarks/train_cuts.py --clips FOLDER [FOLDER ...] --photographs FOLDER [FOLDER ...] \
        --output src/vidkin/shots/cuts/data/cuts.safetensors

Clips are videos of one shot each (those whose names start with ``axis`` are turntables); every eighth is kept for the
rules, as is every eighth photograph. Three steps: a network learns transitions from the bands of composed sequences
(`compose` and `compose_film`); composed films of the kept sources are encoded and searched for proposals; a weighted
sum of what is measured there is fitted for hard cuts, another for gradual transitions. No edited video takes part in
it. The thresholds are to be chosen on videos that are not judged later.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from train_band import IMAGE_SUFFIXES, VIDEO_SUFFIXES, files
from vidkin.datasets import Footage, compose, read_footage
from vidkin.datasets.made.edited_videos import rgb_pictures
from vidkin.datasets.made.films import GRADUAL_JOINS, Film, FilmRecipe, compose_film
from vidkin.media import FramePlanes, iter_planes, write_video
from vidkin.models.frame_extractor import load_frame_encoder
from vidkin.shots.band import TransitionNetwork, band_features
from vidkin.shots.cuts import CutModel, CutRules, Proposal, ProposalMaker, WeightedSum
from vidkin.shots.cuts.frame_vectors import GRID

LENGTH = 192
BATCH, RATE, EPOCHS = 16, 4e-3, 26
ONE_SHOT = FilmRecipe(joins={}, disturbances=dict.fromkeys(FilmRecipe().disturbances, 0.15))
Answers = NDArray[np.float32]


def sequences(footage: Footage, count: int, seed: int) -> Iterator[tuple[torch.Tensor, Answers]]:
    """Band features and wanted answers [T, 5], composed at twice the grid of the band."""
    for number in range(count):
        share = np.random.default_rng((seed, number)).random()
        wanted = np.zeros((LENGTH, 5), np.float32)
        if share < 0.4:
            made = compose(footage, LENGTH, seed=seed * 100_000 + number)
            spans = [(*span, kind) for span, kind in zip(made.gradual, made.kinds, strict=True)]
            pictures, hard = made.pictures, made.hard
        else:
            recipe = FilmRecipe() if share < 0.9 else ONE_SHOT
            film = compose_film(footage, LENGTH, seed=seed * 100_000 + number, recipe=recipe)
            spans = [(join.start, join.end, join.kind) for join in film.joins if join.kind in GRADUAL_JOINS]
            pictures, hard = film.pictures, film.hard
        wanted[list(hard), 0] = 1
        for first, last, kind in spans:
            wanted[first : last + 1, [1, 2 + GRADUAL_JOINS.index(kind)]] = 1
        luma = np.ascontiguousarray(pictures[:, 0, ::2, ::2])
        chroma = np.ascontiguousarray(pictures[:, 1:, ::4, ::4])
        yield band_features(FramePlanes(luma, chroma, np.arange(LENGTH) / 25.0)), wanted


def train(made: Sequence[tuple[torch.Tensor, Answers]], seed: int) -> TransitionNetwork:
    """A network with five answers; a cut is one frame among hundreds, so it weighs more."""
    torch.manual_seed(seed)
    features = torch.stack([row[0] for row in made])
    wanted = torch.from_numpy(np.stack([row[1] for row in made]))
    network = TransitionNetwork(outputs=5)
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=1e-3)
    steps = len(made) // BATCH * EPOCHS
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    for _ in range(EPOCHS):
        order = torch.randperm(len(features))
        for start in range(0, len(features) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            loss = _loss(network(features[chosen]), wanted[chosen])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return network.eval()


def _loss(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    hard = functional.binary_cross_entropy_with_logits(
        logits[..., 0], wanted[..., 0], pos_weight=torch.tensor(4.0)
    )
    gradual = functional.binary_cross_entropy_with_logits(logits[..., 1], wanted[..., 1])
    inside = wanted[..., 1] > 0
    kinds = functional.cross_entropy(logits[..., 2:][inside], wanted[..., 2:][inside].argmax(-1))
    return 2 * hard + gradual + 0.15 * kinds


def labelled(film: Film, network: TransitionNetwork, crf: int) -> Iterator[tuple[Proposal, bool]]:
    """Proposals in a film once it is encoded, and whether they are right; doubtful ones are left out."""
    maker = ProposalMaker(network, load_frame_encoder().fold())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        write_video(path, rgb_pictures(film.pictures), rate=25.0, crf=crf)
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


def fit(rows: Sequence[tuple[Proposal, bool]], *, kept_positive: Sequence[int], decay: float) -> WeightedSum:
    """Logistic regression; weights of numbers that can only speak for a cut are kept from turning negative."""
    numbers = torch.tensor([row[0].numbers for row in rows], dtype=torch.float64)
    right = torch.tensor([row[1] for row in rows], dtype=torch.float64)
    mean, deviation = numbers.mean(0), numbers.std(0) + 1e-6
    weights = torch.zeros(numbers.shape[1] + 1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weights], 0.02)
    for _ in range(3000):
        logits = ((numbers - mean) / deviation) @ weights[:-1] + weights[-1]
        loss = functional.binary_cross_entropy_with_logits(logits, right) + decay * (weights[:-1] ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            weights[list(kept_positive)] = weights[list(kept_positive)].clamp(min=0)
    scaled = weights.detach()[:-1] / deviation
    bias = float(weights.detach()[-1] - (scaled * mean).sum())
    return WeightedSum(tuple(round(float(value), 5) for value in scaled), round(bias, 5))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clips", type=Path, nargs="+", required=True)
    parser.add_argument("--photographs", type=Path, nargs="+", required=True)
    parser.add_argument("--sequences", type=int, default=600)
    parser.add_argument("--films", type=int, default=64)
    parser.add_argument("--most-photographs", type=int, default=600)
    parser.add_argument("--thresholds", type=float, nargs=2, default=(0.3, 0.7), metavar=("HARD", "GRADUAL"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    random = np.random.default_rng(given.seed)
    clips, pictures = files(given.clips, VIDEO_SUFFIXES), files(given.photographs, IMAGE_SUFFIXES)
    pictures = [
        pictures[place] for place in sorted(random.permutation(len(pictures))[: given.most_photographs])
    ]
    learned, kept = (
        [
            [path for place, path in enumerate(paths) if (place % 8 == 0) == last]
            for paths in (clips, pictures)
        ]
        for last in (False, True)
    )
    network = train(list(sequences(read_footage(*learned), given.sequences, given.seed)), given.seed)
    footage = read_footage(*kept, height=144, width=256)
    rows = []
    for number in range(given.films):
        length = int(random.integers(7, 40)) if random.random() < 0.25 else 240
        recipe = FilmRecipe() if random.random() < 0.75 else ONE_SHOT
        film = compose_film(footage, length, seed=50_000 + number, recipe=recipe)
        rows += list(labelled(film, network, int(random.integers(18, 36))))
    hard = [row for row in rows if row[0].kind == "hard"]
    gradual = [row for row in rows if row[0].kind != "hard"]
    rules = CutRules(
        fit(hard, kept_positive=range(6), decay=0.003),
        fit(gradual, kept_positive=(0, 3, 4), decay=0.01),
        *given.thresholds,
    )
    provenance = {"command": "benchmarks/train_cuts.py", "seed": given.seed, "sequences": given.sequences}
    CutModel(network, rules, provenance).save(given.output)
    print(f"{given.output}: {len(hard)} hard and {len(gradual)} gradual proposals")


if __name__ == "__main__":
    main()
