"""What `vidkin recurring` costs in large collections, without the decoding of ends: composed features in a real index.

    python benchmarks/recurring_scale.py [--sizes 12 100 500] [--minutes 25] [--work FOLDER] [--output FILE.json]

Vectors of unrelated shots are drawn with the mean and the covariance of real ones: those of photographs of the
measurement data (VIDKIN_DATA or --data). An episode is a row of shots of 2 to 8 s at one frame per second, in which
frames have a cosine of .95 with their shot; all episodes share an opening of 60 s at varying times and a closing of
40 s at their end, whose frames have a cosine of .9 with each other. There are no files to decode: each shared stretch
keeps the ends of its features. Printed are processor seconds of the first call, of a second one, and of one after a
new episode; how many episodes are in the group of the opening and in that of the closing, and other groups.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin.index import Entry, Index, RecurringGroup, VideoRecord, window_vectors
from vidkin.media import Frames
from vidkin.rendering.machine import describe_machine
from vidkin.similarity import FrameFeatures

Vectors = NDArray[np.float32]

PICTURES, BATCH = 1200, 25
OPENING, CLOSING = 60, 40
OF_SHOT, OF_COPY = 0.95, 0.95  # cosines with the shot, and of each copy with what was copied


def main() -> None:
    """Measure each size and print a table."""
    given = parse_arguments()
    logging.getLogger("vidkin").setLevel(logging.ERROR)  # there is nothing to decode, as each pair would say
    work = given.work or Path(tempfile.mkdtemp(prefix="vidkin-recurring-scale-"))
    figures = {}
    for size in given.sizes:
        figures[size] = measure(work / str(size), size, round(given.minutes * 60), given.data)
        print(size, figures[size])
    if given.output:
        document = {"machine": describe_machine(), "minutes": given.minutes, "sizes": figures}
        given.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def measure(folder: Path, size: int, seconds: int, data: Path) -> dict[str, Any]:
    """Fill an index with episodes, look for what recurs, look again, and again after one more."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(size)
    with Index.open(folder / "c.vidkin", create=True) as index:
        draw = Shots(index, data, random)
        opening, closing = draw.shots(OPENING), draw.shots(CLOSING)
        entries = (episode(folder, number, draw, opening, closing, seconds) for number in range(size + 1))
        for number, entry in enumerate(entries):
            if number < size:
                index.store.append_many([entry])
        first, groups = timed(index)
        again, _ = timed(index)
        index.store.append_many([entry])
        more, with_new = timed(index)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "processor seconds": first,
        "again": again,
        "with one more": more,
        "in the opening": largest(groups, "opening"),
        "in the closing": largest(groups, "closing"),
        "with the new one": largest(with_new, "opening"),
        "other groups": len(groups) - 2,
        "peak MiB": round(peak),
    }


class Shots:
    """Draws vectors of shots that are as alike as those of unrelated photographs."""

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
        """So many frames, in shots of 2 to 8."""
        lengths = self.random.integers(2, 9, count)
        drawn = self._mean + self.random.standard_normal((count, len(self._mean))) @ self._root.T
        return self.near(unit(np.repeat(drawn, lengths, axis=0)[:count]), OF_SHOT)

    def near(self, vectors: NDArray[np.floating], cosine: float) -> Vectors:
        """Vectors with this cosine with the given ones, in random directions."""
        others = self.random.standard_normal(vectors.shape)
        others -= (others * vectors).sum(axis=1, keepdims=True) * vectors
        return unit(cosine * vectors + np.sqrt(1 - cosine**2) * unit(others))


def unit(vectors: NDArray[np.floating]) -> Vectors:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def episode(folder: Path, number: int, draw: Shots, opening: Vectors, closing: Vectors, seconds: int) -> Entry:
    """An episode with its record and windows; its file is empty."""
    before = int(draw.random.integers(0, 180))
    body = draw.shots(seconds - len(opening) - len(closing))
    parts = [body[:before], draw.near(opening, OF_COPY), body[before:], draw.near(closing, OF_COPY)]
    values = np.concatenate(parts)[:, None]
    baseline = np.full(len(values), 0.48, np.float32)
    features = FrameFeatures.of_whole(
        values.astype(np.float16), np.arange(float(len(values))), fingerprint=draw.fingerprint, baseline=baseline
    )
    windows = window_vectors(features)
    path = folder / f"episode {number}.mkv"
    path.touch()
    record = VideoRecord(
        path=str(path), size=0, mtime_ns=0, content_hash=f"{number:064x}", duration=float(seconds), width=320,
        height=180, frame_rate=25.0, codec="h264", frames=len(features), sampling_rate=1.0, windows=len(windows),
    )  # fmt: skip
    return Entry(record, features, windows)


def timed(index: Index) -> tuple[float, list[RecurringGroup]]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    groups = index.recurring()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return round(after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime, 2), groups


def largest(groups: list[RecurringGroup], kind: str) -> int:
    return max((len(group.paths) for group in groups if group.kind == kind), default=0)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("VIDKIN_DATA"), help="the measurement data")
    parser.add_argument("--sizes", type=int, nargs="+", default=[12, 100, 500], help="numbers of episodes")
    parser.add_argument("--minutes", type=float, default=25.0, help="length of an episode")
    parser.add_argument("--work", type=Path, help="folder for the indexes; new")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the measurement data with --data FOLDER or VIDKIN_DATA")
    given.data = Path(given.data)
    return given


if __name__ == "__main__":
    main()
