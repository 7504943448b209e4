"""Train what the default shot detector finds gradual transitions with, as it ships in the package.

    python benchmarks/train_gradual.py --clips FOLDER [FOLDER ...] --photographs FOLDER [FOLDER ...] \
        [--leave-out benchmarks/clips_with_cuts.txt] --work FOLDER --output src/vidkin/shots/data/gradual.safetensors

Clips are videos of one shot each. Those of the test split of `vidkin benchmark shots` take no part, nor every fifth
photograph, nor any family of transitions that is held back. Two steps: a network learns from composed sequences
(`compose_gradual`) whether each frame lies in a transition, and in which kind; a small network learns from what is
measured at its proposals, in composed videos with one transition or a negative each and in the clips themselves, which
of them are right. The folder of work keeps sequences and videos for a later call. Composing takes half a second of
processor time a sequence, learning two minutes in all.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cut_scores import fit_score, learn_transitions
from train_band import files
from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.features.sessions import shipped_encoder
from vidkin.media import FramePlanes, iter_planes
from vidkin.rendering.machine import describe_machine
from vidkin.shots.band import BAND_CHANNELS, BandFeatures
from vidkin.shots.between import BETWEEN_CHANNELS, BetweenFeatures
from vidkin.shots.cut_numbers import GRID
from vidkin.shots.cuts import CutModel, GradualModel, Proposal, ProposalMaker
from vidkin.shots.training.transitions import TransitionNetwork, write_network
from vidkin_research.made import GRADUAL_JOINS
from vidkin_research.made.footage import Footage, read_footage
from vidkin_research.made.gradual_sequences import compose_gradual
from vidkin_research.made.negatives import NEGATIVE_FAMILIES
from vidkin_research.made.transitions import TRANSITION_FAMILIES
from vidkin_research.shots.composed import build_transitions
from vidkin_research.shots.extents import LabeledTransition
from vidkin_research.shots.material import TEST_CLIPS

LENGTH, CHANNELS, WIDTH = 288, BAND_CHANNELS + BETWEEN_CHANNELS, 48
PHOTOGRAPHS, MOVED = 250, 30
Rows = NDArray[np.float32]


def choose(given: argparse.Namespace) -> tuple[list[Path], list[Path]]:
    """Clips and photographs that take part."""
    left_out = set(given.leave_out.read_text(encoding="utf-8").split()) if given.leave_out else set()
    clips = [path for path in files(given.clips, VIDEO_EXTENSIONS) if path.name not in left_out]
    pictures = [path for place, path in enumerate(files(given.photographs, IMAGE_EXTENSIONS)) if place % 5]
    return [path for path in clips if not path.name.startswith(TEST_CLIPS)], pictures


def sequence(footage: Footage, seed: int) -> tuple[Rows, Rows]:
    """Features [T, 78] of a composed sequence, and the answers wanted [T, 5]."""
    made = compose_gradual(footage, LENGTH, seed=seed)
    wanted = np.zeros((LENGTH, 5), np.float32)
    wanted[list(made.hard), 0] = 1
    for (first, last), kind in zip(made.gradual, made.kinds, strict=True):
        wanted[first : last + 1, [1, 2 + GRADUAL_JOINS.index(kind)]] = 1
    luma = np.ascontiguousarray(made.pictures[:, 0, ::2, ::2])
    chroma = np.ascontiguousarray(made.pictures[:, 1:, ::4, ::4])
    band, between = BandFeatures(keep_colors=True), BetweenFeatures()
    band.push(FramePlanes(luma, chroma, np.arange(LENGTH) / 25.0))
    rows = band.take()
    return np.concatenate([rows, np.concatenate([between.push(band.take_colors()), between.finish()])], 1), wanted


def stored_sequences(clips: Sequence[Path], pictures: Sequence[Path], given: argparse.Namespace) -> tuple[Rows, Rows]:
    """Features and wanted answers of all sequences, composed where they are not stored yet."""
    store = given.work / f"sequences-{given.seed}-{given.sequences}.npz"
    if not store.is_file():
        footage = read_footage(clips, pictures[:: max(1, len(pictures) // PHOTOGRAPHS)])
        made = [sequence(footage, 1_000_000 * given.seed + number) for number in range(given.sequences)]
        features, wanted = (np.stack([row[place] for row in made]) for place in (0, 1))
        np.savez(store, features=features, wanted=wanted)
    with np.load(store) as stored:
        return stored["features"], stored["wanted"]


def label_gradual(
    path: Path, label: LabeledTransition | None, network: TransitionNetwork
) -> Iterator[tuple[Proposal, bool]]:
    """Gradual proposals in a video with one transition or none, and whether they are right; doubtful ones are left
    out."""
    maker = ProposalMaker(CutModel.load().network, network, shipped_encoder())
    for planes in iter_planes(path, height=GRID[0], width=GRID[1]):
        maker.push(planes)
    maker.finish()
    for proposal in maker.gradual:
        first, last = proposal.first, proposal.last
        if label is None:
            yield proposal, False
        elif label.kind in GRADUAL_JOINS:
            shared = min(last, label.end) - max(first, label.start)
            yield proposal, shared >= 0.3 * min(last - first + 1, label.end - label.start + 1)
        elif not first - 1 <= label.start <= last + 1:
            yield proposal, False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=Path, nargs="+", required=True)
    parser.add_argument("--photographs", type=Path, nargs="+", required=True)
    parser.add_argument("--leave-out", type=Path, help="file with names of clips that hold cuts")
    parser.add_argument("--sequences", type=int, default=800)
    parser.add_argument("--epochs", type=int, default=26)
    parser.add_argument("--videos", type=int, default=10, help="composed videos of each family")
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.work.mkdir(parents=True, exist_ok=True)
    clips, pictures = choose(given)
    features, wanted = (torch.from_numpy(rows) for rows in stored_sequences(clips, pictures, given))
    network = learn_transitions(
        features, wanted, epochs=given.epochs, seed=given.seed, weights=(1.0, 2.0, 0.3), width=WIDTH, channels=CHANNELS
    )
    families = [name for name, family in TRANSITION_FAMILIES.items() if not family.held_back]
    takes = clips + pictures[:: max(1, len(pictures) // MOVED)]
    videos = build_transitions(
        takes, given.work / "videos", count=given.videos, seed=given.seed, families=(*families, *NEGATIVE_FAMILIES)
    )
    labeled = [(video.path, video.label) for video in videos] + [(path, None) for path in clips]
    rows = [row for path, label in labeled for row in label_gradual(path, label, network)]
    provenance = {
        "made_by": "benchmarks/train_gradual.py",
        "seed": given.seed,
        "sequences": given.sequences,
        "epochs": given.epochs,
        "videos": given.videos,
        "clips": len(clips),
        "proposals": [len(rows), sum(right for _, right in rows)],
        "machine": describe_machine(),
    }
    model = GradualModel(network, fit_score(rows), given.threshold, provenance)
    write_network(network, given.output, model.notes())
    given.output.with_suffix(".json").write_text(json.dumps(provenance, indent=1) + "\n", encoding="utf-8")
    print(f"{given.output}: proposals, and those that are right {provenance['proposals']}")


if __name__ == "__main__":
    main()
