"""Results are converted to plain values."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import re
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vidkin
from vidkin._base.values import (
    Result,
    as_json,
    fields_as_json,
    parse_json,
    replace_controls,
    table_cell,
    write_csv_rows,
)
from vidkin.similarity import Segment


class Color(Enum):
    RED = "red"


@dataclass(frozen=True)
class Box:
    path: Path
    values: tuple[float, ...]


def test_results_are_converted_to_plain_values() -> None:
    assert as_json(Box(Path("a/b"), (1.0, float("nan")))) == {"path": "a/b", "values": [1.0, None]}
    assert as_json({"t": torch.tensor([[1.0, 0.5]]), "n": np.float32(0.25)}) == {"t": [[1.0, 0.5]], "n": 0.25}
    assert as_json([Color.RED, True, None, {2, 1}]) == ["red", True, None, [1, 2]]
    assert as_json(Segment(0, 1, 2, 3, 0.5)) == {
        "query_start": 0,
        "query_end": 1,
        "target_start": 2,
        "target_end": 3,
        "score": 0.5,
        "speed": 1.0,
        "mirrored": False,
        "query_box": [0, 0, 1, 1],
        "target_box": [0, 0, 1, 1],
        "turned": 0,
        "backwards": False,
    }


@dataclass(frozen=True, slots=True)
class Circle(Result):
    radius: Fraction

    def to_dict(self) -> dict[str, Any]:
        return {**fields_as_json(self), "diameter": float(2 * self.radius)}


def test_result_has_the_same_values_alone_and_nested() -> None:
    assert Circle(Fraction(1, 2)).to_dict() == {"radius": 0.5, "diameter": 1.0}
    assert as_json({"circles": (Circle(Fraction(1)),)}) == {"circles": [{"radius": 1.0, "diameter": 2.0}]}


def test_all_public_result_classes_derive_from_result() -> None:
    """Settings, plans and inputs are exempt."""
    found = [
        getattr(vidkin, name)
        for name in vidkin.__all__
        if dataclasses.is_dataclass(getattr(vidkin, name)) and isinstance(getattr(vidkin, name), type)
    ]
    assert len(found) >= 8
    assert [cls for cls in found if not issubclass(cls, Result)] == []


def test_values_without_a_json_equivalent_are_refused() -> None:
    with pytest.raises(TypeError, match="object cannot be expressed in JSON"):
        as_json(object())


def test_fields_are_converted_to_a_dictionary() -> None:
    assert fields_as_json(Box(Path("a"), (2.0,))) == {"path": "a", "values": [2.0]}


def test_only_control_characters_are_replaced() -> None:
    assert replace_controls("a\x1b[31m\nb\x00\x9b\x7f") == "a\ufffd[31m\ufffdb\ufffd\ufffd\ufffd"
    for kept in ("día 山 [2].mp4", 'a, "b".mp4', os.fsdecode(b"film\xff.mp4"), ""):
        assert replace_controls(kept) == kept


def test_malicious_json_raises_only_value_errors() -> None:
    assert parse_json('{"a": [1, 2.5, null]}') == parse_json(b'{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    for text in ("[" * 100_000, '{"a":' * 100_000, "{", "", "9" * 5000, b"\xff", b"\xff\xfe["):
        with pytest.raises(ValueError, match=r".+"):
            parse_json(text)


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1+1", "'+1+1"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'�=1"),
        ("\r=1", "'�=1"),
        ("\uff1d1", "'\uff1d1"),
        ("-", "'-"),
        ("/home/a=b.mp4", "/home/a=b.mp4"),
        ("a\tb", "a�b"),
        (-1.5, "-1.5"),
        ("-1.5e-07", "-1.5e-07"),
        ("+3", "+3"),
        ("00:00:01:00", "00:00:01:00"),
        ("-0x1", "'-0x1"),
        (7, "7"),
        (None, ""),
        ("", ""),
    ],
)
def test_table_cells_are_never_formulas_and_numbers_stay_numbers(value: object, cell: str) -> None:
    assert table_cell(value) == cell
    file = io.StringIO()
    write_csv_rows(file, [[value, 1]])
    (written,) = csv.reader(io.StringIO(file.getvalue(), newline=""))
    assert written == [table_cell(value, lines=True), "1"]
    assert written[0].translate(dict.fromkeys(map(ord, "\t\r\n"), "\ufffd")) == cell


@pytest.mark.parametrize("name", ["two\nlines.mp4", "tab\t.mp4", '"quoted".mp4', "a\r\nb, c.mp4"])
def test_file_name_round_trips_through_csv(name: str) -> None:
    file = io.StringIO()
    write_csv_rows(file, [[name, "\x1b[2J", 1]])
    assert list(csv.reader(io.StringIO(file.getvalue(), newline=""))) == [[name, "\ufffd[2J", "1"]]


def test_all_csv_output_goes_through_the_function_that_defuses_formulas() -> None:
    root = Path(vidkin.__file__).parent
    studies = root.parents[1] / "research" / "src"
    modules = [*root.rglob("*.py"), *studies.rglob("*.py")]
    writers = [path for path in modules if re.search(r"csv\.(writer|DictWriter)|to_csv", path.read_text())]
    assert writers == [root / "_base" / "values.py"]
    joined = [path for path in modules if '"\\t".join' in path.read_text()]
    assert joined == [root / "cli" / "console.py"]
