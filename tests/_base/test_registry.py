"""Registries with built-in entries, entries registered by callers, and entry points of other packages."""

from __future__ import annotations

import importlib.metadata
import math
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from vidkin._base.registry import Registry
from vidkin.errors import InvalidArgumentError, UnknownExtractorError


@pytest.fixture
def numbers() -> Registry[float]:
    return Registry("number", {"one": 1.0, "pi": "math:pi"}, usages={"pi": "pi[:<digits>]"})


def test_entries_are_found_and_loaded(numbers: Registry[float]) -> None:
    assert numbers.find("one") == 1.0
    assert numbers.find("pi") is math.pi
    assert numbers.find("two") is None
    assert "pi" in numbers
    assert "two" not in numbers


def test_registered_entry_is_found_and_listed(numbers: Registry[float]) -> None:
    numbers.register("two", 2.0)
    numbers.register("three-and_a", 3.0, usage="three-and_a:<share>")
    assert numbers.find("two") == 2.0
    assert numbers.usages() == ("one", "pi[:<digits>]", "three-and_a:<share>", "two")


def test_prefix_must_be_unused_and_well_formed(numbers: Registry[float]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^the prefix 'pi' is in use; choose one other than one, pi$"):
        numbers.register("pi", 3.0)
    for prefix in ("", "a:b", "a b", "a?b"):
        with pytest.raises(
            InvalidArgumentError,
            match=r"^the prefix of a number must consist of letters, digits, '_' and '-', got '",
        ):
            numbers.register(prefix, 1.0)


def test_error_lists_the_known_names(numbers: Registry[float]) -> None:
    error = numbers.unknown("two")
    assert isinstance(error, InvalidArgumentError)
    assert str(error) == "'two' is not a number; choose from one, pi[:<digits>]"
    extractors: Registry[float] = Registry("extractor", {"a": 1.0}, error=UnknownExtractorError)
    assert isinstance(extractors.unknown("b"), UnknownExtractorError)
    assert str(extractors.unknown("b")) == "'b' is not an extractor; choose from a"


def test_built_in_entries_take_precedence_over_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = EntryPoints(
        EntryPoint(name, place, "vidkin.numbers") for name, place in [("e", "math:e"), ("one", "math:inf")]
    )
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: plugins.select(group=group))
    registry: Registry[float] = Registry("number", {"one": 1.0}, usage="{prefix}:<x>", group="vidkin.numbers")
    assert registry.find("e") is math.e
    assert registry.find("one") == 1.0
    assert registry.usages() == ("e:<x>", "one:<x>")
    assert "e" not in registry
