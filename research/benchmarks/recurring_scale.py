"""Cost of `vidkin recurring` in large collections: synthetic features in a real index, and matching files.

    python research/benchmarks/recurring_scale.py [--sizes 12 100 500] [--minutes 25] [--features-only] [--work FOLDER]
        [--output FILE.json]

Vectors of unrelated shots are sampled with the mean and covariance of real ones, those of photographs in the
measurement data (VIDKIN_DATA or --data). An episode is a sequence of shots of 2 to 8 s at one frame per second, in
which each frame has a cosine of 0.95 with its shot. All episodes share an opening of 60 s at varying positions and a
closing of 40 s at the end, whose frames have a cosine of 0.9 with each other.

The file of an episode has real frames wherever boundaries are refined: the opening, the closing and the 12 s around
each are photographs under a moving camera, encoded once and remuxed; between them a single image is repeated once per
second. With --features-only files are empty, and the boundaries of shared segments are those of the features. For a
first call, a second one, and one after adding an episode, the output lists CPU seconds and wall time; the number of
episodes in the groups of opening and closing; other groups; and boundary errors of openings and closings in seconds.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from recurring_seasons import HEIGHT, RATE, WIDTH, Pool, Shot, processor_seconds
from vidkin.index import Entry, Index, RecurringGroup, VideoRecord, window_vectors
from vidkin.media import Frames, write_video
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import FrameFeatures

Vectors = NDArray[np.float32]

PICTURES, BATCH = 1200, 25
OPENING, CLOSING = 60, 40
OF_SHOT, OF_COPY = 0.95, 0.95  # cosine of a frame with its shot, and of each copy with the original
# Number of shots encoded for the surroundings of openings and closings, seconds of each, and number used per side.
SHOTS, SHOT_SECONDS, AROUND = 200, 4, 3


def main() -> None:
    """Measure each size and print a table."""
    given = parse_arguments()
    if given.features_only:
        logging.getLogger("vidkin").setLevel(
            logging.ERROR
        )  # warnings about each pair, since there is nothing to decode
    work = given.work or Path(tempfile.mkdtemp(prefix="vidkin-recurring-scale-"))
    figures = {}
    for size in given.sizes:
        folder = work / str(size)
        files = None if given.features_only else Files(given.data, folder / "shots")
        figures[size] = measure(folder, size, round(given.minutes * 60), given.data, files)
        print(size, figures[size])
    if given.output:
        document = {"machine": describe_machine(), "minutes": given.minutes, "sizes": figures}
        given.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def measure(folder: Path, size: int, seconds: int, data: Path, files: Files | None) -> dict[str, Any]:
    """Fill an index with episodes and search for recurring segments: twice, and again after adding one episode."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(size)
    truth: dict[str, float] = {}
    with Index.open(folder / "c.vidkin", create=True) as index:
        draw = Shots(index, data, random)
        opening, closing = draw.shots(OPENING), draw.shots(CLOSING)
        for number in range(size + 1):
            start = int(random.integers(0, 180))
            entry = episode(folder, number, draw, (opening, closing), seconds, start, files)
            truth[entry.record.path] = float(start)
            if number < size:
                index.store.append_many([entry])
        figures: dict[str, Any] = {}
        groups = time_search(index, "first", figures)
        time_search(index, "again", figures)
        index.store.append_many([entry])
        with_new = time_search(index, "with one more", figures)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures |= {
        "in the opening": largest(groups, "opening"),
        "in the closing": largest(groups, "closing"),
        "with the new one": largest(with_new, "opening"),
        "other groups": len(groups) - 2,
        "peak MiB": round(peak),
    }
    if files is not None:
        errors = errors_of_ends(groups, truth, seconds)
        figures["95 % of errors within, s"] = round(float(np.quantile(errors, 0.95)), 3)
        figures["largest error, s"] = round(float(errors.max()), 3)
    return figures


def errors_of_ends(groups: Sequence[RecurringGroup], truth: dict[str, float], seconds: int) -> NDArray[np.float64]:
    """Errors of the starts and ends of openings and closings, in seconds."""
    errors = []
    for group in groups:
        for one in group.occurrences:
            if group.kind == "opening":
                errors += [one.start - truth[one.path], one.end - truth[one.path] - OPENING]
            elif group.kind == "closing":
                errors += [one.start - seconds + CLOSING, one.end - seconds]
    return np.abs(np.array(errors))


class Files:
    """Writes episodes; their opening, closing and surrounding shots are encoded only once."""

    def __init__(self, data: Path, folder: Path) -> None:
        folder.mkdir(parents=True)
        pool = Pool(data, "development", seed=1)
        self._opening = self._encode(folder / "opening.mp4", pool.shots(OPENING, 0.0))
        self._closing = self._encode(folder / "closing.mp4", pool.shots(CLOSING, 0.0))
        shots = [Shot(pool.photos.pop(), 0.0, float(SHOT_SECONDS), number) for number in range(SHOTS)]
        self._shots = [self._encode(folder / f"{number}.mp4", [shot]) for number, shot in enumerate(shots)]
        self._card = self._encode(folder / "card.mp4", [Shot(pool.photos.pop(), -1.0, 1 / RATE)])
        self._template = folder / "opening.mp4"

    @staticmethod
    def _encode(path: Path, shots: Sequence[Shot]) -> list[tuple[bytes, bool]]:
        """Encode shots; return the packets with their keyframe flags."""
        pictures = (image for shot in shots for image in shot.pictures())
        write_video(path, pictures, rate=RATE, crf=34, preset="ultrafast", threads=1)
        with av.open(path) as container:
            return [(bytes(packet), packet.is_keyframe) for packet in container.demux(video=0) if packet.size]

    def write(self, path: Path, random: np.random.Generator, start: int, seconds: int) -> None:
        """Write a file whose opening starts at a whole second and whose closing is at the end."""
        with av.open(self._template) as source, av.open(path, "w") as target:
            stream = target.add_stream_from_template(source.streams.video[0])
            stream.time_base = unit = Fraction(1, RATE)
            body = seconds - OPENING - CLOSING - start
            time = 0
            for part, step in self._parts(random, start, body):
                for content, is_key in part:
                    packet = av.Packet(content)
                    packet.stream, packet.time_base = stream, unit
                    packet.pts = packet.dts = time
                    packet.duration, packet.is_keyframe = step, is_key
                    target.mux(packet)
                    time += step

    def _parts(
        self, random: np.random.Generator, start: int, body: int
    ) -> Iterator[tuple[list[tuple[bytes, bool]], int]]:
        """Yield (packets, frame interval) of each part in order."""
        chosen = iter(random.permutation(SHOTS)[: 3 * AROUND].tolist())
        before = min(AROUND, start // SHOT_SECONDS)
        for _ in range(start - before * SHOT_SECONDS):
            yield self._card, RATE
        yield from ((self._shots[next(chosen)], 1) for _ in range(before))
        yield self._opening, 1
        yield from ((self._shots[next(chosen)], 1) for _ in range(AROUND))
        for _ in range(body - 2 * AROUND * SHOT_SECONDS):
            yield self._card, RATE
        yield from ((self._shots[next(chosen)], 1) for _ in range(AROUND))
        yield self._closing, 1


class Shots:
    """Samples shot vectors that are as similar to each other as those of unrelated photographs."""

    def __init__(self, index: Index, data: Path, random: np.random.Generator) -> None:
        paths = sorted((data / "photos" / "flowers" / "train").rglob("*.jpg"))
        chosen = [paths[at] for at in random.permutation(len(paths))[:PICTURES]]
        vectors = []
        for first in range(0, len(chosen), BATCH):
            images = [Image.open(path).convert("RGB").resize((320, 180)) for path in chosen[first : first + BATCH]]
            frames = Frames(np.stack([np.asarray(image) for image in images]), np.arange(float(len(images))))
            vectors.append(index.extractor.extract(frames).whole[:, 0])
        real = np.concatenate(vectors).astype(np.float64)
        self._mean = real.mean(axis=0)
        self._root = np.linalg.cholesky(np.cov(real.T) + 1e-7 * np.eye(real.shape[1]))
        self.fingerprint = index.extractor.fingerprint
        self.random = random

    def shots(self, count: int) -> Vectors:
        """Sample this many frames, in shots of 2 to 8 frames."""
        lengths = self.random.integers(2, 9, count)
        drawn = self._mean + self.random.standard_normal((count, len(self._mean))) @ self._root.T
        return self.near(unit(np.repeat(drawn, lengths, axis=0)[:count]), OF_SHOT)

    def near(self, vectors: NDArray[np.floating], cosine: float) -> Vectors:
        """Return vectors with this cosine to the given ones, in random directions."""
        others = self.random.standard_normal(vectors.shape)
        others -= (others * vectors).sum(axis=1, keepdims=True) * vectors
        return unit(cosine * vectors + np.sqrt(1 - cosine**2) * unit(others))


def unit(vectors: NDArray[np.floating]) -> Vectors:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def episode(
    folder: Path,
    number: int,
    draw: Shots,
    shared: tuple[Vectors, Vectors],
    seconds: int,
    start: int,
    files: Files | None,
) -> Entry:
    """Create an episode with record, windows and file; its opening starts at a whole second."""
    opening, closing = shared
    body = draw.shots(seconds - len(opening) - len(closing))
    parts = [body[:start], draw.near(opening, OF_COPY), body[start:], draw.near(closing, OF_COPY)]
    values = np.concatenate(parts)[:, None]
    baseline = np.full(len(values), 0.48, np.float32)
    features = FrameFeatures.of_whole(
        values.astype(np.float16), np.arange(float(len(values))), fingerprint=draw.fingerprint, baseline=baseline
    )
    windows = window_vectors(features)
    path = folder / f"episode {number}.mkv"
    path.touch()
    if files is not None:
        files.write(path, draw.random, start, seconds)
    facts = path.stat()
    record = VideoRecord(
        path=str(path), size=facts.st_size, mtime_ns=facts.st_mtime_ns, content_hash=f"{number:064x}",
        duration=float(seconds), width=WIDTH, height=HEIGHT, frame_rate=25.0, codec="h264",
        frames=len(features), sampling_rate=1.0, windows=len(windows),
    )  # fmt: skip
    return Entry(record, features, windows)


def time_search(index: Index, name: str, figures: dict[str, Any]) -> list[RecurringGroup]:
    """Search for recurring segments; add CPU seconds and wall time to the results."""
    began, before = time.perf_counter(), processor_seconds()
    groups = index.recurring()
    figures[f"{name}, processor s"] = round(processor_seconds() - before, 2)
    figures[f"{name}, s"] = round(time.perf_counter() - began, 2)
    return groups


def largest(groups: list[RecurringGroup], kind: str) -> int:
    return max((len(group.paths) for group in groups if group.kind == kind), default=0)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("VIDKIN_DATA"),
        help="folder with the measurement data (default: $VIDKIN_DATA)",
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[12, 100, 500], help="numbers of episodes to measure")
    parser.add_argument("--minutes", type=float, default=25.0, help="length of an episode in minutes")
    parser.add_argument(
        "--features-only", action="store_true", help="create empty files, without refinement of boundaries"
    )
    parser.add_argument("--work", type=Path, help="working folder for files and indexes (must not exist)")
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the measurement data with --data FOLDER or VIDKIN_DATA")
    given.data = Path(given.data)
    return given


if __name__ == "__main__":
    main()
