"""Groups of commands that are imported when they are used, so that `vidkin --help` answers at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperGroup

__all__ = ["LazyCommand", "LazyGroup", "new_app"]


class LazyCommand(NamedTuple):
    """Where a command is, and its line in the help of its group.

    Attributes:
        place: Module and name: ``package.module:function``, or ``:app`` for a group.
        summary: First sentence of its docstring.
    """

    place: str
    summary: str

    @property
    def is_group(self) -> bool:
        """Whether it has commands of its own."""
        return self.place.endswith(":app")


class LazyGroup(TyperGroup):
    """A group whose commands are listed in a table. A subclass sets ``table``.

    Attributes:
        table: Name of each command, in the order of the help, and where it is.
    """

    table: ClassVar[Mapping[str, LazyCommand]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Loaded(self.table)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return list(self.table)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and summaries; imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in self.table.items()])


def new_app(name: str, group: type[LazyGroup], *, add_completion: bool = False) -> typer.Typer:
    """An application that shows help as plain text: laying it out with Rich would take longer than all the rest.

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


class _Loaded(Mapping[str, Any]):
    """Commands by name; looking one up imports it."""

    def __init__(self, table: Mapping[str, LazyCommand]) -> None:
        self._table = table
        self._commands: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._commands:
            module, _, attribute = self._table[name].place.partition(":")
            value = getattr(import_module(module), attribute)
            if not isinstance(value, typer.Typer):
                single = typer.Typer(
                    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
                )
                single.command(name)(value)
                value = single
            self._commands[name] = typer.main.get_command(value)
        return self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)
