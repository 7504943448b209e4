"""Acting on duplicates: files to the trash or to a folder, undo, and what was done before.

All of it is what ``vidkin apply`` does: a signed plan, its log, and the same functions.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from vidkin.errors import InvalidArgumentError
from vidkin.index import DuplicateGroup, FileAction, Removal, Removals, RemovedFile
from vidkin.rendering.text import printable
from vidkin.web.duplicates import bring_up_to_date, current_groups
from vidkin.web.jobs import Job, JobState
from vidkin.web.site import CurrentSite, Page, ResultResponse, Site, base_name, result_model

router = APIRouter(tags=["duplicates"])
removals_page = Page(router)

# Files of one request.
_MOST = 100_000
# Removals that the history shows.
_HISTORY = 100

RemovedFileModel: Any = result_model(RemovedFile, name=str)
RemovalModel: Any = result_model(Removal, can_undo=bool, files=list[RemovedFileModel])


class Removing(BaseModel):
    """Spare files that a person wants to remove, and where they go."""

    videos: list[int] = Field(min_length=1, max_length=_MOST, description="Numbers of spare files of the groups.")
    folder: str | None = Field(
        None, max_length=4096, description="Folder of the server's computer to move them to; None for the trash."
    )


class Undoing(BaseModel):
    """Files to bring back."""

    name: str = Field(max_length=100, description="Name of the removal.")
    paths: list[str] | None = Field(None, max_length=_MOST, description="Only these files; None for all.")


@router.post("/api/duplicates/remove", status_code=202)
async def remove_files(site: CurrentSite, removing: Removing) -> JobState:
    """Move spare files of the groups to the trash or to a folder, as a job; nothing is deleted."""
    site.check_writable()
    await bring_up_to_date(site, wait=True)
    groups = await site.lists.run(partial(_choose, site, removing.videos))
    folder = None if removing.folder is None else await site.lists.run(partial(check_folder, removing.folder))
    count = len(removing.videos)
    words = f"Move {count} {'file' if count == 1 else 'files'} to {'the trash' if folder is None else folder}"

    def work(job: Job) -> dict[str, Any]:
        removals = Removals(site.index.place)
        try:
            removal, actions = removals.carry_out(
                groups, folder=folder, records=site.index.listing().records, on_progress=job.report
            )
        finally:
            job.report_quietly("bringing the groups up to date")
            site.groups.regroup()
        return _result(actions, "" if removal is None else removal.name, folder)

    return site.jobs.start("removal", words, work).state()


@router.post("/api/duplicates/undo", status_code=202)
async def undo_removal(site: CurrentSite, undoing: Undoing) -> JobState:
    """Bring the files of a removal back, as a job."""
    site.check_writable()

    def work(job: Job) -> dict[str, Any]:
        job.report(0, 0, "reading what was moved")
        try:
            actions = Removals(site.index.place).undo(undoing.name, paths=undoing.paths)
        finally:
            job.report_quietly("bringing the groups up to date")
            site.groups.regroup()
        return _result(actions, undoing.name)

    return site.jobs.start("removal", "Bring files back", work).state()


@router.get("/api/duplicates/removals", response_model=list[RemovalModel])
async def list_removals(site: CurrentSite) -> ResultResponse:
    """What was removed from this page and by ``vidkin apply``, newest first, and where it is."""

    def work() -> list[dict[str, Any]]:
        if site.index.place.folder is None:
            return []
        return [
            {
                **removal.to_dict(),
                "files": [{**file.to_dict(), "name": base_name(file.path)} for file in removal.files],
            }
            for removal in Removals(site.index.place).all(limit=_HISTORY)
        ]

    return ResultResponse(await site.lists.run(work))


def _choose(site: Site, videos: list[int]) -> list[DuplicateGroup]:
    """The groups of these videos, each with its best file and those to remove.

    Raises:
        InvalidArgumentError: One of them is not a spare file of a group.
    """
    wanted = {site.index.record(video).path for video in videos}
    chosen = []
    for group in current_groups(site):
        spare = tuple(member for member in group.members if member.path in wanted and member.is_spare)
        if spare:
            wanted -= {member.path for member in spare}
            chosen.append(replace(group, members=(group.best, *spare)))
    if wanted:
        raise InvalidArgumentError(
            f"{printable(min(wanted))} must be a spare copy to be removed: one whose group has a better one that shows "
            "all of it, without a doubt; confirm it as a copy first, or keep another"
        )
    return chosen


def check_folder(name: str) -> str:
    """An absolute path of a folder, which may not exist yet.

    Raises:
        InvalidArgumentError: It is none.
    """
    path = os.path.expanduser(name.strip())
    try:
        os.fsencode(path)
        is_file = "\0" not in path and os.path.lexists(path) and not os.path.isdir(path)
    except (ValueError, UnicodeError):
        is_file = True
    if "\0" in path or is_file or not os.path.isabs(path):
        raise InvalidArgumentError(f"{name}: name the whole path of a folder, for example /home/me/Copies")
    return path


def _result(actions: list[FileAction], name: str, folder: str | None = None) -> dict[str, Any]:
    # What belongs to a video is not counted as a file of its own.
    done = [action for action in actions if action.outcome != "skipped" and not action.video]
    skipped = [action for action in actions if action.outcome == "skipped"]
    return {
        "name": name,
        "folder": folder,
        "done": len(done),
        "bytes": sum(action.size for action in done),
        "skipped": [{"path": printable(action.path), "cause": printable(action.cause)} for action in skipped],
    }
