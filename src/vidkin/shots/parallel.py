"""Shots of many videos at once, each in its own process."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial

from vidkin.errors import InvalidArgumentError, MediaError
from vidkin.shots.detect import detect
from vidkin.shots.registry import open_detector
from vidkin.shots.shot import TRANSITIONS, ShotDetection, Transition

__all__ = ["detect_many"]


def detect_many(
    paths: Sequence[str | os.PathLike[str]],
    detector: str = "default",
    *,
    types: Collection[Transition] = TRANSITIONS,
    start: float = 0.0,
    end: float | None = None,
    workers: int | None = None,
) -> Iterator[ShotDetection | MediaError]:
    """Find the shots of many videos, several at a time.

    Args:
        paths: The videos.
        detector: A name for `open_detector`; every process opens its own.
        types: Kinds of transitions to report, as in `detect`.
        start: Start in seconds, as in `detect`.
        end: End in seconds, as in `detect`.
        workers: Number of processes; None is one per core. They are started with ``spawn``, so a script that calls
            this needs ``if __name__ == "__main__"``. With one worker, everything runs in this process.

    Yields:
        For each video, in the order of ``paths``, the result of `detect` or the `MediaError` it raises, even if the
        decoder crashes its process.

    Raises:
        InvalidArgumentError: No detector has this name, a kind is unknown, or workers is below 1.
    """
    if workers is not None and workers < 1:
        raise InvalidArgumentError(f"workers must be at least 1, got {workers}")
    open_detector(detector)  # Report a wrong name before any process starts.
    names = [os.fspath(path) for path in paths]
    count = min(workers or os.cpu_count() or 1, len(names))
    one = partial(_detect_one, detector=detector, types=tuple(types), start=start, end=end)
    if count <= 1:
        yield from map(one, names)
        return
    with _pool(count) as pool:
        futures = [pool.submit(one, name) for name in names]
        for name, future in zip(names, futures, strict=True):
            try:
                yield future.result()
            except BrokenProcessPool:
                # One process died, and the pool with it: each remaining video gets a pool of one process.
                with _pool(1) as alone:
                    try:
                        yield alone.submit(one, name).result()
                    except BrokenProcessPool:
                        yield MediaError(name, "the process that read it died")


def _pool(count: int) -> ProcessPoolExecutor:
    import torch

    # The processes share the cores; more threads in one would only wait for those of the others.
    return ProcessPoolExecutor(
        count,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=torch.set_num_threads,
        initargs=(1,),
    )


def _detect_one(
    name: str, *, detector: str, types: tuple[Transition, ...], start: float, end: float | None
) -> ShotDetection | MediaError:
    try:
        return detect(name, detector, types=types, start=start, end=end)
    except MediaError as error:
        return error
