"""Train the default shot detector, as it ships in the package.

    python research/benchmarks/train_cuts.py --clips FOLDER [FOLDER ...] --turntables FOLDER --photographs FOLDER \
        [FOLDER ...] --leave-out research/benchmarks/clips_with_cuts.txt --work FOLDER \
        --output src/vidkin/shots/data/cuts.safetensors

Clips are videos of one shot each, but for those whose names ``--leave-out`` lists: they hold cuts that nobody labelled.
Of the turntables every second folder takes part, the others can judge. Of clips and photographs one in eight is kept
for the rules and one for whoever develops them. Three steps: a network learns transitions from the bands of composed
sequences (`compose` and `compose_film`); films composed of the kept sources are encoded and searched for proposals; a
small network for hard cuts and one for gradual transitions learn from what is measured there. No edited video takes
part in it. The thresholds are to be chosen on videos that are not judged later.

The folder of work holds sequences and films, which a later call with the same seed takes up. ``--network FILE`` takes
the first network from a model instead: all that has to be fitted again when the frame encoder is another one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cut_scores import fit_score, label_proposals, learn_transitions
from train_band import files
from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.media import FramePlanes, write_video
from vidkin.rendering.machine import describe_machine
from vidkin.shots.band import band_features
from vidkin.shots.cuts import CutModel, CutRules
from vidkin_research.detectors.band_network import TransitionNetwork, read_network, write_network
from vidkin_research.made import GRADUAL_JOINS, HARD_JOINS, Film, FilmRecipe, Join, compose_film
from vidkin_research.made.edited_videos import rgb_pictures
from vidkin_research.made.footage import Footage, read_footage
from vidkin_research.made.sequences import compose

LENGTH = 192
EPOCHS = 26
PHOTOGRAPHS = 700
ONE_SHOT = FilmRecipe(joins={}, disturbances=dict.fromkeys(FilmRecipe().disturbances, 0.2))
HARD = FilmRecipe(
    joins={"other": 0.4, "same": 0.3, "reframed": 0.2, "reverse": 0.1},
    disturbances=dict.fromkeys(FilmRecipe().disturbances, 0.04),
)
GRADUAL = FilmRecipe(joins={"other": 0.15, "reframed": 0.1, "dissolve": 0.3, "fade": 0.25, "wipe": 0.2}, shortest=20)
CLOSE = FilmRecipe(joins={"other": 0.5, "same": 0.25, "reframed": 0.25}, disturbances={}, close=0.4)
Recipes = tuple[tuple[float, FilmRecipe | None], ...]
# Sets of films that the rules are fitted on: how many, and their recipes with their shares; None is `compose`.
FILMS: dict[str, tuple[int, Recipes]] = {
    "mixed": (260, ((0.25, FilmRecipe()), (0.15, HARD), (0.35, GRADUAL), (0.1, None), (0.15, ONE_SHOT))),
    "close": (100, ((0.4, CLOSE), (0.35, None), (0.25, ONE_SHOT))),
}
Answers = NDArray[np.float32]
NOTHING = np.zeros((0, 3, 0, 0), np.uint8)


@dataclass(frozen=True)
class Sources:
    """Files that the network learns from, and those that the rules are fitted on."""

    network: tuple[list[Path], list[Path]]
    rules: tuple[list[Path], list[Path]]


def choose_sources(given: argparse.Namespace) -> Sources:
    """Clips and photographs of each part."""
    left_out = set(given.leave_out.read_text(encoding="utf-8").split()) if given.leave_out else set()
    clips = [path for path in files(given.clips, VIDEO_EXTENSIONS) if path.name not in left_out]
    tables: list[Path] = []
    if given.turntables:
        folders = sorted({path.parent for path in files([given.turntables], VIDEO_EXTENSIONS)})
        tables = files(folders[::2], VIDEO_EXTENSIONS)
    pictures = files(given.photographs, IMAGE_EXTENSIONS)
    few = np.random.default_rng(given.seed).permutation(len(pictures))[: PHOTOGRAPHS * 4 // 3]
    chosen = [pictures[place] for place in sorted(few)]

    def part(paths: Sequence[Path], *, rules: bool) -> list[Path]:
        return [path for place, path in enumerate(paths) if (place % 8 == 0 if rules else place % 8 not in (0, 4))]

    return Sources(
        (part(clips, rules=False) + part(tables, rules=False), part(chosen, rules=False)),
        (part(clips, rules=True) + part(tables, rules=True), part(chosen, rules=True)),
    )


def sequences(footage: Footage, count: int, seed: int) -> Iterator[tuple[Answers, Answers]]:
    """Band features and wanted answers [T, 5], composed at twice the grid of the band."""
    for number in range(count):
        share = np.random.default_rng((seed, number)).random()
        wanted = np.zeros((LENGTH, 5), np.float32)
        if share < 0.4:
            made = compose(footage, LENGTH, seed=seed * 100_000 + number)
            spans = [(*span, kind) for span, kind in zip(made.gradual, made.kinds, strict=True)]
            pictures, hard = made.pictures, made.hard
        else:
            recipe = FilmRecipe() if share < 0.8 else GRADUAL if share < 0.9 else ONE_SHOT
            film = compose_film(footage, LENGTH, seed=seed * 100_000 + number, recipe=recipe)
            spans = [(join.start, join.end, join.kind) for join in film.joins if join.kind in GRADUAL_JOINS]
            pictures, hard = film.pictures, film.hard
        wanted[list(hard), 0] = 1
        for first, last, kind in spans:
            wanted[first : last + 1, [1, 2 + GRADUAL_JOINS.index(kind)]] = 1
        luma = np.ascontiguousarray(pictures[:, 0, ::2, ::2])
        chroma = np.ascontiguousarray(pictures[:, 1:, ::4, ::4])
        yield band_features(FramePlanes(luma, chroma, np.arange(LENGTH) / 25.0)), wanted


def learned_network(sources: Sources, given: argparse.Namespace) -> TransitionNetwork:
    """The network of transitions, from sequences that are composed where they are not stored yet."""
    store = given.work / f"sequences-{given.seed}-{given.sequences}.npz"
    if not store.is_file():
        made = list(sequences(read_footage(*sources.network), given.sequences, given.seed))
        features, wanted = (np.stack([row[place] for row in made]) for place in (0, 1))
        np.savez(store, features=features, wanted=wanted)
    with np.load(store) as stored:
        features, wanted = (torch.from_numpy(stored[name]) for name in ("features", "wanted"))
    return learn_transitions(features, wanted, epochs=EPOCHS, seed=given.seed, weights=(2.0, 1.0, 0.15))


def write_films(sources: Sources, work: Path, seed: int) -> list[tuple[Path, Film]]:
    """The encoded films that the rules are fitted on, with their joins; pictures are not kept."""
    footage = None
    written = []
    for place, (name, (count, recipes)) in enumerate(FILMS.items()):
        folder = work / f"{name}-{seed}-{count}"
        labels = folder / "labels.json"
        if not labels.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            footage = footage or read_footage(*sources.rules, height=144, width=256)
            random = np.random.default_rng(seed + place)
            found = {}
            for number in range(count):
                recipe = recipes[int(random.choice(len(recipes), p=[share for share, _ in recipes]))][1]
                length = int(random.integers(7, 40)) if random.random() < 0.2 else 240
                film = _compose_any(footage, length, 50_000 + 10_000 * place + number, recipe)
                file = f"film_{number:04d}.mp4"
                crf = int(random.integers(18, 36))
                write_video(folder / file, rgb_pictures(film.pictures), rate=25.0, crf=crf)
                found[file] = [[join.kind, join.start, join.end] for join in film.joins]
            labels.write_text(json.dumps(found), encoding="utf-8")
        stored = json.loads(labels.read_text(encoding="utf-8"))
        written += [
            (folder / file, Film(NOTHING, tuple(Join(*join) for join in joins))) for file, joins in stored.items()
        ]
    return written


def _compose_any(footage: Footage, length: int, seed: int, recipe: FilmRecipe | None) -> Film:
    if recipe is not None:
        return compose_film(footage, length, seed=seed, recipe=recipe)
    made = compose(footage, length, seed=seed, degrade=False)
    hard = [Join(HARD_JOINS[0], cut, cut) for cut in made.hard]
    gradual = [Join(kind, *span) for span, kind in zip(made.gradual, made.kinds, strict=True)]
    return Film(made.pictures, tuple(sorted([*hard, *gradual], key=lambda join: join.start)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=Path, nargs="+", required=True)
    parser.add_argument("--turntables", type=Path, help="folder of folders of turntables")
    parser.add_argument("--photographs", type=Path, nargs="+", required=True)
    parser.add_argument("--leave-out", type=Path, help="file with names of clips that hold cuts")
    parser.add_argument("--sequences", type=int, default=1400)
    parser.add_argument("--thresholds", type=float, nargs=2, default=(0.4, 0.9), metavar=("HARD", "GRADUAL"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--network", type=Path, help="take the network of transitions from this model")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.work.mkdir(parents=True, exist_ok=True)
    sources = choose_sources(given)
    network = read_network(given.network)[0] if given.network else learned_network(sources, given)
    films = write_films(sources, given.work, given.seed)
    # Turntables, fixed and hand-held cameras as they were filmed: nothing that is found there is right.
    films += [(path, Film(NOTHING, ())) for path in sources.network[0] + sources.rules[0]]
    rows = [row for path, film in films for row in label_proposals(path, film, network)]
    hard = [row for row in rows if row[0].kind == "hard"]
    gradual = [row for row in rows if row[0].kind != "hard"]
    rules = CutRules(fit_score(hard), fit_score(gradual), *given.thresholds)
    provenance = {
        "made_by": "research/benchmarks/train_cuts.py",
        "seed": given.seed,
        "sequences": given.sequences,
        "films": {name: count for name, (count, _) in FILMS.items()},
        "composed": {
            "network": [len(paths) for paths in sources.network],
            "rules": [len(paths) for paths in sources.rules],
            "of": "clips and photographs",
        },
        "proposals": {
            name: [len(found), sum(right for _, right in found)]
            for name, found in (("hard", hard), ("gradual", gradual))
        },
        "thresholds": list(given.thresholds),
        "machine": describe_machine(),
    }
    write_network(network, given.output, CutModel(network, rules, provenance).notes())
    given.output.with_suffix(".json").write_text(json.dumps(provenance, indent=1) + "\n", encoding="utf-8")
    print(f"{given.output}: hard and gradual proposals, those that are right {provenance['proposals']}")


if __name__ == "__main__":
    main()
