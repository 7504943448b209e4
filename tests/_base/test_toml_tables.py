"""TOML tables are read as dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from vidkin._base.toml import check_names, from_table
from vidkin.errors import InvalidArgumentError


@dataclass(frozen=True)
class Settings:
    """One field of each supported type."""

    steps: int = 3
    rate: float = 0.5
    flag: bool = False
    name: str = "x"
    choice: Literal["a", "b"] = "a"
    names: tuple[str, ...] = ()
    limit: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


def test_missing_entries_keep_their_defaults() -> None:
    assert from_table(Settings, {}, "t") == Settings()


def test_values_of_every_type_are_read() -> None:
    table = {
        "steps": 4,
        "rate": 2,
        "flag": True,
        "choice": "b",
        "names": ["u", "v"],
        "limit": 1,
        "more": {"z": 1},
    }
    settings = from_table(Settings, table, "t")
    assert settings == Settings(4, 2.0, True, "x", "b", ("u", "v"), 1.0, {"z": 1})
    assert isinstance(settings.rate, float)
    assert isinstance(settings.limit, float)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"stepz": 1}, r"\[t\] has no setting stepz; choose from steps, rate, flag"),
        ({"steps": 1.5}, "t.steps must be a whole number, got 1.5"),
        ({"steps": True}, "t.steps must be a whole number, got True"),
        ({"rate": "fast"}, "t.rate must be a number, got 'fast'"),
        ({"rate": True}, "t.rate must be a number, got True"),
        ({"flag": 1}, "t.flag must be true or false, got 1"),
        ({"name": 1}, "t.name must be text, got 1"),
        ({"choice": "c"}, "t.choice must be one of a, b, got 'c'"),
        ({"names": "u"}, "t.names must be a list, got 'u'"),
        ({"names": [1]}, "t.names must be text, got 1"),
        ({"more": 3}, "t.more must be a table, got 3"),
        ([1], r"\[t\] must be a table of settings, got \[1\]"),
    ],
)
def test_invalid_tables_are_reported(table: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        from_table(Settings, table, "t")


def test_unknown_name_is_reported_with_the_known_ones() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^\[here\] has no setting b, c; choose from a$"):
        check_names(["c", "a", "b"], ["a"], "here")
    with pytest.raises(InvalidArgumentError, match=r"^\[here\] has no setting b; choose from none$"):
        check_names(["b"], [], "here")
    check_names(["a"], ["a", "b"], "here")
