"""Who turns files into features: the contract, and the simple one that does it in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from vidkin.errors import MediaError
from vidkin.index.ingest.worker import FeatureChunk, WorkerSpec, describe_video

if TYPE_CHECKING:
    from vidkin.media import VideoInfo

__all__ = ["Advanced", "Described", "Event", "Executor", "Idle", "SerialExecutor", "Unreadable", "joined"]


@dataclass(frozen=True, slots=True)
class Advanced:
    """A video is under way.

    Attributes:
        path: Of the file.
        frames: More frames described since the last event.
        seconds: More seconds of video covered by them.
    """

    path: str
    frames: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Described:
    """A video is done.

    Attributes:
        path: Of the file.
        info: What the file is.
        features: Of all its frames.
    """

    path: str
    info: VideoInfo
    features: FeatureChunk


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file cannot be read.

    Attributes:
        path: Of the file.
        cause: One line.
    """

    path: str
    cause: str


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing happened for a moment: time to write what is ready."""


Event = Advanced | Described | Unreadable | Idle


class Executor(Protocol):
    """Turns files into features, in whatever order they get done."""

    def run(self, paths: Iterable[str]) -> Iterator[Event]:
        """Exactly one :class:`Described` or :class:`Unreadable` for each path, among other events.

        Paths are taken from the iterable only as they can be worked on. While nothing is done an
        :class:`Idle` comes at least every second. Unread events hold the work up rather than pile up. When
        the iterator is closed, all work ends.

        Raises:
            Exception: What went wrong that was not the file's fault, as it was raised, with a note that
                holds the traceback from where it happened.
        """
        ...


class SerialExecutor:
    """One file after the other, in this process: for tests and where starting processes does not pay.

    A decoder that crashes takes this process with it; see
    :class:`~vidkin.index.ingest.processes.ProcessExecutor`.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        self._extractor = spec.open()
        self._rate = spec.base_rate

    def run(self, paths: Iterable[str]) -> Iterator[Event]:
        for path in paths:
            info: VideoInfo | None = None
            chunks: list[FeatureChunk] = []
            try:
                for part in describe_video(path, self._extractor, self._rate):
                    if isinstance(part, FeatureChunk):
                        yield advanced(path, chunks, part)
                        chunks.append(part)
                    else:
                        info = part
            except MediaError as error:
                yield Unreadable(path, error.cause)
                continue
            assert info is not None  # describe_video gives it first or raises
            yield Described(path, info, joined(chunks))


def joined(chunks: list[FeatureChunk]) -> FeatureChunk:
    """Chunks of one video in order as one."""
    if not chunks:
        return FeatureChunk(np.zeros((0, 0, 0), np.float16), np.zeros(0, np.float64), np.zeros(0, np.float32))
    return FeatureChunk(
        np.concatenate([chunk.values for chunk in chunks]),
        np.concatenate([chunk.timestamps for chunk in chunks]),
        np.concatenate([chunk.information for chunk in chunks]),
    )


def advanced(path: str, before: list[FeatureChunk], new: FeatureChunk) -> Advanced:
    """The event for one more chunk."""
    reached = float(before[-1].timestamps[-1]) if before else 0.0
    return Advanced(path, len(new.timestamps), max(float(new.timestamps[-1]) - reached, 0.0))
