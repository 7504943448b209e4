"""All exceptions that vidkin raises deliberately.

::

    VidkinError
    ├── InvalidArgumentError (also ValueError)      an argument is not allowed
    ├── MediaError                                  a file cannot be read as video
    ├── MissingPartError                            an optional package or program is not installed
    ├── ClusterError                                a cluster does not respond or cannot do the work
    ├── DatasetError                                a labeled dataset is incomplete, or its split leaks
    ├── TrainingError                               a training run cannot continue
    ├── ExtractorError                              features cannot be extracted
    │   ├── UnknownExtractorError                   no extractor or model has this name
    │   └── WeightsUnavailableError                 weights are neither cached nor available as a file
    └── CollectionError                             an index does not support the request
        ├── CollectionNotFoundError                 there is no index at this path
        ├── CollectionLockedError                   another process is writing to the index
        ├── CollectionMismatchError                 the index was created with another extractor
        ├── CollectionDamagedError                  part of the index is missing or cannot be read
        ├── IndexClosedError                        the index was closed; open it again
        └── NotIndexedError                         this video is not in the index

Messages include the given value, the accepted values and the remedy.
"""

from __future__ import annotations

import os

__all__ = [
    "ClusterError",
    "CollectionDamagedError",
    "CollectionError",
    "CollectionLockedError",
    "CollectionMismatchError",
    "CollectionNotFoundError",
    "DatasetError",
    "ExtractorError",
    "IndexClosedError",
    "InvalidArgumentError",
    "MediaError",
    "MissingPartError",
    "NotIndexedError",
    "TrainingError",
    "UnknownExtractorError",
    "VidkinError",
    "WeightsUnavailableError",
]


class VidkinError(Exception):
    """Base class of all exceptions that vidkin raises deliberately."""


class InvalidArgumentError(VidkinError, ValueError):
    """An argument is not allowed; the message lists the accepted values."""


class MediaError(VidkinError):
    """A file cannot be read or written as video.

    Attributes:
        path: The file.
        cause: Description of the problem in one line.
        temporary: Whether the cause may be external (drive, memory, permissions), so that reading the same file later
            may succeed.
    """

    def __init__(self, path: str | os.PathLike[str], cause: str, temporary: bool = False) -> None:
        super().__init__(f"{os.fspath(path)}: {cause}")
        self.path = os.fspath(path)
        self.cause = cause
        self.temporary = temporary

    def __reduce__(self) -> tuple[type[MediaError], tuple[str, str, bool]]:
        # By default, pickle would pass only the formatted message when worker processes return these errors.
        return type(self), (self.path, self.cause, self.temporary)


class MissingPartError(VidkinError):
    """An optional package or program is not installed; the message includes the command to install it."""


class ClusterError(VidkinError):
    """A cluster does not respond, or its workers cannot do the work; the message says what to check."""


class DatasetError(VidkinError):
    """A labeled dataset is invalid or incomplete, or its split leaks; the message describes the problem."""


class TrainingError(VidkinError):
    """A training run cannot continue because the loss is not finite, or there is no data left to train on."""


class ExtractorError(VidkinError):
    """Features cannot be extracted as requested."""


class UnknownExtractorError(ExtractorError):
    """No extractor or model has this name."""


class WeightsUnavailableError(ExtractorError):
    """The weights of a network are neither cached nor available as a file.

    Attributes:
        cause: The message without the remedy: which weights are missing, and where they were looked for.
    """

    def __init__(self, message: str, *, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause or message


class CollectionError(VidkinError):
    """An index does not support the request."""


class CollectionNotFoundError(CollectionError):
    """There is no index at this path."""


class CollectionLockedError(CollectionError):
    """Another process is writing to this index."""


class CollectionMismatchError(CollectionError):
    """The index was created with another extractor or other weights, whose features are incompatible."""


class CollectionDamagedError(CollectionError):
    """Part of the index on disk is missing or cannot be read; the message says which part and how to rebuild it."""


class IndexClosedError(CollectionError):
    """The index was closed; open it again."""


class NotIndexedError(CollectionError):
    """This video is not in the index."""
