"""Adding folders to the index as a job, with live progress and the causes of what cannot be read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fastapi import APIRouter
from pydantic import BaseModel, Field

from vidkin.errors import InvalidArgumentError
from vidkin.index import Progress
from vidkin.web.jobs import Job, JobState
from vidkin.web.site import CurrentSite, Page, Site, base_name

__all__ = ["page"]

router = APIRouter(tags=["library"])
page = Page(router)

# Causes that the result holds; the library lists all broken files.
_MOST_BROKEN = 500


class Folders(BaseModel):
    """What to add."""

    paths: list[str] = Field(
        min_length=1, max_length=100, description="Folders or files of the server's computer."
    )
    images: bool | None = Field(
        None, description="Also take photographs; remembered. None leaves it as it was."
    )


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that cannot be read, and why."""

    path: str
    cause: str


@dataclass(frozen=True, slots=True)
class Added:
    """The result of the job: numbers of files, and those that cannot be read."""

    added: int
    unchanged: int
    moved: int
    broken: int
    missing: int
    files: list[BrokenFile]


@router.post("/api/index", status_code=202)
async def add_folders(site: CurrentSite, wanted: Folders) -> JobState:
    """Bring the index up to date with folders; answers at once with the job that does it."""
    site.check_writable()
    paths = await site.lists.run(partial(_check, wanted.paths))
    title = f"Add {base_name(str(paths[0]))}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    return site.jobs.start("index", title, partial(_add, site, paths, wanted.images)).state()


def _check(names: Sequence[str]) -> list[Path]:
    """Absolute paths, all of which exist."""
    paths = [Path(name.strip()).expanduser() for name in names]
    for path in paths:
        if not path.is_absolute():
            raise InvalidArgumentError(f"{path}: name the whole path, for example {Path.home() / 'Videos'}")
        if "\0" in str(path) or not os.path.exists(path):
            raise InvalidArgumentError(f"{path}: there is no such file or folder")
    return paths


def _add(site: Site, paths: Sequence[Path], images: bool | None, job: Job) -> Added:
    def tell(progress: Progress) -> None:
        outcome = progress.outcome
        if outcome is not None:
            site.collection.forget()
            if outcome.kind == "broken":
                job.note(f"{outcome.path}: {outcome.cause}")
        job.report(progress.done, progress.total, base_name(progress.path))

    job.report(0, 0, "looking for videos")
    with site.collection.writer() as index:
        report = index.add(paths, images=images, on_progress=tell)
    broken = [BrokenFile(outcome.path, outcome.cause) for outcome in report.broken[:_MOST_BROKEN]]
    return Added(
        added=len(report.added),
        unchanged=len(report.unchanged),
        moved=len(report.moved),
        broken=len(report.broken),
        missing=len(report.missing),
        files=broken,
    )
