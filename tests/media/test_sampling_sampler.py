"""Frames on screen at each sample, with handwritten times in tenths of a second."""

from __future__ import annotations

from typing import Any

import pytest

from vidkin.media.sampling import ChosenSampler, Sampler


def sample_times(sampler: Any, times: list[int], video_end: int) -> list[int]:
    """Times of the sampled frames, given frames at ``times``, in tenths of a second."""
    found = []
    for time in times:
        if not sampler.done:
            found += [picture[0] for picture in sampler.push((time, None))]
    return found + [picture[0] for picture in sampler.finish(video_end)]


def at_rate(rate: float | None, start: float = 0.0, end: float | None = None, base: int = 0) -> Sampler:
    return Sampler(rate, start, end, tick=0.1, base=base)


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        # Frames at 0, 0.3, 0.6 ... 1.8 s; the end is at 2.1 s.
        (at_rate(None), [0, 3, 6, 9, 12, 15, 18]),
        (at_rate(1.0), [0, 9, 18]),  # at 0, 1 and 2 s, the frames of 0, 0.9 and 1.8 s are on screen
        (at_rate(2.0), [0, 3, 9, 15, 18]),  # samples at 0, 0.5, 1, 1.5 and 2 s
        (at_rate(10.0), [0, 3, 6, 9, 12, 15, 18]),  # no frame is returned twice
        (at_rate(1.0, start=0.5), [3, 15]),
        (at_rate(1.0, start=0.5, end=1.5), [3]),  # no sample at the end itself
        (at_rate(None, start=0.6, end=1.2), [6, 9]),
        (at_rate(None, start=0.7, end=0.8), [6]),  # no frame begins there, so the one on screen
    ],
)
def test_samples_at_a_constant_rate_are_the_frames_on_screen(sampler: Sampler, expected: list[int]) -> None:
    assert sample_times(sampler, [0, 3, 6, 9, 12, 15, 18], 21) == expected


def test_times_count_from_the_first_frame() -> None:
    assert sample_times(at_rate(1.0, base=50), [50, 53, 56, 59, 62], 65) == [50, 59]


def test_a_long_frame_is_a_single_sample() -> None:
    # Samples at 0, 1, ... 9 s; the second frame is on screen from 0.5 to 8.5 s.
    assert sample_times(at_rate(1.0), [0, 5, 85], 100) == [0, 5, 85]


def test_samples_after_the_end_are_skipped() -> None:
    assert sample_times(at_rate(1.0), [0, 3, 6], 9) == [0]
    assert sample_times(at_rate(1.0), [0, 3, 6], 11) == [0, 6]


def test_a_distant_frame_is_found_in_constant_time() -> None:
    sampler = at_rate(10.0)
    year = 10 * 60 * 60 * 24 * 365
    assert sampler.index_after(0, year) == year  # one sample per tick
    assert (sampler.limit_of(7), at_rate(10.0, end=0.5).limit_of(7)) == (7, None)


def test_chosen_times_give_the_frame_on_screen() -> None:
    sampler = ChosenSampler([0.0, 0.29, 0.3, 1.0, 1.1], tick=0.1, base=0)
    # Times 0 and 0.29 s show the same frame, as do 1 and 1.1 s.
    assert sample_times(sampler, [0, 3, 6, 9, 12], 15) == [0, 3, 9]
    late = ChosenSampler([1.3, 1.6], tick=0.1, base=0)
    assert sample_times(late, [0, 3, 6, 9, 12], 15) == [12]
    assert (late.limit_of(1), late.limit_of(2)) == (16, None)
