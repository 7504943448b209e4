"""The scorer of a trained comparator: calibration, direction, speed and segments, with a handwritten comparator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.arrays import unit
from vidkin.errors import InvalidArgumentError
from vidkin.match import LearnedScorer, VideoComparator, available_scorers, open_scorer, scorer_of
from vidkin.similarity import FrameFeatures, frame_similarity, temporal_chamfer


class ChamferComparator:
    """Computes Chamfer similarity without a network."""

    reduction = 1

    def weigh(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        return values

    def frame_map(self, query: NDArray[np.float32], target: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(frame_similarity(query, target))

    def learned_map(self, frame_map: NDArray[np.float32]) -> NDArray[np.float32]:
        return frame_map.clip(-1, 1)

    def video_score(self, learned_map: NDArray[np.float32]) -> float:
        return float(temporal_chamfer(learned_map))


SCORER = LearnedScorer(ChamferComparator(), (0.0, 0.5), identity="chamfer")


def moments(first: int, last: int, *, noise: int | None = None) -> NDArray[np.floating]:
    """Unit vectors of a video between two times, [T, 1, 64]; other ``noise`` gives another video."""
    generator = np.random.default_rng(9 if noise is None else noise)
    every = unit(generator.standard_normal((400, 64)))
    return every[first:last, None]


def video(
    values: NDArray[np.floating], period: float = 1.0, information: NDArray[np.floating] | None = None
) -> FrameFeatures:
    times = np.arange(float(len(values))) * period
    return FrameFeatures.of_whole(values, times, information, end=len(values) * period)


def test_identical_video_scores_one_and_unrelated_ones_score_low() -> None:
    one, other = video(moments(0, 20)), video(moments(0, 20, noise=3))
    same, strange = SCORER.score(one, [one, other])
    assert same.score == 1.0
    assert strange.score < 0.2
    assert strange.segments == ()
    assert (SCORER.name, SCORER.needs_background, SCORER.has_segments) == ("learned", True, True)


def test_scores_are_calibrated_between_unrelated_videos_and_identity() -> None:
    query, half = np.zeros((1, 1, 2), np.float32), np.zeros((1, 1, 2), np.float32)
    query[..., 0] = 1
    for cosine, expected in ((0.75, 0.6), (0.5, 0.2), (0.25, 0.1), (0.0, 0.0), (-1.0, 0.0)):
        half[..., 0], half[..., 1] = cosine, math.sqrt(1 - cosine**2)
        assert SCORER.score(video(query), [video(half.copy())])[0].score == pytest.approx(expected, abs=1e-6)


def test_excerpt_is_found_on_either_side() -> None:
    long, clip = video(moments(0, 60)), video(moments(20, 35))
    result, swapped = SCORER.score(clip, [long])[0], SCORER.score(long, [clip])[0]
    assert result.score == swapped.score == 1.0
    (segment,) = result.segments
    assert (segment.query_start, segment.query_end) == pytest.approx((0, 15))
    assert (segment.target_start, segment.target_end) == pytest.approx((20, 35))
    assert swapped.segments[0].query_start == pytest.approx(20)
    assert swapped.map.shape == (60, 15)
    np.testing.assert_allclose(swapped.map, result.map.T, rtol=1e-4, atol=1e-6)


def test_scattered_moments_of_a_long_video_do_not_match() -> None:
    clip, long = moments(0, 10), moments(0, 200, noise=8)
    scattered = long.copy()
    scattered[::20] = clip  # all ten frames are there, 20 s apart
    together = long.copy()
    together[117:127] = clip
    apart, contained = SCORER.score(video(clip), [video(scattered), video(together)])
    # At most two of ten are within 30 s.
    assert apart.score < 0.2
    assert contained.score == 1.0
    assert contained.segments[0].target_start == pytest.approx(117)


class ContrastComparator(ChamferComparator):
    """Scores each cell relative to the whole map, as a network depends on the surroundings of a cell."""

    def learned_map(self, frame_map: NDArray[np.float32]) -> NDArray[np.float32]:
        return (frame_map - frame_map.mean()).clip(-1, 1)


class PassingComparator(ChamferComparator):
    """Max-pools 4 x 4 similarities like the network of :func:`tests.support.comparators.passing`."""

    reduction = 4

    def learned_map(self, frame_map: NDArray[np.float32]) -> NDArray[np.float32]:
        rows, columns = (-(-size // 4) for size in frame_map.shape)
        padded = np.full((4 * rows, 4 * columns), -1.0, np.float32)
        padded[: frame_map.shape[0], : frame_map.shape[1]] = frame_map
        largest = padded.reshape(rows, 4, columns, 4).max((1, 3))
        return 2 * largest.clip(0, 1) - 1


@pytest.mark.parametrize("seconds", [172, 3600])
@pytest.mark.parametrize("comparator", [ContrastComparator(), PassingComparator()])
def test_surroundings_of_a_shot_do_not_change_the_score_of_a_clip_in_it(
    comparator: VideoComparator, seconds: int
) -> None:
    scorer = LearnedScorer(comparator, (0.0, 0.1), identity="any")
    sky = unit(np.random.default_rng(2).standard_normal((1, 1, 64)))
    shot = unit(moments(0, 12) + sky)
    clip = unit(shot[2:10] + 0.05 * moments(0, 8, noise=5))
    # The rest of the film consists of the same sky and of moments of other films.
    rest = np.tile(moments(0, 400, noise=7), (9, 1, 1))[: seconds - 102]
    film = np.concatenate([rest, sky.repeat(60, 0), shot, sky.repeat(30, 0)])
    assert len(film) == seconds
    own, inside = scorer.score(video(clip), [video(shot), video(film)])
    assert inside.score == pytest.approx(own.score, abs=0.02)
    assert own.score > 0.9


def test_query_is_compared_at_the_rate_of_the_target() -> None:
    target = video(moments(0, 24))
    # Four samples per second, of which the third one equals the sample of the target.
    finer = moments(0, 96, noise=5)
    finer[2::4] = moments(0, 24)
    result = SCORER.score(video(finer, 0.25), [target])[0]
    assert result.score == 1.0
    assert result.map.shape == (96, 24)


def test_frames_without_information_are_left_out() -> None:
    dark = np.ones((1, 1, 64), np.float32) / 8
    clip, other = moments(0, 10), moments(0, 10, noise=2)
    information = np.concatenate([np.ones(10, np.float32), np.zeros(10, np.float32)])
    one, another = (
        video(np.concatenate([part, dark.repeat(10, 0)]), information=information) for part in (clip, other)
    )
    assert SCORER.score(one, [another])[0].score < 0.2
    assert SCORER.score(one, [video(clip)])[0].score == 1.0
    empty = video(clip, information=np.zeros(10, np.float32))
    nothing = SCORER.score(empty, [video(clip)])[0]
    assert (nothing.score, nothing.segments, nothing.map.shape) == (0.0, (), (10, 10))


def test_reversed_clip_is_reported() -> None:
    clip = moments(0, 10)
    (segment,) = SCORER.score(video(clip[::-1]), [video(clip)])[0].segments
    assert (segment.backwards, segment.speed) == (True, 1.0)
    assert (segment.query_start, segment.query_end, segment.target_start, segment.target_end) == (0, 10, 0, 10)


def test_scorers_are_found_by_name_and_by_extractor() -> None:
    class Brings:
        scorer = "learned"

        def open_scorer(self) -> LearnedScorer:
            return SCORER

    class Declares:
        scorer = "kinds"

    assert scorer_of(Brings()) is SCORER
    assert scorer_of(Declares()).name == "kinds"
    assert available_scorers() == ("copies", "kinds", "learned")
    with pytest.raises(InvalidArgumentError, match="scorer 'learned' is part of a trained comparator"):
        open_scorer("learned")


def test_repr_depends_only_on_weights_and_settings() -> None:
    assert repr(SCORER) == repr(LearnedScorer(ChamferComparator(), (0.0, 0.5), identity="chamfer"))
    assert "chamfer" in repr(SCORER)
