"""Indexes of 10^3 to 10^5 videos composed of real footage, as the package makes and searches them, and edited queries.

    python research/benchmarks/scale_material.py --work /tmp/million                                     # once
    python research/benchmarks/scale_real.py --work /tmp/million --index /tmp/million/c.vidkin --videos 1000 10000
    python research/benchmarks/scale_real.py --work /tmp/million --index /tmp/million/c.vidkin --videos 10000 \
        --only-ask --half held-back

Videos and queries are those of `scale_material.py`. Their features are appended to an index through its store, in
batches, up to each of these sizes; then the store is optimized, which builds the index of its windows, and the queries
of a half are asked. What is there already stays, so a run that was stopped goes on, and a second half needs no second
index. The videos to find, of both halves, are in each index. Each step runs in a process of its own.

Printed for each size: seconds by the clock and of processors to compose videos, to make windows, to append and to
build; peak memory of each step; bytes; of the queries, how often the right video is among the first 100 candidates
(recall@100), the first candidate, and the first match after exact scoring; seconds of the first stage and of a search
whose query is described already, with refreshing the index and looking for files of the same bytes (median, 99th
percentile), the first query, which loads what is loaded once, apart. Recalls are also those of clips outside of skies,
and of clips that score at least .2 with the video to find: no others can be results, whatever the first stage finds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from scale_material import HALVES, SKY, compose_many, open_cases, open_footage, open_targets
from vidkin.index import Entry, Index, VideoRecord, window_vectors
from vidkin.index.query.candidates import find_candidates, query_vectors
from vidkin.index.query.query import SearchParts
from vidkin.index.query.sound import SearchLimits, search_file
from vidkin.index.query.stages import score_candidates
from vidkin.index.storage.records import to_stored
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import FrameFeatures

BATCH = 256
# Score from which on two videos are one result; a video that scores less is none, whatever the first stage finds.
SURE = 0.2


class Clock:
    """Seconds by the clock and of processors, by the name of what took them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        wall, processor = time.perf_counter(), time.process_time()
        yield
        for key, value in (
            (f"{name}_seconds", time.perf_counter() - wall),
            (f"{name}_processor_seconds", time.process_time() - processor),
        ):
            self.seconds[key] = self.seconds.get(key, 0.0) + value


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def entry(path: str, features: FrameFeatures) -> Entry:
    """What `vidkin index` writes of a video with these features."""
    windows = window_vectors(features)
    record = VideoRecord(
        path=path, size=1, mtime_ns=1, content_hash=path, duration=features.end or 0.0,
        frames=len(features), sampling_rate=1.0, windows=len(windows), width=640, height=360, frame_rate=25.0,
        codec="h264", bit_depth=8, added_at=1.0,
    )  # fmt: skip
    return Entry(record, features, windows)


def path_of(number: int) -> str:
    return f"/composed/{number // 1000:04d}/{number:07d}.mp4"


def target_path(source: str) -> str:
    return f"/targets/{Path(source).name}"


def append(work: Path, folder: Path, videos: int) -> dict[str, Any]:
    """Append what is missing of so many videos, and of those to find."""
    footage, clock = open_footage(work), Clock()
    with Index.open(folder, create=True) as index, index.place.exclusive():
        store = index.store
        store.recover()
        targets = {target_path(path): one for half in HALVES for path, one in open_targets(work, half, footage).items()}
        new = {path: to_stored(one) for path, one in targets.items() if store.find(path) is None}
        store.append_many([entry(path, one) for path, one in new.items()])
        first = next(number for number in range(videos + 1) if store.find(path_of(number)) is None)
        made = compose_many(footage, range(first, videos))
        for done in range(first, videos, BATCH):
            numbers = range(done, min(done + BATCH, videos))
            with clock.of("compose"):
                features = [to_stored(next(made)) for _ in numbers]
            with clock.of("windows"):
                entries = [entry(path_of(number), one) for number, one in zip(numbers, features, strict=True)]
            with clock.of("append"):
                store.append_many(entries)
            if numbers.stop % (32 * BATCH) == 0:
                print(f"{numbers.stop} of {videos}: {json.dumps(clock.seconds)}, {peak_mib():.0f} MiB", flush=True)
    return {"appended": videos - first, **clock.seconds, "append_peak_mib": peak_mib()}


def build(folder: Path) -> dict[str, Any]:
    """Build the index of the windows."""
    clock = Clock()
    with Index.open(folder) as index, index.place.exclusive(), clock.of("build"):
        index.store.optimize()
    return {**clock.seconds, "build_peak_mib": peak_mib()}


def ask(work: Path, folder: Path, half: str, candidates: int) -> dict[str, Any]:
    """The queries of a half, one after the other in one process."""
    clock = Clock()
    with clock.of("open"):
        index = Index.open(folder, read_only=True)
        parts = SearchParts(index.place, index.manifest, index.store, lambda: index.extractor)
        parts.refresh()
    opened_mib, rows = peak_mib(), []
    for case in open_cases(work, half):
        target = index.store.find(target_path(case.source))
        if target is None:
            raise SystemExit(f"{folder} lacks the video to find {case.source}; append again")
        of_case = Clock()
        with of_case.of("first_stage"):
            found = find_candidates(index.store, case.query, 100)
        with of_case.of("search"):
            parts.refresh()
            words = parts, index.manifest, SearchLimits(None, None, 10, 0.0, candidates), "picture", None
            # A file of which no video has the bytes.
            matches = search_file(work / "queries" / f"{half}.json", partial(attrgetter("query"), case), *words)
        right = score_candidates(index.store, case.query, [target.id], parts.scorer)
        rows.append(
            {
                "query": f"{case.name} {case.edit}",
                "sky": SKY in case.source,
                "vectors": len(query_vectors(case.query)[0]),
                "score_of_target": max((pair.score for _, pair in right), default=0.0),
                "candidate": found.index(target.id) if target.id in found else None,
                "match": next((place for place, one in enumerate(matches) if one.video_id == target.id), None),
                "score": next((one.score for one in matches if one.video_id == target.id), 0.0),
                **of_case.seconds,
            }
        )
    counts = {
        "records": len(index),
        "frames": sum(record.frames for record in index.videos()),
        "windows": index.store.window_count(),
    }
    index.close()
    return {
        **counts,
        **clock.seconds,
        "opened_mib": opened_mib,
        "ask_peak_mib": peak_mib(),
        **summarize(rows),
        "queries": rows,
    }


def summarize(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Recalls and times of the queries."""
    result: dict[str, Any] = {"vectors_median": float(np.median([row["vectors"] for row in rows]))}
    for name, chosen in (
        ("", rows),
        ("_without_skies", [row for row in rows if not row["sky"]]),
        ("_of_scored", [row for row in rows if row["score_of_target"] >= SURE]),
    ):
        result[f"queries{name}"] = len(chosen)
        for key, is_met in (
            ("recall_at_100", lambda row: row["candidate"] is not None),
            ("candidate_first", lambda row: row["candidate"] == 0),
            ("among_10_matches", lambda row: row["match"] is not None),
            ("first", lambda row: row["match"] == 0),
        ):
            result[f"{key}{name}"] = sum(map(is_met, chosen)) / len(chosen)
    for stage in ("first_stage", "search"):
        for kind in ("seconds", "processor_seconds"):
            values = [row[f"{stage}_{kind}"] for row in rows]
            result[f"{stage}_{kind}_first"] = values[0]
            result[f"{stage}_{kind}_median"] = float(np.median(values[1:]))
            result[f"{stage}_{kind}_p99"] = float(np.quantile(values[1:], 0.99))
    return result


def sizes(folder: Path) -> dict[str, float]:
    """MiB of the parts of an index: features, windows and their index, records."""
    endings = {"vectors": "windows", "index": "window_index", "sqlite": "videos"}
    total = dict.fromkeys(("features", *endings.values(), "other"), 0)
    for parent, _, files in os.walk(folder):
        for file in files:
            ending = "features" if f"{os.sep}features{os.sep}" in parent + os.sep else file.rpartition(".")[2]
            part = "features" if ending == "features" else endings.get(ending, "other")
            total[part] += os.stat(os.path.join(parent, file)).st_size
    return {f"{name}_mib": size / 2**20 for name, size in total.items()}


def apart(function: Callable[..., dict[str, Any]], *words: Any) -> dict[str, Any]:
    """What a function returns in a process of its own, so that its peak of memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *words).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="the folder of scale_material.py")
    parser.add_argument("--index", type=Path, required=True, help="folder of the index; kept unless --delete")
    parser.add_argument("--videos", type=int, nargs="+", default=[1000], help="sizes, the smallest first")
    parser.add_argument("--half", choices=HALVES, default=HALVES[0])
    parser.add_argument("--candidates", type=int, default=100, help="scored exactly")
    parser.add_argument("--only-ask", action="store_true", help="ask an index as it is")
    parser.add_argument("--delete", action="store_true", help="delete the index in the end")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    rows = []
    for videos in given.videos:
        row = {"videos": videos}
        if not given.only_ask:
            row |= apart(append, given.work, given.index, videos)
            row |= apart(build, given.index)
        row |= sizes(given.index)
        row |= apart(ask, given.work, given.index, given.half, given.candidates)
        rows.append(row)
        print(json.dumps({name: value for name, value in row.items() if name != "queries"}), flush=True)
    if given.delete:
        shutil.rmtree(given.index)
    if given.output:
        document = {"machine": describe_machine(), "half": given.half, "candidates": given.candidates, "rows": rows}
        given.output.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
