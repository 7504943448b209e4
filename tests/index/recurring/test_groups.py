"""Groups built from links: which links belong together, the kind of a group, and missing parts of occurrences."""

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


def test_links_of_three_files_form_one_opening_in_natural_order() -> None:
    links = [link("e10", 50, "e2", 80, 30), link("e1", 20, "e2", 80, 30)]
    (group,) = build_groups(links, LENGTHS)
    assert spans(group) == [("e1", 20, 50), ("e2", 80, 110), ("e10", 50, 80)]
    assert (group.kind, group.files, group.duration) == ("opening", 4, 30)


def test_kinds_depend_on_the_positions_in_the_files() -> None:
    links = [
        *(link("e1", 20, other, 20, 30) for other in ("e2", "e3")),
        *(link("e1", 900, other, 950, 40) for other in ("e2", "e3")),
        *(link("e1", 500, other, 600, 5) for other in ("e2", "e3")),
    ]
    assert [group.kind for group in build_groups(links, LENGTHS)] == ["opening", "closing", "inside"]


def test_opening_of_which_one_shot_is_shown_again_stays_one_group() -> None:
    links = [*(link("e1", 20, other, 20, 30) for other in ("e2", "e3")), link("e1", 25, "e3", 700, 4)]
    opening, shot = build_groups([*links, link("e1", 25, "e2", 25, 4)], LENGTHS)
    assert (opening.kind, len(opening.occurrences), opening.duration) == ("opening", 3, 30)
    assert spans(shot) == [("e1", 25, 29), ("e2", 25, 29), ("e3", 700, 704)]


def test_part_of_a_group_does_not_form_another_group() -> None:
    links = [link("e1", 20, "e2", 40, 30), link("e1", 22, "e2", 42, 5)]
    assert [group.duration for group in build_groups(links, LENGTHS)] == [30]


def test_occurrence_with_other_titles_than_the_majority_is_marked() -> None:
    links = [
        link("e1", 20, "e2", 20, 30),
        link("e1", 20, "e3", 20, 30, covered=0.1),
        link("e2", 20, "e3", 20, 30, covered=0.1),
        link("e1", 20, "e3", 20, 4),  # a shot without the title is weaker evidence than the whole segment
    ]
    (group,) = build_groups(links, LENGTHS)
    assert [one.titled for one in group.occurrences] == [False, False, True]
    (group,) = build_groups([link("e3", 20, "e1", 20, 30, covered=0.1)], LENGTHS)
    assert [one.titled for one in group.occurrences] == [
        False,
        True,
    ]  # of two occurrences, the later one is said to differ


def test_speed_is_measured_on_frames_if_the_ends_are_in_fades() -> None:
    """The occurrences last 10.3 and 10.45 s; inexact ends hide that one runs at 24 instead of 25 frames per second."""
    both = FittedStretch(20, 30.3, 20, 30.45, 0.9, 1.0, 0.0, 25 / 24)
    (group,) = build_groups([SharedByFiles("e1", "e2", both)], LENGTHS)
    assert [one.speed for one in group.occurrences] == [1.0, 0.96]
    (group,) = build_groups([SharedByFiles("e1", "e2", both._replace(speed=0.0))], LENGTHS)
    assert group.occurrences[1].speed == pytest.approx(10.3 / 10.45, abs=1e-3)


def test_overlapping_parts_with_the_same_offset_are_merged() -> None:
    links = [link("e1", 20, "e2", 40, 30), link("e1", 46, "e2", 66, 24)]
    (group,) = build_groups(links, LENGTHS)
    assert spans(group) == [("e1", 20, 70), ("e2", 40, 90)]


def test_overlapping_parts_with_different_offsets_are_not_merged() -> None:
    links = [link("e1", 20, "e2", 40, 30), link("e1", 46, "e2", 466, 24)]
    assert [group.duration for group in build_groups(links, LENGTHS)] == [30, 24]


def test_excerpts_of_an_earlier_file_at_the_start_are_its_recap() -> None:
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


def test_in_two_files_with_a_recap_the_longest_early_segment_is_the_opening() -> None:
    links = [link("e2", 1, "e1", 10, 4), link("e2", 5, "e1", 700, 4), link("e2", 9, "e1", 60, 30)]
    opening, recap = build_groups(links, {"e1": 1000.0, "e2": 1000.0})
    assert spans(opening) == [("e1", 60, 90), ("e2", 9, 39)]
    assert spans(recap)[0] == ("e2", 1, 9)


def test_omitted_middle_is_one_occurrence_with_the_missing_duration() -> None:
    links = [link("e1", 10, "e2", 50, 20), link("e1", 45, "e2", 70, 20)]
    (group,) = build_groups(links, {"e1": 1000.0, "e2": 1000.0})
    assert spans(group) == [("e1", 10, 65), ("e2", 50, 90)]
    assert [one.shorter for one in group.occurrences] == [0.0, 15.0]
    assert [one.without_middle for one in group.occurrences] == [0.0, 15.0]
    assert describe_difference(group.occurrences[1]) == "0:15.0 shorter, different edit (0:15.0 cut from the middle)"


def test_omitted_middle_is_recognized_next_to_complete_occurrences() -> None:
    """e2 omits the 15 s between the first and last 20 s; e3 shows all 55 s, at 24 instead of 25 fps."""
    parts = [link("e1", 10, "e2", 50, 20), link("e1", 45, "e2", 70, 20)]
    (group,) = build_groups([link("e1", 10, "e3", 100, 55, speed=25 / 24), *parts], LENGTHS)
    assert spans(group)[:2] == [("e1", 10, 65), ("e2", 50, 90)]
    assert [one.without_middle for one in group.occurrences] == [0.0, 15.0, 0.0]


def test_omitted_end_is_not_another_cut() -> None:
    links = [link("e1", 10, "e2", 50, 30), link("e1", 10, "e3", 80, 20), link("e2", 50, "e3", 80, 20)]
    (group,) = build_groups(links, LENGTHS)
    assert [one.shorter for one in group.occurrences] == [0.0, 0.0, 10.0]
    assert [one.without_middle for one in group.occurrences] == [0.0, 0.0, 0.0]


def test_other_speed_does_not_count_as_shorter() -> None:
    (group,) = build_groups([link("e1", 0, "e2", 0, 24, speed=25 / 24)], LENGTHS)
    assert [one.speed for one in group.occurrences] == [1.0, 0.96]
    assert [one.shorter for one in group.occurrences] == [0.0, 0.0]


def test_segment_repeated_within_one_file_is_a_group_inside() -> None:
    (group,) = build_groups([link("e1", 10, "e1", 500, 8), link("e1", 500, "e1", 800, 8)], {"e1": 1000.0})
    assert [span[1] for span in spans(group)] == [10, 500, 800]
    assert group.kind == "inside"


def test_names_are_sorted_in_natural_order() -> None:
    assert sorted(["s1e10", "s1e9", "S1E2"], key=natural_order) == ["S1E2", "s1e9", "s1e10"]


def test_values_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="must end after it starts"):
        Occurrence("a", 3.0, 3.0, 1.0)
    with pytest.raises(InvalidArgumentError, match="at least 2 occurrences"):
        RecurringGroup((Occurrence("a", 0.0, 3.0, 1.0),), "opening", 2)
    with pytest.raises(InvalidArgumentError, match="kind must be one of"):
        RecurringGroup((Occurrence("a", 0.0, 3.0, 1.0),) * 2, "intro", 2)  # type: ignore[arg-type]


def test_opening_with_footage_from_another_folder_is_not_a_recap() -> None:
    """Three episodes in one folder have an opening with two shots of a film in another folder, which sorts first.

    The other films of that folder are unrelated.
    """
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
    # The two shots form their own groups, which are not openings.
    assert [(group.kind, group.duration, len(group.occurrences)) for group in groups[1:]] == [("inside", 4, 4)] * 2


def test_episodes_that_share_an_opening_are_counted_per_folder() -> None:
    """All three files have it, at times as different as those of a recap; another folder has twenty files."""
    lengths = {f"series/e{number}": 1000.0 for number in (1, 2, 3)} | {
        f"films/f{number}": 500.0 for number in range(20)
    }
    links = [link("series/e1", 280, "series/e2", 20, 30), link("series/e1", 280, "series/e3", 20, 30)]
    (group,) = build_groups(links, lengths)
    assert group.kind == "opening"
