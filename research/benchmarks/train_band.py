"""Train the network of the shot detector `band`, as it ships in vidkin-research.

    python research/benchmarks/train_band.py --clips FOLDER [FOLDER ...] --photographs FOLDER --hold-out NAME \
        [NAME ...] --output research/src/vidkin_research/detectors/data/band.safetensors

Clips are videos of one shot each; those whose path in their folder starts with a held-out name are kept apart and make
the test split that `vidkin benchmark shots` composes its videos of. Photographs add scenes. Sequences are composed of
the rest (`vidkin_research.made.sequences`); one in eight of them is not trained on and chooses the thresholds. No
edited video takes part in any of it. About 10 minutes on one core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.media import FramePlanes
from vidkin_research.detectors.band_training import (
    LabeledSequence,
    fit_thresholds,
    sequence_scores,
    train_transitions,
)
from vidkin_research.made.footage import Footage, read_footage
from vidkin_research.made.sequences import compose

LENGTH = 256


def files(folders: Sequence[Path], extensions: frozenset[str]) -> list[Path]:
    """All files with one of these extensions, sorted."""
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix.lower() in extensions)


def held_out(path: Path, folders: Sequence[Path], names: Sequence[str]) -> bool:
    folder = next(folder for folder in folders if path.is_relative_to(folder))
    return path.relative_to(folder).as_posix().startswith(tuple(names))


def sequences(footage: Footage, count: int, seed: int) -> Iterator[LabeledSequence]:
    """Composed at twice the detector's grid and sampled from there, as decoded frames are."""
    for number in range(count):
        made = compose(footage, LENGTH, seed=seed * 1_000_000 + number)
        luma = np.ascontiguousarray(made.pictures[:, 0, ::2, ::2])
        chroma = np.ascontiguousarray(made.pictures[:, 1:, ::4, ::4])
        planes = FramePlanes(luma, chroma, np.arange(LENGTH) / 25.0)
        yield LabeledSequence.from_planes(planes, made.hard, made.gradual)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=Path, nargs="+", required=True)
    parser.add_argument("--photographs", type=Path, nargs="*", default=[])
    parser.add_argument("--hold-out", nargs="*", default=[])
    parser.add_argument("--sequences", type=int, default=1600)
    parser.add_argument("--most-photographs", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    begun = time.perf_counter()
    clips = [
        path
        for path in files(given.clips, VIDEO_EXTENSIONS)
        if not given.hold_out or not held_out(path, given.clips, given.hold_out)
    ]
    pictures = files(given.photographs, IMAGE_EXTENSIONS)
    order = np.random.default_rng(given.seed).permutation(len(pictures))[: given.most_photographs]
    footage = read_footage(clips, [pictures[place] for place in order])
    print(f"{len(footage.clips)} clips, {len(footage.photographs)} photographs")
    made = list(sequences(footage, given.sequences, given.seed))
    print(f"{len(made)} sequences of {LENGTH} frames, {time.perf_counter() - begun:.0f} s", flush=True)
    kept = len(made) // 8
    network = train_transitions(
        made[kept:],
        epochs=given.epochs,
        seed=given.seed,
        on_progress=lambda epoch, epochs, loss: print(f"epoch {epoch} of {epochs}: {loss:.4f}", flush=True),
    )
    network.thresholds = fit_thresholds(network, made[:kept])
    scores = sequence_scores(network, made[:kept])
    print(f"{network.thresholds}; on the sequences that chose them F1 {scores.f1:.3f}")
    given.output.parent.mkdir(parents=True, exist_ok=True)
    network.save(given.output)
    print(f"{given.output}, {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
