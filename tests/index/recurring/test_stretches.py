"""Segments that videos share, from vectors that are easy to check: frames are random directions, one per second."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.index.recurring.stretches import Track, Votes, WindowTable, find_shared, find_stretches

DIMENSION, SECONDS = 64, 60
ENOUGH = 24


def directions(count: int, seed: int) -> NDArray[np.float32]:
    """This many nearly orthogonal unit vectors."""
    drawn = np.random.default_rng(seed).standard_normal((count, DIMENSION))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def track(vectors: NDArray[np.float32]) -> Track:
    """A video with a frame and a window every second."""
    times = np.arange(float(len(vectors)))
    baseline = np.full(len(vectors), 0.3, np.float32)
    half = vectors.astype(np.float16)
    informative = np.ones(len(vectors), np.bool_)
    return Track(times, half, baseline, informative, 1.0, float(len(vectors)), half, times, baseline)


def season(count: int) -> list[Track]:
    """Videos of a minute that share 12 s: from the tenth second on, one second later from video to video."""
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


def test_a_shared_stretch_is_found_where_it_is_in_both() -> None:
    first, second = season(2)
    (stretch,) = find_stretches(first, second, np.arange(10.0, 22.0), np.arange(11.0, 23.0))
    assert (stretch.first_start, stretch.first_end) == (10, 22)
    assert (stretch.second_start, stretch.second_end) == pytest.approx((11, 23), abs=0.5)
    assert stretch.score == pytest.approx(1, abs=0.01)


def test_a_stretch_begins_and_ends_with_the_shorter_of_two_videos_in_both() -> None:
    vectors = directions(SECONDS, 0)
    for begin, end in ((10, 40), (0, 30), (30, SECONDS)):
        # A frame like its neighbor, as in a shot that continues beyond the beginning or the end of the shorter video.
        vectors[max(0, begin - 1)] = vectors[begin]
        vectors[min(end, SECONDS - 1)] = vectors[end - 1]
        short = track(vectors[begin:end])
        long = track(vectors)
        here, there = np.arange(float(begin), float(end)), np.arange(float(end - begin))
        for first, second, times, others in ((long, short, here, there), (short, long, there, here)):
            (stretch,) = find_stretches(first, second, times, others)
            assert stretch.speed == pytest.approx(1)
            assert stretch.first_end - stretch.first_start == pytest.approx(end - begin, abs=1)
            # To a frame.
            assert abs(stretch.first_start - stretch.second_start) == pytest.approx(begin, abs=1)


def test_what_few_share_is_looked_for_in_all_of_them() -> None:
    *others, last = season(ENOUGH + 1)
    found = find_shared(last, votes_of(last, others), others.__getitem__)
    assert [number for number, stretches in found if stretches] == list(range(ENOUGH))


def test_what_enough_videos_share_is_not_looked_for_in_more() -> None:
    *others, last = season(ENOUGH + 9)
    asked: list[int] = []

    def give(number: int) -> Track:
        asked.append(number)
        return others[number]

    found = find_shared(last, votes_of(last, others), give)
    assert len(asked) == ENOUGH
    assert all(len(stretches) == 1 for _, stretches in found)


def test_what_only_two_share_is_found_though_all_share_an_opening() -> None:
    *others, last = season(ENOUGH + 9)
    last.vectors[50:58] = last.windows[50:58] = others[-1].vectors[0:8] = others[-1].windows[0:8] = directions(8, 999)
    # As many windows agree with the others: the one with more comes first, so its opening counts among the enough.
    found = dict(find_shared(last, votes_of(last, others), others.__getitem__))
    starts = [stretch.second_start for stretch in found[len(others) - 1]]
    assert 0.0 in starts


def test_what_two_share_is_found_where_the_one_is_asked_last() -> None:
    *others, last = season(ENOUGH + 9)
    for other in others[:ENOUGH]:  # these have most votes: two stretches with the last
        other.vectors[0:9] = other.windows[0:9] = last.vectors[0:9]
    shared = slice(50, 55)
    others[-1].vectors[shared] = others[-1].windows[shared] = last.vectors[shared]
    found = dict(find_shared(last, votes_of(last, others), others.__getitem__))
    assert [stretch.first_start for stretch in found[len(others) - 1]] == [12.0, 50.0]


def test_one_that_shows_it_twice_is_one_of_enough() -> None:
    *others, last = season(ENOUGH + 1)
    for other in others:  # twelve of these would be enough if each time counted
        other.vectors[45:57] = other.windows[45:57] = directions(12, 0)
    found = dict(find_shared(last, votes_of(last, others), others.__getitem__))
    assert [len(found[number]) for number in range(ENOUGH)] == [2] * ENOUGH


def test_a_video_that_was_removed_shares_nothing() -> None:
    *others, last = season(4)
    found = find_shared(last, votes_of(last, others), lambda number: None if number == 1 else others[number])
    assert [number for number, _ in found] == [0, 2]
