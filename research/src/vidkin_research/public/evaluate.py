"""Compute a benchmark's metrics from the scores of all pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from vidkin.errors import InvalidArgumentError
from vidkin.metric import measures
from vidkin.similarity import Segment
from vidkin_research.public.benchmark import RetrievalBenchmark, VideoPair

__all__ = ["BenchmarkScores", "Figure", "evaluate_benchmark", "evaluate_segments"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric of a benchmark.

    Attributes:
        name: Name used by the benchmark, for example ``DSVR`` or ``segment F``.
        value: Value in [0, 1]; nan if it is undefined.
        queries: Number of queries that contribute.
        skipped: Number of queries that are missing, or whose relevant videos are all missing.
    """

    name: str
    value: float
    queries: int
    skipped: int


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkScores:
    """Scores of the available videos.

    Attributes:
        queries: IDs of the rows.
        database: IDs of the columns.
        scores: [Q, G], higher is more similar.
    """

    queries: Sequence[str]
    database: Sequence[str]
    scores: torch.Tensor

    def __post_init__(self) -> None:
        if tuple(self.scores.shape) != (len(self.queries), len(self.database)):
            raise InvalidArgumentError(
                f"scores must be [{len(self.queries)}, {len(self.database)}], got {list(self.scores.shape)}"
            )


def evaluate_benchmark(benchmark: RetrievalBenchmark, scores: BenchmarkScores) -> list[Figure]:
    """Compute the metrics of all tasks as the benchmarks' evaluation programs do.

    Missing videos are not relevant to any query, and missing queries are left out; the caller counts both. A query is
    not ranked in its own list.

    Args:
        benchmark: Labels of the benchmark.
        scores: Scores of a subset of its videos, in any order.
    """
    figures = []
    for task in benchmark.tasks:
        columns = {video: column for column, video in enumerate(scores.database)}
        relevance = torch.zeros(scores.scores.shape, dtype=torch.bool)
        valid = torch.full_like(relevance, task.candidates is None)
        for row, query in enumerate(scores.queries):
            for pairs, videos in (
                (relevance, task.positives.get(query, frozenset())),
                (valid, frozenset() if task.candidates is None else task.candidates.get(query, frozenset())),
            ):
                places = [columns[video] for video in videos if video in columns]
                pairs[row, places] = True
            if query in columns:
                valid[row, columns[query]] = False
        relevance &= valid
        if benchmark.has_trapezoids:
            # [Q] areas under the linearly interpolated precision-recall curves; nan without positives.
            order = scores.scores.masked_fill(~valid, -torch.inf).argsort(dim=1, descending=True, stable=True)
            hits = relevance.gather(1, order).double()
            rank = torch.arange(1, scores.scores.shape[1] + 1, dtype=torch.float64)
            after = hits.cumsum(1) / rank
            before = (hits.cumsum(1) - hits) / (rank - 1).clamp(min=1)
            before[:, 0] = 1.0
            values = (hits * (after + before) / 2).sum(1) / relevance.sum(1)
        else:
            values = measures.average_precision(scores.scores, relevance, valid=valid)
        there = ~values.isnan()
        queries, skipped = int(there.sum()), len(benchmark.queries) - int(there.sum())
        figures.append(Figure(task.name, float(values[there].mean()), queries, skipped))
        if benchmark.groups:
            members: dict[str, list[int]] = {}  # group -> rows of its queries with a defined value
            for row, query in enumerate(scores.queries):
                if query in benchmark.groups and bool(there[row]):
                    members.setdefault(benchmark.groups[query], []).append(row)
            means = [float(values[rows].mean()) for rows in members.values()]
            mean = sum(means) / len(means) if means else float("nan")
            counted = f"{len(means)} group{'' if len(means) == 1 else 's'}"
            figures.append(Figure(f"{task.name}, mean of {counted}", mean, queries, skipped))
        micro = measures.micro_average_precision(scores.scores, relevance, valid=valid)
        figures.append(Figure(task.detection, micro, queries, skipped))
    return figures


def evaluate_segments(benchmark: RetrievalBenchmark, segments: Mapping[VideoPair, Sequence[Segment]]) -> list[Figure]:
    """Compute segment F (VCSL) over the labeled pairs and segment AP (VSC2022) over all compared pairs.

    Args:
        benchmark: Labels of the benchmark.
        segments: Segments of the compared pairs; other labeled pairs are left out.
    """
    pairs = [pair for pair in segments if segments[pair] or pair in benchmark.segments]
    predicted = [
        torch.tensor([[s.query_start, s.target_start, s.query_end, s.target_end] for s in segments[pair]]).reshape(
            -1, 4
        )
        for pair in pairs
    ]
    # Drop segments of a single frame, which have no duration.
    real = [(boxes[:, 2:] > boxes[:, :2]).all(dim=1) for boxes in predicted]
    sure = [torch.tensor([segment.score for segment in segments[pair]]) for pair in pairs]
    predicted = [boxes[kept] for boxes, kept in zip(predicted, real, strict=True)]
    sure = [values[kept] for values, kept in zip(sure, real, strict=True)]
    truth = [torch.tensor(benchmark.segments.get(pair, ())).reshape(-1, 4) for pair in pairs]
    labeled = [number for number, pair in enumerate(pairs) if pair in benchmark.segments]
    scores = measures.segment_scores([predicted[p] for p in labeled], [truth[p] for p in labeled])
    count, skipped = len(labeled), len(benchmark.segments) - len(labeled)
    return [
        Figure("segment F", scores.f_score, count, skipped),
        Figure("segment precision", scores.precision, count, skipped),
        Figure("segment recall", scores.recall, count, skipped),
        Figure("segment AP", measures.segment_average_precision(predicted, sure, truth), count, skipped),
    ]
