"""A public benchmark from features to figures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from vidkin.errors import InvalidArgumentError
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import Segment
from vidkin_research.public.benchmark import RetrievalBenchmark, VideoPair
from vidkin_research.public.evaluate import (
    BenchmarkScores,
    Figure,
    evaluate_benchmark,
    evaluate_segments,
)
from vidkin_research.public.features import StoredFeatures
from vidkin_research.public.published import PUBLISHED
from vidkin_research.public.systems import PairSystem
from vidkin_research.runs import OnStudyProgress

__all__ = ["BenchmarkReport", "run_benchmark"]

# Videos whose features are in memory at a time, beside those of the queries.
_BLOCK = 32


@dataclass(frozen=True, kw_only=True)
class BenchmarkReport:
    """Figures of one system on one benchmark.

    Attributes:
        benchmark: Name of the benchmark.
        system: What compared the videos.
        machine: What it ran on.
        minutes: Wall-clock time of the comparison.
        queries: Queries that were there.
        videos: Videos of the database that were there.
        missing_queries: Ids of queries without features.
        missing_videos: Ids of videos of the database without features.
        figures: What was measured.
        published: System -> figure -> value, as others published them.
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
    """Compare every query with the whole database, and measure.

    A benchmark of segments alone has its labeled pairs compared. Features of the queries are held in memory, those of
    the database a few at a time.

    Args:
        benchmark: Queries, videos and labels.
        features: Features of its videos; missing ones are reported.
        system: Compares them.
        on_progress: Called with the videos done, all videos, and the current step.

    Raises:
        InvalidArgumentError: No query or no video of the database has features, or features do not fit the system.
    """
    begun = time.monotonic()
    queries = [video for video in benchmark.queries if video in features]
    database = [video for video in benchmark.database if video in features]
    if not queries or not database:
        raise InvalidArgumentError(
            f"{benchmark.name}: there are features of {len(queries)} of {len(benchmark.queries)} queries and of "
            f"{len(database)} of {len(benchmark.database)} videos; name files by the ids of the videos, such as "
            f"{benchmark.queries[0]}.mp4"
        )
    asked = {query: features.read(query) for query in queries}
    scores = torch.full((len(queries), len(database)), float("-inf"))
    segments: dict[VideoPair, tuple[Segment, ...]] = {}
    with_segments = bool(benchmark.segments) and system.has_segments
    for start in range(0, len(database), _BLOCK):
        names = database[start : start + _BLOCK]
        if on_progress is not None:
            on_progress(start, len(database), names[0])
        videos = {name: features.read(name) for name in names}
        for row, query in enumerate(queries):
            chosen = (
                [name for name in names if name != query]
                if benchmark.tasks
                else [name for name in names if (query, name) in benchmark.segments]
            )
            results = system.compare(asked[query], [videos[name] for name in chosen], segments=with_segments)
            for name, (score, places) in zip(chosen, results, strict=True):
                scores[row, start + names.index(name)] = score
                segments[query, name] = places
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
