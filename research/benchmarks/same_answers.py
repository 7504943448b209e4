"""Regression test across versions: save the answers of one version and compare them with those of another.

    PYTHONPATH=before/src python research/benchmarks/same_answers.py --write /tmp/before.json
    PYTHONPATH=after/src python research/benchmarks/same_answers.py --compare /tmp/before.json

For changes that must not affect results. The answers consist of an index of 74 videos of the measurement data
(VIDKIN_DATA or --data) for each of two extractors; 240 searches, four variants for each of 60 edited clips and images,
of which 48 are from videos in the index; some pairs scored by `match` and `compare`; duplicates; the shots of five
films; and two short training runs, with the losses of every step and the sum of every weight. The script only uses
`import vidkin` and the command line, and implements the edits itself, so that it works with any version of the package.
The exit status is 1 if a value differs by more than --tolerance, is missing or is new. A run takes six to seven minutes
of CPU time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import load_file

import vidkin

Picture = NDArray[np.uint8]
Values = dict[str, Any]

CLIP_SECONDS, CLIP_RATE, CLIP_SIDE = 3.0, 8, 240
QUERIES = 60
FILMS = ("bikes.mp4", "fades.mp4", "sintel_trailer.mp4", "testvideo.mp4", "big_buck_bunny_0_30.webm")
# All numeric fields of a segment.
SEGMENT = (
    "query_start", "query_end", "target_start", "target_end", "score", "speed", "mirrored", "query_box", "target_box",
)  # fmt: skip
MEMBER = (
    "score", "best", "relation", "start", "end", "mirrored", "lacking", "doubt", "width", "height", "duration",
)  # fmt: skip
# Options of the four search variants for each query, by name; the first word of the name is the extractor.
SEARCHES: dict[str, dict[str, Any]] = {
    "vidkin": {"limit": 20},
    "vidkin from the second": {"limit": 5, "offset": 1},
    "classical": {"limit": 20},
    "classical few candidates": {"threshold": 0.1, "candidates": 12},
}


def main() -> int:
    given = parse_arguments()
    # A fixed thread count makes sums reproducible; workers and commands inherit it.
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="vidkin-answers-") as work:
        values = collect(given.data, Path(work), given.jobs)
    if given.write:
        given.write.write_text(json.dumps(values, indent=0) + "\n", encoding="utf-8")
        print(f"{given.write}: {len(values)} values")
        return 0
    return compare(json.loads(given.compare.read_text(encoding="utf-8")), values, given.tolerance)


def collect(data: Path, work: Path, jobs: int) -> Values:
    """Collect all answers by name: numbers, strings and paths relative to ``data``."""
    queries = make_queries(data, work / "queries")
    clips = [data / "videos/mdn", *sorted((data / "labelled/aerial/drone/visible").glob("*.mp4"))[:4]]
    values: Values = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        indexes = [pool.submit(make_index, extractor, data, work) for extractor in ("vidkin", "classical")]
        answers = [pool.submit(shots, data / "shots" / film) for film in FILMS]
        answers += [
            pool.submit(training, recipe, sources, work, *settings)
            for recipe, sources, *settings in (
                ("images", [data / "labelled/grocery/val/Fruit"], "schedule.steps=12", "validation.every=6"),
                ("self-supervised", clips, "schedule.steps=5", "validation.every=5"),
            )
        ]
        for index in indexes:
            index.result()
        answers += [pool.submit(searches, how, queries, data, work) for how in SEARCHES]
        for extractor in ("vidkin", "classical"):
            answers += [
                pool.submit(pairs, extractor, queries, data, work),
                pool.submit(duplicates, extractor, data, work),
            ]
        for answer in answers:
            values |= answer.result()
            print(f"{len(values)} values", file=sys.stderr, flush=True)
    return values


def make_index(extractor: str, data: Path, work: Path) -> None:
    with vidkin.Index.open(work / f"{extractor}.vidkin", extractor=extractor, create=True) as index:
        index.add(select_videos(data), workers=1)


def select_videos(data: Path) -> list[str]:
    """Return 74 videos: real copies, toys, sign language, small objects in the sky, turntables and edited films."""
    files = [*sorted((data / "videos/tmk").iterdir()), *sorted((data / "videos/mdn").iterdir())]
    files += sorted((data / "videos/intel").glob("*.mkv"))[:16]
    for folder in sorted(path for path in (data / "labelled/aerial").glob("*/*") if path.is_dir()):
        files += sorted(folder.iterdir())[:3]
    for fruit in sorted((data / "labelled/fruit").iterdir()):
        files += sorted(fruit.glob("*/*.mp4"))[:5]
    return [
        *map(str, files),
        *(str(data / "shots" / name) for name in ("bikes.mp4", "testvideo.mp4", "fades.mp4")),
    ]


def sources(data: Path) -> list[tuple[str, float]]:
    """Return source videos and start times of the query clips; the last four are not in the index."""
    names = [("tmk/chair-orig-22-sd-bar.mp4", 4.0), ("tmk/pattern-longer-no-bar.mp4", 4.0)]
    names += [("tmk/doorknob-hd-no-bar.mp4", 0.5)]
    names += [(f"mdn/{name}.mp4", 1.5) for name in ("crystal", "elf", "frog", "monster", "pig", "rabbit")]
    names += [(f"intel/{name}.mkv", 0.0) for name in ("again", "bird", "brother")]
    found = [(str(data / "videos" / name), start) for name, start in names]
    found += [(str(data / "shots" / name), 2.0) for name in ("bikes.mp4", "testvideo.mp4")]
    for kind in ("airplane/visible", "drone/infrared"):
        found += [(str(min((data / "labelled/aerial" / kind).iterdir())), 3.0)]
    held_out = [
        "videos/intel/bottle-detection.mp4",
        "videos/intel/car-detection.mp4",
        "shots/sintel_trailer.mp4",
    ]
    return [
        *found,
        *((str(data / name), 10.0) for name in held_out),
        (str(data / "videos/intel/yes.mkv"), 0.0),
    ]


def make_queries(data: Path, folder: Path) -> dict[str, Path]:
    """Make 60 queries, name -> file: 20 sources with 3 of 10 edits each."""
    folder.mkdir(parents=True)
    clips = [read_clip(path, start) for path, start in sources(data)]
    queries: dict[str, Path] = {}
    for number in range(QUERIES):
        source = number % len(clips)
        edit = list(EDITS)[(number + number // len(clips)) % len(EDITS)]
        path = Path(sources(data)[source][0])
        frames = EDITS[edit](clips[source])
        queries[f"{path.stem} {edit}"] = write(frames, folder / f"{number:02d}", still=edit == "still")
    if len(queries) != QUERIES:
        raise RuntimeError(f"expected {QUERIES} queries, got {len(queries)}")
    return queries


def read_clip(path: str, start: float) -> list[Picture]:
    """Decode the frames of a segment at :data:`CLIP_RATE`, with a shorter side of at most :data:`CLIP_SIDE`."""
    frames: list[Picture] = []
    with av.open(path) as container:
        for frame in container.decode(video=0):
            if (frame.time or 0.0) < start + len(frames) / CLIP_RATE:
                continue
            factor = min(1.0, CLIP_SIDE / min(frame.width, frame.height))
            width, height = (2 * round(side * factor / 2) for side in (frame.width, frame.height))
            picture: Picture = frame.to_ndarray(format="rgb24")
            frames.append(resize(picture, width, height))
            if len(frames) == round(CLIP_SECONDS * CLIP_RATE):
                break
    if not frames:
        raise RuntimeError(f"{path}: no frame from {start} s on; is the measurement data complete?")
    return frames


def resize(picture: Picture, width: int, height: int) -> Picture:
    image = Image.fromarray(picture).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(image, dtype=np.uint8)


def each(edit: Callable[[Picture], Picture]) -> Callable[[list[Picture]], list[Picture]]:
    """Turn an edit of a single frame into an edit of a clip."""
    return lambda frames: [np.ascontiguousarray(edit(frame)) for frame in frames]


def crop(picture: Picture) -> Picture:
    height, width, _ = picture.shape
    return picture[height // 6 : height - height // 6, width // 5 : width - width // 5]


def letterbox(picture: Picture) -> Picture:
    bar = np.zeros((picture.shape[0] // 6, *picture.shape[1:]), dtype=np.uint8)
    return np.concatenate([bar, picture, bar])


def gray(picture: Picture) -> Picture:
    return np.repeat(picture.mean(axis=2, keepdims=True).astype(np.uint8), 3, axis=2)


def inset(picture: Picture) -> Picture:
    height, width, _ = picture.shape
    canvas = np.random.default_rng(0).integers(0, 255, (height // 16, width // 16, 3), dtype=np.uint8)
    whole = resize(canvas, width, height).copy()
    part = resize(picture, width // 2, height // 2)
    whole[height // 8 : height // 8 + part.shape[0], width // 3 : width // 3 + part.shape[1]] = part
    return whole


def noisy(picture: Picture) -> Picture:
    noise = np.random.default_rng(1).normal(0.0, 12.0, picture.shape)
    return np.clip(picture * 0.8 + 20.0 + noise, 0, 255).astype(np.uint8)


EDITS: dict[str, Callable[[list[Picture]], list[Picture]]] = {
    "plain": list,
    "crop": each(crop),
    "mirrored": each(lambda picture: picture[:, ::-1]),
    "letterbox": each(letterbox),
    "still": lambda frames: frames[len(frames) // 2 :][:1],
    "gray": each(gray),
    "faster": lambda frames: frames[::2],
    "inset": each(inset),
    "small": each(lambda picture: resize(picture, picture.shape[1] // 2, picture.shape[0] // 2)),
    "noisy": each(noisy),
}


def write(frames: list[Picture], path: Path, *, still: bool) -> Path:
    """Write a PNG image or a video; encoding with one thread and without mbtree is reproducible."""
    if still:
        Image.fromarray(frames[0]).save(path.with_suffix(".png"))
        return path.with_suffix(".png")
    path = path.with_suffix(".mp4")
    height, width = (side // 2 * 2 for side in frames[0].shape[:2])
    with av.open(str(path), "w") as container:
        stream = container.add_stream(
            "libx264", rate=Fraction(CLIP_RATE), options={"crf": "24", "threads": "1", "mbtree": "0"}
        )
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for picture in frames:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture[:height, :width]), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def searches(how: str, queries: dict[str, Path], data: Path, work: Path) -> Values:
    """Every match of every query, for one of the four variants."""
    values: Values = {}
    with vidkin.Index.open(work / f"{how.split()[0]}.vidkin", read_only=True) as index:
        for query, path in queries.items():
            matches = index.search(path, **SEARCHES[how])
            values[f"search/{how}/{query}/matches"] = len(matches)
            for rank, match in enumerate(matches):
                name = f"search/{how}/{query}/{rank}"
                values |= {f"{name}/path": relative(match.path, data), f"{name}/score": match.score}
                values |= segment_values(name, match.segments)
        return values | array_values(index, how, next(iter(queries.values())))


def array_values(index: vidkin.Index, how: str, path: Path) -> Values:
    """A search with frames in memory, and one with a segment of the file."""
    with av.open(str(path)) as container:
        frames = np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])
    values: Values = {}
    for name, found in (
        ("array", index.search(frames, frame_rate=float(CLIP_RATE), limit=3)),
        ("stretch", index.search(path, start=0.5, end=2.0, limit=3)),
    ):
        for rank, match in enumerate(found):
            values[f"search/{how}/{name}/{rank}/score"] = match.score
            values |= segment_values(f"search/{how}/{name}/{rank}", match.segments)
    return values


def pairs(extractor: str, queries: dict[str, Path], data: Path, work: Path) -> Values:
    """Scores of some queries with their source, by `match` and, in reverse order, by `compare`."""
    values: Values = {}
    names = list(queries)
    with vidkin.Index.open(work / f"{extractor}.vidkin", read_only=True) as index:
        for number in range(0, 16, 3):
            source = Path(sources(data)[number][0])
            found = {
                "match": index.match(queries[names[number]], source),
                "compare": vidkin.compare(source, queries[names[number]], extractor=extractor),
            }
            for how, comparison in found.items():
                name = f"{how}/{extractor}/{names[number]}"
                values |= {f"{name}/score": comparison.score, f"{name}/map": float(comparison.map.sum())}
                values |= segment_values(name, comparison.segments)
    return values


def duplicates(extractor: str, data: Path, work: Path) -> Values:
    """Groups of duplicates, without and with excerpts."""
    values: Values = {}
    with vidkin.Index.open(work / f"{extractor}.vidkin") as index:
        for parts in (False, True):
            for at, group in enumerate(index.duplicates(parts=parts)):
                values |= group_values(f"duplicates/{extractor}/{'parts' if parts else 'whole'}/{at}", group, data)
    return values


def segment_values(name: str, segments: tuple[vidkin.Segment, ...]) -> Values:
    return {
        f"{name}/segment {at}/{field}": getattr(segment, field)
        for at, segment in enumerate(segments)
        for field in SEGMENT
    }


def group_values(name: str, group: Any, data: Path) -> Values:
    """Members of a group of duplicates, and why the best one was chosen."""
    values: Values = {f"{name}/reason": group.reason}
    for at, member in enumerate(group.members):
        values[f"{name}/{at}/path"] = relative(member.path, data)
        values[f"{name}/{at}/compared_with"] = relative(member.compared_with or "", data)
        values |= {f"{name}/{at}/{field}": getattr(member, field) for field in MEMBER}
    return values


def shots(film: Path) -> Values:
    """Output of `vidkin shots --format json` for a film, with all shots and cuts, and the result of `detect_shots`."""
    video = json.loads(vidkin_command("shots", "-f", "json", film))["videos"][0]
    fields = {name: video[name] for name in ("detector", "frames", "frame_rate", "shots", "cuts")}
    values = dict(flat(f"shots/{film.name}", fields))
    for at, shot in enumerate(vidkin.detect_shots(film)):
        values[f"detect_shots/{film.name}/{at}"] = [
            shot.start_frame,
            shot.end_frame,
            shot.kind,
            shot.confidence,
        ]
    return values


def training(recipe: str, sources: list[Path], work: Path, *settings: str) -> Values:
    """Losses of every step, report values and weight sums of `vidkin train`."""
    folder = work / recipe
    arguments = [part for path in sources for part in ("--data", path)]
    arguments += [part for setting in (*settings, "schedule.log_every=1") for part in ("--set", setting)]
    report = json.loads(vidkin_command("train", recipe, *arguments, "--no-picture", "-f", "json", "-o", folder))
    names = ("steps", "terms", "measure", "best", "best_step", "distance_start", "distance_end", "notes")
    values = dict(flat(f"train/{recipe}", {name: report[name] for name in names}))
    for at, line in enumerate((folder / "run.jsonl").read_text(encoding="utf-8").splitlines()):
        values |= dict(flat(f"train/{recipe}/log {at}", json.loads(line)))
    for name, tensor in load_file(folder / "model.safetensors").items():
        values[f"train/{recipe}/weights/{name}"] = float(np.abs(tensor.astype(np.float64)).sum())
    return values


def vidkin_command(*arguments: str | Path) -> str:
    """Run the command line of the package imported by this process; return standard output."""
    environment = {**os.environ, "XDG_CONFIG_HOME": os.devnull}
    environment["PYTHONPATH"] = str(Path(vidkin.__file__).resolve().parents[1])
    command = [sys.executable, "-m", "vidkin", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} exited with status {done.returncode}: {done.stderr}")
    return done.stdout


def flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Flatten nested JSON into named numbers and strings."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from flat(f"{name}/{key}", part)
    elif isinstance(value, list):
        yield f"{name}/number", len(value)
        for at, part in enumerate(value):
            yield from flat(f"{name}/{at}", part)
    else:
        yield name, value


def relative(path: str, data: Path) -> str:
    return os.path.relpath(path, data) if path else ""


def compare(before: Values, after: Values, tolerance: float) -> int:
    """Print how many values are equal and how the others differ; return the exit status."""
    # Convert as JSON does: tuples become lists.
    after = json.loads(json.dumps(after))
    common = [name for name in before if name in after]
    distances = {name: distance(before[name], after[name]) for name in common if before[name] != after[name]}
    wrong = {name: found for name, found in distances.items() if not found <= tolerance}
    absent = [*(f"missing: {name}" for name in before if name not in after)]
    absent += [f"new: {name}" for name in after if name not in before]
    largest = max(distances, key=lambda name: distances[name], default=None)
    print(f"{len(common) - len(distances)} of {len(before)} values are equal")
    if largest is not None:
        print(f"largest difference {distances[largest]:.3g}: {largest}: {before[largest]} -> {after[largest]}")
    for name in list(wrong)[:20]:
        print(f"  {name}: {before[name]} -> {after[name]}")
    print(f"{len(wrong)} differ by more than {tolerance}, {len(absent)} missing or new")
    print("\n".join(f"  {line}" for line in absent[:20]))
    return 1 if wrong or absent else 0


def distance(before: Any, after: Any) -> float:
    """Largest difference between two numbers or lists of numbers; infinite for other values that are not equal."""
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return max((distance(*both) for both in zip(before, after, strict=True)), default=0.0)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after)):
        return abs(float(before) - float(after))
    return 0.0 if before == after else float("inf")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", type=Path, metavar="FILE", help="write the answers to this JSON file")
    what.add_argument("--compare", type=Path, metavar="FILE", help="compare the answers with those in this file")
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("VIDKIN_DATA"),
        help="folder with the measurement data (default: $VIDKIN_DATA)",
    )
    parser.add_argument("--tolerance", type=float, default=1e-6, help="largest difference allowed between two numbers")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of parallel processes")
    given = parser.parse_args()
    if given.data is None:
        parser.error("no measurement data: set VIDKIN_DATA or pass its folder with --data")
    return given


if __name__ == "__main__":
    sys.exit(main())
