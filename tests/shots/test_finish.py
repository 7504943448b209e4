"""From network outputs to transitions: which ones count, their ends and kinds, plain backgrounds, and blocks."""

from __future__ import annotations

import numpy as np
import pytest

from vidkin.shots import DetectedCut
from vidkin.shots.finish import Finisher
from vidkin.shots.network import CONTRAST, HARD, INSIDE, KINDS, SINCE, TIME, UNTIL, Answers, Numbers

NUMBERS = Numbers(hard=0.5, gradual=0.6, inside=0.4, plain=2.0, fade_gap=1.0, cut_gap=0.5)


def answer(
    *cuts: tuple[int, float], spans: tuple[tuple[int, int, float], ...] = (), plain: slice = slice(0), count: int = 200
) -> Answers:
    """Network outputs at 25 fps with these cuts, dissolves (first and last frame) and frames of a plain color."""
    rows = np.zeros((count, TIME + 1))
    rows[:, CONTRAST], rows[:, TIME] = 40, np.arange(count) / 25
    rows[plain, CONTRAST] = 0
    for frame, probability in cuts:
        rows[frame, HARD] = probability
    for first, last, probability in spans:
        frames = np.arange(first, last + 1)
        rows[frames, INSIDE], rows[frames, KINDS["dissolve"]] = probability, 1
        rows[frames, SINCE], rows[frames, UNTIL] = frames - first, last - frames
    return rows


def read(rows: Answers) -> list[DetectedCut]:
    return Finisher(NUMBERS).push(rows, is_last=True)


def spans(cuts: list[DetectedCut]) -> list[tuple[str, int | None, int | None]]:
    return [(cut.kind, cut.start_frame, cut.end_frame) for cut in cuts]


def test_cuts_and_transitions_are_read_from_high_probabilities() -> None:
    cuts = read(answer((10, 0.9), (11, 0.7), (40, 0.4), (80, 0.6), spans=((100, 130, 0.9), (150, 160, 0.5))))
    assert [(cut.frame, cut.kind) for cut in cuts] == [(10, "hard"), (80, "hard"), (115, "dissolve")]
    assert spans(cuts)[2] == ("dissolve", 100, 130)
    assert [cut.confidence for cut in cuts] == pytest.approx([0.9, 0.6, 0.9])


def test_film_has_no_cut_before_its_first_frame() -> None:
    assert read(answer((0, 0.9))) == []
    assert read(np.zeros((0, TIME + 1))) == []


def test_frames_of_adjacent_transitions_vote_for_the_ends_of_their_own() -> None:
    cuts = read(answer(spans=((50, 69, 0.9), (70, 95, 0.9))))
    assert spans(cuts) == [("dissolve", 50, 69), ("dissolve", 70, 95)]


@pytest.mark.parametrize(("frame", "cut", "kinds"), [(60, 0.95, ["hard"]), (60, 0.7, ["dissolve"])])
def test_more_probable_one_of_a_cut_and_an_overlapping_transition_is_kept(
    frame: int, cut: float, kinds: list[str]
) -> None:
    assert [one.kind for one in read(answer((frame, cut), spans=((50, 69, 0.8),)))] == kinds


def test_cut_at_the_end_of_a_transition_is_kept_as_a_separate_cut() -> None:
    cuts = read(answer((70, 0.95), spans=((50, 69, 0.8),)))
    assert [(one.kind, one.frame) for one in cuts] == [("dissolve", 60), ("hard", 70)]


def test_two_cuts_with_brief_black_between_them_become_one_fade() -> None:
    assert spans(read(answer((60, 0.9), (70, 0.9), plain=slice(60, 70)))) == [("fade", 60, 69)]
    assert [cut.kind for cut in read(answer((60, 0.9), (80, 0.9), plain=slice(60, 80)))] == ["hard", "hard"]


def test_two_fades_with_brief_black_between_them_become_one_fade() -> None:
    both = ((50, 65, 0.9), (75, 90, 0.8))
    assert spans(read(answer(spans=both, plain=slice(65, 76)))) == [("fade", 50, 90)]
    assert [cut.kind for cut in read(answer(spans=((50, 65, 0.9), (100, 120, 0.8)), plain=slice(65, 101)))] == [
        *("fade", "fade")
    ]


def test_cut_and_fade_with_black_between_them_belong_together() -> None:
    first, last = read(answer((60, 0.9), spans=((73, 90, 0.9),), plain=slice(60, 75)))
    assert (first.kind, first.is_to_ground, last.kind, last.is_from_ground) == ("hard", True, "fade", False)
    first, last = read(answer((80, 0.9), spans=((50, 65, 0.9),), plain=slice(60, 80)))
    assert (first.kind, first.is_to_ground, last.kind, last.is_from_ground) == ("fade", False, "hard", True)


def test_fade_near_an_end_of_the_film_is_extended_to_it() -> None:
    assert spans(read(answer(spans=((4, 20, 0.9),), plain=slice(0, 6)))) == [("fade", 0, 20)]
    assert spans(read(answer(spans=((170, 185, 0.9),), plain=slice(184, None)))) == [("fade", 170, 199)]
    assert spans(read(answer(spans=((60, 80, 0.9),), plain=slice(0, 62)))) == [("fade", 60, 80)]


def test_change_of_a_plain_color_is_not_a_transition() -> None:
    assert read(answer(spans=((50, 80, 0.9),), plain=slice(None))) == []


@pytest.mark.parametrize("block", [37, 256, 512])
def test_streamed_transitions_equal_those_of_the_whole_film_and_are_yielded_early(block: int) -> None:
    random = np.random.default_rng(0)
    cuts = [(frame, 0.9) for frame in np.cumsum(random.integers(20, 160, 60)).tolist()]
    dissolves = tuple((frame + 4, frame + 14, 0.8) for frame, _ in cuts[::3])
    rows = answer(*cuts, spans=dissolves, count=cuts[-1][0] + 100)
    finisher, found = Finisher(NUMBERS), []
    for start in range(0, len(rows), block):
        found += finisher.push(rows[start : start + block])
    early = len(found)
    found += finisher.push(rows[:0], is_last=True)
    assert found == read(rows)
    assert len(found) == 80
    assert early > 70


def test_constantly_changing_film_is_streamed_as_well() -> None:
    rows = answer(*((frame, 0.9) for frame in range(8, 4000, 8)), count=4000)
    finisher = Finisher(NUMBERS)
    early = [cut.frame for start in range(0, 4000, 500) for cut in finisher.push(rows[start : start + 500])]
    assert early[-1] > 2500
    assert len(early) == len(set(early))
