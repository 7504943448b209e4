"""Options that other packages add to vidkin commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

SET_BY_OTHERS = frozenset({"cluster", "store"})
"""Parameters of commands that only options of other packages set: the machines that do the work, and the store of the
features of a new index, each by its name."""

# Options of the package vidkin-scale; they name it if it is not installed.
_OF_SCALE = {"--ray": "cluster", "--shards": "store"}

_GROUP = "vidkin.options"


class ExtraOption(NamedTuple):
    """An option for every command with the parameter that it sets.

    An entry point of the group ``vidkin.options`` leads to it, in a module that is light to import; the name of the
    entry point is the name of the option without dashes.

    Attributes:
        sets: The parameter, one of :data:`SET_BY_OTHERS`.
        declare: Returns the annotation of the option in the command of this name, for example
            ``Annotated[str | None, typer.Option(metavar="HOST:PORT")]``. Its default is None.
        text: Converts the value of the option to the text that the parameter gets.
        value: Pattern of a value, if the option can be used without one, which sets it to ""; a next word that does not
            match is not its value. None if it always has a value.
    """

    sets: str
    declare: Callable[[str], Any]
    text: Callable[[Any], str]
    value: re.Pattern[str] | None = None


def find_extra_options(function: Callable[..., Any]) -> dict[str, ExtraOption]:
    """Return the options that installed packages add to a command, keyed by name."""
    parameters = _parameters_of_others(function)
    if not parameters:
        return {}
    # Reading the entry points of all packages takes a while, and most commands have no such parameter.
    from importlib.metadata import entry_points

    extras = {point.name: point.load() for point in entry_points(group=_GROUP)}
    return {name: extra for name, extra in extras.items() if extra.sets in parameters}


def find_missing_options(function: Callable[..., Any], extras: Mapping[str, ExtraOption]) -> frozenset[str]:
    """Return the options, with dashes, that packages that are not installed would add to a command."""
    parameters = _parameters_of_others(function)
    return frozenset(word for word, sets in _OF_SCALE.items() if sets in parameters and word[2:] not in extras)


def take_extra_options(
    command: str, function: Callable[..., Any], extras: Mapping[str, ExtraOption]
) -> Callable[..., Any]:
    """Wrap the function of a command so that it has these options instead of the parameters that they set."""
    if not _parameters_of_others(function):
        return function
    signature = inspect.signature(function, eval_str=True)
    parameters = [parameter for name, parameter in signature.parameters.items() if name not in SET_BY_OTHERS]
    parameters += [
        inspect.Parameter(
            name.replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=extra.declare(command)
        )
        for name, extra in extras.items()
    ]

    @wraps(function)
    def call(**values: Any) -> Any:
        for name, extra in extras.items():
            value = values.pop(name.replace("-", "_"))
            if value is not None:
                values[extra.sets] = extra.text(value)
        return function(**values)

    call.__dict__["__signature__"] = signature.replace(parameters=parameters)
    return call


def _parameters_of_others(function: Callable[..., Any]) -> frozenset[str]:
    return SET_BY_OTHERS & inspect.signature(function).parameters.keys()


def mark_optional_value(args: Sequence[str], option: str, value: re.Pattern[str]) -> list[str]:
    """Return the arguments of a command line, in which an option without a value becomes ``--option=``.

    Args:
        args: The words.
        option: An option that can be used without a value.
        value: Pattern of its value; any other word after the option is not its value.
    """
    marked = list(args)
    for position, word in enumerate(marked):
        if word == "--":
            break
        if word == option and not any(value.fullmatch(after) for after in marked[position + 1 : position + 2]):
            marked[position] = f"{option}="
    return marked
