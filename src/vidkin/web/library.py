"""The library: videos of the index, filtered and sorted, and a job that adds folders."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from vidkin._base.files import IMAGE_EXTENSIONS
from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index import Progress, VideoRecord, is_gone
from vidkin.index.storage.lists import FAVORITES
from vidkin.rendering.text import printable
from vidkin.web.duplicates import bring_up_to_date
from vidkin.web.files import record_values
from vidkin.web.filters import SORTS, ChosenFilter, FolderNode, LibraryFilter, choose_records, folder_tree
from vidkin.web.jobs import Job
from vidkin.web.parameters import Body, Offset
from vidkin.web.site import (
    CurrentSite,
    Page,
    ResultResponse,
    Site,
    accepted,
    answer_model,
    base_name,
    job_model,
    result_model,
    thumbnail_address,
)

router = APIRouter(tags=["library"])
library_page = Page(router, "Library", "/")

_A_PAGE = 60


# ``still``: a photograph; ``missing``: the file is gone; ``thumbnail``: address, ``&time=SECONDS`` for another moment.
VideoModel: Any = result_model(
    VideoRecord, leave_out=("mtime_ns",), modified_at=float, name=str, still=bool, missing=bool, thumbnail=str
)
VideoList: Any = answer_model(
    "VideoList",
    "A page of videos of the index, and the number that pass the filter.",
    total=int,
    videos=list[VideoModel],
)


def video_values(record: VideoRecord) -> dict[str, Any]:
    """A record with its printable name and thumbnail; checks on disk whether the file exists."""
    return {
        **record_values(record),
        "name": base_name(record.path),
        "still": os.path.splitext(record.path)[1].lower() in IMAGE_EXTENSIONS,
        "missing": is_gone(record.path),
        "thumbnail": thumbnail_address(record),
    }


def _choose(site: Site, wish: LibraryFilter, offset: int, limit: int) -> tuple[dict[str, Any], Sequence[VideoRecord]]:
    """A page of the videos that pass the filter, and all records."""
    chosen, records = choose_records(site, wish)
    videos = [video_values(record) for record in chosen[offset : offset + limit]]
    return {"total": len(chosen), "videos": videos}, records


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
async def show_library(
    request: Request,
    site: CurrentSite,
    wish: ChosenFilter,
    number: Annotated[int, Query(alias="page", ge=1)] = 1,
) -> HTMLResponse:
    """Page of the videos with filters, a tree of folders, and lists."""
    if wish.copies:
        await bring_up_to_date(site)

    def prepare() -> dict[str, Any]:
        listed, records = _choose(site, wish, (number - 1) * _A_PAGE, _A_PAGE)
        lists: Mapping[str, Mapping[str, None]] = {}
        lists_error = ""
        try:
            lists = site.lists_of_videos().contents
        except CollectionDamagedError as error:  # the library works without lists
            lists_error = str(error)
        return {
            "videos": listed,
            "count": sum(record.status == "ok" for record in records),
            "is_empty": not records,
            "broken": sum(record.status == "broken" for record in records),
            "stale": sum(record.status == "stale" for record in records),
            "seconds": sum(record.duration for record in records),
            "bytes": sum(record.size for record in records),
            "wish": wish,
            "sorts": SORTS,
            "page": number,
            "pages": max(-(-listed["total"] // _A_PAGE), 1),
            "address": wish.address,
            "knows_copies": site.groups.found is not None,
            "tree": folder_tree(records, open_to=wish.folder),
            "lists": {name: len(contents) for name, contents in sorted(lists.items())},
            "lists_error": lists_error,
            "tags": _tags(lists, {video["content_hash"] for video in listed["videos"]}),
            "favorites": FAVORITES,
        }

    return site.page("library.html", request, await site.lists.run(prepare))


def _tags(lists: Mapping[str, Mapping[str, None]], contents: set[str]) -> dict[str, list[str]]:
    """Map each of these content hashes to the names of the lists that contain it."""
    return {content: [name for name, listed in sorted(lists.items()) if content in listed] for content in contents}


@router.get("/api/videos", response_model=VideoList)
async def list_videos(
    site: CurrentSite,
    wish: ChosenFilter,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of videos.", examples=[60])] = 60,
) -> ResultResponse:
    """List the videos of the index that pass the filter; with `path`, the video with exactly this path."""
    if wish.copies:
        await bring_up_to_date(site, wait=True)
    listed, _ = await site.lists.run(partial(_choose, site, wish, offset, limit))
    return ResultResponse(listed)


@router.get("/api/videos/numbers", response_model=list[int])
async def list_video_numbers(site: CurrentSite, wish: ChosenFilter) -> ResultResponse:
    """List the numbers of all videos that pass the filter, in its order."""
    if wish.copies:
        await bring_up_to_date(site, wait=True)
    return ResultResponse(await site.lists.run(lambda: [record.id for record in choose_records(site, wish)[0]]))


@router.get("/api/library/folders")
async def list_folders(
    site: CurrentSite,
    under: Annotated[str, Query(description="The folder; empty for the top.", examples=["/videos"])] = "",
) -> list[FolderNode]:
    """List the folders of the index directly below a folder, with the number of videos in and below each."""
    return await site.lists.run(lambda: folder_tree(site.index.listing().records, under=under))


# Maximum number of broken files in the result of a job; the library lists all.
_MAX_BROKEN = 500
# Maximum number of folders that the picker lists, and of entries it reads.
_MAX_FOLDERS, _MAX_ENTRIES = 500, 20_000
# Mount points of other disks.
_MOUNTS = ("/media", "/mnt", "/run/media", "/Volumes")


class Folders(Body):
    """Folders to add to the index."""

    paths: list[str] = Field(
        min_length=1,
        max_length=100,
        description="Absolute paths of folders or files on the server's computer.",
        examples=[["/videos"]],
    )
    images: bool | None = Field(None, description="Also index photographs; remembered. null keeps the current setting.")


class BrokenFile(BaseModel):
    """A file that cannot be read."""

    path: str = Field(description="Path of the file.")
    cause: str = Field(description="Why it cannot be read.")


IndexResult: Any = answer_model(
    "IndexResult",
    "Outcome for the files.",
    added=int,
    unchanged=int,
    moved=int,
    broken=int,
    missing=int,
    files=list[BrokenFile],
)
IndexJob = job_model("index", IndexResult)


@router.post("/api/index", status_code=202, response_model=IndexJob)
async def index_folders(site: CurrentSite, folders: Folders) -> ResultResponse:
    """Update the index with folders, as a job."""
    site.check_writable()
    paths = await site.lists.run(partial(_check, folders.paths))
    title = f"Add {base_name(str(paths[0]))}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    return accepted(site.jobs.start("index", title, partial(_add, site, paths, folders.images)))


def _check(names: Sequence[str]) -> list[Path]:
    """Check that all paths are absolute and exist."""
    paths = []
    for name in names:
        try:
            path = Path(name.strip()).expanduser()
            os.fsencode(path)
            is_there = "\0" not in name and os.path.exists(path)
        except (ValueError, RuntimeError):  # not a valid file name, or an unknown user
            raise InvalidArgumentError(f"{name}: there is no such file or folder") from None
        if not path.is_absolute():
            raise InvalidArgumentError(f"{path}: enter an absolute path, for example {Path.home() / 'Videos'}")
        if not is_there:
            raise InvalidArgumentError(f"{path}: there is no such file or folder")
        paths.append(path)
    return paths


def _add(site: Site, paths: Sequence[Path], images: bool | None, job: Job) -> dict[str, Any]:
    """Do the job; return the numbers of files and the unreadable ones."""

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
    return {**counts, "files": report.broken[:_MAX_BROKEN]}


class FolderChoice(BaseModel):
    """Folders of the server's computer to choose from."""

    path: str = Field(description="The folder whose subfolders are listed; empty for the starting points.")
    parent: str | None = Field(description="The folder above; empty for the starting points, null at them.")
    folders: list[tuple[str, str]] = Field(description="Name and path of each folder.")
    complete: bool = Field(description="False if there are more folders than listed.")


@router.get("/api/computer/folders")
async def list_computer_folders(
    site: CurrentSite,
    path: Annotated[str, Query(description="The folder; empty for the starting points.", examples=["/videos"])] = "",
) -> FolderChoice:
    """List the subfolders of a folder on the server's computer, to choose one to add.

    Only the home folder, mounted disks, folders of indexed videos and folders below these are listed, without hidden
    folders and links that lead elsewhere.
    """
    site.check_writable()
    return await site.lists.run(partial(_list_folders, site, path))


def _list_folders(site: Site, path: str) -> FolderChoice:
    roots = _roots(site)
    if not path:
        return FolderChoice(path="", parent=None, folders=[(printable(root), root) for root in roots], complete=True)
    folder = os.path.realpath(path) if os.path.isabs(path) and "\0" not in path else ""
    if not any(_is_in(folder, root) for root in roots) or not os.path.isdir(folder):
        raise InvalidArgumentError(f"{printable(path)} cannot be listed here; type the path of a folder to add it")
    found: list[tuple[str, str]] = []
    is_complete = True
    try:
        with os.scandir(folder) as entries:
            for looked, entry in enumerate(entries):
                if looked >= _MAX_ENTRIES or len(found) >= _MAX_FOLDERS:
                    is_complete = False
                    break
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                    found.append((printable(entry.name), entry.path))
    except OSError as error:
        raise InvalidArgumentError(f"{printable(folder)}: {(error.strerror or 'cannot be read').lower()}") from error
    above = os.path.dirname(folder)
    parent = above if folder not in roots and any(_is_in(above, root) for root in roots) else ""
    return FolderChoice(
        path=folder, parent=parent, folders=sorted(found, key=lambda each: each[0].casefold()), complete=is_complete
    )


def _roots(site: Site) -> list[str]:
    """The starting points of the folder picker, none inside another."""
    named = [os.path.expanduser("~"), *_MOUNTS, *{os.path.dirname(each.path) for each in site.index.listing().records}]
    found: list[str] = []
    for folder in sorted({os.path.realpath(each) for each in named}, key=lambda each: (len(each), each)):
        if len(found) < _MAX_FOLDERS and not any(_is_in(folder, root) for root in found) and os.path.isdir(folder):
            found.append(folder)
    return sorted(found)


def _is_in(folder: str, root: str) -> bool:
    return folder == root or folder.startswith(os.path.join(root, ""))
