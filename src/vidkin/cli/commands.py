"""Lazy groups of commands, the values of their options, exit statuses and verbosity."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum, IntEnum
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from vidkin._base.registry import missing_scale
from vidkin._base.values import describe_settings
from vidkin.cli.extra_options import find_extra_options, find_missing_options, mark_optional_value, take_extra_options
from vidkin.errors import CollectionMismatchError, InvalidArgumentError, UnknownExtractorError, VidkinError


class LazyCommand(NamedTuple):
    """Where a command is defined, and its line in the help of its group.

    Attributes:
        target: Module and name: ``package.module:function``, ``:app`` or ``:labels_app`` for a group.
        summary: First sentence of its docstring.
        section: Heading above it in the help.
    """

    target: str
    summary: str
    section: str = "Commands"

    @property
    def is_group(self) -> bool:
        """Whether it has commands of its own."""
        return self.target.endswith((":app", "_app"))


class LazyGroup(TyperGroup):
    """A group whose commands are listed in a table, to which other packages can add theirs.

    Attributes:
        built_in: The commands of a subclass by their names, in the order of the help.
        entry_points: Group of entry points of other packages, each named like its command and leading to a
            `LazyCommand` in a module that is light to import; empty: no package adds commands.
    """

    built_in: ClassVar[Mapping[str, LazyCommand]] = {}
    entry_points: ClassVar[str] = ""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _LoadedCommands(self.built_in, self.entry_points)

    @property
    def table(self) -> Mapping[str, LazyCommand]:
        """Each command by its name, those of installed packages last."""
        table: Mapping[str, LazyCommand] = self.commands.table()
        return table

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return list(self.table)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and summaries; imports no command."""
        width = max(map(len, self.table))
        for section in dict.fromkeys(command.section for command in self.table.values()):
            with formatter.section(section):
                formatter.write_dl(
                    [
                        (name.ljust(width), command.summary)
                        for name, command in self.table.items()
                        if command.section == section
                    ]
                )

    def get_params(self, ctx: Any) -> list[Any]:
        """The group's own options."""
        return read_plainly(super().get_params(ctx))


def new_app(name: str, group: type[LazyGroup], *, add_completion: bool = False) -> typer.Typer:
    """An application that shows help as plain text: layout with Rich would take longer than everything else.

    Args:
        name: Name of the command.
        group: The group's commands.
        add_completion: Whether it has options that print and install completion for a shell.
    """
    return typer.Typer(
        name=name,
        cls=group,
        no_args_is_help=True,
        add_completion=add_completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


class _LoadedCommands(Mapping[str, Any]):
    """Commands by name; looking one up imports it."""

    def __init__(self, built_in: Mapping[str, LazyCommand], group: str) -> None:
        self._built_in = built_in
        self._group = group
        self._commands: dict[str, Any] = {}

    def table(self) -> Mapping[str, LazyCommand]:
        """Built-in commands, then those of installed packages."""
        return {**self._built_in, **self._plugin_commands()}

    def __getitem__(self, name: str) -> Any:
        if name not in self._commands:
            # Reading the entry points of all packages takes longer than the help of one command.
            entry = self._built_in.get(name) or self._plugin_commands()[name]
            module, _, attribute = entry.target.partition(":")
            value = getattr(import_module(module), attribute)
            is_group = isinstance(value, typer.Typer)
            self._commands[name] = typer.main.get_command(value) if is_group else _make_command(name, value)
        return self._commands[name]

    def __contains__(self, name: object) -> bool:
        return name in self._built_in or name in self._plugin_commands()

    def __iter__(self) -> Iterator[str]:
        return iter(self.table())

    def __len__(self) -> int:
        return len(self.table())

    def _plugin_commands(self) -> dict[str, LazyCommand]:
        if not self._group:
            return {}
        from importlib.metadata import entry_points

        points = entry_points(group=self._group)
        return {point.name: point.load() for point in points if point.name not in self._built_in}


_TYPE = re.compile(r"<(?:list\[)?(.+?)\]?>(\.\.\.)?")
_WORDS = {
    **dict.fromkeys(("int", "int range"), "N"),
    **dict.fromkeys(("float", "float range"), "NUMBER"),
    **dict.fromkeys(("file", "path", "Path"), "FILE"),
    "dir": "FOLDER",
    "str": "TEXT",
}


def argument_word(argument: Any) -> str:
    """An argument as it stands in a line of usage: ``VIDEO...``, or in brackets where it can be left out."""
    name = (argument.metavar or str(argument.name).upper()).strip("[].")
    word = name if argument.nargs == 1 else f"{name}..."
    return word if argument.required else f"[{word}]"


_WHOLE = re.compile(r"-?[0-9]{1,15}")
_DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")


class _Command(TyperCommand):
    """A command that reads plain values of its options by itself.

    Attributes:
        optional_values: Options that can be used without a value, and what a value of theirs matches.
        missing: Options of a package that is not installed.
    """

    optional_values: Mapping[str, re.Pattern[str]]
    missing: Collection[str]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments after the command."""
        count = args.index("--") if "--" in args else len(args)
        if any("--format" in part.opts for part in self.params):
            # Scripts often try it first; the help names one way only.
            args = ["--format=json" if word == "--json" else word for word in args[:count]] + args[count:]
        for word in args[:count]:
            name = word.partition("=")[0]
            if name in self.missing and not ctx.resilient_parsing and (error := missing_scale(name)) is not None:
                raise error
        for option, value in self.optional_values.items():
            args = mark_optional_value(args, option, value)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options and arguments, `--help` included."""
        return read_plainly(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The text of its usage line."""
        parts: list[Any] = self.params
        arguments = [part for part in parts if part.param_type_name == "argument" and not part.hidden]
        return [*filter(None, [self.options_metavar]), *map(argument_word, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, with descriptions of their values."""
        rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for part in self.get_params(ctx):
            record = part.get_help_record(ctx)
            if record is not None:
                is_argument = part.param_type_name == "argument"
                word = _TYPE.sub(lambda found: _WORDS.get(found[1], found[1]), record[0])
                name = argument_word(part) if is_argument else word
                rows[part.param_type_name].append((name, record[1]))
        for kind, records in rows.items():
            if records:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(records)


def _make_command(name: str, function: Callable[..., Any]) -> Any:
    """The command of a function, with the options that other packages add to it.

    Its docstring is the help: what is below ``Args:`` describes the options and arguments that have no text yet.
    """
    extras = find_extra_options(function)
    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(name, cls=_Command)(take_extra_options(name, function, extras))
    command: Any = typer.main.get_command(single)
    command.optional_values = {f"--{name}": extra.value for name, extra in extras.items() if extra.value is not None}
    command.missing = find_missing_options(function, extras)
    command.help = (inspect.getdoc(function) or "").partition("\n\nArgs:")[0]
    texts = describe_settings(function)
    for part in command.params:
        part.help = part.help or texts.get(part.name)
    return command


def read_plainly(parameters: list[Any]) -> list[Any]:
    """Let options and arguments read plain values by themselves, where this version of typer would use pydantic.

    Importing and setting up pydantic takes a fifth of the time of `vidkin info`.

    Args:
        parameters: Of a command, in another version of typer left as they are; they are also returned.
    """
    for parameter in parameters:
        if hasattr(parameter, "_runtime_param") and hasattr(parameter, "type_descriptor"):
            parameter._runtime_param = _PlainValues()
    return parameters


class _PlainValues:
    """Reads text, numbers, choices and paths as typer does; typer reads all other values, and reports invalid ones."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value passed to the command, from the typed text or its default; called by typer."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        descriptor = param.type_descriptor
        try:
            return _read(value, descriptor.annotation, descriptor.parameter_info)
        except _NotPlainError:
            from typer._coercion import build_runtime_param

            return build_runtime_param(descriptor).coerce(value, param=param, ctx=ctx)


class _NotPlainError(Exception):
    """The value has to be read, or refused, by typer."""


def _read(value: Any, kind: Any, info: Any) -> Any:
    """The value of an option with this annotation and typer's description."""
    items = get_args(kind)
    if get_origin(kind) in (list, tuple):
        if isinstance(value, str) or (get_origin(kind) is tuple and len(value) != len(items)):
            raise _NotPlainError
        kinds = items if get_origin(kind) is tuple else items * len(value)
        return get_origin(kind)(_read(item, each, info) for item, each in zip(value, kinds, strict=True))
    if info.parser is not None:
        try:
            return info.parser(value)
        except (ValueError, AssertionError):
            raise _NotPlainError from None
    if isinstance(kind, type) and issubclass(kind, Enum):
        choice = next((one for one in kind if value is one or value == str(one.value)), None)
        if choice is not None:
            return choice
    elif kind in (int, float):
        return _read_number(value, kind, info)
    elif kind is Path and isinstance(value, str | Path):
        return _check_path(Path(value), info)
    elif kind in (str, bool) and isinstance(value, kind):
        return value
    raise _NotPlainError


def _read_number(value: Any, kind: type, info: Any) -> Any:
    if isinstance(value, str) and (_WHOLE if kind is int else _DECIMAL).fullmatch(value):
        value = kind(value)
    if type(value) is not kind or info.clamp:
        raise _NotPlainError
    if (info.min is not None and value < info.min) or (info.max is not None and value > info.max):
        raise _NotPlainError
    return value


def _check_path(path: Path, info: Any) -> Path:
    is_there, is_file, is_folder = os.path.exists(path), os.path.isfile(path), os.path.isdir(path)
    is_refused = (is_file and not info.file_okay) or (is_folder and not info.dir_okay) or (info.exists and not is_there)
    is_unreadable = is_there and info.readable and not os.access(path, os.R_OK)
    is_special = info.resolve_path or info.allow_dash or info.writable or info.path_type is not None
    if is_refused or is_unreadable or is_special or "\0" in str(path):
        raise _NotPlainError
    return path


def source_of(context: Any, option: str | None) -> str:
    """Where an option has its value from: ``COMMANDLINE``, ``DEFAULT_MAP`` (the configuration file) or ``DEFAULT``."""
    source = context.get_parameter_source(option)
    return "DEFAULT" if source is None else source.name


class Status(IntEnum):
    """Exit status of a command."""

    DONE = 0
    SOME_FAILED = 1
    USAGE = 2
    NOTHING_USABLE = 3
    INTERRUPTED = 130


def status_of(error: VidkinError) -> Status:
    """USAGE if another command line would help, NOTHING_USABLE if files or the machine are at fault."""
    if isinstance(error, InvalidArgumentError | UnknownExtractorError | CollectionMismatchError):
        return Status.USAGE
    return Status.NOTHING_USABLE


class Verbosity(IntEnum):
    """Levels of output on standard error: warnings and errors; also notes and progress; also log messages."""

    QUIET = -1
    USUAL = 0
    VERBOSE = 1


_current = Verbosity.USUAL


def set_verbosity(verbosity: Verbosity) -> None:
    """Set the level of output of all commands from now on."""
    global _current
    _current = verbosity


def is_quiet() -> bool:
    """Whether only warnings and errors are wanted."""
    return _current == Verbosity.QUIET


def is_verbose() -> bool:
    """Whether everything that is logged is wanted."""
    return _current == Verbosity.VERBOSE
