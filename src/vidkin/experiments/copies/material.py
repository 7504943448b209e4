"""Edited copies of real videos with what they show: queries, copies of them, and unrelated videos.

Sources are the videos of at least 6 s, cut into pieces of at most 30 s; the pieces are the queries. The gallery holds
every piece edited in every way that `vidkin.media.EDITS` knows, and all remaining videos.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vidkin._base.atomic import write_text
from vidkin.media import EDITS, apply_edit, iter_frames, probe, write_clip, write_video

__all__ = ["CopyMaterial", "Families", "GalleryVideo", "QueryClip", "make_copies"]

_LONGEST, _SHORTEST = 30.0, 6.0
_VIDEOS = (".mp4", ".mkv", ".webm", ".mov")
_COPY_SIDE = 360
_FILLER_VIDEOS = 40
_FILLER_WIDTH, _FILLER_HEIGHT, _FILLER_RATE = 320, 240, 25


@dataclass(frozen=True)
class QueryClip:
    """A query: seconds ``start`` to ``end`` of a recording.

    Attributes:
        recording: Name of the recording.
        family: Recordings of one family are copies of each other.
        scene: Recordings of one scene were taken before the same background.
        start: First second in the recording.
        end: Last second in the recording.
        path: The clip as a file.
    """

    recording: str
    family: str
    scene: str
    start: float
    end: float
    path: Path


@dataclass(frozen=True)
class GalleryVideo:
    """A video that is searched.

    Attributes:
        path: The file.
        family: See `QueryClip`.
        scene: See `QueryClip`.
        edit: How it was edited, ``real copy`` or ``distractor``.
        source: The query it was made from; None for a video as it was found.
        segment: Start and end in the recording, start and end in the copy, in seconds.
    """

    path: Path
    family: str
    scene: str
    edit: str
    source: QueryClip | None = None
    segment: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class CopyMaterial:
    """Queries, and the gallery that they are searched in."""

    queries: tuple[QueryClip, ...]
    gallery: tuple[GalleryVideo, ...]


@dataclass(frozen=True)
class Families:
    """Which recordings show the same.

    Attributes:
        alone: Every file shows something else; otherwise names tell, as in the collection of the stored results.
    """

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


def make_copies(
    folder: Path,
    work: Path,
    families: Families,
    *,
    distractors: Iterable[Path] = (),
    sources: int | None = None,
    left_out: Iterable[str] = (),
) -> CopyMaterial:
    """Queries and gallery; files that an earlier call has made are used again.

    Args:
        folder: Its videos of at least 6 s are sources, the longest of each family; the others are copies or
            distractors.
        work: Folder of the clips and copies.
        families: Which recordings are copies of each other.
        distractors: More folders, whose videos are all unrelated.
        sources: At most this many sources, evenly spaced in the order of their names.
        left_out: Names, without extension, of files in ``folder`` that are not used.
    """
    skipped = set(left_out)
    videos = [path for path in _find_videos(folder) if path.stem not in skipped]
    others = [path for place in distractors for path in _find_videos(place)]
    durations = {path: probe(path).duration for path in [*videos, *others]}
    chosen = _choose_sources(videos, durations, families, sources)
    work.mkdir(parents=True, exist_ok=True)
    short = [path for path in [*videos, *others] if durations[path] < _SHORTEST]
    filler = _make_filler(work, [path for path in videos if path.suffix == ".mkv"] or short[:_FILLER_VIDEOS])
    queries: list[QueryClip] = []
    gallery: list[GalleryVideo] = []
    for number, path in enumerate(chosen):
        for part, query in enumerate(_cut_queries(path, durations[path], work / "queries", families)):
            queries.append(query)
            gallery += _edit_copies(path, query, work / "gallery", filler, seed=100 * number + part)
    known = {query.family for query in queries}
    for path in videos:
        if path not in chosen:
            family = families.family(path)
            edit = "real copy" if family in known else "distractor"
            gallery.append(GalleryVideo(path, family, families.scene(path), edit))
    gallery += [GalleryVideo(path, str(path), str(path), "distractor") for path in others]
    return CopyMaterial(tuple(queries), tuple(gallery))


def _find_videos(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in _VIDEOS)


def _choose_sources(
    videos: list[Path], durations: dict[Path, float], families: Families, count: int | None
) -> list[Path]:
    longest: dict[str, Path] = {}
    for path in videos:
        if durations[path] < _SHORTEST:
            continue
        best = longest.setdefault(families.family(path), path)
        if durations[path] > durations[best]:
            longest[families.family(path)] = path
    chosen = sorted(longest.values())
    if count is None or count >= len(chosen):
        return chosen
    return [chosen[len(chosen) * number // count] for number in range(count)]


def _cut_queries(path: Path, duration: float, folder: Path, families: Families) -> Iterator[QueryClip]:
    folder.mkdir(exist_ok=True)
    count = math.ceil(duration / _LONGEST - 0.05)
    for part in range(count):
        start, end = duration * part / count, duration * (part + 1) / count
        target = folder / f"{path.stem}-{part}.mp4"
        if not target.exists():
            write_clip(path, target, start=start, end=end)
        yield QueryClip(path.stem, families.family(path), families.scene(path), start, end, target)


def _edit_copies(
    path: Path, query: QueryClip, folder: Path, filler: Path, seed: int
) -> Iterator[GalleryVideo]:
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(EDITS):
        target = folder / f"{query.path.stem}.{name}.mp4"
        record = target.with_suffix(".json")
        if not record.exists():
            made = apply_edit(
                path,
                target,
                name,
                seed=seed + 7919 * number,
                start=query.start,
                end=query.end,
                filler=filler,
                short_side=_COPY_SIDE,
            )
            write_text(record, json.dumps(made.segments[0]))
        segment = tuple(json.loads(record.read_text()))
        yield GalleryVideo(target, query.family, query.scene, name, query, segment)


def _make_filler(work: Path, videos: list[Path]) -> Path:
    """The short videos one after the other: unrelated footage around excerpts and beside pictures in pictures."""
    target = work / "filler.mp4"
    if not target.exists():

        def frames() -> Iterator[NDArray[np.uint8]]:
            for path in videos:
                for part in iter_frames(path, rate=_FILLER_RATE, short_side=_FILLER_HEIGHT):
                    for image in part.images:
                        yield np.asarray(Image.fromarray(image).resize((_FILLER_WIDTH, _FILLER_HEIGHT)))

        write_video(target, frames(), rate=_FILLER_RATE)
    return target
