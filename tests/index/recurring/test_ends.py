"""Ends of shared segments: cuts, fades, other aspect ratios and static frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.seasons import shots
from tests.support.videos import encode
from vidkin.index import VideoRecord
from vidkin.index.recurring.ends import Clip, Clips, TimeLine, covered_fraction, find_end, fit_stretch
from vidkin.index.recurring.stretches import RoughStretch

STEP = 0.1


def clip(images: list[NDArray[np.uint8]], start: float = 0.0) -> Clip:
    luma = np.stack([image[::2, ::2].mean(axis=-1).astype(np.uint8) for image in images])
    times = start + STEP * np.arange(len(luma))
    return Clip(times, luma, float(times[-1]) + STEP, is_first=False, is_last=False)


COFFEE = shots(("coffee", 0, 20))
CHELSEA = shots(("chelsea", 0, 20))
ROCKET = shots(("rocket", 0, 20))


def test_cut_is_found_to_the_frame_from_a_nearby_guess() -> None:
    first, second = clip([*COFFEE, *CHELSEA], start=10.0), clip([*COFFEE, *ROCKET], start=50.03)
    fit = find_end(first, second, TimeLine(11.0, 51.0, 1.0), "end")
    assert fit is not None
    assert (fit.first, fit.second) == pytest.approx((12.0, 52.03))
    assert fit.match > 0.99


def test_start_is_the_first_frame_that_both_show() -> None:
    first, second = clip([*CHELSEA, *COFFEE]), clip([*ROCKET[:15], *COFFEE])
    fit = find_end(first, second, TimeLine(2.5, 2.0, 1.0), "start")
    assert fit is not None
    assert (fit.first, fit.second) == pytest.approx((2.0, 1.5))


def test_end_in_a_fade_is_found_within_three_tenths_of_a_second() -> None:
    share = np.linspace(1, 0, 8)
    fade = [(image * part).astype(np.uint8) for image, part in zip(COFFEE[12:], share, strict=True)]
    black = [np.zeros_like(COFFEE[0])] * 10
    faded, cut = clip([*COFFEE[:12], *fade, *black]), clip([*COFFEE, *ROCKET])
    fit = find_end(faded, cut, TimeLine(1.0, 1.0, 1.0), "end")
    assert fit is not None
    assert fit.first == pytest.approx(2.0, abs=0.3)


def test_cut_just_before_the_end_of_the_clips_does_not_end_a_segment() -> None:
    """Both clips agree up to their last frame, 0.4 s after a cut, so more frames must be read."""
    images = [*COFFEE, *CHELSEA[:4]]
    fit = find_end(clip(images, start=10.0), clip(images, start=50.0), TimeLine(11.0, 51.0, 1.0), "end")
    assert fit is not None
    assert (fit.first, fit.second) == pytest.approx((12.4, 52.4))
    fit = find_end(clip(images[::-1]), clip(images[::-1]), TimeLine(1.0, 1.0, 1.0), "start")
    assert fit is not None
    assert (fit.first, fit.second) == (0.0, 0.0)


def test_other_aspect_ratio_is_recognized() -> None:
    narrow = [image[:, 24:-24] for image in [*COFFEE, *ROCKET]]
    fit = find_end(clip([*COFFEE, *CHELSEA]), clip(narrow), TimeLine(1.0, 1.0, 1.0), "end")
    assert fit is not None
    assert (fit.first, fit.second) == pytest.approx((2.0, 2.0))
    assert fit.match > 0.95


def test_shots_with_bars_end_where_shots_without_bars_begin() -> None:
    """One clip shows only the area between the bars; in the other, wider shots follow."""
    boxed = [np.pad(image[:, 50:-50], ((0, 0), (50, 50), (0, 0))) for image in COFFEE]
    first, second = clip([*boxed, *boxed[:1]]), clip([*boxed, *ROCKET])
    fit = find_end(first, second, TimeLine(1.0, 1.0, 1.0), "end")
    assert fit is not None
    assert fit.second == pytest.approx(2.0)
    assert fit.match > 0.95


def test_different_frames_have_no_end() -> None:
    assert find_end(clip(COFFEE), clip(ROCKET), TimeLine(1.0, 1.0, 1.0), "end") is None


def test_time_line_maps_times_in_both_directions() -> None:
    line = TimeLine(10.0, 20.0, 0.96)
    assert line.at(20.0) == pytest.approx(29.6)
    assert line.swapped().at(29.6) == pytest.approx(20.0)
    assert line.shifted(0.5).at(10.0) == 20.5


def faded(images: list[NDArray[np.uint8]], ground: int = 0) -> list[NDArray[np.uint8]]:
    """Fade the frames in from a uniform background."""
    shares = np.linspace(0, 1, len(images))
    return [
        (ground + share * (image - float(ground))).astype(np.uint8) for share, image in zip(shares, images, strict=True)
    ]


def with_band(images: list[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
    """Add a white title to the frames."""
    titled = [image.copy() for image in images]
    for image in titled:
        image[40:48, 10:80] = 255
    return titled


@pytest.mark.parametrize("ground", [0, 255])
def test_slow_fade_begins_where_its_content_becomes_visible(ground: int) -> None:
    """After 0.1 s of a two-second fade from black or white, a twentieth of the contrast (four levels) is visible."""
    plain = [np.full_like(COFFEE[0], ground)] * 4
    opening = [*plain, *faded(COFFEE, ground), *[COFFEE[-1]] * 5]
    fit = find_end(clip([*CHELSEA, *opening]), clip([*ROCKET, *opening]), TimeLine(3.0, 3.0, 1.0), "start")
    assert fit is not None
    assert (fit.first, fit.second) == (pytest.approx(2.4, abs=0.3), pytest.approx(2.4, abs=0.3))
    assert fit.match > 0.9


def test_title_over_a_fade_and_over_black_hides_no_part_of_it() -> None:
    black = [np.zeros_like(COFFEE[0])] * 5
    opening = [*CHELSEA[:10], *black, *faded(COFFEE), *[COFFEE[-1]] * 5]
    other = [image[::-1] for image in CHELSEA[:10]]
    first, second = clip([*ROCKET[:10], *with_band(opening)]), clip([*other, *opening])
    fit = find_end(first, second, TimeLine(4.0, 4.0, 1.0), "start")
    assert fit is not None
    assert (fit.first, fit.second) == (pytest.approx(1.0, abs=0.1), pytest.approx(1.0, abs=0.1))


def test_different_shots_after_black_are_not_matched() -> None:
    fade = faded(COFFEE)[::-1]
    first, second = clip([*fade, *CHELSEA]), clip([*fade, *ROCKET])
    fit = find_end(first, second, TimeLine(1.0, 1.0, 1.0), "end")
    assert fit is not None
    assert fit.first == pytest.approx(2.0, abs=0.3)
    assert fit.second == pytest.approx(2.0, abs=0.3)


def test_title_in_one_of_two_clips_covers_the_expected_cells() -> None:
    """The title spans 8 of 108 rows and 70 of 192 columns, that is, 2 of 12 rows and 9 of 20 columns of cells."""
    plain, titled, darker = clip(COFFEE), clip(with_band(COFFEE)), clip([(image // 2) for image in COFFEE])
    assert covered_fraction([(plain.cells().means, titled.cells().means)]) == pytest.approx(18 / 240, abs=6 / 240)
    assert covered_fraction([(plain.cells().means, darker.cells().means)]) == 0
    assert covered_fraction([(plain.cells().means, clip(ROCKET).cells().means)]) == 0


@pytest.mark.thorough
def test_segment_that_ends_far_beyond_its_stored_end_is_extended(tmp_path: Path) -> None:
    """Seconds 6 to 8.5 are only similar; the same footage is shown from second 10 on, beyond the stored end."""
    own, other, shared = shots(("chelsea", 1, 100)), shots(("rocket", 2, 100)), shots(("coffee", 0, 80))
    alike = [(0.4 * one + 0.6 * two).astype(np.uint8) for one, two in zip(own, other, strict=True)]
    films = {"a.mp4": [*own, *shared], "b.mp4": [*alike[40:], *shared]}
    first, second = (
        VideoRecord(
            path=str(encode(tmp_path / name, images, rate=10)),
            size=1,
            mtime_ns=1,
            content_hash=name,
            duration=len(images) / 10,
        )
        for name, images in films.items()
    )
    fitted = fit_stretch(Clips(), first, second, RoughStretch(6.0, 8.5, 2.0, 4.5, 0.6, 0.4))
    assert fitted is not None
    assert fitted.first_start < 10.15  # the start within the blend is ambiguous
    assert (fitted.first_end, fitted.second_end) == pytest.approx((18.0, 14.0), abs=0.15)
