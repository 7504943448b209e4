"""Memory of `vidkin serve` for an index of many videos, while several clients search.

    python research/benchmarks/served_memory.py FOLDER [--videos 10000] [--searches 200] [--readers 4] [--output FILE]

The videos of the folder are indexed. Further videos are synthetic: each has perturbed features of one of them (mean
cosine about 0.75), so that the number of windows and regions and the file sizes are realistic. Clients search for the
real videos in turn. Memory is the resident set size of the server process.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil

from _measure import machine
from vidkin.index import Entry, Index, VideoRecord, window_vectors
from vidkin.similarity import FrameFeatures
from web_load import start_server

_NOISE = 0.85


def disturb(features: FrameFeatures, generator: np.random.Generator) -> FrameFeatures:
    """Perturb features so that the similarity with the original is this cosine."""
    values = features.values.astype(np.float32)
    noise = generator.standard_normal(values.shape, dtype=np.float32) / np.sqrt(values.shape[-1])
    values = np.where(np.abs(values).sum(axis=-1, keepdims=True) > 0, values + _NOISE * noise, 0)
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    return replace(features, values=(values / np.where(lengths > 0, lengths, 1)).astype(np.float16))


def compose(index: Index, count: int) -> None:
    """Add synthetic videos to an index of real ones, up to ``count`` in total."""
    generator = np.random.default_rng(0)
    real = [record for record in index.videos() if record.status == "ok"]
    known = [(record, index.store.read(record.id)) for record in real]
    for start in range(len(real), count, 200):
        entries = []
        for number in range(start, min(start + 200, count)):
            record, features = known[number % len(known)]
            own = disturb(features, generator)
            windows = window_vectors(own)
            path = f"/videos/{number % 100:02}/video {number:05}.mp4"
            entries.append(Entry(_record(record, path, number, len(windows)), own, windows))
        index.store.append_many(entries)
    index.store.optimize()


def _record(record: VideoRecord, path: str, number: int, windows: int) -> VideoRecord:
    return replace(record, id=-1, path=path, content_hash=f"{number:032x}", windows=windows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--videos", type=int, default=10_000)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--index", type=Path, help="Folder of the index; an existing index is reused.")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = options.index or Path(folder) / "many.vidkin"
        with Index.open(place, create=True) as index:
            if len(index) < options.videos:
                index.add([options.folder])
                compose(index, options.videos)
            numbers = [record.id for record in index.videos() if Path(record.path).exists()]
            info = index.info()
        size = f"{info.windows:,} windows, {info.frames:,} frames, {info.bytes / 2**20:.0f} MiB on disk"
        print(f"{info.videos:,} videos, {size}")
        with start_server(place) as port:
            process = next(
                each
                for each in psutil.Process().children()
                if any(connection.laddr.port == port for connection in each.net_connections())
            )
            print(f"{'searches':>8} {'MiB':>6} {'processor s':>12}")
            rows = search(port, numbers, options.searches, options.readers, process)
    half = [memory for count, memory in rows if count >= options.searches // 2]
    highest, growth = max(memory for _, memory in rows), half[-1] - half[0]
    print(f"highest {highest:.0f} MiB")
    print(f"in the second half it grew by {growth:.0f} MiB")
    if options.output is not None:
        document = {
            "machine": machine(),
            "index": {name: getattr(info, name) for name in ("videos", "windows", "frames", "bytes")},
            "readers": options.readers,
            "memory_mib_by_searches": [[count, round(memory)] for count, memory in rows],
            "highest_mib": round(highest),
            "growth_in_second_half_mib": round(growth),
        }
        options.output.write_text(json.dumps(document, indent=2) + "\n")


def search(
    port: int, numbers: list[int], searches: int, readers: int, process: psutil.Process
) -> list[tuple[int, float]]:
    """Return (searches done, MiB) at intervals."""
    turns = itertools.cycle(numbers)
    lock, done, rows = threading.Lock(), 0, list[tuple[int, float]]()

    def look() -> None:
        memory = process.memory_info().rss / 2**20
        times = process.cpu_times()
        rows.append((done, memory))
        print(f"{done:>8} {memory:>6.0f} {times.user + times.system:>12.1f}", flush=True)

    def read(name: str) -> None:
        nonlocal done
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        while True:
            with lock:
                if done >= searches:
                    return
                number, done = next(turns), done + 1
                if done % max(1, searches // 10) == 0:
                    look()
            headers = {"Content-Type": "application/json", "X-Vidkin-Tab": name}
            connection.request("POST", "/api/search", json.dumps({"video": number}), headers)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, (answer.status, body[:200])

    look()
    threads = [threading.Thread(target=read, args=[f"reader {number}"]) for number in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    look()
    return rows


if __name__ == "__main__":
    main()
