"""Scores of unrelated videos: every video of some folders is searched for in an index of others.

    python research/benchmarks/unrelated_pairs.py --queries FOLDER... --videos FOLDER... --work FOLDER \
        [--extractor NAME] [--output research/results/unrelated_pairs.json]

The two sides must have nothing in common. Every pair is scored (the first stage passes all candidates). The working
folder stores the index and finished searches, so that an interrupted run can be continued.

    python research/benchmarks/unrelated_pairs.py --groups FOLDER... [--pages 60] [--photographs FOLDER] --work FOLDER \
        [--seconds 900] [--output research/results/unrelated_groups.json]

Scores hundreds of thousands of pairs, every video of a folder with every video of the other folders, from the features
in an index; each video is described only once. As in a search, the first stage selects the hundred most promising
videos of other folders, which are scored exactly; the rest get no score. --pages adds synthetic clips of web pages with
a player (dark and light), of slides and of menus, each with different content, which are also compared with each other.
--photographs adds a clip with a moving camera for each of this many photographs. The run ends after --seconds of CPU
time and reports its progress; queries are in random order (seed 0).
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from vidkin._base.blas import one_blas_thread
from vidkin._base.files import VIDEO_EXTENSIONS
from vidkin.index import Index
from vidkin.index.query.candidates import find_candidates
from vidkin.index.query.stored import prepare_features
from vidkin.media import write_video
from vidkin.rendering.machine import describe_machine

# Score from which a match counts as found.
BELIEVED = 0.2
STEPS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
LISTED = 10
# Number of videos scored exactly, as in a search. The first stage returns a multiple of it, since it also returns
# videos of the query's own group.
CANDIDATES, LOOKED_AT = 100, 4
# Synthetic clips: seconds, frames per second, size, and seconds between changes of slides and menus.
SECONDS, RATE, WIDTH, HEIGHT, SLIDE = 9, 4, 480, 270, 3
Picture = NDArray[np.uint8]
Scored = tuple[float, str, str]


def videos_in(folders: list[Path]) -> list[Path]:
    """List the videos of some folders and their subfolders, ordered by path."""
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix.lower() in VIDEO_EXTENSIONS)


def search_all(index: Index, queries: list[Path], log: Path) -> list[dict[str, object]]:
    """Write a line for each query with the nonzero scores by name; lines of an earlier run are kept."""
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    known = {row["query"] for row in rows}
    with log.open("a", encoding="utf-8") as lines:
        for query in queries:
            if str(query) in known:
                continue
            started = time.process_time()
            matches = index.search(query, limit=len(index), candidates=len(index))
            scores = {match.path: round(match.score, 4) for match in matches if match.score > 0}
            row = {"query": str(query), "seconds": time.process_time() - started, "scores": scores}
            lines.write(json.dumps(row) + "\n")
            lines.flush()
            rows.append(row)
    return rows


def write_lines(
    pen: ImageDraw.ImageDraw, box: tuple[int, int, int, int], ink: int, random: np.random.Generator
) -> None:
    """Draw words as bars of random lengths, which resemble small text to an encoder."""
    left, top, right, bottom = box
    for row in range(top, bottom, 9):
        at = left
        while at < right - 6:
            word = int(random.integers(6, 30))
            pen.rectangle((at, row, min(at + word, right), row + 4), fill=(ink,) * 3)
            at += word + 4


def page(shown: Picture | None, random: np.random.Generator, *, dark: bool) -> Picture:
    """Draw a page with a heading, text, a column of thumbnails of one color, and a player that shows a frame."""
    ground, ink = (24, 200) if dark else (250, 40)
    picture = Image.new("RGB", (WIDTH, HEIGHT), (ground,) * 3)
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, 0, WIDTH, 22), fill=tuple(int(v) for v in random.integers(0, 255, 3)))
    for number in range(4):
        top = 34 + 56 * number
        pen.rectangle((372, top, 466, top + 46), fill=tuple(int(v) for v in random.integers(0, 255, 3)))
    write_lines(pen, (16, 212, 350, 264), ink, random)
    pen.rectangle((16, 34, 350, 202), fill=(0, 0, 0))
    if shown is not None:
        share = float(random.uniform(0.5, 1.0))
        size = int(334 * share), int(160 * share)
        small = Image.fromarray(shown).resize(size)
        picture.paste(small, (16 + (334 - size[0]) // 2, 34 + (160 - size[1]) // 2))
    pen.rectangle((20, 196, 20 + int(random.integers(10, 320)), 199), fill=(220, 30, 30))
    return np.asarray(picture)


def slide(random: np.random.Generator, *, dark: bool) -> Picture:
    """Draw a heading and lines of text, sometimes next to a chart; a menu is dark."""
    ground, ink = (30, 220) if dark else (245, 30)
    picture = Image.new("RGB", (WIDTH, HEIGHT), (ground,) * 3)
    pen = ImageDraw.Draw(picture)
    pen.rectangle((30, 20, int(random.integers(200, 440)), 44), fill=(ink,) * 3)
    for number in range(int(random.integers(2, 6))):
        top = 66 + 34 * number
        write_lines(pen, (40, top, int(random.integers(160, 300)), top + 18), ink, random)
    for number in range(int(random.integers(0, 6))):
        left, height = 310 + 24 * number, int(random.integers(20, 150))
        pen.rectangle((left, 230 - height, left + 16, 230), fill=tuple(int(v) for v in random.integers(0, 255, 3)))
    return np.asarray(picture)


def flight(photograph: Path, random: np.random.Generator) -> list[Picture]:
    """Yield frames of a camera moving over a photograph."""
    image = Image.open(photograph).convert("RGB")
    width, height = image.size
    first, last = random.uniform(0.55, 0.9, 2)
    starts, ends = random.uniform(0, 1, 2), random.uniform(0, 1, 2)
    frames = []
    for share in np.linspace(0, 1, SECONDS * RATE):
        side, place = first + (last - first) * share, starts + (ends - starts) * share
        left, top = place * (1 - side) * [width, height]
        box = (left, top, left + side * width, top + side * height)
        frames.append(np.asarray(image.resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR, box=box)))
    return frames


def draw_clips(pages: int, photographs: list[Path], folder: Path) -> None:
    """Write clips of pages, slides, menus and photographs, unless an earlier run did."""
    shown, left = photographs[:pages], photographs[pages:]
    for number in range(pages):
        target = folder / "pages" / f"{number:04d}.mp4"
        random = np.random.default_rng([1, number])
        dark = number % 2 == 1
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        count = SECONDS * RATE
        if number % 3 == 2 or number >= len(shown):
            kinds = [slide(random, dark=dark) for _ in range(SECONDS // SLIDE)]
            frames = [kinds[at // (SLIDE * RATE)] for at in range(count)]
        else:
            # The page stays the same around every frame of the player.
            state = random.bit_generator.state
            frames = []
            for inner in flight(shown[number], random):
                again = np.random.default_rng()
                again.bit_generator.state = state
                frames.append(page(inner, again, dark=dark))
        write_video(target, iter(frames), rate=RATE, preset="ultrafast", threads=1)
    for number, photograph in enumerate(left):
        target = folder / "flights" / f"{number:04d}.mp4"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            frames = flight(photograph, np.random.default_rng([2, number]))
            write_video(target, iter(frames), rate=RATE, preset="ultrafast", threads=1)


@one_blas_thread()
def score_groups(
    index: Index, groups: list[tuple[list[Path], bool]], seconds: float
) -> tuple[list[Scored], int, int, int]:
    """Score pairs of videos from different groups (and within groups that allow it) until the CPU time is used up.

    Return the scores above 0, and the number of pairs of the queries processed, of those scored, and of all pairs.
    """
    records = {record.path: record for record in index.store.videos() if record.frames > 0}
    listed = [
        (str(path.absolute()), group, apart)
        for group, (paths, apart) in enumerate(groups)
        for path in paths
        if str(path.absolute()) in records
    ]
    ids = [records[path].id for path, _, _ in listed]
    features = [
        prepare_features(each, records[path].duration)
        for each, (path, _, _) in zip(index.store.read_many(ids), listed, strict=True)
    ]
    places = {video: place for place, video in enumerate(ids)}
    numbers = np.array([group for _, group, _ in listed])
    scored: list[Scored] = []
    done, exact, whole = 0, 0, 0
    started = time.process_time()
    for place in np.random.default_rng(0).permutation(len(listed)).tolist():
        path, group, apart = listed[place]
        others = np.flatnonzero((numbers != group) | (apart & (np.arange(len(listed)) != place)))
        whole += len(others)
        if time.process_time() - started > seconds:
            continue
        done += len(others)
        ranked = find_candidates(index.store, features[place], LOOKED_AT * CANDIDATES)
        chosen = [places[video] for video in ranked if video in places]
        others = np.array([other for other in chosen if other in set(others.tolist())][:CANDIDATES], np.int64)
        if not len(others):
            continue
        targets = [features[other] for other in others]
        exact += len(targets)
        scored += [
            (pair.score, "/".join(Path(path).parts[-2:]), "/".join(Path(listed[other][0]).parts[-2:]))
            for pair, other in zip(index.scorer.score(features[place], targets), others, strict=True)
            if pair.score > 0
        ]
    return scored, done, exact, whole


def measure_groups(given: argparse.Namespace) -> dict[str, object]:
    """Make the synthetic clips, describe all videos, and score the pairs."""
    photographs = sorted(given.photographs.rglob("*.jpg"))[:: given.every] if given.photographs else []
    draw_clips(given.pages, photographs, given.work / "drawn")
    folders = [
        *given.groups,
        *(each for name in ("pages", "flights") if (each := given.work / "drawn" / name).exists()),
    ]
    # All pages and camera moves differ, but a folder of recordings may have several of one place.
    groups = [(videos_in([folder]), folder.parent == given.work / "drawn") for folder in folders]
    with Index.open(given.work / f"{given.extractor}.vidkin", extractor=given.extractor, create=True) as index:
        index.add([path for paths, _ in groups for path in paths])
        described = time.process_time()
        scored, done, exact, whole = score_groups(index, groups, given.seconds)
        minutes = (time.process_time() - described) / 60
    scored.sort(reverse=True)
    return {
        "machine": describe_machine(),
        "extractor": given.extractor,
        "videos": {folder.name: len(paths) for folder, (paths, _) in zip(folders, groups, strict=True)},
        "pairs": done,
        "of these scored exactly": exact,
        "pairs of all": whole,
        "at or above": {str(step): sum(score >= step for score, *_ in scored) for step in STEPS},
        "believed, by folders": dict(
            Counter(
                f"{Path(one).parent} in {Path(two).parent}" for score, one, two in scored if score >= BELIEVED
            ).most_common()
        ),
        "highest": [{"score": round(score, 3), "query": one, "video": two} for score, one, two in scored[:LISTED]],
        "processor minutes of scoring": round(minutes, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=Path, nargs="+", default=[])
    parser.add_argument("--videos", type=Path, nargs="+", default=[])
    parser.add_argument("--groups", type=Path, nargs="+", default=[])
    parser.add_argument("--pages", type=int, default=0)
    parser.add_argument("--photographs", type=Path)
    parser.add_argument("--every", type=int, default=1, help="use every N-th photograph")
    parser.add_argument("--seconds", type=float, default=900.0, help="limit of the CPU time for scoring")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--extractor", default="vidkin")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if given.groups:
        write_report(given, measure_groups(given))
        return
    if not given.queries or not given.videos:
        parser.error("--queries and --videos, or --groups, are required")
    queries, videos = videos_in(given.queries), videos_in(given.videos)
    with Index.open(given.work / f"{given.extractor}.vidkin", extractor=given.extractor, create=True) as index:
        index.add(videos)
        rows = search_all(index, queries, given.work / f"{given.extractor}.jsonl")
        size = len(index)
    scored = [
        (score, Path(row["query"]).name, Path(name).name) for row in rows for name, score in row["scores"].items()
    ]
    scored.sort(reverse=True)
    pairs = len(rows) * size
    report = {
        "machine": describe_machine(),
        "extractor": given.extractor,
        "queries": len(rows),
        "videos": size,
        "pairs": pairs,
        "at or above": {str(step): sum(score >= step for score, _, _ in scored) for step in STEPS},
        "highest": [{"score": score, "query": query, "video": video} for score, query, video in scored[:LISTED]],
        "seconds a query": sorted(row["seconds"] for row in rows)[len(rows) // 2],
    }
    write_report(given, report)


def write_report(given: argparse.Namespace, report: dict[str, object]) -> None:
    """Print the results, and write them to the file given by --output."""
    print(json.dumps(report, indent=1))
    if given.output:
        given.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
