"""Accuracy of `vidkin coverage` on compilations and on films with partial copies.

    python research/benchmarks/coverage_ends.py [--data FOLDER] [--half develop|held-out] [--work FOLDER] \
        [--output FILE.json]

From the measurement data (VIDKIN_DATA or --data), every second source by name is held out. Each half provides, with
seed 0, compilations of five excerpts (2.5 to 7 s) from different sources, which are indexed in full, and films that
join up to five sources, with no source in two films. Of each film four excerpts with known gaps and overlaps are
indexed: one cropped, one at 1.25 times the speed, one with a caption. Everything is re-encoded at 480 x 270 and 25 fps.
The output lists segments found and false segments, errors of their four ends in seconds, and the error of the fraction
found elsewhere.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from _halves import half_of, parse_arguments, write_results
from vidkin.index import Coverage, Index
from vidkin.media import probe, steady_frames, write_clip
from vidkin.media.encode import write_video
from vidkin_research.copies.applying import apply_edit
from vidkin_research.copies.transforms import fill_size

COMPILATIONS, FILMS, PIECES = 4, 2, 5
SHORTEST, LONGEST, MOST = 2.5, 7.0, 60.0
RATE, WIDTH, HEIGHT = 25, 480, 270
# Excerpts as fractions of the length of a film, with their edits; what lies between them occurs only in the film.
EXCERPTS = ((0.0, 0.3, "crop"), (0.25, 0.5, "caption"), (0.5, 0.62, "faster"), (0.74, 1.0, "reencode"))
# A segment counts as found if at least this fraction of it is attributed to its source.
FOUND = 0.5
Piece = tuple[float, float, Path, float, float]


def main() -> None:
    """Compose, index, measure and print."""
    given = parse_arguments(__doc__)
    sources = half_of(given.data, given.half)
    work = given.work or Path(tempfile.mkdtemp(prefix="vidkin-coverage-"))
    figures = {
        "sources": len(sources),
        "compilations": measure_compilations(sources, work / f"{given.half}-compilations"),
        "films": measure_films(sources, work / f"{given.half}-films"),
    }
    write_results(given, figures)


def compose(pieces: Sequence[tuple[Path, float, float]], target: Path) -> None:
    """Concatenate video segments."""

    def frames() -> Any:
        for path, start, seconds in pieces:
            for image in steady_frames(path, start, 1 / RATE, round(seconds * RATE), HEIGHT, 0):
                yield fill_size(image, WIDTH, HEIGHT)

    target.parent.mkdir(parents=True, exist_ok=True)
    write_video(target, frames(), rate=RATE)


def measure_compilations(sources: list[Path], work: Path) -> dict[str, Any]:
    """Measure the sources of compilations, in order."""
    random = np.random.default_rng(0)
    results, processor = [], 0.0
    with Index.open(work / "c.vidkin", create=True) as index:
        index.add(sources)
        for number in range(COMPILATIONS):
            target, truth = work / f"compilation-{number}.mp4", []
            pieces, at = [], 0.0
            for place in random.permutation(len(sources))[:PIECES]:
                length = min(probe(sources[place]).duration - 0.2, MOST)
                seconds = round(min(float(random.uniform(SHORTEST, LONGEST)), length) * RATE) / RATE
                start = round(float(random.uniform(0, max(0.0, length - seconds))) * RATE) / RATE
                pieces.append((sources[place], start, seconds))
                truth.append((at, at + seconds, sources[place], start, start + seconds))
                at += seconds
            if not target.exists():
                compose(pieces, target)
            begin = time.process_time()
            found = index.coverage(target)
            processor += time.process_time() - begin
            results.append(compare(found, truth))
    return {**summary(results), "processor s a compilation": round(processor / COMPILATIONS, 1)}


def measure_films(sources: list[Path], work: Path) -> dict[str, Any]:
    """Measure films of which four excerpts are elsewhere in the index."""
    # No source is in two films: an excerpt of one would also be found in the other and count as false.
    order = np.random.default_rng(1).permutation(len(sources)).tolist()
    count = min(PIECES, (len(sources) - 1) // FILMS)
    results, processor, truths = [], 0.0, {}
    for number in range(FILMS):
        film, pieces = work / f"film-{number}.mp4", []
        for place in order[number * count : (number + 1) * count]:
            seconds = round(min(probe(sources[place]).duration - 0.2, 12.0) * RATE) / RATE
            pieces.append((sources[place], 0.0, seconds))
        if not film.exists():
            compose(pieces, film)
        length = probe(film).duration
        truths[film] = []
        for start, end, edit in EXCERPTS:
            low, high = (round(share * length * RATE) / RATE for share in (start, end))
            clip = work / "excerpts" / f"film-{number}-{edit}.mp4"
            clip.parent.mkdir(exist_ok=True)
            edited = apply_edit(film, clip, edit, seed=number, start=low, end=high)
            segment = edited.segments[0]
            truths[film].append((segment.source_start, segment.source_end, clip, 0.0, segment.edited_end))
    # A distractor that is not part of any film.
    write_clip(sources[order[-1]], work / "excerpts" / "other.mp4", start=0.0, end=3.0)
    with Index.open(work / "c.vidkin", create=True) as index:
        index.add([work / "excerpts"])
        for film, truth in truths.items():
            begin = time.process_time()
            found = index.coverage(film)
            processor += time.process_time() - begin
            results.append(compare(found, truth))
    return {**summary(results), "processor s a film": round(processor / FILMS, 1)}


def compare(found: Coverage, truth: list[Piece]) -> dict[str, Any]:
    """Return the end errors of each segment, missed segments, wrong seconds and the error of the fraction."""
    errors: list[float] = []
    missed, wrong = 0, 0.0
    left = list(found.stretches)
    for start, end, path, there, until in truth:
        own = [
            each
            for each in left
            if Path(each.path) == path and min(each.end, end) - max(each.start, start) >= FOUND * (end - start)
        ]
        if not own:
            missed += 1
            continue
        best = max(own, key=lambda each: min(each.end, end) - max(each.start, start))
        left.remove(best)
        ends = (best.start, start), (best.end, end), (best.other_start, there), (best.other_end, until)
        errors += [abs(one - other) for one, other in ends]
    for stretch in left:
        wrong += stretch.seconds
    shares = sum(end - start for start, end in union([(start, end) for start, end, *_ in truth])) / found.duration
    order = [Path(each.path) for each in found.sources]
    return {
        "errors": errors,
        "missed": missed,
        "pieces": len(truth),
        "false": len(left),
        "false seconds": wrong,
        "share off": abs(found.share - shares),
        "in order": order == [path for _, _, path, _, _ in sorted(truth)],
    }


def union(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Merge overlapping spans; the result is sorted."""
    joined: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Aggregate all results."""
    errors = sorted(error for result in results for error in result["errors"])
    return {
        "pieces": sum(result["pieces"] for result in results),
        "missed": sum(result["missed"] for result in results),
        "false": sum(result["false"] for result in results),
        "false seconds": round(sum(result["false seconds"] for result in results), 2),
        "median error of an end, s": round(statistics.median(errors), 3) if errors else None,
        "95 % of ends within, s": round(errors[int(0.95 * (len(errors) - 1))], 3) if errors else None,
        "largest error of an end, s": round(errors[-1], 3) if errors else None,
        "share off, percentage points, mean": round(100 * statistics.mean(r["share off"] for r in results), 2),
        "share off, largest": round(100 * max(r["share off"] for r in results), 2),
        "exactly the sources in order": f"{sum(r['in order'] for r in results)} of {len(results)}",
    }


if __name__ == "__main__":
    main()
