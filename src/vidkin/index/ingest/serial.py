"""Files described one after the other in the calling process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from vidkin.errors import MediaError
from vidkin.features import FrameExtractor, describe_file
from vidkin.index.ingest.executor import Advanced, Described, Event, Unreadable, WorkerSpec
from vidkin.index.records import to_stored
from vidkin.index.sampling import sampling_rate
from vidkin.media import probe
from vidkin.similarity import FrameFeatures

__all__ = ["SerialExecutor", "describe_video"]

# Frames decoded between two signs of life: few, so that slow decoding of large frames is not mistaken for a hang.
_FRAMES_A_BEAT = 4


class SerialExecutor:
    """One file after the other, in this process: for tests and where starting processes is not worth it.

    A decoder that crashes takes this process with it; see
    :class:`~vidkin.index.ingest.processes.ProcessExecutor`.

    Args:
        spec: The extractor and the sampling rate, :attr:`Index.worker_spec` for an index.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        self._extractor = spec.open()
        self._rate = spec.base_rate

    def run(self, paths: Iterable[str]) -> Iterator[Event]:
        for path in paths:
            yield from describe_video(path, self._extractor, self._rate)


def describe_video(
    path: str, extractor: FrameExtractor, base_rate: float, *, beat: Callable[[], None] = lambda: None
) -> Iterator[Event]:
    """The events of one file: progress, then one :class:`Described` or :class:`Unreadable`.

    Never more than a few dozen decoded frames are in memory, whatever the length of the video. Features are rounded
    as they are stored.

    Args:
        path: Of the file.
        extractor: Of frames or clips.
        base_rate: Frames per second of ordinary videos, see :func:`~vidkin.index.sampling_rate`.
        beat: Called at least every few decoded frames.
    """
    parts: list[FrameFeatures] = []
    reached = 0.0
    try:
        info = probe(path)
        beat()
        for (part,) in describe_file(
            path,
            extractor,
            duration=info.duration,
            rate=sampling_rate(info.duration, base_rate),
            batch=_FRAMES_A_BEAT,
            threads=1,
            beat=beat,
            views=extractor.views == "both",
        ):
            parts.append(to_stored(part))
            before, reached = reached, float(part.timestamps[-1])
            yield Advanced(path, len(part), max(reached - before, 0.0))
    except MediaError as error:
        yield Unreadable(path, error.cause)
        return
    if parts:
        yield Described(path, info, FrameFeatures.concatenate(parts))
    else:
        yield Unreadable(path, "not a single frame could be decoded")
