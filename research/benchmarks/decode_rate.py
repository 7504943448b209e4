"""Frame sampling speed, compared with decoding the same files with the ffmpeg program.

    python research/benchmarks/decode_rate.py FOLDER [--rate 1] [--short-side 160] [--repetitions 5] \
        [--output FILE.json]

Per file and in total: seconds of `vidkin.media.iter_frames(rate, short_side)` and of ``ffmpeg -vf fps=RATE -f null -``
(the binary of the package imageio-ffmpeg), each the median of interleaved repetitions, and their ratio. Both may use
all cores. The start-up time of ffmpeg is included; ``overhead`` is its time for a file of one frame, and the ratio is
also given without it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import imageio_ffmpeg
import numpy as np

from vidkin.errors import MediaError
from vidkin.media import iter_frames, probe, write_video


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder that is searched recursively for videos")
    parser.add_argument("--rate", type=float, default=1.0, help="frames sampled per second")
    parser.add_argument("--short-side", type=int, default=160, help="length of the shorter side in pixels")
    parser.add_argument("--repetitions", type=int, default=5, help="number of measurements per decoder, interleaved")
    parser.add_argument("--threads", type=int, default=0, help="number of decoder threads of vidkin (0: one per core)")
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    arguments = parser.parse_args()
    files = readable_videos(arguments.folder)
    if not files:
        print(f"no video in {arguments.folder}", file=sys.stderr)
        return 3
    result = measure(files, arguments.rate, arguments.short_side, arguments.repetitions, arguments.threads)
    show(result)
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


def readable_videos(folder: Path) -> list[Path]:
    files = []
    for path in sorted(folder.rglob("*")):
        try:
            if path.is_file() and not probe(path).still:
                files.append(path)
        except MediaError:
            continue
    return files


def measure(files: list[Path], rate: float, short_side: int, repetitions: int, threads: int) -> dict[str, object]:
    program = imageio_ffmpeg.get_ffmpeg_exe()

    def ours(path: Path) -> None:
        for _ in iter_frames(path, rate=rate, short_side=short_side, threads=threads):
            pass

    def theirs(path: Path) -> None:
        command = [
            program,
            "-v",
            "error",
            "-i",
            str(path),
            "-map",
            "0:v:0",
            "-vf",
            f"fps={rate}",
            "-f",
            "null",
            "-",
        ]
        subprocess.run(command, check=True, capture_output=True)

    rows = []
    for path in files:
        times = in_turns([lambda p=path: ours(p), lambda p=path: theirs(p)], repetitions)
        rows.append(
            {
                "file": path.name,
                "seconds": probe(path).duration,
                "vidkin": statistics.median(times[0]),
                "ffmpeg": statistics.median(times[1]),
            }
        )
    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder) / "tiny.mp4"
        write_video(tiny, [np.zeros((64, 64, 3), dtype=np.uint8)], rate=1)
        overhead = statistics.median(in_turns([lambda: theirs(tiny)], repetitions)[0])
    ours_total, theirs_total = (sum(row[key] for row in rows) for key in ("vidkin", "ffmpeg"))
    return {
        "what": f"iter_frames(rate={rate}, short_side={short_side}, threads={threads}) against ffmpeg -vf fps={rate}",
        "cores": len(os.sched_getaffinity(0)),
        "repetitions": repetitions,
        "files": rows,
        "ffmpeg_overhead_per_file": overhead,
        "vidkin_total": ours_total,
        "ffmpeg_total": theirs_total,
        "ratio": ours_total / theirs_total,
        "ratio_without_overhead": ours_total / (theirs_total - overhead * len(rows)),
    }


def in_turns(actions: list[Callable[[], None]], repetitions: int) -> list[list[float]]:
    """Seconds of each action, [actions][repetitions], interleaved so that load on the machine affects all alike."""
    times: list[list[float]] = [[] for _ in actions]
    for action in actions:
        action()  # the first run warms the file cache
    for _ in range(repetitions):
        for action, seconds in zip(actions, times, strict=True):
            start = time.perf_counter()
            action()
            seconds.append(time.perf_counter() - start)
    return times


def show(result: dict[str, object]) -> None:
    print(result["what"])
    print(f"{'file':40} {'length':>8} {'vidkin':>8} {'ffmpeg':>8} {'ratio':>6}   (seconds)")
    rows = result["files"]
    assert isinstance(rows, list)
    for row in rows:
        ratio = row["vidkin"] / row["ffmpeg"]
        print(f"{row['file']:40.40} {row['seconds']:8.1f} {row['vidkin']:8.3f} {row['ffmpeg']:8.3f} {ratio:6.2f}")
    print(f"{'total':49} {result['vidkin_total']:8.3f} {result['ffmpeg_total']:8.3f} {result['ratio']:6.2f}")
    print(f"without ffmpeg start-up ({result['ffmpeg_overhead_per_file']:.3f} s per file):  ", end="")
    print(f"{result['ratio_without_overhead']:.2f}")


if __name__ == "__main__":
    sys.exit(main())
