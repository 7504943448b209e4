"""Collections of up to a million videos made of features of real footage, and edited queries from held-back sources.

    python research/benchmarks/scale_material.py --data FOLDER --work /tmp/million    # describes footage, makes the \
        queries
    python research/benchmarks/scale_material.py --work /tmp/million --nearness       # how near strangers are

A recipe, not data: the footage (`VIDKIN_DATA` or --data) is described once into an index in the work folder; all else
follows from seeds. A composed video has 20 to 60 s of shots of 3 to 12 s. A shot is a stretch of a real video, at .8, 1
or 1.25 of its speed, whose vectors are mixed with those of two other moments of real footage: weights w with
w1^2 + w2^2 + w3^2 = 1 of the deviations from the mean of all footage in the same view. Such a mixture has the mean and
the covariance of the real vectors, and keeps the real changes in time; how near the nearest stranger is depends on how
much the first part dominates, and `--nearness` compares that with the real videos.

Queries are clips of sources that no composed video is made of, each edited in one way (`EDITS`, all of
them once in each half) and described as a search describes it. The video to find holds the source as the
index describes it, and other real footage around it. Halves: development, to choose with, and held-back, for the end.
"""

from __future__ import annotations

import argparse
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidkin.features import open_extractor
from vidkin.index import Index, VideoRecord, window_vectors
from vidkin.index.query.calibration import Calibration
from vidkin.index.query.query import describe_query
from vidkin.index.storage.records import WindowVectors, unit_vectors
from vidkin.similarity import FrameFeatures
from vidkin_research.copies.applying import apply_edit
from vidkin_research.copies.edits import EDITS
from vidkin_research.copies.recordings import ClipSize, QueryClip, Recording, choose_queries, write_query

HALVES = ("development", "held-back")
# Sources of queries, as shares of paths below the data; the first of each half are those of the copy benchmark.
SOURCES = {
    "development": (
        "videos/tmk/chair-orig-22-sd-bar.mp4", "videos/tmk/doorknob-hd-no-bar.mp4", "videos/intel/car-detection.mp4",
        "videos/mdn/crystal.mp4", "videos/mdn/elf.mp4", "videos/mdn/frog.mp4", "videos/intel/again.mkv",
        "videos/intel/bird.mkv", "videos/intel/eat.mkv",
    ),
    "held-back": (
        "videos/tmk/pattern-longer-no-bar.mp4", "videos/intel/bottle-detection.mp4",
        "videos/intel/one-by-one-person-detection.mp4", "videos/mdn/monster.mp4", "videos/mdn/pig.mp4",
        "videos/mdn/rabbit.mp4", "videos/intel/night.mkv", "videos/intel/please.mkv", "videos/intel/walk.mkv",
    ),
}  # fmt: skip
# Small objects in a sky, of which a window vector says little; every so many clips one is a source, of the halves in
# turn.
SKY = "/labelled/aerial/"
SKY_CLIPS = 78
# Copies of sources, and what the index does not need.
NOT_USED = ("chair-1", "chair-2", "pattern-h", "pattern-s", "rabbit320")
CLIP = ClipSize(seconds=9.0, clips=3, short_side=270, rate=15.0)
FILLER = "shots/testvideo.mp4"
LONGEST_SOURCE = 45.0

SHORTEST, LONGEST = 20.0, 60.0
SHOT_SECONDS = (3.0, 12.0)
SPEEDS = (0.8, 1.0, 1.25)
# Least and largest w1^2; w2^2 is the larger part of the rest.
DOMINANT = (0.75, 1.0)
BLOCK = 1024
# Shots that a video can have.
MOST_SHOTS = 20


@dataclass(frozen=True)
class Footage:
    """The real footage that composed videos are made of: F frames of V views, W windows, S sources.

    Attributes:
        paths: Names of the sources.
        means: [V, D] float32, mean of the unit vectors of each view.
        deviations: [F, V, D] float32, what each frame is from these.
        baselines: [F, V] and information: [F], as in `FrameFeatures`.
        boxes: [V, 4] of all frames.
        first: [S + 1], where the frames of each source begin.
        periods: [S] seconds from one frame to the next.
        vectors: [W, D] float32; views, starts and ends: [W] view, first and last frame of each window in `frames`.
        window_first: [S + 1], where the windows of each source begin; they are sorted by first frame.
    """

    paths: tuple[str, ...]
    means: NDArray[np.float32]
    deviations: NDArray[np.float32]
    baselines: NDArray[np.float32]
    information: NDArray[np.float32]
    boxes: NDArray[np.float32]
    first: NDArray[np.int64]
    periods: NDArray[np.float64]
    vectors: NDArray[np.float32]
    views: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    window_first: NDArray[np.int64]

    @cached_property
    def source_of(self) -> NDArray[np.int64]:
        """[F] the source of each frame."""
        return np.repeat(np.arange(len(self.paths)), np.diff(self.first))


def open_footage(work: Path) -> Footage:
    """The footage of the index in the work folder, without the sources of queries."""
    with Index.open(work / "real.vidkin", read_only=True) as index:
        left_out = {path for half in HALVES for path in query_sources(index.videos(), half)}
        records = [record for record in usable(index.videos()) if record.path not in left_out]
        features = index.store.read_many([record.id for record in records])
    windows = [window_vectors(one) for one in features]
    offsets = np.cumsum([0, *map(len, features)])
    parts = []
    for one, of_video, offset in zip(features, windows, offsets, strict=False):
        order = np.argsort(of_video.first_frames, kind="stable")
        views = views_of(one, of_video)
        rows = (of_video.vectors, views, of_video.first_frames + offset, of_video.last_frames + offset)
        parts.append([column[order] for column in rows])
    vectors, views, starts, ends = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    frames = np.concatenate([one.values[:, :, 0].astype(np.float32) for one in features])
    means: NDArray[np.float32] = frames.mean(axis=0)
    frames -= means
    return Footage(
        paths=tuple(record.path for record in records),
        means=means,
        deviations=frames,
        baselines=np.concatenate([np.asarray(one.baseline, np.float32) for one in features]),
        information=np.concatenate([one.information.astype(np.float32) for one in features]),
        boxes=np.asarray(next(one.boxes for one in features if one.boxes is not None)[0], np.float32),
        first=offsets,
        periods=np.array([float(np.median(np.diff(one.timestamps))) if len(one) > 1 else 1.0 for one in features]),
        vectors=vectors.astype(np.float32),
        views=views,
        starts=starts,
        ends=ends,
        window_first=np.cumsum([0, *map(len, windows)]),
    )


def views_of(features: FrameFeatures, windows: WindowVectors) -> NDArray[np.int64]:
    """The view of each window: the one whose frames there have its vector as their mean."""
    sums = np.concatenate([np.zeros_like(features.values[:1, :, 0], np.float32),
                           features.values[:, :, 0].astype(np.float32).cumsum(axis=0)])  # fmt: skip
    means = sums[windows.last_frames + 1] - sums[windows.first_frames]
    likeness = np.einsum("wvd,wd->wv", unit_vectors(means), windows.vectors.astype(np.float32))
    return likeness.argmax(axis=1)


def usable(records: Sequence[VideoRecord]) -> list[VideoRecord]:
    """Those with frames, without copies of sources."""
    named = (record for record in records if record.status == "ok" and record.frames > 1)
    return [record for record in named if not any(name in os.path.basename(record.path) for name in NOT_USED)]


def query_sources(records: Sequence[VideoRecord], half: str) -> list[str]:
    """Paths of the sources of a half."""
    paths = [record.path for record in usable(records)]
    sky = [path for path in paths if SKY in path]
    chosen = sky[(0 if half == HALVES[0] else SKY_CLIPS // 2) :: SKY_CLIPS]
    return [path for path in paths if any(path.endswith(name) for name in SOURCES[half]) or path in chosen]


@dataclass(frozen=True)
class Plan:
    """What the videos of a block are made of, N videos with MOST_SHOTS shots at most.

    Attributes:
        shots: [N] number of shots.
        source, start, length: [N, MOST_SHOTS] the source, its first frame in the footage, and the number of frames.
        speed: [N, MOST_SHOTS]
        others: [N, MOST_SHOTS, 2] the two other frames.
        weights: [N, MOST_SHOTS, 3]
    """

    shots: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    speed: NDArray[np.float64]
    others: NDArray[np.int64]
    weights: NDArray[np.float32]


def plan_block(footage: Footage, block: int, seed: int = 0) -> Plan:
    """The plan of videos ``BLOCK * block`` and following, the same on every call."""
    draw = np.random.default_rng((seed, block))
    shape = (BLOCK, MOST_SHOTS)
    seconds = draw.uniform(*SHOT_SECONDS, shape)
    start = draw.integers(0, len(footage.deviations), shape)
    source = footage.source_of[start]
    speed = np.array(SPEEDS)[draw.integers(0, len(SPEEDS), shape)]
    period = footage.periods[source]
    # A stretch around the drawn frame, within its source; a shorter source ends the shot earlier.
    count = footage.first[source + 1] - footage.first[source]
    length = np.clip(np.rint(seconds * speed / period).astype(np.int64), 1, count)
    start = np.minimum(start, footage.first[source + 1] - length)
    total = np.cumsum(length * period / speed, axis=1)
    wanted = draw.uniform(SHORTEST, LONGEST, BLOCK)
    shots = 1 + (total < wanted[:, None]).sum(axis=1).clip(max=MOST_SHOTS - 1)
    first = draw.uniform(*DOMINANT, shape)
    second = (1 - first) * draw.uniform(0.5, 1.0, shape)
    weights = np.sqrt(np.stack([first, second, 1 - first - second], axis=-1)).astype(np.float32)
    return Plan(shots, start, length, speed, draw.integers(0, len(footage.deviations), (*shape, 2)), weights)


@dataclass(frozen=True)
class Windows:
    """Windows of many videos: vectors [W, D] float16, video, start and end [W], views [W]."""

    vectors: NDArray[np.float16]
    video: NDArray[np.int64]
    starts: NDArray[np.float32]
    ends: NDArray[np.float32]
    views: NDArray[np.int64]

    def by_video(self) -> list[WindowVectors]:
        """The windows of each video of a block, those of whole pictures first, then of one view after the other; frames
        are numbered as of ten a second."""
        order = np.lexsort((self.starts, self.views, self.video))
        starts, ends = (column[order].astype(np.float64) for column in (self.starts, self.ends))
        firsts, lasts = np.rint(10 * starts).astype(np.int64), np.rint(10 * ends).astype(np.int64) - 1
        columns = self.vectors[order], starts, ends, firsts, np.maximum(firsts, lasts)
        edges = np.searchsorted(self.video[order], np.arange(BLOCK + 1))
        return [WindowVectors(*(each[first:last] for each in columns)) for first, last in pairwise(edges.tolist())]


def compose_windows(footage: Footage, block: int, *, seed: int = 0) -> Windows:
    """The windows of the videos of a block, numbered from 0 on; in the order of their shots."""
    plan = plan_block(footage, block, seed)
    video, shot = np.nonzero(np.arange(MOST_SHOTS) < plan.shots[:, None])
    start, length, speed = plan.start[video, shot], plan.length[video, shot], plan.speed[video, shot]
    source = footage.source_of[start]
    period = footage.periods[source] / speed
    seconds = length * period
    ends = np.cumsum(seconds)
    begins = ends - seconds
    begins -= begins[np.searchsorted(video, np.arange(BLOCK))][video]
    # The windows of each source are consecutive; those outside the stretch are dropped.
    first, last = footage.window_first[source], footage.window_first[source + 1]
    shots = np.repeat(np.arange(len(video)), last - first)
    rows = np.arange(len(shots)) - np.repeat(np.cumsum(last - first) - (last - first), last - first) + first[shots]
    inside = (footage.starts[rows] < (start + length)[shots]) & (footage.ends[rows] >= start[shots])
    shots, rows = shots[inside], rows[inside]
    views = footage.views[rows]
    vectors = np.empty((len(rows), footage.vectors.shape[1]), np.float16)
    weights, others = plan.weights[video, shot], plan.others[video, shot]
    for begin in range(0, len(rows), 1 << 14):
        part = slice(begin, begin + (1 << 14))
        vectors[part] = mixed(footage, footage.vectors[rows[part]], views[part], others[shots[part]],
                              weights[shots[part]])  # fmt: skip
    from_first = np.maximum(footage.starts[rows] - start[shots], 0)
    to_last = np.minimum(footage.ends[rows] + 1 - start[shots], length[shots])
    return Windows(
        vectors,
        video[shots],
        (begins[shots] + from_first * period[shots]).astype(np.float32),
        (begins[shots] + to_last * period[shots]).astype(np.float32),
        views,
    )


def mixed(
    footage: Footage,
    vectors: NDArray[np.float32],
    views: NDArray[np.int64],
    others: NDArray[np.int64],
    weights: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Unit vectors [N, D]: the first vector and those of two other frames [N, 2] in the same view, weighted [N, 3]."""
    means = footage.means[views]
    result = means + weights[:, :1] * (vectors - means)
    for other in range(2):
        result += weights[:, other + 1, None] * footage.deviations[others[:, other], views]
    return unit_vectors(result)


def compose_features(footage: Footage, number: int, *, seed: int = 0) -> FrameFeatures:
    """The features of one composed video, as its windows have them."""
    block, at = divmod(number, BLOCK)
    return composed(footage, plan_block(footage, block, seed), at)


def compose_many(footage: Footage, numbers: Sequence[int], *, seed: int = 0) -> Iterator[FrameFeatures]:
    """The features of these composed videos; each block of consecutive ones is planned once."""
    planned, plan = -1, plan_block(footage, 0, seed)
    for number in numbers:
        block, at = divmod(number, BLOCK)
        if block != planned:
            planned, plan = block, plan_block(footage, block, seed)
        yield composed(footage, plan, at)


def composed(footage: Footage, plan: Plan, at: int) -> FrameFeatures:
    """The features of the video at this place of a plan."""
    shots = int(plan.shots[at])
    length, start = plan.length[at, :shots], plan.start[at, :shots]
    ends = np.cumsum(length)
    period = footage.periods[footage.source_of[start]] / plan.speed[at, :shots]
    values = np.empty((int(ends[-1]), *footage.means.shape), np.float32)
    for shot, (first, count, end) in enumerate(zip(start.tolist(), length.tolist(), ends.tolist(), strict=True)):
        # The two other moments are the same along a shot.
        weights, (second, third) = plan.weights[at, shot], plan.others[at, shot]
        rest = footage.means + weights[1] * footage.deviations[second] + weights[2] * footage.deviations[third]
        part = values[end - count : end]
        np.multiply(footage.deviations[first : first + count], weights[0], out=part)
        part += rest
    rows = np.repeat(start - (ends - length), length) + np.arange(len(values))
    begins = np.cumsum(length * period) - length * period
    times = np.repeat(begins, length) + (np.arange(len(values)) - np.repeat(ends - length, length)) * period.repeat(
        length
    )
    return FrameFeatures(
        unit_vectors(values)[:, :, None],
        times,
        footage.information[rows],
        "",
        footage.baselines[rows],
        np.broadcast_to(footage.boxes, (len(values), *footage.boxes.shape)),
        float((length * period).sum()),
    )


# Queries, and the videos to find.


@dataclass(frozen=True)
class Case:
    """A query and the source of the video that it should find."""

    name: str
    edit: str
    family: str
    source: str
    query: FrameFeatures


def make_queries(work: Path, half: str) -> None:
    """Write and describe the queries of a half; those that are there already stay."""
    folder = work / "queries"
    folder.mkdir(parents=True, exist_ok=True)
    with Index.open(work / "real.vidkin", read_only=True) as index:
        records = {record.path: record for record in usable(index.videos())}
        filler = next(path for path in records if path.endswith(FILLER))
    paths = query_sources([*records.values()], half)
    recordings = [Recording(Path(path), path, path, min(records[path].duration, LONGEST_SOURCE)) for path in paths]
    clips = choose_queries(recordings, CLIP, folder)
    extractor = open_extractor("vidkin")
    calibration = Calibration.of_extractor(extractor)
    cases = []
    for number, edit in enumerate(EDITS):
        clip = clips[number % len(clips)]
        target = folder / f"{half}-{edit}.npz"
        cases.append({"file": target.name, "edit": edit, "family": EDITS[edit].family, "name": clip.name,
                      "source": str(clip.recording.path)})  # fmt: skip
        if not target.exists():
            save_query(target, edited(clip, edit, Path(filler), extractor, calibration))
            print(f"{half} {number + 1} of {len(EDITS)}: {edit}", flush=True)
    (folder / f"{half}.json").write_text(json.dumps(cases, indent=1) + "\n")


def edited(clip: QueryClip, edit: str, filler: Path, extractor: Any, calibration: Calibration) -> FrameFeatures:
    """The query of an edited clip."""
    write_query(clip, CLIP)
    made = clip.path.with_suffix(f".{edit}.mp4")
    try:
        apply_edit(clip.path, made, edit, seed=zlib.crc32(clip.name.encode()), filler=filler, threads=1)
        return describe_query(made, extractor, calibration, rate=1.0)
    finally:
        made.unlink(missing_ok=True)


# Parts of the features of a query that are stored.
_COLUMNS = ("values", "timestamps", "information", "baseline", "boxes", "thumbnails")


def save_query(path: Path, query: FrameFeatures) -> None:
    arrays: dict[str, Any] = {column: getattr(query, column) for column in _COLUMNS}
    np.savez(path, end=np.array(query.end), **arrays)


def open_cases(work: Path, half: str) -> list[Case]:
    """The queries of a half."""
    cases = []
    for row in json.loads((work / "queries" / f"{half}.json").read_text()):
        with np.load(work / "queries" / row["file"]) as stored:
            query = FrameFeatures(**{column: stored[column] for column in _COLUMNS}, end=float(stored["end"]))
        cases.append(Case(row["name"], row["edit"], row["family"], row["source"], query))
    return cases


def open_targets(work: Path, half: str, footage: Footage) -> dict[str, FrameFeatures]:
    """The videos to find, by the path of their source: its first 45 s at most, other footage before and after."""
    with Index.open(work / "real.vidkin", read_only=True) as index:
        sources = set(query_sources(index.videos(), half))
        records = [record for record in usable(index.videos()) if record.path in sources]
        stored = index.store.read_many([record.id for record in records])
    targets = {}
    for record, features in zip(records, stored, strict=True):
        own = cut(features, 0, int(np.searchsorted(features.timestamps, LONGEST_SOURCE)))
        around = compose_features(footage, zlib.crc32(os.path.basename(record.path).encode()) % 1000, seed=1)
        half_of_rest = max(2, int((SHORTEST + LONGEST) / 2 - float(own.timestamps[-1])) // 2)
        before = cut(around, 0, half_of_rest)
        after = cut(around, len(around) - half_of_rest, len(around))
        targets[record.path] = joined([before, own, after])
    return targets


def cut(features: FrameFeatures, first: int, last: int) -> FrameFeatures:
    """The frames from ``first`` to ``last``, from time 0 on."""
    rows = slice(first, last)
    return FrameFeatures(
        features.values[rows], features.timestamps[rows] - features.timestamps[first], features.information[rows],
        "", None if features.baseline is None else features.baseline[rows],
        None if features.boxes is None else features.boxes[rows],
    )  # fmt: skip


def joined(parts: Sequence[FrameFeatures]) -> FrameFeatures:
    """One after the other, a second between them."""
    moved, begin = [], 0.0
    for part in parts:
        moved.append(replace(part, timestamps=part.timestamps + begin, values=part.values.astype(np.float32)))
        begin = float(moved[-1].timestamps[-1]) + 1.0
    return replace(FrameFeatures.concatenate(moved), end=begin)


# How near strangers are.


def nearest_strangers(
    vectors: NDArray[np.float32], owners: NDArray[np.int64], queries: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The largest cosine of each of these vectors with one of another owner."""
    best = np.empty(len(queries), np.float32)
    for first in range(0, len(queries), 256):
        rows = queries[first : first + 256]
        scores = vectors[rows] @ vectors.T
        scores[owners[rows][:, None] == owners[None, :]] = -1
        best[first : first + 256] = scores.max(axis=1)
    return best


def print_nearness(footage: Footage) -> None:
    """Cosines of whole-picture windows with the nearest one of another video, of as many real and composed windows."""
    draw = np.random.default_rng(0)
    for name, is_chosen in (("whole pictures", lambda views: views == 0), ("parts", lambda views: views > 0)):
        rows = np.flatnonzero(is_chosen(footage.views))
        made = compose_windows(footage, 0, seed=2)
        chosen = np.flatnonzero(is_chosen(made.views))
        count = min(len(rows), len(chosen), 4000)
        real = draw.choice(rows, count, replace=False)
        composed = chosen[draw.choice(len(chosen), count, replace=False)]
        for kind, vectors, of in (
            ("real", footage.vectors[real], footage.source_of[footage.starts[real]]),
            ("composed", made.vectors[composed].astype(np.float32), made.video[composed]),
        ):
            near = nearest_strangers(vectors, of, np.arange(min(count, 1000)))
            pairs = (vectors[: count // 2] * vectors[-(count // 2) :]).sum(axis=1)
            shares = np.quantile(near, [0.1, 0.5, 0.9]).round(3).tolist()
            print(
                f"{name}, {kind}: {count} windows of {len(np.unique(of))} videos; nearest of another video: tenths "
                f"1, 5, 9: {shares}; any pair: mean {pairs.mean():.3f}, .99 {np.quantile(pairs, 0.99):.3f}"
            )


def blocks(size: int) -> Iterator[int]:
    """Numbers of the blocks of so many videos."""
    yield from range(-(-size // BLOCK))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("VIDKIN_DATA"), help="the measurement data")
    parser.add_argument("--work", type=Path, required=True, help="folder of the described footage and the queries")
    parser.add_argument("--nearness", action="store_true", help="print how near strangers are, and end")
    given = parser.parse_args()
    if given.nearness:
        print_nearness(open_footage(given.work))
        return
    if given.data is None:
        parser.error("the measurement data is not there: set VIDKIN_DATA or name its folder with --data")
    folders = [given.data / name for name in ("videos", "shots", "labelled/aerial", "labelled/fruit")]
    with Index.open(given.work / "real.vidkin", extractor="vidkin", create=True) as index:
        index.add(folders, workers=1)
    for half in HALVES:
        make_queries(given.work, half)


if __name__ == "__main__":
    main()
