"""Video players of the system: find one and start it at a given time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from vidkin.errors import InvalidArgumentError, MissingPartError

# Programs by name, best first, with the arguments that start them at a given time, if they have any.
_START_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "mpv": ("--start={}",),
    "vlc": ("--start-time={}",),
    "ffplay": ("-ss", "{}"),
    "iina": ("--mpv-start={}",),
    "xdg-open": (),
    **({"open": ()} if sys.platform == "darwin" else {}),
}

_HANDING_OVER = ("iina",)

# Windows opens the file itself with the default player; there is no program to start.
_WINDOWS = "Windows"
# Install locations of players that are not on the PATH.
_INSTALLED = {
    "darwin": {
        "vlc": "/Applications/VLC.app/Contents/MacOS/VLC",
        "iina": "/Applications/IINA.app/Contents/MacOS/iina-cli",
    },
    "win32": {"vlc": r"C:\Program Files\VideoLAN\VLC\vlc.exe"},
}

# A player that fails to start exits within this many seconds.
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

    @property
    def hands_over(self) -> bool:
        """Whether it may exit at once because it only starts another program or hands the file to a running one."""
        return not self.takes_time or self.name in _HANDING_OVER

    def command(self, path: str, start: float) -> list[str]:
        """The command that plays a video from a given time, or from its start if the player does not accept a time."""
        times = [part.format(f"{start:.3f}") for part in _START_ARGUMENTS.get(self.name, ())]
        # An absolute path is never taken for an option.
        return [*filter(None, [self.program]), *times, os.path.abspath(path)]

    def show(self, path: str, start: float) -> bool:
        """Start the player and leave it running; False if it exited at once without an error.

        Raises:
            MissingPartError: It cannot be started, or exits at once with an error.
        """
        try:
            if not self.program:
                getattr(os, "startfile")(os.path.abspath(path))  # noqa: B009 - only Windows has it
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
            raise MissingPartError(f"{self.program} ended with status {status}; choose another player (--player)")
        return False


def find_player(name: str | None = None) -> Player:
    """Find a video player on this system.

    Args:
        name: A program; default: the first installed one of mpv, vlc, ffplay, iina and the desktop's file opener.

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
