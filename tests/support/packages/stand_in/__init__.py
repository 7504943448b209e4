"""Minimal stand-in for other packages, with one entry in every group of entry points.

Tests of vidkin see this package instead of those in research/ and scale/, so its detectors have names of published
ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import typer

from vidkin.errors import InvalidArgumentError
from vidkin.shots import Curve, DetectedCut, DetectedCuts, RgbFrame


def say_it(word: str) -> None:
    """Echo the word."""
    typer.echo(word)


class Difference:
    """Reports a cut where the mean color difference of neighboring frames rises above a threshold."""

    short_side: int | None = None

    def __init__(self, *, threshold: float = 30.0, min_scene_len: int = 1) -> None:
        self.name = "shotdetect"
        self._threshold = threshold
        self._shortest = min_scene_len
        self._times: list[float] = []
        self._scores: list[float] = []
        self._last: Any = None

    def push(self, frame: RgbFrame) -> None:
        image = frame.image.astype(np.int16)
        self._scores.append(0.0 if self._last is None else float(np.abs(image - self._last).sum(axis=2).mean()))
        self._times.append(frame.time)
        self._last = image

    def finish(self) -> DetectedCuts:
        cuts: list[DetectedCut] = []
        begin = 0
        for frame in range(1, len(self._scores)):
            rise = self._scores[frame] - self._scores[frame - 1]
            if min(self._scores[frame], rise) > self._threshold and frame - begin >= self._shortest:
                cuts.append(DetectedCut(frame, confidence=0.75))
                begin = frame
        return DetectedCuts(tuple(cuts), Curve(np.array(self._times), np.array(self._scores), "difference"))


class Nothing:
    """A detector without settings."""

    short_side = 32

    def __init__(self) -> None:
        self.name = "svd"

    def push(self, frame: RgbFrame) -> None:
        pass

    def finish(self) -> DetectedCuts:
        return DetectedCuts(())


def open_levels(name: str, *, weights: Any, whitening: Any, device: str) -> Any:
    """Open an extractor that returns the colors of a frame on a 4 x 4 grid."""
    from vidkin.features import features_of_views

    class Levels:
        short_side = 32
        scorer = "kinds"
        describes_boxes = False
        fingerprint = "stand-in-1"

        def extract(self, frames: Any, *, boxes: Any = None) -> Any:
            def describe(images: Any) -> Any:
                bands = [band for rows in np.array_split(images, 4, axis=1) for band in np.array_split(rows, 4, axis=2)]
                grid = np.concatenate([band.mean(axis=(1, 2), dtype=np.float32) for band in bands], axis=1) - 100
                return (grid / np.linalg.norm(grid, axis=1, keepdims=True))[:, None]

            return features_of_views(describe, frames, self.fingerprint, boxes=boxes)

    levels = Levels()
    levels.name = name  # type: ignore[attr-defined]
    return levels


def read_stand_in(source: Any, *, validation: float = 0.0) -> Any:
    """Read a labeled collection from folders of classes."""
    from vidkin.datasets import read_classes

    return read_classes(source)


def all_alike(name: str, images: Any, categories: Any) -> Any:
    """Relevance of 1 for images of the same category."""
    return (categories[:, None] == categories[None]).float()


def open_stand_in(scheme: str, root: str) -> Any:
    """Open a local folder by address: ``standin://tmp/films`` is ``/tmp/films``."""
    from vidkin.index import LocalPlace

    return LocalPlace(Path("/", root))


class StandInCluster:
    """A cluster that consists of this machine; records the calls it receives."""

    asked: ClassVar[list[str]] = []

    def __init__(self, address: str | None) -> None:
        self.address = address

    def executor(self, spec: Any, *, workers: int | None = None) -> Any:
        from vidkin.index import SerialExecutor

        self.asked.append(f"executor {self.address} {workers}")
        return SerialExecutor(spec)

    def search(self, place: Any) -> StandInSearch:
        self.asked.append(f"search {self.address}")
        return StandInSearch(place)


class StandInSearch:
    """Searches and compares in this process, simulating other machines."""

    width = 2

    def __init__(self, place: Any) -> None:
        self.place = place

    def attach(self, store: Any) -> None:
        from vidkin.index import MapHere

        self._mapper = MapHere(self.place, store)

    def __call__(self, *words: Any) -> Any:
        from vidkin.index import score_candidates

        StandInCluster.asked.append("score")
        return score_candidates(*words)

    def run(self, job: Any, tasks: Any) -> Iterator[Any]:
        StandInCluster.asked.append("run")
        return self._mapper.run(job, tasks)

    def close(self) -> None:
        StandInCluster.asked.append("close")


def train_nothing(labels: Any, recipe: Any = None, *, output: Any, resume: bool, on_progress: Any = None) -> Any:
    """A trainer of shot detectors that returns its arguments."""
    return [labels, recipe, output, resume]


def __getattr__(name: str) -> Any:
    # Created on first use, because the modules are slow to import.
    if name == "STORE":
        from vidkin.index import DiskStore, StoreKind

        def places(place: Any, address: str | None) -> list[Any]:
            if address not in (None, "1"):
                raise InvalidArgumentError(f"a stand-in has one part, got {address}")
            return [place]

        return StoreKind(open=lambda place, manifest: DiskStore(place), places=places)
    raise AttributeError(name)
