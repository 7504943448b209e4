"""A command for `vidkin benchmark`; the module is light, what it names need not be."""

from vidkin.cli.commands import LazyCommand

COMMAND = LazyCommand("stand_in:say_it", "Say what was asked.")
