"""Properties of edits that need no frames: segments, times and families."""

from __future__ import annotations

import itertools

import pytest

from vidkin_research.copies.edits import EDITS, EditedSegment

FAMILIES = {
    "pixels": "reencode resize logo caption grey sepia brighter darker contrast blur noise fade",
    "geometry": """
        crop letterbox pillarbox mirror rotate5 aspect vertical_crop vertical_pan blurred_borders colored_borders
        split_upper_lower split_left_right split_four filmed_screen combined mirror_crop tight_crop
    """,
    "time": "faster slower excerpt double_speed reordered",
    "inset": "picture_in_picture inset_30 inset_45 inset_60",
    "turned": "turn_90 turn_180 turn_270",
    "perspective": "rotate15 perspective perspective_shaken",
    "halves": "half_center half_corner shifted",
    "covered": "covered_60 sticker_45",
    "blended": "blend_third blend_half",
    "low information": "far_off_colors night",
}


def test_every_edit_has_a_name_a_description_and_a_family() -> None:
    for family, names in FAMILIES.items():
        assert {name for name, edit in EDITS.items() if edit.family == family} == set(names.split())
    assert len(EDITS) == sum(len(names.split()) for names in FAMILIES.values()) == 53
    assert all(edit.name == name and edit.description for name, edit in EDITS.items())
    assert {name for name, edit in EDITS.items() if edit.mirrored} == {"mirror", "mirror_crop"}
    assert {name: edit.speed for name, edit in EDITS.items() if edit.speed != 1} == {
        "faster": 1.25,
        "slower": 0.8,
        "double_speed": 2.0,
    }
    assert {name for name, edit in EDITS.items() if edit.needs_filler} == {
        "picture_in_picture",
        "excerpt",
        "split_upper_lower",
        "split_left_right",
        "split_four",
        "inset_30",
        "inset_45",
        "inset_60",
        "covered_60",
        "blend_third",
        "blend_half",
    }
    assert {name: edit.turned for name, edit in EDITS.items() if edit.turned} == {
        "turn_90": 90,
        "turn_180": 180,
        "turn_270": 270,
    }


def test_double_speed_takes_half_the_frames() -> None:
    plan = EDITS["double_speed"].plan(10.0, 2.0, 8.0, seed=0)
    assert plan.count == 30
    assert plan.segments() == (EditedSegment(2.0, 8.0, 0.0, 3.0),)


@pytest.mark.parametrize("seed", range(12))
def test_reordered_pieces_keep_their_frames(seed: int) -> None:
    plan = EDITS["reordered"].plan(10.0, 1.0, 9.0, seed=seed)
    segments = plan.segments()
    assert len(segments) in (3, 4)
    assert plan.count == 80
    # The copy plays them consecutively; together they cover the source exactly once.
    assert [segment.edited_start for segment in segments] == pytest.approx(
        [0.0, *(segment.edited_end for segment in segments[:-1])]
    )
    assert segments[-1].edited_end == pytest.approx(8.0)
    ordered = sorted(segments)
    assert ordered[0].source_start == 1.0
    assert ordered[-1].source_end == pytest.approx(9.0)
    assert [segment.source_start for segment in ordered[1:]] == pytest.approx(
        [segment.source_end for segment in ordered[:-1]]
    )
    # No piece keeps its place or its predecessor.
    assert segments[0].source_start > 1.0
    for before, after in itertools.pairwise(segments):
        assert abs(after.source_start - before.source_end) > 0.05
    assert all(1.0 < segment.source_end - segment.source_start < 4.2 for segment in segments)


def test_seed_determines_number_and_order_of_pieces() -> None:
    plans = [EDITS["reordered"].plan(10.0, 0.0, 8.0, seed=seed).segments() for seed in (*range(20), 0)]
    assert plans[0] == plans[-1]
    assert {len(segments) for segments in plans} == {3, 4}
    assert len(set(plans)) > 10


def test_single_frame_cannot_be_reordered() -> None:
    assert EDITS["reordered"].plan(10.0, 0.0, 0.1, seed=0).segments() == (EditedSegment(0.0, 0.1, 0.0, 0.1),)
