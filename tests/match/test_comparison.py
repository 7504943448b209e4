"""Comparisons find which segment is shown where, how fast and in which direction, and measure the evidence."""

from __future__ import annotations

import numpy as np
import pytest

from tests.match.footage import DIMENSION, film, sequenced, unit, walk
from vidkin.errors import InvalidArgumentError
from vidkin.match import NUMBERS, MapWindow, Measured, Sequenced, compare, compare_views, find_windows, frame_map
from vidkin.match.comparison import MIN_SIMILARITY


def numbers_of(measured: Measured) -> dict[str, float]:
    return dict(zip(NUMBERS, measured.numbers.tolist(), strict=True))


@pytest.mark.parametrize("speed", [0.5, 0.8, 1 / 1.05, 1 / 1.04, 1.04, 1.05, 1.25, 2.0, 2.5])
def test_speed_of_unedited_footage_is_measured(speed: float) -> None:
    query = film((1, 20, 40, speed), noise=0.1)
    (line, *_) = compare(query, film((2, 0, 30, 1), (1, 0, 160, 1), noise=0.1)).lines
    assert line.speed == pytest.approx(speed, rel=0.01)
    assert line.offset == pytest.approx(30 + 20, abs=0.3)


@pytest.mark.parametrize("noise", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("shift", [0.0, 0.13, 0.25, 0.38])
@pytest.mark.parametrize("seconds", [5, 12, 40])
def test_unchanged_speed_is_exactly_one(noise: float, shift: float, seconds: float) -> None:
    query = film((1, 20, seconds, 1), noise=noise, shift=shift)
    (line, *_) = compare(query, film((2, 0, 9, 1), (1, 0, 80, 1), noise=noise)).lines
    assert line.speed == 1.0
    assert line.offset == pytest.approx(29 + shift, abs=0.5)


def test_reordered_footage_is_found_piece_by_piece() -> None:
    query = film((1, 0, 36, 1))
    target = film((1, 24, 12, 1), (1, 12, 12, 1), (1, 0, 12, 1))
    lines = sorted(compare(query, target).lines[:3], key=lambda line: int(line.rows[0]))
    assert [round(line.offset) for line in lines] == [24, 0, -24]
    assert [line.speed for line in lines] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("speed", [1.0, 1.5])
def test_reversed_footage_is_found(speed: float) -> None:
    query = film((1, 10, 20, 1))
    measured = compare(query, film((2, 0, 15, 1), (1, 40, 38 / speed, -speed)))
    (line, *_) = measured.lines
    assert line.speed == pytest.approx(-1 / speed, rel=0.02)
    assert numbers_of(measured)["backwards"] == 1.0
    assert len(line) >= 38
    shown = 15 + (40 - (10 + query.times[line.rows])) / speed
    assert np.abs(np.arange(200)[line.columns] / 2 - shown).max() <= 0.5


def test_still_footage_plays_forward_at_speed_one() -> None:
    query = film((1, 5, 20, 0.0), noise=0.0)
    (line, *_) = compare(query, film((2, 0, 10, 1), (1, 5, 30, 0.0), noise=0.0)).lines
    assert line.speed == 1.0


def test_unrelated_still_videos_are_distinguished_from_a_copy() -> None:
    """Two still cards are similar at all times; a copy is similar only at corresponding times."""
    card, other = walk(3, np.zeros(1)), walk(4, np.zeros(1))
    near = unit(card + 0.9 * other)

    def stand(vector: np.ndarray) -> Sequenced:
        return sequenced(np.repeat(vector, 24, axis=0), np.arange(24) / 2)

    still = numbers_of(compare(stand(card), stand(near)))
    moving = numbers_of(compare(film((1, 0, 12, 1)), film((1, 0, 12, 1))))
    assert still["excess"] > 0.5
    assert (still["query still"], still["target still"]) == pytest.approx((1.0, 1.0), abs=1e-5)
    assert still["sharpness"] == pytest.approx(0.0, abs=1e-5)
    assert moving["query still"] < 0.6
    assert moving["sharpness"] > 0.4
    assert moving["changes agree"] > 0.8


def windows_of(query: Sequenced, target: Sequenced) -> tuple[MapWindow, ...]:
    similarity = frame_map(query.vectors, target.vectors, query.levels, target.levels)
    return find_windows(query, target, similarity, MIN_SIMILARITY)


@pytest.mark.parametrize("speed", [1.0, 1.04, 2.0, -1.0])
def test_segment_that_spans_many_windows_is_one_line(speed: float) -> None:
    query = film((1, 0 if speed > 0 else 205, 200, speed))
    target = film((2, 0, 200, 1), (1, 0, 410, 1), (3, 0, 200, 1))
    windows = windows_of(query, target)
    assert len(windows) > 3
    measured = compare(query, target, near=windows)
    (line, *_) = measured.lines
    assert len(line) >= len(query) - 4
    assert line.speed == pytest.approx(speed, rel=1e-3) if speed != 1.0 else line.speed == 1.0
    assert numbers_of(measured)["query coverage"] > 0.98


def test_inset_is_compared_by_its_own_view_and_unrelated_views_are_left_out() -> None:
    clip, around, inset = film((1, 33, 8, 1)), film((60, 0, 8, 1)), film((1, 33, 8, 1), noise=0.2)
    compared = list(compare_views([clip], [around, inset]))
    assert compared[0][1:] == (clip, inset)
    assert numbers_of(compared[0][0])["excess"] > 0.7
    opposite = sequenced(-clip.vectors, clip.times)
    assert list(compare_views([clip], [opposite])) == []


def test_evidence_near_the_offset_equals_that_of_the_whole_map() -> None:
    query = film((1, 40, 12, 1))
    target = film((2, 0, 100, 1), (1, 0, 120, 1))
    whole = numbers_of(compare(query, target))
    near = numbers_of(compare(query, target, near=[MapWindow(0, len(query), 220, 380)]))
    assert near.keys() == whole.keys()
    # The best frame elsewhere may be outside the window; values along the line are the same.
    free = {"best mean", "best high", "elsewhere", "sharpness", "off line", "on line", "lines", "second"}
    for name in whole.keys() - free:
        assert near[name] == pytest.approx(whole[name], abs=1e-4), name
    for name in free - {"lines", "second"}:
        assert near[name] == pytest.approx(whole[name], abs=0.12), name


@pytest.mark.parametrize("window", [MapWindow(0, 99, 0, 4), MapWindow(0, 4, 4, 4), MapWindow(-1, 4, 0, 4)])
def test_windows_outside_the_videos_are_refused(window: MapWindow) -> None:
    with pytest.raises(InvalidArgumentError, match="must lie within 8 query and 8 target frames"):
        compare(film((1, 0, 4, 1)), film((1, 0, 4, 1)), near=[window])


def test_videos_without_frames_are_refused() -> None:
    empty = sequenced(np.zeros((0, DIMENSION), np.float32), np.zeros(0))
    with pytest.raises(InvalidArgumentError, match="both videos must have frames, got 0 and 8"):
        compare(empty, film((1, 0, 4, 1)))
