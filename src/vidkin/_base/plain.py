"""Restore results from plain values, and generate their JSON schema, using the annotations of their fields."""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from vidkin.errors import InvalidArgumentError

_Result = TypeVar("_Result")
_JSON_TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    Fraction: "number",
    str: "string",
    Path: "string",
}


def field_types(kind: Any) -> Mapping[str, Any]:
    """Return the type of each field of a dataclass."""
    return _field_types(kind)


@cache
def _field_types(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def property_type(kind: type, name: str) -> Any:
    """Return the type of a property of a class."""
    return get_type_hints(getattr(kind, name).fget)["return"]


def read_fields(kind: type[_Result], values: object) -> _Result:
    """Create a dataclass from the output of :func:`vidkin._base.values.fields_as_json`, ignoring other keys.

    Raises:
        InvalidArgumentError: A key is missing, or a value has the wrong type; the message names the field.
    """
    given = as_object(kind, values)
    read: dict[str, Any] = {}
    types_of_fields = field_types(cast("Any", kind))
    for field in dataclasses.fields(cast("Any", kind)):
        if field.name in given:
            name = f"{kind.__name__}.{field.name}"
            read[field.name] = read_value(name, types_of_fields[field.name], given[field.name])
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise InvalidArgumentError(f"{kind.__name__} must have the key {field.name!r}, got {_shorten(list(given))}")
    return kind(**read)


def as_object(kind: type, values: object) -> Mapping[str, Any]:
    """Return the values if they are an object (a mapping).

    Raises:
        InvalidArgumentError: They are not an object.
    """
    if not isinstance(values, Mapping):
        raise InvalidArgumentError(f"{kind.__name__} must be an object with its fields, got {_shorten(values)}")
    return values


def read_value(name: str, kind: Any, value: Any) -> Any:
    """Convert a value from the output of :func:`vidkin._base.values.as_json` back to its type.

    Raises:
        InvalidArgumentError: The value does not have this type; the message includes ``name``.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return read_value(name, next(each for each in arguments if each is not type(None)), value)
    if origin is Literal:
        return _require(name, value, value in arguments, f"one of {', '.join(map(repr, arguments))}")
    if origin is not None and issubclass(origin, Mapping):
        key, item = arguments
        _require(name, value, isinstance(value, Mapping), "an object")
        return {_read_key(name, key, each): read_value(f"{name}.{each}", item, given) for each, given in value.items()}
    if origin is tuple:
        _require(name, value, isinstance(value, list | tuple), "a list")
        items = [arguments[0]] * len(value) if arguments[1:] == (...,) else list(arguments)
        _require(name, value, len(items) == len(value), f"a list of {len(items)}")
        return tuple(read_value(f"{name}[{place}]", *pair) for place, pair in enumerate(zip(items, value, strict=True)))
    if origin is not None and origin.__name__ == "ndarray":
        return _read_array(name, arguments, value)
    if dataclasses.is_dataclass(kind):
        return getattr(kind, "from_dict", partial(read_fields, cast("type", kind)))(value)
    if kind is float:
        if value is None:
            return math.nan
        return float(_require(name, value, _is_number(value), "a number"))
    if kind is Fraction:
        return Fraction(_require(name, value, _is_number(value), "a number"))
    if kind is Path:
        return Path(_require(name, value, isinstance(value, str), "text"))
    is_one = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    return _require(name, value, is_one, _JSON_TYPES[kind])


def _read_array(name: str, arguments: tuple[Any, ...], value: Any) -> Any:
    import numpy as np

    _require(name, value, isinstance(value, list | tuple), "a list")
    number = get_args(arguments[1])[0]
    try:
        return np.array(value, np.float64 if inspect.isabstract(number) or number is np.floating else number)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"{name} must be a list of numbers, or of number lists of equal length") from error


def _read_key(name: str, kind: type, text: object) -> Any:
    try:
        return kind(text)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"a key of {name} must be {_JSON_TYPES[kind]}, got {_shorten(text)}") from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require(name: str, value: Any, is_valid: bool, accepted: str) -> Any:
    if not is_valid:
        raise InvalidArgumentError(f"{name} must be {accepted}, got {_shorten(value)}")
    return value


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def schema_of_results(results: Iterable[type], describe: Callable[[type], Mapping[str, str]]) -> dict[str, Any]:
    """Generate a JSON schema (draft 2020-12) whose ``$defs`` contain these results and all classes they refer to.

    Args:
        results: Result classes.
        describe: Returns a description of each field of a class; see :func:`vidkin._base.values.describe_settings`.
    """
    schemas: dict[str, Any] = {}
    waiting = list(results)
    while waiting:
        kind = waiting.pop()
        if kind.__name__ in schemas:
            continue
        kinds: Mapping[str, Any] = getattr(kind, "plain_types", partial(field_types, kind))()
        of_properties = {name: inspect.getdoc(getattr(kind, name, None)) or "" for name in kinds}
        texts = {name: text.partition("\n")[0] for name, text in of_properties.items()} | dict(describe(kind))
        properties = {}
        for name, each in kinds.items():
            properties[name] = _schema_of(each, waiting)
            if texts.get(name):
                properties[name]["description"] = texts[name]
        schemas[kind.__name__] = {
            "description": (inspect.getdoc(kind) or "").partition("\n")[0],
            "type": "object",
            "properties": properties,
            "required": list(properties),
        }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": dict(sorted(schemas.items()))}


def _schema_of(kind: Any, waiting: list[type]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        item_value = [_schema_of(each, waiting) for each in arguments if each is not type(None)]
        return {"anyOf": [*item_value, {"type": "null"}]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema_of(arguments[1], waiting)}
    if origin is tuple and arguments[1:] == (...,):
        return {"type": "array", "items": _schema_of(arguments[0], waiting)}
    if origin is tuple:
        items = [_schema_of(each, waiting) for each in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin is not None and origin.__name__ == "ndarray":
        return {"type": "array"}
    if dataclasses.is_dataclass(kind):
        waiting.append(cast("type", kind))
        return {"$ref": f"#/$defs/{cast('type', kind).__name__}"}
    return {"type": _JSON_TYPES[kind]}
