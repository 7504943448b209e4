"""Sums over matched frames, worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from vidkin.similarity.evidence import Evidence, find_news, match_frames, stretch_score

from vidkin.similarity import FrameFeatures, ScoreSettings, Segment


def video(frames: int, *, period: float = 1.0) -> FrameFeatures:
    values = np.eye(32, dtype=np.float32)[:frames, None]
    return FrameFeatures.of_whole(values, np.arange(float(frames)) * period)


def evidence(query: FrameFeatures, target: FrameFeatures, rows: range, columns: range) -> Evidence:
    frame_map = np.full((len(query), len(target)), 0.5, np.float32)
    news = np.ones(len(query), np.float32), np.ones(len(target), np.float32)
    return Evidence.of(frame_map, query, target, np.array(rows), np.array(columns), news)


def test_a_segment_is_summed_by_seconds() -> None:
    part = evidence(video(10), video(20), range(2, 7), range(5))
    assert (part.similarity, part.seconds, part.news) == (2.5, 5.0, 5.0)
    assert part.query_seen.nonzero()[0].tolist() == [2, 3, 4, 5, 6]
    # Half of the query is covered; five seconds of news say more.
    assert part.score(1.0, ScoreSettings()) == pytest.approx(stretch_score(0.5 * (1 - math.exp(-5 / 2))))
    assert Evidence.none(video(3), video(3)).score(1.0, ScoreSettings()) == 0.0


def test_similarity_that_nothing_confirms_is_doubted() -> None:
    """Full detail: a doubt of .4 leaves (.5 - .4) / .6 of a similarity of .5; confirmed by changes it stays."""
    part = evidence(video(10), video(20), range(2, 7), range(5))
    left = part.doubted(0.0, ScoreSettings())
    assert left.similarity / left.seconds == pytest.approx(0.1 / 0.6)
    assert (left.seconds, left.news) == (part.seconds, part.news)
    assert part.doubted(1.0, ScoreSettings()).similarity == pytest.approx(part.similarity)
    # Equal pictures need no confirmation.
    equal = replace(part, similarity=part.seconds)
    assert equal.doubted(0.0, ScoreSettings()).similarity == pytest.approx(5.0)
    nothing = Evidence.none(video(3), video(3))
    assert nothing.doubted(0.0, ScoreSettings()) is nothing


def test_pictures_of_little_detail_are_doubted_more() -> None:
    """Half of the weight: a doubt of .4 + .4 / 2 = .6 is above the similarity of .5."""
    query = replace(video(10), information=np.full((10,), 0.5, np.float32))
    part = evidence(query, video(20), range(2, 7), range(5))
    assert part.doubted(0.0, ScoreSettings()).similarity == 0.0
    # Half confirmed, the doubt is .3.
    half = part.doubted(0.5, ScoreSettings())
    assert half.similarity / half.seconds == pytest.approx((0.5 - 0.3) / (1 - 0.3))


def test_parts_that_are_alike_for_a_moment_do_not_count_because_they_cover_a_short_clip() -> None:
    """Four of eight seconds cover the target: an eighth of its similarity of .5; half a second of news says less."""
    settings = replace(ScoreSettings(), covering=8.0, evidence=6.0)
    part = replace(evidence(video(20), video(4), range(4), range(4)), news=0.5)
    assert part.score(1.0, ScoreSettings()) == pytest.approx(stretch_score(0.5))
    assert part.score(1.0, settings) == pytest.approx(stretch_score(0.5 / 8))
    long = replace(evidence(video(20), video(8), range(8), range(8)), news=0.5)
    assert long.score(1.0, settings) == pytest.approx(stretch_score(0.5))


def test_what_repeats_a_stretch_adds_nothing() -> None:
    query, target = video(10), video(10)
    first = evidence(query, target, range(6), range(6))
    again = evidence(query, target, range(6, 10), range(1, 5))
    assert first.plus(again, 1.0) is first
    rest = first.plus(evidence(query, target, range(6, 10), range(6, 10)), 0.5)
    assert (rest.similarity, rest.seconds) == (3.0 + 0.5 * 2.0, 10.0)
    assert bool(rest.query_seen.all())
    assert bool(rest.target_seen.all())


def test_frames_are_matched_along_the_line() -> None:
    rows, columns = match_frames(video(6), video(13, period=0.5), Segment(1.0, 4.0, 0.5, 3.5, 0.9))
    assert (rows.tolist(), columns.tolist()) == ([1, 2, 3, 4], [1, 3, 5, 7])


def test_the_frame_that_shows_the_first_frame_of_the_target_is_matched() -> None:
    """The line passes the first frame of the target .05 s after that of the query, and the segment begins there."""
    query, target = video(4, period=0.25), video(4, period=0.25)
    rows, columns = match_frames(query, target, Segment(0.05, 1.0, 0.0, 0.95, 0.9))
    assert (rows.tolist(), columns.tolist()) == ([0, 1, 2, 3], [0, 1, 2, 3])
    # Half a period earlier is nothing of the target, and where the segment begins later nothing is added.
    for segment, first in ((Segment(0.2, 1.0, 0.0, 0.8, 0.9), 1), (Segment(0.3, 1.0, 0.25, 0.95, 0.9), 2)):
        assert match_frames(query, target, segment)[0].tolist() == list(range(first, 4))


def test_news_is_what_differs_from_the_second_before() -> None:
    values = np.eye(4, dtype=np.float32)[[0, 0, 1, 1], None]
    still = FrameFeatures.of_whole(values, np.arange(float(4)))
    assert find_news(still, 0.15).tolist() == [1.0, 0.0, 1.0, 0.0]


def test_many_frames_that_match_one_frame_are_one_coincidence() -> None:
    query, target = video(8, period=0.25), video(20, period=2.0)
    news = np.ones(8, np.float32), np.ones(20, np.float32)
    columns = np.full(8, 3)
    part = Evidence.of(np.full((8, 20), 0.9, np.float32), query, target, np.arange(8), columns, news)
    assert (part.seconds, part.news) == (2.0, 1.0)
