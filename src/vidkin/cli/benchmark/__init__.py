"""``vidkin benchmark``: the comparisons of the sources, on data of one's own or on public sets."""

from __future__ import annotations

import typer

from vidkin.cli.benchmark import copies, critical, retrieval, shots

__all__ = ["app"]

app = typer.Typer(
    name="benchmark",
    help="Compare methods as the sources do: every one with the same data, budget and seeds.",
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
