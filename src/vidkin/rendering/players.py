"""Find an installed video player and start it at a given time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from vidkin.errors import InvalidArgumentError, MissingPartError

# Players by name, in order of preference, with the arguments to start at a given time, if supported.
_START_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "mpv": ("--start={}",),
    "vlc": ("--start-time={}",),
    "ffplay": ("-ss", "{}"),
    "iina": ("--mpv-start={}",),
    "xdg-open": (),
    **({"open": ()} if sys.platform == "darwin" else {}),
}

_HANDING_OVER = ("iina",)

# On Windows, the system opens the file with the default player, so there is no program to start.
_WINDOWS = "Windows"
# Locations of players whose installers do not add them to the PATH.
_INSTALLED = {
    "darwin": {
        "vlc": "/Applications/VLC.app/Contents/MacOS/VLC",
        "iina": "/Applications/IINA.app/Contents/MacOS/iina-cli",
    },
    "win32": {"vlc": r"C:\Program Files\VideoLAN\VLC\vlc.exe"},
}

# Seconds to wait for a player that fails to start to exit.
_PATIENCE = 1.0


@dataclass(frozen=True, slots=True)
class Player:
    """A video player.

    Attributes:
        name: ``mpv``, ``vlc``, ``xdg-open``, etc.
        program: Path of the executable; empty if the system opens the file (Windows).
    """

    name: str
    program: str

    @property
    def takes_time(self) -> bool:
        """Whether the player can start at a given time."""
        return bool(_START_ARGUMENTS.get(self.name))

    @property
    def hands_over(self) -> bool:
        """Whether the program may exit immediately because it hands the file to another program."""
        return not self.takes_time or self.name in _HANDING_OVER

    def command(self, path: str, start: float) -> list[str]:
        """Return the command to play a video from a given time, or from the beginning if that is not supported."""
        times = [part.format(f"{start:.3f}") for part in _START_ARGUMENTS.get(self.name, ())]
        # An absolute path cannot be mistaken for an option.
        return [*filter(None, [self.program]), *times, os.path.abspath(path)]

    def show(self, path: str, start: float) -> bool:
        """Start the player and leave it running; return False if it exited immediately without an error.

        Raises:
            MissingPartError: The player cannot be started, or exits immediately with an error.
        """
        try:
            if not self.program:
                getattr(os, "startfile")(os.path.abspath(path))  # noqa: B009 - exists only on Windows
                return True
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
                "choose another player (--player)"
            ) from error
        try:
            status = process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return True
        if status != 0:
            raise MissingPartError(f"{self.program} exited with status {status}; choose another player (--player)")
        return False


def find_player(name: str | None = None) -> Player:
    """Find a video player on this system.

    Args:
        name: Name or path of a program; default: the first of mpv, vlc, ffplay, iina and the desktop's file opener
            that is installed.

    Raises:
        InvalidArgumentError: No program of this name is installed.
        MissingPartError: No player was found.
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
    raise MissingPartError("no video player was found; install mpv or vlc, or choose one (--player)")
