"""Learning rates by the step."""

from __future__ import annotations

import math

import pytest

from vidkin.errors import InvalidArgumentError
from vidkin.training import ScheduleRecipe
from vidkin.training.run.schedules import rate_factor


def factors(**settings: object) -> list[float]:
    schedule = ScheduleRecipe(**settings)  # type: ignore[arg-type]
    return [rate_factor(schedule, step) for step in range(schedule.steps)]


def test_constant_rate_stays() -> None:
    assert factors(steps=3) == [1.0, 1.0, 1.0]


def test_warm_up_rises_evenly_to_the_full_rate() -> None:
    assert factors(steps=6, warm_up=4) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_cosine_goes_from_the_full_rate_to_its_share_of_it_at_the_last_step() -> None:
    found = factors(steps=5, decay="cosine", final_factor=0.2)
    assert found == pytest.approx([0.2 + 0.8 * (1 + math.cos(math.pi * t / 4)) / 2 for t in range(5)])
    assert found[0] == 1.0
    assert found[2] == pytest.approx(0.6)
    assert found[4] == pytest.approx(0.2)


def test_cosine_begins_after_the_warm_up() -> None:
    found = factors(steps=7, warm_up=2, decay="cosine", final_factor=0.0)
    assert found[:3] == [0.5, 1.0, 1.0]
    assert found[3:] == sorted(found[3:], reverse=True)
    assert found[6] == pytest.approx(0.0)


def test_step_decay_multiplies_at_regular_steps() -> None:
    found = factors(steps=6, decay="step", step_every=2, step_factor=0.5)
    assert found == [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]


def test_a_warm_up_longer_than_the_run_never_passes_the_full_rate() -> None:
    found = factors(steps=3, warm_up=10, decay="cosine")
    assert found == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "schedule.steps is 0, allowed is 1 or more"),
        ({"warm_up": -1}, "schedule.warm_up is -1, allowed is 0 or more"),
        ({"learning_rate": 0.0}, "schedule.learning_rate is 0.0, allowed is a number above 0"),
        ({"learning_rate": math.nan}, "schedule.learning_rate is nan"),
        ({"weight_decay": math.inf}, "schedule.weight_decay is inf"),
        ({"batch": (4, 2)}, r"schedule.batch is \[4, 2\], allowed are 3 numbers"),
        ({"batch": (4, 2, 0)}, r"schedule.batch is \[4, 2, 0\], allowed are 3 numbers"),
    ],
)
def test_values_out_of_range_are_told(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ScheduleRecipe(**settings)  # type: ignore[arg-type]
