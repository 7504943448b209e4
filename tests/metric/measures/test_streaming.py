"""Accumulators give the results of the functions for any block size, with bounded memory."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from tests.metric.measures import naive
from vidkin.errors import InvalidArgumentError
from vidkin.metric.measures import (
    RetrievalAccumulator,
    Ties,
    average_set_intersection,
    hierarchical_average_precision,
    map_at_r,
    mean_average_precision,
    ndcg,
    quadlet_precision,
    r_precision,
    recall_at_k,
    triplet_precision,
)

Block = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def blocks(case: Block, size: int) -> Iterator[Block]:
    for first in range(0, len(case[0]), size):
        scores, relevance, valid = (part[first : first + size] for part in case)
        yield scores, relevance, valid


@pytest.mark.parametrize("size", [1, 3, 50])
@pytest.mark.parametrize("ties", ["stable", "expected"])
def test_accumulated_measures_equal_the_functions(size: int, ties: Ties) -> None:
    case = naive.random_case(2, queries=17, gallery=23)
    # A query without positives, which each measure skips.
    case[1][4] = 0
    scores, relevance, valid = case
    accumulator = RetrievalAccumulator(recall_at=(1, 5), ties=ties)
    for block in blocks(case, size):
        accumulator.update(*block)
    expected = {
        "mean_average_precision": mean_average_precision(scores, relevance, ties=ties, valid=valid),
        "ndcg": ndcg(scores, relevance, ties=ties, valid=valid),
        "recall_at_1": recall_at_k(scores, relevance, 1, ties=ties, valid=valid),
        "recall_at_5": recall_at_k(scores, relevance, 5, ties=ties, valid=valid),
        "r_precision": r_precision(scores, relevance, ties=ties, valid=valid),
        "map_at_r": map_at_r(scores, relevance, ties=ties, valid=valid),
        "hierarchical_average_precision": hierarchical_average_precision(scores, relevance, valid=valid),
        "average_set_intersection": average_set_intersection(scores, relevance, valid=valid),
        "quadlet_precision": quadlet_precision(scores, relevance, valid=valid),
        "triplet_precision": triplet_precision(scores, relevance, valid=valid),
    }
    found = accumulator.compute()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(float(value)), name
        assert (found[name].count, found[name].skipped) == (value.count, value.skipped), name  # type: ignore[union-attr]
    assert found["mean_average_precision"].skipped >= 1


def test_accumulators_of_two_processes_merge() -> None:
    case = naive.random_case(5, queries=12)
    whole = RetrievalAccumulator(["ndcg", "quadlet_precision"])
    parts = [RetrievalAccumulator(["ndcg", "quadlet_precision"]) for _ in range(2)]
    for number, block in enumerate(blocks(case, 3)):
        whole.update(*block)
        parts[number % 2].update(*block)
    parts[0].merge(parts[1])
    assert parts[0].compute() == pytest.approx(whole.compute())
    with pytest.raises(InvalidArgumentError, match=r"the same measures to be merged, got \['ndcg'\]"):
        parts[0].merge(RetrievalAccumulator(["ndcg"]))


def test_an_accumulator_without_blocks_returns_nan() -> None:
    value = RetrievalAccumulator(["ndcg"]).compute()["ndcg"]
    assert math.isnan(value)
    assert value.count == 0


def test_retrieval_arguments_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match=r"measures must be among average_set_.*, got \['mAP'\]"):
        RetrievalAccumulator(["mAP"])
    with pytest.raises(InvalidArgumentError, match=r"recall_at must be numbers of at least 1, got \[0\]"):
        RetrievalAccumulator(recall_at=[0])
    with pytest.raises(InvalidArgumentError, match="gain must be one of 'exponential', 'linear', got 'log'"):
        RetrievalAccumulator(gain="log")  # type: ignore[arg-type]
    with pytest.raises(
        InvalidArgumentError, match="relevance must be at most 2, the levels of this accumulator, got 3"
    ):
        RetrievalAccumulator().update(torch.zeros(1, 2), torch.tensor([[3, 0]]))


MEMORY = """
import resource, torch
from vidkin.metric.measures import RetrievalAccumulator
torch.set_num_threads(1)
Q, G, B = 1024, 8000, 16
def block(first):
    generator = torch.Generator().manual_seed(first)
    scores = torch.rand(B, G, generator=generator)
    columns = torch.arange(G, dtype=torch.int16)[None]
    relevance = (columns - torch.arange(first, first + B, dtype=torch.int16)[:, None]).abs() < 10
    return scores, relevance
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def run(queries):
    retrieval = RetrievalAccumulator(["mean_average_precision", "ndcg"], levels=1)
    for first in range(0, queries, B):
        retrieval.update(*block(first))
    assert retrieval.compute()["ndcg"].count == queries
run(2 * B)
start = peak()
run(Q)
print(peak() - start)
"""


@pytest.mark.process
def test_peak_memory_is_bounded_by_a_block() -> None:
    """The scores of the 8 million pairs alone take 33 MB, and ranking all at once over 200 MB."""
    # glibc would keep freed blocks; this threshold returns tensors of 64 KiB or more at once, so the peak is accurate.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, env=environment)
    assert float(done.stdout) < 16
