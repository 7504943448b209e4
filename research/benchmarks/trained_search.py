"""Trained similarity in `Index.search`: ranking with a trained model, compared with the same network untrained.

    python research/benchmarks/trained_search.py FRUIT --weights FILE [--steps 500] [--work FOLDER]
        [--output research/results/trained_search.json]

The collection consists of turntable videos of 67 varieties of apple, cherry and tomato (reader `fruit`). The first
rotation axis of each variety is used for training and as the gallery, the others are queries: since the split is by
rotation axis, no part of a query is seen in training. Model: frozen MobileNetV2 (128 pixels), fully connected 256, LSTM
256; clips of ten frames at the native eight fps; Radial loss without gradient through R, with the constants of the
publication and no tuning. Trained on excerpts of half a video, since each variety has only one.

Every query file is passed to `Index.search` with all videos of the gallery as candidates. Metrics: QP gallery over all
quadlets (query; same variety, same fruit and other fruit of the gallery), and mAP with same variety and with same fruit
as relevant. Baselines are the untrained model, the same network in the copy pipeline, and the classical features.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from vidkin.datasets import LabelledSet, open_labelled
from vidkin.index import Index
from vidkin.metric.measures import mean_average_precision, quadlet_precision
from vidkin.models import build_model, save_model
from vidkin.rendering.machine import describe_machine
from vidkin.training import load_recipe, train

NETWORK = "timm:mobilenetv2_100?pad_type=same&mean=0.5&std=0.5"


def recipe(source: Path, weights: Path, steps: int) -> dict[str, Any]:
    """Recipe of the training run."""
    return {
        "data": {"source": str(source), "reader": "fruit", "excerpts": 6, "excerpt_share": 0.5, "threads": 1},
        "model": {
            "kind": "clip",
            "backbone": NETWORK,
            "weights": str(weights),
            "trainable": "head",
            "hidden": 256,
            "lstm": 256,
            "frames": 10,
            "rate": 8.0,
            "size": 128,
        },
        "objective": [{"name": "radial_detached"}],
        "schedule": {"steps": steps, "quadlets": 32, "device": "cpu"},
    }


def evaluate_extractor(
    labelled: LabelledSet, folder: Path, extractor: str, weights: Path | None = None
) -> dict[str, Any]:
    """QP over gallery quadlets, mAP and times of an extractor."""
    gallery, queries = labelled.part("train"), labelled.part("test")
    place = {str(item.path): column for column, item in enumerate(gallery.items)}
    scores = torch.zeros(len(queries), len(gallery))
    with Index.open(folder, extractor=extractor, weights=weights, create=True) as index:
        started = time.perf_counter()
        report = index.add([item.path for item in gallery.items])
        added = time.perf_counter() - started
        assert len(report.added) == len(gallery), report
        started = time.perf_counter()
        for row, item in enumerate(queries.items):
            for match in index.search(item.path, limit=len(gallery), candidates=len(gallery)):
                scores[row, place[match.path]] = match.score
        searched = (time.perf_counter() - started) / len(queries)
        measure = index.manifest.measure
    (asked, asked_fine), (given, given_fine) = (map(torch.from_numpy, part.labels()) for part in (queries, gallery))
    relevance = (asked_fine[:, None] == given_fine).int() + (asked[:, None] == given).int()
    return {
        "measure": measure,
        "qp_gallery": round(100 * float(quadlet_precision(scores, relevance)), 2),
        "map": round(100 * float(mean_average_precision(scores, relevance)), 2),
        "ranked": round(float((scores > 0).float().mean()), 4),
        "seconds to index": round(added, 1),
        "seconds a query": round(searched, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fruit", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp())
    plan = recipe(options.fruit, options.weights, options.steps)
    trained, untrained = work / "trained", work / "untrained"
    report = train(plan, output=trained, resume=False)
    settled = load_recipe(plan)
    save_model(build_model(settled.config(), weights=options.weights, seed=settled.schedule.seed), untrained)
    labelled = open_labelled(options.fruit, reader="fruit")
    rows: dict[str, Any] = {}
    for name, extractor, weights in (
        ("trained", str(trained), None),
        ("untrained", str(untrained), None),
        ("same network, as copies", f"{NETWORK}&size=128", options.weights),
        ("classical, as copies", "classical", None),
    ):
        with tempfile.TemporaryDirectory(dir=work) as folder:
            rows[name] = evaluate_extractor(labelled, Path(folder) / "c.vidkin", extractor, weights)
        print(f"{name:24} {rows[name]}", flush=True)
    print(f"training: {report.seconds:.0f} s, {options.steps} steps")
    if options.output:
        found = {
            "machine": describe_machine(),
            "gallery": len(labelled.part("train")),
            "queries": len(labelled.part("test")),
            "steps": options.steps,
            "training seconds": round(report.seconds, 1),
            "results": rows,
        }
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
