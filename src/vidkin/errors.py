"""Every exception that vidkin raises on purpose, in one file.

::

    VidkinError
    ├── InvalidArgumentError (also ValueError)      a value that the caller gave is not allowed
    ├── MediaError                                  a file that cannot be read as video, with the cause
    ├── MissingPartError                            an optional package or program is not installed
    ├── ClusterError                                a cluster does not answer, or cannot do the work
    ├── DatasetError                                a labeled collection lacks a part, or its split leaks
    ├── TrainingError                               a training run cannot go on
    ├── ExtractorError                              features cannot be made
    │   ├── UnknownExtractorError                   no extractor or model has this name
    │   └── WeightsUnavailableError                 the weights are neither cached nor given
    └── CollectionError                             the index on disk cannot do what was asked
        ├── CollectionNotFoundError                 there is no index at this path
        ├── CollectionLockedError                   another process is writing
        ├── CollectionMismatchError                 the index was made with another extractor
        ├── CollectionDamagedError                  a part of the index is missing or cannot be read
        ├── IndexClosedError                        the index was closed; open it again
        └── NotIndexedError                         this video is not in the index

An error says what was given, what is allowed, and what to do.
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
    """Root of the tree: catch this to catch everything that vidkin raises on purpose."""


class InvalidArgumentError(VidkinError, ValueError):
    """A value given by the caller is not allowed; the message says which are."""


class MediaError(VidkinError):
    """A file cannot be read (or written) as video.

    Attributes:
        path: The file.
        cause: One line that says what is wrong with it.
        temporary: The cause is not known to be in the file's bytes (the drive, memory, permissions): reading the same
            file later may succeed.
    """

    def __init__(self, path: str | os.PathLike[str], cause: str, temporary: bool = False) -> None:
        super().__init__(f"{os.fspath(path)}: {cause}")
        self.path = os.fspath(path)
        self.cause = cause
        self.temporary = temporary

    def __reduce__(self) -> tuple[type[MediaError], tuple[str, str, bool]]:
        # The default would call the class with the joined message alone; child processes send these home.
        return type(self), (self.path, self.cause, self.temporary)


class MissingPartError(VidkinError):
    """An optional package or program is not installed; the message holds the command that installs it."""


class ClusterError(VidkinError):
    """A cluster of machines does not answer, or its workers cannot do the work; the message says what to check."""


class DatasetError(VidkinError):
    """A labeled collection is not as its reader needs it, or its split leaks; the message says what is wrong."""


class TrainingError(VidkinError):
    """A training run cannot continue: its loss is not finite any more, or nothing is left to train on."""


class ExtractorError(VidkinError):
    """Features cannot be made as asked."""


class UnknownExtractorError(ExtractorError):
    """No extractor or model answers to this name."""


class WeightsUnavailableError(ExtractorError):
    """The weights of a network are neither in the cache nor given as a file.

    Attributes:
        cause: Which weights, and where they were looked for: the message without what to do.
    """

    def __init__(self, message: str, *, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause or message


class CollectionError(VidkinError):
    """An index on disk cannot do what was asked."""


class CollectionNotFoundError(CollectionError):
    """There is no index at this path."""


class CollectionLockedError(CollectionError):
    """Another process is writing to this index."""


class CollectionMismatchError(CollectionError):
    """The index was made with another extractor or other weights, which do not mix."""


class CollectionDamagedError(CollectionError):
    """A part of the index on disk is missing or cannot be read; the message says which part and how to rebuild it."""


class IndexClosedError(CollectionError):
    """An index that was closed was asked for something; open it again."""


class NotIndexedError(CollectionError):
    """This video is not in the index."""
