"""What changes in two stretches: other moments before one camera, and pieces in another order."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from vidkin.similarity.evidence import compare_changes, split_by_changes

from tests.support.arrays import unit
from vidkin.similarity import CopyScorer, FrameFeatures, ScoreSettings, Segment

SETTINGS = ScoreSettings()


def before_a_camera(moments: NDArray[np.floating]) -> FrameFeatures:
    """Frames [T, D] of one scene in which something small changes: all of them look alike."""
    scene = unit(np.ones((1, moments.shape[1])))
    values = unit(scene + 0.4 * moments)
    frames = len(values)
    return FrameFeatures.of_whole(
        values[:, None],
        np.arange(float(frames)),
        np.ones(frames, np.float32),
        baseline=np.full((frames,), 0.3, np.float32),
    )


def moments(frames: int, seed: int) -> NDArray[np.floating]:
    noise = np.random.default_rng(seed).standard_normal((frames, 64))
    return unit(noise)


def agreement(query: FrameFeatures, target: FrameFeatures, settings: ScoreSettings = SETTINGS) -> float:
    frames = np.arange(min(len(query), len(target)))
    return compare_changes(query, target, frames, frames, settings).agreement


def test_the_same_changes_agree_and_others_do_not() -> None:
    query = before_a_camera(moments(12, 1))
    assert agreement(query, query) == 1.0
    other = agreement(query, before_a_camera(moments(12, 2)))
    # Unrelated changes leave one minus the share, as far as the energy is trusted.
    centered = query.whole - query.whole.mean(0)
    energy = float((centered**2).sum()) / 12
    assert other == pytest.approx(1 - 0.9 * energy**2 / (energy**2 + 0.005**2), abs=0.02)


def test_videos_that_stand_still_agree_whatever_they_show() -> None:
    still = before_a_camera(moments(1, 1).repeat(8, 0))
    assert agreement(still, before_a_camera(moments(1, 2).repeat(8, 0))) == pytest.approx(1.0, abs=1e-3)
    one = before_a_camera(moments(1, 1))
    assert agreement(one, one) == 1.0


def test_correlation_between_the_limits_counts_in_proportion() -> None:
    """rho = 1: less the chance of .2 / sqrt(4 - 1) it is .885; limits of .5 and 1 make .769 of it."""
    query = before_a_camera(moments(4, 1))
    settings = ScoreSettings(change_least=0.5, change_full=1.0, change_share=1.0, change_energy=1e-9)
    assert agreement(query, query, settings) == pytest.approx((1 - 0.2 / 3**0.5 - 0.5) / 0.5, abs=1e-4)


def test_one_frame_of_the_target_beside_many_of_the_query_is_one_frame() -> None:
    query = before_a_camera(moments(6, 1))
    rows = np.arange(6)
    settings = ScoreSettings(change_chance=1.0)
    # Two different frames: all of the correlation may be chance.
    columns = np.array([0, 0, 0, 5, 5, 5])
    assert compare_changes(query, query, rows, columns, settings).agreement < 0.25
    assert compare_changes(query, query, rows, rows, settings).agreement > 0.6


def test_only_what_changes_confirms() -> None:
    """Trust times relation: about 1 for one moving video, 0 for two, and 0 for what stands still."""
    frames = np.arange(12)
    query = before_a_camera(moments(12, 1))
    assert compare_changes(query, query, frames, frames, SETTINGS).confirmation > 0.99
    other = before_a_camera(moments(12, 2))
    assert compare_changes(query, other, frames, frames, SETTINGS).confirmation == 0.0
    still = before_a_camera(moments(1, 1).repeat(12, 0))
    assert compare_changes(still, still, frames, frames, SETTINGS).confirmation == pytest.approx(0.0, abs=1e-9)


def test_pieces_in_another_order_before_one_camera_are_found() -> None:
    shown = moments(18, 3)
    query = before_a_camera(shown)
    target = before_a_camera(np.concatenate([shown[12:], shown[:12]]))
    (result,) = CopyScorer().score(query, [target])
    assert result.score > 0.9
    first, second = sorted(result.segments, key=lambda segment: segment.query_start)
    assert (first.query_start, first.query_end) == pytest.approx((0, 12), abs=1.1)
    assert first.target_start - first.query_start == pytest.approx(6)
    assert (second.query_start, second.query_end) == pytest.approx((12, 18), abs=1.1)
    assert second.target_start - second.query_start == pytest.approx(-12)


def test_other_moments_are_not_divided_into_pieces() -> None:
    query, target = before_a_camera(moments(18, 3)), before_a_camera(moments(18, 4))
    whole = Segment(0.0, 18.0, 0.0, 18.0, 0.8)
    frame_map = np.full((18, 18), 0.8, np.float32)
    for other in (target, query):
        assert [item.segment for item in split_by_changes(query, other, frame_map, [whole], SETTINGS)] == [whole]
