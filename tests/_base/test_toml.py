"""TOML output can be read back with the standard library."""

from __future__ import annotations

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidkin._base.toml import format_toml, parse_toml
from vidkin.errors import InvalidArgumentError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
TABLES = st.recursive(
    st.dictionaries(TEXT, VALUES, max_size=3),
    lambda inner: st.dictionaries(TEXT, VALUES | inner | st.lists(inner, min_size=1, max_size=2), max_size=3),
    max_leaves=6,
)


@given(TABLES)
def test_document_round_trips(document: dict[str, object]) -> None:
    assert tomllib.loads(format_toml(document)) == document


def test_plain_values_come_before_tables() -> None:
    document = {
        "data": {"source": "a b", "options": {"kind": "image"}},
        "name": "first",
        "objective": [{"name": "triplet", "margin": 0.2}, {"name": "quadlet", "margin": None}],
        "on off": (True, False),
    }
    assert format_toml(document).splitlines() == [
        'name = "first"',
        '"on off" = [true, false]',
        "",
        "[data]",
        'source = "a b"',
        "",
        "[data.options]",
        'kind = "image"',
        "",
        "[[objective]]",
        'name = "triplet"',
        "margin = 0.2",
        "",
        "[[objective]]",
        'name = "quadlet"',
        "# margin is not set",
    ]


def test_document_with_one_table_has_no_leading_blank_line() -> None:
    assert format_toml({"shots": {"steps": 2}}) == "[shots]\nsteps = 2\n"


def test_comment_cannot_break_out_of_its_line() -> None:
    assert tomllib.loads(format_toml({"a\nb = 1": None, "c": 2})) == {"c": 2}


def test_infinity_and_nan_round_trip() -> None:
    values = tomllib.loads(format_toml({"nan": math.nan, "up": math.inf, "down": -math.inf}))
    assert math.isnan(values["nan"])
    assert (values["up"], values["down"]) == (math.inf, -math.inf)


def test_types_without_a_toml_equivalent_are_refused() -> None:
    message = r"^when must be text, a number, a boolean or a list of these to be written as TOML, got \{1\} \(set\)$"
    with pytest.raises(InvalidArgumentError, match=message):
        format_toml({"notes": {"when": {1}}})
    with pytest.raises(InvalidArgumentError, match=r"got None \(NoneType\)"):
        format_toml({"list": [1, None]})


def test_deep_nesting_is_a_decode_error() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="nested too deeply"):
        parse_toml("a = " + "[" * 100_000)
    assert parse_toml("a = [[1]]") == {"a": [[1]]}


def test_comments_are_above_their_settings() -> None:
    document = {"name": "a", "size": None, "part": [{"x": 1}, {"x": 2}], "inner": {"deep": {"y": 3}}}
    comments = {
        "name": "Its name.",
        "size": "Its size.",
        "part": [{"x": "The first."}, {"x": "The second."}],
        "inner": {"deep": {"y": "word " * 30}},
        "unknown": "Of nothing.",
    }
    text = format_toml(document, comments)
    assert tomllib.loads(text) == {key: value for key, value in document.items() if value is not None}
    for expected in (
        '# Its name.\nname = "a"',
        "# Its size.\n# size is not set",
        "# The first.\nx = 1",
        "# The second.\nx = 2",
    ):
        assert expected in text
    assert "Of nothing" not in text
    # Long comments wrap.
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("# word") == 2
