"""The score of a learned similarity measure."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.match import KindScorer, open_scorer
from vidkin.similarity import FrameFeatures


def frames(angles: list[float], weights: list[float] | None = None) -> FrameFeatures:
    """Frames with one region, described by two-dimensional unit vectors at these angles in degrees."""
    radians = np.array([math.radians(angle) for angle in angles])
    count = len(angles)
    return FrameFeatures.of_whole(
        np.stack([np.cos(radians), np.sin(radians)], axis=1)[:, None],
        np.arange(float(count)),
        np.array(weights or [1.0] * count),
        baseline=np.zeros(count, np.float32),
    )


def score(query: FrameFeatures, target: FrameFeatures) -> float:
    return KindScorer().score(query, [target])[0].score


@pytest.mark.parametrize(("angle", "expected"), [(0, 1.0), (60, 0.75), (90, 0.5), (120, 0.25), (180, 0.0)])
def test_score_of_two_vectors_is_half_of_one_plus_their_cosine(angle: float, expected: float) -> None:
    found = KindScorer().score(frames([0]), [frames([angle])])[0]
    assert found.score == pytest.approx(expected, abs=1e-6)
    # The same in terms of the distance d: 1 - d^2 / 4.
    distance = 2 * math.sin(math.radians(angle) / 2)
    assert found.score == pytest.approx(1 - distance**2 / 4, abs=1e-6)
    assert found.map.tolist() == [[pytest.approx(expected, abs=1e-6)]]
    assert found.segments == ()


def test_shorter_video_is_the_query() -> None:
    clip, film = frames([0, 60]), frames([180, 0, 60, 170])
    assert score(clip, film) == score(film, clip) == pytest.approx(1.0)
    # Videos of equal length are compared in both directions: the mean of (1 + 0.75) / 2 and (1 + 1) / 2.
    assert score(frames([0, 60]), frames([0, 0])) == pytest.approx((0.875 + 1.0) / 2)


def test_frames_are_weighted_by_information() -> None:
    assert score(frames([0, 90], [1.0, 0.25]), frames([0, 0, 0])) == pytest.approx((1.0 + 0.25 * 0.5) / 1.25)
    # If no frame has any weight, all count equally.
    assert score(frames([0, 90], [0.0, 0.0]), frames([0, 0, 0])) == pytest.approx(0.75)


def test_scores_decrease_with_distance() -> None:
    query = frames([0])
    targets = [frames([angle]) for angle in (5, 30, 80, 175)]
    scores = [found.score for found in KindScorer().score(query, targets)]
    assert scores == sorted(scores, reverse=True)
    assert all(found > 0 for found in scores)


def test_scorers_are_opened_by_name() -> None:
    query, target = frames([0, 10, 20]), frames([100, 110, 120])
    kinds, copies = open_scorer("kinds"), open_scorer("copies")
    assert (kinds.name, kinds.needs_background, kinds.has_segments) == ("kinds", False, False)
    assert (copies.name, copies.needs_background, copies.has_segments) == ("copies", True, True)
    assert kinds.score(query, [target])[0].score == score(query, target) > 0
    assert copies.score(query, [target])[0].score < 0.2  # they have nothing in common as copies
    assert kinds.score(query, []) == copies.score(query, []) == []
    with pytest.raises(InvalidArgumentError, match="scorer must be one of copies, kinds, learned, got 'likes'"):
        open_scorer("likes")
