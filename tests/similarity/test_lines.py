"""Runs along lines, against trying everything."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vidkin.similarity.lines import EvidenceMap, Line, LineSearch, NearestFrame, best_run, best_runs
from vidkin.similarity.lines import _bounds as bounds_of_lines
from vidkin.similarity.lines import _swept as swept_lines


def evidence_map(
    excess: torch.Tensor, query: torch.Tensor | None = None, target: torch.Tensor | None = None
) -> EvidenceMap:
    query = torch.arange(excess.shape[0], dtype=torch.float64) if query is None else query
    target = torch.arange(excess.shape[1], dtype=torch.float64) if target is None else target
    return EvidenceMap(excess, query, target, torch.ones(len(query)), 1.0, 1.0, NearestFrame(target, 1.0))


def naive_best_run(values: list[float]) -> float:
    return max(sum(values[i:j]) for i in range(len(values)) for j in range(i + 1, len(values) + 1))


@settings(max_examples=60, deadline=None)
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
    whole = best_run(evidence_map(excess), line)
    assert whole is not None
    assert (whole.first, whole.last, whole.evidence) == (0, 10, 7.0)
    cut = best_run(evidence_map(excess), line, longest_gap=1.5)
    assert cut is not None
    assert (cut.first, cut.last, cut.evidence) == (6, 10, 5.0)
    assert best_run(evidence_map(excess), Line(1.0, 3.0)) is None


@pytest.mark.parametrize("speed", [0.5, 1.0, 1.25])
def test_bounds_are_bounds_and_the_sweep_is_exact(speed: float) -> None:
    generator = torch.Generator().manual_seed(0)
    evidence = evidence_map(torch.rand(40, 60, generator=generator) - 0.6)
    speeds, offsets, bounds = bounds_of_lines(evidence, [speed])
    same_speeds, same_offsets, swept = swept_lines(evidence, [speed])
    assert torch.equal(speeds, same_speeds)
    assert torch.equal(offsets, same_offsets)
    values = evidence.along(speeds, offsets)
    exact = best_runs(values)[0].clamp(min=0) * (1.0 if speed == 1.0 else 0.95)
    assert bool((exact <= bounds + 1e-6).all())
    torch.testing.assert_close(swept, exact, atol=1e-5, rtol=0)


def test_search_finds_the_best_of_all_lines_while_the_map_is_cleared() -> None:
    generator = torch.Generator().manual_seed(3)
    evidence = evidence_map(torch.rand(30, 40, generator=generator) - 0.7)
    search = LineSearch(evidence, [1.0, 0.8, 1.25], 0.1)
    speeds, offsets, _ = bounds_of_lines(evidence, [1.0, 0.8, 1.25])
    for _ in range(5):
        preference = torch.where(speeds == 1.0, 1.0, 0.95)
        expected = float((best_runs(evidence.along(speeds, offsets))[0] * preference).max())
        run = search.best()
        assert run is not None
        found = run.evidence * (1.0 if run.line.speed == 1.0 else 0.95)
        assert found == pytest.approx(expected, abs=1e-6)
        evidence.excess[run.first : run.last + 1].clamp_(max=-0.1)


def test_nothing_positive_is_nothing_found() -> None:
    assert LineSearch(evidence_map(torch.full((5, 5), -0.2)), [1.0], 0.1).best() is None
