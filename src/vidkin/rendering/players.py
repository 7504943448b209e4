"""Video players of the system: which one there is, and how to start it at a time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from vidkin.errors import InvalidArgumentError, MissingPartError

# Programs by name, the best first, and the arguments that make them start at a time; none if they cannot.
_START_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "mpv": ("--start={}",),
    "vlc": ("--start-time={}",),
    "ffplay": ("-ss", "{}"),
    "iina": ("--mpv-start={}",),
    "xdg-open": (),
    **({"open": ()} if sys.platform == "darwin" else {}),
}

_HANDING_OVER = ("iina",)

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

    @property
    def hands_over(self) -> bool:
        """Whether it may end at once because it only starts another program, or asks one that runs to show the file."""
        return not self.takes_time or self.name in _HANDING_OVER

    def command(self, path: str, start: float) -> list[str]:
        """The command that plays a video from a time on, or from its start if the player does not accept a time."""
        times = [part.format(f"{start:.3f}") for part in _START_ARGUMENTS.get(self.name, ())]
        # An absolute path is never taken for an option.
        return [*filter(None, [self.program]), *times, os.path.abspath(path)]

    def show(self, path: str, start: float) -> bool:
        """Start the player, and leave it running; False if it ended at once, without an error.

        Raises:
            MissingPartError: It cannot be started, or ends at once with an error.
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
                "name another player (--player)"
            ) from error
        try:
            status = process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return True
        if status != 0:
            raise MissingPartError(f"{self.program} ended with status {status}; name another player (--player)")
        return False


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
