"""``vidkin open``: a match at its time in the system's video player."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import error_line, note, path_text, plain_text, say
from vidkin.cli.options import (
    DEFAULT_INDEX,
    DeviceOption,
    IndexOption,
    JsonFormat,
    JsonOption,
    MirrorOption,
    WeightsOption,
    check_inputs,
    extractor_name,
    open_index,
    parse_moment,
)
from vidkin.cli.search import is_file
from vidkin.errors import InvalidArgumentError, MediaError, MissingPartError, NotIndexedError
from vidkin.rendering.players import Player, find_player
from vidkin.rendering.text import clock, command_line, print_json
from vidkin.similarity.scale import UNRELATED

# What tells programs of Linux and its relatives where the screen is.
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")


def open_match(
    query: Annotated[Path, typer.Argument(help="What to search for, or with --at the video to open.", metavar="QUERY")],
    rank: Annotated[
        int,
        typer.Option(
            "--rank",
            min=1,
            help="Which match: 1 is the best, as in `vidkin search`.",
        ),
    ] = 1,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            parser=parse_moment,
            metavar="TIME",
            help="Open QUERY itself, at this time: 90, 1:30, 250f.",
        ),
    ] = None,
    player: Annotated[
        str | None,
        typer.Option(
            "--player",
            envvar="VIDKIN_PLAYER",
            hidden=True,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", hidden=True)] = False,
    index: IndexOption = DEFAULT_INDEX,
    mirror: MirrorOption = True,
    model: Annotated[Path | None, typer.Option("--model", "-m", file_okay=False, hidden=True)] = None,
    weights: WeightsOption = None,
    device: DeviceOption = "auto",
    format: JsonOption = JsonFormat.TABLE,
) -> None:
    """Show a match of QUERY in the system's video player, at the time where it matches.

    The player is mpv, vlc, ffplay, or what the desktop opens videos with; `player` in the section [open] of the
    configuration file names another one.
    """
    program = find_player(player)
    path = os.path.abspath(query.expanduser())
    check_inputs(path)
    if at is not None:
        from vidkin.media import time_in

        start = time_in(path, at)
        _check_time(path, start)
    else:
        with open_index(index, extractor=extractor_name(None, model), weights=weights) as collection:
            least = UNRELATED if collection.manifest.has_segments else 0.0
            found = collection.search(path, limit=rank + 1, threshold=least, mirrored=mirror)
        matches = [each for each in found if not is_file(each.path, query)]
        if not matches:
            raise NotIndexedError(f"{query}: nothing similar found; add videos with `vidkin index PATH`")
        if len(matches) < rank:
            raise NotIndexedError(f"{query}: there is no match {rank}, only {len(matches)}; `vidkin search` lists them")
        match = matches[rank - 1]
        path, start = match.path, match.segments[0].target_start if match.segments else 0.0
    if not os.path.exists(path):
        raise MediaError(path, "the file is gone; if it was moved, index the folder it is in now")
    if player is None and not dry_run:
        _check_screen(program)
    command = program.command(path, start)
    # What only starts another program ends at once.
    is_shown = not dry_run and (program.show(path, start) or program.hands_over)
    if format == "json":
        print_json({"path": path, "start": start, "player": program.name, "command": command, "shown": is_shown})
    elif dry_run:
        say(plain_text(command_line(command)))  # one line, to be copied
    elif is_shown:
        say(path_text(path).append(f": opened at {clock(start)} in {program.name}"))
    if not (dry_run or is_shown):
        error_line(
            f"{path}: {program.name} ended at once; run it with the file to see why, or name another player (--player)"
        )
        raise typer.Exit(Status.NOTHING_USABLE)
    if start > 0 and not program.takes_time:
        note(f"{program.name} cannot start at a time; go to {clock(start)} in the video. mpv and vlc can.")


def _check_time(path: str, start: float) -> None:
    """Raise InvalidArgumentError if a time is beyond the end of a video."""
    from vidkin.media import probe

    length = probe(path).duration
    if start > 0 and start >= length > 0:
        raise InvalidArgumentError(f"--at must be before the end of {path}, {clock(length)}, got {clock(start)}")


def _check_screen(player: Player) -> None:
    """Raise MissingPartError if there is no screen on which a player could show anything."""
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in _SCREENS):
        raise MissingPartError(
            f"{player.name} cannot show a video here, there is no screen (DISPLAY and WAYLAND_DISPLAY are not set); "
            "run this on a desktop, name a player that needs none (--player), or use `vidkin serve`"
        )
