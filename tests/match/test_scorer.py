"""The scorer says what the engine says of two videos, as scores and segments of stored features."""

from __future__ import annotations

import numpy as np
import pytest

from tests.match.footage import cohort, film, verifier
from vidkin.errors import InvalidArgumentError
from vidkin.match import Sequenced, VerifiedScorer, levels
from vidkin.similarity import FrameFeatures, Scorer

CORNER = (0.5, 0.5, 1.0, 1.0)


def features(whole: Sequenced, corner: Sequenced | None = None) -> FrameFeatures:
    """Stored features of whole frames, and of a corner of them."""
    vectors = np.stack([whole.vectors] if corner is None else [whole.vectors, corner.vectors], axis=1)
    baseline = np.stack([levels(vectors[:, view], cohort()) for view in range(vectors.shape[1])], axis=1)
    boxes = np.tile(np.array([(0, 0, 1, 1), CORNER][: vectors.shape[1]], np.float32), (len(vectors), 1, 1))
    return FrameFeatures(vectors[:, :, None], whole.times, whole.information, baseline=baseline, boxes=boxes)


def test_it_is_a_scorer_with_segments() -> None:
    scorer: Scorer = VerifiedScorer(verifier())
    assert scorer.has_segments
    assert scorer.score(features(film((1, 0, 8, 1))), []) == []


def test_a_stretch_of_a_video_is_found_in_it_and_unrelated_videos_score_low() -> None:
    query = features(film((1, 33, 8, 1)))
    targets = [features(film((50, 0, 25, 1), (1, 30, 20, 1))), features(film((51, 0, 40, 1)))]
    found, other = VerifiedScorer(verifier()).score(query, targets)
    assert found.score > 0.7 > 0.2 > other.score
    (segment, *_) = found.segments
    assert (segment.query_start, segment.query_end) == pytest.approx((0, 8), abs=0.5)
    assert (segment.target_start, segment.target_end) == pytest.approx((28, 36), abs=0.5)
    assert segment.speed == 1.0
    assert found.map.shape == (16, 90)
    assert 0 <= found.map.min() <= found.map.max() <= 1
    assert np.unravel_index(found.map.argmax(), found.map.shape)[1] >= 56


def test_footage_in_a_corner_is_found_by_the_vectors_of_the_corner() -> None:
    query = features(film((1, 0, 8, 1)))
    alone, shown = features(film((60, 0, 8, 1))), features(film((60, 0, 8, 1)), film((1, 0, 8, 1)))
    scorer = VerifiedScorer(verifier())
    without, inside = scorer.score(query, [alone, shown])
    assert without.score < 0.2 < 0.7 < inside.score
    assert inside.segments[0].target_box == pytest.approx(CORNER)
    (back,) = scorer.score(shown, [query])
    assert back.segments[0].query_box == pytest.approx(CORNER)


def test_features_with_several_vectors_a_view_are_refused() -> None:
    whole = film((1, 0, 4, 1))
    many = FrameFeatures(np.repeat(whole.vectors[:, None, None], 9, axis=2), whole.times, whole.information)
    with pytest.raises(InvalidArgumentError, match="one vector a view, got 9"):
        VerifiedScorer(verifier()).score(many, [many])
