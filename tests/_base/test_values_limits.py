"""Untrusted documents beyond a limit are refused before they use much memory or time."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.peak import measure_peak
from vidkin._base.toml import format_toml, parse_toml, read_toml
from vidkin._base.values import (
    JSON_LIMITS,
    TOML_LIMITS,
    TextLimits,
    check_json_text,
    check_toml_text,
    parse_json,
    read_json,
)

BIG = TOML_LIMITS.size

TOML = {
    "dotted keys of 100 KB": (
        "a." * 50_000 + "b = 1",
        "parts of a dotted name must be at most 16, got 50,001",
    ),
    "a dotted header": ("[" + "a." * 50_000 + "b]", "parts of a dotted name must be at most 16"),
    "dotted keys in a table in a line": ("a = {" + "b." * 20 + "c = 1}", "parts of a dotted name"),
    "quoted dotted keys": ("'a'.\"b\"." * 10 + "c = 1", "parts of a dotted name must be at most 16, got 21"),
    "many dotted keys": (
        "\n".join(f"a{i}.b.c.d.e.f = 1" for i in range(3000)),
        "tables must be at most 10,000, got 15,000",
    ),
    "many tables": ("\n".join(f"[a{i}]" for i in range(10_001)), "tables must be at most 10,000, got 10,001"),
    "many tables in lines": ("a = [" + "{}," * 10_001 + "]", "tables must be at most 10,000, got 10,001"),
    "deep lists": ("a = " + "[" * 33 + "]" * 33, "nested at most 32 deep"),
    "very deep lists": ("a = " + "[" * 100_000, "nested too deeply"),
    "an integer of 5,001 digits": ("a = " + "1" * 5001, "a number must have at most 100 digits"),
    "a hexadecimal one": ("a = 0x" + "f" * 5001, "a number must have at most 100 digits"),
    "size": ("#" * (BIG + 1), "size must be at most 2,000,000 bytes, got more"),
    "a text that does not end": ('a = """' + '\\"""' * (BIG // 5), "Unterminated string"),
    "quotes alone": ('"' * BIG, "Expected '='"),
    "a name without end": ("a" * BIG, "Expected '='"),
    "a name, spaces without end": ("a" + " " * (BIG - 1), "Expected '='"),
}

JSON = {
    "depth": ("[" * 65 + "]" * 65, "nested at most 64 deep"),
    "a depth behind brackets in a text": ('["]]]]]]]]]]]]",' + "[" * 70 + "]" * 71, "nested at most 64 deep"),
    "very deep lists": ("[" * 100_000, "nested too deeply"),
    "an integer of 5,001 digits": ("[" + "1" * 5001 + "]", "a number must have at most 100 digits"),
    "many values": ("[" + "[]," * 1_500_000 + "[]]", "values must be at most 2,000,000, got 3,000,002"),
    "size": ('"' + "a" * JSON_LIMITS.size + '"', "size must be at most 64,000,000 bytes"),
}

# Built on demand, because building all of them slows down test collection.
LARGEST_TOML = {
    "values": lambda: "a = [" + "1," * (BIG // 2 - 5) + "]",
    "keys": lambda: "".join(f"a{i}=1\n" for i in range(200_000)),
    "tables": lambda: "".join(f"[a{i}]\n" for i in range(10_000)),
    "long names of tables": lambda: "".join(f"[{'.'.join(f'a{i}b{j}' for j in range(10))}]\n" for i in range(1000)),
    "text": lambda: 'a = """' + "x" * (BIG - 20) + '"""',
}

LARGEST_JSON = {
    "objects": lambda: "[" + '{"a":1},' * 999_990 + "{}]",
    "lists": lambda: "[" + "[]," * 999_990 + "[]]",
    "keys": lambda: "{" + ",".join(f'"k{i}":1.5' for i in range(1_999_990)) + "}",
    "text": lambda: '"' + "é[" * (JSON_LIMITS.size // 3 - 10) + '"',
}


@pytest.mark.parametrize("case", TOML)
def test_toml_beyond_a_limit_is_refused(case: str) -> None:
    text, message = TOML[case]
    with pytest.raises(tomllib.TOMLDecodeError, match=message):
        parse_toml(text)


@pytest.mark.parametrize("case", JSON)
def test_json_beyond_a_limit_is_refused(case: str) -> None:
    text, message = JSON[case]
    for document in (text, text.encode()):
        with pytest.raises(ValueError, match=message):
            parse_json(document)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of one process alone is read from /proc")
@pytest.mark.process
@pytest.mark.parametrize("case", [*TOML, *LARGEST_TOML])
def test_parsing_toml_takes_less_than_200_mb_and_little_time(case: str, tmp_path: Path) -> None:
    text = TOML[case][0] if case in TOML else LARGEST_TOML[case]()
    (tmp_path / "document").write_text(text)
    work = "from vidkin._base.toml import read_toml as read; read(sys.argv[1])"
    peak = measure_peak("import vidkin._base.toml", work, tmp_path / "document")
    assert peak.said == "done" if case in LARGEST_TOML else peak.said.startswith("TOMLDecodeError")
    assert peak.memory < 200e6
    # Takes about a second on an idle machine.
    assert peak.seconds < 15


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of one process alone is read from /proc")
@pytest.mark.process
@pytest.mark.parametrize("case", [*JSON, *LARGEST_JSON])
def test_parsing_json_takes_less_than_600_mb_and_little_time(case: str, tmp_path: Path) -> None:
    text = JSON[case][0] if case in JSON else LARGEST_JSON[case]()
    (tmp_path / "document").write_text(text, encoding="utf-8")
    work = "from vidkin._base.values import read_json as read; read(sys.argv[1])"
    peak = measure_peak("import vidkin._base.values", work, tmp_path / "document")
    assert peak.said == "done" if case in LARGEST_JSON else peak.said.startswith("ValueError")
    assert peak.memory < 600e6
    assert peak.seconds < 30


def test_file_beyond_the_size_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "endless"
    with path.open("wb") as file:
        file.truncate(10**12)  # a sparse file takes no disk space
    with pytest.raises(tomllib.TOMLDecodeError, match="size must be at most"):
        read_toml(path)
    with pytest.raises(ValueError, match="size must be at most"):
        read_json(path)


def test_documents_are_decoded_like_text_files(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_bytes('a = "é"\r\nb = """1\r\n2"""\r\n'.encode())
    assert read_toml(path) == {"a": "é", "b": "1\n2"}
    path.write_bytes('{"a":\r\n "é"}'.encode())
    assert read_json(path) == {"a": "é"}
    path.write_bytes(b"\xff")
    for read in (read_toml, read_json):
        with pytest.raises(UnicodeDecodeError):
            read(path)
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "gone")


def test_brackets_and_digits_in_strings_and_comments_do_not_count() -> None:
    hidden = "[" * 100 + "1" * 200 + "a." * 30
    document = {"a": hidden, "'": f'"{hidden}"', "b": [f'"""{hidden}', f"'''{hidden}"]}
    assert parse_json(json.dumps(document)) == document
    assert parse_toml(format_toml(document)) == document
    text = f'# {hidden}\'"\na = \'\'\'{hidden}\'\'\' # """\nb = """\n\\"{hidden}"""\n'
    assert parse_toml(text) == {"a": hidden, "b": f'"{hidden}'}
    numbers = ", ".join(["1.5"] * 20_000)
    assert len(parse_toml(f"unrelated = [{numbers}]\n[a.b]\nc = 1.5\n")["unrelated"]) == 20_000


TINY = TextLimits(size=10_000, depth=3, digits=4, values=30)
INNER = st.recursive(
    st.integers(-9999, 9999) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=8,
)


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


@settings(max_examples=50, deadline=None)
@given(INNER)
def test_documents_are_refused_only_for_their_depth(value: object) -> None:
    if depth(value) > TINY.depth:
        with pytest.raises(ValueError, match="nested at most 3 deep"):
            check_json_text(json.dumps(value), TINY)
    else:
        check_json_text(json.dumps(value), TINY)


def test_toml_is_accepted_up_to_the_limits_and_refused_beyond() -> None:
    check_toml_text("a = [[[1234]]]", TINY)
    with pytest.raises(ValueError, match="nested at most 3 deep"):
        check_toml_text("a = [[[[1234]]]]", TINY)
    with pytest.raises(ValueError, match="at most 4 digits"):
        check_toml_text("a = 12345", TINY)
