"""The command line, assembled: commands, shell completion, the version, and how errors end."""

from __future__ import annotations

import gc
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import typer
from typer import _completion_shared

from vidkin._base.registry import missing_part, missing_research
from vidkin._version import __version__
from vidkin.cli.commands import LazyCommand, LazyGroup, Status, Verbosity, is_verbose, new_app, set_verbosity, status_of
from vidkin.cli.config import INDEX_CONFIG, config_path, option_defaults, show_defaults
from vidkin.errors import VidkinError

# zsh loads a file of completions at the first Tab and expects that it also completes; typer's only defines a function.
_COMPLETE = '\n[[ ${zsh_eval_context[-1]} == loadautofunc ]] && %(complete_func)s "$@"\n'


def complete_at_first_tab() -> None:
    """Add to typer's script for zsh that it completes when it is loaded; without it, the first Tab does nothing."""
    # Not public: a version of typer without it keeps its own script.
    scripts = getattr(_completion_shared, "_completion_scripts", {})
    if not scripts.get("zsh", _COMPLETE).endswith(_COMPLETE):
        scripts["zsh"] += _COMPLETE


_WANTS_JSON = "vidkin.json"

_HELP = frozenset({"-h", "--help"})

# Options of the program that may stand anywhere.
_ANYWHERE = ("-q", "--quiet", "-v", "--verbose")

_ADDRESS = re.compile(r"(https?|ftps?|sftp|rtsp|rtmp|s3|gs|smb|file)://", re.IGNORECASE)

# New objects after which Python looks for cycles; 700 by default.
_OBJECTS_A_COLLECTION = 50_000

# As `vidkin.index.query.watching.ABANDONED`, which would import the database.
_ABANDONED = "vidkin abandoned reader"

# Commands that cannot resume, although the files they have finished stay.
_START_OVER = ("shots",)

# Loggers of vidkin and of its companion packages.
_LOGGERS = ("vidkin", "vidkin_research", "vidkin_scale")

# Commands of the package vidkin-research; they name it if it is not installed.
_OF_RESEARCH = ("benchmark", "fit", "labels", "train-shots")

_SUMMARIES = {
    "Find": {
        "index": "Add videos to the index; only new and changed files are read.",
        "search": "List the videos that match each QUERY, best first, with the matching times.",
        "open": "Show a match of QUERY in the system's video player, at the time where it matches.",
        "match": "Score two videos and show which segments match.",
        "coverage": "Show which parts of FILM occur in other videos and which are unique.",
    },
    "Copies": {
        "duplicates": "List groups of copies in the index, or in folders; the best copy of each group is marked.",
        "apply": "Move the files of a PLAN from `vidkin duplicates --plan` to the trash; nothing is deleted.",
        "decisions": "Mark pairs of videos as duplicates or not, list what was marked, or undo it.",
    },
    "Shots": {
        "shots": "Find the shots of videos: where each begins and ends, and how it is cut in.",
        "recurring": "Find what videos share, such as openings, recaps and closings, and where it is in each file.",
    },
    "Learn": {
        "train": "Train a model from RECIPE, a TOML file with data, model, objective and schedule.",
        "evaluate": "Measure how well MODEL orders labeled data: same thing, same kind of thing, something else.",
        "classify": "Classify files with a trained MODEL, and show the nearest training items.",
        "embed": "Write the features of the frames of videos to a safetensors file, or to an npz file.",
        "whiten": "Fit a whitening to your own videos and images, so that edited copies get more similar features.",
        "import-model": "Turn a public checkpoint (ViSiL, DnS, S2VS, HAP-VR) into a model folder.",
        "export": "Write MODEL as one file that runs without vidkin: images or clips in, unit vectors out.",
    },
    "Look": {
        "serve": "Show the index in a browser: library, search by example, where videos match.",
        "info": "Show what the index holds and which extractor made it, or check files for damage.",
        "remove": "Remove videos from the index.",
        "doctor": "Check that every part works on this machine, and the health of the index.",
        "demo": "Build a small collection, then index, search, match, find duplicates and cut a film.",
    },
}
# Commands that are not the function of their name in the module of their name.
_TARGETS = {
    "open": "open:open_match",
    "decisions": "apply:decisions",
    "classify": "evaluate:classify",
    "whiten": "embed:whiten",
    "import-model": "export:import_model",
    "remove": "info:remove",
}


class _Commands(LazyGroup):
    """Turns errors of vidkin into one line and an exit status; bugs keep their traceback."""

    entry_points = "vidkin.commands"
    built_in: ClassVar[Mapping[str, LazyCommand]] = {
        name: LazyCommand(f"vidkin.cli.{_TARGETS.get(name, f'{name}:{name}')}", summary, section)
        for section, summaries in _SUMMARIES.items()
        for name, summary in summaries.items()
    }

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # A web address is not a file: say what to do before a command looks for it. The address of an index is fine.
        for before, word in pairwise(["", *args]):
            if _ADDRESS.match(word) and before not in ("--index", "-i"):
                raise typer.BadParameter(
                    f"{word}: vidkin reads files; download it first, or mount the share that holds it"
                )
        options = args[: args.index("--")] if "--" in args else args
        own = [word for word in options if word in _ANYWHERE]
        args = [*own, *(word for word in options if word not in _ANYWHERE), *args[len(options) :]]
        ctx.meta[_WANTS_JSON] = "-fjson" in options or any(
            name.partition("=")[0] in ("--format", "-f") and "json" in (name.partition("=")[2], value)
            for name, value in pairwise([*options, ""])
        )
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command, with the defaults that configuration files give to its options."""
        if args and args[0] in _OF_RESEARCH and args[0] not in self.commands and not ctx.resilient_parsing:
            missing = missing_research(f"vidkin {args[0]}")
            if missing is not None:
                raise missing
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None and not hasattr(command, "commands"):
            try:
                defaults = option_defaults(name, command.params, rest, self.commands)
            except VidkinError:
                # Help and completion work with a file that has a mistake.
                if not ctx.resilient_parsing and _HELP.isdisjoint(rest):
                    raise
            else:
                ctx.default_map = {name: defaults}
                command = show_defaults(command, defaults)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        began = time.monotonic()
        try:
            result = super().invoke(ctx)
            logging.getLogger(__name__).debug("%s took %.1f s", ctx.invoked_subcommand, time.monotonic() - began)
            return result
        except (VidkinError, ModuleNotFoundError) as error:
            failure = _name_command(error, f"vidkin {ctx.invoked_subcommand}")
            if failure is None:
                raise
            from vidkin.cli.console import error_line

            error_line(str(failure))
            raise _exit(ctx, type(failure).__name__, str(failure), status_of(failure)) from None
        except typer.BadParameter as error:
            # Report where a wrong value comes from if it was not typed.
            source = None
            if error.ctx is not None and error.param is not None and error.param.name is not None:
                source = error.ctx.get_parameter_source(error.param.name)
            if source is not None and source.name == "DEFAULT_MAP":
                error.message += f" (a default from {config_path()}, or from {INDEX_CONFIG} of the index)"
            raise
        except KeyboardInterrupt as interrupt:
            from vidkin.cli.console import note

            # An interrupted `index` reports its progress.
            report = getattr(interrupt, "report", None)
            progress = f" ({report})" if report is not None else ""
            purpose = "start over" if ctx.invoked_subcommand in _START_OVER else "resume"
            message = f"Interrupted{progress}. Finished work is saved; run the same command again to {purpose}."
            note(message, style="yellow")
            raise _exit(ctx, "Interrupted", message, Status.INTERRUPTED) from None


def _name_command(error: VidkinError | ModuleNotFoundError, command: str) -> VidkinError | None:
    """The error to report, which names the command if a package of it is missing; None for a bug."""
    cause = error if isinstance(error, ModuleNotFoundError) else error.__cause__
    if isinstance(cause, ModuleNotFoundError) and (cause is error or str(missing_part(cause)) == str(error)):
        named = missing_part(cause, command)
        if named is not None:
            return named
    return error if isinstance(error, VidkinError) else None


def _exit(ctx: Any, kind: str, message: str, status: Status) -> typer.Exit:
    """The exit of a command that failed; with --format json standard output gets a document in any case."""
    if ctx.meta[_WANTS_JSON]:
        from vidkin.rendering.text import print_json

        print_json({"error": {"kind": kind, "message": message, "status": status}})
    return typer.Exit(status)


complete_at_first_tab()

app = new_app("vidkin", _Commands, add_completion=True)


def _show_version(show: bool) -> None:
    if show:
        typer.echo(f"vidkin {__version__}")
        raise typer.Exit


_VERSION_HELP = "Print the version and exit."
_QUIET_HELP = "Show only results, warnings and errors; can also follow the command."
_VERBOSE_HELP = "Show details of the work as well; can also follow the command."


@app.callback()
def vidkin(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help=_VERSION_HELP)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help=_QUIET_HELP)] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help=_VERBOSE_HELP)] = False,
) -> None:
    """Find related video: index a folder, search it with a clip, see where videos match.

    Exit status: 0 done, 1 some inputs failed, 2 usage error, 3 nothing usable, 130 interrupted.
    """
    if quiet and verbose:
        raise typer.BadParameter("use --quiet or --verbose, not both")
    set_verbosity(Verbosity.QUIET if quiet else Verbosity.VERBOSE if verbose else Verbosity.USUAL)
    lines = _LogLines()
    for logger in map(logging.getLogger, _LOGGERS):
        logger.setLevel(logging.DEBUG if verbose else logging.NOTSET)
        for handler in [handler for handler in logger.handlers if isinstance(handler, _LogLines)]:
            logger.removeHandler(handler)
        logger.addHandler(lines)
        logger.propagate = False


class _LogLines(logging.Handler):
    """Prints logged warnings as yellow lines that do not break a progress bar, and with --verbose all messages.

    A command warns once of the same problem of a file, however often it reads the file.
    """

    def __init__(self) -> None:
        super().__init__()
        self._reported: set[tuple[str, str]] = set()

    def emit(self, record: logging.LogRecord) -> None:
        from vidkin.cli.console import note
        from vidkin.rendering.text import printable

        # The message, and below it the traceback of an error that was logged with one.
        first, *rest = (printable(line) for line in self.format(record).splitlines() or [""])
        if record.levelno >= logging.WARNING:
            if record.msg.startswith("%s") and isinstance(record.args, tuple) and record.args:
                subject = (record.name + record.msg, str(record.args[0]))
                if subject in self._reported:
                    return
                self._reported.add(subject)
            for line in (f"Warning: {first}", *rest):
                note(line, style="yellow")
        elif is_verbose():
            for line in (f"{record.name.removeprefix('vidkin.')}: {first}", *rest):
                note(line)


def run() -> None:
    """Parse the command line and run it."""
    # NumPy and torch read these when they are loaded, also in worker processes. Matrix products of a search are small:
    # two threads gain nothing, and on a busy machine the waiting one spins up to twenty times as long as it works.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Imports make some 60,000 lasting objects; collecting them again and again takes a twentieth of a start.
    gc.set_threshold(_OBJECTS_A_COLLECTION, 20, 50)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # characters that the terminal lacks become question marks
    try:
        os.getcwd()
    except FileNotFoundError:
        sys.stderr.write("Error: the current folder was removed; change to another one\n")
        sys.exit(Status.NOTHING_USABLE)
    try:
        app()
    except SystemExit as end:
        # An abandoned reader would delay the end, or be stopped in the middle of a step, which aborts the process.
        if any(thread.name == _ABANDONED for thread in threading.enumerate()):
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(end.code if isinstance(end.code, int) else Status.SOME_FAILED)
        raise
    finally:
        # The last collection, before the interpreter ends, would take as long as printing a table.
        gc.freeze()
