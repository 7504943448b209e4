"""Collections of up to a million videos made of features of real footage, and edited queries from held-back sources.

    python research/benchmarks/scale_material.py --data FOLDER --work /tmp/million    # describes footage, makes the \
        queries
    python research/benchmarks/scale_material.py --work /tmp/million --nearness       # how near unrelated videos are

A recipe, not data: the footage (`VIDKIN_DATA` or --data) is described once into an index in the work folder; all else
follows from seeds. A composed video has 20 to 60 s of shots of 3 to 12 s. A shot is a stretch of a real video, at .8, 1
or 1.25 of its speed, whose vectors are mixed with those of two other moments of real footage: weights w with
w1^2 + w2^2 + w3^2 = 1 of the deviations from the mean of all whole frames. Such a mixture has the mean and the
covariance of the real vectors, and keeps the real changes in time; how near the nearest unrelated video is depends on
how much the first part dominates, and `--nearness` compares that with the real videos. Boxes found in a frame get the
same mixture; baselines, thumbnails and information are those of the first part.

Queries are clips of sources that no composed video is made of, each edited in one way (`EDITS`, all of them in each
half, each --rounds times with another clip) and described as a search describes it. The video to find holds the source
as the index describes it, and other real footage around it. Halves: development, to choose with, and held-back, for the
end.
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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidkin.features import open_extractor
from vidkin.index import Index, VideoRecord
from vidkin.index.query.calibration import Calibration
from vidkin.index.query.query import describe_query
from vidkin.index.storage.records import unit_vectors
from vidkin.rendering.machine import describe_machine
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
COMPOSED_AT_ONCE = 64
ROUND_STEP = 17
# Frames with less are no candidates, as in `window_vectors`.
LEAST_INFORMATION = 0.01
# Shots that a video can have.
MOST_SHOTS = 20


@dataclass(frozen=True)
class Footage:
    """The real footage that composed videos are made of: F frames of V views, S sources.

    Attributes:
        paths: Names of the sources.
        values: [F, V, D] float16, unit vectors; zeros where a frame lacks the view.
        mean: [D] float32, mean of the vectors of whole frames.
        deviations: [F, D] float32, whole frames minus the mean.
        baselines, information, boxes, thumbnails: [F, ...], as in `FrameFeatures`.
        first: [S + 1], where the frames of each source begin.
        periods: [S] seconds from one frame to the next.
    """

    paths: tuple[str, ...]
    values: NDArray[np.float16]
    mean: NDArray[np.float32]
    deviations: NDArray[np.float32]
    baselines: NDArray[np.float32]
    information: NDArray[np.float32]
    boxes: NDArray[np.float32]
    thumbnails: NDArray[np.uint8]
    first: NDArray[np.int64]
    periods: NDArray[np.float64]

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
    whole = FrameFeatures.concatenate([replace(one, end=None) for one in features])
    values = whole.values[:, :, 0].astype(np.float16)
    mean = values[:, 0].astype(np.float32).mean(axis=0)
    assert whole.boxes is not None
    assert whole.thumbnails is not None
    return Footage(
        paths=tuple(record.path for record in records),
        values=values,
        mean=mean,
        deviations=values[:, 0] - mean,
        baselines=whole.baselines.astype(np.float32),
        information=whole.information.astype(np.float32),
        boxes=whole.boxes.astype(np.float32),
        thumbnails=whole.thumbnails,
        first=np.cumsum([0, *map(len, features)]),
        periods=np.array([float(np.median(np.diff(one.timestamps))) if len(one) > 1 else 1.0 for one in features]),
    )


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


class Frames(NamedTuple):
    """N frames of composed videos: vectors [N, V, D], the row in the footage, the video and the time of each [N]; and
    the end of each video in seconds."""

    vectors: NDArray[np.float32]
    rows: NDArray[np.int64]
    videos: NDArray[np.int64]
    times: NDArray[np.float64]
    ends: NDArray[np.float64]


def compose_frames(footage: Footage, plan: Plan, first: int, last: int, views: int) -> Frames:
    """The frames of the videos from ``first`` to ``last`` of a plan, in the first ``views`` views."""
    chosen = slice(first, last)
    video, shot = np.nonzero(np.arange(MOST_SHOTS) < plan.shots[chosen, None])
    start, length, speed = (column[chosen][video, shot] for column in (plan.start, plan.length, plan.speed))
    period = footage.periods[footage.source_of[start]] / speed
    ends = np.cumsum(length * period)
    # Seconds at which each shot begins in its video.
    begins = ends - length * period
    begins -= begins[np.searchsorted(video, np.arange(last - first))][video]
    shots = np.repeat(np.arange(len(video)), length)
    within = np.arange(len(shots)) - np.repeat(np.cumsum(length) - length, length)
    rows = start[shots] + within
    weights, others = plan.weights[chosen][video, shot], plan.others[chosen][video, shot]
    # The two other moments are the same along a shot.
    rest = (weights[:, 1:, None] * footage.deviations[others]).sum(axis=1) + (1 - weights[:, :1]) * footage.mean
    values = footage.values[rows, :views].astype(np.float32)
    vectors = weights[shots, 0, None, None] * values + rest[shots, None]
    vectors[~values.any(axis=2)] = 0
    return Frames(
        unit_vectors(vectors),
        rows,
        video[shots],
        begins[shots] + within * period[shots],
        np.maximum.reduceat(begins + length * period, np.searchsorted(video, np.arange(last - first))),
    )


def compose_many(footage: Footage, numbers: range, *, seed: int = 0) -> Iterator[FrameFeatures]:
    """The features of these composed videos; each block of consecutive ones is planned once."""
    planned, plan = -1, plan_block(footage, 0, seed)
    number = numbers.start
    while number < numbers.stop:
        block, first = divmod(number, BLOCK)
        if block != planned:
            planned, plan = block, plan_block(footage, block, seed)
        last = min(first + COMPOSED_AT_ONCE, BLOCK, first + numbers.stop - number)
        made = compose_frames(footage, plan, first, last, footage.values.shape[1])
        edges = np.searchsorted(made.videos, np.arange(last - first + 1))
        for video, (begin, end) in enumerate(pairwise(edges.tolist())):
            rows = made.rows[begin:end]
            yield FrameFeatures(
                made.vectors[begin:end, :, None],
                made.times[begin:end],
                footage.information[rows],
                "",
                footage.baselines[rows],
                footage.boxes[rows],
                footage.thumbnails[rows],
                float(made.ends[video]),
            )
        number += last - first


# Queries, and the videos to find.


@dataclass(frozen=True)
class Case:
    """A query and the source of the video that it should find."""

    name: str
    edit: str
    family: str
    source: str
    query: FrameFeatures


def make_queries(work: Path, half: str, rounds: int) -> None:
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
    for number in range(rounds * len(EDITS)):
        edit, round_ = [*EDITS][number % len(EDITS)], number // len(EDITS)
        # Clips of a source follow each other; in each round an edit gets one of another source.
        clip = clips[(number % len(EDITS) + round_ * ROUND_STEP) % len(clips)]
        target = folder / f"{half}-{edit}-{round_}.npz"
        cases.append({"file": target.name, "edit": edit, "family": EDITS[edit].family, "name": clip.name,
                      "source": str(clip.recording.path)})  # fmt: skip
        if not target.exists():
            save_query(target, edited(clip, edit, Path(filler), extractor, calibration))
            print(f"{half} {number + 1} of {rounds * len(EDITS)}: {edit}", flush=True)
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
        number = zlib.crc32(os.path.basename(record.path).encode()) % 1000
        around = next(compose_many(footage, range(number, number + 1), seed=1))
        half_of_rest = max(2, int((SHORTEST + LONGEST) / 2 - float(own.timestamps[-1])) // 2)
        before = cut(around, 0, half_of_rest)
        after = cut(around, len(around) - half_of_rest, len(around))
        targets[record.path] = joined([before, own, after])
    return targets


def cut(features: FrameFeatures, first: int, last: int) -> FrameFeatures:
    """The frames from ``first`` to ``last``, from time 0 on."""
    rows = slice(first, last)
    columns = (features.values, features.timestamps - features.timestamps[first], features.information)
    others = (features.baseline, features.boxes, features.thumbnails)
    of_rows = [None if column is None else column[rows] for column in others]
    return FrameFeatures(*(column[rows] for column in columns), "", *of_rows)


def joined(parts: Sequence[FrameFeatures]) -> FrameFeatures:
    """One after the other, a second between them."""
    moved, begin = [], 0.0
    for part in parts:
        moved.append(replace(part, timestamps=part.timestamps + begin, values=part.values.astype(np.float32)))
        begin = float(moved[-1].timestamps[-1]) + 1.0
    return replace(FrameFeatures.concatenate(moved), end=begin)


# How near unrelated videos are.


def nearest_of_others(
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


def measure_nearness(footage: Footage) -> dict[str, dict[str, float]]:
    """Cosines of whole frames with the nearest frame of another video, of as many real and composed frames."""
    draw = np.random.default_rng(0)
    made = compose_frames(footage, plan_block(footage, 0, 2), 0, BLOCK, 1)
    kinds = {
        "real": (footage.values[:, 0].astype(np.float32), footage.source_of, footage.information),
        "composed": (made.vectors[:, 0], made.videos, footage.information[made.rows]),
    }
    figures = {}
    for kind, (vectors, owners, information) in kinds.items():
        rows = np.flatnonzero(information >= LEAST_INFORMATION)
        rows = draw.choice(rows, min(len(rows), 4000), replace=False)
        near = nearest_of_others(vectors[rows], owners[rows], np.arange(min(len(rows), 1000)))
        half = len(rows) // 2
        pairs = (vectors[rows[:half]] * vectors[rows[-half:]]).sum(axis=1)
        tenths = dict(zip(("tenth_1", "tenth_5", "tenth_9"), np.quantile(near, [0.1, 0.5, 0.9]).tolist(), strict=True))
        figures[kind] = {"frames": len(rows), "videos": len(np.unique(owners[rows])), **tenths,
                         "any_pair": float(pairs.mean())}  # fmt: skip
    return figures


def blocks(size: int) -> Iterator[int]:
    """Numbers of the blocks of so many videos."""
    yield from range(-(-size // BLOCK))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("VIDKIN_DATA"), help="the measurement data")
    parser.add_argument("--work", type=Path, required=True, help="folder of the described footage and the queries")
    parser.add_argument("--nearness", action="store_true", help="print how near unrelated videos are, and end")
    parser.add_argument("--output", type=Path, help="JSON file for --nearness")
    parser.add_argument("--rounds", type=int, default=1, help="queries of each edit and half")
    parser.add_argument("--halves", choices=HALVES, nargs="+", default=HALVES, help="whose queries are made")
    given = parser.parse_args()
    if given.nearness:
        figures = {"machine": describe_machine(), **measure_nearness(open_footage(given.work))}
        print(json.dumps(figures, indent=1))
        if given.output:
            given.output.write_text(json.dumps(figures, indent=1) + "\n")
        return
    if given.data is None:
        parser.error("the measurement data is not there: set VIDKIN_DATA or name its folder with --data")
    folders = [given.data / name for name in ("videos", "shots", "labelled/aerial", "labelled/fruit")]
    with Index.open(given.work / "real.vidkin", extractor="vidkin", create=True) as index:
        index.add(folders, workers=1)
    for half in given.halves:
        make_queries(given.work, half, given.rounds)


if __name__ == "__main__":
    main()
