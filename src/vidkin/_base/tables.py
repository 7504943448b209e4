"""Tables of a TOML file as frozen dataclasses, and back: typed, complete, and strict about names."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from vidkin.errors import InvalidArgumentError

__all__ = ["from_table", "known_names", "toml_lines", "toml_value"]

T = TypeVar("T")


def from_table(kind: type[T], given: object, where: str) -> T:
    """A dataclass from a table; what is left out has its default.

    Args:
        kind: A dataclass whose fields are numbers, truth values, text, choices (``Literal``), tuples of one of these,
            or mappings.
        given: What stands in the file.
        where: Name of the table, for messages.

    Raises:
        InvalidArgumentError: It is no table, a name is unknown, or a value is of the wrong type.
    """
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"[{where}] is {given!r}, it must be a table of settings")
    assert is_dataclass(kind)
    hints = get_type_hints(kind)
    known_names(given, [field.name for field in fields(kind)], where)
    return kind(**{name: _typed(hints[name], value, f"{where}.{name}") for name, value in given.items()})


def known_names(given: Iterable[str], allowed: Iterable[str], where: str) -> None:
    """:class:`InvalidArgumentError` that lists what is allowed, if a name is not."""
    allowed = list(allowed)
    unknown = sorted(set(given) - set(allowed))
    if unknown:
        raise InvalidArgumentError(
            f"[{where}] has no setting {', '.join(unknown)}; allowed are {', '.join(allowed) or 'none'}"
        )


def toml_lines(table: Mapping[str, Any]) -> list[str]:
    """``name = value`` for each entry; an entry that is None becomes a comment, as TOML has no word for it."""
    return [f"# {n} is not set" if v is None else f"{n} = {toml_value(v)}" for n, v in table.items()]


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for the one control character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    raise InvalidArgumentError(
        f"{value!r} ({type(value).__name__}) cannot stand in a recipe; allowed are text, numbers, truth values and "
        "lists of these"
    )


def _typed(hint: Any, value: Any, where: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        # Only "something or None": None itself cannot be written in TOML.
        return _typed(next(part for part in get_args(hint) if part is not type(None)), value, where)
    if origin is Literal:
        if value not in get_args(hint):
            raise InvalidArgumentError(f"{where} is {value!r}, allowed are {', '.join(get_args(hint))}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise InvalidArgumentError(f"{where} is {value!r}, it must be a list")
        return tuple(_typed(get_args(hint)[0], item, where) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    wanted = Mapping if origin is not None else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        names = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
        raise InvalidArgumentError(f"{where} is {value!r}, it must be {names.get(hint, 'a table')}")
    return value
