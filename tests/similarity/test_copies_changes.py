"""The score by what changes at once in the same regions of both pictures: covers, blends, stickers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from vidkin.similarity.copies import _most_confirmed
from vidkin.similarity.evidence import compare_changes

from tests.support.arrays import unit
from vidkin.match import open_scorer
from vidkin.similarity import SCORE_REVISION, CopyScorer, FrameFeatures, PairScore, ScoreSettings

SIDE, VIEWS, FRAMES = 4, 17, 12
# The whole picture, and sixteen squares of it.
BOXES = np.array(
    [(0.0, 0.0, 1.0, 1.0)]
    + [(c / SIDE, r / SIDE, (c + 1) / SIDE, (r + 1) / SIDE) for r in range(SIDE) for c in range(SIDE)]
)
# What the scores below are: other ones need another revision of the score.
PINNED = {8: {"blend": 0.9214, "cover": 1.0, "other": 0.0}}


def moving(seed: int, frames: int = FRAMES) -> NDArray[np.floating]:
    """Every region has something that stays and something of its own that changes, [frames, VIEWS, 1, 64]."""
    random = np.random.default_rng(seed)
    stays = random.standard_normal((1, VIEWS, 1, 64))
    return unit(stays + 0.7 * random.standard_normal((frames, VIEWS, 1, 64)))


def features(values: NDArray[np.floating], boxes: NDArray[np.floating] = BOXES) -> FrameFeatures:
    frames, views = values.shape[:2]
    return FrameFeatures(
        values,
        np.arange(float(frames)),
        np.ones(frames, np.float32),
        baseline=np.full((frames, views), 0.3, np.float32),
        boxes=np.broadcast_to(boxes, (frames, views, 4)),
    )


def score(query: FrameFeatures, target: FrameFeatures) -> PairScore | None:
    return CopyScorer().score_changes(query, [target])[0]


def blend(one: NDArray[np.floating], other: NDArray[np.floating], share: float) -> NDArray[np.floating]:
    return unit((1 - share) * one + share * other)


def cover(one: NDArray[np.floating], other: NDArray[np.floating], views: int) -> NDArray[np.floating]:
    """The first views, among them the whole picture, show something else."""
    covered = one.copy()
    covered[:, :views] = other[:, :views]
    return covered


def test_of_two_videos_that_are_blended_half_and_half_both_are_found() -> None:
    one, other = moving(1), moving(2)
    both = features(blend(one, other, 0.5))
    for video in (one, other):
        found = score(features(video), both)
        assert found is not None
        assert found.score > 0.8
        segment = found.segments[0]
        assert (segment.query_start, segment.target_start, segment.speed) == (0.0, 0.0, 1.0)
        assert segment.query_end == FRAMES


def test_a_video_is_found_under_one_that_covers_half_of_it_and_so_is_the_cover() -> None:
    one, other = moving(1), moving(2)
    covered = features(cover(one, other, 9))
    for video in (one, other):
        found = score(features(video), covered)
        assert found is not None
        assert found.score > 0.9


def test_other_videos_have_nothing_that_changes_at_once() -> None:
    for seed in range(3, 9):
        assert score(features(moving(seed)), features(moving(1))) is None


def test_an_excerpt_is_found_at_its_place_in_a_longer_video() -> None:
    long = moving(1, 60)
    found = score(features(blend(long[30:42], moving(2), 0.4)), features(long))
    assert found is not None
    assert (found.segments[0].target_start, found.segments[0].target_end) == (30.0, 42.0)
    assert found.map.shape == (12, 60)


def test_another_moment_before_the_same_camera_is_none() -> None:
    random = np.random.default_rng(5)
    stays = random.standard_normal((1, VIEWS, 1, 64))
    moments = [features(unit(stays + 0.7 * random.standard_normal((FRAMES, VIEWS, 1, 64)))) for _ in range(2)]
    assert score(*moments) is None


def test_still_pictures_and_noise_say_nothing() -> None:
    random = np.random.default_rng(6)
    stays = random.standard_normal((1, VIEWS, 1, 64))
    still = unit(np.repeat(stays, FRAMES, axis=0))
    noisy = unit(stays + 0.02 * random.standard_normal((FRAMES, VIEWS, 1, 64)))
    assert score(features(still), features(still)) is None
    assert score(features(noisy), features(noisy)) is None


def test_slides_that_change_at_the_same_times_do_not_count_as_copies() -> None:
    slides = [features(np.repeat(moving(seed, 3), 4, axis=0)) for seed in (1, 1)]
    assert score(*slides) is None
    # The same three pictures among others that move are part of what moves.
    one = moving(1, 24)
    one[12:] = np.repeat(one[:3], 4, axis=0)
    assert score(features(one), features(one)) is not None


def test_a_plain_part_that_two_still_pages_share_gives_no_match_of_parts() -> None:
    strip = unit(np.random.default_rng(8).standard_normal((1, 1, 1, 64)))
    pages = []
    for seed in (1, 2):
        page = np.repeat(moving(seed, 1), FRAMES, axis=0)
        page[:, 5] = strip[:, 0]
        pages.append(features(page))
    (still,) = CopyScorer().score_parts(pages[0], [pages[1]])
    assert still is None or still.score < 0.2
    # The same where the strip shows something that moves.
    film = moving(3)[:, 5]
    moved = [page.values.copy() for page in pages]
    for values in moved:
        values[:, 5] = film
    (found,) = CopyScorer().score_parts(features(moved[0]), [features(moved[1])])
    assert found is not None
    assert found.score > 0.8


def test_too_few_frames_or_regions_say_nothing() -> None:
    one = moving(1)
    assert score(features(one[:4]), features(one[:4])) is None
    assert score(features(one[:, :11], BOXES[:11]), features(one[:, :11], BOXES[:11])) is None
    whole = FrameFeatures.of_whole(one[:, 0], np.arange(float(FRAMES)))
    assert score(whole, whole) is None


def test_regions_are_the_same_part_of_the_picture_or_not_compared() -> None:
    one = moving(1)
    elsewhere = BOXES.copy()
    elsewhere[1:] += 0.1
    assert score(features(one), features(one, elsewhere)) is None
    # Inside black bars the parts of the picture are elsewhere in the frame.
    bars = BOXES * [1, 0.5, 1, 0.5] + [0, 0.25, 0, 0.25]
    found = score(features(one), features(one, bars))
    assert found is not None
    assert found.score == pytest.approx(1.0)


def test_a_mirror_image_whose_regions_are_half_alike_is_not_taken_for_the_picture_as_it_is() -> None:
    # Each square is half like the one on the other side of the picture.
    across = np.array([0, *(1 + SIDE * row + SIDE - 1 - column for row in range(SIDE) for column in range(SIDE))])
    down = np.array([0, *(1 + SIDE * (SIDE - 1 - row) + column for row in range(SIDE) for column in range(SIDE))])
    for order in (across, down, across[down]):
        one = moving(1)
        one = unit(one + 0.6 * one[:, order])
        assert score(features(one), features(one[:, order])) is None
        again = score(features(one), features(one))
        assert again is not None
        assert again.score == pytest.approx(1.0)


def test_the_score_is_the_same_whichever_side_is_the_query() -> None:
    one, both = features(moving(1)), features(blend(moving(1), moving(2), 0.6))
    first, second = score(one, both), score(both, one)
    assert first is not None
    assert second is not None
    assert first.score == pytest.approx(second.score, abs=1e-6)


def test_other_scores_of_changes_have_another_revision() -> None:
    one, other = moving(1), moving(2)
    targets = {"blend": blend(one, other, 0.72), "cover": cover(one, other, 7), "other": moving(3)}
    pairs = open_scorer("copies").score_changes(features(one), [features(values) for values in targets.values()])  # type: ignore[attr-defined]
    scores = {name: 0.0 if pair is None else pair.score for name, pair in zip(targets, pairs, strict=True)}
    assert scores == pytest.approx(PINNED[SCORE_REVISION], abs=1e-3)


def parts_in_common(seed: int, noise: float, *, still: bool) -> tuple[FrameFeatures, FrameFeatures]:
    """Two other videos, of which one part shows the same but for noise."""
    random = np.random.default_rng(seed)
    one, other = moving(2 * seed), moving(2 * seed + 1)
    film = np.repeat(one[:1, 5], FRAMES, axis=0) if still else one[:, 5]
    one[:, 5] = film
    other[:, 5] = unit(film + noise * random.standard_normal(film.shape))
    return features(one), features(other)


def test_a_least_score_leaves_out_only_what_does_not_reach_it() -> None:
    left_out = 0
    for seed in range(8):
        for noise, still in ((0.02, False), (0.08, False), (0.1, True)):
            query, target = parts_in_common(seed, noise, still=still)
            (full,) = CopyScorer().score_parts(query, [target])
            for least in (0.15, 0.3, 0.6, 0.9, 0.99):
                (some,) = CopyScorer().score_parts(query, [target], least=[least])
                if full is not None and full.score >= least:
                    assert some is not None
                    assert (some.score, some.segments) == (full.score, full.segments)
                left_out += full is not None and some is None
    assert left_out > 20


def test_no_stretch_of_two_views_is_confirmed_more_than_their_moments_allow() -> None:
    settings = ScoreSettings(change_energy=1e-6)
    bounds = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        one = unit(random.standard_normal((1, 256)) + 0.4 * random.standard_normal((9, 256)))
        other = unit(random.uniform(0, 1) * one + 0.02 * random.standard_normal((9, 256)))
        query, target = (
            FrameFeatures.of_whole(side[:, None].astype(np.float32), np.arange(9.0)) for side in (one, other)
        )
        bounds.append(_most_confirmed(query, target, settings))
        for first, last in combinations(range(9), 2):
            rows = np.arange(first, last + 1)
            assert compare_changes(query, target, rows, rows, settings).confirmation <= bounds[-1] + 1e-6
    assert min(bounds) < 0.5 < max(bounds)


def test_a_score_above_one_is_not_looked_for() -> None:
    one = features(moving(1))
    first, second = CopyScorer().score_changes(one, [one, one], least=[1.02, 0.9])
    assert first is None
    assert second is not None


def test_targets_of_different_lengths_are_scored_as_each_by_itself() -> None:
    query = features(moving(1, 16))
    targets = [features(moving(1, 16)[:frames]) for frames in (12, 7, 16, 9, 12)]
    together = CopyScorer().score_changes(query, targets)
    apart = [score(query, target) for target in targets]
    assert [pair and pair.score for pair in together] == [pair and pair.score for pair in apart]
    assert sum(pair is not None for pair in together) >= 3
