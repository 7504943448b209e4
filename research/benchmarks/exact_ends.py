"""Accuracy of match offsets, speeds and boundaries, before and after refinement by decoding.

    python research/benchmarks/exact_ends.py [--data FOLDER] [--half develop|held-out] [--rounds 1] [--first-round 0]
        [--work FOLDER] [--output FILE.json]

From the measurement data (VIDKIN_DATA or --data), every second source by name is held out. An excerpt of 3 to 7 s of
each source, at a speed that people and converters use, is inserted between three seconds of two other sources, so that
it starts and ends with a hard cut, and re-encoded at 480 x 270 and 25 fps. The output lists errors of offset (at the
middle of the excerpt, in frames of the copy), speed, and both ends in the copy in seconds, as reported by `vidkin
match` and by the features alone, and the cost of decoding. Every round uses a different excerpt and speed for each
source; rounds from 1 on are independent of the published results.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _halves import data_parser, half_of, resolve_data, write_results
from vidkin import compare
from vidkin.index.query.exact_times import refine_segments
from vidkin.media import probe, steady_frames
from vidkin.media.encode import write_video
from vidkin.similarity import Segment
from vidkin_research.copies.transforms import fill_size

RATE, WIDTH, HEIGHT = 25, 480, 270
AROUND, SHORTEST, LONGEST = 3.0, 3.0, 7.0
# Used in turn; half of the copies have the original speed.
SPEEDS = (1.0, 1.25, 1.0, 24 / 25, 1.0, 0.8, 1.0, 25 / 24)
# Targets at the 90th percentile.
FRAMES_OFF, SECONDS_OFF = 1.0, 0.1


class Truth(NamedTuple):
    """Ground truth of an excerpt: seconds in the copy and in the source, and source seconds per copy second."""

    start: float
    end: float
    source_start: float
    speed: float

    @property
    def middle(self) -> float:
        """Middle of the excerpt in the copy."""
        return (self.start + self.end) / 2


def main() -> None:
    """Compose, compare, refine and print."""
    parser = data_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="number of excerpts per source")
    parser.add_argument("--first-round", type=int, default=0, help="index of the first round")
    given = resolve_data(parser)
    sources = half_of(given.data, given.half)
    cases = [
        (turn, number)
        for turn in range(given.first_round, given.first_round + given.rounds)
        for number in range(len(sources))
    ]
    work = given.work or Path(tempfile.mkdtemp(prefix="vidkin-exact-"))
    work.mkdir(parents=True, exist_ok=True)
    rough: list[dict[str, float]] = []
    exact: list[dict[str, float]] = []
    missed, seconds = [], []
    for turn, number in cases:
        source = sources[number]
        copy = work / f"{given.half}-{number}{f'-{turn}' if turn else ''}.mp4"
        truth = make_copy(sources, number, turn, copy)
        found = best_of(compare(copy, source).segments, truth)
        if found is None:
            missed.append(source.name)
            continue
        begin = time.process_time()
        (refined,) = refine_segments(copy, source, [found])
        seconds.append(time.process_time() - begin)
        rough.append(errors(found, truth))
        exact.append({**errors(refined, truth), "source": number})
        print(f"{source.name}, speed {truth.speed:.3f}: {exact[-1]}", flush=True)
    write_results(
        given,
        {
            "copies": len(cases),
            "not found": missed,
            "features alone": summary(rough),
            "decoded around them": summary(exact),
            "processor s a segment": round(float(np.median(seconds)), 2),
        },
    )


def make_copy(sources: list[Path], number: int, turn: int, target: Path) -> Truth:
    """Write an excerpt between segments of two other sources, unless it exists, and return the ground truth."""
    random = np.random.default_rng([7, number, turn] if turn else [7, number])
    # Advance by three per round so that each source gets a different speed.
    source, speed = sources[number], SPEEDS[(number + 3 * turn) % len(SPEEDS)]
    length = probe(source).duration - 0.2
    count = round(min(float(random.uniform(SHORTEST, LONGEST)), length / speed) * RATE)
    start = float(random.uniform(0, max(0.0, length - count / RATE * speed)))
    before, after = sources[(number + 1) % len(sources)], sources[(number + 2) % len(sources)]
    around = [min(AROUND, probe(path).duration - 0.2) for path in (before, after)]
    lead = round(around[0] * RATE)

    def frames() -> Any:
        for path, first, step, pictures in (
            (before, 0.0, 1 / RATE, lead),
            (source, start, speed / RATE, count),
            (after, 0.0, 1 / RATE, round(around[1] * RATE)),
        ):
            for image in steady_frames(path, first, step, pictures, HEIGHT, 1):
                yield fill_size(image, WIDTH, HEIGHT)

    if not target.exists():
        write_video(target, frames(), rate=RATE, threads=1)
    return Truth(lead / RATE, (lead + count) / RATE, start, speed)


def best_of(segments: tuple[Segment, ...], truth: Truth) -> Segment | None:
    """Select the segment with the largest overlap with the excerpt, at least half of it."""
    shared = [(min(each.query_end, truth.end) - max(each.query_start, truth.start), each) for each in segments]
    most, best = max(shared, key=lambda each: each[0], default=(0.0, None))
    return best if most >= (truth.end - truth.start) / 2 else None


def errors(found: Segment, truth: Truth) -> dict[str, float]:
    """Errors of the offset in frames, of the speed in percent, and of the ends in seconds."""
    there = found.target_start + (truth.middle - found.query_start) * found.speed
    wanted = truth.source_start + (truth.middle - truth.start) * truth.speed
    return {
        "offset": round(abs(there - wanted) * RATE, 2),
        "speed": round(100 * abs(found.speed / truth.speed - 1), 2),
        "start": round(abs(found.query_start - truth.start), 3),
        "end": round(abs(found.query_end - truth.end), 3),
    }


def summary(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Median and 90th percentile of the errors, and the number of errors within the targets."""
    ends = [row[side] for row in rows for side in ("start", "end")]
    columns = {
        "offset, frames": [row["offset"] for row in rows],
        "speed, %": [row["speed"] for row in rows],
        "ends, s": ends,
    }
    quantiles = {
        name: [round(float(np.quantile(values, share)), 3) for share in (0.5, 0.9)] if values else None
        for name, values in columns.items()
    }
    return {
        "median, 90 %": quantiles,
        "offsets within a frame": f"{sum(row['offset'] <= FRAMES_OFF for row in rows)} of {len(rows)}",
        "ends within .1 s": f"{sum(error <= SECONDS_OFF for error in ends)} of {len(ends)}",
    }


if __name__ == "__main__":
    main()
