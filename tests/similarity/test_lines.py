"""Runs along lines, against trying everything."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vidkin.similarity.lines import EvidenceMap, Line, NearestFrame, best_run, best_runs


def evidence_map(
    excess: torch.Tensor, query: torch.Tensor | None = None, target: torch.Tensor | None = None
) -> EvidenceMap:
    query = torch.arange(excess.shape[0], dtype=torch.float64) if query is None else query
    target = torch.arange(excess.shape[1], dtype=torch.float64) if target is None else target
    return EvidenceMap(excess, query, target, torch.ones(len(query)), 1.0, 1.0, NearestFrame(target, 1.0))


def naive_best_run(values: list[float]) -> float:
    return max(sum(values[i:j]) for i in range(len(values)) for j in range(i + 1, len(values) + 1))


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=12))
def test_best_run_equals_trying_all(values: list[float]) -> None:
    total, first, last = best_runs(torch.tensor([values]))
    assert float(total[0]) == pytest.approx(naive_best_run(values), abs=1e-5)
    assert sum(values[int(first[0]) : int(last[0]) + 1]) == pytest.approx(float(total[0]), abs=1e-5)


@pytest.mark.parametrize("irregular", [False, True])
def test_nearest_frame(irregular: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    times = torch.arange(50, dtype=torch.float64)
    if irregular:
        times += 0.8 * torch.rand(50, generator=generator, dtype=torch.float64)
    nearest = NearestFrame(times, 1.0)
    assert nearest.is_regular is not irregular
    wanted = 60 * torch.rand(500, generator=generator, dtype=torch.float64) - 5
    found = times[nearest(wanted)]
    best = (wanted[:, None] - times).abs().amin(1)
    # The table is a sixteenth of a period fine: it is at most a thirty-second off, twice.
    assert float(((wanted - found).abs() - best).max()) <= (1 / 16 if irregular else 1e-9)


def test_run_is_cut_where_the_evidence_falls() -> None:
    excess = torch.full((12, 12), -1.0)
    diagonal = torch.tensor([1.0, 1, 1, 1, -1, -1, 1, 1, 1, 1, 1, -1])
    excess[torch.arange(12), torch.arange(12)] = diagonal
    line = Line(1.0, 0.0)
    whole = best_run(evidence_map(excess), evidence_map(excess).trace(line))
    assert whole is not None
    assert (whole.first, whole.last, whole.evidence) == (0, 10, 7.0)
    cut = best_run(evidence_map(excess), evidence_map(excess).trace(line), longest_gap=1.5)
    assert cut is not None
    assert (cut.first, cut.last, cut.evidence) == (6, 10, 5.0)
    assert best_run(evidence_map(excess), evidence_map(excess).trace(Line(1.0, 3.0))) is None
