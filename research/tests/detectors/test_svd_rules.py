"""Steps of SVD-SBD on small arrays."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin_research.detectors.svd_rules import (
    Candidate,
    candidate_segments,
    cosines_to,
    find_cut,
    find_transition,
    narrow,
    reduced_columns,
)


def test_segment_above_its_group_threshold_is_a_candidate() -> None:
    """mu = 1.9, sigma = 2.7: the threshold is 1.1 * 1.9 + 0.6 * 2.7 = 3.71."""
    distances = np.ones(10)
    distances[4] = 10.0
    assert candidate_segments(distances).nonzero()[0].tolist() == [4]


def test_quiet_group_next_to_a_loud_one_has_a_higher_threshold() -> None:
    """mu_L = 1.1, sigma_L = 0.3: alone 1.21 + 0.6 * 0.3 = 1.39; with mu_G = 25.55 it is 1.21 + 0.6 * 23.2 * 0.3 = 5.4.
    Segment 10 is three times its predecessor.
    """
    quiet = np.ones(10)
    quiet[4] = 2.0
    assert candidate_segments(quiet).nonzero()[0].tolist() == [4]
    assert candidate_segments(np.concatenate([quiet, np.full(10, 50.0)])).nonzero()[0].tolist() == [10]


def test_segment_three_times_its_neighbor_is_a_candidate_near_the_mean() -> None:
    """4 > 3 * 1; 4 > 0.8 * mean. No segment reaches the threshold of the group."""
    distances = np.array([1.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0])
    assert candidate_segments(distances).nonzero()[0].tolist() == [1]
    distances = np.array([0.1, 1.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0])
    assert candidate_segments(distances).nonzero()[0].tolist() == [2]


@pytest.mark.parametrize("distances", [np.zeros(0), np.zeros(12), np.ones(1)])
def test_static_segments_are_not_candidates(distances: np.ndarray) -> None:
    assert candidate_segments(distances).sum() == 0


@pytest.mark.parametrize(
    ("whole", "halves", "quarters", "expected"),
    [
        (10.0, (9.0, 1.0), ((8.5, 0.5), (0.5, 0.5)), Candidate("hard", 40, 45)),
        (10.0, (9.0, 1.0), ((0.5, 8.5), (0.5, 0.5)), Candidate("hard", 45, 50)),
        (10.0, (1.0, 9.0), ((0.5, 0.5), (0.5, 8.5)), Candidate("hard", 55, 60)),
        # One half is selected, but no quarter: 6 is less than twice 5, or too small relative to 9.
        (10.0, (1.0, 9.0), ((0.5, 0.5), (5.0, 6.0)), Candidate("gradual", 50, 60)),
        (10.0, (1.0, 9.0), ((0.5, 0.5), (2.0, 7.0)), Candidate("gradual", 50, 60)),
        # Both halves are selected.
        (10.0, (5.0, 6.0), ((2.0, 2.0), (2.0, 2.0)), Candidate("gradual", 40, 60)),
        # The ends differ, but neither half does.
        (10.0, (2.0, 2.9), ((1.0, 1.0), (1.0, 1.0)), None),
    ],
)
def test_candidates_are_bisected(whole, halves, quarters, expected) -> None:  # type: ignore[no-untyped-def]
    assert narrow(40, whole, halves, quarters) == expected


def test_reduced_columns_preserve_angles_between_few_histograms() -> None:
    generator = np.random.default_rng(0)
    histograms = generator.random((6, 50))
    columns = reduced_columns(histograms)
    plain = histograms / np.linalg.norm(histograms, axis=1, keepdims=True)
    assert columns.shape == (6, 6)
    assert np.allclose(columns @ columns.T, plain @ plain.T)


def test_reduced_columns_equal_the_singular_value_decomposition() -> None:
    histograms = np.random.default_rng(1).random((20, 40))
    _, scales, rows = np.linalg.svd(histograms.T, full_matrices=False)
    slow = (scales[:8, None] * rows[:8]).T
    slow /= np.linalg.norm(slow, axis=1, keepdims=True)
    columns = reduced_columns(histograms)
    assert columns.shape == (20, 8)
    assert np.allclose(columns @ columns.T, slow @ slow.T)
    assert np.allclose(cosines_to(columns, 3), slow @ slow[3])


def test_cut_is_between_the_least_similar_neighbors() -> None:
    before, after = np.array([1.0, 0.1, 0.0]), np.array([0.0, 0.1, 1.0])
    columns = reduced_columns(np.stack([before, before, before, before, after, after]))
    cut = find_cut(columns)
    assert cut is not None
    # cos = 0.01 / 1.01
    assert cut == (4, pytest.approx(1 - 0.01 / 1.01))
    # A flash: the last frame is like the first.
    assert find_cut(reduced_columns(np.stack([before, after, before]))) is None


def test_distances_in_a_dissolve_form_an_inverted_triangle() -> None:
    first, last = np.array([1.0, 0.0, 0.2]), np.array([0.0, 1.0, 0.2])
    weights = np.linspace(0.0, 1.0, 21)[:, None]
    confidence = find_transition(reduced_columns(first * (1 - weights) + last * weights))
    assert confidence is not None
    assert confidence > 0.9


@pytest.mark.parametrize("jump", [1, 2, 18])
def test_cut_near_the_end_is_not_found_as_a_dissolve(jump: int) -> None:
    first, last = np.array([1.0, 0.0, 0.2]), np.array([0.0, 1.0, 0.2])
    frames = np.stack([first] * jump + [last] * (21 - jump))
    assert find_transition(reduced_columns(frames)) is None


def test_still_image_has_no_dissolve() -> None:
    assert find_transition(reduced_columns(np.ones((21, 5)))) is None
    assert find_transition(reduced_columns(np.eye(2))) is None
