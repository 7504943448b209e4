"""Where one transition ends and the next begins, by hand."""

from __future__ import annotations

import numpy as np

from vidkin.shots.fades import propose_stretches


def rows(*values: tuple[float, int]) -> np.ndarray:  # type: ignore[type-arg]
    """(value, how often) one after the other."""
    return np.concatenate([np.full(count, value, np.float32) for value, count in values])


def test_a_small_gap_divides_no_unsure_stretch() -> None:
    answers = rows((0, 5), (0.6, 6), (0.1, 1), (0.6, 6), (0, 5))
    assert propose_stretches(answers, rows((40, 23))) == [(5, 17)]


def test_a_small_gap_divides_two_sure_transitions() -> None:
    answers = rows((0, 5), (0.95, 6), (0.1, 1), (0.95, 6), (0.2, 2), (0.95, 4), (0, 5))
    assert propose_stretches(answers, rows((40, 29))) == [(5, 10), (12, 17), (20, 23)]


FADE_IN = ((4.0, 1), (8.0, 1), (12.0, 1), (16.0, 1), (20.0, 3))


def test_a_ground_that_stands_divides_fades() -> None:
    """Of eleven frames of ground the first ends the fade out, and the last begins the fade in."""
    answers = rows((0, 5), (0.95, 25), (0, 5))
    contrasts = rows((40, 5), (20, 7), (0, 11), *FADE_IN, (40, 5))
    assert propose_stretches(answers, contrasts) == [(5, 12), (22, 29)]
    assert propose_stretches(answers, rows((40, 5), (20, 8), (0, 10), *FADE_IN, (40, 5))) == [(5, 29)]


def test_a_picture_that_is_there_at_once_ends_a_fade_to_black() -> None:
    """Four frames of ground end the fade out; the shot after it is another transition only if it certainly is one."""
    contrasts = rows((40, 5), (20, 8), (0, 4), (30, 13), (40, 5))
    assert propose_stretches(rows((0, 5), (0.95, 12), (0.8, 13), (0, 5)), contrasts) == [(5, 16)]
    assert propose_stretches(rows((0, 5), (0.95, 25), (0, 5)), contrasts) == [(5, 16), (17, 29)]


def test_a_ground_without_a_picture_before_it_divides_nothing() -> None:
    answers = rows((0.95, 25), (0, 5))
    assert propose_stretches(answers, rows((2, 5), (0, 12), (20, 8), (40, 5))) == [(0, 24)]


def test_a_picture_that_comes_from_a_background_and_goes_to_one_has_two_fades() -> None:
    """A title: eight frames come, two are there, eight go; the network's answer is lowest where it begins to go."""
    steps = [(float(level), 1) for level in range(2, 18, 2)]
    contrasts = rows((0, 5), *steps, (18, 2), *steps[::-1], (0, 5))
    answers = rows((0, 5), (0.95, 9), (0.6, 1), (0.95, 8), (0, 5))
    assert propose_stretches(answers, contrasts) == [(5, 14), (15, 22)]
    # Of a picture that was there before, or is no picture, it is one.
    assert propose_stretches(answers, rows((9, 5), *steps, (18, 2), *steps[::-1], (0, 5))) == [(5, 22)]
    assert propose_stretches(answers, contrasts / 8) == [(5, 22)]
