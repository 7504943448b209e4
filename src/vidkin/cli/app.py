"""The command line, assembled: commands, the version, and how errors end."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import typer

from vidkin._version import __version__
from vidkin.cli.config import config_path, option_defaults, read_sections
from vidkin.cli.exit import Status, status_of
from vidkin.cli.lazy import LazyCommand, LazyGroup, new_app
from vidkin.errors import VidkinError

__all__ = ["app", "run"]

_WANTS_JSON = "vidkin.json"
# Commands that cannot resume, although the files they have finished stay.
_START_OVER = ("shots",)


class _Commands(LazyGroup):
    """Turns what vidkin raises on purpose into one line and an exit status; bugs keep their traceback."""

    table: ClassVar[Mapping[str, LazyCommand]] = {
        "index": LazyCommand(
            "vidkin.cli.videos.index:index", "Add videos to the index; only new and changed files are read."
        ),
        "search": LazyCommand(
            "vidkin.cli.videos.search:search",
            "List the videos that match each QUERY, best first, with the matching times.",
        ),
        "open": LazyCommand(
            "vidkin.cli.videos.open:open_match",
            "Show a match of QUERY in the system's video player, at the time where it matches.",
        ),
        "match": LazyCommand(
            "vidkin.cli.videos.match:match", "Score two videos and show which segments match."
        ),
        "duplicates": LazyCommand(
            "vidkin.cli.videos.duplicates:duplicates",
            "List groups of copies in the index; the best copy of each group is marked.",
        ),
        "apply": LazyCommand(
            "vidkin.cli.videos.apply:apply",
            "Put the spare files of a PLAN from `vidkin duplicates --plan` away; nothing is deleted.",
        ),
        "decisions": LazyCommand(
            "vidkin.cli.videos.decisions:decisions",
            "List the pairs that you marked as duplicates or not, or undo one.",
        ),
        "shots": LazyCommand(
            "vidkin.cli.videos.shots:shots",
            "Find the shots of videos: where each begins and ends, and how it is cut in.",
        ),
        "info": LazyCommand(
            "vidkin.cli.videos.info:info", "Show what the index holds and which extractor made it."
        ),
        "remove": LazyCommand("vidkin.cli.videos.remove:remove", "Remove videos from the index."),
        "embed": LazyCommand(
            "vidkin.cli.models.embed:embed",
            "Write the features of the frames of videos to a safetensors file.",
        ),
        "whiten": LazyCommand(
            "vidkin.cli.models.whiten:whiten",
            "Fit a whitening to your own videos and images, so that edited copies get more similar features.",
        ),
        "train": LazyCommand(
            "vidkin.cli.models.train:train",
            "Train a model from RECIPE, a TOML file with data, model, objective and schedule.",
        ),
        "train-shots": LazyCommand(
            "vidkin.cli.models.train_shots:train_shots",
            "Train a detector on labeled shots: a metric with a rule on its curve, or DeepSBD.",
        ),
        "labels": LazyCommand(
            "vidkin.cli.labels:app",
            "Make labels of shots for `vidkin train-shots`: from SoccerNet-v2, or from several annotators.",
        ),
        "evaluate": LazyCommand(
            "vidkin.cli.models.evaluate:evaluate",
            "Measure how well MODEL orders labeled data: same thing, same kind of thing, something else.",
        ),
        "import-model": LazyCommand(
            "vidkin.cli.models.import_model:import_model",
            "Turn a public checkpoint (ViSiL, DnS, S2VS, HAP-VR) into a model folder.",
        ),
        "export": LazyCommand(
            "vidkin.cli.models.export:export",
            "Write MODEL as one file that runs without vidkin: images or clips in, unit vectors out.",
        ),
        "benchmark": LazyCommand(
            "vidkin.cli.benchmark:app",
            "Compare methods on the same data; each page says what they have in common, and what is reduced.",
        ),
        "doctor": LazyCommand(
            "vidkin.cli.doctor:doctor",
            "Check that every part works on this machine, and the health of the index.",
        ),
        "demo": LazyCommand(
            "vidkin.cli.demo:demo",
            "Build a small collection, then index, search, match and find duplicates in it.",
        ),
    }

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = args[: args.index("--")] if "--" in args else args
        ctx.meta[_WANTS_JSON] = "--json" in options or any(
            name.partition("=")[0] in ("--format", "-f") and "json" in (name.partition("=")[2], value)
            for name, value in pairwise([*options, ""])
        )
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command, with the defaults that the user's configuration gives to its options."""
        name, command, rest = super().resolve_command(ctx, args)
        path = config_path()
        if name is not None and command is not None and (section := read_sections(path).get(name)):
            ctx.default_map = {name: option_defaults(path, name, section, command.params)}
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except VidkinError as error:
            from vidkin.cli.console import error_line

            error_line(str(error))
            raise _exit(ctx, type(error).__name__, str(error), status_of(error)) from None
        except KeyboardInterrupt as interrupt:
            from vidkin.cli.console import note

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
        from vidkin.rendering.json_values import print_json

        print_json({"error": {"kind": kind, "message": message, "status": status}})
    return typer.Exit(status)


app = new_app("vidkin", _Commands)


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
    if not any(isinstance(handler, _WarningLines) for handler in logger.handlers):
        logger.addHandler(_WarningLines(logging.WARNING))
        logger.propagate = False


class _WarningLines(logging.Handler):
    """Prints logged warnings as yellow lines that do not break a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        from vidkin.cli.console import note
        from vidkin.rendering.text import printable

        note(f"Warning: {printable(record.getMessage())}", style="yellow")


def run() -> None:
    """Parse the command line and run it."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # characters that the terminal lacks become question marks
    app()
