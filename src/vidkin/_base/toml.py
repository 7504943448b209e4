"""Read untrusted TOML as tables or frozen dataclasses, and write both with comments."""

from __future__ import annotations

import os
import textwrap
import tomllib
import types
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from vidkin._base.values import TOML_LIMITS, check_toml_text, read_bounded
from vidkin.errors import InvalidArgumentError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from tomlkit.items import Table
    from tomlkit.toml_document import TOMLDocument

# Maximum width of comments in columns.
_WIDTH = 100


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document within :data:`~vidkin._base.values.TOML_LIMITS`.

    Raises:
        tomllib.TOMLDecodeError: The document is not TOML, or is too large for a settings file.
    """
    try:
        check_toml_text(text)
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None
    except ValueError as error:
        raise tomllib.TOMLDecodeError(str(error)) from None


def read_toml(path: str | os.PathLike[str], *, follow_links: bool = False) -> dict[str, Any]:
    """Read and parse a TOML file, see :func:`parse_toml`; a file that is too large is not read at all.

    Raises:
        OSError: The file cannot be read, is not a regular file, or is a link that must not be followed.
        UnicodeDecodeError: The file is not UTF-8.
        tomllib.TOMLDecodeError: The file is not TOML, or is too large.
    """
    try:
        text = read_bounded(path, TOML_LIMITS, follow_links=follow_links)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise tomllib.TOMLDecodeError(str(error)) from None
    return parse_toml(text)


def format_toml(document: Mapping[str, Any], comments: Mapping[str, Any] | None = None) -> str:
    """Format a mapping as a TOML document.

    Args:
        document: Values by name: text, numbers, booleans, and lists of these. A mapping becomes a table, and a list of
            mappings becomes an array of tables. None becomes a comment, because TOML cannot express it.
        comments: Comments to write above settings, with the same structure as the document: a mapping for a table, and
            a list of mappings for an array of tables.

    Raises:
        InvalidArgumentError: A value has a type that TOML cannot express.
    """
    # Imported here, because every command reads TOML at startup but few write it.
    import tomlkit

    written = tomlkit.document()
    _fill(written, document, comments or {})
    return tomlkit.dumps(written).lstrip("\n")


def _fill(container: TOMLDocument | Table, table: Mapping[str, Any], comments: Mapping[str, Any]) -> None:
    import tomlkit

    # Write plain values first, because after a heading they would belong to its table.
    for name, value in table.items():
        if _list_tables(value):
            continue
        for line in textwrap.wrap(comments.get(name, ""), _WIDTH - 2, break_on_hyphens=False):
            container.add(tomlkit.comment(line))
        if value is None:
            container.add(tomlkit.comment(f"{tomlkit.key(name).as_string()} is not set"))
        else:
            _check_value(name, value)
            container.add(name, tomlkit.item(value))
    for name, value in table.items():
        parts = _list_tables(value)
        inner = _list_tables(comments.get(name)) or [{}] * len(parts)
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


def _list_tables(value: Any) -> list[Mapping[str, Any]]:
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


T = TypeVar("T")

_TYPE_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def from_table(kind: type[T], table: object, where: str) -> T:
    """Fill a dataclass from a table; missing entries keep their defaults.

    Args:
        kind: A dataclass whose fields are numbers, booleans, text, choices (``Literal``), tuples of one of these,
            mappings, or dataclasses with a nested table.
        table: The table as parsed from the file.
        where: Name of the table, for messages.

    Raises:
        InvalidArgumentError: ``table`` is not a table, has an unknown name, or a value has the wrong type.
    """
    if not isinstance(table, Mapping):
        raise InvalidArgumentError(f"[{where}] must be a table of settings, got {table!r}")
    assert is_dataclass(kind)
    hints = get_type_hints(kind)
    check_names(table, [field.name for field in fields(kind)], where)
    return kind(**{name: _convert(hints[name], value, f"{where}.{name}") for name, value in table.items()})


def to_table(settings: DataclassInstance) -> dict[str, Any]:
    """Convert all settings that are not None to a TOML table that :func:`from_table` can read."""
    values = {name: value for name, value in asdict(settings).items() if value is not None}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def check_names(names: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise :class:`InvalidArgumentError`, which lists the known names, if any of ``names`` is unknown."""
    known = list(known)
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise InvalidArgumentError(
            f"[{where}] has no setting {', '.join(unknown)}; choose from {', '.join(known) or 'none'}"
        )


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        # All unions here have the form "X or None", and TOML cannot express None.
        return _convert(next(part for part in get_args(hint) if part is not type(None)), value, where)
    if is_dataclass(hint):
        return from_table(hint, value, where)  # type: ignore[arg-type]
    if origin is Literal:
        if value not in get_args(hint):
            raise InvalidArgumentError(f"{where} must be one of {', '.join(get_args(hint))}, got {value!r}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise InvalidArgumentError(f"{where} must be a list, got {value!r}")
        return tuple(_convert(get_args(hint)[0], item, where) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    expected = Mapping if origin is not None else hint
    if not isinstance(value, expected) or (isinstance(value, bool) and hint is not bool):
        raise InvalidArgumentError(f"{where} must be {_TYPE_NAMES.get(hint, 'a table')}, got {value!r}")
    return value
