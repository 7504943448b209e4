"""Benchmark metrics, computed by hand."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import pytest
import torch

from vidkin.errors import InvalidArgumentError
from vidkin.similarity import Segment
from vidkin_research.public.benchmark import RetrievalBenchmark, RetrievalTask
from vidkin_research.public.evaluate import BenchmarkScores, evaluate_benchmark, evaluate_segments
from vidkin_research.public.names import open_benchmark
from vidkin_research.public.study import PUBLISHED


def values(benchmark: RetrievalBenchmark, scores: BenchmarkScores) -> dict[str, float]:
    return {figure.name: figure.value for figure in evaluate_benchmark(benchmark, scores)}


def benchmark(**others: object) -> RetrievalBenchmark:
    task = RetrievalTask("mAP", "micro-AP", {"p": frozenset("ac"), "q": frozenset("b"), "r": frozenset("d")})
    return RetrievalBenchmark("made", ("p", "q", "r"), ("a", "b", "c", "d", "p"), (task,), **others)  # type: ignore[arg-type]


# d and r are missing; p is also in the gallery, but not in its own list.
SCORES = BenchmarkScores(("p", "q"), ("a", "b", "c", "p"), torch.tensor([[0.9, 0.8, 0.7, 1.0], [0.1, 0.4, 0.3, 0.6]]))


def test_average_precision_is_over_available_videos() -> None:
    found = values(benchmark(), SCORES)
    # p: a, b, c -> (1 + 2/3) / 2. q: p, b -> 1/2.
    assert found["mAP"] == pytest.approx((5 / 6 + 1 / 2) / 2)
    # One list: a+ .9, b .8, c+ .7, p .6, b+ .4, ... -> (1 + 2/3 + 3/5) / 3.
    assert found["micro-AP"] == pytest.approx((1 + 2 / 3 + 3 / 5) / 3)
    figure = evaluate_benchmark(benchmark(), SCORES)[0]
    assert (figure.queries, figure.skipped) == (2, 1)


def test_evve_uses_trapezoids_and_groups() -> None:
    found = values(benchmark(has_trapezoids=True, groups={"p": "one", "q": "two", "r": "two"}), SCORES)
    # p: a at rank 1: (1 + 1) / 2; c at rank 3: (1/2 + 2/3) / 2; each half. q: b at rank 2: (0 + 1/2) / 2.
    p, q = (1 + 7 / 12) / 2, 1 / 4
    assert found["mAP"] == found["mAP, mean of 2 groups"] == pytest.approx((p + q) / 2)
    together = values(benchmark(groups={"p": "one", "q": "one"}), SCORES)
    assert together["mAP, mean of 1 group"] == pytest.approx(together["mAP"])


def test_only_candidates_are_ranked() -> None:
    task = RetrievalTask("mAP", "micro-AP", {"q": frozenset("b")}, {"q": frozenset("ab")})
    made = RetrievalBenchmark("made", ("q",), ("a", "b", "c"), (task,))
    scores = BenchmarkScores(("q",), ("a", "b", "c"), torch.tensor([[0.1, 0.4, 0.9]]))
    assert values(made, scores)["mAP"] == 1.0


def test_metric_without_a_positive_is_nan() -> None:
    scores = BenchmarkScores(("r",), ("a",), torch.tensor([[0.5]]))
    assert math.isnan(values(benchmark(), scores)["mAP"])
    with pytest.raises(InvalidArgumentError, match=r"scores must be \[1, 2\], got \[1, 1\]"):
        BenchmarkScores(("r",), ("a", "b"), torch.tensor([[0.5]]))


def test_segments_of_labeled_pairs_are_evaluated() -> None:
    made = benchmark(segments={("p", "a"): ((0, 0, 10, 10),), ("q", "b"): ((0, 0, 4, 4),), ("r", "d"): ((0, 0, 1, 1),)})
    half = Segment(0, 5, 0, 5, 0.9)
    found = {("p", "a"): (half,), ("q", "b"): (), ("p", "b"): (Segment(0, 5, 0, 5, 0.3),), ("p", "c"): ()}
    figures = {figure.name: figure for figure in evaluate_segments(made, found)}
    assert figures["segment precision"].value == 1.0
    assert figures["segment recall"].value == pytest.approx((0.5 * 0.5 + 0) / 2)
    # Of 14 true seconds, 5 are found first, followed by 5 wrong ones: a recall of 5/14 at precision 1.
    assert figures["segment AP"].value == pytest.approx(5 / 14)
    assert (figures["segment F"].queries, figures["segment F"].skipped) == (2, 1)


def test_published_results_are_fractions() -> None:
    rows = [value for systems in PUBLISHED.values() for row in systems.values() for value in row.values()]
    assert len(rows) > 90
    assert all(0.2 < value < 1 for value in rows)
    assert PUBLISHED["fivr-200k"]["S2VS"]["DSVR"] == pytest.approx(0.9253)
    assert "DSVD" not in PUBLISHED["fivr-200k"]["TMK"]


@pytest.mark.data
def test_fivr_metrics_equal_those_of_the_public_evaluators(shared_data: Path) -> None:
    """Pseudorandom scores from hashes of the ids, with a bonus for each label, as for the reference values."""
    made = open_benchmark("fivr-5k", shared_data / "annotations")
    labels = json.loads((shared_data / "annotations" / "fivr" / "annotation.json").read_text())
    scores = torch.zeros(len(made.queries), len(made.database), dtype=torch.float64)
    for row, query in enumerate(made.queries):
        bonus: dict[str, float] = {}
        for label, value in (("IS", 0.3), ("CS", 0.5), ("DS", 0.7), ("ND", 0.9)):
            bonus |= dict.fromkeys(labels[query].get(label, ()), value)
        for column, video in enumerate(made.database):
            drawn = int(hashlib.sha1(f"{query}|{video}".encode()).hexdigest()[:8], 16) / 2**32
            scores[row, column] = drawn + bonus.get(video, 0.0)
    anchors = json.loads((shared_data / "anchors" / "fivr_5k_evaluator.json").read_text())["FIVR-5K"]
    found = values(made, BenchmarkScores(made.queries, made.database, scores))
    assert set(found) == {"DSVR", "CSVR", "ISVR", "DSVD", "CSVD", "ISVD"}
    for name, value in found.items():
        assert value == pytest.approx(anchors[name], abs=1e-8)
