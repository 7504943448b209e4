"""Fades as one transition from picture to picture, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.shots import DetectedCut
from vidkin.shots.fades import settle_fades

TIMES = (np.arange(200) / 25).tolist()


def contrasts(*plain: tuple[int, int]) -> np.ndarray:
    """Pictures of contrast 40, and plain frames first to last."""
    values = np.full(200, 40.0, np.float32)
    for first, last in plain:
        values[first : last + 1] = 0.5
    return values


def fade(first: int, last: int, confidence: float = 0.9) -> DetectedCut:
    return DetectedCut(max(1, (first + last + 1) // 2), "fade", confidence, first, last)


@pytest.mark.parametrize(("gap", "count"), [(0, 1), (20, 1), (24, 1), (40, 2)])
def test_a_background_of_a_second_at_most_does_not_divide_a_fade(gap: int, count: int) -> None:
    start = 70 + gap + 1
    plain = contrasts((71, start - 1) if gap else (70, 71))
    cuts = settle_fades([fade(50, 70), fade(start, start + 20, 0.7)], plain, TIMES)
    assert len(cuts) == count
    if count == 1:
        assert (cuts[0].start_frame, cuts[0].end_frame, cuts[0].confidence) == (50, start + 20, 0.7)
        assert cuts[0].frame == (50 + start + 21) // 2


def test_a_picture_between_two_fades_divides_them() -> None:
    assert len(settle_fades([fade(50, 70), fade(80, 100)], contrasts(), TIMES)) == 2
    assert len(settle_fades([fade(50, 70), fade(71, 91)], contrasts(), TIMES)) == 2  # one that comes and goes


@pytest.mark.parametrize(
    ("first", "count"),
    [(DetectedCut(58, "wipe", 0.99, 56, 60), 1), (DetectedCut(61, "hard", 0.6), 1), (DetectedCut(61, "hard", 0.95), 2)],
    ids=["a short fade taken for a wipe", "a short fade taken for a cut", "a certain cut"],
)
def test_what_leads_to_the_background_of_a_fade_is_its_begin(first: DetectedCut, count: int) -> None:
    """Plain frames 61 to 74, then a fade from them."""
    cuts = settle_fades([first, fade(75, 95)], contrasts((61, 74)), TIMES)
    assert len(cuts) == count
    assert (cuts[-1].kind, cuts[-1].end_frame) == ("fade", 95)
    # With a picture between them they are two.
    assert len(settle_fades([first, fade(75, 95)], contrasts((61, 70)), TIMES)) == 2


@pytest.mark.parametrize(
    ("first", "says"), [(75, True), (86, True), (87, False)], ids=["14 frames", "25 frames", "26 frames"]
)
def test_a_certain_cut_to_a_background_says_that_a_fade_leads_from_it_within_a_second(first: int, says: bool) -> None:
    """A cut at frame 61, at 25 frames a second."""
    cut = DetectedCut(61, "hard", 0.95)
    plain = contrasts((61, first - 1))
    assert settle_fades([cut, fade(first, first + 20)], plain, TIMES)[0].is_to_ground is says
    assert not settle_fades([cut, fade(first, first + 20)], contrasts((63, first - 1)), TIMES)[0].is_to_ground
    assert not settle_fades([cut, DetectedCut(first)], plain, TIMES)[0].is_to_ground


@pytest.mark.parametrize(("last", "says"), [(74, True), (84, True), (85, False)], ids=["14", "24 frames", "25 frames"])
def test_a_certain_cut_says_that_it_leads_from_the_background_of_a_fade_within_a_second(last: int, says: bool) -> None:
    """A fade out up to frame 59, plain frames from 60 on, at 25 frames a second."""
    given = [fade(40, 59), DetectedCut(last + 1, "hard", 0.95)]
    settled = settle_fades(given, contrasts((60, last)), TIMES)
    assert [cut.is_from_ground for cut in settled] == [False, says]
    assert not settle_fades(given, contrasts((60, last - 2)), TIMES)[1].is_from_ground


def test_cuts_to_black_and_away_from_it_are_one_transition() -> None:
    """Three black frames, 60 to 62; a second of them is a shot of its own."""
    (cut,) = settle_fades([DetectedCut(60), DetectedCut(63)], contrasts((60, 62)), TIMES)
    assert (cut.kind, cut.start_frame, cut.end_frame) == ("fade", 60, 62)
    assert len(settle_fades([DetectedCut(60), DetectedCut(85)], contrasts((60, 84)), TIMES)) == 2
    assert len(settle_fades([DetectedCut(60), DetectedCut(63)], contrasts(), TIMES)) == 2


def test_nothing_inside_a_fade_is_a_cut_where_the_picture_is_dim() -> None:
    dim = contrasts()
    dim[60:90] = 10
    cuts = [DetectedCut(58, "hard", 0.8), DetectedCut(65, "hard", 0.8), fade(50, 95), DetectedCut(80, "hard", 0.95)]
    # At frame 58 the picture is as it was before: something else happens there. A certain cut stays anywhere.
    assert [cut.frame for cut in settle_fades(cuts, dim, TIMES)] == [58, 73, 80]


@pytest.mark.parametrize(("plain", "reaches"), [(10, True), (40, False)])
def test_a_fade_reaches_the_ends_of_a_video_across_a_moment_of_plain_background(plain: int, reaches: bool) -> None:
    dark = contrasts((0, plain - 1), (200 - plain, 199))
    cuts = settle_fades([fade(plain, plain + 20), fade(180 - plain, 199 - plain)], dark, TIMES)
    assert cuts[0].start_frame == (0 if reaches else plain)
    assert cuts[1].end_frame == (199 if reaches else 199 - plain)


def test_without_fades_all_cuts_stay() -> None:
    cuts = (DetectedCut(10), DetectedCut(50, "dissolve", 0.9, 40, 60))
    assert settle_fades(cuts, contrasts(), TIMES) == cuts
    assert settle_fades([], contrasts(), TIMES) == ()
