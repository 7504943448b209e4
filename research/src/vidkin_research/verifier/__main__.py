"""Train and measure the verifier: `python -m vidkin_research.verifier --help`."""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path
from typing import Any, get_args

import numpy as np

from vidkin._base.files import write_text
from vidkin.match import Verifier
from vidkin.rendering.machine import describe_machine
from vidkin_research.copies.figures import summarize_copies
from vidkin_research.copies.material import CopyMaterial, make_copies
from vidkin_research.copies.recordings import ClipSize
from vidkin_research.copies.scores import PairScores
from vidkin_research.frame_encoder.material import open_material
from vidkin_research.frame_encoder.raw_vectors import Network, VectorStore
from vidkin_research.verifier.material import Half, find_material
from vidkin_research.verifier.pairs import SCENE, STRANGER, Pairs, measure_pairs
from vidkin_research.verifier.train import Loss, VerifierSettings, train_verifier

_SIZE = ClipSize(seconds=8.0, clips=1, short_side=240, rate=8.0)
# Frames a second.
_RATE = 2.0
# Unrelated pictures that levels are measured against, and how many of them are read at a time.
_COHORT, _AT_ONCE = 2500, 100


def main() -> None:
    """Make the material, compare all pairs, train on the development half and measure both halves."""
    parser = argparse.ArgumentParser(prog="python -m vidkin_research.verifier", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the measurement data")
    parser.add_argument("--work", type=Path, required=True, help="folder for copies, vectors and numbers")
    parser.add_argument("--network", required=True, metavar="FILE@SIDE", help="ONNX file of the frame encoder")
    parser.add_argument("--pictures", type=Path, required=True, help="work folder of the frame encoder, for the cohort")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--held-back", action="store_true", help="measure the held-back half as well: once, at the end")
    parser.add_argument("--output", type=Path, required=True, help="JSON file of the verifier with its provenance")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    file, _, side = given.network.rpartition("@")
    store = VectorStore(Network("frames", Path(file), int(side)), given.work / "vectors", rate=_RATE)
    cohort = _cohort(given.pictures, given.work / f"cohort_{store.network.key()}.npy", store)
    halves: list[Half] = ["development", "held-back"] if given.held_back else ["development"]
    material: dict[Half, tuple[CopyMaterial, Pairs]] = {}
    for half in halves:
        sources, strangers = find_material(given.data, half)
        copies = make_copies(sources, given.work / half, _SIZE, distractors=strangers)
        logging.info("%s: %d queries, %d videos", half, len(copies.queries), len(copies.gallery))
        material[half] = copies, measure_pairs(store.vectors, copies, cohort)
    rows: dict[str, Any] = {
        half: {"mean of best": _figures(copies, pairs.mean_of_best)} for half, (copies, pairs) in material.items()
    }
    best: tuple[float, Verifier, dict[str, Any]] | None = None
    for loss in get_args(Loss):
        for seed in range(given.seeds):
            verifier, provenance = train_verifier(material["development"][1], VerifierSettings(loss=loss, seed=seed))
            for half, (copies, pairs) in material.items():
                scores = verifier.score(pairs.numbers)
                rows[half][f"{loss}, seed {seed}"] = {**_figures(copies, scores), **_false(scores, pairs)}
            value = rows["development"][f"{loss}, seed {seed}"]["micro_ap"]
            logging.info("%s, seed %d: %.4f", loss, seed, value)
            if best is None or value > best[0]:
                best = value, verifier, provenance
    assert best is not None
    document = {
        **best[1].to_dict(),
        "trained": {**best[2], "network": store.network.key(), "machine": describe_machine()},
        "measured": rows,
    }
    write_text(given.output, json.dumps(document) + "\n")


def _cohort(pictures: Path, file: Path, store: VectorStore) -> np.ndarray:
    """Vectors of pictures that the frame encoder was trained on, computed once."""
    if file.exists():
        stored: np.ndarray = np.load(file)
        return stored
    random = np.random.default_rng(0)
    material = open_material(pictures)
    chosen = np.sort(random.choice(material.training, min(_COHORT, len(material.training)), replace=False)).tolist()
    parts = [chosen[first : first + _AT_ONCE] for first in range(0, len(chosen), _AT_ONCE)]
    vectors = np.concatenate(
        [store.encode([material.pictures[each].read(pictures) for each in part]) for part in parts]
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    np.save(file, vectors)
    return vectors


def _figures(material: CopyMaterial, scores: np.ndarray) -> dict[str, float]:
    group = summarize_copies("verifier", PairScores(scores.astype(np.float64)), material).everything
    return {"map": round(group.strict.map, 4), "micro_ap": round(group.strict.micro_ap, 4)}


def _false(scores: np.ndarray, pairs: Pairs) -> dict[str, int]:
    return {
        "strangers at .2": int((scores[pairs.levels == STRANGER] >= 0.2).sum()),
        "strangers": int((pairs.levels == STRANGER).sum()),
        "same place at .7": int((scores[pairs.levels == SCENE] >= 0.7).sum()),
        "same place": int((pairs.levels == SCENE).sum()),
    }


if __name__ == "__main__":
    main()
