"""Effect of feature quantization on retrieval: float16, int8, int4 and binary, for whole frames and regions.

    python research/benchmarks/feature_precision.py INDEX QUERIES [--output research/results/feature_precision.json]

INDEX and QUERIES are `WORK/indexes` and `WORK/queries` of `research/benchmarks/copy_retrieval.py --work WORK`: the file
name of a copy starts with the name of its query. Every query is scored against every video of the index with quantized
features; other moments of the same recording count as wrong.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from vidkin.index import DiskStore, Index
from vidkin.index.query.calibration import Calibration
from vidkin.index.query.query import describe_query
from vidkin.index.query.stored import prepare_features
from vidkin.index.storage.opening import open_place
from vidkin.match import scorer_of
from vidkin.metric.measures import mean_average_precision, micro_average_precision
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import FrameFeatures

Rounding = Callable[[torch.Tensor], torch.Tensor]


def to_steps(steps: int) -> Rounding:
    """Quantize each vector symmetrically to this many steps, scaled by its largest absolute value."""

    def round_to(values: torch.Tensor) -> torch.Tensor:
        size = values.abs().amax(-1, keepdim=True).clamp(min=1e-6) / steps
        return torch.nn.functional.normalize((values / size).round() * size, dim=-1)

    return round_to


def to_signs(values: torch.Tensor) -> torch.Tensor:
    """Keep only the signs, normalized to length 1; zero vectors stay zero."""
    there = values.abs().amax(-1, keepdim=True) > 0
    return torch.where(there, values.sign() / values.shape[-1] ** 0.5, 0.0)


ROUNDINGS: dict[str, tuple[float, Rounding]] = {
    "float16": (2, lambda values: values.half().float()),
    "int8": (1, to_steps(127)),
    "int4": (0.5, to_steps(7)),
    "binary": (0.125, to_signs),
}


def quantize(features: FrameFeatures, whole: Rounding, parts: Rounding) -> FrameFeatures:
    """Quantize the values of whole frames and of regions."""
    values = torch.from_numpy(features.values).float()
    return replace(features, values=torch.cat([whole(values[:, :1]), parts(values[:, 1:])], dim=1).numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    with Index.open(given.index) as index:
        extractor, records = index.extractor, list(index)
    calibration = Calibration.of_extractor(extractor)
    store = DiskStore(open_place(str(given.index)))
    stored = store.read_many([record.id for record in records])
    names = [Path(record.path).name for record in records]
    files = sorted(path for path in given.queries.iterdir() if path.is_file())
    queries = [describe_query(file, extractor, calibration, rate=1.0) for file in files]
    relevant = torch.tensor([[name.startswith(f"{file.stem}.") for name in names] for file in files])
    scorer = scorer_of(extractor)
    rows = []
    for whole, parts in (("float16", "float16"), ("float16", "int8"), ("int8", "int8"), ("float16", "int4"),
                         ("int4", "int4"), ("float16", "binary"), ("binary", "binary")):  # fmt: skip
        targets = [
            prepare_features(quantize(features, ROUNDINGS[whole][1], ROUNDINGS[parts][1]), record.duration)
            for features, record in zip(stored, records, strict=True)
        ]
        ranked = torch.tensor([[result.score for result in scorer.score(query, targets)] for query in queries])
        views = stored[0].values.shape[1]
        dimension = stored[0].values.shape[-1]
        row = {
            "whole": whole,
            "parts": parts,
            "bytes a frame": dimension * (ROUNDINGS[whole][0] + (views - 1) * ROUNDINGS[parts][0]),
            "mAP": float(mean_average_precision(ranked, relevant)),
            "micro-AP": float(micro_average_precision(ranked, relevant)),
            "highest wrong": float(ranked[~relevant].max()),
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    if given.output:
        report = {
            "machine": describe_machine(),
            "queries": len(files),
            "videos": len(names),
            "precision": rows,
        }
        given.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
