"""Tracebacks of internal errors, in a file of the index."""

from __future__ import annotations

import logging
import os
from datetime import datetime
from pathlib import Path

__all__ = ["ERRORS_FILE", "FailureLog"]

ERRORS_FILE = "errors.log"

_logger = logging.getLogger(__name__)
# A longer file is started over, so that a bug that affects every file does not fill the disk.
_MOST_BYTES = 4 << 20


class FailureLog:
    """Appends tracebacks to a file; without a file, or if it cannot be written, they are logged.

    Args:
        path: The file, created with the first entry; None for no file.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def write(self, video: str, cause: str, trace: str) -> str:
        """Store a traceback; returns the cause with a note on where the traceback is.

        Args:
            video: The file that was being read.
            cause: One line.
            trace: The traceback.
        """
        # A file name that is not valid text must not make this fail.
        entry = f"{video!a}: {cause}\n{trace}\n"
        if self._path is None:
            _logger.error("%s", entry)
            return cause
        try:
            # Never write through a link that somebody planted there.
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(self._path, flags, 0o666)
            with open(descriptor, "a", encoding="utf-8", errors="backslashreplace") as file:
                if file.tell() > _MOST_BYTES:
                    file.truncate(0)
                file.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {entry}")
        except OSError as error:
            _logger.error("%s cannot be written (%s); the traceback is: %s", self._path, error, entry)
            return cause
        return f"{cause}; traceback in {self._path}"
