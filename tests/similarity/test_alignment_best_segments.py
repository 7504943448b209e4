"""Maps whose segments are known because they were drawn in."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from vidkin.errors import InvalidArgumentError
from vidkin.similarity import Segment, align
from vidkin.similarity import alignment as best_segments


def regular(count: int, period: float = 1.0) -> NDArray[np.floating]:
    return np.arange(float(count)) * period


def drawn(
    query_times: NDArray[np.floating],
    target_times: NDArray[np.floating],
    lines: Sequence[tuple[float, float, float, float]] = (),
    *,
    level: float = 0.8,
    spread: float = 0.0,
    noise: float = 0.2,
    seed: int = 0,
) -> NDArray[np.floating]:
    """Noise in [0, noise], and for each (query start, query end, target start, speed) a line of ``level``.

    At each query frame in [start, end) the nearest target frame is lit, if it is less than a period away.
    """
    generator = np.random.default_rng(seed)
    result = noise * generator.random((len(query_times), len(target_times)))
    period = float(np.median(np.diff(target_times))) if len(target_times) > 1 else 1.0
    for start, end, target_start, speed in lines:
        for row, time in enumerate(query_times.tolist()):
            place = target_start + speed * (time - start)
            distance = np.abs(target_times - place)
            if start <= time < end and float(distance.min()) < period:
                value = level + spread * float(generator.standard_normal())
                result[row, int(distance.argmin())] = min(1.0, max(0.0, value))
    return result


def ends(segment: Segment) -> tuple[float, float, float, float]:
    return segment.query_start, segment.query_end, segment.target_start, segment.target_end


def test_identical_videos_give_the_main_diagonal_exactly() -> None:
    times = regular(60)
    similarity = drawn(times, times)
    np.fill_diagonal(similarity, 1.0)
    # From the first frame (nothing is before 0) to the end of the last, which is the end of the video.
    assert align(similarity, times, times) == [Segment(0.0, 60.0, 0.0, 60.0, 1.0, 1.0, False)]


def test_identical_videos_with_still_scenes_give_the_main_diagonal_exactly() -> None:
    times = regular(60)
    similarity = np.full((60, 60), 0.05, np.float32)
    similarity[10:30, 10:30] = 1.0
    similarity[40:55, 40:55] = 1.0
    np.fill_diagonal(similarity, 1.0)
    for given in (similarity, np.ones((60, 60), np.float32)):
        (segment,) = align(given, times, times)
        assert ends(segment) == (0.0, 60.0, 0.0, 60.0)
        assert segment.speed == 1.0


@pytest.mark.parametrize("speed", [0.5, 0.8, 1.0, 1.25, 1.5, 2.0])
def test_one_segment_at_the_speeds_looked_for(speed: float) -> None:
    query, target = regular(60), regular(300)
    (segment,) = align(drawn(query, target, [(10, 40, 200, speed)]), query, target)
    # Frames 10 to 39 match: half a period more on either side.
    assert (segment.query_start, segment.query_end) == (9.5, 39.5)
    assert segment.speed == speed
    assert segment.target_start == pytest.approx(200 - 0.5 * speed, abs=0.5)
    assert segment.target_end == pytest.approx(200 + 29.5 * speed, abs=0.5)
    assert segment.score == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("speed", [0.9, 25 / 24, 1.1, 1.7])
def test_speeds_in_between_are_fitted(speed: float) -> None:
    query, target = regular(200), regular(500)
    (segment,) = align(drawn(query, target, [(20, 180, 100, speed)]), query, target)
    assert segment.speed == pytest.approx(speed, rel=0.005)
    assert (segment.query_start, segment.query_end) == (
        pytest.approx(19.5, abs=1),
        pytest.approx(179.5, abs=1),
    )
    assert segment.target_start == pytest.approx(100 - 0.5 * speed, abs=1)
    assert segment.target_end == pytest.approx(100 + 159.5 * speed, abs=1)


def test_two_parts_at_two_places_strongest_first() -> None:
    query, target = regular(60), regular(300)
    segments = align(drawn(query, target, [(30, 45, 20, 1), (5, 25, 200, 1)]), query, target)
    assert [ends(segment) for segment in segments] == [(4.5, 24.5, 199.5, 219.5), (29.5, 44.5, 19.5, 34.5)]


def test_one_part_at_three_places_of_the_target() -> None:
    query, target = regular(60), regular(300)
    lines = [(5, 25, 200, 1), (5, 25, 20, 1), (5, 25, 100, 1)]
    segments = align(drawn(query, target, lines), query, target)
    assert sorted(ends(segment) for segment in segments) == [
        (4.5, 24.5, 19.5, 39.5),
        (4.5, 24.5, 99.5, 119.5),
        (4.5, 24.5, 199.5, 219.5),
    ]
    assert len(align(drawn(query, target, lines), query, target, maximum_segments=2)) == 2


def test_three_parts_of_the_query_at_one_place_of_the_target() -> None:
    query, target = regular(100), regular(80)
    segments = align(drawn(query, target, [(5, 20, 40, 1), (40, 55, 40, 1), (80, 95, 40, 1)]), query, target)
    assert sorted(segment.query_start for segment in segments) == [4.5, 39.5, 79.5]
    assert {segment.target_start for segment in segments} == {39.5}


def test_a_static_scene_is_one_segment_at_speed_one() -> None:
    similarity = np.full((40, 50), 0.1, np.float32)
    similarity[10:30, 5:45] = 0.9
    (segment,) = align(similarity, regular(40), regular(50))
    assert (segment.query_start, segment.query_end, segment.speed) == (9.5, 29.5, 1.0)
    assert 4.5 - 1e-9 <= segment.target_start <= segment.target_end <= 44.5
    (segment,) = align(similarity.T, regular(50), regular(40))
    place = (segment.target_start, segment.target_end, segment.speed)
    assert place == pytest.approx((9.5, 29.5, 1.0))


def test_a_few_bad_frames_inside_do_not_cut() -> None:
    query, target = regular(60), regular(100)
    similarity = drawn(query, target, [(10, 50, 30, 1)])
    similarity[[20, 21, 35]] = 0.1
    (segment,) = align(similarity, query, target)
    assert ends(segment) == (9.5, 49.5, 29.5, 69.5)
    assert segment.score == pytest.approx((37 * 0.8 + 3 * 0.1) / 40)


def test_a_long_gap_cuts() -> None:
    query, target = regular(100), regular(100)
    similarity = drawn(query, target, [(0, 35, 0, 1), (65, 100, 65, 1)], noise=0.0)
    segments = align(similarity, query, target)
    assert sorted(ends(segment) for segment in segments) == [
        (0.0, 34.5, 0.0, 34.5),
        (64.5, 100.0, 64.5, 100.0),
    ]


def test_frames_without_weight_are_bridged_and_do_not_count() -> None:
    query, target = regular(100), regular(100)
    similarity = drawn(query, target, [(0, 35, 0, 1), (65, 100, 65, 1)], noise=0.0)
    weights = np.ones(100, np.float32)
    weights[35:65] = 0.0
    (segment,) = align(similarity, query, target, query_weights=weights, target_weights=weights)
    assert ends(segment) == (0.0, 100.0, 0.0, 100.0)
    assert segment.score == pytest.approx(0.8)
    assert align(similarity, query, target, query_weights=np.zeros(100, np.float32)) == []


def test_single_frames() -> None:
    row = np.full((1, 50), 0.1, np.float32)
    row[0, 20], row[0, 40] = 0.8, 0.7
    segments = align(row, regular(1), regular(50))
    # A frame at 0 s of a video whose period is that of the other: shown until the end of its period, nothing before 0.
    assert [ends(segment) for segment in segments] == [(0.0, 1.0, 20.0, 21.0), (0.0, 1.0, 40.0, 41.0)]
    assert [segment.score for segment in segments] == [pytest.approx(0.8), pytest.approx(0.7)]
    segments = align(row.T, regular(50), regular(1))
    assert [ends(segment)[:2] for segment in segments] == [(20.0, 21.0), (40.0, 41.0)]
    (segment,) = align(np.array([[0.9]]), regular(1), regular(1))
    assert ends(segment) == (0.0, 1.0, 0.0, 1.0)
    assert align(np.array([[0.2]]), regular(1), regular(1)) == []


@pytest.mark.parametrize("frames", [1, 2, 3, 4])
def test_a_query_of_one_second(frames: int) -> None:
    query, target = regular(frames, 1 / frames), regular(200, 1 / frames)
    similarity = drawn(query, target, [(0, 1, 20, 1)])
    (segment,) = align(similarity, query, target)
    assert segment.target_start == pytest.approx(20.0)
    assert segment.query_end == pytest.approx(1)


def test_short_runs_in_long_videos_do_not_match() -> None:
    query, target = regular(100), regular(100)
    similarity = drawn(query, target, [(50, 51, 10, 1)])
    assert align(similarity, query, target) == []
    assert len(align(similarity, query, target, minimum_duration=1.0)) == 1


def test_a_video_that_is_soon_black_is_as_long_as_what_it_shows() -> None:
    """Four frames of a second and a quarter are seen, the rest is black: no match of two seconds can be asked for."""
    query_times, target_times = regular(16, 0.25), regular(60)
    similarity = drawn(query_times, target_times, [(0.0, 1.0, 20.0, 1.0)])
    similarity[:4, 20:22] = 0.8
    weights = np.zeros(16, np.float32)
    assert align(similarity, query_times, target_times) == []
    weights[:4] = 1.0
    (segment,) = align(similarity, query_times, target_times, query_weights=weights)
    assert segment.target_start == pytest.approx(20, abs=0.6)
    assert segment.query_start == 0.0


def test_bright_single_cells_do_not_hide_a_weak_segment() -> None:
    query, target = regular(100), regular(100)
    similarity = drawn(query, target, [(50, 53, 10, 1)], level=0.5)
    for number in range(10):
        similarity[10 * number + 5, (37 * number + 60) % 100] = 1.0
    (segment,) = align(similarity, query, target)
    assert ends(segment) == (49.5, 52.5, 9.5, 12.5)


@pytest.mark.parametrize(("query_period", "target_period"), [(0.25, 1.0), (1.0, 0.25), (0.5, 0.2), (1 / 3, 0.5)])
def test_different_rates(query_period: float, target_period: float) -> None:
    query, target = (
        regular(int(40 / query_period), query_period),
        regular(int(120 / target_period), target_period),
    )
    (segment,) = align(drawn(query, target, [(10, 30, 60.43, 1)]), query, target)
    assert segment.speed == 1.0
    tolerance = max(query_period, target_period) / 2 + 1e-9
    assert segment.query_start == pytest.approx(10, abs=tolerance)
    assert segment.query_end == pytest.approx(30, abs=tolerance)
    assert segment.target_start == pytest.approx(60.43, abs=2 * tolerance)
    assert segment.target_end == pytest.approx(80.43, abs=2 * tolerance)


@pytest.mark.parametrize("speed", [1.0, 1.25])
def test_irregular_times(speed: float) -> None:
    generator = np.random.default_rng(5)
    query = regular(80) + 0.7 * generator.random(80)
    target = regular(200) + 0.7 * generator.random(200)
    target = np.concatenate([target[:90], target[95:]])  # five frames are missing
    (segment,) = align(drawn(query, target, [(20, 60, 70, speed)]), query, target)
    assert segment.query_start == pytest.approx(20, abs=1.5)
    assert segment.query_end == pytest.approx(60, abs=1.5)
    assert segment.target_start == pytest.approx(70, abs=1.5 * speed)
    assert segment.target_end == pytest.approx(70 + 40 * speed, abs=1.5 * speed)
    assert segment.speed == pytest.approx(speed, rel=0.05)


def test_ends_on_noisy_maps() -> None:
    """Median error below half a sampling period, over positions, lengths and speeds drawn at random."""
    generator = np.random.default_rng(1)
    errors: dict[str, list[float]] = {"start": [], "end": [], "target start": [], "target end": []}
    missed = 0
    for number in range(40):
        draw = generator.random(4).tolist()
        start, length = 5 + 20 * draw[0], 8 + 25 * draw[1]
        place, speed = 10 + 150 * draw[2], (0.8, 1.0, 1.0, 1.25)[int(4 * draw[3])]
        query, target = regular(60), regular(240)
        line = (start, start + length, place, speed)
        similarity = drawn(query, target, [line], level=0.6, spread=0.12, noise=0.25, seed=number)
        segments = align(similarity, query, target)
        if len(segments) != 1:
            missed += 1
            continue
        truth = (start, start + length, place, place + speed * length)
        for name, one, other in zip(errors, ends(segments[0]), truth, strict=True):
            errors[name].append(abs(one - other))
    assert missed == 0
    for name, values in errors.items():
        assert statistics.median(values) < 0.5, name


def test_unrelated_videos_do_not_match() -> None:
    query, target = regular(300), regular(300)
    for seed in range(3):
        assert align(drawn(query, target, seed=seed, noise=0.3), query, target) == []


def test_mirrored_is_passed_on_and_repetition_changes_nothing() -> None:
    query, target = regular(30), regular(60)
    similarity = drawn(query, target, [(5, 25, 20, 1)], spread=0.1)
    before = similarity.copy()
    segments = align(similarity, query, target, mirrored=True)
    assert [segment.mirrored for segment in segments] == [True]
    assert align(similarity, query, target, mirrored=True) == segments
    assert np.array_equal(similarity, before)


def test_half_precision_maps() -> None:
    query, target = regular(30), regular(60)
    (segment,) = align(drawn(query, target, [(5, 25, 20, 1)]).astype(np.float16), query, target)
    assert ends(segment) == (4.5, 24.5, 19.5, 39.5)


@pytest.mark.parametrize("jitter", [0.0, 0.2])
def test_maps_full_of_similar_frames(jitter: float) -> None:
    """700 x 700, two fifths of all cells above the threshold: the way of the sweep over rows."""
    generator = np.random.default_rng(2)
    query = regular(700)
    target = query + jitter * generator.random(700)
    lines = [(100, 300, 400, 1), (500, 640, 100, 1.25)]
    similarity = drawn(query, target, lines, noise=0.5, level=0.9)
    segments = align(similarity, query, target, maximum_segments=2)
    for segment, (start, end, place, speed) in zip(segments, lines, strict=True):
        assert segment.query_start == pytest.approx(start, abs=10)
        assert segment.query_end == pytest.approx(end, abs=10)
        assert segment.target_start == pytest.approx(place, abs=13)
        assert segment.speed == pytest.approx(speed, rel=0.02)


def test_refusals() -> None:
    similarity, three, four = np.zeros((3, 4), np.float32), regular(3), regular(4)
    with pytest.raises(InvalidArgumentError, match=r"at least one frame on both sides, got \[0, 4\]"):
        align(similarity[:0], three[:0], four)
    with pytest.raises(
        InvalidArgumentError,
        match=r"query_times must be \[3\] as the map has that many frames, got \[4\]",
    ):
        align(similarity, four, four)
    with pytest.raises(InvalidArgumentError, match="target_times must be finite and increasing"):
        align(similarity, three, four[::-1])
    with pytest.raises(InvalidArgumentError, match=r"target_weights must be \[4\], got \[3\]"):
        align(similarity, three, four, target_weights=np.ones(3, np.float32))
    with pytest.raises(InvalidArgumentError, match=r"threshold must be above 0 and below 1, got 1\.5"):
        align(similarity, three, four, threshold=1.5)
    with pytest.raises(InvalidArgumentError, match=r"speeds must be one or more numbers above 0, got \(1.0, 0.0\)"):
        align(similarity, three, four, speeds=(1.0, 0.0))
    with pytest.raises(InvalidArgumentError, match="maximum_segments must be at least 1, got 0"):
        align(similarity, three, four, maximum_segments=0)
    with pytest.raises(InvalidArgumentError, match="minimum_duration must be a number, got nan"):
        align(similarity, three, four, minimum_duration=float("nan"))


def test_finer_frames_say_where_a_match_ends_before_the_video_does() -> None:
    # Rows a second apart, columns a quarter; the match is the diagonal, but after 9.25 s the columns show
    # something else, which the last row (9 s, on screen until 10 s) alone could not tell.
    query, target = regular(10), regular(80, 0.25)
    similarity = np.full((10, 80), 0.05, np.float32)
    for row in range(10):
        for column in range(max(0, 4 * row - 3), min(38, 4 * row + 4)):
            similarity[row, column] = 0.9
    (segment,) = align(similarity, query, target)
    assert segment.query_start == 0.0
    assert segment.query_end == pytest.approx(9.5)
    assert segment.target_end == pytest.approx(9.5)
    similarity[9, 38:41] = 0.9
    (segment,) = align(similarity, query, target)
    assert segment.query_end == pytest.approx(10.0)


@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_passed_over_only_where_nothing_would_match(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a bound that passes nothing over, sparse maps give the same segments."""
    generator = np.random.default_rng(seed)
    rows, columns = 20, 14
    sparse = generator.random((rows, columns)) * (generator.random((rows, columns)) < 0.02 + 0.02 * seed)
    query, target = regular(rows, 0.5), regular(columns, 0.7)
    weights = generator.random(rows), generator.random(columns)

    def segments() -> list[Segment]:
        return align(sparse, query, target, query_weights=weights[0], target_weights=weights[1])

    usual = segments()
    monkeypatch.setattr(best_segments, "_most_evidence", lambda evidence: math.inf)
    assert segments() == usual
