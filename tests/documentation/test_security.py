"""Every statement in docs/security.md names a test, and the tests it names exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
_REFERENCE = re.compile(r"`(tests/[\w/]+\.py)?::(test_\w+)`")
# Threats that are not covered have no test, and measurements name the command that prints them.
_WITHOUT = ("To report", "Not protected")


@cache
def _names_of_tests(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def references() -> list[tuple[str, str]]:
    """(file, test) in page order; a test without a file belongs to the file named before it."""
    found, file = [], ""
    for match in _REFERENCE.finditer(PAGE):
        file = match[1] or file
        found.append((file, match[2]))
    return found


@pytest.mark.parametrize(("file", "test"), references())
def test_named_tests_exist(file: str, test: str) -> None:
    assert test in _names_of_tests(file)


def test_every_statement_names_a_test_or_a_command() -> None:
    sections = [part for part in PAGE.split("\n## ")[1:] if not part.startswith(_WITHOUT)]
    statements = []
    for section in sections:
        statements += re.findall(r"^\* .*?(?=^\* |^$|\Z)", section, re.DOTALL | re.MULTILINE)
        statements += re.findall(r"^\| (?!A plan or log can).*\|$", section, re.MULTILINE)
    assert len(statements) > 30
    for statement in statements:
        assert _REFERENCE.search(statement) or "python research/benchmarks/" in statement, statement


def test_tests_are_named_in_full() -> None:
    named = [text for text in re.findall(r"`([^`]*::[^`]*)`", PAGE) if text not in ("file::test", "::test")]
    assert len(named) == len(references())
