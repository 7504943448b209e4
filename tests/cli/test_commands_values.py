"""Values of options are read as typer reads them, without pydantic where they are plain."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer._coercion import build_runtime_param

from vidkin.cli import commands
from vidkin.cli.app import app

WORDS = [
    *(
        "",
        "a",
        "info",
        "json",
        "JSON",
        "1",
        "-1",
        "007",
        "1.5",
        "-0.25",
        "1e3",
        "nan",
        "inf",
        " 1",
        "1_000",
        "٣",
        "9" * 30,
    ),
    *("0:30", "250f", "10:99", "-", "/", "/nowhere/at all", "./x/../y", "a\0b", "é", "true", "NAME=VALUE"),
]


@cache
def parameters() -> dict[str, Any]:
    """Every option and argument by its name, `--help` and the group's own included; one of those that read alike."""
    group = typer.main.get_command(app)
    assert isinstance(group, commands.LazyGroup)
    named = [("vidkin", group), *((name, group.commands[name]) for name in group.built_in)]
    found: dict[str, tuple[str, Any]] = {}
    for name, command in named:
        for parameter in command.get_params(typer.Context(command)):
            wish = parameter.type_descriptor.parameter_info
            way = (wish.parser, wish.min, wish.max, wish.exists, wish.file_okay, wish.dir_okay, wish.case_sensitive)
            alike = f"{parameter.type_descriptor.annotation} {way} {parameter.multiple} {parameter.nargs}"
            found.setdefault(alike, (f"{name} {parameter.name}", parameter))
    return dict(found.values())


def answer(read: Any, parameter: Any, value: Any) -> tuple[type, Any]:
    """The value and its type, or the message of the error."""
    try:
        found = read.coerce(value, param=parameter, ctx=None)
    except typer.BadParameter as error:
        return typer.BadParameter, error.format_message()
    return type(found), repr(found)


def test_every_option_reads_every_word_as_typer_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    words = [*WORDS, "file", "folder", str(tmp_path / "file"), str(tmp_path / "folder")]
    checked = 0
    for name, parameter in parameters().items():
        own, theirs = commands._PlainValues(), build_runtime_param(parameter.type_descriptor)
        values: list[Any] = [None, *words, Path("file"), 3, 0.5, True]
        if parameter.multiple or parameter.nargs == -1:
            values = [None, [], *([word] for word in words), ["a", "file"], ["1", "2"]]
        elif parameter.nargs > 1:
            values = [None, ("a", "file"), ("1", "2"), ("a",)]
        for value in values:
            expected = answer(theirs, parameter, value)
            assert answer(own, parameter, value) == expected, (name, value)
            checked += 1
    assert checked > 500


def test_a_plain_value_needs_no_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = next(each for each in parameters().values() if each.type_descriptor.annotation is int)
    monkeypatch.setitem(sys.modules, "typer._coercion", None)  # importing it fails
    assert commands._PlainValues().coerce("5", whole, None) == 5
    with pytest.raises(ImportError):
        commands._PlainValues().coerce("five", whole, None)


def test_another_version_of_typer_is_left_alone() -> None:
    class Option:
        name = "limit"

    option = Option()
    assert commands.read_plainly([option]) == [option]
    assert vars(option) == {}
