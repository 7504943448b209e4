"""The command line, assembled."""

from __future__ import annotations

import typer

__all__ = ["run"]

app = typer.Typer(name="vidkin", no_args_is_help=True, add_completion=False)


@app.callback()
def vidkin() -> None:
    """Find kindred video: index, search, match, duplicates."""


def run() -> None:
    """Parse the command line and run it."""
    app()
