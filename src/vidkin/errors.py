"""Every exception that vidkin raises on purpose.

::

    VidkinError
    ├── InvalidArgumentError (also ValueError)      a value from the caller is not allowed
    ├── MediaError                                  a file cannot be read as video
    ├── MissingPartError                            an optional package or program is not installed
    ├── ClusterError                                a cluster does not answer or cannot do the work
    ├── DatasetError                                a labeled collection lacks a part, or its split leaks
    ├── TrainingError                               a training run cannot continue
    ├── ExtractorError                              features cannot be extracted
    │   ├── UnknownExtractorError                   no extractor or model has this name
    │   └── WeightsUnavailableError                 the weights are neither cached nor given
    └── CollectionError                             the request is impossible with this index
        ├── CollectionNotFoundError                 there is no index at this path
        ├── CollectionLockedError                   another process is writing
        ├── CollectionMismatchError                 the index was made with another extractor
        ├── CollectionDamagedError                  a part of the index is missing or cannot be read
        ├── IndexClosedError                        the index was closed; open it again
        └── NotIndexedError                         this video is not in the index

Messages name the given value, the accepted values, and the remedy.
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
    """Base of all exceptions that vidkin raises on purpose."""


class InvalidArgumentError(VidkinError, ValueError):
    """A value from the caller is not allowed; the message lists the accepted values."""


class MediaError(VidkinError):
    """A file cannot be read (or written) as video.

    Attributes:
        path: The file.
        cause: One line that describes the problem.
        temporary: Whether the cause may lie outside of the file (the drive, memory, permissions), so that reading the
            same file later may succeed.
    """

    def __init__(self, path: str | os.PathLike[str], cause: str, temporary: bool = False) -> None:
        super().__init__(f"{os.fspath(path)}: {cause}")
        self.path = os.fspath(path)
        self.cause = cause
        self.temporary = temporary

    def __reduce__(self) -> tuple[type[MediaError], tuple[str, str, bool]]:
        # Child processes send these errors by pickle, which by default would pass only the joined message.
        return type(self), (self.path, self.cause, self.temporary)


class MissingPartError(VidkinError):
    """An optional package or program is not installed; the message includes the command to install it."""


class ClusterError(VidkinError):
    """A cluster of machines does not answer, or its workers cannot do the work; the message says what to check."""


class DatasetError(VidkinError):
    """A labeled collection is invalid or incomplete, or its split leaks; the message says what is wrong."""


class TrainingError(VidkinError):
    """A training run cannot continue because its loss is not finite, or nothing is left to train on."""


class ExtractorError(VidkinError):
    """Features cannot be extracted as requested."""


class UnknownExtractorError(ExtractorError):
    """No extractor or model has this name."""


class WeightsUnavailableError(ExtractorError):
    """The weights of a network are neither in the cache nor given as a file.

    Attributes:
        cause: The message without the remedy: which weights are missing, and where they were searched for.
    """

    def __init__(self, message: str, *, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause or message


class CollectionError(VidkinError):
    """A request is impossible with this index."""


class CollectionNotFoundError(CollectionError):
    """There is no index at this path."""


class CollectionLockedError(CollectionError):
    """Another process is writing to this index."""


class CollectionMismatchError(CollectionError):
    """The index was made with another extractor or other weights, whose features are incompatible."""


class CollectionDamagedError(CollectionError):
    """A part of the index on disk is missing or cannot be read; the message says which part and how to rebuild it."""


class IndexClosedError(CollectionError):
    """The index was closed; open it again."""


class NotIndexedError(CollectionError):
    """This video is not in the index."""
