"""How search grows: synthetic videos in a real store, queries through both stages, first-stage recall.

    python benchmarks/scale.py --work /tmp/scale [--sizes 2000 20000 200000] [--output docs/results/scale.json]

A video is 3 to 5 scenes of frames [T, 4, 128], T about 12: every scene is a random direction per region, frames scatter
around it. Every twentieth video has two copies: frames resampled and disturbed so that the cosine of a frame with its
source is about .7 and .5. Queries are a third disturbed version of such videos (cosine .6), half of their frames. By
construction all else is unrelated, so exhaustive search finds those of the three that exact scoring puts at .2 or more.

Printed per size: seconds to append and to build the index, median seconds of a query (whole search, and its first
stage), recall@100 of the first stage (of what exhaustive search finds; `family`: of all three, however far
disturbed), and how often the best result is right.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn.functional import normalize

from vidkin.index import Entry, LanceStore, VideoRecord, window_vectors
from vidkin.index.search.common import CommonFrames
from vidkin.index.search.queries.query import Query, query_from_stored
from vidkin.index.search.stages import find_candidates, find_matches, score_candidates
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import CopyScorer, FrameFeatures

REGIONS, DIMENSION, FAMILY = 4, 128, 20
BATCH = 512


def video(number: int) -> torch.Tensor:
    """[T, R, D] of video ``number``, the same on every call."""
    generator = torch.Generator().manual_seed(number)
    scenes = int(torch.randint(3, 6, (1,), generator=generator))
    parts = []
    for _ in range(scenes):
        length = int(torch.randint(2, 5, (1,), generator=generator))
        center = normalize(torch.randn(1, REGIONS, DIMENSION, generator=generator), dim=-1)
        parts.append(disturbed(center.expand(length, -1, -1), 0.9, generator))
    return torch.cat(parts)


def disturbed(values: torch.Tensor, cosine: float, generator: torch.Generator) -> torch.Tensor:
    """Every region turned by a random direction to about this cosine."""
    noise = normalize(torch.randn(values.shape, generator=generator), dim=-1)
    return normalize(cosine * values + (1 - cosine**2) ** 0.5 * noise, dim=-1)


def members(size: int) -> Iterator[tuple[str, torch.Tensor]]:
    """(name, values) of ``size`` videos, copies among them."""
    made = number = 0
    while made < size:
        source = video(number)
        yield f"{number}", source
        made += 1
        if number % FAMILY == 0:
            generator = torch.Generator().manual_seed(10**9 + number)
            for copy, cosine in enumerate((0.7, 0.5)):
                if made < size:
                    yield f"{number}.{copy}", disturbed(source, cosine, generator)
                    made += 1
        number += 1


def stored(values: torch.Tensor) -> FrameFeatures:
    length = len(values)
    return FrameFeatures.of_whole(
        values.half(),
        torch.arange(length, dtype=torch.float64),
        torch.ones(length),
        baseline=torch.full((length,), 0.2),
    )


def entry(name: str, values: torch.Tensor) -> Entry:
    features = stored(values)
    windows = window_vectors(features)
    record = VideoRecord(
        path=f"/synthetic/{name}.mp4", size=1, mtime_ns=1, content_hash=name,
        duration=float(len(values)), frames=len(values), windows=len(windows),
    )  # fmt: skip
    return Entry(record, features, windows)


def query_of(number: int) -> Query:
    """The middle half of a video, disturbed."""
    source = video(number)
    quarter = len(source) // 4
    generator = torch.Generator().manual_seed(2 * 10**9 + number)
    return query_from_stored(
        stored(disturbed(source[quarter : len(source) - quarter], 0.6, generator)), CommonFrames()
    )


def measure(size: int, folder: Path, queries: int) -> dict[str, float]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    store = LanceStore(folder)
    started = time.perf_counter()
    batch: list[Entry] = []
    for name, values in members(size):
        batch.append(entry(name, values))
        if len(batch) == BATCH:
            store.append_many(batch)
            batch = []
    if batch:
        store.append_many(batch)
    appended = time.perf_counter() - started
    started = time.perf_counter()
    store.optimize()
    optimized = time.perf_counter() - started
    bases = range(0, size - 3 * FAMILY, FAMILY)
    chosen = [bases[round(k * (len(bases) * 0.85 - 1) / (queries - 1))] for k in range(queries)]
    whole, first, right = [], [], 0
    found = wanted = family_found = family_wanted = 0
    for number in chosen:
        query = query_of(number)
        family = {
            record.id
            for suffix in ("", ".0", ".1")
            if (record := store.find(f"/synthetic/{number}{suffix}.mp4")) is not None
        }
        started = time.perf_counter()
        candidates = find_candidates(store, query, 100)
        first.append(time.perf_counter() - started)
        started = time.perf_counter()
        matches = find_matches(store, query, CommonFrames(), CopyScorer(), limit=3)
        whole.append(time.perf_counter() - started)
        scored = score_candidates(store, query, sorted(family), CommonFrames(), CopyScorer())
        truth = {video_id for video_id, pair in scored if pair.score >= 0.2}
        wanted += len(truth)
        found += len(truth & set(candidates))
        family_wanted += len(family)
        family_found += len(family & set(candidates))
        right += bool(matches) and matches[0].video_id in family
    result = {
        "videos": size,
        "windows": store.window_count(),
        "append_seconds": appended,
        "optimize_seconds": optimized,
        "search_seconds_median": statistics.median(whole),
        "search_seconds_first": whole[0],
        "first_stage_seconds_median": statistics.median(first),
        "recall_at_100": found / wanted,
        "relevant": wanted,
        "recall_at_100_family": family_found / family_wanted,
        "best_is_right": right / queries,
        "disk_mib": sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 2**20,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    store.close()
    shutil.rmtree(folder)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 20_000, 200_000])
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    rows = []
    for size in arguments.sizes:
        rows.append(measure(size, arguments.work / f"{size}.vidkin", arguments.queries))
        print(json.dumps(rows[-1]), flush=True)
    if arguments.output:
        arguments.output.write_text(
            json.dumps({"machine": describe_machine(), "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
