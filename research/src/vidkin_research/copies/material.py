"""The gallery of the copy benchmark: copies of the queries with their segments, and unrelated videos."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from vidkin._base.files import write_text
from vidkin._base.values import read_json
from vidkin.datasets import camera_flight
from vidkin.media import steady_frames, write_video
from vidkin_research.copies.applying import apply_edit
from vidkin_research.copies.edits import EDITS, EditedSegment
from vidkin_research.copies.recordings import ClipSize, QueryClip, Recording, choose_queries, write_query
from vidkin_research.copies.sound_edits import (
    SOUND_EDIT_RATE,
    SOUND_EDITS,
    SoundEdit,
    edit_sound,
    read_samples,
    write_sound,
)
from vidkin_research.copies.transforms import fill_size

REAL_COPY, DISTRACTOR = "real copy", "distractor"


SOUND = "sound"
"""Family of the sound edits."""


BOTH_KEPT = "picture and sound"
"""The edit that keeps the frames and compresses the sound to 32 kbit/s."""


# Increment this when an edit's frames or ground truth change, so that stored copies are not reused.
_VERSION = 1


# Unrelated footage for edits that need filler: short videos from the material, or a photograph as a fallback.
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
        edit: Name of the edit, `REAL_COPY` or `DISTRACTOR`.
        source: The query it was made from; None for an unedited video.
        segments: The segments it shares with the query, in the order of the copy.
        mirrored: Whether it is mirrored horizontally.
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
        """Family of the edit; None for an unedited video."""
        if self.edit in SOUND_EDITS or self.edit == BOTH_KEPT:
            return SOUND
        return EDITS[self.edit].family if self.edit in EDITS else None


@dataclass(frozen=True, slots=True)
class CopyMaterial:
    """Queries and gallery.

    Attributes:
        queries: The clips to search for.
        gallery: The videos to search.
        filler: Recordings whose footage surrounds some copies, covers them or is blended over them.
    """

    queries: tuple[QueryClip, ...]
    gallery: tuple[GalleryVideo, ...]
    filler: frozenset[Path] = frozenset()


def make_copies(
    recordings: Sequence[Recording],
    work: Path,
    size: ClipSize,
    *,
    edits: Iterable[str] = tuple(EDITS),
    sound_edits: Iterable[str] = (),
    distractors: Iterable[Recording] = (),
    threads: int = 1,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> CopyMaterial:
    """Create the queries and the gallery; files from an earlier call in the same folder are reused.

    Args:
        recordings: Clips of the longest recording of each family become queries; the other recordings become copies or
            distractors.
        work: Folder for the queries and copies.
        size: Number and size of the queries.
        edits: Names in `vidkin_research.copies.edits.EDITS`; each one is applied to each query.
        sound_edits: Names in `SOUND_EDITS`; each one is applied to the sound of each query that has sound, and the
            result is combined with unrelated frames. Another copy keeps the query's own frames (`BOTH_KEPT`).
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
    footage = _filler_recordings([*others, *distractors])
    filler = _make_filler(work, footage)
    jobs = [(query, edit) for query in queries for edit in edits]
    gallery: list[GalleryVideo] = []
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda query: write_query(query, size), queries))
        for video in pool.map(lambda job: _edit_copy(job[0], job[1], work / "gallery", filler), jobs):
            gallery.append(video)
            if on_progress is not None:
                on_progress(len(gallery), len(jobs), video.path.name)
    heard = dict.fromkeys(sound_edits)
    if heard:
        queries = [_add_sound(query) for query in queries]
        sounding = [query for query in queries if query.heard is not None]
        for number, query in enumerate(sounding):
            other = sounding[number - 1]
            gallery += [_edit_sound(query, other, name, work / "gallery", filler) for name in (*heard, BOTH_KEPT)]
    families = {query.recording.family for query in queries}
    for recording in [*others, *distractors]:
        edit = REAL_COPY if recording.family in families else DISTRACTOR
        gallery.append(GalleryVideo(recording.path, recording.family, recording.scene, edit))
    return CopyMaterial(tuple(queries), tuple(gallery), frozenset(each.path for each in footage))


def _edit_copy(query: QueryClip, edit: str, folder: Path, filler: Path) -> GalleryVideo:
    folder.mkdir(parents=True, exist_ok=True)
    # The seed does not depend on other files, so that runs with other edits and recordings can reuse the copy.
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


def _filler_recordings(recordings: Iterable[Recording]) -> list[Recording]:
    return [recording for recording in recordings if recording.duration < _FILLER_LONGEST][:_FILLER_VIDEOS]


def _make_filler(work: Path, short: Sequence[Recording]) -> Path:
    """Write the unrelated footage to one file and return its path."""
    made_of = [(str(recording.path.resolve()), recording.path.stat().st_size) for recording in short]
    target = work / f"filler-{hashlib.sha256(repr(made_of).encode()).hexdigest()[:8]}.mp4"
    if target.exists():
        return target
    work.mkdir(parents=True, exist_ok=True)

    def frames() -> Iterator[NDArray[np.uint8]]:
        for recording in short:
            count = max(1, round(recording.duration * _FILLER_RATE))
            for image in steady_frames(recording.path, 0.0, 1 / _FILLER_RATE, count, _FILLER_HEIGHT, threads=1):
                yield fill_size(image, _FILLER_WIDTH, _FILLER_HEIGHT)

    pictures = frames() if short else camera_flight(
        _FILLER_PHOTOGRAPH, rate=_FILLER_RATE, seconds=_FILLER_SECONDS, width=_FILLER_WIDTH, height=_FILLER_HEIGHT
    )  # fmt: skip
    write_video(target, pictures, rate=_FILLER_RATE, threads=1)
    return target


# Minimum length of a query's sound in seconds.
_MIN_SOUND = 3.0


def _add_sound(query: QueryClip) -> QueryClip:
    """Store the sound of a query in a separate file if it is long enough."""
    heard = query.path.with_name(f"{query.path.stem}.sound.mp4")
    if not heard.exists():
        with av.open(str(query.recording.path)) as container:
            if not container.streams.audio:
                return query
        samples = read_samples(query.recording.path, query.start, query.end)
        if samples.shape[1] < _MIN_SOUND * SOUND_EDIT_RATE:
            return query
        write_sound(heard, samples, SoundEdit(bit_rate=192_000), query.path)
    return replace(query, heard=heard)


def _edit_sound(query: QueryClip, other: QueryClip, name: str, folder: Path, filler: Path) -> GalleryVideo:
    assert query.heard is not None
    edit = SOUND_EDITS["32 kbit/s" if name == BOTH_KEPT else name]
    pictures = query.path if name == BOTH_KEPT else filler
    folder.mkdir(parents=True, exist_ok=True)
    label = "".join(letter if letter.isalnum() else "_" for letter in name)
    beside = f".{other.path.stem}" if edit.under == "other" else ""
    target = folder / f"{query.path.stem}.sound_{label}{beside}.{_VERSION}.{pictures.stem}.mp4"
    if not target.exists():
        edit_sound(query.heard, target, edit, other=other.heard, pictures=pictures)
    return GalleryVideo(target, query.recording.family, query.recording.scene, name, query)
