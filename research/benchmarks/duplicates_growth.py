"""Scaling of duplicate detection: synthetic features of many videos in a real index, without decoding.

    python research/benchmarks/duplicates_growth.py INDEX [--sizes 1000 3000 10000] [--work FOLDER] [--output FILE.json]
    python research/benchmarks/duplicates_growth.py INDEX --workers 0 1 2 [--sizes 10000] [--work FOLDER] \
        [--output FILE.json]

A synthetic video is a sequence of six scenes, each of them two seconds of a video from INDEX (an index of real videos,
such as the one that duplicates_rate.py makes). The signs of the principal components of a scene are flipped at random,
identically in all views: this preserves the distribution of real features but makes every scene different. Four of five
videos are new; every fifth is a copy of an earlier one, with a cosine of 0.95 or 0.85 in each view, or of 0.95 and
without the first two seconds. Files exist but are empty.

For a first search by stored features, a second one, and one after adding ten videos, the output lists CPU seconds,
number of videos looked up, peak memory, copies grouped, and groups that join different videos. With --workers only the
first search is measured, by wall time including the start of the workers: in one process (0) and with several workers
of a local Ray cluster. All must find the same pairs with the same scores.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin.index import Entry, Index, VideoRecord, window_vectors
from vidkin.index.duplicates.comparisons import Comparisons, present_files
from vidkin.index.duplicates.find import find_duplicates
from vidkin.index.duplicates.pairing import PairSearch
from vidkin.index.query.query import SearchParts
from vidkin.index.storage.decisions import Decisions
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import FrameFeatures
from vidkin_scale.connection import import_ray
from vidkin_scale.ranker import RayRanker

SCENES, FRAMES_A_SCENE, BATCH, EVERY, MORE = 6, 2, 256, 5, 10
COPIES = ((0.95, 0), (0.85, 0), (0.95, 2))  # cosine with the source, number of frames missing at the start


class Composer:
    """Composes videos from the features of real ones."""

    def __init__(self, index: Path, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        with Index.open(index, read_only=True) as opened:
            records = [record for record in opened if record.frames >= FRAMES_A_SCENE]
            stored = [each for each in opened.store.read_many([record.id for record in records]) if parts_of(each)]
        most = max(each.values.shape[1] for each in stored)
        self._videos = [each for each in stored if each.values.shape[1] == most]
        whole = np.concatenate([each.values[:, 0, 0] for each in self._videos]).astype(np.float32)
        self._mean = whole.mean(axis=0)
        self._axes = np.linalg.svd(whole - self._mean, full_matrices=False)[2]  # [D, D], rows

    def video(self) -> FrameFeatures:
        """Compose a video unrelated to all others."""
        parts = []
        for place in range(SCENES):
            source = self._videos[self._random.integers(len(self._videos))]
            first = int(self._random.integers(len(source) - FRAMES_A_SCENE + 1))
            part = source.frames(np.arange(first, first + FRAMES_A_SCENE))
            values = part.values.astype(np.float32)
            signs = self._random.choice([-1.0, 1.0], len(self._axes)).astype(np.float32)
            flipped = self._mean + ((values - self._mean) @ self._axes.T * signs) @ self._axes
            times = place * FRAMES_A_SCENE + np.arange(FRAMES_A_SCENE, dtype=np.float64)
            parts.append(replace(part, values=unit(flipped, values), timestamps=times, end=None, fingerprint=""))
        return FrameFeatures.concatenate(parts)

    def copy(self, source: FrameFeatures, cosine: float, missing: int) -> FrameFeatures:
        """Copy a video, with noise added in each view and without its first frames."""
        noise = self._random.normal(size=source.values.shape).astype(np.float32)
        values = source.values.astype(np.float32)
        noise = unit(noise - (noise * values).sum(-1, keepdims=True) * values, values)
        made = replace(source, values=unit(cosine * values + np.sqrt(1 - cosine**2) * noise, values))
        kept = made.frames(np.arange(missing, len(made)))
        return replace(kept, timestamps=kept.timestamps - kept.timestamps[0])


def parts_of(features: FrameFeatures) -> bool:
    """Whether two successive frames can be used."""
    return len(features) >= FRAMES_A_SCENE


def unit(values: NDArray[np.float32], like: NDArray[np.float32]) -> NDArray[np.float32]:
    """Normalize vectors; those that are zero in the reference, an undescribed part of a frame, stay zero."""
    lengths = np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1e-6)
    return np.asarray(values / lengths * (np.abs(like).max(axis=-1, keepdims=True) > 0), np.float32)


def fill(index: Index, folder: Path, composer: Composer, numbers: range) -> None:
    """Add videos to an index; every fifth is a copy of one of the four before it."""
    entries: list[Entry] = []
    latest: list[tuple[int, FrameFeatures]] = []
    for number in numbers:
        if number % EVERY == EVERY - 1 and latest:
            source, features = latest[number // EVERY % len(latest)]
            kind = COPIES[number // EVERY % len(COPIES)]
            made, name = composer.copy(features, *kind), f"{source:06d}-copy-{number:06d}"
            latest = []
        else:
            made, name = composer.video(), f"{number:06d}"
            latest.append((number, made))
        path = folder / f"{name}.mp4"
        path.touch()
        windows = window_vectors(made)
        facts = {"duration": float(len(made)), "frames": len(made), "windows": len(windows), "sampling_rate": 1.0}
        record = VideoRecord(path=str(path), size=1, mtime_ns=1, content_hash=name, **facts)  # type: ignore[arg-type]
        entries.append(Entry(record, made, windows))
        if len(entries) == BATCH:
            index.store.append_many(entries)
            entries = []
    if entries:
        index.store.append_many(entries)
    index.store.optimize()


def look(folder: Path, workers: int = 0) -> dict[str, Any]:
    """Search an index by its stored features in a separate process; comparisons are saved in the index."""
    logging.getLogger("vidkin").setLevel(logging.ERROR)  # warnings about each pair, since empty files cannot be read
    with ExitStack() as stack:
        index = stack.enter_context(Index.open(folder / "c.vidkin"))
        index.refresh()
        parts: SearchParts = index._parts
        known = Comparisons.open(index.place, parts.state_of_scores())
        before = set(known.searched)
        search = PairSearch(index.store, parts.scorer, known, parts.readings())
        begun, clock = time.process_time(), time.perf_counter()
        if workers:
            search.share_work(stack.enter_context(start_workers(index, workers)), index.worker_spec)
        groups = find_duplicates(present_files(index), search, Decisions.open(index.place), read_files=False)
        seconds, by_clock = time.process_time() - begun, time.perf_counter() - clock
        compared = sum(1 for _ in known.pairs())
    names = [[Path(member.path).stem for member in group.members] for group in groups]
    sources = [{name.split("-")[0] for name in group} for group in names]
    copies = [name for group, found in zip(names, sources, strict=True) for name in group if "copy" in name]
    return {
        "processor s": round(seconds, 1),
        "s": round(by_clock, 1),
        "peak MiB": peak_mib(),
        "videos looked up": len(known.searched - before),
        "pairs scored": compared,
        "copies grouped": len(copies),
        "groups that join different videos": sum(len(found) > 1 for found in sources),
    }


def start_workers(index: Index, count: int) -> RayRanker:
    """Start a local Ray cluster with this many workers."""
    import_ray().init(num_cpus=count, include_dashboard=False, log_to_driver=False, address="local")
    return RayRanker(index.place, shards=count)


def peak_mib() -> int:
    """Peak memory of this process in MiB. `ru_maxrss` is not used, since it includes the peak of the parent process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024)


def link_or_copy(source: str, target: str) -> None:
    """Hard-link files of features and tables, which are replaced but never modified, so that the copy shares them."""
    (os.link if source.endswith((".safetensors", ".lance")) else shutil.copy2)(source, target)


def measure(folder: Path, size: int, source: Path) -> dict[str, Any]:
    """Fill an index unless it exists, search a copy of it for duplicates twice, and again with ten more videos."""
    filled = fill_once(folder, size, source)
    folder = folder / "run"
    share_index(filled, folder)
    figures: dict[str, Any] = {"copies": size // EVERY}
    for what in ("first", "second", "ten more"):
        if what == "ten more":
            with Index.open(folder / "c.vidkin") as index:
                # Uses a different seed, since the first videos are composed only if they do not exist yet.
                fill(index, folder / "files", Composer(source, size + 1), range(size, size + MORE))
        figures[what] = look_apart(folder)
        print(size, what, figures[what], flush=True)
    return figures


def fill_once(folder: Path, size: int, source: Path) -> Path:
    """Return the index with this many videos, and fill it first if necessary."""
    filled = folder / "filled"
    if not (filled / "done").exists():
        shutil.rmtree(filled, ignore_errors=True)
        (filled / "files").mkdir(parents=True)
        with Index.open(filled / "c.vidkin", create=True) as index:
            fill(index, filled / "files", Composer(source, size), range(size))
        (filled / "done").touch()
    return filled / "c.vidkin"


def share_index(filled: Path, folder: Path) -> None:
    """Copy an index to a new folder, sharing its files."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(filled, folder / "c.vidkin", copy_function=link_or_copy)
    (folder / "files").mkdir()


def look_apart(folder: Path, workers: int = 0) -> dict[str, Any]:
    """Run :func:`look` in a separate process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(look, folder, workers).result()


def measure_workers(folder: Path, size: int, source: Path, workers: list[int]) -> dict[str, Any]:
    """Measure the first search with each number of workers; all must find the same pairs."""
    filled, figures, pairs = fill_once(folder, size, source), {}, []
    for count in workers:
        share_index(filled, folder / "run")
        figures[str(count)] = look_apart(folder / "run", count)
        kept = json.loads((folder / "run" / "c.vidkin" / Comparisons.FILE).read_text(encoding="utf-8"))
        pairs.append(kept["pairs"])
        figures[str(count)]["same pairs"] = pairs[-1] == pairs[0]
        print(size, "workers", count, figures[str(count)], flush=True)
    return figures


def main() -> None:
    """Measure each size and print a line per search."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path, help="index of real videos that provides the features")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[1000, 3000, 10000], help="numbers of videos to measure"
    )
    parser.add_argument("--workers", type=int, nargs="+", help="numbers of Ray workers to measure (0: no cluster)")
    parser.add_argument(
        "--work", type=Path, help="working folder for indexes and composed videos (not deleted afterward)"
    )
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp(prefix="vidkin-duplicates-growth-"))
    sizes = {
        size: measure_workers(work / str(size), size, given.index, given.workers)
        if given.workers
        else measure(work / str(size), size, given.index)
        for size in given.sizes
    }
    if given.output:
        document = {"machine": describe_machine(), "sizes": sizes}
        given.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
