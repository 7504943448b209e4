"""Loss modules take their options, checks and repr from the loss function."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError
from vidkin.metric.losses.base import Loss, NotNegative, Positive, checked, options_of


def power(
    values: Tensor,
    exponent: Positive = 2.0,
    offset: NotNegative | None = None,
    *,
    form: Literal["all", "nothing"] = "all",
    scale: float = 1.0,
    self_offset: int | None = None,
) -> Tensor:
    """``scale |x|^exponent + offset``, or 0."""
    powers = scale * values.abs() ** exponent + (offset or 0.0)
    return powers.sum() if form == "all" else powers.sum() * 0.0


class Power(Loss):
    compute = staticmethod(power)

    @options_of(power)
    def __init__(self) -> None:
        """Same options as `power`."""

    def forward(self, values: Tensor) -> Tensor:
        return self.compute(values, **self.options)


def test_options_are_attributes_and_appear_in_the_repr() -> None:
    loss = Power(3.0, scale=2.0)
    assert loss.options == {"exponent": 3.0, "offset": None, "form": "all", "scale": 2.0}
    assert repr(loss) == "Power(exponent=3.0, offset=None, form='all', scale=2.0)"
    assert loss(torch.tensor([1.0, 2.0])).item() == 18.0
    loss.form = "nothing"
    assert loss(torch.tensor([1.0, 2.0])).item() == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exponent": 0.0}, r"^exponent must be above 0, got 0\.0$"),
        ({"offset": -1.0}, r"^offset must be at least 0, got -1\.0$"),
        ({"form": "some"}, r"^form must be one of 'all', 'nothing', got 'some'$"),
    ],
)
def test_options_are_checked_by_their_types(options: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Power(**options)  # type: ignore[arg-type]


def test_a_loss_is_a_regular_module() -> None:
    loss = Power()
    assert nn.ModuleList([loss, Power()])[0] is loss
    assert loss != Power()
    assert not loss.eval().training
    assert repr(copy.deepcopy(loss)) == repr(pickle.loads(pickle.dumps(loss))) == repr(loss)


def test_module_accepts_only_the_options_of_its_function() -> None:
    assert str(inspect.signature(Power)).startswith("(exponent: 'Positive' = 2.0, offset: 'NotNegative | None'")
    with pytest.raises(TypeError, match="unexpected keyword argument 'self_offset'"):
        Power(self_offset=0)
    with pytest.raises(TypeError, match="too many positional arguments"):
        Power(1.0, 2.0, "all")  # type: ignore[misc]


def test_a_checked_function_checks_single_and_joint_options() -> None:
    def check_order(exponent: float, scale: float) -> None:
        if exponent < scale:
            raise InvalidArgumentError(f"exponent must be at least scale, got {exponent} and {scale}")

    checked_power = checked(check_order)(power)
    assert checked_power(torch.ones(2)).item() == 2.0
    with pytest.raises(InvalidArgumentError, match=r"^exponent must be above 0, got 0$"):
        checked_power(torch.ones(2), 0)
    with pytest.raises(InvalidArgumentError, match=r"^exponent must be at least scale, got 2\.0 and 3\.0$"):
        checked_power(torch.ones(2), scale=3.0)
    # The options are checked when the module is constructed, not here.
    assert power(torch.ones(2), 0).item() == 2.0
