"""The command line: parsing, tables, exit statuses; no algorithms."""

from __future__ import annotations

import os
import signal
from types import FrameType

__all__ = ["main"]

_IMPORT = "<frozen importlib._bootstrap>"
# As `vidkin.cli.commands.Status.INTERRUPTED`; nothing is imported before this works.
_INTERRUPTED = 130


def main() -> None:
    """Entry point of the ``vidkin`` command."""
    end_at_once_during_imports()
    from vidkin.cli.app import run

    run()


def end_at_once_during_imports() -> None:
    """Let Ctrl-C end the process at once while a module is being imported; at other times it raises as usual.

    Torch and NumPy swallow exceptions that are raised during their import and stay incomplete: the program would
    continue, and fail later without a visible cause. Files stay whole, as at any other sudden end.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        caller = frame
        while caller is not None:
            if caller.f_code.co_filename == _IMPORT:
                os.write(2, b"Interrupted.\n")
                os._exit(_INTERRUPTED)
            caller = caller.f_back
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
