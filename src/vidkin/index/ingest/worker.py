"""From one file to features: what an executor runs, here or in a process of its own."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidkin.errors import MediaError, VidkinError
from vidkin.index.windows import sampling_rate

if TYPE_CHECKING:
    from vidkin.features import FrameExtractor
    from vidkin.media import VideoInfo
    from vidkin.similarity import FrameFeatures

__all__ = ["FeatureChunk", "WorkerSpec", "cut_off_note", "describe_video", "main"]

# Frames decoded between two signs of life, and frames described at a time: the first is small so that slow
# decoding of large pictures is not mistaken for a hang, the second larger because networks like batches.
_FRAMES_A_BEAT = 4


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """All that a process needs to make features; must survive being sent to it.

    Attributes:
        extractor: Name for :func:`vidkin.features.open_extractor`.
        weights, whitening: Files, or None.
        base_rate: Frames per second of ordinary videos.
        open_extractor: Called as ``open_extractor(name, weights=..., whitening=...)`` instead of the
            registry's, for extractors that are not in it; a function at the top of an importable module.
    """

    extractor: str
    weights: str | None = None
    whitening: str | None = None
    base_rate: float = 1.0
    open_extractor: Callable[..., FrameExtractor] | None = None

    def open(self) -> FrameExtractor:
        """The extractor."""
        if self.open_extractor is not None:
            return self.open_extractor(self.extractor, weights=self.weights, whitening=self.whitening)
        from vidkin.features import open_extractor

        return open_extractor(self.extractor, weights=self.weights, whitening=self.whitening)


@dataclass(frozen=True, slots=True)
class FeatureChunk:
    """Features of consecutive frames.

    Attributes:
        values: [T, R, D] float16.
        timestamps: [T] float64, seconds.
        information: [T] float32.
    """

    values: NDArray[np.float16]
    timestamps: NDArray[np.float64]
    information: NDArray[np.float32]


def cut_off_note(info: VideoInfo) -> str:
    """One line on a file that is :attr:`~vidkin.media.VideoInfo.cut_off`."""
    return f"the file is cut off: {info.duration:.1f} s of {info.stated_duration:.1f} s are there"


def describe_video(
    path: str, extractor: FrameExtractor, base_rate: float, *, beat: Callable[[], None] = lambda: None
) -> Iterator[VideoInfo | FeatureChunk]:
    """What the file is, then its features chunk by chunk; never more than a chunk's frames in memory.

    Args:
        path: Of the file.
        extractor: What makes the features.
        base_rate: Frames per second of ordinary videos, see :func:`~vidkin.index.windows.sampling_rate`.
        beat: Called at least every few frames.

    Raises:
        MediaError: It cannot be read as video.
    """
    from vidkin.features import describe_file
    from vidkin.media import probe

    info = probe(path)
    beat()
    yield info
    for (features,) in describe_file(
        path,
        extractor,
        duration=info.duration,
        rate=sampling_rate(info.duration, base_rate),
        batch=_FRAMES_A_BEAT,
        threads=1,
        beat=beat,
    ):
        yield _chunk(features)


def _chunk(found: FrameFeatures) -> FeatureChunk:
    import torch

    return FeatureChunk(
        found.whole.detach().to("cpu", torch.float16).numpy(),
        found.timestamps.detach().to("cpu", torch.float64).numpy(),
        found.information.detach().to("cpu", torch.float32).numpy(),
    )


def main(descriptor: int) -> None:
    """Life of a worker process: take a specification, then describe file after file until told to stop.

    It gets ``WorkerSpec``, then paths, then None. It answers ("ready",), and for each file
    any number of ("beat",), ("info", VideoInfo) and ("chunk", FeatureChunk), and at the end one of ("done",),
    ("broken", cause) or ("bug", exception, traceback).
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent is told, and ends its workers.
    _die_with_parent()
    import torch

    torch.set_num_threads(1)
    connection = Connection(descriptor)
    try:
        spec: WorkerSpec = connection.recv()
        extractor = _opened(spec, connection)
        if extractor is None:
            return
        while (path := connection.recv()) is not None:
            _work(path, extractor, spec.base_rate, connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)  # The parent is gone: nobody is left to tell.


def _opened(spec: WorkerSpec, connection: Connection) -> FrameExtractor | None:
    try:
        extractor = spec.open()
    except VidkinError as error:
        connection.send(("bug", _portable(error), traceback.format_exc()))
        return None
    connection.send(("ready",))
    return extractor


def _work(path: str, extractor: FrameExtractor, base_rate: float, connection: Connection) -> None:
    try:
        for part in describe_video(path, extractor, base_rate, beat=lambda: connection.send(("beat",))):
            connection.send(("chunk" if isinstance(part, FeatureChunk) else "info", part))
        answer: tuple[Any, ...] = ("done",)
    except MediaError as error:
        answer = ("broken", error.cause)
    except MemoryError:
        answer = ("broken", "needs more memory than there is")
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    # Whatever else it is, it is a bug, and the parent raises it again.
    except Exception as error:  # noqa: BLE001
        answer = ("bug", _portable(error), traceback.format_exc())
    connection.send(answer)


def _portable(error: Exception) -> Exception:
    """The exception itself if it can be sent, or else one that says as much."""
    try:
        pickle.loads(pickle.dumps(error))
    except (pickle.PicklingError, TypeError, AttributeError):
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _die_with_parent() -> None:
    """End this process when the one that started it ends, however it does."""
    parent = os.getppid()
    # Works wherever the decoder lets other threads run.
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None, use_errno=True).prctl(set_parent_death_signal, signal.SIGKILL)


def _watch(parent: int) -> None:
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(1.0)
    os._exit(0)
