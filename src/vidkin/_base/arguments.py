"""Check the arguments of public functions by their annotations, so that a wrong one is named before any work."""

from __future__ import annotations

import inspect
import numbers
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeGuard, TypeVar

from vidkin.errors import InvalidArgumentError

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")
_Class = TypeVar("_Class", bound=type)

# Whole numbers that every other language can hold as well.
_LARGEST_WHOLE = 1 << 53
_LARGEST = 1e15


def _is_whole(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        return False
    return abs(int(value)) < _LARGEST_WHOLE


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    # NaN is no number, and infinity is none that could be counted or waited for.
    return abs(float(value)) <= _LARGEST


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike) and bool(os.fspath(value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_sized(value: object) -> TypeGuard[Collection[object]]:
    return isinstance(value, list | tuple | set | frozenset | dict)


def _is_paths(value: object) -> bool:
    return _is_sized(value) and all(map(_is_path, value))


def _is_texts(value: object) -> bool:
    return _is_sized(value) and all(map(_is_text, value))


def _are_numbers(value: object) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes) and all(map(_is_number, value))


def _are_two(value: object) -> bool:
    return _is_sized(value) and len(value) == 2 and all(map(_is_whole, value))


def _are_spans(value: object) -> bool:
    return isinstance(value, Sequence) and all(hasattr(each, "start") and hasattr(each, "end") for each in value)


def _is_result(name: str) -> Callable[[object], bool]:
    """Whether a value is of a class of this name, which is not imported for that."""
    return lambda value: any(kind.__name__ == name for kind in type(value).__mro__)


def _are_results(name: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, Sequence) and all(map(_is_result(name), value))


# Part of an annotation -> whether a value is one, and what it is called.
_KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "None": (lambda value: value is None, "None"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "int": (_is_whole, "a whole number"),
    "float": (_is_number, "a number"),
    "Fraction": (_is_number, "a number"),
    "str": (_is_text, "text"),
    # Choices, which functions check themselves.
    "By": (_is_text, "text"),
    "Prune": (lambda value: isinstance(value, bool | str), "True, False or text"),
    "PathLike": (_is_path, "a path"),
    "Sequence[PathLike]": (_is_paths, "a list of paths"),
    "Iterable[PathLike]": (_is_paths, "a list of paths"),
    "Sequence[str]": (_is_texts, "a list of texts"),
    "Iterable[str]": (_is_texts, "a list of texts"),
    "Collection[FindingKind]": (_is_texts, "a list of texts"),
    "Collection[Transition]": (_is_texts, "a list of texts"),
    "Sequence[float]": (_are_numbers, "a list of numbers"),
    "Executor": (lambda value: hasattr(value, "run"), "an executor"),
    "ShotDetector": (lambda value: hasattr(value, "push"), "a detector"),
    "PlanesDetector": (lambda value: hasattr(value, "push_planes"), "a detector"),
    "ShotDetection": (_is_result("ShotDetection"), "the result of a detection"),
    "ProbedVideo": (_is_result("ProbedVideo"), "an open video"),
    "Encoder": (_is_result("Encoder"), "a model"),
    "LabelledSet": (_is_result("LabelledSet"), "a labeled set"),
    "RecurringGroup": (_is_result("RecurringGroup"), "a recurring group"),
    "DetectedCuts": (_is_result("DetectedCuts"), "detected cuts"),
    "Frames": (_is_result("Frames"), "frames"),
    "NDArray[np.float64]": (_is_result("ndarray"), "an array"),
    "tuple[int, int]": (
        lambda value: _is_sized(value) and len(value) == 2 and all(map(_is_whole, value)),
        "two whole numbers",
    ),
    "Collection[str]": (_is_texts, "a list of texts"),
    "Sequence[bool]": (_are_results("bool"), "a list of True and False"),
    "Sequence[Mapping[str, float]]": (_are_results("dict"), "a list of dictionaries"),
    "Sequence[VideoAnnotation]": (_are_results("VideoAnnotation"), "a list of annotations"),
    "Sequence[ShotDetection]": (_are_results("ShotDetection"), "a list of detections"),
    "Sequence[Span]": (_are_spans, "a list of spans"),
    "Sequence[Occurrence]": (_are_results("Occurrence"), "a list of occurrences"),
    "Iterable[DuplicateGroup]": (_are_results("DuplicateGroup"), "a list of groups"),
}


def check_arguments(function: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """The function with a check of each argument whose annotation is made of kinds that are known here.

    These are numbers, texts, paths, callbacks, results, and lists of them. Others are left to the function.

    Raises:
        InvalidArgumentError: Names the argument, what is accepted, and what was given.
    """
    signature = inspect.signature(function)
    kinds = {name: _kinds_of(parameter.annotation) for name, parameter in signature.parameters.items()}
    checked = {name: found for name, found in kinds.items() if found}

    @wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Returned:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            accepted = ", ".join(name for name in signature.parameters if name not in ("self", "cls"))
            raise TypeError(f"{function.__qualname__}() {error}; its arguments are {accepted or 'none'}") from None
        for name, found in checked.items():
            if name in bound.arguments:
                bound.arguments[name] = _check(name, bound.arguments[name], found)
        return function(*bound.args, **bound.kwargs)

    return call


def check_all_arguments(kind: _Class) -> _Class:
    """A class whose public methods check their arguments, see :func:`check_arguments`."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            setattr(kind, name, classmethod(check_arguments(member.__func__)))
        elif inspect.isfunction(member):
            setattr(kind, name, check_arguments(member))
    return kind


def _kinds_of(annotation: object) -> list[tuple[Callable[[object], bool], str]]:
    """What an annotation accepts; nothing where it has a part that is not known here."""
    if not isinstance(annotation, str):
        return []
    if annotation.startswith(("Callable[", "On")):
        is_optional = annotation.endswith(" | None")
        return [(callable, "a function"), *([_KINDS["None"]] if is_optional else [])]
    parts = annotation.replace("str | os.PathLike[str]", "PathLike").split(" | ")
    return [_KINDS[part] for part in parts] if all(part in _KINDS for part in parts) else []


def _check(name: str, value: Any, kinds: list[tuple[Callable[[object], bool], str]]) -> Any:
    # An iterator can be looked at once.
    is_stream = isinstance(value, Iterable) and not isinstance(value, str | bytes | os.PathLike)
    if is_stream and not isinstance(value, Collection) and any(words.startswith("a list") for _, words in kinds):
        value = list(value)
    if not any(accepts(value) for accepts, _ in kinds):
        accepted = " or ".join(dict.fromkeys(words for _, words in kinds))
        raise InvalidArgumentError(f"{name} must be {accepted}, got {_short(value)}")
    return value


def _short(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."
