"""The contract of executors, which turn files into features, and the events that they report.

An executor gets paths and yields events. To write one (for a cluster, say): send a :class:`WorkerSpec` to each worker,
open the extractor there once with :meth:`WorkerSpec.open`, and relay the events of
:func:`~vidkin.index.ingest.workers.serial.describe_video` for each path. Everything that is sent can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from vidkin.features import FrameExtractor, open_extractor
from vidkin.media import VideoInfo
from vidkin.similarity import FrameFeatures

__all__ = ["Advanced", "Described", "Event", "Executor", "Idle", "Unreadable", "WorkerSpec"]


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Everything that a worker needs to extract features.

    Attributes:
        extractor: Name for :func:`vidkin.features.open_extractor`.
        weights, whitening: Files, or None.
        base_rate: Frames per second of ordinary videos, see :func:`vidkin.index.sampling_rate`.
        open_extractor: Called as ``open_extractor(name, weights=..., whitening=...)`` instead of the
            registry's, for extractors that are not in it; a function at the top of an importable module.
    """

    extractor: str
    weights: str | None = None
    whitening: str | None = None
    base_rate: float = 1.0
    open_extractor: Callable[..., FrameExtractor] | None = None

    def open(self) -> FrameExtractor:
        """Open the extractor."""
        if self.open_extractor is not None:
            return self.open_extractor(self.extractor, weights=self.weights, whitening=self.whitening)
        return open_extractor(self.extractor, weights=self.weights, whitening=self.whitening)


@dataclass(frozen=True, slots=True)
class Advanced:
    """Features of more frames of a video are ready.

    Attributes:
        path: Path of the file.
        frames: Number of frames since the last event.
        seconds: Seconds of video covered by them.
    """

    path: str
    frames: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Described:
    """A video is done.

    Attributes:
        path: Path of the file.
        info: Properties of the file.
        features: Features of all its frames, at least one; rounded as they are stored.
        damage: One line about parts that could not be read, else "".
    """

    path: str
    info: VideoInfo
    features: FrameFeatures
    damage: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file cannot be read.

    Attributes:
        path: Path of the file.
        cause: One line.
        temporary: Nothing is known to be wrong with the file's bytes (a killed worker, a hung drive, no memory, an
            internal error): the next call reads the file again.
        trace: The traceback of an internal error, else "".
    """

    path: str
    cause: str
    temporary: bool = False
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing happened for a moment: time to write finished results."""


Event = Advanced | Described | Unreadable | Idle


class Executor(Protocol):
    """Turns files into features, in any order."""

    def run(self, paths: Iterable[str]) -> Iterator[Event]:
        """Exactly one :class:`Described` or :class:`Unreadable` for each path, among other events.

        Paths are taken from the iterable only when a worker is free. While nothing happens, an :class:`Idle` is
        yielded at least every second. Unread events block the workers instead of piling up. When the iterator is
        closed, all work ends.

        Raises:
            VidkinError: No file at all can be processed, for example because the extractor cannot be opened.
        """
        ...
