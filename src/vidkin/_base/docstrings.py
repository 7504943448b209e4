"""Descriptions of settings, taken from docstrings, so that code and settings files share one text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

__all__ = ["describe_settings"]

# "``batch``: text" of the sections that list names; several names may share a text.
_ENTRY = re.compile(r"(\w+(?:, \w+)*): (.*)")
_SECTIONS = ("Args:", "Attributes:")


def describe_settings(source: Callable[..., Any]) -> dict[str, str]:
    """Description of each attribute or argument that the docstring of a class or function lists, as plain text.

    Markup of references and code is removed. Empty if Python runs without docstrings (``-OO``).

    Args:
        source: A class or a function; names are looked for under ``Args:`` and ``Attributes:``.

    >>> describe_settings(describe_settings)
    {'source': 'A class or a function; names are looked for under `Args:` and `Attributes:`.'}
    """
    texts: dict[str, str] = {}
    names: list[str] = []
    is_listed = False
    for written in (inspect.getdoc(source) or "").splitlines():
        if written and not written.startswith(" "):
            is_listed = written in _SECTIONS
        if not is_listed or not written.startswith(" "):
            continue
        line = written.removeprefix("    ")
        entry = _ENTRY.fullmatch(line)
        if entry is not None:
            names = entry[1].split(", ")
            texts |= dict.fromkeys(names, entry[2])
        elif line.startswith(" "):
            texts |= {name: f"{texts[name]} {line.strip()}" for name in names}
    # Of a reference only the last name is shown.
    plain = {name: re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text) for name, text in texts.items()}
    return {name: text.replace("``", "`") for name, text in plain.items()}
