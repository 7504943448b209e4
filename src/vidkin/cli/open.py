"""``vidkin open``: a match at its time in the system's video player."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from vidkin.cli.console import note, path_text, say
from vidkin.cli.options import (
    DEFAULT_INDEX,
    IndexOption,
    JsonOption,
    MirrorOption,
    ModelOption,
    WeightsOption,
    extractor_name,
    parse_moment,
)
from vidkin.cli.paths import open_index
from vidkin.errors import InvalidArgumentError, MediaError, MissingPartError, NotIndexedError
from vidkin.rendering.text import clock, command_line, print_json


def open_match(
    query: Annotated[Path, typer.Argument(help="What to search for, or with --at the video to open.", metavar="QUERY")],
    rank: Annotated[
        int, typer.Option("--rank", "-n", min=1, help="Which match: 1 is the best, as in `vidkin search`.")
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
            help="Program that shows the video.",
            show_default="mpv, vlc, ffplay or what the desktop opens videos with",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the command that would be run.")] = False,
    index: IndexOption = DEFAULT_INDEX,
    mirror: MirrorOption = True,
    model: ModelOption = None,
    weights: WeightsOption = None,
    json: JsonOption = False,
) -> None:
    """Show a match of QUERY in the system's video player, at the time where it matches."""
    program = find_player(player)
    path = os.path.abspath(query.expanduser())
    if at is not None:
        from vidkin.media import time_in

        start = time_in(path, at)
    else:
        with open_index(index, extractor=extractor_name(None, model), weights=weights) as collection:
            matches = collection.search(path, limit=rank, mirrored=mirror)
        if not matches:
            raise NotIndexedError(f"{query}: nothing similar found; add videos with `vidkin index PATH`")
        if len(matches) < rank:
            raise NotIndexedError(f"{query}: there is no match {rank}, only {len(matches)}; `vidkin search` lists them")
        path = matches[-1].path
        start = matches[-1].segments[0].target_start if matches[-1].segments else 0.0
    if not os.path.exists(path):
        raise MediaError(path, "the file is gone; if it was moved, index the folder it is in now")
    command = program.command(path, start)
    if not dry_run:
        program.show(path, start)
    if json:
        print_json({"path": path, "start": start, "player": program.name, "command": command})
    elif dry_run:
        say(Text(command_line(command)))  # one line, to be copied
    else:
        say(path_text(path).append(f": opened at {clock(start)} in {program.name}"))
    if start > 0 and not program.takes_time:
        note(f"{program.name} cannot start at a time; go to {clock(start)} in the video. mpv and vlc can.")


# Video players of the system: which one there is, and how to start it at a time.


# Programs by name, the best first, and the arguments that make them start at a time; none if they cannot.
_START_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "mpv": ("--start={}",),
    "vlc": ("--start-time={}",),
    "ffplay": ("-ss", "{}"),
    "iina": ("--mpv-start={}",),
    "xdg-open": (),
    **({"open": ()} if sys.platform == "darwin" else {}),
}

# The player of the desktop of Windows has no program to start: the system opens the file.
_WINDOWS = "Windows"
# Where installers put players that they do not add to the path.
_INSTALLED = {
    "darwin": {
        "vlc": "/Applications/VLC.app/Contents/MacOS/VLC",
        "iina": "/Applications/IINA.app/Contents/MacOS/iina-cli",
    },
    "win32": {"vlc": r"C:\Program Files\VideoLAN\VLC\vlc.exe"},
}

# A player that cannot start ends within so many seconds.
_PATIENCE = 1.0


@dataclass(frozen=True, slots=True)
class Player:
    """A program that shows videos.

    Attributes:
        name: ``mpv``, ``vlc``, ``xdg-open``...
        program: Executable of the player; empty if the system opens the file (Windows).
    """

    name: str
    program: str

    @property
    def takes_time(self) -> bool:
        """Whether it can start at a given second."""
        return bool(_START_ARGUMENTS.get(self.name))

    def command(self, path: str, start: float) -> list[str]:
        """The command that plays a video from a time on, or from its start if the player does not accept a time."""
        times = [part.format(f"{start:.3f}") for part in _START_ARGUMENTS.get(self.name, ())]
        # An absolute path is never taken for an option.
        return [*filter(None, [self.program]), *times, os.path.abspath(path)]

    def show(self, path: str, start: float) -> None:
        """Start the player, and leave it running.

        Raises:
            MissingPartError: It cannot be started, or ends at once with an error.
        """
        try:
            if not self.program:
                getattr(os, "startfile")(os.path.abspath(path))  # noqa: B009 - only Windows has it
                return
            process = subprocess.Popen(
                self.command(path, start),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise MissingPartError(
                f"{self.program or 'the player'} cannot be started ({(error.strerror or str(error)).lower()}); "
                "name another player (--player)"
            ) from error
        try:
            status = process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return
        if status != 0:
            raise MissingPartError(f"{self.program} ended with status {status}; name another player (--player)")


def find_player(name: str | None = None) -> Player:
    """A player of this system.

    Args:
        name: A program; default the first that is there of mpv, vlc, ffplay, iina and what the desktop opens files
            with.

    Raises:
        InvalidArgumentError: There is no program of this name.
        MissingPartError: There is no player at all.
    """
    for candidate in [name] if name is not None else _START_ARGUMENTS:
        installed = _INSTALLED.get(sys.platform, {}).get(candidate, "")
        program = shutil.which(os.path.expanduser(candidate)) or shutil.which(installed)
        if program is not None:
            return Player(os.path.basename(candidate).removesuffix(".exe"), program)
    if name is None and hasattr(os, "startfile"):
        return Player(_WINDOWS, "")
    if name is not None:
        raise InvalidArgumentError(f"player must be an installed program, got {name!r}")
    raise MissingPartError("there is no video player; install mpv or vlc, or name one (--player)")
