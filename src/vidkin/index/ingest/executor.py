"""The interface of executors, which extract features from files, their events, and an in-process executor.

An executor receives paths and yields events. To implement one, for example for a cluster, send a
:class:`~vidkin.index.WorkerSpec` to each worker, open the extractor there once with
:meth:`~vidkin.index.WorkerSpec.open`, and relay the events of
:func:`~vidkin.index.ingest.executor.describe_video` for each path. Specifications and events can be pickled.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from vidkin._base.arguments import check_constructor
from vidkin.errors import MediaError
from vidkin.features import FrameExtractor, Phase, describe_file
from vidkin.features.sound import Hearing
from vidkin.index.storage.manifest import WorkerSpec
from vidkin.index.storage.records import sampling_rate, to_stored
from vidkin.media.probing import VideoInfo, open_probed
from vidkin.similarity import FrameFeatures
from vidkin.similarity.sound import SoundFeatures


@dataclass(frozen=True, slots=True)
class Advanced:
    """Features of further frames of a video have been extracted.

    Attributes:
        path: Path of the file.
        frames: Number of frames since the last event.
        seconds: Duration of video that these frames cover, in seconds.
    """

    path: str
    frames: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Described:
    """All features of a video have been extracted.

    Attributes:
        path: Path of the file.
        info: Properties of the file.
        features: Features of all frames (at least one), with the precision in which they are stored.
        damage: One-line description of unreadable parts; otherwise empty.
        sound: Audio landmarks of its audio tracks, empty without sound; None if they were not requested.
    """

    path: str
    info: VideoInfo
    features: FrameFeatures
    damage: str = ""
    sound: tuple[SoundFeatures, ...] | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file cannot be read.

    Attributes:
        path: Path of the file.
        cause: One-line description of the cause.
        temporary: Whether the cause may lie outside the file (a killed worker, an unresponsive drive, lack of memory,
            an internal error), so that the next call retries it.
        trace: Traceback of an internal error; otherwise empty.
    """

    path: str
    cause: str
    temporary: bool = False
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Idle:
    """No events are pending, so there is time to write finished results."""


Event = Advanced | Described | Unreadable | Idle


class Executor(Protocol):
    """Extracts features from files, in any order."""

    def run(self, paths: Iterable[str]) -> Iterator[Event]:
        """Yield exactly one :class:`Described` or :class:`Unreadable` for each path, among other events.

        Paths are taken from the iterable only when a worker is free. While there are no other events, an :class:`Idle`
        is yielded at least every second. Unread events block the workers instead of piling up. Closing the iterator
        stops all work.

        Raises:
            VidkinError: No file can be processed, for example because the extractor cannot be opened.
        """


# Number of frames decoded at a time; kept small because large frames take a lot of memory.
_FRAMES_PER_BATCH = 4


@check_constructor
class SerialExecutor:
    """Processes files one at a time in this process, for tests and small jobs.

    If a decoder crashes, this process crashes too; :class:`~vidkin.index.ingest.processes.ProcessExecutor` avoids that.

    Args:
        spec: The extractor and the sampling rate; for an index, :attr:`Index.worker_spec`.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        self._extractor = spec.open()
        self._rate, self._sound = spec.base_rate, spec.sound

    def run(self, paths: Iterable[str]) -> Iterator[Event]:
        for path in paths:
            yield from describe_video(path, self._extractor, self._rate, sound=self._sound)


def describe_video(
    path: str,
    extractor: FrameExtractor,
    base_rate: float,
    *,
    sound: bool = False,
    beat: Callable[[Phase], None] = lambda phase: None,
) -> Iterator[Event]:
    """Extract the features of one file, yielding progress events, then one :class:`Described` or :class:`Unreadable`.

    At most a few dozen decoded frames are in memory, regardless of the length of the video. An unexpected exception is
    reported as :class:`Unreadable`, with its traceback, so that other files are not affected.

    Args:
        path: Path of the file.
        extractor: Extractor of frames or clips.
        base_rate: Sampling rate of ordinary videos in frames per second, see
            :func:`~vidkin.index.storage.records.sampling_rate`.
        sound: Whether to compute audio landmarks in the same pass.
        beat: Callback for every packet read and every change of phase.
    """
    try:
        parts: list[FrameFeatures] = []
        reached = 0.0
        damage: list[str] = []
        with open_probed(path, threads=1, on_read=lambda: beat("decoding")) as video:
            info = video.info
            hearing = Hearing(video) if sound else None
            for part in describe_file(
                video,
                extractor,
                duration=info.duration,
                rate=sampling_rate(info.duration, base_rate),
                batch=_FRAMES_PER_BATCH,
                threads=1,
                beat=beat,
                on_damage=damage.append,
                boxes=True,
            ):
                parts.append(to_stored(part))
                before, reached = reached, float(part.timestamps[-1])
                yield Advanced(path, len(part), max(reached - before, 0.0))
        heard, sound_damage = (None, "") if hearing is None else hearing.finish()
        damage.append(sound_damage)
        if parts:
            yield Described(
                path, info, FrameFeatures.concatenate(parts), "; ".join(dict.fromkeys(filter(None, damage))), heard
            )
        else:
            yield Unreadable(path, "no frame could be decoded")
    except MediaError as error:
        yield Unreadable(path, error.cause, temporary=error.temporary)
    except MemoryError:
        yield Unreadable(path, "needs more memory than is available", temporary=True)
    # An untrusted file can make a library raise any exception, which must not affect other files.
    except Exception as error:  # noqa: BLE001
        yield internal_error(path, error)


def internal_error(path: str, error: Exception) -> Unreadable:
    """Create an event that reports the exception being handled as an internal error, with its traceback."""
    text = " ".join(f"internal error: {type(error).__name__}: {error}".split()).rstrip(": ")
    return Unreadable(path, text, temporary=True, trace=traceback.format_exc())
