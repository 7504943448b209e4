"""A command for `vidkin benchmark`; the module is light, what it names need not be."""

from vidkin.cli.lazy import LazyCommand

COMMAND = LazyCommand("stand_in:say_it", "Say what was asked.")
