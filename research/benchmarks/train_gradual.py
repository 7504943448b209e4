"""Train what the default shot detector finds gradual transitions with, as it ships in the package.

    python research/benchmarks/train_gradual.py --clips FOLDER [FOLDER ...] --photographs FOLDER [FOLDER ...] \
        [--leave-out research/benchmarks/clips_with_cuts.txt] --work FOLDER \
        --output src/vidkin/shots/data/gradual.safetensors
    python research/benchmarks/train_gradual.py --clips ... --photographs ... --work FOLDER --judge

Clips are videos of one shot each. Those of the test split of `vidkin benchmark shots` take no part, nor every fifth
photograph, nor any family of transitions that is held back. Every fourth recording and every fifth photograph are kept
for choosing settings: --judge composes videos of them, of calm takes and of restless ones (`restless`), and prints what
the installed detector makes of each family. Two steps of learning: a network learns from composed sequences
(`compose_gradual`) whether each frame lies in a transition, and in which kind; a small network learns from what is
measured at its proposals, in composed videos with one transition or a negative each and in the clips themselves, which
of them are right. The folder of work keeps sequences and videos for a later call. Composing takes half a second of
processor time a sequence, learning four minutes in all.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from cut_scores import fit_score, learn_transitions
from train_band import files
from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.features.sessions import shipped_encoder
from vidkin.media import FramePlanes, iter_planes
from vidkin.rendering.machine import describe_machine
from vidkin.shots import detect
from vidkin.shots.band import BAND_CHANNELS, BandFeatures
from vidkin.shots.between import BETWEEN_CHANNELS, BetweenFeatures
from vidkin.shots.cuts import CutModel, GradualModel, Proposal, ProposalMaker
from vidkin.shots.frame_vectors import GRID
from vidkin_research.detectors.band_network import TransitionNetwork, read_network, write_network
from vidkin_research.made import GRADUAL_JOINS
from vidkin_research.made.footage import Footage, read_footage
from vidkin_research.made.gradual_sequences import compose_gradual
from vidkin_research.made.negatives import NEGATIVE_FAMILIES
from vidkin_research.made.restless import restless_takes
from vidkin_research.made.transitions import TRANSITION_FAMILIES
from vidkin_research.shots.composed import build_transitions, score_families, summarize_families
from vidkin_research.shots.extents import LabeledTransition
from vidkin_research.shots.material import TEST_CLIPS

LENGTH, CHANNELS, WIDTH = 288, BAND_CHANNELS + BETWEEN_CHANNELS, 48
# Recordings of a folder that take part at most, and photographs of one: as scenes, and as takes.
CLIPS, MOST, MOVED = 24, 150, 12
RESTLESS, PANS, SEQUENCES, PIECE = 44, 90, 1600, 50
Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Takes:
    """Clips and photographs to learn from, or to choose by."""

    clips: list[Path]
    photographs: list[Path]


def choose(given: argparse.Namespace) -> tuple[Takes, Takes]:
    """What is learned from, and what settings are chosen by: of every folder every fourth recording, and every fifth
    photograph but that of the test split."""
    left_out = set(given.leave_out.read_text(encoding="utf-8").split()) if given.leave_out else set()
    learned, chosen = Takes([], []), Takes([], [])
    for folder in given.clips:
        clips = [path for path in files([folder], VIDEO_EXTENSIONS) if path.name not in left_out]
        recordings: dict[Path, list[Path]] = {}
        for path in clips:
            if not path.name.startswith(TEST_CLIPS):
                name = path.parent / path.stem.partition("-")[0]
                recordings.setdefault(name, []).append(path)
        step = max(1, len(recordings) // CLIPS)
        for place, own in enumerate(list(recordings.values())[::step]):
            (chosen if place % 4 == 1 else learned).clips.extend(own)
    for folder in given.photographs:
        pictures = files([folder], IMAGE_EXTENSIONS)
        parts = ([path for place, path in enumerate(pictures) if place % 5 in own] for own in ((2,), (1, 3, 4)))
        for takes, part, most in zip((chosen, learned), parts, (MOVED, MOST), strict=True):
            takes.photographs.extend(filter(readable, part[:: max(1, len(part) // most)]))
    return learned, chosen


def readable(path: Path) -> bool:
    """Whether Pillow reads the image; a photograph of a collection can be in a format of its own."""
    try:
        Image.open(path).close()
    except OSError:
        return False
    return True


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


def stored_sequences(takes: Takes, given: argparse.Namespace) -> tuple[Rows, Rows]:
    """Features and wanted answers of all sequences, composed where they are not stored yet, fifty at a time."""
    starts = range(0, given.sequences, PIECE)
    places = [given.work / f"sequences-{given.seed}-{start:05d}.npz" for start in starts]
    missing = [start for start, place in zip(starts, places, strict=True) if not place.is_file()]
    footage = read_footage(takes.clips, takes.photographs) if missing else None
    for start, place in zip(starts, places, strict=True):
        if footage is not None and start in missing:
            made = [sequence(footage, 1_000_000 * given.seed + start + number) for number in range(PIECE)]
            features, wanted = (np.stack([row[place] for row in made]) for place in (0, 1))
            np.savez(place, features=features, wanted=wanted)
    pieces = []
    for place in places:
        with np.load(place) as stored:
            pieces.append((stored["features"], stored["wanted"]))
    features, wanted = map(np.concatenate, zip(*pieces, strict=True))
    return features[: given.sequences], wanted[: given.sequences]


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


# Families of which more is composed of restless takes.
MORE = [
    *(
        name
        for name, family in TRANSITION_FAMILIES.items()
        if family.kind in ("dissolve", "wipe") and not family.held_back
    ),
    *("passing object", "lower third", "title over the picture", "camera over a picture", "turning camera"),
    *("exposure", "camera whip"),
]


def families() -> list[str]:
    """Every family but those that are held back."""
    return [name for name, family in TRANSITION_FAMILIES.items() if not family.held_back] + list(NEGATIVE_FAMILIES)


def judge(chosen: Takes, given: argparse.Namespace) -> None:
    """Print what the installed detector makes of videos of the takes that are kept for choosing."""
    restless = restless_takes(chosen.clips, chosen.photographs, given.work / "restless-chosen", 28, 1)
    sets = {"calm": chosen.clips + chosen.photographs, "restless": restless + chosen.clips}
    for name, takes in sets.items():
        videos = build_transitions(takes, given.work / name, count=given.judged, seed=35, families=families())
        found = {video.path: detect(video.path).cuts for video in videos}
        for row in summarize_families(score_families(videos, found)):
            print(f"{name:9} {row[0]:26} {row[1]:6} {row[2]:16} {row[3]:18} {row[4]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=Path, nargs="+", required=True)
    parser.add_argument("--photographs", type=Path, nargs="+", required=True)
    parser.add_argument("--leave-out", type=Path, help="file with names of clips that hold cuts")
    parser.add_argument("--sequences", type=int, default=SEQUENCES)
    parser.add_argument("--epochs", type=int, default=44)
    parser.add_argument("--start", type=Path, help="weights to go on from; eight passes do (--epochs 8)")
    parser.add_argument("--videos", type=int, default=10, help="composed videos of each family")
    parser.add_argument("--threshold", type=float, default=0.6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, required=True)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--output", type=Path, help="learn, and write the weights")
    action.add_argument("--judge", action="store_true", help="learn nothing, judge the detector that is installed")
    parser.add_argument("--judged", type=int, default=8, help="videos of each family that --judge composes")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.work.mkdir(parents=True, exist_ok=True)
    learned, chosen = choose(given)
    if given.judge:
        judge(chosen, given)
    else:
        learn(learned, given)


def learn(takes: Takes, given: argparse.Namespace) -> None:
    """Learn both networks, and write them."""
    restless = restless_takes(takes.clips, takes.photographs, given.work / "restless-learned", RESTLESS, given.seed)
    footage = Takes(takes.clips + restless, takes.photographs)
    features, wanted = (torch.from_numpy(rows) for rows in stored_sequences(footage, given))
    start = None if given.start is None else read_network(given.start)[0]
    network = learn_transitions(
        features,
        wanted,
        epochs=given.epochs,
        seed=given.seed,
        weights=(1.0, 2.0, 0.3),
        start=start,
        width=WIDTH,
        channels=CHANNELS,
    )
    sets = {
        "videos": (footage.clips + takes.photographs[::10], families()),
        "videos-restless": (restless + takes.clips[:15], MORE),
    }
    videos = [
        video
        for name, (own, kinds) in sets.items()
        for video in build_transitions(own, given.work / name, count=given.videos, seed=given.seed, families=kinds)
    ]
    pans = restless_takes(takes.clips, takes.photographs, given.work / "pans", PANS, given.seed, pans=True)
    labeled = [(video.path, video.label) for video in videos] + [(path, None) for path in footage.clips + pans]
    rows = [row for path, label in labeled for row in label_gradual(path, label, network)]
    provenance = {
        "made_by": "research/benchmarks/train_gradual.py",
        "seed": given.seed,
        "sequences": given.sequences,
        "epochs": given.epochs,
        "videos": given.videos,
        "clips": len(takes.clips),
        "restless": RESTLESS,
        "pans": PANS,
        "proposals": [len(rows), sum(right for _, right in rows)],
        "machine": describe_machine(),
    }
    model = GradualModel(network, fit_score(rows), given.threshold, provenance)
    write_network(network, given.output, model.notes())
    given.output.with_suffix(".json").write_text(json.dumps(provenance, indent=1) + "\n", encoding="utf-8")
    print(f"{given.output}: proposals, and those that are right {provenance['proposals']}")


if __name__ == "__main__":
    main()
