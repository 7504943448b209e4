"""Compare losses on three levels: train encoders and verifiers with each loss and evaluate on unseen footage.

python research/benchmarks/loss_order.py --data FOLDER --work FOLDER [--weights FILE] [--seeds 5] --output FILE.json
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from vidkin._base.files import write_text
from vidkin.match import Sequenced, levels
from vidkin.rendering.machine import describe_machine
from vidkin_research.copies.figures import summarize_copies
from vidkin_research.copies.material import CopyMaterial, make_copies
from vidkin_research.copies.recordings import ClipSize
from vidkin_research.copies.scores import PairScores
from vidkin_research.heads import HeadStore
from vidkin_research.order.encoder import EncoderLoss, Whitening, encode, measure_order, train_encoder, unit_vectors
from vidkin_research.order.frames import Features, FrameSet, gather_frames
from vidkin_research.verifier.material import Half, find_halves
from vidkin_research.verifier.pairs import SCENE, STRANGER, Pairs, measure_pairs
from vidkin_research.verifier.train import Loss, VerifierSettings, score_pairs, train_verifier

_RATE = 2.0
_SIZE = ClipSize(seconds=8.0, clips=1, short_side=240, rate=_RATE, recordings=16)
# Stride of the gallery among videos without copies.
_STRANGER_STEP = 3
_COHORT = 1000

logger = logging.getLogger(__name__)


class _Whitened:
    """Whitened vectors of videos, and the timestamps of their frames."""

    def __init__(self, store: HeadStore, whitening: Whitening) -> None:
        self._store = store
        self._whitening = whitening

    def frames(self, path: Path, cohort: Features) -> Sequenced:
        """Frame features of a video, with levels against vectors of unrelated frames."""
        (rows,) = self._store.features([path])
        vectors = unit_vectors(self._whitening(rows))
        information = np.ones(len(rows), np.float32)
        return Sequenced(vectors, np.arange(len(rows)) / _RATE, levels(vectors, cohort), information)


def main() -> None:
    """Prepare the data, train with each loss and seed, evaluate on the held-out half, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the measurement data")
    parser.add_argument("--work", type=Path, required=True, help="working folder for copies and features")
    parser.add_argument("--weights", type=Path, help="safetensors file of MobileNetV2 (default: weights from the hub)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, required=True, help="write the results to this JSON file")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    begun = time.perf_counter()
    store = HeadStore(given.weights, given.work / "features", window=1, rate=_RATE)
    material = {half: _material(given.data, given.work, half) for half in get_args(Half)}
    frames = {half: gather_frames(each, store.features, _RATE) for half, each in material.items()}
    whitening = Whitening(frames["development"].features)
    encoders = _encoders(frames, whitening, given.seeds)
    verifiers = _verifiers(material, _Whitened(store, whitening), frames["development"], whitening, given.seeds)
    document = {
        "what": "encoders and verifiers trained by each loss on the development half, measured on the held-back half",
        "machine": describe_machine(),
        "minutes": round((time.perf_counter() - begun) / 60, 1),
        "material": {
            half: {"queries": len(each.queries), "videos": len(each.gallery), "frames": len(frames[half])}
            for half, each in material.items()
        },
        "seeds": given.seeds,
        "encoders": encoders,
        "verifiers": verifiers,
    }
    write_text(given.output, json.dumps(document, indent=1) + "\n")
    for name in ("encoders", "verifiers"):
        logger.info("%s\n\n%s", name, _table(document[name]))


def _material(data: Path, work: Path, half: Half) -> CopyMaterial:
    sources, strangers = find_halves(data, half)
    copies = make_copies(
        sources,
        work / half,
        _SIZE,
        distractors=strangers[::_STRANGER_STEP],
        on_progress=lambda done, total, name: (
            logger.info("%s: %d of %d", half, done, total) if done % 100 == 0 else None
        ),
    )
    logger.info("%s: %d queries, %d videos", half, len(copies.queries), len(copies.gallery))
    return copies


def _encoders(frames: Mapping[str, FrameSet], whitening: Whitening, seeds: int) -> list[dict[str, Any]]:
    held = frames["held-back"]
    rows = [_row("untrained", [measure_order(held, unit_vectors(whitening(held.features)))])]
    for loss in get_args(EncoderLoss):
        runs = []
        for seed in range(seeds):
            weights = train_encoder(frames["development"], whitening, loss, seed)
            runs.append(measure_order(held, encode(held, whitening, weights)))
        rows.append(_row(loss, runs))
        logger.info("encoder, %s: %s", loss, rows[-1])
    return rows


def _verifiers(
    material: Mapping[str, CopyMaterial], store: _Whitened, seen: FrameSet, whitening: Whitening, seeds: int
) -> list[dict[str, Any]]:
    chosen = np.random.default_rng(0).choice(len(seen), min(_COHORT, len(seen)), replace=False)
    cohort = unit_vectors(whitening(seen.features[chosen]))
    pairs = {
        half: measure_pairs(lambda path: (store.frames(path, cohort),), each, candidates=len(each.gallery))
        for half, each in material.items()
    }
    logger.info("pairs are compared")
    copies, held = material["held-back"], pairs["held-back"]
    rows = [_row("mean of best", [_figures(copies, held, held.mean_of_best, calibrated=False)])]
    for loss in get_args(Loss):
        runs = []
        for seed in range(seeds):
            verifier, _ = train_verifier(pairs["development"], VerifierSettings(loss=loss, steps=3000, seed=seed))
            runs.append(_figures(copies, held, score_pairs(verifier, held)))
        rows.append(_row(loss, runs))
        logger.info("verifier, %s: %s", loss, rows[-1])
    return rows


def _figures(material: CopyMaterial, pairs: Pairs, scores: np.ndarray, *, calibrated: bool = True) -> dict[str, float]:
    group = summarize_copies("verifier", PairScores(scores.astype(np.float64)), material).everything
    figures = {"map": group.strict.map, "micro_ap": group.strict.micro_ap}
    if calibrated:
        figures["strangers at .2"] = float((scores[pairs.levels == STRANGER] >= 0.2).mean())
        figures["same place at .7"] = float((scores[pairs.levels == SCENE] >= 0.7).mean())
    return figures


def _row(loss: str, runs: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    return {
        "loss": loss,
        **{
            name: {
                "mean": round(float(np.mean([run[name] for run in runs])), 5),
                "deviation": round(float(np.std([run[name] for run in runs])), 5),
            }
            for name in runs[0]
        },
    }


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    names = [name for name in rows[-1] if name != "loss"]
    lines = ["| loss | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for row in rows:
        cells = [
            f"{100 * row[name]['mean']:.2f} ± {100 * row[name]['deviation']:.2f}" if name in row else ""
            for name in names
        ]
        lines.append(f"| {row['loss']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
