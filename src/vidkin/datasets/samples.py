"""The sample collection for the demo: camera flights over photographs, and edited copies of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidkin._base.arguments import check_arguments
from vidkin._base.files import PathLike
from vidkin._base.outputs import describe_source
from vidkin._base.values import check_choice
from vidkin.datasets.photographs import PHOTOGRAPHS, camera_flight
from vidkin.errors import InvalidArgumentError
from vidkin.media import probe, steady_frames, write_video
from vidkin.media.picture_edits import PICTURE_EDITS

# Source that is recorded in the videos, so that videos of an earlier version may be replaced.
_MADE_OF = "samples of vidkin"

DEFAULT_VIDEOS = tuple(name for name in PHOTOGRAPHS if name not in ("ihc", "moon"))

"""Photographs from which videos are made."""

DEFAULT_COPIES = (
    ("astronaut", "crop"),
    ("astronaut", "grey"),
    ("camera", "caption"),
    ("chelsea", "letterbox"),
    ("coffee", "logo"),
    ("coins", "reencode"),
    ("motorcycle", "mirror"),
    ("rocket", "faster"),
)

"""(video, edit) of each copy."""

# Length of each video in seconds, and the speed of the copy that plays faster.
_SECONDS = 10.0
_FASTER, _FASTER_BY = "faster", 1.25

# Encoder quality (CRF), the quality of the copy that is re-encoded at a very low bit rate, and the maximum frame rate
# of
# copies.
_CRF = 23
_LOW_QUALITY, _LOW_QUALITY_CRF = "reencode", 39
_MAX_RATE = 30.0

# The query, which is not part of the collection: five seconds of a video inside other footage. Times are in seconds.
_QUERY, _QUERY_START, _QUERY_LENGTH = "astronaut", 4.5, 5.0
_OTHER, _OTHER_BEFORE, _OTHER_AFTER = "ihc", 11.0, 9.0


@dataclass(frozen=True, slots=True)
class SampleQuery:
    """A clip outside the collection, and the segment that it shares with one of the videos.

    Attributes:
        path: The clip.
        source: The video.
        source_start: Start of the shared segment in the video, in seconds.
        start: Start of the shared segment in the clip, in seconds.
        seconds: Length of the shared segment.
    """

    path: Path
    source: Path
    source_start: float
    start: float
    seconds: float


@dataclass(frozen=True, slots=True)
class SampleCollection:
    """The result of :func:`build_samples`.

    Attributes:
        folder: The folder that contains all files.
        videos: The videos, one per photograph.
        copies: (copy, original) for each edited copy; the copies are part of the collection.
        query: A clip outside the collection, with five seconds of one video inside unrelated footage.
        built: Number of files that this call wrote; 0 if all of them already existed.
    """

    folder: Path
    videos: tuple[Path, ...]
    copies: tuple[tuple[Path, Path], ...]
    query: SampleQuery
    built: int

    @property
    def videos_folder(self) -> Path:
        """The folder whose videos are to be indexed."""
        return self.folder / "videos"

    @property
    def copies_folder(self) -> Path:
        """The folder of the edited copies."""
        return self.folder / "copies"


@check_arguments
def build_samples(
    folder: PathLike,
    *,
    videos: tuple[str, ...] = DEFAULT_VIDEOS,
    copies: tuple[tuple[str, str], ...] = DEFAULT_COPIES,
    rate: int = 15,
    width: int = 320,
    height: int = 240,
    on_progress: Callable[[int, int, Path], None] | None = None,
) -> SampleCollection:
    """Write those files of the sample collection that do not exist yet.

    The files are ``videos/<photograph>.mp4``, ``copies/<photograph>-<edit>.mp4`` and ``clip.mp4`` (the query).

    Args:
        folder: Folder to write to; created if missing. Other files in it are not changed.
        videos: Names of photographs, see :data:`vidkin.datasets.PHOTOGRAPHS`; ``astronaut`` must be included,
            because the query is cut from it.
        copies: (photograph, edit) for each copy; the photograph must be among ``videos``.
        rate: Frames per second.
        width: Width of the videos in pixels, an even number.
        height: Height of the videos in pixels, an even number.
        on_progress: Callback that receives (files done, total number of files, file) after each file.

    Raises:
        InvalidArgumentError: The photograph of a copy is not among the videos, or ``folder`` is a file.
        MissingPartError: The scikit-image wheel lacks a photograph.
        MediaError: A file cannot be written.
    """
    root = Path(folder)
    if root.exists() and not root.is_dir():
        raise InvalidArgumentError(f"{root} is a file; choose a folder for the samples")
    unknown = sorted({_QUERY, *(name for name, _ in copies)} - set(videos))
    if unknown:
        raise InvalidArgumentError(
            f"a copy needs its video: add {', '.join(unknown)} to videos, got {', '.join(videos)}"
        )

    def flight(name: str, seconds: float) -> Iterator[NDArray[np.uint8]]:
        return camera_flight(name, seconds=seconds, rate=rate, width=width, height=height)

    def write_flight(path: Path, name: str) -> None:
        write_video(path, flight(name, _SECONDS), rate=rate, made_of=_MADE_OF)

    def write_query(path: Path, source: Path) -> None:
        other = flight(_OTHER, _OTHER_BEFORE + _OTHER_AFTER)
        shown = steady_frames(source, _QUERY_START, 1 / rate, round(_QUERY_LENGTH * rate), None, 0)
        frames = chain(islice(other, round(_OTHER_BEFORE * rate)), shown, other)
        write_video(path, frames, rate=rate, crf=_CRF, made_of=_MADE_OF)

    paths = {name: root / "videos" / f"{name}.mp4" for name in videos}
    made = {root / "copies" / f"{name}-{edit}.mp4": (paths[name], edit) for name, edit in copies}
    query = SampleQuery(root / "clip.mp4", paths[_QUERY], _QUERY_START, _OTHER_BEFORE, _QUERY_LENGTH)
    jobs = [(path, partial(write_flight, path, name)) for name, path in paths.items()]
    jobs += [(path, partial(write_copy, source, path, edit, made_of=_MADE_OF)) for path, (source, edit) in made.items()]
    jobs.append((query.path, partial(write_query, query.path, query.source)))
    built = 0
    for done, (path, write) in enumerate(jobs, start=1):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write()
            built += 1
        if on_progress is not None:
            on_progress(done, len(jobs), path)
    sources = tuple((path, source) for path, (source, _) in made.items())
    return SampleCollection(root, tuple(paths.values()), sources, query, built)


@check_arguments
def write_copy(
    source: PathLike,
    target: PathLike,
    edit: str,
    *,
    start: float = 0.0,
    end: float | None = None,
    made_of: str | None = None,
) -> None:
    """Write an edited copy of a video, without audio, at the video's frame rate but at most 30 frames per second.

    Args:
        source: The video.
        target: The file to write.
        edit: One of :data:`vidkin.media.picture_edits.PICTURE_EDITS`, or ``faster`` for 1.25 times the speed.
        start: Start of the copied part in seconds.
        end: End of the copied part in seconds; None is the end of the video.
        made_of: Source of the copy, see :func:`vidkin.media.write_video`; None describes this edit of this video.

    Raises:
        MediaError: The video cannot be read, or the copy cannot be written.
        InvalidArgumentError: The edit is unknown.
    """
    check_choice("edit", edit, (*PICTURE_EDITS, _FASTER))
    info = probe(source)
    rate = Fraction(min(info.frame_rate, _MAX_RATE)).limit_denominator(1001)
    speed = _FASTER_BY if edit == _FASTER else 1.0
    last = info.duration if end is None else min(end, info.duration)
    count = max(1, round((last - start) / speed * rate))
    frames = steady_frames(source, start, speed / float(rate), count, None, 0)
    if edit != _FASTER:
        frames = PICTURE_EDITS[edit](frames, 0)
    write_video(
        target,
        frames,
        rate=rate,
        crf=_LOW_QUALITY_CRF if edit == _LOW_QUALITY else _CRF,
        made_of=made_of or describe_source(f"copy by {edit}", os.fspath(source)),
    )
