"""How many of the videos to find the first stage of search finds in large collections, and what was tried for it.

    python research/benchmarks/scale_material.py --work /tmp/million          # once
    python research/benchmarks/scale_recall.py --work /tmp/million --videos 4096 --half development [--output FILE]

Queries and videos are those of `scale_material.py`. The windows nearest to each vector of each query are found by
comparing all, block by block, so a large collection needs time but neither disk nor memory. Strangers are drawn alike:
a video that is before all of a 10,000th part of them is about as often among the first 100 of a million as it is the
first here: in 4,096 videos, `first 1` is recall@244 of a million. A list of 400 nearest windows of a million is one of
two here. The table has, for each way to order videos and several lengths of the lists, how often the right one is among
the first 1, 4, 10, 40 and 100; also without clips of small objects in a sky, of which a window vector says little.

`product` is how promising a video is by the code of the package (`ways_of`), without what it does for clips inside of
other films; `before` what it did before. The other rows are what was tried. Vectors: how many of a query are compared,
mirrored and not. Both sides are whitened as in new indexes (`--whitening 0`: as they are). Rows of fewer windows leave
out those of parts that are as near as a cosine to one that is kept, of the whole picture or longer; `windows` is how
many of a video are left.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from scale_material import (
    BLOCK,
    HALVES,
    SKY,
    Case,
    blocks,
    compose_windows,
    open_cases,
    open_footage,
    open_targets,
    views_of,
)
from vidkin.index import window_vectors
from vidkin.index.query.candidates import query_vectors, ways_of
from vidkin.index.storage.contract import NO_WINDOW, NearestWindows
from vidkin.index.storage.whitening import WHITENING_POWER
from vidkin.rendering.machine import describe_machine

# Windows that are kept of each vector, and of how many videos the first threshold is.
MOST_NEAREST = 256
SAMPLE = 256
ROWS, QUERIES = 1 << 14, 2048
WHITENED_BY = ("background", "collection")
# Cosines from which on a window of a part is left out, and ways to choose fewer vectors of a query.
LEFT_OUT = (0.9, 0.8, 0.7, 0.6, 0.5)
FAMILY_WITHOUT = "turned"  # found by other vectors, `find_turned`


@dataclass(frozen=True)
class TimedWindows(NearestWindows):
    """Nearest windows with their starts and ends [Q, K], seconds."""

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]


@dataclass(frozen=True)
class Look:
    """The vectors of a query, plain or mirrored: [Q, D], their times and views [Q], the nearest windows of each, their
    views, and whether they are kept by each of `LEFT_OUT`: [Q, MOST_NEAREST, 5]."""

    vectors: NDArray[np.float32]
    times: NDArray[np.float64]
    views: NDArray[np.int64]
    nearest: TimedWindows
    view_of_window: NDArray[np.int64]
    kept: NDArray[np.bool_]


@dataclass(frozen=True)
class Asked:
    """A query with its looks and the number of the video to find."""

    case: Case
    looks: tuple[Look, ...]
    target: int


def ask_all(work: Path, half: str, videos: int, white: Whitening) -> tuple[list[Asked], list[float]]:
    """The queries of a half with the windows of so many videos, and of the videos to find, nearest to their vectors;
    and the windows of a video, all of them and those that are kept."""
    footage = open_footage(work)
    cases = [case for case in open_cases(work, half) if case.family != FAMILY_WITHOUT]
    targets = open_targets(work, half, footage)
    names = list(targets)

    def collection() -> Iterator[tuple[NDArray[np.float32], NDArray[Any]]]:
        """Vectors, and columns: video, start, end, view, whether it is kept."""
        for block in blocks(videos):
            made = compose_windows(footage, block)
            whitened = white.windows(made.vectors.astype(np.float32))
            kept = kept_windows(whitened, made.video, made.views, made.ends - made.starts)
            counts[:] += [len(kept), *kept.sum(axis=0)]
            columns = [made.video + block * BLOCK, made.starts, made.ends, made.views, *kept.T]
            yield whitened, np.stack(columns, axis=1)
        for number, features in enumerate(targets.values()):
            windows = window_vectors(features)
            video = np.full(len(windows), videos + number)
            whitened, views = (
                white.windows(windows.vectors.astype(np.float16).astype(np.float32)),
                views_of(features, windows),
            )
            kept = kept_windows(whitened, video, views, windows.ends - windows.starts)
            yield whitened, np.stack([video, windows.starts, windows.ends, views, *kept.T], axis=1)

    counts = np.zeros(1 + len(LEFT_OUT))

    looks = [[query_vectors(side) for side in (case.query.plain, case.query.mirrored) if side] for case in cases]
    vectors = np.concatenate([vectors for of_case in looks for vectors, _, _ in of_case])
    asked_for, offsets = white.queries(vectors)
    scores, columns = nearest_of(asked_for, offsets, collection)
    asked, row = [], 0
    for case, of_case in zip(cases, looks, strict=True):
        found = []
        for own, times, views in of_case:
            rows = slice(row, row + len(own))
            row += len(own)
            table = TimedWindows(
                columns[rows, :, 0].astype(np.int64), np.zeros(scores[rows].shape, np.int64), scores[rows],
                columns[rows, :, 1], columns[rows, :, 2],
            )  # fmt: skip
            look = Look(
                asked_for[rows], times, views, table, columns[rows, :, 3].astype(np.int64), columns[rows, :, 4:] > 0
            )
            found.append(look)
        asked.append(Asked(case, tuple(found), videos + names.index(case.source)))
    return asked, (counts / videos).tolist()


def kept_windows(
    vectors: NDArray[np.float32], videos: NDArray[np.int64], views: NDArray[np.int64], seconds: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Which windows each of `LEFT_OUT` keeps, [W, 5]: all of whole pictures, and of parts, the longest first, those
    that are less near to one of the same video that is kept. Videos one after the other."""
    kept = np.zeros((len(vectors), len(LEFT_OUT)), np.bool_)
    bounds = np.flatnonzero(np.diff(videos, prepend=-1, append=-1))
    for first, last in pairwise(bounds.tolist()):
        near = vectors[first:last] @ vectors[first:last].T
        order = np.lexsort((-seconds[first:last], views[first:last] > 0))
        for place, least in enumerate(LEFT_OUT):
            is_free = np.ones(len(near), np.bool_)
            for window in order.tolist():
                if is_free[window] or views[first + window] == 0:
                    kept[first + window, place] = True
                    is_free &= near[window] < least
    return kept


def whitening_sample(work: Path, of: str, videos: int) -> NDArray[np.floating]:
    """Vectors [N, D] of the collection, or of the background photographs that each index of the extractor has."""
    if of == "background":
        held: NDArray[np.floating] = load_file(work / "real.vidkin" / "background.safetensors")["background"]
        return held[:, 0]
    return compose_windows(open_footage(work), next(iter(blocks(videos)))).vectors


class Whitening:
    """Whitening by the covariance of these vectors [N, D] to a power, 1 for all of it.

    One side: the windows stay as they are, and a query vector q becomes C^-p (q - m), scaled so that its score with
    itself is 1: nothing that is stored changes, but windows are not of equal length in the whitened space.
    """

    def __init__(self, vectors: NDArray[np.floating], power: float, *, one_side: bool) -> None:
        sample = vectors.astype(np.float64)
        self.power, self.one_side = power, one_side
        self.mean = sample.mean(axis=0).astype(np.float32)
        values, directions = np.linalg.eigh(np.cov(sample.T))
        values = np.maximum(values, 1e-2 * values.mean())
        self.turn = ((directions * values ** (-power / 2)) @ directions.T).astype(np.float32)

    def windows(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Stored vectors as they are compared."""
        if not self.power or self.one_side:
            return vectors
        turned = (vectors - self.mean) @ self.turn
        return turned / np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), np.float32(1e-6))

    def queries(self, vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Vectors [Q, D] of a query as they are compared, and what [Q] is taken off of each of their scores."""
        if not self.power or not self.one_side:
            return self.windows(vectors), np.zeros(len(vectors), np.float32)
        centered = vectors - self.mean
        turned = centered @ self.turn @ self.turn
        turned /= np.maximum(np.vecdot(turned, centered), np.float32(1e-6))[:, None]
        return turned, turned @ self.mean


def nearest_of(
    vectors: NDArray[np.float32],
    offsets: NDArray[np.float32],
    collection: Callable[[], Iterator[tuple[NDArray[np.float32], NDArray[Any]]]],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Scores [Q, MOST_NEAREST] and columns [Q, MOST_NEAREST, 9] of the nearest windows of each vector."""
    best = np.full((len(vectors), MOST_NEAREST), -1.0, np.float32)
    where = np.full((len(vectors), MOST_NEAREST, 4 + len(LEFT_OUT)), -1.0, np.float32)
    for windows, columns in collection():
        for first in range(0, len(windows), ROWS):
            part = windows[first : first + ROWS]
            for start in range(0, len(vectors), QUERIES):
                scores = vectors[start : start + QUERIES] @ part.T - offsets[start : start + QUERIES, None]
                # Only what is above the last one so far can be among the nearest.
                rows, found = np.nonzero(scores > best[start : start + QUERIES, -1:])
                counts = np.bincount(rows, minlength=len(scores))
                bounds = np.concatenate([[0], np.cumsum(counts)])
                for row in np.flatnonzero(counts):
                    new = found[bounds[row] : bounds[row + 1]]
                    joined = np.concatenate([best[start + row], scores[row, new]])
                    order = np.argsort(-joined, kind="stable")[:MOST_NEAREST]
                    places = np.concatenate([where[start + row], columns[first + new]])
                    best[start + row], where[start + row] = joined[order], places[order]
    return best, where


# Ways to order videos: promise [videos] of one look, by the first windows of each vector.

Way = Callable[[Look], tuple[NDArray[np.int64], NDArray[np.float64]]]


def cells(look: Look, most: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Ids of the videos of the first ``most`` windows of each vector, and their best cosines [Q, videos] or -inf."""
    ids, columns = np.unique(look.nearest.video_ids[:, :most], return_inverse=True)
    best = np.full((len(look.vectors), len(ids)), -np.inf)
    rows = np.arange(len(best))[:, None]
    np.maximum.at(best, (rows, columns.reshape(len(best), -1)), look.nearest.scores[:, :most].astype(np.float64))
    return ids, best


def before(most: int) -> Way:
    """The best cosine, and a tenth of the mean over the vectors of the best cosines."""

    def order(look: Look) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        ids, best = cells(look, most)
        return ids, best.max(axis=0) + 0.1 * np.where(best > -np.inf, best, 0.0).mean(axis=0)

    return order


def excess(
    most: int,
    *,
    largest: float = 0.0,
    power: float = 1.0,
    share: bool = False,
    chosen: int | None = None,
    weighted: bool = False,
) -> Way:
    """What the best cosines are above the last of the nearest windows, to a power, summed; ``largest`` of the best
    added. ``share``: as a share of the way from there to 1.02."""

    def order(look: Look) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        ids, best = cells(look, most)
        last = look.nearest.scores[:, most - 1 : most].astype(np.float64)
        above = (np.maximum(best - last, 0.0) / (1.02 - last if share else 1.0)) ** power
        weights = np.ones(len(best))
        if chosen is not None:
            kept, counts = distinct(look.vectors, chosen)
            above, best = above[kept], best[kept]
            weights = counts if weighted else np.ones(len(kept))
        return ids, (weights[:, None] * above).sum(axis=0) + largest * best.max(axis=0, initial=-1.0)

    return order


def of_clusters(way: Way, count: int) -> Way:
    """The same with at most so many vectors of a look: of each cluster the one nearest to its middle."""

    def order(look: Look) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        if len(look.vectors) <= count:
            return way(look)
        centers = look.vectors[distinct(look.vectors, count)[0]]
        for _ in range(5):
            owners = (look.vectors @ centers.T).argmax(axis=1)
            sums = np.stack([look.vectors[owners == at].sum(axis=0) for at in range(count)])
            lengths = np.linalg.norm(sums, axis=1, keepdims=True)
            centers = np.where(lengths > 0, sums / np.maximum(lengths, 1e-6), centers)
        near = look.vectors @ centers.T
        rows = np.unique(np.where(near.argmax(axis=1)[:, None] == np.arange(count), near, -1).argmax(axis=0))
        names = ("video_ids", "windows", "starts", "ends", "scores")
        nearest = TimedWindows(**{name: getattr(look.nearest, name)[rows] for name in names})
        return way(replace(look, vectors=look.vectors[rows], nearest=nearest))

    return order


def distinct(vectors: NDArray[np.float32], count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rows of at most so many vectors, each the one farthest from those before it; and how many each stands for."""
    likeness = vectors @ vectors.T
    kept = [0]
    near = likeness[0].copy()
    while len(kept) < min(count, len(vectors)):
        kept.append(int(near.argmin()))
        near = np.maximum(near, likeness[kept[-1]])
    owners = likeness[kept].argmax(axis=0)
    return np.array(kept), np.bincount(owners, minlength=len(kept)).astype(float)


def votes(most: int, width: float) -> Way:
    """The excess of vectors that agree on one offset in time, within ``width`` seconds, at the speed of the video."""

    def order(look: Look) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        above = look.nearest.scores[:, :most] - look.nearest.scores[:, most - 1 : most]
        first = np.floor((look.nearest.starts[:, :most] - look.times[:, None]) / width).astype(np.int64) - 1
        last = np.floor((look.nearest.ends[:, :most] - look.times[:, None]) / width).astype(np.int64) + 1
        ids, columns = np.unique(look.nearest.video_ids[:, :most], return_inverse=True)
        lowest = int(first.min())
        table = np.zeros((len(ids), int(last.max()) - lowest + 1))
        for vector, of_videos in enumerate(columns.reshape(above.shape)):
            own = np.zeros_like(table)
            for place, video in enumerate(of_videos.tolist()):
                part = own[video, first[vector, place] - lowest : last[vector, place] - lowest + 1]
                np.maximum(part, above[vector, place], out=part)
            table += own
        return ids, table.max(axis=1)

    return order


def of_views(way: Way, views: tuple[int, ...], most: int) -> Way:
    """The same where only windows of these views are in the index."""
    return lambda look: way(only(look, np.isin(look.view_of_window, views), most))


def of_kept(way: Way, place: int, most: int) -> Way:
    """The same where only windows that one of `LEFT_OUT` keeps are in the index."""
    return lambda look: way(only(look, look.kept[:, :, place], most))


def only(look: Look, inside: NDArray[np.bool_], most: int) -> Look:
    """A look with the first of its nearest windows that are inside [Q, MOST_NEAREST]."""
    places = np.argsort(~inside, axis=1, kind="stable")[:, :most]
    names = ("video_ids", "windows", "starts", "ends", "scores")
    columns = {name: np.take_along_axis(getattr(look.nearest, name), places, axis=1) for name in names}
    seen = np.take_along_axis(inside, places, axis=1)
    columns["scores"] = np.where(seen, columns["scores"], np.float32(-1.0))
    columns["video_ids"] = np.where(seen, columns["video_ids"], NO_WINDOW)
    return replace(look, nearest=TimedWindows(**columns))


def product(most: int) -> Way:
    """What the package does."""

    def order(look: Look) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        parts = {name: getattr(look.nearest, name)[:, :most] for name in NearestWindows.__dataclass_fields__}
        ids, ways = ways_of(NearestWindows(**parts))
        return ids, ways.sum(axis=0, dtype=np.float64)

    return order


def rank_of(asked: Asked, way: Way) -> int:
    """Number of strangers before the video to find; a million if it is not among those that are ordered."""
    promise: dict[int, float] = {}
    for look in asked.looks:
        if len(look.vectors):
            for video, value in zip(*(column.tolist() for column in way(look)), strict=True):
                promise[video] = max(promise.get(video, -np.inf), value)
    own = promise.get(asked.target)
    strangers = [value for video, value in promise.items() if video != asked.target and video >= 0]
    return 10**6 if own is None else sum(value >= own for value in strangers)


def row(name: str, asked: list[Asked], way: Way) -> dict[str, Any]:
    started = time.process_time()
    ranks = np.array([rank_of(one, way) for one in asked])
    sky = np.array([SKY in one.case.source for one in asked])
    row: dict[str, Any] = {"way": name}
    for kind, chosen in (("", ranks), (" without skies", ranks[~sky])):
        row |= {f"first {most}{kind}": float(np.mean(chosen < most)) for most in (1, 4, 10, 40, 100)}
    row["seconds"] = (time.process_time() - started) / len(asked)
    print(", ".join(f"{key} {value:.3f}" if isinstance(value, float) else value for key, value in row.items()),
          flush=True)  # fmt: skip
    return row | {"ranks": ranks.tolist()}


def ways_to_try(most: int) -> dict[str, Way]:
    """Names and ways, for lists of so many nearest windows."""
    return {
        "excess above strangers": excess(most),
        "and the largest cosine": excess(most, largest=1.0),
        "share of the way, squared": excess(most, power=2.0, share=True),
        "share of the way, cubed": excess(most, power=3.0, share=True),
        "share, cubed, 32 distinct vectors": excess(most, power=3.0, share=True, chosen=32),
        "share, cubed, 40 distinct vectors": excess(most, power=3.0, share=True, chosen=40),
        "share, cubed, 48 distinct vectors": excess(most, power=3.0, share=True, chosen=48),
        "share, cubed, 40 vectors, by how many each stands for": excess(
            most, power=3.0, share=True, chosen=40, weighted=True
        ),
        "excess at one offset of 1 s": votes(most, 1.0),
        "as now, of 20 clusters": of_clusters(product(most), 20),
        "as now, of 40 clusters": of_clusters(product(most), 40),
        "excess, whole pictures only": of_views(excess(most), (0,), most),
        **{
            f"as now, without windows of {least}": of_kept(product(most), place, most)
            for place, least in enumerate(LEFT_OUT)
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="the folder of scale_material.py")
    parser.add_argument("--half", choices=HALVES, default=HALVES[0])
    parser.add_argument("--videos", type=int, default=4096, help=f"strangers, a multiple of {BLOCK}")
    parser.add_argument("--whitening", type=float, default=WHITENING_POWER, help="power of the covariance")
    parser.add_argument("--of", choices=WHITENED_BY, default=WHITENED_BY[0], help="what the covariance is of")
    parser.add_argument("--one-side", action="store_true", help="whiten the vectors of queries only")
    parser.add_argument("--only-product", action="store_true", help="before and after, without what was tried")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    sample = whitening_sample(given.work, given.of, given.videos) if given.whitening else np.eye(2, dtype=np.float32)
    white = Whitening(sample, given.whitening, one_side=given.one_side)
    asked, windows = ask_all(given.work, given.half, given.videos, white)
    vectors = [sum(len(look.vectors) for look in one.looks) for one in asked]
    print(f"{len(asked)} queries of {np.mean(vectors):.0f} vectors, {given.videos} videos, {time.process_time():.0f} s")
    left = ", ".join(f"{least} {count:.0f}" for least, count in zip(LEFT_OUT, windows[1:], strict=True))
    print(f"windows of a video: {windows[0]:.0f}; left by {left}")
    rows = []
    for most in (2, 4, 8, 32, 128):
        ways = {"before": before(most), "product": product(most)}
        if not given.only_product:
            ways |= ways_to_try(most)
        rows += [row(f"{name}, nearest {most}", asked, way) for name, way in ways.items()]
    if given.output:
        names = [f"{one.case.name} {one.case.edit}" for one in asked]
        document = {
            "half": given.half,
            "whitening": {"power": given.whitening, "of": given.of, "one side": given.one_side},
            "videos": given.videos,
            "queries": names,
            "vectors": vectors,
            "windows": dict(zip(["all", *map(str, LEFT_OUT)], windows, strict=True)),
            "rows": rows,
        }
        given.output.write_text(json.dumps({"machine": describe_machine(), **document}, indent=1) + "\n")


if __name__ == "__main__":
    main()
