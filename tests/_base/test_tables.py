"""Tables of TOML as dataclasses, and back."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidkin._base.tables import from_table, known_names, toml_lines, toml_value
from vidkin.errors import InvalidArgumentError


@dataclass(frozen=True)
class Settings:
    """One of every kind."""

    steps: int = 3
    rate: float = 0.5
    flag: bool = False
    name: str = "x"
    choice: Literal["a", "b"] = "a"
    names: tuple[str, ...] = ()
    limit: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def test_what_is_left_out_has_its_default() -> None:
    assert from_table(Settings, {}, "t") == Settings()


def test_values_of_every_kind_are_taken() -> None:
    table = {
        "steps": 4,
        "rate": 2,
        "flag": True,
        "choice": "b",
        "names": ["u", "v"],
        "limit": 1,
        "more": {"z": 1},
    }
    found = from_table(Settings, table, "t")
    assert found == Settings(4, 2.0, True, "x", "b", ("u", "v"), 1.0, {"z": 1})
    assert isinstance(found.rate, float)
    assert isinstance(found.limit, float)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"stepz": 1}, r"\[t\] has no setting stepz; allowed are steps, rate, flag"),
        ({"steps": 1.5}, "t.steps is 1.5, it must be a whole number"),
        ({"steps": True}, "t.steps is True, it must be a whole number"),
        ({"rate": "fast"}, "t.rate is 'fast', it must be a number"),
        ({"rate": True}, "t.rate is True, it must be a number"),
        ({"flag": 1}, "t.flag is 1, it must be true or false"),
        ({"name": 1}, "t.name is 1, it must be text"),
        ({"choice": "c"}, "t.choice is 'c', allowed are a, b"),
        ({"names": "u"}, "t.names is 'u', it must be a list"),
        ({"names": [1]}, "t.names is 1, it must be text"),
        ({"more": 3}, "t.more is 3, it must be a table"),
        ([1], r"\[t\] is \[1\], it must be a table of settings"),
    ],
)
def test_mistakes_are_told(table: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        from_table(Settings, table, "t")


def test_unknown_names_are_listed_with_what_is_allowed() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[here\] has no setting b, c; allowed are a$"):
        known_names(["c", "a", "b"], ["a"], "here")


VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(VALUES)
def test_a_value_comes_back_from_toml_as_it_was(value: object) -> None:
    assert tomllib.loads(f"v = {toml_value(value)}")["v"] == value


def test_what_toml_has_no_word_for() -> None:
    assert toml_lines({"limit": None, "steps": 2}) == ["# limit is not set", "steps = 2"]
    assert math.isnan(tomllib.loads(f"v = {toml_value(math.nan)}")["v"])
    with pytest.raises(InvalidArgumentError, match=r"\(dict\) cannot stand in a recipe"):
        toml_value({"a": 1})
