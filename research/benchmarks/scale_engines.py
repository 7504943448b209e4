"""Which vectors of a video the first stage should keep, in which kind of FAISS index, and how to rank videos by them.

    python research/benchmarks/scale_engines.py --work /tmp/million --index /tmp/million/c.vidkin \
        --rows /tmp/million/rows
    python research/benchmarks/scale_engines.py --work /tmp/million --compose 1000000 --rows /tmp/million/rows \
        --vectors windows --kinds pq64

Takes the videos of an index made by `scale_real.py`, or with --compose as many whole frames of the recipe of
`scale_material.py`. Vectors (--vectors): `windows`, what the index has now; `frames`, each informative frame and each
box found in it; `whole`, frames without boxes; `shots`, the mean of each stretch without a cut; `centers`, the 8
frames that cover a video best. Kinds of index (--kinds): `exact`, all vectors compared, up to half a million; `sq8`, 8
bits a number; `pq64` and `pq32`, 64 or 32 codes of 4 bits a vector, compared by fast scan; `rabitq`, one bit a number
by fast scan. Windows are in all kinds given, other vectors in `pq64`. It is asked with several numbers of partitions
that are read, of candidates whose vectors are read from the file (for each one looked up; 0 takes the cosines of the
codes), and of vectors looked up.

Ways to rank videos by the nearest vectors, of all with the same neighbors: `margin`, what the package does; `sum`,
without the half chosen for diversity; `level`, cosines less the level of unrelated frames of each vector; `offset`,
votes of one offset in time. Windows have neither a stored level nor a time.

Printed for each: vectors, MiB, seconds to train and to add; of the queries the share whose video is among the first
100, and the first: all, without skies, and of those that score at least .2 with it; milliseconds of a query, one after
the other in one thread: of a processor (median, 99th percentile), and by the clock (median).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from scale_material import (
    BLOCK,
    COMPOSED_AT_ONCE,
    HALVES,
    LEAST_INFORMATION,
    SKY,
    Case,
    Frames,
    compose_frames,
    open_cases,
    open_footage,
    open_targets,
    plan_block,
)
from scale_real import SURE, target_path
from vidkin._base.blas import largest_columns
from vidkin.index import Index, window_vectors
from vidkin.index.query.candidates import margin_votes, query_vectors, rank_candidates
from vidkin.index.query.stored import prepare_features
from vidkin.index.storage.contract import NearestWindows
from vidkin.index.storage.records import frame_vectors, unit_vectors
from vidkin.match import open_scorer
from vidkin.media.frames import is_before
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import FrameFeatures

DIMENSION = 256
READ_AT_ONCE = 256
CENTERS = 8
# The choice that is compared in all kinds of index, and the kind in which all choices are compared.
WINDOWS, MAIN_KIND = "windows", "pq64"
# Cosine of two frames in a row below which a cut is between them.
CUT = 0.5
# Vectors of a partition, on average, as in the package, and of the quantized kinds, which read a partition faster.
ROWS_A_PARTITION = {"sq8": 1024, "pq64": 4096, "pq32": 4096, "rabitq": 4096}
FACTORIES = {"sq8": "SQ8", "pq64": "PQ64x4fs", "pq32": "PQ32x4fs", "rabitq": "RaBitQfs"}
MAX_PARTITIONS, SAMPLES_A_PARTITION = {"sq8": 4096, "pq64": 1024, "pq32": 1024, "rabitq": 1024}, 64
MIN_SAMPLES, SEED = 1 << 14, 1
# Partitions read, candidates of codes that are compared with their vectors for each one looked up (0 takes the cosines
# of the codes), and the number looked up for each vector of a query.
SETTINGS = {
    "exact": ((0, 1, 64),),
    "sq8": ((256, 2, 64),),
    "pq64": ((64, 4, 64), (16, 4, 64), (64, 0, 64), (64, 4, 256)),
    "pq32": ((64, 4, 64),),
    "rabitq": ((64, 4, 64),),
}
# Vectors up to which all are compared with each other.
MAX_EXACT = 500_000
# Seconds of a bin of offsets.
BIN = 2.0


class Video(NamedTuple):
    """What a choice of vectors sees of a video: vectors [T, V, D] float16, which frames are informative [T], times [T],
    levels of unrelated frames [T, V], and the windows [W, D] of the index."""

    vectors: NDArray[np.float16]
    informative: NDArray[np.bool_]
    times: NDArray[np.float64]
    levels: NDArray[np.float32]
    windows: NDArray[np.float16]


Rows = tuple[NDArray[np.floating], NDArray[np.floating], NDArray[np.floating]]
"""Vectors [N, D] of a video, the time and the level of each [N]."""


def choose_windows(video: Video) -> Rows:
    nothing = np.zeros(len(video.windows))
    return video.windows, nothing, nothing


def choose_frames(video: Video) -> Rows:
    rows, views = np.nonzero(video.informative[:, None] & video.vectors.any(axis=2))
    return video.vectors[rows, views], video.times[rows], video.levels[rows, views]


def choose_whole(video: Video) -> Rows:
    rows = np.flatnonzero(video.informative & video.vectors[:, 0].any(axis=1))
    return video.vectors[rows, 0], video.times[rows], video.levels[rows, 0]


def choose_shots(video: Video) -> Rows:
    vectors, times, levels = choose_whole(video)
    if not len(vectors):
        return vectors, times, levels
    vectors = vectors.astype(np.float32)
    firsts = np.concatenate([[0], np.flatnonzero(np.vecdot(vectors[1:], vectors[:-1]) < CUT) + 1])
    return unit_vectors(np.add.reduceat(vectors, firsts)), times[firsts], levels[firsts]


def choose_centers(video: Video) -> Rows:
    vectors, times, levels = choose_whole(video)
    if len(vectors) <= CENTERS:
        return vectors, times, levels
    own = vectors.astype(np.float32)
    chosen = [len(own) // 2]
    nearest = own @ own[chosen[0]]
    while len(chosen) < CENTERS:
        chosen.append(int(nearest.argmin()))
        np.maximum(nearest, own @ own[chosen[-1]], out=nearest)
    return vectors[chosen], times[chosen], levels[chosen]


CHOICES: dict[str, Callable[[Video], Rows]] = {
    "windows": choose_windows,
    "frames": choose_frames,
    "whole": choose_whole,
    "shots": choose_shots,
    "centers": choose_centers,
}


def of_features(features: FrameFeatures, windows: NDArray[np.float16]) -> Video:
    vectors = frame_vectors(features.values).astype(np.float16)
    informative = features.information >= LEAST_INFORMATION
    return Video(vectors, informative, features.timestamps, features.baselines, windows)


def read_index(folder: Path) -> Iterator[tuple[str, Video]]:
    """Paths and videos of an index."""
    with Index.open(folder, read_only=True) as index:
        store, records = index.store, index.videos()
        for first in range(0, len(records), READ_AT_ONCE):
            part = records[first : first + READ_AT_ONCE]
            ids = [record.id for record in part]
            both = zip(part, store.read_many(ids), store.read_windows_many(ids), strict=True)
            for record, features, windows in both:
                yield record.path, of_features(features, windows)


def merge_runs(made: Frames, informative: NDArray[np.bool_]) -> list[NDArray[np.float16]]:
    """Windows [W, D] of the whole frames of each video, as `find_windows` makes them; of all videos at once."""
    counts = np.bincount(made.videos)
    firsts = np.cumsum(counts) - counts
    steps = np.diff(made.times, append=0.0)
    steps[firsts + counts - 1] = steps[firsts + counts - 2]
    sums, is_open = np.zeros((len(counts), DIMENSION), np.float32), np.zeros(len(counts), bool)
    starts, owners, found = np.zeros(len(counts)), [], []
    for at in range(int(counts.max()) + 1):
        rows = firsts + np.minimum(at, counts - 1)
        vectors, is_frame = made.vectors[rows, 0], (at < counts) & informative[rows]
        joins = is_open & is_frame & ~is_before(10.0, made.times[rows] + steps[rows] - starts)
        joins &= np.vecdot(vectors, sums) >= 0.9 * np.sqrt(np.vecdot(sums, sums).astype(np.float64))
        closed = np.flatnonzero(is_open & ~joins)
        owners.append(closed)
        found.append(sums[closed])
        opens = is_frame & ~joins
        sums[joins] += vectors[joins]
        sums[opens], starts[opens] = vectors[opens], made.times[rows][opens]
        is_open = is_frame
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    windows = unit_vectors(np.concatenate(found)[order]).astype(np.float16)
    return np.split(windows, np.searchsorted(owner[order], np.arange(1, len(counts))))


def compose_index(work: Path, videos: int) -> Iterator[tuple[str, Video]]:
    """The same of whole frames of the recipe, and the videos to find."""
    footage = open_footage(work)
    for half in HALVES:
        for path, features in open_targets(work, half, footage).items():
            whole = features.views([0])
            yield target_path(path), of_features(whole, window_vectors(whole).astype(np.float16))
    for block in range(-(-videos // BLOCK)):
        plan = plan_block(footage, block)
        for first in range(0, BLOCK, COMPOSED_AT_ONCE):
            made = compose_frames(footage, plan, first, first + COMPOSED_AT_ONCE, 1)
            vectors = made.vectors.astype(np.float16)
            informative = footage.information[made.rows] >= LEAST_INFORMATION
            edges = np.searchsorted(made.videos, np.arange(COMPOSED_AT_ONCE + 1))
            for (begin, end), windows in zip(pairwise(edges.tolist()), merge_runs(made, informative), strict=True):
                rows = slice(begin, end)
                levels = footage.baselines[made.rows[rows], :1]
                yield "", Video(vectors[rows], informative[rows], made.times[rows], levels, windows)


@dataclass(frozen=True)
class Table:
    """The chosen vectors [N, D] of all videos in a file, with the video, time and level of each [N]."""

    vectors: NDArray[np.float16]
    videos: NDArray[np.int32]
    times: NDArray[np.float32]
    levels: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.vectors)


def write_tables(videos: Iterator[tuple[str, Video]], choices: Sequence[str], folder: Path) -> dict[str, int]:
    """Write the table of each choice, and return the numbers of the videos to find by path."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: open(folder / f"{name}.vectors", "wb") for name in choices}  # noqa: SIM115 - closed below
    columns: dict[str, list[Rows]] = {name: [] for name in choices}
    numbers = {}
    count = 0
    for number, (path, video) in enumerate(videos):
        count = number + 1
        if path.startswith(target_path("")):
            numbers[path] = number
        for name in choices:
            vectors, times, levels = CHOICES[name](video)
            files[name].write(np.ascontiguousarray(vectors, np.float16).tobytes())
            owner = np.full(len(vectors), number, np.int32)
            columns[name].append((owner, times.astype(np.float32), levels.astype(np.float32)))
    for name in choices:
        files[name].close()
        owners, times, levels = (np.concatenate(column) for column in zip(*columns[name], strict=True))
        np.savez(folder / f"{name}.npz", videos=owners, times=times, levels=levels)
    print(f"{count} videos", flush=True)
    return {**numbers, "": count}


def open_table(folder: Path, choice: str) -> Table:
    vectors = np.memmap(folder / f"{choice}.vectors", np.float16, "r").reshape(-1, DIMENSION)
    with np.load(folder / f"{choice}.npz") as columns:
        return Table(vectors, columns["videos"], columns["times"], columns["levels"])


def build(table: Table, kind: str) -> tuple[Any, dict[str, float]]:
    """The index of a kind, None if exact, with its figures."""
    if kind == "exact":
        return None, {"train_seconds": 0.0, "add_seconds": 0.0, "index_mib": 0.0, "bytes_a_vector": 0.0}
    partitions = max(1, min(MAX_PARTITIONS[kind], len(table) // ROWS_A_PARTITION[kind]))
    index = faiss.index_factory(DIMENSION, f"IVF{partitions},{FACTORIES[kind]}", faiss.METRIC_INNER_PRODUCT)
    sampled = min(len(table), max(MIN_SAMPLES, SAMPLES_A_PARTITION * partitions))
    sample = np.random.default_rng(SEED).choice(len(table), sampled, replace=False)
    started = time.process_time()
    index.train(table.vectors[np.sort(sample)].astype(np.float32))
    trained = time.process_time()
    for first in range(0, len(table), 1 << 16):
        index.add(table.vectors[first : first + (1 << 16)].astype(np.float32))
    added = time.process_time()
    size = int(index.code_size) + 8
    return index, {
        "partitions": partitions,
        "train_seconds": trained - started,
        "add_seconds": added - trained,
        "bytes_a_vector": size,
        "index_mib": size * len(table) / 2**20,
    }


class Found(NamedTuple):
    """The nearest rows [Q, K] of the queries, best first, with their exact cosines."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


def compare_all(table: Table, queries: NDArray[np.float32], count: int) -> Found:
    """The nearest ``count`` of all rows."""
    scores, rows = np.zeros((len(queries), 0), np.float32), np.zeros((len(queries), 0), np.int64)
    for first in range(0, len(table), 1 << 16):
        part = queries @ table.vectors[first : first + (1 << 16)].astype(np.float32).T
        columns = largest_columns(part, min(count, part.shape[1]))
        scores = np.concatenate([scores, np.take_along_axis(part, columns, axis=1)], axis=1)
        rows = np.concatenate([rows, columns + first], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        scores, rows = (np.take_along_axis(column, order, axis=1) for column in (scores, rows))
    return Found(rows, scores)


def look_up(table: Table, index: Any, queries: NDArray[np.float32], count: int, refined: int) -> Found:
    """The nearest ``count`` rows by an index."""
    scores, rows = index.search(queries, max(1, refined) * count)
    if not refined:
        return Found(rows, scores)
    scores = np.stack([table.vectors[own].astype(np.float32) @ query for own, query in zip(rows, queries, strict=True)])
    scores[rows < 0] = -1.0
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return Found(*(np.take_along_axis(column, order, axis=1) for column in (rows, scores)))


def rank_margin(table: Table, found: Found, times: NDArray[np.float64]) -> list[int]:
    return rank_candidates(*votes_of(table, found.rows, found.scores), 100)


def rank_sum(table: Table, found: Found, times: NDArray[np.float64]) -> list[int]:
    videos, votes = votes_of(table, found.rows, found.scores)
    ranked: list[int] = videos[np.argsort(-votes.sum(axis=0), kind="stable")][:100].tolist()
    return ranked


def rank_level(table: Table, found: Found, times: NDArray[np.float64]) -> list[int]:
    levels = table.levels[found.rows]
    return rank_candidates(*votes_of(table, found.rows, found.scores - levels + levels.mean()), 100)


def rank_offset(table: Table, found: Found, times: NDArray[np.float64]) -> list[int]:
    """Videos by the votes of their best offset in two grids of bins; each vector votes once in a bin."""
    scores = found.scores.astype(np.float64)
    least = scores.min(axis=1, keepdims=True)
    votes = (((scores - least) / (1.02 - least)) ** 3).ravel()
    videos = table.videos[found.rows].ravel()
    vectors = np.repeat(np.arange(len(scores)), scores.shape[1])
    offsets = (table.times[found.rows] - times[:, None]).ravel()
    best: dict[int, float] = {}
    for shift in (0.0, BIN / 2):
        bins = np.floor((offsets + shift) / BIN).astype(np.int64)
        keys = np.stack([videos, bins, vectors], axis=1)
        order = np.lexsort((-votes, *keys.T[::-1]))
        firsts = order[np.concatenate([[True], (np.diff(keys[order], axis=0) != 0).any(axis=1)])]
        own, own_bins = videos[firsts], bins[firsts]
        edges = np.flatnonzero(np.concatenate([[True], (np.diff(own) != 0) | (np.diff(own_bins) != 0)]))
        for video, total in zip(own[edges].tolist(), np.add.reduceat(votes[firsts], edges).tolist(), strict=True):
            best[video] = max(total, best.get(video, 0.0))
    return sorted(best, key=lambda video: (-best[video], video))[:100]


WAYS: dict[str, Callable[[Table, Found, NDArray[np.float64]], list[int]]] = {
    "margin": rank_margin,
    "sum": rank_sum,
    "level": rank_level,
    "offset": rank_offset,
}


def votes_of(
    table: Table, rows: NDArray[np.int64], scores: NDArray[np.floating]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Votes as the package counts them."""
    videos = np.where(rows < 0, -1, table.videos[rows]).astype(np.int64)
    return margin_votes(NearestWindows(videos, rows, np.asarray(scores, np.float32)))


@dataclass(frozen=True)
class Query:
    """A query: its vectors [Q, D] and their times [Q], the number of the video to find, and whether it is a clip of a
    sky and scores enough with that video to be a result."""

    vectors: NDArray[np.float32]
    times: NDArray[np.float64]
    target: int
    is_sky: bool
    is_scored: bool


def open_queries(work: Path, half: str, numbers: dict[str, int]) -> list[Query]:
    scorer, targets = open_scorer("copies"), open_targets(work, half, open_footage(work))
    ready = {path: prepare_features(features) for path, features in targets.items()}

    def query_of(case: Case) -> Query:
        score = scorer.score(case.query, [ready[case.source]])[0].score
        vectors, times, _ = query_vectors(case.query)
        return Query(vectors, times, numbers[target_path(case.source)], SKY in case.source, score >= SURE)

    return [query_of(case) for case in open_cases(work, half)]


def ask(
    table: Table, index: Any, ways: Sequence[str], probed: int, refined: int, count: int, queries: Sequence[Query]
) -> list[dict[str, Any]]:
    """Recalls of these ways, and the seconds of ``margin``."""
    if index is not None:
        index.nprobe = min(probed, int(index.nlist))
    places: dict[str, list[int]] = {}
    seconds = []
    for query in queries:
        started = time.perf_counter(), time.process_time()
        found = None
        if len(query.vectors):
            if index is None:
                found = compare_all(table, query.vectors, count)
            else:
                found = look_up(table, index, query.vectors, count, refined)
            rank_margin(table, found, query.times)
        seconds.append((time.perf_counter() - started[0], time.process_time() - started[1]))
        for way in ways:
            ranked = [] if found is None else WAYS[way](table, found, query.times)
            place = ranked.index(query.target) if query.target in ranked else len(ranked) + 100
            places.setdefault(way, []).append(place)
    parts = {
        "": np.ones(len(queries), bool),
        "_without_skies": ~np.array([query.is_sky for query in queries]),
        "_of_scored": np.array([query.is_scored for query in queries]),
    }
    rows_of = []
    for way, own in places.items():
        row: dict[str, Any] = {"probed": probed, "refined": refined, "looked_up": count, "way": way}
        for name, is_part in parts.items():
            part = np.array(own)[is_part]
            for figure, most in (("first", 1), ("recall_at_10", 10), ("recall_at_100", 100)):
                row[f"{figure}{name}"] = float((part < most).mean())
        # The first query loads what is loaded once.
        for name, taken in zip(("seconds", "processor_seconds"), np.array(seconds[1:]).T, strict=True):
            row |= {f"{name}_median": float(np.median(taken)), f"{name}_p99": float(np.quantile(taken, 0.99))}
        rows_of.append(row)
    return rows_of


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Rows of one index as a table."""
    for row in rows:
        print(
            f"| {row['vectors']} | {row['kind']} {row['probed']} {row['refined']} | {row['looked_up']} {row['way']} "
            f"| {row['count']:,} | {row['index_mib']:.0f} | {row['train_seconds']:.0f} + {row['add_seconds']:.0f} "
            f"| {row['recall_at_100']:.3f}, {row['recall_at_100_without_skies']:.3f}, "
            f"{row['recall_at_100_of_scored']:.3f} | {row['first']:.3f}, {row['first_without_skies']:.3f}, "
            f"{row['first_of_scored']:.3f} | {1000 * row['processor_seconds_median']:.0f}, "
            f"{1000 * row['processor_seconds_p99']:.0f} ms; {1000 * row['seconds_median']:.0f} ms |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="the folder of scale_material.py")
    parser.add_argument("--index", type=Path, help="an index of scale_real.py")
    parser.add_argument("--compose", type=int, help="this number of videos of the recipe instead")
    parser.add_argument("--rows", type=Path, required=True, help="folder for the vectors; kept")
    parser.add_argument("--vectors", choices=CHOICES, nargs="+", default=[*CHOICES])
    parser.add_argument("--kinds", choices=SETTINGS, nargs="+", default=[*SETTINGS], help="of windows")
    parser.add_argument("--halves", choices=HALVES, nargs="+", default=HALVES[:1])
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    faiss.omp_set_num_threads(1)
    names = given.rows / "numbers.json"
    missing = [name for name in given.vectors if not (given.rows / f"{name}.npz").exists()]
    if missing:
        source = read_index(given.index) if given.index else compose_index(given.work, given.compose)
        numbers = write_tables(source, missing, given.rows)
        names.write_text(json.dumps(numbers))
    numbers = json.loads(names.read_text())
    queries = {half: open_queries(given.work, half, numbers) for half in given.halves}
    rows = []
    for choice in given.vectors:
        table = open_table(given.rows, choice)
        for kind in given.kinds if choice == WINDOWS else [MAIN_KIND]:
            if kind == "exact" and len(table) > MAX_EXACT:
                continue
            index, figures = build(table, kind)
            for half, own in queries.items():
                for settings in SETTINGS[kind]:
                    ways = ["margin", "sum"] if choice == WINDOWS else [*WAYS]
                    found = ask(table, index, ways, *settings, own)
                    start = {"half": half, "vectors": choice, "kind": kind, "count": len(table), **figures}
                    rows += [start | row for row in found]
                    print_rows([start | row for row in found])
    if given.output:
        document = {
            "machine": describe_machine(),
            "videos": numbers[""],
            "queries": {half: [len(own), sum(one.is_sky for one in own)] for half, own in queries.items()},
            "seed": SEED,
            "rows": rows,
        }
        given.output.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
