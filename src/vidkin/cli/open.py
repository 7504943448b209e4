"""``vidkin open``: a match at its time in the system's video player."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli.commands import Status
from vidkin.cli.console import error_line, note, path_text, plain_text, say
from vidkin.cli.options import (
    DEFAULT_INDEX,
    DeviceOption,
    IndexOption,
    JsonOption,
    MirrorOption,
    ModelOption,
    WeightsOption,
    check_inputs,
    extractor_name,
    open_index,
    parse_moment,
)
from vidkin.errors import MediaError, NotIndexedError
from vidkin.rendering.players import find_player
from vidkin.rendering.text import clock, command_line, print_json


def open_match(
    query: Annotated[Path, typer.Argument(help="What to search for, or with --at the video to open.", metavar="QUERY")],
    rank: Annotated[
        int | None,
        typer.Option(
            "--rank",
            "-n",
            min=1,
            help="Which match: 1 is the best, as in `vidkin search`.",
            show_default="the best that is not QUERY itself",
        ),
    ] = None,
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
            help="Program that shows the video.",
            show_default="mpv, vlc, ffplay or what the desktop opens videos with",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the command that would be run.")] = False,
    index: IndexOption = DEFAULT_INDEX,
    mirror: MirrorOption = True,
    model: ModelOption = None,
    weights: WeightsOption = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> None:
    """Show a match of QUERY in the system's video player, at the time where it matches."""
    program = find_player(player)
    path = os.path.abspath(query.expanduser())
    check_inputs(path)
    if at is not None:
        from vidkin.media import time_in

        start = time_in(path, at)
    else:
        with open_index(index, extractor=extractor_name(None, model), weights=weights) as collection:
            matches = collection.search(path, limit=rank or 2, mirrored=mirror)
        if not matches:
            raise NotIndexedError(f"{query}: nothing similar found; add videos with `vidkin index PATH`")
        if rank is not None and len(matches) < rank:
            raise NotIndexedError(f"{query}: there is no match {rank}, only {len(matches)}; `vidkin search` lists them")
        own = path
        match = matches[-1] if rank is not None else next((each for each in matches if each.path != own), matches[0])
        path, start = match.path, match.segments[0].target_start if match.segments else 0.0
    if not os.path.exists(path):
        raise MediaError(path, "the file is gone; if it was moved, index the folder it is in now")
    command = program.command(path, start)
    # What only starts another program ends at once.
    is_shown = not dry_run and (program.show(path, start) or program.hands_over)
    if json:
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
