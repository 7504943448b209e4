"""Accuracy of shot detectors by kind of cut and by kind of false cut.

    python research/benchmarks/shot_kinds.py --clips FILE [FILE ...] --photographs FOLDER [FOLDER ...] \
        [--detectors default transnetv2] [--videos 3] [--rows fade wipe ...] [--output FILE.json]

Films with one kind of transition each are composed (`vidkin_research.made`), encoded at CRF 18 to 33 and passed to
every detector. Transitions within a scene change at least 8 % of the structure of a frame. Rows ``nothing: FAMILY`` are
single takes with something that resembles a transition; they report false cuts per ten minutes. Clips (files or
folders) and photographs must differ from the training data of the detectors. With --rows only these kinds are composed,
with the same films as in a full run, and replace their rows in FILE.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vidkin._base.files import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS
from vidkin.media import write_video
from vidkin.metric.measures import DetectionScores
from vidkin.shots import Cut, detect
from vidkin_research.learned.judging import BoundaryLabels, evaluate_cuts
from vidkin_research.made import GRADUAL_JOINS, HARD_JOINS, FilmRecipe, compose_film
from vidkin_research.made.disturbances import DISTURBANCES
from vidkin_research.made.edited_videos import rgb_pictures
from vidkin_research.made.footage import read_footage
from vidkin_research.made.negatives import NEGATIVE_FAMILIES, make_negative
from vidkin_research.made.transitions import TakeReader

FRAMES = 200
MIXED = {"other": 0.4, "same": 0.3, "reframed": 0.3}
USUAL = dict.fromkeys(("walkers", "hand-held", "compression", "fast"), 0.08)
SCENES = ("fast", "walkers", "hand-held", "whip pan")
SHORT = "near the ends"
FILM = "as films have them"
JUMPS = "jumps before a fixed camera"
RATE = 25.0
ROWS = {
    **{kind: FilmRecipe(joins={kind: 1}, disturbances=USUAL, near_ends=0, close=0, shortest=10) for kind in HARD_JOINS},
    SHORT: FilmRecipe(joins=MIXED, disturbances={}, near_ends=1, close=0),
    FILM: FilmRecipe(
        joins={"other": 0.4, "same": 0.3, "reframed": 0.2, "reverse": 0.1},
        disturbances=dict.fromkeys((*SCENES, *DISTURBANCES), 0.04),
    ),
    "three apart": FilmRecipe(joins=MIXED, disturbances={}, near_ends=0, close=0.5),
    **{
        kind: FilmRecipe(joins={kind: 1, "other": 0.15}, disturbances=USUAL, near_ends=0, close=0, shortest=25)
        for kind in GRADUAL_JOINS
    },
    **{f"no cut: {kind}": FilmRecipe(joins={}, disturbances={kind: 1}) for kind in (*SCENES, *DISTURBANCES)},
    JUMPS: FilmRecipe(joins={"same": 1}, disturbances={}, near_ends=0, close=0, shortest=10, people=1),
}
NEGATIVES = {f"nothing: {family}": family for family in NEGATIVE_FAMILIES}
EVERY = [*ROWS, *NEGATIVES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=Path, nargs="+", required=True)
    parser.add_argument("--photographs", type=Path, nargs="+", required=True)
    parser.add_argument("--detectors", nargs="+", default=["default"])
    parser.add_argument("--videos", type=int, default=3, help="films of each row")
    parser.add_argument("--most-photographs", type=int, default=400)
    parser.add_argument("--rows", nargs="+", choices=EVERY, default=EVERY, metavar="KIND", help="default: all")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    pictures = files(given.photographs, IMAGE_EXTENSIONS)
    step = max(1, len(pictures) // given.most_photographs)
    clips = [path for path in given.clips if path.is_file()]
    clips += files([path for path in given.clips if path.is_dir()], VIDEO_EXTENSIONS)
    footage = read_footage(clips, pictures[::step], height=144, width=256)
    random = np.random.default_rng(5)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        for place, (name, recipe) in enumerate(ROWS.items()):
            found: dict[str, list[tuple[Sequence[Cut], BoundaryLabels]]] = {key: [] for key in given.detectors}
            # Short films have few cuts, so more of them are made.
            for number in range(given.videos * (4 if name in (SHORT, FILM) else 1)):
                length = FRAMES
                if name in (SHORT, FILM):
                    length = int(np.exp(random.uniform(np.log(7), np.log(40 if name == SHORT else 300))))
                quality = int(random.integers(18, 34))
                if name not in given.rows:
                    continue  # after sampling, so that the other films stay the same
                film = compose_film(footage, length, seed=90_000 + 100 * place + number, recipe=recipe)
                write_video(path, rgb_pictures(film.pictures), rate=RATE, crf=quality)
                labels = BoundaryLabels(film.hard, film.gradual)
                for detector in given.detectors:
                    found[detector].append((detect(path, detector).cuts, labels))
            rows += [show(name, detector, evaluate_cuts(pairs).every) for detector, pairs in found.items() if pairs]
        takes = TakeReader([*clips, *pictures[::step]])
        for name in (name for name in NEGATIVES if name in given.rows):
            rows += evaluate_negatives(takes, name, given.detectors, path, given.videos)
    if given.output and given.output.is_file() and given.rows != EVERY:
        new = {(row["row"], row["detector"]): row for row in rows}
        rows = [new.pop((row["row"], row["detector"]), row) for row in json.loads(given.output.read_text("utf-8"))]
        rows += new.values()
    if given.output:
        given.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def files(folders: Sequence[Path], extensions: frozenset[str]) -> list[Path]:
    """All files with one of these extensions, sorted."""
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix.lower() in extensions)


def evaluate_negatives(
    takes: TakeReader, name: str, detectors: Sequence[str], path: Path, videos: int
) -> list[dict[str, object]]:
    """Print and return a row for each detector: false cuts in takes without a transition."""
    false = dict.fromkeys(detectors, 0)
    events, seconds = 0, 0.0
    for number in range(videos):
        seed = zlib.crc32(f"{name}/{number}".encode())
        made = make_negative(takes, NEGATIVES[name], seed=seed)
        write_video(path, made.pictures, rate=RATE, crf=18 + seed % 16)
        events += made.events
        seconds += len(made.pictures) / RATE
        for detector in detectors:
            false[detector] += len(detect(path, detector).cuts)
    rows: list[dict[str, object]] = []
    for detector, count in false.items():
        rate = 600 * count / seconds
        words = f"{count} false of {events} events, {rate:.1f} in ten minutes"
        print(f"{name:34} {detector:12} {words}", flush=True)
        row = {"row": name, "detector": detector, "false": count, "events": events, "minutes": seconds / 60}
        rows.append(row | {"false in ten minutes": rate})
    return rows


def show(name: str, detector: str, scores: DetectionScores) -> dict[str, object]:
    """Print and return the row of a detector."""
    counts = scores.true_positives, scores.false_positives, scores.false_negatives
    print(f"{name:22} {detector:12} F1 {scores.f1:.3f}  right, false, missed {counts}", flush=True)
    return {"row": name, "detector": detector, "f1": scores.f1, "right, false, missed": counts}


if __name__ == "__main__":
    main()
