"""Run a public benchmark, from features to metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from vidkin.errors import InvalidArgumentError
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import Segment
from vidkin_research.public.benchmark import RetrievalBenchmark, VideoPair
from vidkin_research.public.evaluate import BenchmarkScores, Figure, evaluate_benchmark, evaluate_segments
from vidkin_research.public.features import StoredFeatures
from vidkin_research.public.systems import PairSystem
from vidkin_research.runs import OnStudyProgress

__all__ = ["PUBLISHED", "BenchmarkReport", "estimate_hours", "run_benchmark"]

# Number of database videos whose features are in memory at a time.
_BLOCK = 32


@dataclass(frozen=True, kw_only=True)
class BenchmarkReport:
    """Results of one system on one benchmark.

    Attributes:
        benchmark: Name of the benchmark.
        system: Name of the system that compared the videos.
        machine: Description of the machine.
        minutes: Wall-clock time of the comparison.
        queries: Number of available queries.
        videos: Number of available database videos.
        missing_queries: IDs of queries without features.
        missing_videos: IDs of database videos without features.
        figures: The metrics.
        published: Published values: system -> metric -> value.
    """

    benchmark: str
    system: str
    machine: str
    minutes: float
    queries: int
    videos: int
    missing_queries: tuple[str, ...]
    missing_videos: tuple[str, ...]
    figures: tuple[Figure, ...]
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def run_benchmark(
    benchmark: RetrievalBenchmark,
    features: StoredFeatures,
    system: PairSystem,
    *,
    on_progress: OnStudyProgress | None = None,
) -> BenchmarkReport:
    """Compare every query with the whole database, and compute the metrics.

    If the benchmark evaluates only segments, only labeled pairs are compared. Every video is prepared once, and all
    queries are compared with one block of videos at a time; the queries and one block are in memory.

    Args:
        benchmark: Queries, videos and labels.
        features: Features of its videos; missing ones are reported.
        system: The system that compares them.
        on_progress: Callback that receives the number of videos done, the total, and the current step.

    Raises:
        InvalidArgumentError: No query or no database video has features, or the system rejects them.
    """
    begun = time.monotonic()
    queries = [video for video in benchmark.queries if video in features]
    database = [video for video in benchmark.database if video in features]
    if not queries or not database:
        raise InvalidArgumentError(
            f"{benchmark.name}: found features of {len(queries)} of {len(benchmark.queries)} queries and "
            f"{len(database)} of {len(benchmark.database)} videos; name files by video ID, such as "
            f"{benchmark.queries[0]}.mp4"
        )
    asked = [system.prepare(features.read(query)) for query in queries]
    scores = torch.full((len(queries), len(database)), float("-inf"))
    segments: dict[VideoPair, tuple[Segment, ...]] = {}
    with_segments = bool(benchmark.segments) and system.has_segments
    for start in range(0, len(database), _BLOCK):
        names = database[start : start + _BLOCK]
        if on_progress is not None:
            on_progress(start, len(database), names[0])
        videos = [system.prepare(features.read(name)) for name in names]
        for rows, columns in _pairs_of(benchmark, queries, names):
            results = system.compare(
                [asked[row] for row in rows], [videos[column] for column in columns], segments=with_segments
            )
            for row, result in zip(rows, results, strict=True):
                for column, (score, places) in zip(columns, result, strict=True):
                    # Do not compare a query with itself.
                    if queries[row] != names[column]:
                        scores[row, start + column] = score
                        segments[queries[row], names[column]] = places
    figures = evaluate_benchmark(benchmark, BenchmarkScores(queries, database, scores))
    if with_segments:
        figures += evaluate_segments(benchmark, segments)
    return BenchmarkReport(
        benchmark=benchmark.name,
        system=system.name,
        machine=describe_machine(),
        minutes=(time.monotonic() - begun) / 60,
        queries=len(queries),
        videos=len(database),
        missing_queries=tuple(video for video in benchmark.queries if video not in features),
        missing_videos=tuple(video for video in benchmark.database if video not in features),
        figures=tuple(figures),
        published=PUBLISHED.get(benchmark.name, {}),
    )


def _pairs_of(
    benchmark: RetrievalBenchmark, queries: Sequence[str], names: Sequence[str]
) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Yield (query indices, video indices) of a block to compare all with all; without tasks, only labeled pairs."""
    if benchmark.tasks:
        yield range(len(queries)), range(len(names))
        return
    for row, query in enumerate(queries):
        if columns := [column for column, name in enumerate(names) if (query, name) in benchmark.segments]:
            yield [row], columns


# Number of database videos to compare when estimating the run time.
_SAMPLE = 6


def estimate_hours(benchmark: RetrievalBenchmark, features: StoredFeatures, system: PairSystem) -> float:
    """Estimate the run time in hours by comparing all queries with a few evenly sampled database videos.

    Raises:
        InvalidArgumentError: The features are damaged, or the system rejects them.
    """
    queries = [video for video in benchmark.queries if video in features]
    database = [video for video in benchmark.database if video in features]
    if not queries or not database:
        return 0.0
    step = max(1, len(database) // _SAMPLE)
    sample = database[step // 2 :: step][:_SAMPLE]
    with_segments = bool(benchmark.segments) and system.has_segments
    asked = [system.prepare(features.read(query)) for query in queries]
    # Do not time the first comparison, because it also loads libraries.
    system.compare(asked[:1], [system.prepare(features.read(sample[0]))], segments=with_segments)
    begun = time.perf_counter()
    videos = [system.prepare(features.read(name)) for name in sample]
    system.compare(asked, videos, segments=with_segments)
    seconds = (time.perf_counter() - begun) / len(sample)
    if not benchmark.tasks:
        there = {*queries}, {*database}
        pairs = sum(query in there[0] and name in there[1] for query, name in benchmark.segments)
        return seconds / len(queries) * pairs / 3600
    return seconds * len(database) / 3600


# Published results of other systems, printed next to ours.


_FIVR = ("DSVR", "CSVR", "ISVR", "DSVD", "CSVD", "ISVD")


def _rows(names: tuple[str, ...], rows: Mapping[str, str]) -> dict[str, dict[str, float]]:
    return {
        system: {name: float(value) / 100 for name, value in zip(names, text.split(), strict=True) if value != "-"}
        for system, text in rows.items()
    }


PUBLISHED: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "fivr-200k": _rows(
        _FIVR,
        {
            "DML": "52.80 51.40 44.00 39.00 36.50 30.00",
            "TMK": "52.40 50.70 42.50 - - -",
            "LAMV": "61.90 58.70 47.90 55.40 50.00 38.80",
            "TCA": "86.81 82.31 69.61 69.09 62.28 49.24",
            "VRL": "90.00 85.80 70.90 - - -",
            "ViSiL_f": "89.00 84.80 72.10 66.90 59.50 45.90",
            "ViSiL_v": "89.90 85.40 72.30 75.80 69.00 53.00",
            "DnS, binary": "90.89 86.28 72.87 78.05 68.52 53.48",
            "DnS, attention": "92.09 87.54 74.08 79.66 69.51 54.20",
            "S2VS": "92.53 87.73 74.51 86.12 77.41 63.26",
            "HAP-VR": "92.83 88.21 74.72 88.41 79.85 64.79",
        },
    ),
    "fivr-5k": _rows(
        _FIVR,
        {
            "HAP-VR with MAE": "89.07 88.03 80.86 78.08 75.69 65.26",
            "HAP-VR with MSE": "89.22 88.26 80.80 78.66 76.07 65.44",
            "HAP-VR with contrastive": "88.67 88.09 80.97 75.12 74.23 67.41",
            "HAP-VR with triplet": "88.11 87.77 81.21 72.94 73.18 69.23",
            "HAP-VR with circle": "87.53 86.11 78.77 73.26 71.15 59.33",
            "HAP-VR with FastAP": "89.30 88.42 81.16 78.83 77.51 69.95",
            "HAP-VR with DIR": "89.65 88.57 80.64 78.50 76.22 65.42",
            "HAP-VR with BlackBox-AP": "89.70 88.55 80.53 80.07 77.37 66.00",
            "HAP-VR with Smooth-AP": "89.36 88.33 80.73 79.85 77.75 68.42",
            "HAP-VR with QuadLinear-AP": "90.80 89.68 81.31 82.92 80.03 71.45",
        },
    ),
    "evve": _rows(
        ("mAP", "micro-AP"),
        {
            "DML": "61.10 75.50",
            "TMK": "61.80 -",
            "LAMV": "62.00 80.60",
            "TCA": "63.08 76.90",
            "ViSiL_f": "62.70 74.60",
            "ViSiL_v": "65.80 79.10",
            "DnS, binary": "64.41 75.80",
            "DnS, attention": "65.33 74.56",
            "S2VS": "67.17 80.72",
            "HAP-VR": "69.15 82.88",
        },
    ),
    "svd": _rows(
        ("mAP", "micro-AP"),
        {
            "DML": "85.00 -",
            "TMK": "86.30 -",
            "LAMV": "88.00 -",
            "TCA": "89.82 56.93",
            "ViSiL_v": "88.10 -",
            "DnS, binary": "89.12 66.53",
            "DnS, attention": "90.20 72.24",
            "S2VS": "88.40 65.04",
            "HAP-VR": "89.00 67.87",
        },
    ),
}

"""Benchmark -> system -> metric -> value in [0, 1].

Source: HAP-VR (ACM MM 2024), table 1, and table 2 for ``fivr-5k``. SVD includes the unlabeled videos.
"""
