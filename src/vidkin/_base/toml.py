"""Read TOML from untrusted sources, and write it with comments."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vidkin.errors import InvalidArgumentError

if TYPE_CHECKING:
    from tomlkit.items import Table
    from tomlkit.toml_document import TOMLDocument

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
    # Imported here: commands read TOML at every start and write it rarely.
    import tomlkit

    written = tomlkit.document()
    _fill(written, document, comments or {})
    return tomlkit.dumps(written).lstrip("\n")


def _fill(container: TOMLDocument | Table, table: Mapping[str, Any], comments: Mapping[str, Any]) -> None:
    import tomlkit

    # Plain values first: after a heading they would belong to the table below it.
    for name, value in table.items():
        if _tables(value):
            continue
        for line in textwrap.wrap(comments.get(name, ""), _WIDTH - 2, break_on_hyphens=False):
            container.add(tomlkit.comment(line))
        if value is None:
            container.add(tomlkit.comment(f"{tomlkit.key(name).as_string()} is not set"))
        else:
            _check_value(name, value)
            container.add(name, tomlkit.item(value))
    for name, value in table.items():
        parts = _tables(value)
        inner = _tables(comments.get(name)) or [{}] * len(parts)
        filled = []
        for part, texts in zip(parts, inner, strict=True):
            filled.append(tomlkit.table())
            filled[-1].trivia.indent = "\n"
            _fill(filled[-1], part, texts)
        if isinstance(value, Mapping):
            container.add(name, filled[0])
        elif filled:
            array = tomlkit.aot()
            for part in filled:
                array.append(part)
            container.add(name, array)


def _tables(value: Any) -> list[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        return [value]
    if isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
        return list(value)
    return []


def _check_value(name: str, value: Any) -> None:
    if isinstance(value, list | tuple):
        for item in value:
            _check_value(name, item)
    elif not isinstance(value, bool | int | float | str):
        raise InvalidArgumentError(
            f"{name} must be text, a number, a boolean or a list of these to be written as TOML, "
            f"got {value!r} ({type(value).__name__})"
        )
