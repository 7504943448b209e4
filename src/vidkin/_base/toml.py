"""Read TOML from untrusted sources, and write TOML, which the standard library cannot."""

from __future__ import annotations

import json
import math
import textwrap
import tomllib
from collections.abc import Mapping
from typing import Any

from vidkin.errors import InvalidArgumentError

__all__ = ["format_toml", "parse_toml"]

# Columns of comments.
_WIDTH = 100


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document.

    Raises:
        tomllib.TOMLDecodeError: It is not TOML, or is nested too deeply to be one of our settings files.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None


def format_toml(document: Mapping[str, Any], comments: Mapping[str, Any] | None = None) -> str:
    """Format a mapping as a TOML document.

    Args:
        document: Names to values: text, numbers, booleans, and lists of these. A mapping becomes a table, a list of
            mappings an array of tables. None becomes a comment, because TOML cannot express it.
        comments: Texts for the lines above settings, by the same names as in the document: a mapping for a table, a
            list of mappings for an array of tables.

    Raises:
        InvalidArgumentError: A value has a type that TOML cannot express.
    """
    return "\n".join(_lines(document, (), comments or {})).lstrip("\n") + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...], comments: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    # Plain values first: after a heading they would belong to the table below it.
    for name, value in table.items():
        if not _tables(value):
            lines += textwrap.wrap(
                comments.get(name, ""),
                _WIDTH,
                initial_indent="# ",
                subsequent_indent="# ",
                break_on_hyphens=False,
            )
            unset = f"# {_key(name)} is not set"
            lines.append(unset if value is None else f"{_key(name)} = {_value(name, value)}")
    for name, value in table.items():
        heading = ".".join(map(_key, (*path, name)))
        bracketed = f"[{heading}]" if isinstance(value, Mapping) else f"[[{heading}]]"
        parts = _tables(value)
        inner = _tables(comments.get(name)) or [{}] * len(parts)
        for part, texts in zip(parts, inner, strict=True):
            lines += ["", bracketed, *_lines(part, (*path, name), texts)]
    return lines


def _tables(value: Any) -> list[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        return [value]
    if isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
        return list(value)
    return []


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else _text(name)


def _text(value: str) -> str:
    # JSON's escapes are TOML's, except for one control character that JSON does not escape.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(name, item) for item in value)}]"
    raise InvalidArgumentError(
        f"{name} must be text, a number, a boolean or a list of these to be written as TOML, "
        f"got {value!r} ({type(value).__name__})"
    )
