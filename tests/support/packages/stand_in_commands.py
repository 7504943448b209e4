"""A command and an option; this module is quick to import, the function behind the command need not be."""

import re
from typing import Annotated

import typer

from vidkin.cli.commands import LazyCommand
from vidkin.cli.extra_options import ExtraOption

COMMAND = LazyCommand("stand_in:say_it", "Echo the word.")

OPTION = ExtraOption(
    sets="cluster",
    declare=lambda command: Annotated[str | None, typer.Option(help=f"Where to {command}.", hidden=command == "index")],
    text=lambda address: f"stand-in:{address or 'there'}",
    value=re.compile("here"),
)
