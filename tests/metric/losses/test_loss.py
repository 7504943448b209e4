"""The base of loss modules: what a loss gets from its fields."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from vidkin.errors import InvalidArgumentError
from vidkin.metric import losses
from vidkin.metric.losses.loss import Loss, NotNegative, Positive


@dataclass(eq=False, repr=False)
class Power(Loss):
    """``scale |x|^exponent + offset``, or 0."""

    exponent: Positive = 2.0
    offset: NotNegative | None = None
    _: KW_ONLY
    form: Literal["all", "nothing"] = "all"
    scale: float = 1.0

    def forward(self, values: Tensor) -> Tensor:
        powers = self.scale * values.abs() ** self.exponent + (self.offset or 0.0)
        return powers.sum() if self.form == "all" else powers.sum() * 0.0


def test_fields_are_options_attributes_and_repr() -> None:
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


def test_a_loss_is_a_module_like_any_other() -> None:
    loss = Power()
    assert nn.ModuleList([loss, Power()])[0] is loss
    assert loss != Power()
    assert not loss.eval().training
    assert repr(copy.deepcopy(loss)) == repr(pickle.loads(pickle.dumps(loss))) == repr(loss)


def functions() -> dict[str, object]:
    """The losses that pass their options to one function as they are."""
    kinds = {name: getattr(losses, name) for name in losses.__all__ if name.endswith("Loss")}
    return {
        name: kind.compute
        for name, kind in kinds.items()
        if "compute" in vars(kind) and name != "AllQuadletsLoss"
    }


@pytest.mark.parametrize("name", functions())
def test_a_loss_has_the_options_and_defaults_of_its_function(name: str) -> None:
    accepted = inspect.signature(functions()[name]).parameters  # type: ignore[arg-type]
    for option, parameter in inspect.signature(getattr(losses, name)).parameters.items():
        assert accepted[option].default == parameter.default
