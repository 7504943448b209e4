"""The scorer of copies returns a score and matching segments with their speed, direction and pose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.match.footage import DIMENSION, cohort, film, sequenced, unit, verifier
from vidkin.match import Pose, Sequenced, VerifiedScorer, levels
from vidkin.similarity import FrameFeatures, Scorer

CORNER = (0.5, 0.5, 1.0, 1.0)


def features(whole: Sequenced, corner: Sequenced | None = None) -> FrameFeatures:
    """Stored features of whole frames, and of one corner of them."""
    vectors = np.stack([whole.vectors] if corner is None else [whole.vectors, corner.vectors], axis=1)
    baseline = np.stack([levels(vectors[:, view], cohort()) for view in range(vectors.shape[1])], axis=1)
    boxes = np.tile(np.array([(0, 0, 1, 1), CORNER][: vectors.shape[1]], np.float32), (len(vectors), 1, 1))
    return FrameFeatures(vectors[:, :, None], whole.times, whole.information, baseline=baseline, boxes=boxes)


def test_scorer_has_segments() -> None:
    scorer: Scorer = VerifiedScorer(verifier())
    assert scorer.has_segments
    assert scorer.score(features(film((1, 0, 8, 1))), []) == []


def test_excerpt_is_found_and_unrelated_videos_score_low() -> None:
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


def test_footage_in_a_corner_is_found_by_the_view_of_the_corner() -> None:
    query = features(film((1, 0, 8, 1)))
    alone, shown = features(film((60, 0, 8, 1))), features(film((60, 0, 8, 1)), film((1, 0, 8, 1)))
    scorer = VerifiedScorer(verifier())
    without, inside = scorer.score(query, [alone, shown])
    assert without.score < 0.2 < 0.7 < inside.score
    assert inside.segments[0].target_box == pytest.approx(CORNER)
    (back,) = scorer.score(shown, [query])
    assert back.segments[0].query_box == pytest.approx(CORNER)


def test_identical_frames_match_as_a_whole() -> None:
    video = features(film((60, 0, 8, 1)), film((1, 0, 8, 1)))
    (found,) = VerifiedScorer(verifier()).score(video, [video])
    assert found.score == 1.0
    assert found.segments[0].query_box == found.segments[0].target_box == (0, 0, 1, 1)


def test_regions_count_like_their_concatenation() -> None:
    """Two regions of half the dimensions have the same mean cosine as their concatenation."""
    query, target = film((1, 33, 8, 1)), film((50, 0, 25, 1), (1, 30, 20, 1))

    def divided(frames: Sequenced) -> FrameFeatures:
        regions = unit(frames.vectors.reshape(len(frames), 1, 2, DIMENSION // 2))
        joined = regions.reshape(len(frames), DIMENSION) / np.float32(np.sqrt(2))
        baseline = levels(joined, cohort())[:, None]
        return FrameFeatures(regions, frames.times, frames.information, baseline=baseline)

    def joined(features: FrameFeatures) -> FrameFeatures:
        return replace(features, values=features.vectors[:, :, None])

    scorer = VerifiedScorer(verifier())
    (several,) = scorer.score(divided(query), [divided(target)])
    (one,) = scorer.score(joined(divided(query)), [joined(divided(target))])
    assert several.score == pytest.approx(one.score, abs=1e-6)
    assert several.score > 0.7
    assert several.segments == one.segments
    np.testing.assert_allclose(several.map, one.map, atol=1e-6)


@pytest.mark.parametrize("speed", [1.0, 1.5])
def test_reversed_segment_is_reported(speed: float) -> None:
    query, target = film((1, 10, 20, 1)), film((2, 0, 15, 1), (1, 40, 38 / speed, -speed))
    (found,) = VerifiedScorer(verifier()).score(features(query), [features(target)])
    (segment, *_) = found.segments
    assert segment.backwards
    assert segment.speed == pytest.approx(1 / speed, rel=0.02)
    # The first second of the query, 10, is shown last: 15 + (40 - 10) / speed.
    assert (segment.query_start, segment.query_end) == pytest.approx((0, 20), abs=1.1)
    first, last = 15 + (40 - 30) / speed, 15 + (40 - 10) / speed
    assert (segment.target_start, segment.target_end) == pytest.approx((first, last), abs=1.1)
    (back,) = VerifiedScorer(verifier()).score(features(target), [features(query)])
    assert back.segments[0].backwards
    assert back.segments[0].speed == pytest.approx(speed, rel=0.02)


@pytest.mark.parametrize("pose", [Pose(flip, quarter) for flip in (False, True) for quarter in range(4)])
def test_pose_of_a_match_is_estimated_from_thumbnails(pose: Pose) -> None:
    frames = film((1, 0, 8, 1))
    drawn = np.random.default_rng(5).integers(0, 256, (len(frames), 8, 8)).astype(np.uint8)
    shown = np.ascontiguousarray(pose.apply(drawn[..., None])[..., 0])
    query, target = (replace(features(frames), thumbnails=small[:, None]) for small in (drawn, shown))
    (found,) = VerifiedScorer(verifier()).score(query, [target])
    assert (found.segments[0].mirrored, found.segments[0].turned) == (pose.flip, 90 * pose.quarter)
    (back,) = VerifiedScorer(verifier()).score(target, [query])
    assert (back.segments[0].mirrored, back.segments[0].turned) == (pose.inverse.flip, 90 * pose.inverse.quarter)


def test_segment_ends_with_its_video() -> None:
    frames = features(film((1, 0, 8, 1)))
    short = replace(frames, end=7.6)
    (found,) = VerifiedScorer(verifier()).score(short, [frames])
    assert (found.segments[0].query_end, found.segments[0].target_end) == (7.6, 8.0)


def test_missing_views_are_skipped_and_partial_ones_compared_where_they_exist() -> None:
    query = features(film((1, 0, 8, 1)))
    shown = features(film((60, 0, 16, 1)), film((70, 0, 8, 1), (1, 0, 8, 1)))
    values, boxes = shown.values.copy(), shown.boxes
    assert boxes is not None
    values[:16, 1] = 0
    (found,) = VerifiedScorer(verifier()).score(query, [replace(shown, values=values)])
    assert found.score > 0.7
    assert (found.segments[0].target_start, found.segments[0].target_end) == pytest.approx((8, 16), abs=0.5)
    values[:, 1] = 0
    (none,) = VerifiedScorer(verifier()).score(query, [replace(shown, values=values)])
    (whole,) = VerifiedScorer(verifier()).score(query, [shown.views([0])])
    assert none.score == whole.score < 0.2


def test_times_come_from_whole_frames_even_if_a_sparse_crop_scores_higher() -> None:
    whole, target = film((1, 33, 20, 1), noise=0.6), features(film((50, 0, 25, 1), (1, 30, 40, 1)))
    query = features(whole, film((1, 33, 20, 1), noise=0.0))
    values = query.values.copy()
    values[np.arange(len(values)) % 8 != 0, 1] = 0
    (found,) = VerifiedScorer(verifier()).score(replace(query, values=values), [target])
    (alone,) = VerifiedScorer(verifier()).score(features(whole), [target])
    assert found.score > alone.score > 0.7
    assert found.segments == alone.segments
    assert found.segments[0].query_box == (0, 0, 1, 1)


def test_videos_without_a_similar_frame_score_zero() -> None:
    frames = film((1, 0, 8, 1))
    opposite = sequenced(-frames.vectors, frames.times)
    (found,) = VerifiedScorer(verifier()).score(features(frames), [features(opposite)])
    assert (found.score, found.segments) == (0.0, ())
    assert found.map.max() == 0
