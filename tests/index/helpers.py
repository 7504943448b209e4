"""Small videos, and an extractor that is fast, deterministic and, for some frames, fatal."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.videos import encode, pan
from vidkin.index import Described, Event, Index, MapHere, MappedJob, Task, Unreadable, WorkerSpec
from vidkin.media import Frames
from vidkin.similarity import FrameFeatures

Boxes = NDArray[np.float32]

NAMES = ("astronaut", "coffee", "chelsea", "rocket", "brick", "grass")
COLORS = {
    "segfault": (255, 0, 0),
    "hang": (0, 255, 0),
    "exit": (0, 0, 255),
    "bug": (255, 255, 0),
    "killed": (0, 255, 255),
}


def units(values: NDArray[Any]) -> NDArray[np.float32]:
    """Scale vectors along the last axis to unit length; zero vectors stay zero."""
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    return (values / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def pooled(images: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Mean-pool an axis into eight parts, with bounds rounded outward."""
    size = images.shape[axis]
    parts = [range(size * part // 8, -(-size * (part + 1) // 8)) for part in range(8)]
    return np.stack([images.take(part, axis).mean(axis) for part in parts], axis)


class Plain:
    """Describes each quadrant of a frame by 16 centered gray levels, [T, 4, 16]."""

    name = "plain"
    fingerprint = "plain-1"
    scorer = "copies"
    describes_boxes = False
    short_side = 64

    def extract(self, frames: Frames, *, boxes: Boxes | None = None) -> FrameFeatures:
        images = frames.images.astype(np.float32).mean(axis=-1)
        small = pooled(pooled(images, 1), 2)
        quadrants = small.reshape(-1, 2, 4, 2, 4).transpose(0, 1, 3, 2, 4).reshape(-1, 4, 16)
        centered = quadrants - quadrants.mean(axis=-1, keepdims=True)
        return FrameFeatures.of_whole(
            units(centered),
            frames.timestamps,
            (images.std(axis=(1, 2)) / 64).clip(0, 1),
            self.fingerprint,
        )


class Fatal(Plain):
    """Like Plain, but frames of certain colors crash the process, hang it, or raise an error."""

    def extract(self, frames: Frames, *, boxes: Boxes | None = None) -> FrameFeatures:
        color = frames.images[0].reshape(-1, 3).astype(float).mean(axis=0)
        for what, wanted in COLORS.items():
            if np.abs(color - wanted).max() < 40:
                self.fail(what)
        return super().extract(frames, boxes=boxes)

    def fail(self, what: str) -> None:
        if what == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif what == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "exit":
            os._exit(3)
        elif what == "hang":
            time.sleep(3600)
        raise ZeroDivisionError("a bug in an extractor")


def open_plain(name: str, **_: object) -> Plain:
    """Factory for ``WorkerSpec.open_extractor``."""
    return Plain()


def open_fatal(name: str, **_: object) -> Fatal:
    """Factory for ``WorkerSpec.open_extractor``."""
    return Fatal()


PLAIN = WorkerSpec("plain", open_extractor=open_plain)
FATAL = WorkerSpec("plain", open_extractor=open_fatal)


def video(path: Path, *, seed: int = 0, frames: int = 10, rate: int = 5) -> Path:
    """Write a video of a camera moving over a photograph (2 s by default); each seed gives a different video."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return encode(path, pan(NAMES[seed % len(NAMES)], frames, width=96, height=64, seed=seed), rate=rate)


def color_video(path: Path, what: str) -> Path:
    """Write a video that triggers a failure of :class:`Fatal`."""
    frame = np.full((64, 96, 3), COLORS[what], np.uint8)
    return encode(path, [frame] * 6, rate=3)


def write_videos(folder: Path, count: int) -> list[str]:
    """Write ``count`` different videos of ten frames and return their paths."""
    return [str(video(folder / f"{seed}.mp4", seed=seed)) for seed in range(count)]


def outcomes_of(events: Iterable[Event]) -> dict[str, Described | Unreadable]:
    """Map each path to its outcome; an executor must report exactly one per path."""
    outcomes = [event for event in events if isinstance(event, Described | Unreadable)]
    assert len({event.path for event in outcomes}) == len(outcomes), "a file ended twice"
    return {event.path: event for event in outcomes}


class Noted(MapHere):
    """Runs the tasks of other machines in this process, and records them."""

    def __init__(self, index: Index, width: int = 2) -> None:
        super().__init__(index.place, index.store, width)
        self.tasks: list[Task] = []

    @property
    def methods(self) -> set[str]:
        return {task.method for task in self.tasks}

    def run(self, job: MappedJob, tasks: Sequence[Task]) -> Iterator[Any]:
        self.tasks += tasks
        return super().run(job, tasks)
