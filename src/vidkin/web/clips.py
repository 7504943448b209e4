"""Export shots as files: joined into one clip, or split into one file each, for one or many videos."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import HTTPException, Query, Request
from fastapi.responses import Response
from pydantic import Field

from vidkin._base.files import safe_name
from vidkin.errors import InvalidArgumentError
from vidkin.index import VideoRecord
from vidkin.media import Piece, join_spans, split_exactly
from vidkin.rendering.text import number, printable
from vidkin.shots import Shot, ShotDetection
from vidkin.web.files import open_record, stream_path
from vidkin.web.jobs import FailedVideo, Job, process_each
from vidkin.web.removals import check_folder
from vidkin.web.routes import MAX_NUMBER, Body, Page, VideoId, VideoNumber, safe_stem
from vidkin.web.shots import detect_shots_of, stored_shots
from vidkin.web.site import CurrentSite, Site, WritableSite, base_name, check_writable, is_still

router = Page("shots")

_MAX_SHOTS, _MAX_VIDEOS = 5000, 10_000
# Maximum number of file names in the result of a job.
_MAX_NAMES = 1000

ShotNumber = Annotated[int, Field(ge=1, le=MAX_NUMBER)]
ShotNumbers = Annotated[list[ShotNumber], Field(max_length=_MAX_SHOTS, examples=[[1, 2]])]


class ShotChoice(Body):
    """Shots of a video.

    Attributes:
        shots: Numbers of shots, from 1; empty for all.
        folder: Folder on the server's computer, one file per shot; null for one clip.
    """

    shots: ShotNumbers = Field(default_factory=list)
    folder: str | None = Field(None, max_length=4096)


@dataclass(frozen=True, slots=True)
class ClipsResult:
    """The files that were written.

    Attributes:
        address: Address of the clip; null if files were written into a folder.
        folder: Folder into which files were written; null for one clip.
        videos: Number of videos.
        files: Number of files that were written.
        names: Names of at most 1,000 files; for several videos, with their folders.
        failed: Videos that could not be processed.
    """

    address: str | None
    folder: str | None
    videos: int
    files: int
    names: list[str]
    failed: list[FailedVideo]


@router.job("/api/videos/{video}/clips", "clips", ClipsResult)
def make_clips(site: CurrentSite, video: VideoNumber, choice: ShotChoice) -> Job:
    """Export shots with sound, exact to the frame, as a job: one file each into a folder, or joined into one clip whose
    address is in the result. The video itself is unchanged."""
    record, shots, detection = _choose(site, video, choice.shots)
    count = f"{number(len(shots), 'shot')} of {base_name(record.path)}"
    if choice.folder is None:
        address = f"/videos/{video}/clip?{'&'.join(f'shot={each}' for each in choice.shots)}"

        def join(job: Job) -> ClipsResult:
            _make_clip(site, record, shots, job)
            return ClipsResult(address, None, 1, 0, [], [])

        return site.jobs.start("clips", f"Clip of {count}", join, video=video)
    check_writable(site)
    folder = _check_empty(choice.folder)

    def split(job: Job) -> ClipsResult:
        def report(done: float, total: float | None) -> None:
            job.report(int(done), int(total or 0), "frames")

        pieces = _split(record, detection, Path(folder), report, shots)
        names = [base_name(str(piece.path)) for piece in pieces]
        return ClipsResult(None, printable(folder), 1, len(names), names[:_MAX_NAMES], [])

    return site.jobs.start("clips", f"Split {count}", split, video=video)


class VideosToSplit(Body):
    """Videos of the index to split into files, one per shot.

    Attributes:
        videos: Numbers of the videos.
        folder: New or empty folder on the server's computer; each video gets a folder in it.
    """

    videos: list[VideoId] = Field(min_length=1, max_length=_MAX_VIDEOS)
    folder: str = Field(max_length=4096)


@router.job("/api/clips", "clips", ClipsResult)
def split_videos(site: WritableSite, chosen: VideosToSplit) -> Job:
    """Export every shot of several videos as a file, as a job: one folder per video, exact to the frame, with sound.
    Unknown shots are detected first. The videos are unchanged; the result lists videos that cannot be read, with
    causes."""
    records, folder = site.index.records(chosen.videos), _check_empty(chosen.folder)
    title = f"Split {number(len(records), 'video')} into shots"
    return site.jobs.start("clips", title, partial(_split_all, site, records, folder))


def _split_all(site: Site, records: Sequence[VideoRecord], folder: str, job: Job) -> ClipsResult:
    files: list[str] = []
    taken: set[str] = set()

    def split(record: VideoRecord, report: Callable[..., None]) -> None:
        name = safe_name(Path(record.path).stem)
        if name.casefold() in taken:
            name = f"{name}-{record.id}"
        taken.add(name.casefold())
        if is_still(record):
            raise InvalidArgumentError("a photograph has no shots; select videos")
        detect_shots_of(site, record, report)
        pieces = _split(record, stored_shots(site, record), Path(folder, name), report)
        files.extend(os.path.join(name, base_name(str(piece.path))) for piece in pieces)

    failed = process_each(job, records, split)
    return ClipsResult(None, printable(folder), len(records) - len(failed), len(files), files[:_MAX_NAMES], failed)


def _split(
    record: VideoRecord,
    detection: ShotDetection,
    folder: Path,
    on_progress: Callable[[float, float | None], None],
    shots: Sequence[Shot] | None = None,
) -> tuple[Piece, ...]:
    """Write shots of a video, by default all, as files into a folder."""
    open_record(record).close()  # refuses a file other than the indexed one
    report = split_exactly(
        record.path,
        folder,
        detection.shots if shots is None else shots,
        times=detection.frame_times,
        stream=detection.stream,
        time_code=detection.time_code,
        on_progress=on_progress,
    )
    return report.pieces


@router.file("/videos/{video}/clip", "video/mp4", in_ranges=True)
def get_clip(
    request: Request,
    site: CurrentSite,
    video: VideoNumber,
    shot: Annotated[list[ShotNumber], Query(default_factory=list, max_length=_MAX_SHOTS, examples=[[1, 2]])],
) -> Response:
    """Download a clip of chosen shots that was made before.

    Args:
        request: The request.
        site: The site.
        video: Number of the video.
        shot: Numbers of the shots, from 1; empty for all.
    """
    record, shots, _ = _choose(site, video, shot)
    path = site.cache.find(_key(record, shots), ".mp4")
    if path is None:
        raise HTTPException(404, "there is no such clip, or it was deleted; make it on the page of the shots")
    answer = stream_path(request, site.streams, path)
    answer.headers["Content-Disposition"] = f'attachment; filename="{safe_stem(Path(record.path).stem)}-shots.mp4"'
    return answer


def _check_empty(name: str) -> str:
    """The absolute path of a new or empty folder, required because existing files could be replaced.

    Raises:
        InvalidArgumentError: The folder is not empty.
    """
    folder = check_folder(name)
    if os.path.isdir(folder) and os.listdir(folder):
        raise InvalidArgumentError(f"{name}: is not empty; choose a new or an empty folder")
    return folder


def _choose(site: Site, video: int, numbers: Sequence[int]) -> tuple[VideoRecord, list[Shot], ShotDetection]:
    """The record, the chosen shots in order, and all shots with corrections.

    Raises:
        InvalidArgumentError: There is no such shot.
    """
    record = site.index.record(video)
    detection = stored_shots(site, record)
    count = len(detection.shots)
    if wrong := [each for each in numbers if not 1 <= each <= count]:
        raise InvalidArgumentError(f"shots of this video are numbered from 1 to {count}, got {wrong[0]}")
    chosen = sorted(set(numbers)) or range(1, count + 1)
    return record, [detection.shots[each - 1] for each in chosen], detection


def _key(record: VideoRecord, shots: Sequence[Shot]) -> str:
    spans = ",".join(f"{shot.start_frame}-{shot.end_frame}" for shot in shots)
    return f"clip with sound\0{record.path}\0{record.size}\0{record.mtime_ns}\0{spans}"


def _make_clip(site: Site, record: VideoRecord, shots: Sequence[Shot], job: Job) -> None:
    open_record(record).close()

    def make(path: Path) -> None:
        join_spans(
            record.path,
            path,
            shots,
            rate=min(record.frame_rate or 25.0, 240.0),
            on_progress=lambda done, total: job.report(done, total, f"shot {done + 1}"),
        )

    site.cache.get(_key(record, shots), ".mp4", make)
