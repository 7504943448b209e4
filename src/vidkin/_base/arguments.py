"""Check arguments of public functions against their annotations, so that errors are reported before work starts."""

from __future__ import annotations

import builtins
import inspect
import numbers
import os
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial, wraps
from typing import Annotated, Any, Literal, ParamSpec, Protocol, TypeVar, get_args, get_origin

from vidkin.errors import InvalidArgumentError

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")
_Class = TypeVar("_Class", bound=type)

# Integers below 2**53 survive JSON in every language. The float limit excludes infinity and implausible values.
_MAX_INTEGER = 1 << 53
_MAX_FLOAT = 1e15


@dataclass(frozen=True, slots=True)
class _Kind:
    """What an annotation, or one member of a union, accepts: as text for messages, and as a predicate."""

    words: str
    accepts: Callable[[Any], bool]
    plural: str
    # Additional check from an Annotated type, such as "above 0"; called with the argument as a keyword.
    check: Callable[..., None] | None = None
    # Whether an iterator may be converted to a list in order to check its items.
    is_list: bool = False


def check_arguments(function: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """Decorate a function to check each argument against its annotation.

    Classes are checked by name and protocols by their attributes, so that the check imports nothing. Files and streams
    are checked by the function itself. The default value of an argument is always accepted.

    Raises:
        InvalidArgumentError: An argument is not accepted; the message states its name, the accepted values and the
            given value.
    """

    @cache
    def described() -> tuple[inspect.Signature, list[str], dict[str, tuple[list[_Kind], object]], frozenset[str]]:
        signature = inspect.signature(function)
        names = _Names({**inspect.unwrap(function).__globals__, **_ALIASES})
        fixed = [
            each for each in signature.parameters.values() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]
        kinds = {each.name: (_kinds_of(_evaluate(each.annotation, names)), each.default) for each in fixed}
        positional = [each.name for each in fixed if each.kind is not each.KEYWORD_ONLY]
        required = frozenset(each.name for each in fixed if each.default is each.empty)
        return signature, positional, kinds, required

    @wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Returned:
        signature, positional, kinds, required = described()
        given = {**dict(zip(positional, args, strict=False)), **kwargs}
        if len(args) > len(positional) or not required <= given.keys() <= kinds.keys():
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                accepted = ", ".join(name for name in signature.parameters if name not in ("self", "cls"))
                raise TypeError(f"{function.__qualname__}() {error}; its arguments are {accepted or 'none'}") from None
        changed = {}
        for name, value in given.items():
            accepted_kinds, default = kinds.get(name, ([], None))
            if accepted_kinds and value is not default:
                checked = _check(name, value, accepted_kinds)
                if checked is not value:
                    changed[name] = checked
        if not changed:
            return function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.arguments.update(changed)
        return function(*bound.args, **bound.kwargs)

    return call


def unchecked(function: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """Return the function without its argument checks, for internal loops over pairs of videos."""
    found: Callable[_Parameters, _Returned] = vars(function)["__wrapped__"]
    return found


def check_all_arguments(kind: _Class) -> _Class:
    """Decorate a class so that its public methods check their arguments; see :func:`check_arguments`."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            setattr(kind, name, classmethod(check_arguments(member.__func__)))
        elif inspect.isfunction(member):
            setattr(kind, name, check_arguments(member))
    return kind


def check_constructor(kind: _Class) -> _Class:
    """Decorate a class so that its constructor checks its arguments; see :func:`check_arguments`.

    Place it above ``@dataclass``.
    """
    constructor: Callable[..., None] = vars(kind)["__init__"]
    setattr(kind, "__init__", check_arguments(constructor))  # noqa: B010
    return kind


class _Unloaded(type):
    """Placeholder for a class or module that is imported only for type checking."""

    def __getattr__(cls, name: str) -> _Unloaded:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Unloaded(name, (), {})

    def __getitem__(cls, _: object) -> _Unloaded:
        return cls


class _Executor(Protocol):
    """The attributes that identify an executor."""

    run: Callable[..., object]


class _HasTimes(Protocol):
    """The attributes that identify a segment of a video."""

    start: float
    end: float


class _Array(Protocol):
    """Attributes common to NumPy arrays and torch tensors."""

    shape: tuple[int, ...]
    dtype: object
    ndim: int


# Annotation names that need a stricter check than their type, or that are imported only for type checking and are not
# classes.
_ALIASES: dict[str, object] = {
    "AnyArray": _Array,
    "By": str,
    "ClusterSearch": Any,
    "Executor": _Executor,
    "FindingKind": str,
    "Prune": bool | str,
    "Source": Any,
    "Span": _HasTimes,
}


class _Names(dict[str, Any]):
    """Namespace in which the annotations of a module are evaluated."""

    def __missing__(self, name: str) -> object:
        return getattr(builtins, name) if hasattr(builtins, name) else _Unloaded(name, (), {})


def _evaluate(annotation: object, names: _Names) -> object:
    return eval(annotation, {}, names) if isinstance(annotation, str) else annotation


def _is_whole(value: object) -> bool:
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, numbers.Integral)):
        return False
    return abs(int(value)) < _MAX_INTEGER


def _is_number(value: object) -> bool:
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
        return False
    # Comparisons with NaN are false, so this also excludes NaN.
    return abs(float(value)) <= _MAX_FLOAT


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike) and bool(os.fspath(value))


_PATH = _Kind("a path", _is_path, "paths")
_FUNCTION = _Kind("a function", callable, "functions")
_NUMBER = _Kind("a number", _is_number, "numbers")
_KINDS: dict[object, _Kind] = {
    None: _Kind("None", lambda value: value is None, "None"),
    bool: _Kind("True or False", lambda value: isinstance(value, bool), "True and False"),
    int: _Kind("a whole number", _is_whole, "whole numbers"),
    float: _NUMBER,
    Fraction: _NUMBER,
    str: _Kind("text", lambda value: isinstance(value, str), "texts"),
    os.PathLike: _PATH,
    Callable: _FUNCTION,
}
# How class names are written in messages.
_WORDS = {
    "ndarray": "array",
    "NDArray": "array",
    "Tensor": "tensor",
    "Path": "path",
    "Place": "place of an index",
    "_Array": "array or a tensor",
    "_Executor": "executor",
    "_HasTimes": "span",
}
# Iterators are read for the check only if they yield these types; other items may not fit into memory, or may depend
# on when they are read.
_LISTABLE = ("a path", "text")


def _kinds_of(annotation: Any) -> list[_Kind]:
    """Return the kinds that an annotation accepts; empty if it accepts anything or if the function itself checks part
    of it."""
    origin, parts = get_origin(annotation) or annotation, get_args(annotation)
    if origin is types.NoneType:
        origin = None
    if origin in (typing.Union, types.UnionType):
        if any(part is os.PathLike or get_origin(part) is os.PathLike for part in parts):
            parts = tuple(part for part in parts if part is not str)
        kinds = [_kinds_of(part) for part in parts]
        return [kind for found in kinds for kind in found] if all(kinds) else []
    if origin is Annotated:
        return [
            _Kind(kind.words, kind.accepts, kind.plural, annotation.__metadata__[0]) for kind in _kinds_of(parts[0])
        ]
    if origin is Literal:
        words = ", ".join(map(repr, parts))
        return [_Kind(f"one of {words}", partial(_is_one_of, parts), words)]
    if origin in _KINDS:
        return [_KINDS[origin]]
    if not isinstance(origin, type) or origin in (object, inspect.Parameter.empty) or origin.__module__ == "typing":
        return []
    if isinstance(origin, _Unloaded):
        return [_FUNCTION] if origin.__name__.startswith("On") else [_class_kind(origin)]
    if issubclass(origin, tuple) and parts and parts[-1] is not ...:
        return [_tuple_kind(parts)]
    if issubclass(origin, Mapping) and parts:
        return [_mapping_kind(parts)]
    if origin.__module__ in ("builtins", "collections.abc") and issubclass(origin, Iterable) and parts:
        return [_list_kind(origin, _kinds_of(parts[0]))]
    return [_class_kind(origin)]


def _is_any_of(kinds: list[_Kind], value: object) -> bool:
    return not kinds or any(kind.accepts(value) for kind in kinds)


def _is_one_of(choices: tuple[object, ...], value: object) -> bool:
    return any(type(value) is type(choice) and value == choice for choice in choices)


def _class_kind(kind: type) -> _Kind:
    name = kind.__name__
    word = _WORDS.get(name, name)
    words = f"{'an' if word[0] in 'AEIOUaeio' else 'a'} {word}"
    plural = f"{word}s" if word != name else f"{name} objects"
    if getattr(kind, "_is_protocol", False):
        protocols = [each for each in kind.__mro__ if getattr(each, "_is_protocol", False)]
        members = {member for each in protocols for member in (*vars(each), *inspect.get_annotations(each))}
        named = [member for member in members if not member.startswith("_")]
        return _Kind(words, lambda value: all(hasattr(value, each) for each in named), plural)
    name = {"NDArray": "ndarray"}.get(name, name)
    if not isinstance(kind, _Unloaded):
        return _Kind(words, lambda value: isinstance(value, kind), plural)
    return _Kind(words, lambda value: any(each.__name__ == name for each in type(value).__mro__), plural)


def _list_kind(origin: type, kinds: list[_Kind]) -> _Kind:
    plural = " or ".join(dict.fromkeys(kind.plural for kind in kinds))
    is_read_once = not issubclass(origin, Collection) and not all(
        kind.words in _LISTABLE for kind in kinds or [_FUNCTION]
    )

    def accepts(value: object) -> bool:
        if is_read_once and isinstance(value, Iterator):
            return True
        # Dictionaries are iterable, but not sequences.
        refused = (str, bytes, os.PathLike, *([Mapping] if issubclass(origin, Sequence) else []))
        if isinstance(value, refused) or not isinstance(value, Collection):
            return False
        return getattr(value, "ndim", 1) > 0 and all(_is_any_of(kinds, each) for each in value)

    return _Kind(f"a list of {plural}" if plural else "a list", accepts, "lists", is_list=True)


def _tuple_kind(parts: tuple[object, ...]) -> _Kind:
    kinds = [_kinds_of(part) for part in parts]
    count = {1: "one", 2: "two", 3: "three", 4: "four"}.get(len(parts), str(len(parts)))
    plural = " and ".join(dict.fromkeys(kind.plural for found in kinds for kind in found)) or "values"

    def accepts(value: object) -> bool:
        return (
            isinstance(value, Sequence)
            and len(value) == len(kinds)
            and all(
                not found or any(kind.accepts(each) for kind in found) for found, each in zip(kinds, value, strict=True)
            )
        )

    return _Kind(f"{count} {plural}", accepts, f"tuples of {count} {plural}")


def _mapping_kind(parts: tuple[object, ...]) -> _Kind:
    keys, values = map(_kinds_of, parts)

    def accepts(value: object) -> bool:
        return isinstance(value, Mapping) and all(
            _is_any_of(found, each)
            for found, entries in ((keys, value.keys()), (values, value.values()))
            for each in entries
        )

    return _Kind("a dictionary", accepts, "dictionaries")


def _check(name: str, value: Any, kinds: list[_Kind]) -> Any:
    for kind in kinds:
        if kind.accepts(value):
            if kind.check is not None:
                kind.check(**{name: value})
            return value
    # An iterator can be consumed only once, so pass the list on to the function.
    if isinstance(value, Iterator) and any(kind.is_list for kind in kinds):
        return _check(name, list(value), kinds)
    accepted = " or ".join(dict.fromkeys(kind.words for kind in kinds))
    raise InvalidArgumentError(f"{name} must be {accepted}, got {_short(value)}")


def _short(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."
