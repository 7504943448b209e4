"""Exit statuses, and which error leads to which."""

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
    """Exit status of a command."""

    DONE = 0
    SOME_FAILED = 1
    USAGE = 2
    NOTHING_USABLE = 3
    INTERRUPTED = 130


def status_of(error: VidkinError) -> Status:
    """USAGE if another command line would help, NOTHING_USABLE if files or the machine are at fault."""
    if isinstance(error, InvalidArgumentError | UnknownExtractorError | CollectionMismatchError):
        return Status.USAGE
    return Status.NOTHING_USABLE
