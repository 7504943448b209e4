"""Edited copies of real videos with what they show, for copy retrieval: sources, distractors, families."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vidkin.media import EDITS, apply_edit, iter_frames, probe, write_clip, write_video

LONGEST, SHORTEST = 30.0, 6.0
_SUFFIXES = {".mp4", ".mkv", ".webm", ".mov"}
_FILLER_VIDEOS = 40


@dataclass(frozen=True)
class Piece:
    """A source: a stretch of a recording."""

    recording: str
    family: str
    scene: str
    start: float
    end: float
    path: Path


@dataclass(frozen=True)
class Item:
    """A video of the gallery; `source` is None for distractors."""

    path: Path
    family: str
    scene: str
    edit: str
    source: Piece | None = None
    segment: tuple[float, float, float, float] | None = None  # of the recording, of the copy


@dataclass(frozen=True)
class Families:
    """Which recordings show the same: with `alone` each only itself, else as in the collection used here."""

    alone: bool

    def family(self, path: Path) -> str:
        """Recordings that are copies of each other: the name up to '-' or a digit."""
        if self.alone:
            return str(path)
        if path.parent.name == "tmk":
            return path.stem.split("-")[0]
        return path.stem.rstrip("0123456789")

    def scene(self, path: Path) -> str:
        """Recordings before the same background: the twenty sign-language clips, and the toys on one table."""
        if not self.alone and (path.suffix == ".mkv" or path.parent.name == "mdn"):
            return path.parent.name + path.suffix
        return self.family(path)


def prepare(
    folder: Path,
    work: Path,
    families: Families,
    *,
    distractors: Iterable[Path] = (),
    sources: int | None = None,
    left_out: Iterable[str] = (),
) -> tuple[list[Piece], list[Item]]:
    """Cut, edit and encode; what is there already is kept.

    Args:
        folder: Its videos of at least 6 s are sources, of a family the longest; the others are copies or distractors.
        work: Where the copies are kept.
        families: Which recordings are copies of each other.
        distractors: More folders, each video a family of its own.
        sources: At most so many sources, evenly spaced in the order of their names.
        left_out: Names, without their endings, of files in `folder` that are not looked at.
    """
    unwanted = set(left_out)
    videos = [path for path in _videos(folder) if path.stem not in unwanted]
    others = [path for place in distractors for path in _videos(place)]
    durations = {path: probe(path).duration for path in [*videos, *others]}
    chosen: dict[str, Path] = {}
    for path in videos:
        if durations[path] < SHORTEST:
            continue
        best = chosen.setdefault(families.family(path), path)
        if durations[path] > durations[best]:
            chosen[families.family(path)] = path
    picked = sorted(chosen.values())
    if sources is not None and sources < len(picked):
        picked = [picked[len(picked) * number // sources] for number in range(sources)]
    work.mkdir(parents=True, exist_ok=True)
    short = [path for path in [*videos, *others] if durations[path] < SHORTEST]
    filler = _filler(work, [path for path in videos if path.suffix == ".mkv"] or short[:_FILLER_VIDEOS])
    pieces: list[Piece] = []
    items: list[Item] = []
    for number, path in enumerate(picked):
        count = math.ceil(durations[path] / LONGEST - 0.05)
        for part in range(count):
            start, end = durations[path] * part / count, durations[path] * (part + 1) / count
            target = work / "queries" / f"{path.stem}-{part}.mp4"
            piece = Piece(path.stem, families.family(path), families.scene(path), start, end, target)
            piece.path.parent.mkdir(exist_ok=True)
            if not piece.path.exists():
                write_clip(path, piece.path, start=start, end=end)
            pieces.append(piece)
            items += _copies(path, piece, work / "gallery", filler, seed=100 * number + part)
    known = {piece.family for piece in pieces}
    for path in videos:
        if path not in picked:
            family = families.family(path)
            edit = "real copy" if family in known else "distractor"
            items.append(Item(path, family, families.scene(path), edit))
    items += [Item(path, str(path), str(path), "distractor") for path in others]
    return pieces, items


def _videos(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES)


def _copies(path: Path, piece: Piece, folder: Path, filler: Path, seed: int) -> Iterator[Item]:
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(EDITS):
        target = folder / f"{piece.path.stem}.{name}.mp4"
        record = target.with_suffix(".json")
        if not record.exists():
            made = apply_edit(
                path, target, name, seed=seed + 7919 * number, start=piece.start, end=piece.end,
                filler=filler, short_side=360,
            )  # fmt: skip
            record.write_text(json.dumps(made.segments[0]))
        yield Item(target, piece.family, piece.scene, name, piece, tuple(json.loads(record.read_text())))


def _filler(work: Path, shorts: list[Path]) -> Path:
    """The short videos one after the other, 320 x 240, 25 frames per second."""
    target = work / "filler.mp4"
    if not target.exists():
        from PIL import Image

        def frames() -> Iterator[np.ndarray]:
            for path in shorts:
                for part in iter_frames(path, rate=25, short_side=240):
                    for image in part.images:
                        yield np.asarray(Image.fromarray(image).resize((320, 240)))

        write_video(target, frames(), rate=25)
    return target
