"""Indexing speed compared with plain decoding by ffmpeg, and memory for a two-hour video.

    python research/benchmarks/index_rate.py FOLDER [FOLDER...] [--hours 2] [--output research/results/index_rate.json]
    python research/benchmarks/index_rate.py FOLDER [FOLDER...] --sound

The second command measures only the cost of audio description: CPU time of all processes of `vidkin index`, with
`--sound` and `--no-sound`, interleaved, into new indexes.

The first compares two ways of reading the same files at one frame per second, interleaved: `ffmpeg -vf fps=1 -f null -`
(the binary of the package imageio-ffmpeg), one file after another, and `Index.add` into a new index with the default
extractor. The time of `add` includes the start of its worker processes, which is also reported separately (the time to
index one tiny file). Memory is the sum of the proportional set sizes (PSS) of this process and its children, sampled
ten times per second.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil

from vidkin.index import Index
from vidkin.media import probe, write_video
from vidkin.rendering.machine import describe_machine

SUFFIXES = {".mp4", ".mkv", ".webm", ".mov", ".avi"}


class MemoryWatch(threading.Thread):
    """Measures the peak memory of this process and its children during the block, in MiB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0.0
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(0.1):
            total = 0
            for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
                try:
                    total += process.memory_full_info().pss
                except (psutil.NoSuchProcess, psutil.AccessDenied):
                    continue  # the process exited after it was listed
            self.peak = max(self.peak, total / 2**20)

    def __enter__(self) -> MemoryWatch:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self.join()


def index_seconds(files: list[Path]) -> tuple[float, float]:
    """Index the files into a new collection; return wall seconds and peak MiB."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Index.open(Path(folder) / "c.vidkin", create=True) as index,
        MemoryWatch() as watch,
    ):
        started = time.perf_counter()
        report = index.add(files)
        seconds = time.perf_counter() - started
        if report.broken:
            raise SystemExit(f"cannot be read: {report.broken}")
    return seconds, watch.peak


def ffmpeg_seconds(files: list[Path]) -> float:
    import imageio_ffmpeg

    program = imageio_ffmpeg.get_ffmpeg_exe()
    started = time.perf_counter()
    for path in files:
        subprocess.run(
            [program, "-v", "error", "-i", str(path), "-vf", "fps=1", "-f", "null", "-"],
            check=True,
            stdin=subprocess.DEVNULL,
        )
    return time.perf_counter() - started


def processor_seconds(folders: list[Path], option: str) -> float:
    """CPU time of all processes of `vidkin index`, which indexes the folders into a new index with one worker."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as place:
        words = [*map(str, folders), "--index", f"{place}/c.vidkin", "--workers", "1", option]
        subprocess.run([sys.executable, "-m", "vidkin", "index", *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cost_of_sound(folders: list[Path], repeat: int) -> dict[str, object]:
    """CPU seconds with and without sound, and the ratio of their medians."""
    options = ("--sound", "--no-sound")
    runs = [[processor_seconds(folders, option) for option in options] for _ in range(repeat)]
    heard, silent = (list(column) for column in zip(*runs, strict=True))
    return {
        "machine": describe_machine(),
        "with_sound": heard,
        "without": silent,
        "ratio": statistics.median(heard) / statistics.median(silent),
    }


def noise_walk(frames: int) -> Iterator[np.ndarray]:
    """Yield 640 x 360 frames that move over a texture, which changes every half minute."""
    generator = np.random.default_rng(0)
    for index in range(frames):
        if index % 60 == 0:
            texture = np.kron(generator.integers(0, 255, (64, 90, 3), np.uint8), np.ones((12, 12, 1), np.uint8))
        shift = (index % 60) * 2
        yield np.ascontiguousarray(texture[shift : shift + 360, shift : shift + 640])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--hours", type=float, default=2.0, help="length of the video for the memory measurement in hours (0: skip)"
    )
    parser.add_argument("--output", type=Path)
    parser.add_argument("--sound", action="store_true", help="measure only the cost of describing sound")
    arguments = parser.parse_args()
    if arguments.sound:
        print(json.dumps(cost_of_sound(arguments.folders, arguments.repeat), indent=1))
        return
    files = sorted(p for f in arguments.folders for p in f.rglob("*") if p.suffix.lower() in SUFFIXES)
    video_seconds = sum(probe(path).duration for path in files)
    ours, theirs, peaks = [], [], []
    for _ in range(arguments.repeat):
        theirs.append(ffmpeg_seconds(files))
        seconds, peak = index_seconds(files)
        ours.append(seconds)
        peaks.append(peak)
    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder) / "tiny.mp4"
        write_video(tiny, noise_walk(2), rate=2)
        start = statistics.median(index_seconds([tiny])[0] for _ in range(arguments.repeat))
        result = {
            "machine": describe_machine(),
            "files": len(files),
            "video_seconds": video_seconds,
            "index_seconds": ours,
            "ffmpeg_seconds": theirs,
            "start_seconds": start,
            "rate_of_ffmpeg": statistics.median(t / o for t, o in zip(theirs, ours, strict=True)),
            "rate_of_ffmpeg_without_start": statistics.median(
                t / (o - start) for t, o in zip(theirs, ours, strict=True)
            ),
            "times_real_time": video_seconds / statistics.median(ours),
            "peak_mib": max(peaks),
        }
        if arguments.hours:
            long = Path(folder) / "long.mp4"
            write_video(long, noise_walk(round(arguments.hours * 7200)), rate=2)
            seconds, peak = index_seconds([long])
            result |= {"long_hours": arguments.hours, "long_seconds": seconds, "long_peak_mib": peak}
    print(json.dumps(result, indent=1))
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
