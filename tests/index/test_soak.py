"""Soak test of all operations for any duration: ``pytest --soak-minutes 60 tests/index/test_soak.py``."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

from tests.index.helpers import NAMES
from tests.support.videos import encode, pan
from vidkin.errors import MediaError
from vidkin.index import Index, open_place, repair
from vidkin.shots import detect, split_shots

# Warm-up rounds, and fraction of the time, before memory and descriptors are measured: afterward everything is loaded,
# every pool thread has its heap, and the folder has reached its size.
WARM_ROUNDS, WARM_SHARE = 3, 0.25
LEAST_ROUNDS = 6
# Limit for any duration: allocators return memory late, and the metadata caches of two stores grow to 64 MiB each as
# counted by Lance, which is 1.5 times as much for the allocator.
MOST_GROWTH = (150 + 2 * 96) * 2**20
# The folder must not grow, or memory use would grow with it.
MOST_VIDEOS = 16
MOST_DESCRIPTORS, MOST_THREADS = 8, 4
# A clip of the night sky may have so little detail that it scores 0.8 with itself.
DETAILED = tuple(name for name in NAMES if name != "rocket")


class Folder:
    """Videos that are added, copied, moved, damaged and deleted at random, and the results expected from an index."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.random = np.random.default_rng(seed)
        self.good: dict[str, int] = {}
        self.broken: set[str] = set()
        self._made = self._named = 0
        path.mkdir()

    def _draw(self) -> list[NDArray[np.uint8]]:
        self._made += 1
        return list(pan(DETAILED[self._made % len(DETAILED)], 30, width=96, height=64, seed=self._made))

    def change(self) -> None:
        """Make a random change."""
        kinds = ["new", "new", "copy", "move", "break", "delete", "noise"]
        kind = "delete" if len(self.good) > MOST_VIDEOS else self.random.choice(kinds)
        if kind == "new" or len(self.good) < 4:
            encode(self.path / self._name(), self._draw())
            self.good[self._last] = self._made
        elif kind == "copy":
            source = self._drawn()
            shutil.copy(self.path / source, self.path / self._name())
            self.good[self._last] = self.good[source]
        elif kind == "move":
            source = self._drawn()
            (self.path / source).rename(self.path / self._name())
            self.good[self._last] = self.good.pop(source)
        elif kind == "break":
            (self.path / self._name()).write_bytes(self.random.bytes(5000))
            self.broken.add(self._last)
        elif kind == "delete":
            for names in (self.good, self.broken):
                if names:
                    name = self._drawn(names)
                    (self.path / name).unlink()
                    names.pop(name) if isinstance(names, dict) else names.remove(name)
        else:
            name = self._drawn()
            with (self.path / name).open("ab") as file:
                file.write(bytes(self.random.integers(1, 50)))  # behind the video: read again, as good as before

    def _name(self) -> str:
        self._named += 1
        self._last = f"{self._named:06d}.mp4"
        return self._last

    def _drawn(self, names: dict[str, int] | set[str] | None = None) -> str:
        return str(self.random.choice(sorted(self.good if names is None else names)))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_memory_does_not_grow_and_results_stay_correct(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    seconds = 60 * float(pytestconfig.getoption("--soak-minutes"))
    warm = time.monotonic() + WARM_SHARE * seconds
    deadline = time.monotonic() + seconds
    folder = Folder(tmp_path / "videos", seed=0)
    rounds = warm_rounds = 0
    start = None
    with (
        Index.open(tmp_path / "c.vidkin", extractor="classical", create=True) as index,
        Index.open(tmp_path / "c.vidkin", read_only=True) as reader,
    ):
        while start is None or rounds < LEAST_ROUNDS or time.monotonic() < deadline:
            for _ in range(4):
                folder.change()
            one_round(index, reader, folder, tmp_path, workers=1 + rounds % 2)
            rounds += 1
            if start is None and rounds >= WARM_ROUNDS and time.monotonic() >= warm:
                start = measure()
                warm_rounds = rounds
    assert start is not None
    memory, descriptors, threads = (now - before for now, before in zip(measure(), start, strict=True))
    more = f"{memory / 2**20:.0f} MiB, {descriptors} descriptors and {threads} threads more"
    logging.getLogger(__name__).info("%s after %d rounds", more, rounds - warm_rounds)
    assert memory < MOST_GROWTH
    assert descriptors < MOST_DESCRIPTORS
    assert threads < MOST_THREADS
    assert psutil.Process().children(recursive=True) == []


def one_round(index: Index, reader: Index, folder: Folder, work: Path, *, workers: int) -> None:
    """Index, search, match, group, split and repair; check every result against the folder."""
    report = index.add(folder.path, workers=workers, prune=True)
    assert {os.path.basename(item.path) for item in report.broken} == folder.broken
    known = {os.path.basename(record.path) for record in index if record.status == "ok"}
    assert known == set(folder.good)
    reader.refresh()
    names = sorted(folder.good)
    query = folder.path / str(folder.random.choice(names))
    alike = {name for name in names if folder.good[name] == folder.good[query.name]}
    matches = reader.search(query, limit=len(names))
    assert {os.path.basename(match.path) for match in matches if match.score > 0.99} >= alike
    other = folder.path / str(folder.random.choice(names))
    assert (index.match(query, other).score > 0.99) >= (other.name in alike)
    grouped = [{os.path.basename(member.path) for member in group.members} for group in index.duplicates()]
    if len(alike) > 1:
        assert any(alike <= group for group in grouped)
    for name in folder.broken:
        with pytest.raises(MediaError):
            reader.search(folder.path / name)
    assert len(split_shots(detect(query), work / "pieces").pieces) == 1
    shutil.rmtree(work / "pieces")
    assert repair(open_place(index.path)) == ()
    index.refresh()


def measure() -> tuple[int, int, int]:
    """Memory in bytes, open descriptors, and threads of this process."""
    gc.collect()
    process = psutil.Process()
    return process.memory_info().rss, process.num_fds(), threading.active_count()
