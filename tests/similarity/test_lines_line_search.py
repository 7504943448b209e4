"""The search for lines, against reading all of them."""

from __future__ import annotations

import numpy as np
import pytest
from vidkin.similarity.lines import LineSearch, _Lines, best_sums
from vidkin.similarity.lines import _bounds as bounds_of_lines
from vidkin.similarity.lines import _swept as swept_lines

from tests.similarity.test_lines import evidence_map


@pytest.mark.parametrize("speed", [0.5, 1.0, 1.25])
def test_bounds_are_bounds_and_the_sweep_is_exact(speed: float) -> None:
    generator = np.random.default_rng(0)
    evidence = evidence_map(generator.random((40, 60)) - 0.6)
    lines = _Lines.of(evidence, [speed])
    bounds, swept = bounds_of_lines(evidence, lines)[1], swept_lines(evidence, lines)
    values = evidence.along(lines.speeds, lines.offsets)
    exact = best_sums(values).clip(0) * (1.0 if speed == 1.0 else 0.95)
    assert bool((exact <= bounds + 1e-6).all())
    np.testing.assert_allclose(swept, exact, atol=1e-5, rtol=0)


@pytest.mark.parametrize("size", [(5, 12), (30, 40), (70, 90)])
def test_search_finds_the_best_of_all_lines_while_the_map_is_cleared(size: tuple[int, int]) -> None:
    generator = np.random.default_rng(3)
    evidence = evidence_map(generator.random(size) - 0.7)
    search = LineSearch(evidence, [1.0, 0.8, 1.25], 0.1)
    lines = _Lines.of(evidence, [1.0, 0.8, 1.25])
    speeds, offsets = lines.speeds, lines.offsets
    for _ in range(5):
        preference = np.where(speeds == 1.0, 1.0, 0.95)
        expected = float((best_sums(evidence.along(speeds, offsets)) * preference).max())
        run = search.best()
        assert run is not None
        found = run.evidence * (1.0 if run.line.speed == 1.0 else 0.95)
        assert found == pytest.approx(expected, abs=1e-6)
        rows = evidence.excess[run.first : run.first + 1]
        np.minimum(rows, -0.1, out=rows)


def test_small_maps_are_read_at_once_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    excess = (generator.random((20, 25)) - 0.8).astype(np.float32)

    def runs() -> list[tuple[float, float, int, int, float]]:
        evidence = evidence_map(excess.copy())
        search, found = LineSearch(evidence, [0.8, 1.0, 1.25], 0.1), []
        while (run := search.best()) is not None:
            found.append((run.line.speed, run.line.offset, run.first, run.last, run.evidence))
            rows, columns = run.cells()
            evidence.excess[rows, columns] = -0.3
        return found

    at_once = runs()
    monkeypatch.setattr("vidkin.similarity.lines._MOST_AT_ONCE", 0)
    assert at_once == runs()
    assert len(at_once) > 20


def test_nothing_positive_is_nothing_found() -> None:
    assert LineSearch(evidence_map(np.full((5, 5), -0.2, np.float32)), [1.0], 0.1).best() is None


def test_bounds_count_cells_a_little_further_off_than_half_a_period() -> None:
    # At speed 1 the first line passes 0.5005 s before the only target frame that is lit.
    excess = np.full((1, 3), -1.0, np.float32)
    excess[0, 1] = 1.0
    first = float(_Lines.of(evidence_map(excess, np.zeros(1)), [1.0]).offsets[2])
    target = np.array([0.0, first + 0.5005, 3.0], dtype=np.float64)
    evidence = evidence_map(excess, np.zeros(1), target)
    lines = _Lines.of(evidence, [1.0])
    nearer, bounds = bounds_of_lines(evidence, lines)
    exact = best_sums(evidence.along(lines.speeds, lines.offsets)).clip(0)
    assert exact.tolist() == [0.0, 0.0, 1.0, 1.0, 1.0, *[0.0] * (len(exact) - 5)]
    assert float(nearer[2]) == 0.0
    assert bool((exact <= bounds).all())


def test_runs_that_grow_are_found_after_the_search_forgets() -> None:
    excess = np.array([[1.0, -5, -5], [-5, -5, -5], [-5, -5, 1.0]])
    evidence = evidence_map(excess)
    search = LineSearch(evidence, [1.0], 0.1)
    run = search.best()
    assert run is not None
    assert run.evidence == 1.0
    evidence.excess[1, 1] = -0.25
    search.forget()
    run = search.best()
    assert run is not None
    assert (run.first, run.last, run.evidence) == (0, 2, 1.75)
