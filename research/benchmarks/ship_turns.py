"""Fit how the vectors of the extractor `vidkin` change when a picture is mirrored or turned, and ship it.

    python research/benchmarks/ship_turns.py --data FLOWERS --data GROCERY --data AERIAL --test VIDEOS [--output FILE]

For each of mirrored, turned by 90, 180 and 270 degrees a matrix [D, D] predicts the vector of the changed square from
that of the square: ridge regression over random cut-outs of the pictures (and of one frame a second of the videos),
seed 0. So `vidkin duplicates` knows which pairs may be such copies without reading a file. Printed are, for videos that
the fit has not seen, cosines of the prediction with the true vector, and with one of another video.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import save

from vidkin.errors import MediaError
from vidkin.features.sessions import open_square_encoder
from vidkin.features.views import TURNS, TURNS_FILE, turned
from vidkin.media import iter_frames

CUTS, FRAMES, SHORTEST, RIDGE = 4, 12, 0.4, 1e-3
PICTURES, VIDEOS = {".jpg", ".jpeg", ".png"}, {".mp4", ".mkv", ".webm"}


def main() -> None:
    """Fit, print, and write."""
    given = parse_arguments()
    random = np.random.default_rng(0)
    encoder = open_square_encoder()
    seen = [path for folder in given.data for path in listed(folder, given.most, random)]
    squares, _ = cut_outs(seen, encoder.side, random)
    test, owners = cut_outs(listed(given.test, given.most, random), encoder.side, random)
    values, held_out = encoder.encode(squares), encoder.encode(test)
    others = random.permutation(len(test))
    others = np.where(owners[others] == owners, (others + len(others) // 2) % len(others), others)
    matrices = {}
    for turn in TURNS:
        products = values.T @ values + RIDGE * len(values) / values.shape[1] * np.eye(values.shape[1])
        matrices[turn] = np.linalg.solve(products, values.T @ encoder.encode(turned(squares, turn))).astype(np.float32)
        predicted = held_out @ matrices[turn]
        predicted /= np.linalg.norm(predicted, axis=1, keepdims=True)
        truth = encoder.encode(turned(test, turn))
        own, plain, foreign = (
            (one * other).sum(1) for one, other in ((predicted, truth), (held_out, truth), (predicted, truth[others]))
        )
        print(
            f"{turn}: predicted .05 and median {np.quantile(own, 0.05):.3f} {np.median(own):.3f}, without "
            f"{np.median(plain):.3f}, another video median and .99 {np.median(foreign):.3f} "
            f"{np.quantile(foreign, 0.99):.3f}"
        )
    facts = {
        "made_by": "research/benchmarks/ship_turns.py",
        "data": json.dumps([folder.name for folder in given.data]),
        "files": str(len(seen)),
        "squares": str(len(squares)),
        "ridge": str(RIDGE),
        "encoder": encoder.digest,
    }
    halves = {turn: matrix.astype(np.float16) for turn, matrix in matrices.items()}
    given.output.write_bytes(save(halves, metadata=facts))
    print(f"{given.output}: {given.output.stat().st_size} bytes, {len(squares)} squares of {len(seen)} files")


def listed(folder: Path, most: int, random: np.random.Generator) -> list[Path]:
    """At most so many files of a folder, in random order."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in PICTURES | VIDEOS)
    return [files[place] for place in random.permutation(len(files))[:most]]


def cut_outs(files: list[Path], side: int, random: np.random.Generator) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Squares [N, 3, side, side], and the number of the file that each is from."""
    squares, owners = [], []
    for number, path in enumerate(files):
        for picture in pictures(path):
            for _ in range(CUTS):
                width, height = (random.uniform(SHORTEST, 1.0) * length for length in picture.size)
                left, top = random.uniform(0, picture.width - width), random.uniform(0, picture.height - height)
                box = (left, top, left + width, top + height)
                small = picture.resize((side, side), Image.Resampling.BILINEAR, box=box)
                squares.append(np.asarray(small).transpose(2, 0, 1))
                owners.append(number)
    return np.stack(squares), np.array(owners)


def pictures(path: Path) -> Iterator[Image.Image]:
    """The picture, or some frames of the video; none if it is damaged."""
    if path.suffix.lower() in PICTURES:
        with Image.open(path) as image:
            yield image.convert("RGB")
        return
    try:
        for batch in iter_frames(path, rate=1.0, short_side=160):
            yield from (Image.fromarray(image) for image in batch.images[:FRAMES])
            return
    except MediaError:
        return


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", required=True, help="pictures and videos to fit")
    parser.add_argument("--test", type=Path, required=True, help="videos for the figures")
    parser.add_argument("--most", type=int, default=1500, help="files of a folder")
    parser.add_argument("--output", type=Path, default=TURNS_FILE)
    return parser.parse_args()


if __name__ == "__main__":
    main()
