"""``vidkin benchmark``: methods compared on public collections or on your own."""

from __future__ import annotations

import typer

from vidkin.cli.benchmark import copies, critical, retrieval, shots

__all__ = ["app"]

app = typer.Typer(
    name="benchmark",
    help="Compare methods: each one with the same data, number of steps and seeds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("fgvr")(retrieval.fgvr)
app.command("fgir")(retrieval.fgir)
app.command("copies")(copies.copies)
app.command("shots")(shots.shots)
app.command("critical")(critical.critical)
