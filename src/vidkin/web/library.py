"""The library: videos of the index, filtered and sorted, and a job that adds folders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from pydantic import Field

from vidkin.errors import CollectionDamagedError, InvalidArgumentError
from vidkin.index import Progress, VideoRecord, is_gone
from vidkin.index.storage.lists import FAVORITES
from vidkin.rendering.ingest import count_files
from vidkin.rendering.text import printable
from vidkin.web.duplicates import bring_site_up_to_date
from vidkin.web.files import absolute_path, record_values
from vidkin.web.filters import SORTS, ChosenFilter, FolderNode, choose_records, folder_tree
from vidkin.web.jobs import Job
from vidkin.web.routes import Body, Offset, Page, PageNumber, extends
from vidkin.web.site import CurrentSite, Site, WritableSite, base_name, cut_page, is_still, thumbnail_address

router = Page("library", "Library", "/")

_A_PAGE = 60


@extends(VideoRecord, leave_out=("mtime_ns",))
class VideoModel:
    """A video of the index.

    Attributes:
        modified_at: Modification time of the file, seconds since the epoch; 0 if it is stale.
        name: Last part of the path in printable form.
        still: Whether it is a still image.
        missing: Whether the file is gone.
        thumbnail: Address of an image; add `&time=SECONDS` for another moment.
    """

    modified_at: float
    name: str
    still: bool
    missing: bool
    thumbnail: str


@dataclass(frozen=True, slots=True)
class VideoList:
    """A page of videos of the index, and the number that pass the filter.

    Attributes:
        total: Number of videos that fit the filter.
        videos: The videos.
    """

    total: int
    videos: list[VideoModel]


def video_values(record: VideoRecord) -> Any:
    """Return the values of a :class:`VideoModel`; checks on disk whether the file exists."""
    return {
        **record_values(record),
        "name": base_name(record.path),
        "still": is_still(record),
        "missing": is_gone(record.path),
        "thumbnail": thumbnail_address(record),
    }


async def _know_copies(request: Request, site: CurrentSite, wish: ChosenFilter) -> Site:
    return await bring_site_up_to_date(request, site) if wish.copies else site


# The site; its groups of copies are up to date if the filter needs them.
_FilteredSite = Annotated[Site, Depends(_know_copies)]


@router.page("/", "library.html")
def show_library(site: _FilteredSite, wish: ChosenFilter, page: PageNumber = 1) -> dict[str, Any]:
    """Show the videos with filters, a tree of folders, and lists."""
    chosen, records = choose_records(site, wish), site.index.listing().records
    shown, pager = cut_page(chosen, page, _A_PAGE)
    known = [record for record in records if record.status == "ok"]
    stills = sum(map(is_still, known))
    lists: Mapping[str, Mapping[str, None]] = {}
    lists_error = ""
    try:
        lists = site.lists_of_videos().contents
    except CollectionDamagedError as error:  # the library works without lists
        lists_error = str(error)
    return {
        "videos": VideoList(len(chosen), [video_values(record) for record in shown]),
        "statuses": Counter(record.status for record in records),
        "count": count_files(len(known) - stills, stills),
        "seconds": sum(record.duration for record in records),
        "bytes": sum(record.size for record in records),
        "wish": wish,
        "sorts": SORTS,
        **pager,
        "address": wish.address,
        "knows_copies": site.groups.found is not None,
        "tree": folder_tree(records, open_to=wish.folder),
        "lists": {name: len(contents) for name, contents in sorted(lists.items())},
        "lists_error": lists_error,
        "tags": _tags(lists, {record.content_hash for record in shown}),
        "favorites": FAVORITES,
    }


def _tags(lists: Mapping[str, Mapping[str, None]], contents: set[str]) -> dict[str, list[str]]:
    """Map each of these content hashes to the names of the lists that contain it."""
    return {content: [name for name, listed in sorted(lists.items()) if content in listed] for content in contents}


@router.get("/api/videos")
def list_videos(
    site: _FilteredSite,
    wish: ChosenFilter,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of videos.", examples=[60])] = 60,
) -> VideoList:
    """List the videos of the index that pass the filter; with `path`, the video with exactly this path."""
    chosen = choose_records(site, wish)
    return VideoList(len(chosen), [video_values(record) for record in chosen[offset : offset + limit]])


@router.get("/api/videos/numbers")
def list_video_numbers(site: _FilteredSite, wish: ChosenFilter) -> list[int]:
    """List the numbers of all videos that pass the filter, in its order."""
    return [record.id for record in choose_records(site, wish)]


@router.get("/api/library/folders")
def list_folders(
    site: CurrentSite,
    under: Annotated[str, Query(description="The folder; empty for the top.", examples=["/videos"])] = "",
) -> list[FolderNode]:
    """List the folders of the index directly below a folder, with the number of videos in and below each."""
    return folder_tree(site.index.listing().records, under=under)


# Maximum number of broken files in the result of a job; the library lists all.
_MAX_BROKEN = 500
# Maximum number of folders that the picker lists, and of entries it reads.
_MAX_FOLDERS, _MAX_ENTRIES = 500, 20_000
# Mount points of other disks.
_MOUNTS = ("/media", "/mnt", "/run/media", "/Volumes")


class Folders(Body):
    """Folders to add to the index.

    Attributes:
        paths: Absolute paths of folders or files on the server's computer.
        images: Also index photographs; remembered. null keeps the current setting.
    """

    paths: list[str] = Field(min_length=1, max_length=100, examples=[["/videos"]])
    images: bool | None = None


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that cannot be read.

    Attributes:
        path: Path of the file.
        cause: Why it cannot be read.
    """

    path: str
    cause: str


@dataclass(frozen=True, slots=True)
class IndexResult:
    """Summary of an indexing run.

    Attributes:
        added: Number of new files.
        unchanged: Number of files that were already in the index.
        moved: Number of files that have moved.
        broken: Number of files that cannot be read.
        missing: Number of files that are gone.
        files: Files that cannot be read, and why.
    """

    added: int
    unchanged: int
    moved: int
    broken: int
    missing: int
    files: list[BrokenFile]


@router.job("/api/index", "index", IndexResult)
def index_folders(site: WritableSite, folders: Folders) -> Job:
    """Update the index with folders, as a job."""
    paths = [absolute_path(name) for name in folders.paths]
    if missing := next((path for path in paths if not os.path.exists(path)), ""):
        raise InvalidArgumentError(f"{missing}: there is no such file or folder")
    title = f"Add {base_name(paths[0])}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    return site.jobs.start("index", title, partial(_add, site, paths, folders.images))


def _add(site: Site, paths: Sequence[str], images: bool | None, job: Job) -> IndexResult:
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
    return IndexResult(**counts, files=[BrokenFile(file.path, file.cause) for file in report.broken[:_MAX_BROKEN]])


@dataclass(frozen=True, slots=True)
class FolderChoice:
    """Folders of the server's computer to choose from.

    Attributes:
        path: The folder whose subfolders are listed; empty for the starting points.
        parent: The folder above; empty for the starting points, null at them.
        folders: Name and path of each folder.
        complete: False if there are more folders than listed.
    """

    path: str
    parent: str | None
    folders: list[tuple[str, str]]
    complete: bool


@router.get("/api/computer/folders")
def list_computer_folders(
    site: WritableSite,
    path: Annotated[str, Query(description="The folder; empty for the starting points.", examples=["/videos"])] = "",
) -> FolderChoice:
    """List the subfolders of a folder on the server's computer, to choose one to add.

    Only the home folder, mounted disks, folders of indexed videos and folders below these are listed, without hidden
    folders and links that lead elsewhere.
    """
    roots = _roots(site)
    if not path:
        return FolderChoice("", None, [(printable(root), root) for root in roots], True)
    folder = os.path.realpath(path) if os.path.isabs(path) and "\0" not in path else ""
    if not any(_is_in(folder, root) for root in roots) or not os.path.isdir(folder):
        raise InvalidArgumentError(f"{printable(path)} cannot be listed here; type the path of a folder to add it")
    try:
        with os.scandir(folder) as entries:
            read = list(islice(entries, _MAX_ENTRIES + 1))
            folders = [each for each in read if not each.name.startswith(".") and each.is_dir(follow_symlinks=False)]
    except OSError as error:
        raise InvalidArgumentError(f"{printable(folder)}: {(error.strerror or 'cannot be read').lower()}") from error
    above = os.path.dirname(folder)
    parent = above if folder not in roots and any(_is_in(above, root) for root in roots) else ""
    found = sorted(((printable(each.name), each.path) for each in folders), key=lambda each: each[0].casefold())
    is_complete = len(read) <= _MAX_ENTRIES and len(found) <= _MAX_FOLDERS
    return FolderChoice(folder, parent, found[:_MAX_FOLDERS], is_complete)


def _roots(site: Site) -> list[str]:
    """Return the starting points of the folder picker, none inside another."""
    named = [os.path.expanduser("~"), *_MOUNTS, *{os.path.dirname(each.path) for each in site.index.listing().records}]
    found: list[str] = []
    for folder in sorted({os.path.realpath(each) for each in named}, key=lambda each: (len(each), each)):
        if len(found) < _MAX_FOLDERS and not any(_is_in(folder, root) for root in found) and os.path.isdir(folder):
            found.append(folder)
    return sorted(found)


def _is_in(folder: str, root: str) -> bool:
    return folder == root or folder.startswith(os.path.join(root, ""))
