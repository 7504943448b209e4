"""The command line, assembled: commands, the version, and how errors end."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from vidkin._version import __version__
from vidkin.cli import benchmark, demo, doctor
from vidkin.cli.console import WarningLines, error_line, note, write_safely
from vidkin.cli.exit import Status, status_of
from vidkin.cli.models import embed, evaluate, train, train_shots, whiten
from vidkin.cli.videos import duplicates, index, info, match, remove, search, shots
from vidkin.errors import VidkinError
from vidkin.rendering.json_values import print_json

__all__ = ["app", "run"]

_WANTS_JSON = "vidkin.json"
# Commands that cannot resume, although the files they have finished stay.
_START_OVER = ("shots", "train-shots")


class _Commands(TyperGroup):
    """Turns what vidkin raises on purpose into one line and an exit status; bugs keep their traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = args[: args.index("--")] if "--" in args else args
        ctx.meta[_WANTS_JSON] = "--json" in options
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except VidkinError as error:
            error_line(str(error))
            raise _exit(ctx, type(error).__name__, str(error), status_of(error)) from None
        except KeyboardInterrupt as interrupt:
            # An interrupted `index` reports how far it got.
            report = getattr(interrupt, "report", None)
            progress = f" ({report})" if report is not None else ""
            purpose = "start over" if ctx.invoked_subcommand in _START_OVER else "resume"
            message = (
                f"Interrupted{progress}. Finished work is saved; run the same command again to {purpose}."
            )
            note(message, style="yellow")
            raise _exit(ctx, "Interrupted", message, Status.INTERRUPTED) from None


def _exit(ctx: Any, kind: str, message: str, status: Status) -> typer.Exit:
    """The exit of a command that failed; with --json standard output gets a document in any case."""
    if ctx.meta[_WANTS_JSON]:
        print_json({"error": {"kind": kind, "message": message, "status": status}})
    return typer.Exit(status)


app = typer.Typer(
    name="vidkin",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(show: bool) -> None:
    if show:
        typer.echo(f"vidkin {__version__}")
        raise typer.Exit


@app.callback()
def vidkin(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Find related video: index a folder, search it with a clip, see where videos match.

    Exit status: 0 done, 1 some inputs failed, 2 usage error, 3 nothing usable, 130 interrupted.
    """
    logger = logging.getLogger("vidkin")
    if not any(isinstance(handler, WarningLines) for handler in logger.handlers):
        logger.addHandler(WarningLines(logging.WARNING))
        logger.propagate = False


app.command("index")(index.index)
app.command("search")(search.search)
app.command("match")(match.match)
app.command("duplicates")(duplicates.duplicates)
app.command("shots")(shots.shots)
app.command("info")(info.info)
app.command("remove")(remove.remove)
app.command("embed")(embed.embed)
app.command("whiten")(whiten.whiten)
app.command("train")(train.train)
app.command("train-shots")(train_shots.train_shots)
app.command("evaluate")(evaluate.evaluate)
app.add_typer(benchmark.app, name="benchmark")
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)


def run() -> None:
    """Parse the command line and run it."""
    write_safely()
    app()
