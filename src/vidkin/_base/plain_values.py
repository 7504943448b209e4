"""Results as plain values that JSON can hold, JSON from strangers, digests, and text without control characters."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import unicodedata
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from typing import Any

__all__ = ["Result", "as_json", "fields_as_json", "parse_json", "replace_controls", "short_digest"]


class Result:
    """Base of what the library returns: dataclasses with :meth:`to_dict`, whose keys are those of ``--json``."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for :func:`json.dumps`, as ``--json`` prints them."""
        return fields_as_json(self)


def as_json(value: object) -> Any:
    """Convert a value for JSON: dataclasses become objects, paths strings, tensors and arrays lists, NaN null.

    Raises:
        TypeError: The value cannot be expressed in JSON.
    """
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, Enum):
        return as_json(value.value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, Result):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields_as_json(value)
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(as_json(item) for item in value)
    # Tensors, arrays and their scalars, without importing their libraries.
    to_list = getattr(value, "tolist", None)
    if to_list is not None:
        return as_json(to_list())
    raise TypeError(f"{type(value).__name__} cannot be expressed in JSON")


def fields_as_json(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, each converted by :func:`as_json`."""
    return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON document; whoever wrote it, nothing but a ValueError is raised.

    Raises:
        ValueError: It is not JSON, or is nested too deeply to be one of our files.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def replace_controls(text: str) -> str:
    """Replace each control character by U+FFFD; everything else stays as it is.

    >>> replace_controls("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join("�" if unicodedata.category(char) == "Cc" else char for char in text)


def short_digest(values: object) -> str:
    """Twelve hexadecimal digits of the SHA-256 of JSON values; the order of the keys of objects does not matter."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]
