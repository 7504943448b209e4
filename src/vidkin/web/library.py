"""The library: the videos of the index by name, sorted and filtered; a page for each; and folders added as a job."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from vidkin._base.files import IMAGE_EXTENSIONS
from vidkin.errors import InvalidArgumentError
from vidkin.index import Coverage, CoverStep, Progress, SharedStretch, VideoRecord, is_gone
from vidkin.rendering.coverage import describe_coverage, strip_of
from vidkin.rendering.duplicates import describe_member
from vidkin.web.duplicates import bring_up_to_date
from vidkin.web.jobs import Job, JobState
from vidkin.web.media import source_item
from vidkin.web.site import (
    CurrentSite,
    Page,
    ResultResponse,
    Site,
    answer_model,
    base_name,
    result_model,
    thumbnail_address,
)

router = APIRouter(tags=["library"])
library_page = Page(router, "Library", "/")

Sort = Literal["name", "path", "duration", "size", "newest"]
FileFilter = Literal["all", "ok", "broken", "stale"]
_A_PAGE = 60
# Causes that the result of a job holds; the library lists all broken files.
_MOST_BROKEN = 500
_SORTS: dict[Sort, Callable[[VideoRecord], tuple[Any, ...]]] = {
    "name": lambda record: (os.path.basename(record.path).casefold(), record.path),
    "path": lambda record: (record.path,),
    "duration": lambda record: (-record.duration, record.path),
    "size": lambda record: (-record.size, record.path),
    "newest": lambda record: (-record.added_at, record.path),
}


# ``still``: a photograph; ``missing``: the file is gone; ``thumbnail``: address, ``&time=SECONDS`` for another moment.
VideoModel: Any = result_model(VideoRecord, name=str, still=bool, missing=bool, thumbnail=str)
VideoList: Any = answer_model(
    "VideoList", "Some videos of the index, and how many fit the filter.", total=int, videos=list[VideoModel]
)

# ``words``: sentences about it; ``strip``: the parts of the video in order: start and end in shares of its length, and
# whether another video shows the part, too.
CoverageModel: Any = result_model(
    Coverage,
    share=float,
    elsewhere=list[tuple[float, float]],
    only_here=list[tuple[float, float]],
    sources=list[SharedStretch],
    fewest=list[CoverStep],
    words=list[str],
    strip=list[tuple[float, float, bool]],
)


def video_values(record: VideoRecord) -> dict[str, Any]:
    """A record with its name, as it can be shown, and its picture; asks the disk whether the file is there."""
    return {
        **record.to_dict(),
        "name": base_name(record.path),
        "still": os.path.splitext(record.path)[1].lower() in IMAGE_EXTENSIONS,
        "missing": is_gone(record.path),
        "thumbnail": thumbnail_address(record),
    }


def _choose(
    site: CurrentSite, query: str, sort: Sort, state: FileFilter, offset: int, limit: int
) -> tuple[dict[str, Any], Sequence[VideoRecord]]:
    """The videos whose path holds every word of the query, and all records."""
    words = query.casefold().split()
    records = site.index.listing().records
    chosen = [
        record
        for record in records
        if state in ("all", record.status) and all(word in record.path.casefold() for word in words)
    ]
    chosen.sort(key=_SORTS[sort])
    videos = [video_values(record) for record in chosen[offset : offset + limit]]
    return {"total": len(chosen), "videos": videos}, records


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
async def show_library(
    request: Request,
    site: CurrentSite,
    q: str = "",
    sort: Sort = "name",
    state: FileFilter = "all",
    number: Annotated[int, Query(alias="page", ge=1)] = 1,
) -> HTMLResponse:
    """Page of the videos, some at a time, with a search by name."""

    def prepare() -> dict[str, Any]:
        listed, records = _choose(site, q, sort, state, (number - 1) * _A_PAGE, _A_PAGE)
        pages = max(-(-listed["total"] // _A_PAGE), 1)

        def address(of_page: int) -> str:
            words = {"q": q, "sort": sort, "state": state, "page": of_page}
            plain = {"q": "", "sort": "name", "state": "all", "page": 1}
            rest = urlencode({name: value for name, value in words.items() if value != plain[name]})
            return f"/?{rest}" if rest else "/"

        return {
            "videos": listed,
            "count": sum(record.status == "ok" for record in records),
            "is_empty": not records,
            "broken": sum(record.status == "broken" for record in records),
            "stale": sum(record.status == "stale" for record in records),
            "seconds": sum(record.duration for record in records),
            "bytes": sum(record.size for record in records),
            "query": q,
            "sort": sort,
            "state": state,
            "page": number,
            "pages": pages,
            "address": address,
            "folders": sorted({os.path.dirname(record.path) for record in records})[:50],
        }

    return site.page("library.html", request, await site.lists.run(prepare))


@router.get("/api/videos", response_model=VideoList)
async def list_videos(
    site: CurrentSite,
    q: str = "",
    sort: Sort = "name",
    state: FileFilter = "all",
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 60,
) -> ResultResponse:
    """The videos of the index whose path holds every word of ``q``."""
    listed, _ = await site.lists.run(partial(_choose, site, q, sort, state, offset, limit))
    return ResultResponse(listed)


@router.get("/api/videos/{video}", response_model=VideoModel)
async def get_video(site: CurrentSite, video: int) -> ResultResponse:
    """One video of the index."""
    return ResultResponse(await site.lists.run(lambda: video_values(site.index.record(video))))


@router.get("/api/videos/{video}/coverage", response_model=CoverageModel)
async def cover_video(site: CurrentSite, video: int) -> ResultResponse:
    """Which stretches of a video other videos of the index show, too, and what is only in it; reads the file."""

    def work() -> dict[str, Any]:
        path = site.index.record(video).path
        with site.index.reader() as index:
            found = index.coverage(path)
        return {**found.to_dict(), "words": describe_coverage(found), "strip": strip_of(found)}

    return ResultResponse(await site.searches.run(work))


@router.get("/videos/{video}", response_class=HTMLResponse, include_in_schema=False)
async def show_video(request: Request, site: CurrentSite, video: int) -> HTMLResponse:
    """Page of one video: its player and what is known of it."""
    await bring_up_to_date(site)

    def find() -> dict[str, Any]:
        record = site.index.record(video)
        found = site.groups.found
        return {
            "video": video_values(record),
            "source": source_item(site, video=video),
            "folder": os.path.dirname(record.path),
            "copies": _copies(site, record),
            "compared": None if found is None or not site.groups.is_current() else not found.uncompared,
        }

    return site.page("video.html", request, await site.lists.run(find))


def _copies(site: Site, record: VideoRecord) -> list[dict[str, Any]]:
    """The other files of the group of a video, with what each is, as far as groups are known."""
    groups = () if site.groups.found is None else site.groups.found.groups
    group = next((each for each in groups if any(member.path == record.path for member in each.members)), None)
    if group is None:
        return []
    records = {each.path: each for each in site.index.listing().records}
    copies = []
    for member in group.members:
        other = records.get(member.path)
        if member.path == record.path:
            continue
        is_there = other is not None and not is_gone(member.path)
        copies.append(
            {
                "id": other.id if other is not None and is_there else None,
                "name": base_name(member.path),
                "words": describe_member(member, group),
                "picture": thumbnail_address(other) if other is not None and is_there else None,
            }
        )
    return copies


class Folders(BaseModel):
    """Folders to add to the index."""

    paths: list[str] = Field(min_length=1, max_length=100, description="Folders or files of the server's computer.")
    images: bool | None = Field(None, description="Also take photographs; remembered. None leaves it as it was.")


@router.post("/api/index", status_code=202)
async def add_folders(site: CurrentSite, folders: Folders) -> JobState:
    """Bring the index up to date with folders; answers at once with the job that does it."""
    site.check_writable()
    paths = await site.lists.run(partial(_check, folders.paths))
    title = f"Add {base_name(str(paths[0]))}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    return site.jobs.start("index", title, partial(_add, site, paths, folders.images)).state()


def _check(names: Sequence[str]) -> list[Path]:
    """Absolute paths, all of which exist."""
    paths = []
    for name in names:
        try:
            path = Path(name.strip()).expanduser()
            os.fsencode(path)
            is_there = "\0" not in name and os.path.exists(path)
        except (ValueError, RuntimeError):  # no name of a file, or of a user that is not there
            raise InvalidArgumentError(f"{name}: there is no such file or folder") from None
        if not path.is_absolute():
            raise InvalidArgumentError(f"{path}: name the whole path, for example {Path.home() / 'Videos'}")
        if not is_there:
            raise InvalidArgumentError(f"{path}: there is no such file or folder")
        paths.append(path)
    return paths


def _add(site: Site, paths: Sequence[Path], images: bool | None, job: Job) -> dict[str, Any]:
    """The result of the job: numbers of files, and those that cannot be read."""

    def report_progress(progress: Progress) -> None:
        outcome = progress.outcome
        if outcome is not None:
            site.index.forget()
            if outcome.kind == "broken":
                job.note(f"{outcome.path}: {outcome.cause}")
        job.report(progress.done, progress.total, base_name(progress.path))

    job.report(0, 0, "looking for videos")
    with site.index.writer() as index:
        report = index.add(paths, images=images, on_progress=report_progress)
    counts = {kind: len(getattr(report, kind)) for kind in ("added", "unchanged", "moved", "broken", "missing")}
    return {**counts, "files": report.broken[:_MOST_BROKEN]}
