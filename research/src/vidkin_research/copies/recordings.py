"""Recordings, and the clips cut from them as queries."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from vidkin._base.files import VIDEO_EXTENSIONS
from vidkin.errors import InvalidArgumentError
from vidkin.media import probe, steady_frames, write_video

# Shorter recordings are not used as sources.
_MIN_DURATION = 3.8


# Queries are stored nearly losslessly, because copies are made from them.
_CRF = 14


@dataclass(frozen=True, slots=True)
class Recording:
    """A source video of the benchmark.

    Attributes:
        path: Path of the file.
        family: Recordings of one family are copies of each other.
        scene: Recordings of one scene have the same background.
        duration: Duration in seconds.
    """

    path: Path
    family: str
    scene: str
    duration: float


@dataclass(frozen=True, slots=True)
class QueryClip:
    """A query, from which copies are made: a clip cut from a recording.

    Attributes:
        name: The recording's name and the number of the clip.
        path: Path of the file.
        recording: The recording it was cut from.
        start: Start in the recording, in seconds.
        end: End in the recording, in seconds.
        heard: File with the same clip and its sound; None if the recording has no sound.
    """

    name: str
    path: Path
    recording: Recording
    start: float
    end: float
    heard: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ClipSize:
    """Number and size of the queries.

    Attributes:
        seconds: Length of a query; a shorter recording becomes one query.
        clips: Maximum number of queries from one recording.
        short_side: Maximum number of pixels along the shorter side.
        rate: Maximum number of frames per second.
        recordings: Maximum number of recordings, evenly sampled from those sorted by name; None uses all.
    """

    seconds: float
    clips: int
    short_side: int
    rate: float
    recordings: int | None = None


FULL = ClipSize(seconds=20.0, clips=4, short_side=360, rate=30.0)


QUICK = ClipSize(seconds=8.0, clips=1, short_side=270, rate=12.0, recordings=6)


def find_recordings(folder: Path, *, left_out: Iterable[str] = ()) -> list[Recording]:
    """Find the videos in a folder and its subfolders, sorted by name; each is its own family and scene.

    Args:
        folder: Folder to search.
        left_out: Names, without extension, of files to leave out.

    Raises:
        InvalidArgumentError: The folder contains no videos.
        MediaError: A video cannot be read.
    """
    unused = set(left_out)
    recordings = [
        Recording(path, str(path), str(path), probe(path).duration)
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in VIDEO_EXTENSIONS and path.is_file() and path.stem not in unused
    ]
    if not recordings:
        raise InvalidArgumentError(f"{folder}: no videos")
    return recordings


def choose_queries(recordings: Sequence[Recording], size: ClipSize, folder: Path) -> list[QueryClip]:
    """Choose evenly spaced clips from the longest recording of each family; `write_query` writes their files.

    Raises:
        InvalidArgumentError: No recording is long enough.
    """
    longest: dict[str, Recording] = {}
    for recording in recordings:
        if recording.duration >= _MIN_DURATION:
            best = longest.setdefault(recording.family, recording)
            if recording.duration > best.duration:
                longest[recording.family] = recording
    if not longest:
        raise InvalidArgumentError(f"videos must be at least {_MIN_DURATION} s long to be edited; all are shorter")
    chosen = sorted(longest.values(), key=lambda recording: recording.path)
    if size.recordings is not None and size.recordings < len(chosen):
        chosen = [chosen[len(chosen) * number // size.recordings] for number in range(size.recordings)]
    return [query for recording in chosen for query in _clips(recording, size, folder)]


def write_query(query: QueryClip, size: ClipSize) -> None:
    """Write the file of a query unless it exists."""
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
