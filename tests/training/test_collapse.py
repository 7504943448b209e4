"""Detection of embedding collapse."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from vidkin.training.collapse import CollapseWatch, collapse_threshold


def reported_steps(watch: CollapseWatch, distances: list[float], first: int = 1) -> list[int]:
    """Steps at which a collapse was reported."""
    return [step for step, distance in enumerate(distances, first) if watch.add(distance, step)]


def test_baseline_is_the_mean_of_the_first_ten_steps() -> None:
    watch = CollapseWatch(0.2)
    reported_steps(watch, [1.0] * 5 + [0.8] * 5 + [0.1])
    assert watch.start is not None
    assert watch.start == pytest.approx(0.9)
    assert collapse_threshold(watch.start, watch.below) == pytest.approx(0.18)


def test_collapse_is_reported_once_and_only_if_it_lasts() -> None:
    watch = CollapseWatch(0.2)
    assert reported_steps(watch, [1.0] * 10 + [0.0] + [1.0] * 10) == []
    alarms = reported_steps(watch, [0.001] * 60, first=22)
    assert len(alarms) == 1
    assert alarms == [watch.collapsed_at]
    # A running mean over ten steps decreases by a tenth per step: from 1 to below 0.2 after ln 0.2 / ln 0.9 = 16 steps.
    assert 36 <= alarms[0] <= 39
    assert watch.is_collapsed


def test_run_recovers_when_distances_grow_again() -> None:
    watch = CollapseWatch(0.5)
    assert len(reported_steps(watch, [1.0] * 10 + [0.0] * 20 + [1.0] * 40)) == 1
    assert not watch.is_collapsed
    assert watch.lowest is not None
    assert watch.lowest < 0.15


def test_the_first_steps_never_count_as_collapse() -> None:
    assert reported_steps(CollapseWatch(0.9), [1.0, 0.0, 0.0, 0.0]) == []


def test_collapse_from_the_start_is_reported_at_any_fraction() -> None:
    assert reported_steps(CollapseWatch(0.0), [0.01] * 12) == [10]
    assert reported_steps(CollapseWatch(0.0), [0.03] * 12) == []


def test_state_is_restored_from_a_mapping() -> None:
    whole, cut = CollapseWatch(0.2), CollapseWatch(0.2)
    distances = [1.0] * 7 + [0.9] * 8 + [0.05] * 30
    reported_steps(whole, distances)
    reported_steps(cut, distances[:9])
    later = CollapseWatch(**asdict(cut))
    reported_steps(later, distances[9:], first=10)
    assert later == whole


def test_threshold_is_a_fraction_of_the_baseline_but_never_below_the_floor() -> None:
    assert collapse_threshold(1.2, 0.25) == pytest.approx(0.3)
    assert collapse_threshold(0.05, 0.2) == 0.02
    assert collapse_threshold(1.2, 0.0) == 0.02
