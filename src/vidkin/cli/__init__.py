"""The command line: parsing, tables, exit statuses; no algorithms."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``vidkin`` command."""
    from vidkin.cli.interrupts import end_at_once_during_imports

    end_at_once_during_imports()
    from vidkin.cli.app import run

    run()
