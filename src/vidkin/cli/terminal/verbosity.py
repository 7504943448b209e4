"""How much a command says beside its results: one value for the program, set by --quiet and --verbose."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Verbosity", "is_quiet", "is_verbose", "set_verbosity"]


class Verbosity(IntEnum):
    """What goes to standard error: warnings and errors, also notes and progress, or also what is logged."""

    QUIET = -1
    USUAL = 0
    VERBOSE = 1


_current = Verbosity.USUAL


def set_verbosity(verbosity: Verbosity) -> None:
    """Set what all commands print from now on."""
    global _current
    _current = verbosity


def is_quiet() -> bool:
    """Whether only warnings and errors are wanted."""
    return _current == Verbosity.QUIET


def is_verbose() -> bool:
    """Whether everything that is logged is wanted."""
    return _current == Verbosity.VERBOSE
