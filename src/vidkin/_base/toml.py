"""Writing TOML: the standard library only reads it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from vidkin.errors import InvalidArgumentError

__all__ = ["toml_text"]


def toml_text(tables: Mapping[str, Any]) -> str:
    """A TOML document of values and tables of values.

    Args:
        tables: Names to values (text, numbers, truth values, lists of such) or to mappings of names to such.

    Raises:
        InvalidArgumentError: A value is of another type.
    """
    lines = [f"{_key(name)} = {_value(name, v)}" for name, v in tables.items() if not isinstance(v, Mapping)]
    for name, table in tables.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{_key(name)}]"]
            lines += [f"{_key(key)} = {_value(key, value)}" for key, value in table.items()]
    return "\n".join(lines).lstrip("\n") + "\n"


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _text(name)


def _text(value: str) -> str:
    # JSON's escapes are TOML's, but for the one control character that JSON leaves as it is.
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
        f"{name} is {value!r} ({type(value).__name__}), which TOML does not hold; allowed are text, numbers, "
        "truth values and lists of these"
    )
