"""Matches of real encoded files are refined to frame accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.videos import encode, pan
from vidkin.index import refine_segment
from vidkin.index.query.exact_times import _box_pairs, _crop_to_ratio
from vidkin.media import Frames
from vidkin.similarity import Segment

RATE = 25
Frame = NDArray[np.uint8]


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve seconds of a moving camera."""
    return encode(tmp_path_factory.mktemp("exact") / "film.mp4", frames(), rate=RATE)


def frames() -> Iterator[Frame]:
    return pan("coffee", 12 * RATE)


def mirror(frame: Frame) -> Frame:
    return np.ascontiguousarray(frame[:, ::-1])


def logo(frame: Frame) -> Frame:
    marked = frame.copy()
    marked[8:40, 8:60] = (250, 40, 40)
    return marked


@pytest.mark.large
@pytest.mark.parametrize("wrong", [-0.5, 0.0, 0.17])
@pytest.mark.parametrize(
    ("edit", "begin", "speed", "flipped"),
    [
        (None, 50, Fraction(1), False),
        (mirror, 25, Fraction(1), True),
        (logo, 0, Fraction(5, 4), False),
    ],
)
def test_inexact_time_is_refined_to_half_a_frame(
    film: Path,
    tmp_path: Path,
    wrong: float,
    edit: Callable[[Frame], Frame] | None,
    begin: int,
    speed: Fraction,
    flipped: bool,
) -> None:
    pictures = [edit(frame) if edit else frame for frame in list(frames())[begin:]]
    copy = encode(tmp_path / "copy.mp4", pictures, rate=RATE * speed, options={"crf": "30"})
    length = len(pictures) / (RATE * float(speed)) - 1
    start = max(begin / RATE + wrong, 0.0)
    rough = Segment(0, length, start, start + length * float(speed), 0.9, float(speed), flipped)
    exact = refine_segment(copy, film, rough)
    for time in (exact.query_start, exact.query_end):
        found = exact.target_start + (time - exact.query_start) * exact.speed
        assert found == pytest.approx(begin / RATE + time * float(speed), abs=0.5 / RATE)


@pytest.mark.parametrize(("true", "said"), [(1.0, 1.25), (1.25, 1.17), (0.8, 0.86), (0.96, 1.0)])
def test_unusual_speed_is_replaced_by_a_common_one(film: Path, tmp_path: Path, true: float, said: float) -> None:
    pictures = list(frames())[50 : 50 + round(3 * RATE * true)]
    copy = encode(tmp_path / "copy.mp4", pictures, rate=Fraction(RATE * Fraction(str(true))))
    # The rough line is correct at 1.5 s, the middle of the copy.
    start = 2 + 1.5 * true - 1.4 * said
    exact = refine_segment(copy, film, Segment(0.1, 2.9, start, start + 2.8 * said, 0.9, said))
    assert exact.speed == pytest.approx(true, abs=0.004)
    assert exact.target_start - true * exact.query_start == pytest.approx(2.0, abs=1 / RATE)


@pytest.mark.thorough
def test_excerpt_between_two_cuts_ends_at_the_cuts(film: Path, tmp_path: Path) -> None:
    pictures = [*pan("rocket", 40), *list(frames())[100:175], *pan("rocket", 60)]
    copy = encode(tmp_path / "copy.mp4", pictures, rate=RATE)
    # Frames 100 to 174 are seconds 4 to 7 of the film and 1.6 to 4.6 of the copy.
    for off in ((-0.9, 1.1), (0.7, -0.4)):
        start, end = 1.6 + off[0], 4.6 + off[1]
        exact = refine_segment(copy, film, Segment(start, end, start + 2.4, end + 2.4, 0.9))
        assert exact.query_start == pytest.approx(1.6, abs=0.5 / RATE)
        assert exact.query_end == pytest.approx(4.6, abs=0.5 / RATE)
        assert (exact.target_start, exact.target_end) == pytest.approx((4.0, 7.0), abs=1 / RATE)


def test_match_near_the_end_of_a_file_ends_with_the_file(film: Path, tmp_path: Path) -> None:
    copy = encode(tmp_path / "copy.mp4", list(frames())[225:], rate=RATE)  # the last three seconds
    exact = refine_segment(copy, film, Segment(0.8, 2.0, 9.8, 11.0, 0.9))
    assert (exact.query_start, exact.query_end) == pytest.approx((0.0, 3.0), abs=1 / RATE)
    assert (exact.target_start, exact.target_end) == pytest.approx((9.0, 12.0), abs=1 / RATE)


def test_still_image_between_cuts_ends_at_the_cuts_with_speed_one(tmp_path: Path) -> None:
    picture = next(frames())
    still = encode(tmp_path / "still.mp4", [picture] * 200, rate=RATE)
    copy = encode(tmp_path / "copy.mp4", [*pan("rocket", 50), *[picture] * 75, *pan("rocket", 50)], rate=RATE)
    exact = refine_segment(copy, still, Segment(1.8, 4.6, 3.0, 6.08, 0.9, 1.1))
    assert (exact.query_start, exact.query_end, exact.speed) == pytest.approx((2.0, 5.0, 1.0), abs=0.5 / RATE)


def test_still_or_unrelated_footage_leaves_the_segment_unchanged(film: Path, tmp_path: Path) -> None:
    still = encode(tmp_path / "still.mp4", [next(frames())] * 50, rate=RATE)
    other = encode(tmp_path / "other.mp4", pan("rocket", 100), rate=RATE)
    for path in (still, other):
        rough = Segment(0, 1.9, 3.0, 4.9, 0.5)
        assert refine_segment(path, film, rough) == rough
    moment = Segment(1.0, 1.0, 2.0, 2.0, 1.0)
    assert refine_segment(still, film, moment) == moment
    damaged = tmp_path / "broken.mp4"
    damaged.write_bytes(b"no video" * 99)
    rough = replace(moment, query_end=2.0, target_end=3.0)
    assert refine_segment(damaged, film, rough) == rough  # the callers report missing files


def picture(width: int, height: int) -> Frames:
    return Frames(np.zeros((1, height, width, 3), np.uint8), np.zeros(1))


def test_frames_with_different_aspect_ratios_are_also_compared_at_the_center() -> None:
    whole = (0.0, 0.0, 1.0, 1.0)
    wide, square = picture(160, 90), picture(90, 90)
    pairs = _box_pairs(wide, square, Segment(0, 1, 0, 1, 1.0))
    # A square cropped by 7/32 at the top and bottom is 16:9; a 16:9 frame cropped by 7/32 on both sides is a square.
    assert pairs[0] == (whole, whole)
    assert pairs[1] == (whole, pytest.approx((0.0, 7 / 32, 1.0, 25 / 32)))
    assert pairs[2] == (pytest.approx((7 / 32, 0.0, 25 / 32, 1.0)), whole)


def test_quarter_turn_swaps_the_aspect_ratio() -> None:
    whole = (0.0, 0.0, 1.0, 1.0)
    tall = picture(90, 160)
    assert _box_pairs(tall, picture(160, 90), Segment(0, 1, 0, 1, 1.0, turned=90)) == [(whole, whole)]
    pairs = _box_pairs(tall, picture(90, 90), Segment(0, 1, 0, 1, 1.0, turned=90))
    assert pairs[1] == (whole, pytest.approx((0.0, 7 / 32, 1.0, 25 / 32)))
    assert pairs[2] == (pytest.approx((0.0, 7 / 32, 1.0, 25 / 32)), whole)


@pytest.mark.parametrize(("wider", "middle"), [(0.5, (0.3, 0.2, 0.5, 0.6)), (2.0, (0.2, 0.3, 0.6, 0.5)), (1.0, None)])
def test_center_of_a_box_takes_the_given_aspect_ratio(wider: float, middle: tuple[float, ...] | None) -> None:
    box = (0.2, 0.2, 0.6, 0.6)
    assert _crop_to_ratio(box, wider) == pytest.approx(middle or box)


@pytest.mark.thorough
def test_copy_cropped_for_another_aspect_ratio_is_located_to_half_a_frame(film: Path, tmp_path: Path) -> None:
    # A third of the height is cropped at the top and bottom.
    pictures = [frame[len(frame) // 6 : -(len(frame) // 6)] for frame in list(frames())[50:125]]
    copy = encode(tmp_path / "copy.mp4", pictures, rate=RATE)
    exact = refine_segment(copy, film, Segment(0.1, 2.9, 2.2, 5.0, 0.9))
    assert exact.target_start - exact.query_start == pytest.approx(2.0, abs=0.5 / RATE)
    assert exact.target_box == (0.0, 0.0, 1.0, 1.0)  # the pose of the segment, which was estimated from views
