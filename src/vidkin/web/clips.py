"""Export shots as files: joined into one clip, or split into one file each, for one or many videos."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response
from pydantic import Field

from vidkin._base.files import IMAGE_EXTENSIONS, safe_name
from vidkin.errors import InvalidArgumentError, VidkinError
from vidkin.index import VideoRecord
from vidkin.media import Piece, join_spans, split_exactly
from vidkin.rendering.text import number, printable
from vidkin.shots import Shot, ShotDetection
from vidkin.web.files import open_record, stream_path
from vidkin.web.jobs import Job
from vidkin.web.parameters import MAX_NUMBER, Body, VideoId, VideoNumber
from vidkin.web.removals import check_folder
from vidkin.web.shots import FailedVideo, detect_shots_of, stored_shots
from vidkin.web.site import (
    CurrentSite,
    Page,
    ResultResponse,
    Site,
    accepted,
    answer_model,
    base_name,
    download,
    job_model,
    safe_stem,
)

router = APIRouter(tags=["shots"])
clips_page = Page(router)

_MAX_SHOTS, _MAX_VIDEOS = 5000, 10_000
# Maximum number of file names in the result of a job.
_MAX_NAMES = 1000

ShotNumber = Annotated[int, Field(ge=1, le=MAX_NUMBER)]
ShotNumbers = Annotated[list[ShotNumber], Field(max_length=_MAX_SHOTS, examples=[[1, 2]])]


class ShotChoice(Body):
    """Shots of a video."""

    shots: ShotNumbers = Field(default_factory=list, description="Numbers of shots, from 1; empty for all.")
    folder: str | None = Field(
        None, max_length=4096, description="Folder on the server's computer, one file per shot; null for one clip."
    )


ClipsJob = job_model(
    "clips",
    answer_model(
        "ClipsResult",
        "The files that were written.",
        address=str | None,
        folder=str | None,
        videos=int,
        files=int,
        names=list[str],
        failed=list[FailedVideo],
    ),
)


def _result(
    videos: int,
    names: Sequence[str] = (),
    *,
    address: str | None = None,
    folder: str | None = None,
    failed: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    return {
        "address": address,
        "folder": folder,
        "videos": videos,
        "files": len(names),
        "names": names[:_MAX_NAMES],
        "failed": failed,
    }


@router.post("/api/videos/{video}/clips", status_code=202, response_model=ClipsJob)
async def make_clips(site: CurrentSite, video: VideoNumber, choice: ShotChoice) -> ResultResponse:
    """Export shots with sound, exact to the frame, as a job: one file each into a folder, or joined into one clip whose
    address is in the result. The video itself is unchanged."""
    if choice.folder is not None:
        site.check_writable()
    record, shots, detection = await site.lists.run(partial(_choose, site, video, choice.shots))
    count = f"{number(len(shots), 'shot')} of {base_name(record.path)}"
    if choice.folder is None:
        address = f"/videos/{video}/clip?{'&'.join(f'shot={each}' for each in choice.shots)}"

        def join(job: Job) -> dict[str, Any]:
            _make_clip(site, record, shots, job)
            return _result(1, address=address)

        return accepted(site.jobs.start("clips", f"Clip of {count}", join, video=video))
    folder = await site.lists.run(partial(_check_empty, choice.folder))

    def split(job: Job) -> dict[str, Any]:
        pieces = _split(
            record,
            detection,
            Path(folder),
            lambda done, total: job.report(int(done), int(total or 0), "frames"),
            shots,
        )
        return _result(1, [base_name(str(piece.path)) for piece in pieces], folder=printable(folder))

    return accepted(site.jobs.start("clips", f"Split {count}", split, video=video))


class VideosToSplit(Body):
    """Videos of the index to split into files, one per shot."""

    videos: list[VideoId] = Field(min_length=1, max_length=_MAX_VIDEOS, description="Numbers of the videos.")
    folder: str = Field(
        max_length=4096, description="New or empty folder on the server's computer; each video gets a folder in it."
    )


@router.post("/api/clips", status_code=202, response_model=ClipsJob)
async def split_videos(site: CurrentSite, chosen: VideosToSplit) -> ResultResponse:
    """Export every shot of several videos as a file, as a job: one folder per video, exact to the frame, with sound.
    Unknown shots are detected first. The videos are unchanged; the result lists videos that cannot be read, with
    causes."""
    site.check_writable()
    records = await site.lists.run(lambda: [site.index.record(video) for video in chosen.videos])
    folder = await site.lists.run(partial(_check_empty, chosen.folder))
    title = f"Split {number(len(records), 'video')} into shots"
    return accepted(site.jobs.start("clips", title, partial(_split_all, site, records, folder)))


def _split_all(site: Site, records: Sequence[VideoRecord], folder: str, job: Job) -> dict[str, Any]:
    files: list[str] = []
    failed = []
    taken: set[str] = set()
    for done, record in enumerate(records):
        name = safe_name(Path(record.path).stem)
        if name.casefold() in taken:
            name = f"{name}-{record.id}"
        taken.add(name.casefold())

        def report(*_: float | None, done: int = done, path: str = record.path) -> None:
            job.report(done, len(records), base_name(path))

        try:
            report()
            if Path(record.path).suffix.lower() in IMAGE_EXTENSIONS:
                raise InvalidArgumentError("a photograph has no shots; select videos")
            detect_shots_of(site, record, report)
            pieces = _split(record, stored_shots(site, record), Path(folder, name), report)
            files += [os.path.join(name, base_name(str(piece.path))) for piece in pieces]
        except VidkinError as error:
            failed.append({"path": printable(record.path), "cause": printable(str(error))})
            job.note(f"{record.path}: {error}")
    return _result(len(records) - len(failed), files, folder=printable(folder), failed=failed)


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


@router.get(
    "/videos/{video}/clip",
    response_class=Response,
    responses={**download("video/mp4"), 206: {"description": "The requested range."}},
)
async def get_clip(
    request: Request,
    site: CurrentSite,
    video: VideoNumber,
    shot: Annotated[
        list[ShotNumber],
        Query(
            default_factory=list,
            max_length=_MAX_SHOTS,
            description="Numbers of the shots, from 1; empty for all.",
            examples=[[1, 2]],
        ),
    ],
) -> Response:
    """Download a clip of chosen shots that was made before."""

    def find() -> tuple[Path, VideoRecord]:
        record, shots, _ = _choose(site, video, shot)
        path = site.cache.find(_key(record, shots), ".mp4")
        if path is None:
            raise HTTPException(404, "there is no such clip, or it was deleted; make it on the page of the shots")
        return path, record

    path, record = await site.lists.run(find)
    answer = await stream_path(request, site.streams, path)
    name = f"{safe_stem(Path(record.path).stem)}-shots.mp4"
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
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
