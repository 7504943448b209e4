"""The videos to search: copies of the queries with their segments, and unrelated videos."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import VIDEO_EXTENSIONS, write_text
from vidkin._base.values import read_json
from vidkin.datasets import camera_flight
from vidkin.errors import InvalidArgumentError
from vidkin.media import EDITS, EditedSegment, apply_edit, probe, steady_frames, write_video
from vidkin.media.picture_edits import covering

REAL_COPY, DISTRACTOR = "real copy", "distractor"

# Incremented when an edit would give different pictures or a different truth, so that stored copies are not used.
_VERSION = 1

# Unrelated footage around excerpts and beside insets: the short videos of the material, or else a photograph.
_FILLER_VIDEOS, _FILLER_LONGEST = 40, 6.0

_FILLER_WIDTH, _FILLER_HEIGHT, _FILLER_RATE = 320, 240, 12

_FILLER_PHOTOGRAPH, _FILLER_SECONDS = "ihc", 20.0


@dataclass(frozen=True, slots=True)
class GalleryVideo:
    """A video to search.

    Attributes:
        path: Path of the file.
        family: Family of the recording, see `Recording`.
        scene: Scene of the recording, see `Recording`.
        edit: How it was edited, `REAL_COPY` or `DISTRACTOR`.
        source: The query it was made from; None for an unedited video.
        segments: The stretches of the query it shows, in the order of the copy.
        mirrored: Whether left and right are exchanged.
    """

    path: Path
    family: str
    scene: str
    edit: str
    source: QueryClip | None = None
    segments: tuple[EditedSegment, ...] = ()
    mirrored: bool = False

    @property
    def edit_family(self) -> str | None:
        """What the edit changes; None for an unedited video."""
        return EDITS[self.edit].family if self.edit in EDITS else None


@dataclass(frozen=True, slots=True)
class CopyMaterial:
    """Queries and the gallery."""

    queries: tuple[QueryClip, ...]
    gallery: tuple[GalleryVideo, ...]


def make_copies(
    recordings: Sequence[Recording],
    work: Path,
    size: ClipSize,
    *,
    edits: Iterable[str] = tuple(EDITS),
    distractors: Iterable[Recording] = (),
    threads: int = 1,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> CopyMaterial:
    """Make queries and gallery; files made by an earlier call in the same folder are reused.

    Args:
        recordings: Clips of the longest recording of each family are queries; the others are copies or distractors.
        work: Folder of the queries and copies.
        size: Number and size of the queries.
        edits: Names in `vidkin.media.EDITS`; each query is edited in each of these ways.
        distractors: Additional unrelated videos.
        threads: Number of copies made at the same time.
        on_progress: Callback that receives the copies made, the total number of copies, and the name of the file.

    Raises:
        InvalidArgumentError: No recording is long enough.
        MediaError: A video cannot be read, or a copy cannot be written.
    """
    queries = choose_queries(recordings, size, work / "queries")
    used = {query.recording.path for query in queries}
    others = [recording for recording in recordings if recording.path not in used]
    filler = _make_filler(work, [*others, *distractors])
    jobs = [(query, edit) for query in queries for edit in edits]
    gallery: list[GalleryVideo] = []
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda query: write_query(query, size), queries))
        for video in pool.map(lambda job: _edit_copy(job[0], job[1], work / "gallery", filler), jobs):
            gallery.append(video)
            if on_progress is not None:
                on_progress(len(gallery), len(jobs), video.path.name)
    families = {query.recording.family for query in queries}
    for recording in [*others, *distractors]:
        edit = REAL_COPY if recording.family in families else DISTRACTOR
        gallery.append(GalleryVideo(recording.path, recording.family, recording.scene, edit))
    return CopyMaterial(tuple(queries), tuple(gallery))


def _edit_copy(query: QueryClip, edit: str, folder: Path, filler: Path) -> GalleryVideo:
    folder.mkdir(parents=True, exist_ok=True)
    # The same whatever else is made in this folder, so that other choices of edits and recordings use it again.
    seed = zlib.crc32(f"{query.name} {edit}".encode())
    beside = f".{filler.stem}" if EDITS[edit].needs_filler else ""
    target = folder / f"{query.path.stem}.{edit}.{seed}.{_VERSION}{beside}.mp4"
    record = target.with_suffix(".json")
    if not (record.exists() and target.exists()):
        made = apply_edit(query.path, target, edit, seed=seed, filler=filler, threads=1)
        write_text(record, json.dumps({"segments": made.segments, "mirrored": made.mirrored}))
    truth = read_json(record)
    segments = tuple(
        EditedSegment(start, end, edited_start, edited_end, tuple(source_box), tuple(edited_box))
        for start, end, edited_start, edited_end, source_box, edited_box in truth["segments"]
    )
    recording = query.recording
    return GalleryVideo(target, recording.family, recording.scene, edit, query, segments, truth["mirrored"])


def _make_filler(work: Path, recordings: Iterable[Recording]) -> Path:
    """Unrelated footage as one file."""
    short = [recording for recording in recordings if recording.duration < _FILLER_LONGEST][:_FILLER_VIDEOS]
    made_of = [(str(recording.path.resolve()), recording.path.stat().st_size) for recording in short]
    target = work / f"filler-{hashlib.sha256(repr(made_of).encode()).hexdigest()[:8]}.mp4"
    if target.exists():
        return target
    work.mkdir(parents=True, exist_ok=True)

    def frames() -> Iterator[NDArray[np.uint8]]:
        for recording in short:
            count = max(1, round(recording.duration * _FILLER_RATE))
            for image in steady_frames(recording.path, 0.0, 1 / _FILLER_RATE, count, _FILLER_HEIGHT, threads=1):
                yield covering(image, _FILLER_WIDTH, _FILLER_HEIGHT)

    pictures = frames() if short else camera_flight(
        _FILLER_PHOTOGRAPH, rate=_FILLER_RATE, seconds=_FILLER_SECONDS, width=_FILLER_WIDTH, height=_FILLER_HEIGHT
    )  # fmt: skip
    write_video(target, pictures, rate=_FILLER_RATE, threads=1)
    return target


# Recordings, and the clips of them that are queries.


# Shorter recordings are not used as sources.
_SHORTEST = 3.8

# Queries are stored nearly losslessly, because copies are made from them.
_CRF = 14


@dataclass(frozen=True, slots=True)
class Recording:
    """A video of the material.

    Attributes:
        path: Path of the file.
        family: Recordings of one family are copies of each other.
        scene: Recordings of one scene were taken in front of the same background.
        duration: Duration in seconds.
    """

    path: Path
    family: str
    scene: str
    duration: float


@dataclass(frozen=True, slots=True)
class QueryClip:
    """A query, from which copies are made: a stretch of a recording as a file.

    Attributes:
        name: The recording's name and the number of the stretch.
        path: Path of the file.
        recording: The recording it was cut from.
        start: Start in the recording in seconds.
        end: End in the recording in seconds.
    """

    name: str
    path: Path
    recording: Recording
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class ClipSize:
    """Number and size of the queries.

    Attributes:
        seconds: Length of a query; a shorter recording is one query.
        clips: Largest number of queries from one recording.
        short_side: Largest number of pixels along the shorter side.
        rate: Largest number of frames per second.
        recordings: Largest number of recordings, evenly spaced in the order of their names; None takes all.
    """

    seconds: float
    clips: int
    short_side: int
    rate: float
    recordings: int | None = None


FULL = ClipSize(seconds=20.0, clips=4, short_side=360, rate=30.0)

QUICK = ClipSize(seconds=8.0, clips=1, short_side=270, rate=12.0, recordings=6)


def find_recordings(folder: Path, *, left_out: Iterable[str] = ()) -> list[Recording]:
    """The videos in a folder and its subfolders, in the order of their names; each shows another scene.

    Args:
        folder: The folder.
        left_out: Names, without extension, of files to leave out.

    Raises:
        InvalidArgumentError: There is no video.
        MediaError: A video cannot be read.
    """
    unused = set(left_out)
    recordings = [
        Recording(path, str(path), str(path), probe(path).duration)
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in VIDEO_EXTENSIONS and path.is_file() and path.stem not in unused
    ]
    if not recordings:
        raise InvalidArgumentError(f"{folder}: found no video")
    return recordings


def choose_queries(recordings: Sequence[Recording], size: ClipSize, folder: Path) -> list[QueryClip]:
    """Clips of the longest recording of each family, evenly spaced in it; `write_query` writes their files.

    Raises:
        InvalidArgumentError: No recording is long enough.
    """
    longest: dict[str, Recording] = {}
    for recording in recordings:
        if recording.duration >= _SHORTEST:
            best = longest.setdefault(recording.family, recording)
            if recording.duration > best.duration:
                longest[recording.family] = recording
    if not longest:
        raise InvalidArgumentError(f"no video is {_SHORTEST} s long; shorter ones cannot be edited")
    chosen = sorted(longest.values(), key=lambda recording: recording.path)
    if size.recordings is not None and size.recordings < len(chosen):
        chosen = [chosen[len(chosen) * number // size.recordings] for number in range(size.recordings)]
    return [query for recording in chosen for query in _clips(recording, size, folder)]


def write_query(query: QueryClip, size: ClipSize) -> None:
    """Write the file of a query, unless an earlier call did."""
    if query.path.exists():
        return
    query.path.parent.mkdir(parents=True, exist_ok=True)
    info = probe(query.recording.path)
    rate = Fraction(min(info.frame_rate, size.rate)).limit_denominator(1001)
    count = max(1, round((query.end - query.start) * rate))
    short_side = min(size.short_side, info.short_side)
    frames = steady_frames(query.recording.path, query.start, float(1 / rate), count, short_side, threads=1)
    write_video(query.path, frames, rate=rate, crf=_CRF, threads=1)


def _clips(recording: Recording, size: ClipSize, folder: Path) -> Iterator[QueryClip]:
    length = min(size.seconds, recording.duration)
    count = min(size.clips, max(1, int(recording.duration / length + 0.05)))
    room = recording.duration - length
    for number in range(count):
        start = room * number / (count - 1) if count > 1 else room / 2
        made_of = (str(recording.path.resolve()), recording.path.stat().st_size, start, length)
        digest = hashlib.sha256(repr((*made_of, size.short_side, size.rate)).encode()).hexdigest()[:8]
        name = f"{recording.path.stem}-{number}"
        yield QueryClip(name, folder / f"{name}.{digest}.mp4", recording, start, start + length)
