"""How search grows: synthetic videos in a real store, queries through both stages, first-stage recall.

    python research/benchmarks/scale.py --work /tmp/scale [--sizes 2000 20000 200000] \
        [--output research/results/scale.json]
    python research/benchmarks/scale.py --work /tmp/scale --real --kinds float16 binary int8 product --sizes 20000
    python research/benchmarks/scale.py --work /tmp/scale --real --short --kinds float16 binary int8 product \
        --sizes 1000000

A video is 3 to 5 scenes of frames [T, 4, 128], T about 12: every scene is a random direction per region, frames scatter
around it. Every twentieth video has two copies: frames resampled and disturbed so that the cosine of a frame with its
source is about .7 and .5. Queries are a third disturbed version of such videos (cosine .6), half of their frames. By
construction all else is unrelated, so exhaustive search finds those of the three that exact scoring puts at .2 or more.

With `--real` directions are not uniform but spread as those of real videos, as the vectors of the extractor `vidkin`
for the whole frames of 39 videos (`--measure INDEX` prints the spread of an index): [T, 1, 128], most of whose
dimensions hold little, so that strangers have a mean cosine of .15. Copies have a cosine of .9 and .75 with their
source, queries .85. With `--short` a video is one scene: more videos fit into the same number of windows.

Printed per size: seconds to append and to build the index, median seconds of a query (whole search, and its first
stage), recall@100 of the first stage (of what exhaustive search finds; `family`: of all three, however far
disturbed), and how often the best result is right.

`--kinds` compares kinds of index over the same windows: none (all vectors as float16), binary (what the store builds),
int8 in graphs, and product quantization; the best candidates of all of them get true distances. Each is asked in a
process of its own: seconds to build, bytes, median and 99th percentile of the first stage, the same recalls, the share
of the 100 nearest windows found, memory of its own above the start (and the peak with mapped files).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import lance
import numpy as np
import psutil
import torch
from torch.nn.functional import normalize

from vidkin.index import Entry, Index, VideoRecord, window_vectors
from vidkin.index.query.candidates import find_candidates
from vidkin.index.query.stages import find_matches, score_candidates
from vidkin.index.query.stored import prepare_features
from vidkin.index.storage.opening import open_place
from vidkin.index.storage.records import frame_vectors
from vidkin.match import open_scorer
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import FrameFeatures
from vidkin_scale.lance_nearest import INDEX_NAME
from vidkin_scale.lance_store import WINDOWS_TABLE, LanceStore

DIMENSION, FAMILY = 128, 20
BATCH = 512
KINDS = {
    "float16": None,
    "binary": "IVF_RQ",
    "int8": "IVF_HNSW_SQ",
    "product": "IVF_PQ",
}
# Of real vectors: length of their mean, and the share of variance at ranks 1, 2, 4, 8, ... 128.
MEAN_LENGTH = 0.387
VARIANCES = (0.164, 0.122, 0.0794, 0.0358, 0.0136, 0.00375, 6.9e-5, 6.8e-7)


@dataclass(frozen=True)
class Directions:
    """How the vectors of videos are spread, and how far copies and queries are from their source."""

    scenes: tuple[int, int] = (3, 5)
    regions: int = 4
    real: bool = False
    copies: tuple[float, float] = (0.7, 0.5)
    query: float = 0.6

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        """Unit vectors [*shape, D]."""
        values = torch.randn(*shape, DIMENSION, generator=generator)
        if self.real:
            values = values * spread()
            values[..., -1] += MEAN_LENGTH
        return normalize(values, dim=-1)


UNIFORM = Directions()
REAL = Directions(regions=1, real=True, copies=(0.9, 0.75), query=0.85)


@cache
def spread() -> torch.Tensor:
    """[D] deviations of real vectors along their principal axes."""
    ranks = np.log2(np.arange(1, DIMENSION + 1))
    variance = np.exp(np.interp(ranks, range(len(VARIANCES)), np.log(VARIANCES)))
    return torch.tensor(variance / variance.sum() * (1 - MEAN_LENGTH**2)).sqrt().float()


def video(number: int, directions: Directions) -> torch.Tensor:
    """[T, R, D] of video ``number``, the same on every call."""
    generator = torch.Generator().manual_seed(number)
    fewest, most = directions.scenes
    scenes = int(torch.randint(fewest, most + 1, (1,), generator=generator))
    parts = []
    for _ in range(scenes):
        length = int(torch.randint(2, 5, (1,), generator=generator))
        center = directions.draw((1, directions.regions), generator)
        parts.append(disturbed(center.expand(length, -1, -1), 0.9, generator, directions))
    return torch.cat(parts)


def disturbed(values: torch.Tensor, cosine: float, generator: torch.Generator, directions: Directions) -> torch.Tensor:
    """Every region turned by a random direction to about this cosine."""
    noise = directions.draw(tuple(values.shape[:-1]), generator)
    # What it shares with the values would not disturb them.
    noise = normalize(noise - (noise * values).sum(-1, keepdim=True) * values, dim=-1)
    return normalize(cosine * values + (1 - cosine**2) ** 0.5 * noise, dim=-1)


def members(size: int, directions: Directions) -> Iterator[tuple[str, torch.Tensor]]:
    """(name, values) of ``size`` videos, copies among them."""
    made = number = 0
    while made < size:
        source = video(number, directions)
        yield f"{number}", source
        made += 1
        if number % FAMILY == 0:
            generator = torch.Generator().manual_seed(10**9 + number)
            for copy, cosine in enumerate(directions.copies):
                if made < size:
                    yield f"{number}.{copy}", disturbed(source, cosine, generator, directions)
                    made += 1
        number += 1


def stored(values: torch.Tensor) -> FrameFeatures:
    length = len(values)
    return FrameFeatures.of_whole(
        values.half().numpy(),
        np.arange(length, dtype=np.float64),
        np.ones(length, np.float32),
        baseline=np.full(length, 0.2, np.float32),
    )


def entry(name: str, values: torch.Tensor) -> Entry:
    features = stored(values)
    windows = window_vectors(features)
    record = VideoRecord(
        path=f"/synthetic/{name}.mp4", size=1, mtime_ns=1, content_hash=name,
        duration=float(len(values)), frames=len(values), windows=len(windows),
    )  # fmt: skip
    return Entry(record, features, windows)


def query_of(number: int, directions: Directions) -> FrameFeatures:
    """The middle half of a video, disturbed."""
    source = video(number, directions)
    quarter = len(source) // 4
    generator = torch.Generator().manual_seed(2 * 10**9 + number)
    middle = source[quarter : len(source) - quarter]
    return prepare_features(stored(disturbed(middle, directions.query, generator, directions)))


def chosen_queries(size: int, count: int) -> list[int]:
    """Numbers of videos that have copies, spread over the collection."""
    bases = range(0, size - 3 * FAMILY, FAMILY)
    return [bases[round(k * (len(bases) * 0.85 - 1) / (count - 1))] for k in range(count)]


def family_of(store: LanceStore, number: int) -> set[int]:
    """Ids of a video and its copies."""
    found = (store.find(f"/synthetic/{number}{suffix}.mp4") for suffix in ("", ".0", ".1"))
    return {record.id for record in found if record is not None}


class Recall:
    """Recall@100 of the first stage: of what exhaustive search finds, and of the whole families of the queries."""

    def __init__(self) -> None:
        self._found = self._wanted = self._family_found = self._family_wanted = 0

    def count(self, store: LanceStore, query: FrameFeatures, family: set[int], candidates: list[int]) -> None:
        scored = score_candidates(store, query, sorted(family), open_scorer("copies"))
        relevant = {video_id for video_id, pair in scored if pair.score >= 0.2}
        self._wanted += len(relevant)
        self._found += len(relevant & set(candidates))
        self._family_wanted += len(family)
        self._family_found += len(family & set(candidates))

    def figures(self) -> dict[str, float]:
        return {
            "recall_at_100": self._found / max(self._wanted, 1),
            "relevant": self._wanted,
            "recall_at_100_family": self._family_found / self._family_wanted,
        }


def measure(size: int, folder: Path, queries: int, directions: Directions) -> dict[str, float]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    store = LanceStore(open_place(folder))
    started = time.perf_counter()
    batch: list[Entry] = []
    for name, values in members(size, directions):
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
    whole, first, right, recall = [], [], 0, Recall()
    for number in chosen_queries(size, queries):
        query = query_of(number, directions)
        family = family_of(store, number)
        started = time.perf_counter()
        candidates = find_candidates(store, query, 100)
        first.append(time.perf_counter() - started)
        started = time.perf_counter()
        matches = find_matches(store, query, open_scorer("copies"), limit=3)
        whole.append(time.perf_counter() - started)
        recall.count(store, query, family, candidates)
        right += bool(matches) and matches[0].video_id in family
    result = {
        "videos": size,
        "windows": store.window_count(),
        "append_seconds": appended,
        "optimize_seconds": optimized,
        "search_seconds_median": statistics.median(whole),
        "search_seconds_first": whole[0],
        "first_stage_seconds_median": statistics.median(first),
        **recall.figures(),
        "best_is_right": right / queries,
        "disk_mib": sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 2**20,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    store.close()
    return result


def build(folder: Path, kind: str) -> dict[str, float]:
    """Replace the index of the windows; seconds and bytes."""
    table = lance.dataset(str(folder / WINDOWS_TABLE))
    started = time.perf_counter()
    if any(index.name == INDEX_NAME for index in table.describe_indices()):
        table.drop_index(INDEX_NAME)
    if KINDS[kind] is not None:
        partitions = max(1, min(4096, table.count_rows() // 1024))
        options = {"num_sub_vectors": DIMENSION // 8} if kind == "product" else {}
        if kind == "int8":
            partitions = max(1, partitions // 64)  # each of them a graph
        options |= {"num_partitions": partitions, "sample_rate": 64}
        table.create_index("vector", KINDS[kind], metric="cosine", name=INDEX_NAME, **options)
    seconds = time.perf_counter() - started
    table = lance.dataset(str(folder / WINDOWS_TABLE))
    names = [index.segments[0].uuid for index in table.describe_indices() if index.name == INDEX_NAME]
    parts = [path for name in names for path in (folder / "windows.lance" / "_indices" / name).rglob("*")]
    return {
        "build_seconds": seconds,
        "index_mib": sum(path.stat().st_size for path in parts if path.is_file()) / 2**20,
        "vectors_mib": table.count_rows() * DIMENSION * 2 / 2**20,
    }


def ask(folder: Path, size: int, queries: int, directions: Directions) -> dict[str, object]:
    """The first stage as the index answers it: times, recall, the windows found, memory."""
    torch.set_num_threads(1)
    before = psutil.Process().memory_full_info().uss
    store = LanceStore(open_place(folder))
    seconds, windows, recall = [], [], Recall()
    for number in chosen_queries(size, queries):
        query = query_of(number, directions)
        family = family_of(store, number)
        find_candidates(store, query, 1)  # opens what is opened once
        started = time.perf_counter()
        candidates = find_candidates(store, query, 100)
        seconds.append(time.perf_counter() - started)
        recall.count(store, query, family, candidates)
        near = store.nearest(frame_vectors(query.vectors[:, 0])[:1], 100)
        windows.append([*zip(near.video_ids[0].tolist(), near.windows[0].tolist(), strict=True)])
    usage = psutil.Process().memory_full_info()
    return {
        "first_stage_seconds_median": statistics.median(seconds),
        "first_stage_seconds_p99": float(np.quantile(seconds, 0.99)),
        **recall.figures(),
        "memory_mib": (usage.uss - before) / 2**20,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "windows": windows,
    }


def compare(
    folder: Path, size: int, queries: int, directions: Directions, kinds: list[str]
) -> dict[str, dict[str, object]]:
    """All kinds of index over the same windows; `float16`, which is exact, first."""
    rows: dict[str, dict[str, object]] = {}
    exact: list[set[object]] = []
    for kind in ["float16", *(kind for kind in kinds if kind != "float16")]:
        built = build(folder, kind)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            answers = pool.submit(ask, folder, size, queries, directions).result()
        found = [set(one) for one in answers.pop("windows")]
        exact = exact or found
        shares = [len(one & true) / len(true) for one, true in zip(found, exact, strict=True)]
        rows[kind] = {**built, **answers, "windows_found": statistics.mean(shares)}
        print(kind, json.dumps(rows[kind]), flush=True)
    return rows


def print_spread(folder: Path) -> None:
    """MEAN_LENGTH and VARIANCES of an index."""
    with Index.open(folder, read_only=True) as index:
        ids = [record.id for record in index.videos() if record.windows]
        vectors = np.concatenate([index.store.read_windows(one).of_whole().vectors for one in ids]).astype(np.float32)
    mean = vectors.mean(0)
    variance = np.linalg.svd(vectors - mean, compute_uv=False) ** 2
    shares = variance / variance.sum()
    ranks = [2**k - 1 for k in range(len(VARIANCES)) if 2**k <= len(shares)]
    print(f"{len(ids)} videos: mean {np.linalg.norm(mean):.3f}, shares {[f'{float(shares[k]):.2g}' for k in ranks]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 20_000, 200_000])
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--real", action="store_true", help="directions as real videos have them")
    parser.add_argument("--short", action="store_true", help="one scene per video: 2 to 4 frames")
    parser.add_argument("--kinds", choices=KINDS, nargs="+", default=[], help="compare these kinds of index")
    parser.add_argument("--measure", type=Path, help="print how the vectors of an index are spread, and end")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.measure:
        print_spread(arguments.measure)
        return
    if not arguments.work:
        parser.error("--work is needed")
    directions = REAL if arguments.real else UNIFORM
    if arguments.short:
        directions = replace(directions, scenes=(1, 1))
    rows = []
    for size in arguments.sizes:
        folder = arguments.work / f"{size}.vidkin"
        rows.append(measure(size, folder, arguments.queries, directions))
        print(json.dumps(rows[-1]), flush=True)
        if arguments.kinds:
            rows[-1]["kinds"] = compare(folder, size, arguments.queries, directions, arguments.kinds)
        shutil.rmtree(folder)
    if arguments.output:
        arguments.output.write_text(json.dumps({"machine": describe_machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
