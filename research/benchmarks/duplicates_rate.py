"""Cost and accuracy of `vidkin duplicates` in a library with many edited copies.

    python research/benchmarks/duplicates_rate.py [--shared] [--python NAME=VENV/bin/python ...] [--work FOLDER] \
        [--output FILE]

The library is made from the videos in unrelated_videos.txt, which share no footage (VIDKIN_DATA or --data), with seed
0: 28 films of 12 s, each composed of six unique segments of 2 s and with six edited copies, and the 72 shortest of
these videos unchanged. These are 268 files and about 42 minutes. With --shared, segments come from any video of the
data, many of which are copies of others, so that films share footage with each other and with the rest. Each
environment (the one with the older checkout first) indexes the library and searches it for duplicates twice. The output
lists CPU time, wall time, peak memory, copies grouped with their film, and groups that join different films.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from start_up import run
from vidkin.media import probe, steady_frames
from vidkin.media.encode import write_video
from vidkin.rendering.machine import describe_machine
from vidkin_research.copies.applying import apply_edit
from vidkin_research.copies.transforms import fill_size

FILMS, STRETCHES, SECONDS, OTHERS = 28, 6, 2.0, 72
MOST_OF_ONE = 9
RATE, WIDTH, HEIGHT = 25, 480, 270
EDITS = ("crop", "mirror", "faster", "caption", "blurred_borders", "reencode")


def main() -> None:
    """Measure each environment and print a table."""
    given = parse_arguments()
    work = given.work or Path(tempfile.mkdtemp(prefix="vidkin-duplicates-"))
    library = work / "library"
    if not library.is_dir():
        make_library(given.data, library, shared=given.shared)
    environments = dict(entry.split("=", 1) for entry in given.python) or {"this": sys.executable}
    figures = {name: measure(python, library, work / name) for name, python in environments.items()}
    for name, found in figures.items():
        print(name, *(f"{what}: {value}" for what, value in found.items()), sep="\n  ")
    if given.output:
        document = {"machine": describe_machine(), "figures": figures}
        given.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def make_library(data: Path, folder: Path, *, shared: bool) -> None:
    """Make films ``film-NN.mp4``, copies ``film-NN-EDIT.mp4`` and other videos ``other-NN.mp4``."""
    random = np.random.default_rng(0)
    partial = folder.with_name("library.partial")
    partial.mkdir(parents=True)
    stretches, others = shared_footage(data, random) if shared else unrelated_footage(data, random)
    for number in range(FILMS):
        film = partial / f"film-{number:02d}.mp4"
        count = round(SECONDS * RATE)
        frames = (
            fill_size(image, WIDTH, HEIGHT)
            for path, start in stretches[number::FILMS]
            for image in steady_frames(path, start, 1 / RATE, count, HEIGHT, 0)
        )
        write_video(film, frames, rate=RATE)
        for edit in EDITS:
            apply_edit(film, partial / f"{film.stem}-{edit}.mp4", edit, seed=number)
    for number, path in enumerate(others):
        frames = steady_frames(path, 0.0, 1 / RATE, round(probe(path).duration * RATE), HEIGHT, 0)
        write_video(partial / f"other-{number:02d}.mp4", frames, rate=RATE)
    partial.rename(folder)


def unrelated_footage(data: Path, random: np.random.Generator) -> tuple[list[tuple[Path, float]], list[Path]]:
    """Select segments, as files and start times, and other videos; no two show the same."""
    listed = Path(__file__).with_name("unrelated_videos.txt").read_text(encoding="utf-8").split()
    durations = {data / name: probe(data / name).duration for name in listed}
    by_length = sorted(durations, key=lambda path: (durations[path], path.name))
    stretches = [
        (path, number * SECONDS)
        for path in by_length[OTHERS:]
        for number in range(min(MOST_OF_ONE, int(durations[path] / SECONDS)))
    ]
    chosen = [stretches[place] for place in random.permutation(len(stretches))[: FILMS * STRETCHES]]
    return chosen, by_length[:OTHERS]


def shared_footage(data: Path, random: np.random.Generator) -> tuple[list[tuple[Path, float]], list[Path]]:
    """Select segments and other videos from all videos, including those that share footage."""
    sources = sorted(path for path in data.rglob("*") if path.suffix in (".mp4", ".mkv", ".webm") and is_film(path))
    random.shuffle(sources)
    count = FILMS * STRETCHES
    return [(path, 0.0) for path in sources[:count]], sources[count:][:OTHERS]


def is_film(path: Path) -> bool:
    """Whether segments can be taken from this file."""
    try:
        info = probe(path)
    except Exception:  # noqa: BLE001 - some of the data are damaged on purpose
        return False
    return SECONDS <= info.duration <= 60


def measure(python: str, library: Path, work: Path) -> dict[str, Any]:
    """Index, search for duplicates twice, and compare the groups with the file names."""
    work.mkdir(parents=True, exist_ok=True)
    index = work / "c.vidkin"
    vidkin = (python, "-m", "vidkin")
    figures: dict[str, Any] = {}
    if not index.exists():
        indexed = run([*vidkin, "index", str(library), "--index", str(index)])
        figures["indexing, processor s"] = round(indexed.processor, 1)
    for what in ("first", "second"):
        found = run([*vidkin, "duplicates", "--index", str(index)])
        figures[f"{what} duplicates, processor s"] = round(found.processor, 1)
        figures[f"{what} duplicates, s"] = round(found.wall, 1)
        figures[f"{what} duplicates, peak MiB"] = round(found.peak)
    listed = subprocess.run(
        [*vidkin, "duplicates", "--index", str(index), "-f", "json"], capture_output=True, text=True, check=True
    )
    groups = [
        {Path(member["path"]).stem for member in group["members"]} for group in json.loads(listed.stdout)["groups"]
    ]
    grouped = sum(f"{name[:7]}" in group for group in groups for name in group if name.startswith("film") and name[7:])
    figures["copies with their film"] = f"{grouped} of {FILMS * len(EDITS)}"
    figures["groups that join different films"] = sum(len({film_of(name) for name in group}) > 1 for group in groups)
    figures["groups"] = sorted(sorted(group) for group in groups)
    return figures


def film_of(name: str) -> str:
    """Name of the film that a file is a copy of; its own name if it is not a copy."""
    return name[: len("film-00")] if name.startswith("film") else name


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("VIDKIN_DATA"),
        help="folder with the measurement data (default: $VIDKIN_DATA)",
    )
    parser.add_argument("--shared", action="store_true", help="use films that share footage")
    parser.add_argument("--work", type=Path, help="working folder for library and indexes (not deleted afterward)")
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PYTHON", help="an environment")
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    given = parser.parse_args()
    if given.data is None:
        parser.error("no measurement data: set VIDKIN_DATA or pass its folder with --data")
    return given


if __name__ == "__main__":
    main()
