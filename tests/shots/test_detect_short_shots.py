"""Short shots are dropped, or merged across the less certain transition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.detections import detection
from vidkin.errors import InvalidArgumentError
from vidkin.shots import drop_short_shots, merge_short_shots


def test_short_shots_are_dropped() -> None:
    """The shots last 2, 2.5 and 1.5 s."""
    given = detection()
    assert [shot.start for shot in drop_short_shots(given, 2.0).shots] == [0.0, 2.0]
    assert drop_short_shots(given, 1.5).shots == given.shots
    assert drop_short_shots(given, 9.0).shots == ()
    assert drop_short_shots(given, 9.0).cuts == given.cuts


def test_short_shots_are_merged_with_a_neighbor() -> None:
    merged = merge_short_shots(detection(), 2.0)
    assert [(shot.start, shot.end, shot.kind) for shot in merged.shots] == [
        (0.0, 2.0, "start"),
        (2.0, 6.0, "hard"),
    ]
    assert merged.shots[1].critical == 0.0
    assert [cut.frame for cut in merged.cuts] == [20]


def test_less_certain_transition_is_dropped() -> None:
    """The second shot becomes the shortest, with a confidence of 0.9 before it and 0.6 after it."""
    given = detection()
    first, second, third = given.shots
    longer = replace(given, shots=(replace(first, start=0.0), second, replace(third, end=8.0)))
    longer = replace(longer, shots=(first, replace(second, end=2.7), replace(third, start=2.7, transition_start=2.7)))
    assert [cut.frame for cut in merge_short_shots(longer, 1.0).cuts] == [20]
    surer = replace(longer, shots=(first, replace(longer.shots[1], confidence=0.5), longer.shots[2]))
    assert [cut.frame for cut in merge_short_shots(surer, 1.0).cuts] == [45]


def test_one_shot_remains() -> None:
    merged = merge_short_shots(detection(), 100.0)
    assert [(shot.start, shot.end, shot.start_frame, shot.end_frame) for shot in merged.shots] == [(0.0, 6.0, 0, 60)]
    assert merged.cuts == ()


@pytest.mark.parametrize("change", [drop_short_shots, merge_short_shots])
def test_negative_length_is_rejected(change: object) -> None:
    with pytest.raises(InvalidArgumentError, match="min_length must be at least 0, got -1"):
        change(detection(), -1.0)  # type: ignore[operator]
