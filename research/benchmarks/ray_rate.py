"""Indexing speed on a Ray cluster with 1, 2 and 4 workers, compared with the processes of `vidkin index`.

    python research/benchmarks/ray_rate.py FOLDER [FOLDER...] [--workers 1 2 4] \
        [--output research/results/ray_rate.json]
    python research/benchmarks/ray_rate.py FOLDER [FOLDER...] --duplicates \
        [--output research/results/ray_duplicates.json]

A local Ray cluster, with as many CPUs as the largest number of workers, runs all the time. For each number of workers,
interleaved, the same files are indexed into a new index, on Ray and in processes; the start of the workers (the time to
index one tiny file) is measured separately and subtracted. Efficiency is the speedup over one worker, divided by the
number of workers that can have their own CPU. The contents of all indexes must be the same. With --duplicates the files
are indexed once, and duplicates are searched for without saved comparisons: in one process, and with each number of
workers on Ray, which are started before the measurement. The groups must be the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from vidkin.index import Executor, Index, ProcessExecutor, WorkerSpec
from vidkin.index.duplicates.comparisons import Comparisons
from vidkin.media import probe, write_video
from vidkin.rendering.machine import describe_machine
from vidkin_scale.connection import import_ray
from vidkin_scale.executor import RayExecutor
from vidkin_scale.ranker import RayRanker

SUFFIXES = {".mp4", ".mkv", ".webm", ".mov", ".avi"}


def executor(kind: str, spec: WorkerSpec, workers: int) -> Executor:
    return RayExecutor(spec, workers=workers) if kind == "ray" else ProcessExecutor(spec, workers=workers)


def index_seconds(kind: str, workers: int, files: list[Path]) -> tuple[float, dict[str, bytes]]:
    """Index the files into a new index; return wall seconds and the features of each file."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Index.open(Path(folder) / "c.vidkin", create=True) as index,
    ):
        started = time.perf_counter()
        report = index.add(files, executor=executor(kind, index.worker_spec, workers))
        seconds = time.perf_counter() - started
        if report.broken:
            raise SystemExit(f"cannot be read: {report.broken}")
        content = {record.path: index.store.read(record.id).values.tobytes() for record in index.videos()}
    return seconds, content


def duplicates_seconds(index_folder: Path, workers: int) -> tuple[float, object]:
    """Search for duplicates for the first time, in this process for 0 workers; return wall seconds and groups."""
    (index_folder / Comparisons.FILE).unlink(missing_ok=True)
    with ExitStack() as stack:
        index = stack.enter_context(Index.open(index_folder, read_only=True))
        if workers:
            ranker = stack.enter_context(RayRanker(index.place, shards=workers))
            # A search for one of the indexed videos waits until all workers are available.
            index.on_cluster(ranker).search(index.videos()[0].path)
        started = time.perf_counter()
        groups = index.duplicates()
        return time.perf_counter() - started, list(groups)


def measure_duplicates(files: list[Path], workers: list[int], repeat: int) -> dict[str, object]:
    """Seconds by number of workers, and whether all groups are equal."""
    seconds: dict[int, list[float]] = {count: [] for count in (0, *workers)}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        with Index.open(Path(folder) / "c.vidkin", create=True) as index:
            index.add(files)
        for _ in range(repeat):
            for count, measured in seconds.items():
                taken, groups = duplicates_seconds(Path(folder) / "c.vidkin", count)
                measured.append(taken)
                found.append(groups)
    one = statistics.median(seconds[workers[0]])
    rows = []
    for count, measured in seconds.items():
        speedup = one / statistics.median(measured)
        shared = min(count, os.cpu_count() or 1) / workers[0]
        rows.append({"workers": count, "seconds": measured, "efficiency": speedup / shared if count else None})
        print(json.dumps(rows[-1]))
    return {"files": len(files), "same_groups": all(groups == found[0] for groups in found), "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--duplicates", action="store_true")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    files = sorted(p for f in arguments.folders for p in f.rglob("*") if p.suffix.lower() in SUFFIXES)
    video_seconds = sum(probe(path).duration for path in files)
    ray = import_ray()
    ray.init(num_cpus=max(arguments.workers), include_dashboard=False, log_to_driver=False, address="local")
    if arguments.duplicates:
        result = {"machine": describe_machine(), **measure_duplicates(files, arguments.workers, arguments.repeat)}
        print(f"same groups: {result['same_groups']}")
        if arguments.output:
            arguments.output.write_text(json.dumps(result, indent=1) + "\n")
        return
    cases = [(kind, workers) for workers in arguments.workers for kind in ("ray", "processes")]
    whole: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    start: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder) / "tiny.mp4"
        write_video(tiny, iter(np.random.default_rng(0).integers(0, 255, (2, 64, 64, 3), np.uint8)), rate=2)
        for _ in range(arguments.repeat):
            for case in cases:
                start[case].append(index_seconds(*case, [tiny])[0])
                seconds, content = index_seconds(*case, files)
                whole[case].append(seconds)
                contents.append(content)
    ray.shutdown()
    rows = []
    for kind, workers in cases:
        seconds = statistics.median(whole[kind, workers])
        began = statistics.median(start[kind, workers])
        one = statistics.median(whole[kind, cases[0][1]]) - statistics.median(start[kind, cases[0][1]])
        speedup = one / (seconds - began)
        rows.append(
            {
                "executor": kind,
                "workers": workers,
                "seconds": whole[kind, workers],
                "start_seconds": start[kind, workers],
                "times_real_time": video_seconds / (seconds - began),
                "speedup": speedup,
                "efficiency": speedup / min(workers, os.cpu_count() or 1) * cases[0][1],
            }
        )
        print(json.dumps(rows[-1]))
    result = {
        "machine": describe_machine(),
        "files": len(files),
        "video_seconds": video_seconds,
        "same_content": all(content == contents[0] for content in contents),
        "rows": rows,
    }
    print(f"same content in all {len(contents)} indexes: {result['same_content']}")
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
