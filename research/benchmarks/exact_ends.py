"""How exactly offsets, speeds and ends of a match are found, before and after decoding around them.

    python research/benchmarks/exact_ends.py [--data FOLDER] [--half develop|held-out] [--rounds 1] [--first-round 0]
        [--work FOLDER] [--output FILE.json]

From the measurement data (VIDKIN_DATA or --data), every second source by name is held back. An excerpt of 3 to 7 s of
each source, at one of the speeds that people and converters use, is put between three seconds of two other sources, so
that it begins and ends with a hard cut, and encoded again at 480 x 270, 25 frames a second. Printed are the errors of
the offset (at the middle of the excerpt, in frames of the copy), of the speed, and of both ends in the copy, in
seconds, as `vidkin match` gives them, and as the features alone do; and what the decoding costs. In each of the rounds
every source gives another excerpt at another speed; rounds from 1 on are other cases than those that are published.
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
# In turn; half of the copies have the speed of their source.
SPEEDS = (1.0, 1.25, 1.0, 24 / 25, 1.0, 0.8, 1.0, 25 / 24)
# What the issue of exact times asks for, at the 90th percentile.
FRAMES_OFF, SECONDS_OFF = 1.0, 0.1


class Truth(NamedTuple):
    """Where the excerpt is: seconds of the copy and of the source, and seconds of the source per second of the copy."""

    start: float
    end: float
    source_start: float
    speed: float

    @property
    def middle(self) -> float:
        """The middle of the excerpt in the copy."""
        return (self.start + self.end) / 2


def main() -> None:
    """Compose, compare, refine, print."""
    parser = data_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="excerpts of each source")
    parser.add_argument("--first-round", type=int, default=0, help="number of the first round")
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
    """Write an excerpt of a source between two others, unless an earlier run did, and say where it is."""
    random = np.random.default_rng([7, number, turn] if turn else [7, number])
    # Three on in every round: another speed for each source.
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
    """The segment that shares the most with the excerpt, if it shares half of it."""
    shared = [(min(each.query_end, truth.end) - max(each.query_start, truth.start), each) for each in segments]
    most, best = max(shared, key=lambda each: each[0], default=(0.0, None))
    return best if most >= (truth.end - truth.start) / 2 else None


def errors(found: Segment, truth: Truth) -> dict[str, float]:
    """Errors of the offset in frames, the speed in percent, and the ends in seconds."""
    there = found.target_start + (truth.middle - found.query_start) * found.speed
    wanted = truth.source_start + (truth.middle - truth.start) * truth.speed
    return {
        "offset": round(abs(there - wanted) * RATE, 2),
        "speed": round(100 * abs(found.speed / truth.speed - 1), 2),
        "start": round(abs(found.query_start - truth.start), 3),
        "end": round(abs(found.query_end - truth.end), 3),
    }


def summary(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Median and 90th percentile of the errors, and how many are as small as asked for."""
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
