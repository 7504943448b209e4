"""Cuts, shots and curves validate themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.shots import TRANSITIONS, Curve, Cut, Shot

CUT: dict[str, Any] = {
    "time": 1.0,
    "frame": 10,
    "kind": "hard",
    "confidence": 0.5,
    "start": 1.0,
    "end": 1.0,
    "start_frame": 10,
    "end_frame": 10,
}
SHOT: dict[str, Any] = {
    "start": 0.0,
    "end": 1.0,
    "start_frame": 0,
    "end_frame": 10,
    "kind": "start",
    "confidence": 1.0,
    "transition_start": 0.0,
    "transition_end": 0.0,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"kind": "zoom"},
            "kind must be one of 'hard', 'jump', 'gradual', 'dissolve', 'fade', 'wipe', got 'zoom'",
        ),
        ({"confidence": 1.5}, r"confidence must be in \[0, 1\], got 1.5"),
        ({"start_frame": 11}, "0 <= start_frame <= frame <= end_frame, got 11, 10, 10"),
        ({"end": 0.5}, "0 <= start <= time <= end, got 1.0, 1.0, 0.5"),
    ],
)
def test_cut_is_validated(changes: dict[str, Any], message: str) -> None:
    assert Cut(**CUT).frame == 10
    with pytest.raises(InvalidArgumentError, match=message):
        Cut(**{**CUT, **changes})


def test_all_transitions_except_hard_cuts_and_jumps_are_gradual() -> None:
    cuts = [Cut(**{**CUT, "kind": kind}) for kind in TRANSITIONS]
    assert [cut.kind for cut in cuts if not cut.is_gradual] == ["hard", "jump"]
    assert [cut.kind for cut in cuts if cut.is_gradual] == ["gradual", "dissolve", "fade", "wipe"]
    assert [Shot(**{**SHOT, "kind": kind}).kind for kind in TRANSITIONS] == list(TRANSITIONS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "end"}, "kind must be one of 'start', 'hard', .*, got 'end'"),
        ({"end_frame": 0}, "frames of a shot must satisfy 0 <= start_frame < end_frame, got 0 and 0"),
        ({"end": 0.0}, "times of a shot must satisfy 0 <= start < end, got 0.0 and 0.0 s"),
        ({"critical": -0.1}, r"critical must be in \[0, 1\], got -0.1"),
        ({"confidence": 2.0}, r"confidence must be in \[0, 1\], got 2.0"),
        ({"kind_confidence": 2.0}, r"kind_confidence must be in \[0, 1\], got 2.0"),
        ({"transition_start": 0.5}, "transition_start <= start <= transition_end, got 0.5, 0.0 and 0.0 s"),
    ],
)
def test_shot_is_validated(changes: dict[str, Any], message: str) -> None:
    assert Shot(**SHOT).critical is None
    with pytest.raises(InvalidArgumentError, match=message):
        Shot(**{**SHOT, **changes})


@pytest.mark.parametrize(("critical", "expected"), [(None, False), (0.49, False), (0.5, True), (1.0, True)])
def test_shot_is_critical_at_a_score_of_one_half_or_more(critical: float | None, expected: bool) -> None:
    assert Shot(**{**SHOT, "critical": critical}).is_critical is expected


def test_curve_has_a_value_for_every_time() -> None:
    assert len(Curve(np.zeros(2), np.zeros(2), "curve").times) == 2
    assert repr(Curve(np.zeros(900), np.zeros(900), "novelty")) == "Curve(name='novelty', values=[900])"
    with pytest.raises(InvalidArgumentError, match=r"curve must both be \[N\], got \(2,\) and \(3,\)"):
        Curve(np.zeros(2), np.zeros(3), "curve")
