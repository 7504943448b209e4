"""Parsing of names with a prefix, an address and settings."""

from __future__ import annotations

import math

import pytest

from vidkin._base.registry import Name, load_attribute, parse_name
from vidkin.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("text", "path", "prefix", "address", "query"),
    [
        ("classical", "classical", "classical", None, None),
        ("timm:resnet50.tv_in1k", "timm:resnet50.tv_in1k", "timm", "resnet50.tv_in1k", None),
        ("timm:vit?size=256&fit=crop", "timm:vit", "timm", "vit", "size=256&fit=crop"),
        ("model:a:b?x=1:2?3", "model:a:b", "model", "a:b", "x=1:2?3"),
        ("learned:", "learned:", "learned", "", None),
        ("path/to/model?", "path/to/model", "path/to/model", None, ""),
        ("", "", "", None, None),
    ],
)
def test_names_are_split_into_parts(text: str, path: str, prefix: str, address: str | None, query: str | None) -> None:
    assert parse_name(text) == Name(text, path, prefix, address, query)


def test_settings_are_decoded_in_order() -> None:
    assert parse_name("a?b=1&a=x%26y&c=").settings() == {"b": "1", "a": "x&y", "c": ""}
    assert list(parse_name("a?b=1&a=2").settings()) == ["b", "a"]
    assert parse_name("a").settings() == parse_name("a?").settings() == {}


def test_malformed_settings_are_reported_when_parsed() -> None:
    name = parse_name("a?size")
    with pytest.raises(
        InvalidArgumentError,
        match=r"^settings must have the form name=value&name=value, got 'size' in 'a\?size'$",
    ):
        name.settings()
    with pytest.raises(InvalidArgumentError, match=r"^'a\?x=1&x=2' sets x twice; set it once$"):
        parse_name("a?x=1&x=2").settings()


def test_settings_are_converted_to_their_types() -> None:
    types = {"steps": int, "rate": float, "file": str}
    assert parse_name("a?steps=3&file=7&rate=inf").typed_settings(types) == {
        "steps": 3,
        "file": "7",
        "rate": math.inf,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a?steps=x", r"^steps must be a whole number, got 'x' in 'a\?steps=x'$"),
        ("a?rate=", r"^rate must be a number, got '' in 'a\?rate='$"),
        ("a?spin=1", r"^'a\?spin=1' has no setting 'spin'; choose from rate, steps$"),
    ],
)
def test_invalid_settings_are_reported(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        parse_name(text).typed_settings({"steps": int, "rate": float})


def test_error_for_a_name_without_settings_says_so() -> None:
    with pytest.raises(InvalidArgumentError, match="has no setting 'x'; choose from none"):
        parse_name("a?x=1").typed_settings({})


def test_module_attribute_is_loaded() -> None:
    assert load_attribute("math:pi") is math.pi
    with pytest.raises(AttributeError):
        load_attribute("math:tau_and_a_half")
