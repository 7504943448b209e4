"""A writer that kills itself at a given step, or writes until it is killed. Run by test_session_kill.py."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from vidkin.index import DiskStore, Entry, VectorStore, VideoRecord, open_place, window_vectors
from vidkin.index.storage import store as disk_store
from vidkin.index.storage.feature_files import FeatureFiles
from vidkin.index.storage.video_table import VideoTable
from vidkin.index.storage.window_files import WindowFiles
from vidkin.index.storage.window_index import WindowIndex
from vidkin.similarity import FrameFeatures

VIDEOS = 12


def entry(number: int, *, version: int = 0) -> Entry:
    """Expected content of video ``number``, so that readers can check that it is complete."""
    frames = 3 + number
    generator = np.random.default_rng(1000 * version + number)
    values = generator.standard_normal((frames, 2, 8), np.float32)
    features = FrameFeatures.of_whole(
        (values / np.linalg.norm(values, axis=-1, keepdims=True)).astype(np.float16),
        np.arange(frames, dtype=np.float64),
        np.ones(frames, np.float32),
        baseline=np.zeros(frames, np.float32),
    )
    windows = window_vectors(features)
    record = VideoRecord(
        path=f"/videos/{number}.mp4",
        size=number,
        mtime_ns=version,
        content_hash=f"{number}-{version}",
        frames=frames,
        windows=len(windows),
    )
    return Entry(record, features, windows)


def write(store: VectorStore) -> None:
    """Perform every kind of change: append, replace, remove, optimize, and clean up after an interrupted writer."""
    store.recover()
    for number in range(VIDEOS):
        wanted = entry(number)
        if store.find(wanted.record.path) is None:
            store.append_many([wanted])
    store.append_many([entry(0, version=1)])
    record = store.find("/videos/1.mp4")
    assert record is not None
    store.remove([record.id])
    store.optimize()
    store.append_many([entry(1)])
    store.recover()


def kill_at(table: str, method: str, turn: int, when: str) -> None:
    """Send SIGKILL to this process before or after call ``turn`` of a method of a part of the store."""
    owner = {"features": FeatureFiles, "videos": VideoTable, "windows": WindowFiles, "index": WindowIndex}[table]
    original: Callable[..., Any] = getattr(owner, method)
    calls = 0

    def killing(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == turn and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(self, *args, **kwargs)
        if calls == turn:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, method, killing)


def main(location: str, table: str = "", method: str = "", turn: str = "0", when: str = "") -> None:
    """Write until the given step, or append forever and report the start on standard output."""
    if table:
        kill_at(table, method, int(turn), when)
    # Thresholds low enough for every step to occur.
    disk_store._MAX_DEAD_ROWS, disk_store._MAX_DEAD_RATIO = 0, 0.0
    store = DiskStore(open_place(location), exact_below=10)
    if table:
        write(store)
        return
    store.recover()
    # The first commit creates the files, which may take longer than the time until this process is killed.
    store.append_many([entry(0)])
    sys.stdout.write("writing\n")
    sys.stdout.flush()
    number = 1
    while True:
        store.append_many([entry(number % VIDEOS, version=number // VIDEOS)])
        number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
