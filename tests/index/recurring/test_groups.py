"""Groups of links: which links belong together, their kind, and missing parts of occurrences."""

from __future__ import annotations

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.index import Occurrence, RecurringGroup
from vidkin.index.recurring.ends import FittedStretch
from vidkin.index.recurring.groups import SharedByFiles, build_groups, natural_order
from vidkin.rendering import describe_difference


def link(
    first: str, start: float, second: str, other: float, length: float, *, speed: float = 1.0, covered: float = 0.0
) -> SharedByFiles:
    times = start, start + length, other, other + length * speed
    return SharedByFiles(first, second, FittedStretch(*times, 0.9, 1.0, covered))


def spans(group: RecurringGroup) -> list[tuple[str, float, float]]:
    return [(one.path, one.start, one.end) for one in group.occurrences]


LENGTHS = {f"e{number}": 1000.0 for number in (1, 2, 3, 10)}


def test_links_of_three_files_are_one_opening_in_the_order_of_their_numbers() -> None:
    links = [link("e10", 50, "e2", 80, 30), link("e1", 20, "e2", 80, 30)]
    (group,) = build_groups(links, LENGTHS)
    assert spans(group) == [("e1", 20, 50), ("e2", 80, 110), ("e10", 50, 80)]
    assert (group.kind, group.files, group.duration) == ("opening", 4, 30)


def test_kinds_follow_from_the_places() -> None:
    links = [
        *(link("e1", 20, other, 20, 30) for other in ("e2", "e3")),
        *(link("e1", 900, other, 950, 40) for other in ("e2", "e3")),
        *(link("e1", 500, other, 600, 5) for other in ("e2", "e3")),
    ]
    assert [group.kind for group in build_groups(links, LENGTHS)] == ["opening", "closing", "inside"]


def test_an_opening_of_which_one_shot_is_shown_again_is_one() -> None:
    links = [*(link("e1", 20, other, 20, 30) for other in ("e2", "e3")), link("e1", 25, "e3", 700, 4)]
    opening, shot = build_groups([*links, link("e1", 25, "e2", 25, 4)], LENGTHS)
    assert (opening.kind, len(opening.occurrences), opening.duration) == ("opening", 3, 30)
    assert spans(shot) == [("e1", 25, 29), ("e2", 25, 29), ("e3", 700, 704)]


def test_a_part_of_a_group_does_not_become_a_group_of_its_own() -> None:
    links = [link("e1", 20, "e2", 40, 30), link("e1", 22, "e2", 42, 5)]
    assert [group.duration for group in build_groups(links, LENGTHS)] == [30]


def test_what_shows_other_titles_than_most_is_said_to() -> None:
    links = [
        link("e1", 20, "e2", 20, 30),
        link("e1", 20, "e3", 20, 30, covered=0.1),
        link("e2", 20, "e3", 20, 30, covered=0.1),
        link("e1", 20, "e3", 20, 4),  # a shot of it without the title is weaker evidence than the whole
    ]
    (group,) = build_groups(links, LENGTHS)
    assert [one.titled for one in group.occurrences] == [False, False, True]
    (group,) = build_groups([link("e3", 20, "e1", 20, 30, covered=0.1)], LENGTHS)
    assert [one.titled for one in group.occurrences] == [False, True]  # of two the later one differs from the first


def test_the_speed_of_a_part_with_ends_in_fades_is_that_of_its_pictures() -> None:
    """10.3 and 10.4 s long: ends that are off by .3 s hide that one runs at 24 instead of 25 frames per second."""
    both = FittedStretch(20, 30.3, 20, 30.45, 0.9, 1.0, 0.0, 25 / 24)
    (group,) = build_groups([SharedByFiles("e1", "e2", both)], LENGTHS)
    assert [one.speed for one in group.occurrences] == [1.0, 0.96]
    (group,) = build_groups([SharedByFiles("e1", "e2", both._replace(speed=0.0))], LENGTHS)
    assert group.occurrences[1].speed == pytest.approx(10.3 / 10.45, abs=1e-3)


def test_two_parts_that_overlap_at_the_same_moments_of_both_files_are_one() -> None:
    links = [link("e1", 20, "e2", 40, 30), link("e1", 46, "e2", 66, 24)]
    (group,) = build_groups(links, LENGTHS)
    assert spans(group) == [("e1", 20, 70), ("e2", 40, 90)]


def test_two_parts_that_overlap_at_other_moments_are_two() -> None:
    links = [link("e1", 20, "e2", 40, 30), link("e1", 46, "e2", 466, 24)]
    assert [group.duration for group in build_groups(links, LENGTHS)] == [30, 24]


def test_pieces_of_an_earlier_file_at_the_begin_are_its_recap() -> None:
    links = [
        link("e2", 1, "e1", 300, 4),
        link("e2", 5, "e1", 700, 4),
        link("e2", 9, "e1", 420, 4),
        *(link("e1", 60, other, 80, 30) for other in ("e2", "e3")),
    ]
    opening, recap = build_groups(links, LENGTHS)
    assert (opening.kind, recap.kind) == ("opening", "recap")
    assert spans(recap) == [("e2", 1, 13), ("e1", 300, 304), ("e1", 420, 424), ("e1", 700, 704)]
    assert [one.source for one in recap.occurrences] == [False, True, True, True]


def test_in_two_files_the_longest_early_stretch_is_the_opening_beside_a_recap() -> None:
    links = [link("e2", 1, "e1", 10, 4), link("e2", 5, "e1", 700, 4), link("e2", 9, "e1", 60, 30)]
    opening, recap = build_groups(links, {"e1": 1000.0, "e2": 1000.0})
    assert spans(opening) == [("e1", 60, 90), ("e2", 9, 39)]
    assert spans(recap)[0] == ("e2", 1, 9)


def test_a_middle_left_out_is_one_occurrence_that_says_how_much() -> None:
    links = [link("e1", 10, "e2", 50, 20), link("e1", 45, "e2", 70, 20)]
    (group,) = build_groups(links, {"e1": 1000.0, "e2": 1000.0})
    assert spans(group) == [("e1", 10, 65), ("e2", 50, 90)]
    assert [one.shorter for one in group.occurrences] == [0.0, 15.0]
    assert [one.without_middle for one in group.occurrences] == [0.0, 15.0]
    assert describe_difference(group.occurrences[1]) == "0:15.0 shorter, different edit (0:15.0 cut from the middle)"


def test_a_middle_left_out_is_known_beside_files_that_have_all_of_it() -> None:
    """20 s and 20 s of 55 s, shown by e2 without the 15 s between them, and by e3 at 24 in place of 25 frames."""
    parts = [link("e1", 10, "e2", 50, 20), link("e1", 45, "e2", 70, 20)]
    (group,) = build_groups([link("e1", 10, "e3", 100, 55, speed=25 / 24), *parts], LENGTHS)
    assert spans(group)[:2] == [("e1", 10, 65), ("e2", 50, 90)]
    assert [one.without_middle for one in group.occurrences] == [0.0, 15.0, 0.0]


def test_an_end_left_out_is_no_other_cut() -> None:
    links = [link("e1", 10, "e2", 50, 30), link("e1", 10, "e3", 80, 20), link("e2", 50, "e3", 80, 20)]
    (group,) = build_groups(links, LENGTHS)
    assert [one.shorter for one in group.occurrences] == [0.0, 0.0, 10.0]
    assert [one.without_middle for one in group.occurrences] == [0.0, 0.0, 0.0]


def test_film_at_another_speed_does_not_count_as_shorter() -> None:
    (group,) = build_groups([link("e1", 0, "e2", 0, 24, speed=25 / 24)], LENGTHS)
    assert [one.speed for one in group.occurrences] == [1.0, 0.96]
    assert [one.shorter for one in group.occurrences] == [0.0, 0.0]


def test_one_file_that_shows_something_again_is_a_group_inside() -> None:
    (group,) = build_groups([link("e1", 10, "e1", 500, 8), link("e1", 500, "e1", 800, 8)], {"e1": 1000.0})
    assert [span[1] for span in spans(group)] == [10, 500, 800]
    assert group.kind == "inside"


def test_names_are_sorted_as_people_count() -> None:
    assert sorted(["s1e10", "s1e9", "S1E2"], key=natural_order) == ["S1E2", "s1e9", "s1e10"]


def test_values_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="must end after it starts"):
        Occurrence("a", 3.0, 3.0, 1.0)
    with pytest.raises(InvalidArgumentError, match="at least 2 occurrences"):
        RecurringGroup((Occurrence("a", 0.0, 3.0, 1.0),), "opening", 2)
    with pytest.raises(InvalidArgumentError, match="kind must be one of"):
        RecurringGroup((Occurrence("a", 0.0, 3.0, 1.0),) * 2, "intro", 2)  # type: ignore[arg-type]


def test_an_opening_of_footage_of_another_folder_is_no_recap_of_it() -> None:
    """Three episodes in one folder, and in another, whose name comes first, the film from which their opening has two
    shots, among films that have nothing to do with it."""
    lengths = {f"series/e{number}": 1000.0 for number in (1, 2, 3)} | {
        f"films/f{number}": 500.0 for number in range(20)
    }
    at = {"series/e1": 20, "series/e2": 80, "series/e3": 20}
    links = [link("series/e1", 20, "series/e2", 80, 30), link("series/e1", 20, "series/e3", 20, 30)]
    links += [link(path, start + 5, "films/f0", 300, 4) for path, start in at.items()]
    links += [link(path, start + 15, "films/f0", 400, 4) for path, start in at.items()]
    groups = build_groups(links, lengths)
    (opening,) = [group for group in groups if group.kind == "opening"]
    assert spans(opening) == [(path, start, start + 30) for path, start in at.items()]
    # Its shots are groups for themselves, and no openings.
    assert [(group.kind, group.duration, len(group.occurrences)) for group in groups[1:]] == [("inside", 4, 4)] * 2


def test_how_many_episodes_share_an_opening_is_counted_in_their_folder() -> None:
    """All three files have it, at times as different as in a recap; other folders have twenty files."""
    lengths = {f"series/e{number}": 1000.0 for number in (1, 2, 3)} | {
        f"films/f{number}": 500.0 for number in range(20)
    }
    links = [link("series/e1", 280, "series/e2", 20, 30), link("series/e1", 280, "series/e3", 20, 30)]
    (group,) = build_groups(links, lengths)
    assert group.kind == "opening"
