"""Adding folders to the index as a job, and choosing them from the folders of the server's computer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from vidkin.errors import InvalidArgumentError
from vidkin.index import Progress
from vidkin.rendering.text import printable
from vidkin.web.jobs import Job, JobState
from vidkin.web.site import CurrentSite, Page, Site, base_name

router = APIRouter(tags=["library"])
adding_page = Page(router)

# Causes that the result of a job holds; the library lists all broken files.
_MOST_BROKEN = 500
# Folders that the picker lists of one folder, and entries of it that are looked at.
_MOST_FOLDERS, _MOST_ENTRIES = 500, 20_000
# Where systems mount other disks.
_MOUNTS = ("/media", "/mnt", "/run/media", "/Volumes")


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


class FolderChoice(BaseModel):
    """Folders of the server's computer that can be chosen."""

    path: str = Field(description="The folder whose folders these are; empty: where a choice begins.")
    parent: str | None = Field(description="The folder above, empty for the begin of a choice; None there.")
    folders: list[tuple[str, str]] = Field(description="Name and path of each folder.")
    complete: bool = Field(description="False if there are more than are listed.")


@router.get("/api/computer/folders")
async def choose_folder(site: CurrentSite, path: str = "") -> FolderChoice:
    """The folders in a folder of the server's computer, for choosing one to add.

    Only the home folder, mounted disks, the folders of indexed videos, and what is below them can be shown; hidden
    folders and links to elsewhere are not.
    """
    site.check_writable()
    return await site.lists.run(partial(_list_folders, site, path))


def _list_folders(site: Site, path: str) -> FolderChoice:
    roots = _roots(site)
    if not path:
        return FolderChoice(path="", parent=None, folders=[(printable(root), root) for root in roots], complete=True)
    folder = os.path.realpath(path) if os.path.isabs(path) and "\0" not in path else ""
    if not any(_is_in(folder, root) for root in roots) or not os.path.isdir(folder):
        raise InvalidArgumentError(f"{printable(path)} cannot be shown here; type the path of a folder to add it")
    found, is_complete = [], True
    try:
        with os.scandir(folder) as entries:
            for looked, entry in enumerate(entries):
                if looked >= _MOST_ENTRIES or len(found) >= _MOST_FOLDERS:
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
    """The folders where a choice begins: no one of them lies in another one."""
    named = [os.path.expanduser("~"), *_MOUNTS, *{os.path.dirname(each.path) for each in site.index.listing().records}]
    found: list[str] = []
    for folder in sorted({os.path.realpath(each) for each in named}, key=lambda each: (len(each), each)):
        if len(found) < _MOST_FOLDERS and not any(_is_in(folder, root) for root in found) and os.path.isdir(folder):
            found.append(folder)
    return sorted(found)


def _is_in(folder: str, root: str) -> bool:
    return folder == root or folder.startswith(os.path.join(root, ""))
