"""Hard cuts in short clips made with OpenCV: the default detector compared with TransNetV2 and PySceneDetect.

    python research/benchmarks/other_cuts.py --takes FOLDER... [--films FOLDER] [--leave-out NAME...] --work FOLDER
        [--detector NAME...] [--seed 7] [--output research/results]

Clips of 7 to 60 frames are composed from single takes, and from shots of edited films whose folder has a
``truth.json``: two scenes; one scene a second or more later (a jump cut); one scene reframed as by a second camera; a
cut two to four frames from either end; and no cut. Only the videos may overlap with the training data of the detector,
not the composition. A jump or reframing counts as visible if the correlation of 16 x 16 gray frames is below 0.92.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import VIDEO_EXTENSIONS
from vidkin.rendering.machine import describe_machine
from vidkin.shots import detect

LONG_SIDE, RATE, MOST_FRAMES, FEWEST = 320, 25, 240, 30
# Tolerance between true and reported cuts, in frames.
TOLERANCE = 2
VISIBLE = 0.92
Picture = NDArray[np.uint8]
Film = list[Picture]


def load(path: Path, first: int = 0, last: int | None = None) -> Film:
    """Decode frames of a video, resized to a long side of 320."""
    film: Film = []
    with av.open(str(path)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if last is not None and number >= last:
                break
            if number < first:
                continue
            scale = LONG_SIDE / max(frame.width, frame.height)
            size = int(frame.width * scale) // 2 * 2, int(frame.height * scale) // 2 * 2
            film.append(cv2.resize(frame.to_ndarray(format="rgb24"), size, interpolation=cv2.INTER_AREA))
    return film


def save(film: Film, path: Path) -> None:
    """Write an H.264 file."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=RATE)
        stream.height, stream.width, stream.pix_fmt = *film[0].shape[:2], "yuv420p"
        stream.options = {"crf": "24", "preset": "veryfast"}
        for picture in film:
            whole = np.ascontiguousarray(picture)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(whole, format="rgb24")))
        container.mux(stream.encode())


def read_takes(given: argparse.Namespace) -> list[Film]:
    """Split single takes into segments of at most 240 frames, and films into the shots between their transitions."""
    takes = []
    for folder in given.takes:
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in VIDEO_EXTENSIONS and not any(name in path.name for name in given.leave_out):
                film = load(path, 0, 12 * MOST_FRAMES)
                takes += [film[start : start + MOST_FRAMES] for start in range(0, len(film), 2 * MOST_FRAMES)]
    if given.films:
        truth = json.loads((given.films / "truth.json").read_text())["videos"]
        for name, labels in truth.items():
            if any(part in name for part in given.leave_out):
                continue
            gradual = [(item["start"] - 2, item["end"] + 2) for item in labels["gradual"]]
            begins = sorted([(cut, cut) for cut in labels["hard"]] + gradual)
            film = load(given.films / name)
            edges = [(0, 0), *begins, (len(film), len(film))]
            for (_, first), (last, _) in pairwise(edges):
                takes.append(film[first + 2 : last - 2][:MOST_FRAMES])
    return [take for take in takes if len(take) >= FEWEST]


def likeness(one: Picture, other: Picture) -> float:
    """Correlation of two frames, reduced to 16 x 16 gray pixels."""
    small = [
        cv2.resize(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), (16, 16), interpolation=cv2.INTER_AREA)
        for picture in (one, other)
    ]
    first, second = (picture.astype(float).ravel() - picture.mean() for picture in small)
    return float(first @ second / max(np.linalg.norm(first) * np.linalg.norm(second), 1e-6))


def joins(takes: list[Film], random: np.random.Generator) -> Iterator[tuple[str, Film, list[int]]]:
    """Yield kind, frames and cuts of every clip."""
    for take in takes:
        count, (height, width) = len(take), take[0].shape[:2]
        for turn in range(2):
            other = takes[int(random.integers(len(takes)))]
            if other is not take:
                before = min(count, int(random.integers(8, 30)))
                after = min(len(other), int(random.integers(8, 30)))
                start, place = (
                    int(random.integers(0, count - before + 1)),
                    int(random.integers(0, len(other) - after + 1)),
                )
                second = [cv2.resize(picture, (width, height)) for picture in other[place : place + after]]
                yield "other scene", take[start : start + before] + second, [before]
                few, more = int(random.integers(2, 5)), int(random.integers(5, 11))
                short = [cv2.resize(picture, (width, height)) for picture in other[:few]]
                yield (
                    "near an end",
                    short + take[:more] if turn else take[:more] + short,
                    [few if turn else more],
                )
            if count >= 60:
                before, after = (int(number) for number in random.integers(8, 20, 2))
                gap = int(random.integers(RATE, max(RATE + 1, count - before - after)))
                start = int(random.integers(0, max(1, count - before - after - gap)))
                first, second = (
                    take[start : start + before],
                    take[start + before + gap :][:after],
                )
                if len(second) >= 3 and likeness(first[-1], second[0]) < VISIBLE:
                    yield "jump", first + second, [before]
            before, after = (int(number) for number in random.integers(6, 12, 2))
            share, (across, down) = random.uniform(0.5, 0.75), random.random(2)
            tall, wide = int(height * share), int(width * share)
            top, left = int((height - tall) * down), int((width - wide) * across)
            start = int(random.integers(0, count - before - after + 1))
            first = take[start : start + before]
            second = [
                cv2.resize(picture[top : top + tall, left : left + wide], (width, height))
                for picture in take[start + before : start + before + after]
            ]
            if likeness(first[-1], second[0]) < VISIBLE:
                yield "re-framed", first + second, [before]
        yield "no cut", take[:50], []


def judge(detector: str, folder: Path, truth: dict[str, Any]) -> dict[str, Any]:
    """Count true, false and missed cuts by kind."""
    counts: dict[str, list[int]] = {}
    for name, (kind, cuts) in truth.items():
        found, false, missed = 0, 0, 0
        reported = [cut.frame for cut in detect(folder / name, detector).cuts]
        for cut in cuts:
            near = [frame for frame in reported if abs(frame - cut) <= TOLERANCE]
            if near:
                reported.remove(min(near, key=lambda frame: abs(frame - cut)))
            found, missed = found + bool(near), missed + (not near)
        false = len(reported)
        row = counts.setdefault(kind, [0, 0, 0])
        for place, number in enumerate((found, false, missed)):
            row[place] += number
    total = [sum(row[place] for row in counts.values()) for place in range(3)]
    return {"all": total, **counts}


def f1(row: list[int]) -> float:
    """F1 score from counts of true, false and missed cuts."""
    return 2 * row[0] / max(1, 2 * row[0] + row[1] + row[2])


def format_page(result: dict[str, Any]) -> str:
    """Format F1 scores, false cuts and missed cuts by kind."""
    detectors: dict[str, dict[str, Any]] = result["detectors"]
    kinds = list(next(iter(detectors.values())))
    lines = [
        "# Hard cuts in other short clips",
        "",
        f"{result['clips']} clips of up to 60 frames that OpenCV made (`research/benchmarks/other_cuts.py`). F1 within",
        f"{TOLERANCE} frames; in brackets false and missed cuts.",
        "",
        f"| | {' | '.join(f'`{name}`' for name in detectors)} |",
        "|---|" + "---|" * len(detectors),
    ]
    for kind in kinds:
        rows = [detectors[name][kind] for name in detectors]
        cells = [f"{f1(row):.3f} ({row[1]}, {row[2]})" if row[0] + row[2] else f"- ({row[1]} false)" for row in rows]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"Measured on {result['machine']}, seed {result['seed']}.", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--takes", type=Path, nargs="+", required=True, help="folders of videos that are single takes")
    parser.add_argument("--films", type=Path, help="folder of edited films and their truth.json")
    parser.add_argument(
        "--leave-out", nargs="*", default=[], help="videos whose names contain one of these strings are left out"
    )
    parser.add_argument("--work", type=Path, required=True, help="working folder")
    parser.add_argument("--detector", nargs="+", default=["default", "transnetv2", "adaptive", "content"])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output", type=Path, help="folder for other_cuts.json and other_cuts.md")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    truth: dict[str, Any] = {}
    for number, (kind, film, cuts) in enumerate(joins(read_takes(given), np.random.default_rng(given.seed))):
        name = f"{number:04d}.mp4"
        save(film, given.work / name)
        truth[name] = (kind, cuts)
    result: dict[str, Any] = {"machine": describe_machine(), "seed": given.seed, "clips": len(truth)}
    result["detectors"] = {}
    for detector in given.detector:
        result["detectors"][detector] = row = judge(detector, given.work, truth)
        print(f"{detector}: F1 {f1(row['all']):.3f}, found, false, missed: {row}", flush=True)
    if given.output:
        (given.output / "other_cuts.json").write_text(json.dumps(result, indent=1) + "\n")
        (given.output / "other_cuts.md").write_text(format_page(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
