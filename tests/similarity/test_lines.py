"""Runs along lines, against trying everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from vidkin.similarity.lines import EvidenceMap, Line, NearestFrame, best_run, best_sums, best_sums_down, run_of


def evidence_map(
    excess: NDArray[np.floating], query: NDArray[np.floating] | None = None, target: NDArray[np.floating] | None = None
) -> EvidenceMap:
    query = np.arange(float(excess.shape[0])) if query is None else query
    target = np.arange(float(excess.shape[1])) if target is None else target
    return EvidenceMap(excess, query, target, np.ones(len(query), np.float32), 1.0, 1.0, NearestFrame(target, 1.0))


def naive_best_run(values: list[float]) -> float:
    return max(sum(values[i:j]) for i in range(len(values)) for j in range(i + 1, len(values) + 1))


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=12))
def test_best_run_equals_trying_all(values: list[float]) -> None:
    total, first, last = run_of(values)
    assert total == pytest.approx(naive_best_run(values), abs=1e-5)
    assert sum(values[first : last + 1]) == pytest.approx(total, abs=1e-5)
    assert best_sums(np.array([values, values[::-1]], np.float32))[0] == total
    column = np.array(values, np.float32)[:, None]
    for lines in (1, 200):
        assert (best_sums_down(np.repeat(column, lines, axis=1)) == total).all()


def test_of_equal_runs_the_first_is_taken_from_where_it_is_shortest() -> None:
    assert run_of([0.0, 1.0, -1.0, 1.0]) == (1.0, 1, 1)
    assert run_of([-2.0, -1.0]) == (-1.0, 1, 1)


@pytest.mark.parametrize("irregular", [False, True])
def test_nearest_frame(irregular: bool) -> None:
    generator = np.random.default_rng(0)
    times = np.arange(float(50))
    if irregular:
        times += 0.8 * generator.random(50)
    nearest = NearestFrame(times, 1.0)
    assert nearest.is_regular is not irregular
    wanted = 60 * generator.random(500) - 5
    found = times[nearest(wanted)]
    best = np.abs(wanted[:, None] - times).min(1)
    # The table is a sixteenth of a period fine: it is at most a thirty-second off, twice.
    assert float((np.abs(wanted - found) - best).max()) <= (1 / 16 if irregular else 1e-9)


def test_run_is_cut_where_the_evidence_falls() -> None:
    excess = np.full((12, 12), -1.0, np.float32)
    diagonal = np.array([1.0, 1, 1, 1, -1, -1, 1, 1, 1, 1, 1, -1])
    excess[np.arange(12), np.arange(12)] = diagonal
    line = Line(1.0, 0.0)
    whole = best_run(evidence_map(excess), evidence_map(excess).trace(line))
    assert whole is not None
    assert (whole.first, whole.last, whole.evidence) == (0, 10, 7.0)
    cut = best_run(evidence_map(excess), evidence_map(excess).trace(line), longest_gap=1.5)
    assert cut is not None
    assert (cut.first, cut.last, cut.evidence) == (6, 10, 5.0)
    assert best_run(evidence_map(excess), evidence_map(excess).trace(Line(1.0, 3.0))) is None
