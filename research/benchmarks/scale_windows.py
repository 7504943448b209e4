"""Other windows and other sums for the first stage of a large collection: what was tried beside `scale_recall.py`.

    python research/benchmarks/scale_material.py --work /tmp/million          # once
    python research/benchmarks/scale_windows.py --work /tmp/million --videos 2048 [--half held-back] [--output FILE]

Queries and videos are those of `scale_material.py`; windows and vectors are made from features, in several ways, and
all are compared, whitened as in new indexes. The table says, for each way and several lengths of the lists of nearest
windows, how often the right video is among the first 1, 4, 10 and 100, with and without clips of small objects in a
sky; how many windows a video has and how many vectors a query has.

* shorter, longer: frames join a window from a higher or a lower cosine on, and up to fewer or more seconds.
* means: a query has the means of its own windows in place of frames; also weighted by how many of the frames that are
  compared now each stands for.
* all frames: those with little information, too; a plain sky has next to none.
* what changes: the vector of a frame less the mean of the vectors within five seconds of it, in the same view; what
  stands still is gone. Frames with less than a tenth of that are left out. Alone, and beside the vectors as they are: a
  video is as promising as both say together.
* learned: a logistic regression, by what each side of a query says of a video, in place of the sum of the cubed shares
  (`ways_of`). It is fitted to the queries of all other sources than the one that is asked, so a held-back half is
  fitted to itself in the same way, and no source to itself.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scale_material import HALVES, SKY, Case, Footage, compose_many, open_cases, open_footage, open_targets
from scale_recall import FAMILY_WITHOUT, LEFT_OUT, Whitening, nearest_of, whitening_sample
from vidkin.index import window_vectors
from vidkin.index.query.candidates import query_vectors, ways_of
from vidkin.index.storage.contract import NearestWindows
from vidkin.index.storage.records import frame_vectors
from vidkin.index.storage.whitening import WHITENING_POWER
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import FrameFeatures

BATCH = 64
LENGTHS = (2, 4, 8, 32)
AMONG = (1, 4, 10, 100)
# Of changes: seconds on either side, and the least length of what is left of a unit vector.
AROUND, LEAST_CHANGE = 5.0, 0.1

Vectors = NDArray[np.float32]
Sides = list[tuple[NDArray[np.int64], NDArray[np.float32]]]


@dataclass(frozen=True)
class Kind:
    """How windows [W, D] are made of a video and vectors [Q, D] of a side of a query; whether whitening takes a mean
    off; how much each vector counts [Q], all the same if None."""

    windows: Callable[[FrameFeatures], Vectors]
    query: Callable[[FrameFeatures], Vectors]
    has_mean: bool = True
    weights: Callable[[FrameFeatures], NDArray[np.float64]] | None = None


def windows_of(features: FrameFeatures, **how: float) -> Vectors:
    return window_vectors(features, **how).vectors.astype(np.float16).astype(np.float32)


def vectors_of(view: FrameFeatures) -> Vectors:
    return query_vectors(view)[0]


def frames_of(view: FrameFeatures, **how: float) -> NDArray[np.float64]:
    """How many frames each window of a query stands for, of those that are compared now: 64, and 8 of each part."""
    windows = window_vectors(view, **how)
    frames = (windows.last_frames - windows.first_frames + 1).astype(np.float64)
    is_whole = np.arange(len(windows)) < len(windows.of_whole())
    return frames * np.minimum(1.0, np.where(is_whole, 64, 8) / max(1, len(view)))


def changes(features: FrameFeatures) -> FrameFeatures:
    """Features whose vectors are what each frame has beside the frames around it; zero where nothing changes."""
    vectors, times = frame_vectors(features.values), features.timestamps
    first = np.searchsorted(times, times - AROUND)
    last = np.searchsorted(times, times + AROUND, side="right")
    sums = np.concatenate([np.zeros_like(vectors[:1]), vectors.cumsum(axis=0, dtype=np.float32)])
    left = vectors - (sums[last] - sums[first]) / (last - first)[:, None, None]
    lengths = np.linalg.norm(left, axis=-1, keepdims=True)
    units = np.where(lengths >= LEAST_CHANGE, left / np.maximum(lengths, LEAST_CHANGE), 0.0)
    return replace(features, values=units[:, :, None].astype(np.float32), fingerprint="")


def informative(features: FrameFeatures) -> FrameFeatures:
    """The same as if each frame had much information."""
    return replace(features, information=np.ones(len(features), np.float32), fingerprint="")


SHORTER = {"similarity": 0.96, "similarity_of_parts": 0.7, "longest": 4.0, "longest_of_parts": 10.0}
LONGER = {"similarity": 0.8, "similarity_of_parts": 0.3, "longest": 30.0, "longest_of_parts": 60.0}
LONGEST = {"similarity": 0.6, "similarity_of_parts": 0.0, "longest": 60.0, "longest_of_parts": 60.0}

KINDS = {
    "as now": Kind(windows_of, vectors_of),
    "shorter windows": Kind(partial(windows_of, **SHORTER), vectors_of),
    "longer windows": Kind(partial(windows_of, **LONGER), vectors_of),
    "means of the query's windows": Kind(windows_of, windows_of),
    "means, weighted": Kind(windows_of, windows_of, weights=frames_of),
    "of its shorter windows, weighted": Kind(
        windows_of, partial(windows_of, **SHORTER), weights=partial(frames_of, **SHORTER)
    ),
    "of its longer windows, weighted": Kind(
        windows_of, partial(windows_of, **LONGER), weights=partial(frames_of, **LONGER)
    ),
    "of its longest windows, weighted": Kind(
        windows_of, partial(windows_of, **LONGEST), weights=partial(frames_of, **LONGEST)
    ),
    "all frames": Kind(partial(windows_of, least_information=0.0), lambda view: vectors_of(informative(view))),
    "what changes": Kind(lambda video: windows_of(changes(video)), lambda view: vectors_of(changes(view)), False),
}
TOGETHER = {
    "as now, and what changes": ("as now", "what changes"),
    "all frames, and what changes": ("all frames", "what changes"),
}


@dataclass(frozen=True)
class Asked:
    """Queries with what the nearest windows say: for each query and side the nearest windows of its vectors and how
    much each counts; windows of a video and vectors of a query, in the mean."""

    nearest: list[list[NearestWindows]]
    weights: list[list[NDArray[np.float64]]]
    windows: float
    vectors: float


def ask(kind: Kind, cases: Sequence[Case], videos: Callable[[], Iterator[FrameFeatures]], white: Whitening) -> Asked:
    """The windows of these videos, numbered from 0 on, that are nearest to the vectors of each side."""
    if not kind.has_mean:
        white = without_mean(white)
    sides = [[kind.query(side) for side in (case.query.plain, case.query.mirrored) if side] for case in cases]
    vectors = white.windows(np.concatenate([side for of_case in sides for side in of_case]))
    counts = []

    def collection() -> Iterator[tuple[Vectors, NDArray[Any]]]:
        batch: list[Vectors] = []
        for number, features in enumerate(videos()):
            batch.append(kind.windows(features))
            counts.append(len(batch[-1]))
            if len(batch) == BATCH:
                yield joined(number + 1 - len(batch), batch)
                batch = []
        if batch:
            yield joined(len(counts) - len(batch), batch)

    def joined(first: int, batch: Sequence[Vectors]) -> tuple[Vectors, NDArray[Any]]:
        columns = np.zeros((sum(map(len, batch)), 4 + len(LEFT_OUT)), np.float32)
        columns[:, 0] = np.repeat(first + np.arange(len(batch)), [len(one) for one in batch])
        return white.windows(np.concatenate(batch)), columns

    scores, found = nearest_of(vectors, np.zeros(len(vectors), np.float32), collection)
    nearest, weights, row = [], [], 0
    for case, of_case in zip(cases, sides, strict=True):
        tables = []
        for side in of_case:
            rows = slice(row, row + len(side))
            row += len(side)
            ids = found[rows, :, 0].astype(np.int64)
            tables.append(NearestWindows(ids, np.zeros_like(ids), scores[rows]))
        nearest.append([table for table in tables if len(table.scores)])
        looks = [side for side in (case.query.plain, case.query.mirrored) if side]
        counted = [np.ones(len(side)) if kind.weights is None else kind.weights(look)
                   for side, look in zip(of_case, looks, strict=True)]  # fmt: skip
        weights.append([each for each in counted if len(each)])
    return Asked(nearest, weights, float(np.mean(counts)), len(vectors) / len(cases))


def without_mean(white: Whitening) -> Whitening:
    """The same matrix for vectors whose mean is zero."""
    other = object.__new__(Whitening)
    other.__dict__.update(white.__dict__, mean=np.zeros_like(white.mean))
    return other


def sides_of(asked: Asked, case: int, most: int) -> Sides:
    """What the first windows of each vector say of the videos, for each side of a query."""
    sides = []
    for table, weights in zip(asked.nearest[case], asked.weights[case], strict=True):
        few = NearestWindows(**{name: getattr(table, name)[:, :most] for name in table.__dataclass_fields__})
        ids, ways = ways_of(few)
        sides.append((ids, ways * weights[:, None].astype(np.float32)))
    return sides


# How promising each video is, by what each side says of it.

Promise = dict[int, float]


def summed(sides: Sides) -> Promise:
    """As the package does, without what it does for clips inside of other films."""
    promise: Promise = {}
    for ids, ways in sides:
        for video, value in zip(ids.tolist(), ways.sum(axis=0, dtype=np.float64).tolist(), strict=True):
            promise[video] = max(value, promise.get(video, 0.0))
    return promise


def together(first: Promise, second: Promise) -> Promise:
    return {video: first.get(video, 0.0) + second.get(video, 0.0) for video in first.keys() | second.keys()}


def described(sides: Sides) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Videos [V] and figures [V, 7] of the better side of each: sums of the shares of the way to powers 1, 2, 3 and 6,
    the largest, how many vectors have any, and which share of the largest sum of all videos it has."""
    promise, rows = summed(sides), {}
    for ids, cubes in sides:
        shares = cubes.astype(np.float64) ** (1 / 3)
        for column, video in enumerate(ids.tolist()):
            own = shares[:, column]
            if (own**3).sum() >= promise[video] - 1e-6:
                sums = [float((own**power).sum()) for power in (1, 2, 3, 6)]
                rows[video] = [*sums, float(own.max()), float((own > 0).sum())]
    videos = np.array(sorted(rows), np.int64)
    figures = np.array([rows[video] for video in videos.tolist()])
    return videos, np.column_stack([np.log(figures + 1e-3), figures[:, 2] / figures[:, 2].max()])


def learned(asked: Asked, cases: Sequence[Case], targets: Sequence[int], most: int) -> list[Promise]:
    """Promise of each query by a regression on the queries of other sources."""
    tables = [described(sides) if (sides := sides_of(asked, at, most)) else None for at in range(len(cases))]
    result: list[Promise] = []
    for case, table in zip(cases, tables, strict=True):
        if table is None:
            result.append({})
            continue
        others = [(one[1], one[0] == target) for one, target, other in zip(tables, targets, cases, strict=True)
                  if one is not None and other.source != case.source]  # fmt: skip
        figures, is_right = np.concatenate([one for one, _ in others]), np.concatenate([one for _, one in others])
        model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
        values = model.fit(figures, is_right).decision_function(table[1])
        result.append(dict(zip(table[0].tolist(), values.tolist(), strict=True)))
    return result


def rank_of(promise: Promise, target: int) -> int:
    """Number of videos before the one to find; a million if it is not among those that are ordered."""
    own = promise.get(target)
    return 10**6 if own is None else sum(value >= own for video, value in promise.items() if video != target)


def row(
    name: str, most: int, promises: Sequence[Promise], targets: Sequence[int], sky: NDArray[np.bool_]
) -> dict[str, Any]:
    ranks = np.array([rank_of(promise, target) for promise, target in zip(promises, targets, strict=True)])
    found = {
        f"first {among}{kind}": float(np.mean(chosen < among))
        for kind, chosen in (("", ranks), (" without skies", ranks[~sky]))
        for among in AMONG
    }
    print(f"{name}, nearest {most}: " + ", ".join(f"{key} {value:.2f}" for key, value in found.items()), flush=True)
    return {"way": name, "nearest": most, **found, "ranks": ranks.tolist()}


def videos_of(footage: Footage, targets: Sequence[FrameFeatures], count: int) -> Iterator[FrameFeatures]:
    """Those to find, and so many composed ones."""
    yield from targets
    yield from compose_many(footage, range(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="the folder of scale_material.py")
    parser.add_argument("--half", choices=HALVES, default=HALVES[0])
    parser.add_argument("--videos", type=int, default=2048, help="strangers")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="only these; without sums")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    footage = open_footage(given.work)
    white = Whitening(whitening_sample(given.work, "background", 0), WHITENING_POWER, one_side=False)
    cases = [case for case in open_cases(given.work, given.half) if case.family != FAMILY_WITHOUT]
    found = open_targets(given.work, given.half, footage)
    names = list(found)
    targets = [names.index(case.source) for case in cases]
    sky = np.array([SKY in case.source for case in cases])
    videos = partial(videos_of, footage, list(found.values()), given.videos)
    rows, sizes, all_asked = [], {}, {}
    for name, kind in KINDS.items():
        if name not in given.kinds:
            continue
        started = time.process_time()
        asked = all_asked[name] = ask(kind, cases, videos, white)
        sizes[name] = {"windows": asked.windows, "vectors": asked.vectors}
        print(
            f"{name}: {asked.windows:.0f} windows, {asked.vectors:.0f} vectors, {time.process_time() - started:.0f} s"
        )
        for most in LENGTHS:
            promises = [summed(sides_of(asked, at, most)) for at in range(len(cases))]
            rows.append(row(name, most, promises, targets, sky))
    for most in LENGTHS if len(all_asked) == len(KINDS) else ():
        for name, (one, other) in TOGETHER.items():
            both = [
                together(*(summed(sides_of(all_asked[part], at, most)) for part in (one, other)))
                for at in range(len(cases))
            ]
            rows.append(row(name, most, both, targets, sky))
        rows.append(row("learned", most, learned(all_asked["as now"], cases, targets, most), targets, sky))
    if given.output:
        document = {"half": given.half, "videos": given.videos, "sizes": sizes, "rows": rows}
        document["queries"] = [f"{case.name} {case.edit}" for case in cases]
        given.output.write_text(json.dumps({"machine": describe_machine(), **document}, indent=1) + "\n")


if __name__ == "__main__":
    main()
