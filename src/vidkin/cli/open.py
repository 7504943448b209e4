"""``vidkin open``: a match at its time in the system's video player."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from vidkin.cli import options
from vidkin.cli.commands import Status
from vidkin.cli.config import DEFAULT_INDEX
from vidkin.cli.console import error_line, note, path_text, plain_text, print_data, say
from vidkin.cli.options import JsonFormat, rare_option
from vidkin.cli.search import is_file
from vidkin.errors import InvalidArgumentError, MediaError, MissingPartError, NotIndexedError
from vidkin.rendering.players import Player, find_player
from vidkin.rendering.text import clock, command_line
from vidkin.similarity.scale import UNRELATED

# Environment variables of a graphical session on Linux and similar systems.
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")


def open_match(
    query: Annotated[Path, typer.Argument(metavar="QUERY")],
    rank: Annotated[int, typer.Option("--rank", min=1)] = 1,
    at: Annotated[str | None, options.time_option("--at")] = None,
    player: Annotated[str | None, rare_option("--player", envvar="VIDKIN_PLAYER")] = None,
    dry_run: Annotated[bool, rare_option("--dry-run")] = False,
    index: options.IndexOption = DEFAULT_INDEX,
    model: Annotated[Path | None, rare_option("--model", "-m", file_okay=False)] = None,
    weights: options.WeightsOption = None,
    device: options.DeviceOption = "auto",
    format: options.RareJsonOption = JsonFormat.TABLE,
) -> None:
    """Show a match of QUERY in the system's video player, at the time where it matches.

    The player is mpv, vlc, ffplay, or what the desktop opens videos with; `player` in the section [open] of the
    configuration file names another one.

    Args:
        query: What to search for, or with --at the video to open.
        rank: Which match: 1 is the best, as in `vidkin search`.
        at: Open QUERY itself, at this time: 90, 1:30, 250f.
    """
    program = find_player(player)
    path = os.path.abspath(query.expanduser())
    options.check_inputs(path)
    if at is not None:
        from vidkin.media import probe, time_in

        start, length = time_in(path, at), probe(path).duration
        if start > 0 and start >= length > 0:
            raise InvalidArgumentError(f"--at must be before the end of {path}, {clock(length)}, got {clock(start)}")
    else:
        extractor = options.extractor_name(None, model)
        with options.open_index(index, extractor=extractor, weights=weights) as collection:
            lowest = UNRELATED if collection.manifest.has_segments else 0.0
            found = collection.search(path, limit=rank + 1, threshold=lowest)
        matches = [each for each in found if not is_file(each.path, query)]
        if not matches:
            raise NotIndexedError(f"{query}: nothing similar found; add videos with `vidkin index PATH`")
        if len(matches) < rank:
            raise NotIndexedError(f"{query}: no match {rank}, only {len(matches)} found; `vidkin search` lists them")
        match = matches[rank - 1]
        path, start = match.path, match.segments[0].target_start if match.segments else 0.0
    if not os.path.exists(path):
        raise MediaError(path, "the file is gone; if it was moved, index the folder it is in now")
    if player is None and not dry_run:
        _check_screen(program)
    command = program.command(path, start)
    # A program that only starts another program ends immediately.
    is_shown = not dry_run and (program.show(path, start) or program.hands_over)
    facts = {"path": path, "start": start, "player": program.name, "command": command, "shown": is_shown}
    if not print_data(format, facts):
        if dry_run:
            say(plain_text(command_line(command)))
        elif is_shown:
            say(path_text(path), f": opened at {clock(start)} in {program.name}")
    if not (dry_run or is_shown):
        error_line(
            f"{path}: {program.name} ended at once; run it with the file to see why, or name another player (--player)"
        )
        raise typer.Exit(Status.NOTHING_USABLE)
    if start > 0 and not program.takes_time:
        note(f"{program.name} cannot start at a time; go to {clock(start)} in the video. mpv and vlc can.")


def _check_screen(player: Player) -> None:
    """Raise MissingPartError if there is no screen on which a player could show anything."""
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in _SCREENS):
        raise MissingPartError(
            f"{player.name} cannot show a video here, there is no screen (DISPLAY and WAYLAND_DISPLAY are not set); "
            "run this on a desktop, name a player that needs none (--player), or use `vidkin serve`"
        )
