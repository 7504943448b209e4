"""Exit statuses, and which error ends a command with which."""

from __future__ import annotations

from enum import IntEnum

from vidkin.errors import (
    CollectionMismatchError,
    InvalidArgumentError,
    UnknownExtractorError,
    VidkinError,
)

__all__ = ["Status", "status_of"]


class Status(IntEnum):
    """What a command's exit status says."""

    DONE = 0
    SOME_FAILED = 1
    USAGE = 2
    NOTHING_USABLE = 3
    INTERRUPTED = 130


def status_of(error: VidkinError) -> Status:
    """USAGE where another command line would help, NOTHING_USABLE where the files or the machine are at fault."""
    if isinstance(error, InvalidArgumentError | UnknownExtractorError | CollectionMismatchError):
        return Status.USAGE
    return Status.NOTHING_USABLE
