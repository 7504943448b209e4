"""Shared segments of synthetic videos whose frames are random directions, one per second."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.index.recurring.stretches import Track, Votes, WindowTable, find_shared, find_stretches

DIMENSION, SECONDS = 64, 60
ENOUGH = 24


def directions(count: int, seed: int) -> NDArray[np.float32]:
    """Nearly orthogonal unit vectors."""
    drawn = np.random.default_rng(seed).standard_normal((count, DIMENSION))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def track(vectors: NDArray[np.float32]) -> Track:
    """A video with one frame and one window per second."""
    times = np.arange(float(len(vectors)))
    baseline = np.full(len(vectors), 0.3, np.float32)
    half = vectors.astype(np.float16)
    informative = np.ones(len(vectors), np.bool_)
    return Track(times, half, baseline, informative, 1.0, float(len(vectors)), half, times, baseline)


def season(count: int) -> list[Track]:
    """Videos of a minute that share 12 s, starting at second 10 and one second later in each further video."""
    opening = directions(12, 0)
    tracks = []
    for number in range(count):
        vectors = directions(SECONDS, number + 1)
        first = 10 + number % 30
        vectors[first : first + len(opening)] = opening
        tracks.append(track(vectors))
    return tracks


def votes_of(last: Track, others: list[Track]) -> Votes:
    return WindowTable.of_tracks(others).votes(last, len(others))


def test_shared_segment_is_found_at_its_position_in_both_videos() -> None:
    first, second = season(2)
    (stretch,) = find_stretches(first, second, np.arange(10.0, 22.0), np.arange(11.0, 23.0))
    assert (stretch.first_start, stretch.first_end) == (10, 22)
    assert (stretch.second_start, stretch.second_end) == pytest.approx((11, 23), abs=0.5)
    assert stretch.score == pytest.approx(1, abs=0.01)


def test_segment_does_not_extend_beyond_the_shorter_video() -> None:
    vectors = directions(SECONDS, 0)
    for begin, end in ((10, 40), (0, 30), (30, SECONDS)):
        # The neighboring frames are equal, as in a shot that continues beyond the start or end of the shorter video.
        vectors[max(0, begin - 1)] = vectors[begin]
        vectors[min(end, SECONDS - 1)] = vectors[end - 1]
        short = track(vectors[begin:end])
        long = track(vectors)
        here, there = np.arange(float(begin), float(end)), np.arange(float(end - begin))
        for first, second, times, others in ((long, short, here, there), (short, long, there, here)):
            (stretch,) = find_stretches(first, second, times, others)
            assert stretch.speed == pytest.approx(1)
            assert stretch.first_end - stretch.first_start == pytest.approx(end - begin, abs=1)
            # Accurate to one frame.
            assert abs(stretch.first_start - stretch.second_start) == pytest.approx(begin, abs=1)


def test_segment_shared_by_few_videos_is_searched_for_in_all_of_them() -> None:
    *others, last = season(ENOUGH + 1)
    found = find_shared(last, votes_of(last, others), others.__getitem__)
    assert [number for number, stretches in found if stretches] == list(range(ENOUGH))


def test_segment_shared_by_enough_videos_is_not_searched_for_in_more() -> None:
    *others, last = season(ENOUGH + 9)
    asked: list[int] = []

    def give(number: int) -> Track:
        asked.append(number)
        return others[number]

    found = find_shared(last, votes_of(last, others), give)
    assert len(asked) == ENOUGH
    assert all(len(stretches) == 1 for _, stretches in found)


def test_segment_shared_by_two_videos_is_found_although_all_share_an_opening() -> None:
    *others, last = season(ENOUGH + 9)
    last.vectors[50:58] = last.windows[50:58] = others[-1].vectors[0:8] = others[-1].windows[0:8] = directions(8, 999)
    # All videos have equally many votes for the opening; this one has more in total, so it is compared first.
    found = dict(find_shared(last, votes_of(last, others), others.__getitem__))
    starts = [stretch.second_start for stretch in found[len(others) - 1]]
    assert 0.0 in starts


def test_segment_shared_with_the_last_compared_video_is_found() -> None:
    *others, last = season(ENOUGH + 9)
    for other in others[:ENOUGH]:  # these share two segments with the last video and have the most votes
        other.vectors[0:9] = other.windows[0:9] = last.vectors[0:9]
    shared = slice(50, 55)
    others[-1].vectors[shared] = others[-1].windows[shared] = last.vectors[shared]
    found = dict(find_shared(last, votes_of(last, others), others.__getitem__))
    assert [stretch.first_start for stretch in found[len(others) - 1]] == [12.0, 50.0]


def test_video_that_repeats_a_segment_counts_once() -> None:
    *others, last = season(ENOUGH + 1)
    for other in others:  # counting each repetition would reach the limit too early
        other.vectors[45:57] = other.windows[45:57] = directions(12, 0)
    found = dict(find_shared(last, votes_of(last, others), others.__getitem__))
    assert [len(found[number]) for number in range(ENOUGH)] == [2] * ENOUGH


def test_removed_video_shares_nothing() -> None:
    *others, last = season(4)
    found = find_shared(last, votes_of(last, others), lambda number: None if number == 1 else others[number])
    assert [number for number, _ in found] == [0, 2]
