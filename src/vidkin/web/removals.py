"""Remove duplicates: proofs, moves to the trash or a folder, undo, and the history.

All of it is what ``vidkin apply`` does: a plan, its log, and the same functions.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from vidkin.errors import InvalidArgumentError
from vidkin.files import FileAction, Finding
from vidkin.index import DuplicateGroup, Removal, Removals, RemovedFile
from vidkin.rendering.duplicates import describe_findings
from vidkin.rendering.text import number, printable
from vidkin.web.duplicates import MAX_REASONS, bring_up_to_date, current_groups, removal_values
from vidkin.web.jobs import Job
from vidkin.web.parameters import Body, VideoId
from vidkin.web.site import (
    CurrentSite,
    Page,
    ResultResponse,
    Site,
    accepted,
    answer_model,
    job_model,
    result_model,
)

router = APIRouter(tags=["duplicates"])
removals_page = Page(router)

# Maximum number of files in a request.
_MAX_FILES = 100_000

RemovedFileModel: Any = result_model(RemovedFile, name=str)
RemovalModel: Any = result_model(Removal, can_undo=bool, files=list[RemovedFileModel])


class Removing(Body):
    """Spare files to remove, and their destination."""

    videos: list[VideoId] = Field(
        min_length=1, max_length=_MAX_FILES, description="Numbers of spare files of the groups."
    )
    folder: str | None = Field(
        None, max_length=4096, description="Folder on the server's computer to move them to; null for the trash."
    )


class Undoing(Body):
    """Files to restore."""

    name: str = Field(max_length=100, description="Name of the removal.")
    paths: list[str] | None = Field(None, max_length=_MAX_FILES, description="Only these files; null for all.")


class SkippedFile(BaseModel):
    """A file that was kept."""

    path: str = Field(description="Path of the file.")
    cause: str = Field(description="Why it was kept.")
    findings: list[Finding] = Field(description="Content that no other file has.")


RemovalJob = job_model(
    "removal",
    answer_model(
        "RemovalResult",
        "Outcome for the files.",
        name=str,
        folder=str | None,
        done=int,
        bytes=int,
        proven=int | None,
        skipped=list[SkippedFile],
    ),
)


@router.post("/api/duplicates/remove", status_code=202, response_model=RemovalJob)
async def remove_files(site: CurrentSite, removing: Removing) -> ResultResponse:
    """Move spare files to the trash or a folder, as a job, after proving by decoding that nothing is lost without them;
    nothing is deleted. The result lists files that were kept, with content that no other file has."""
    site.check_writable()
    await bring_up_to_date(site, wait=True)
    paths = await site.lists.run(lambda: {site.index.record(video).path for video in removing.videos})
    groups = await site.lists.run(partial(_choose, site, paths))
    folder = None if removing.folder is None else await site.lists.run(partial(check_folder, removing.folder))
    words = f"Move {number(len(paths), 'file')} to {'the trash' if folder is None else folder}"

    def work(job: Job) -> dict[str, Any]:
        try:
            proven = _prove(site, job, groups, paths)
            removal, actions = Removals(site.index.place).carry_out(
                proven, folder=folder, records=site.index.listing().records, on_progress=job.report
            )
        finally:
            job.report_quietly("updating the groups")
            site.groups.regroup()
        actions = [action for action in actions if action.path in paths or action.video in paths]
        staying = _list_kept(proven, paths, actions)
        return _result(actions, "" if removal is None else removal.name, folder, staying)

    return accepted(site.jobs.start("removal", words, work))


@router.post("/api/duplicates/prove", status_code=202, response_model=RemovalJob)
async def prove_groups(site: CurrentSite) -> ResultResponse:
    """Prove by decoding which spare files can be removed without loss, as a job; nothing is moved. Proofs are stored.
    The result has the number of proven files and lists the others, with content that no other file has.
    """
    await bring_up_to_date(site, wait=True)
    groups = [
        group
        for group in await site.lists.run(partial(current_groups, site))
        if any(member.is_spare for member in group.members)
    ]

    def work(job: Job) -> dict[str, Any]:
        try:
            proven = _prove(site, job, groups, None)
        finally:
            job.report_quietly("updating the groups")
            site.groups.regroup()
        spare = {member.path for group in groups for member in group.members if member.is_spare}
        count = sum(member.is_proven for group in proven for member in group.members)
        return {**_result([], ""), "proven": count, "skipped": list(_list_kept(proven, spare).values())}

    return accepted(site.jobs.start("removal", "Prove what can be removed", work))


@router.post("/api/duplicates/undo", status_code=202, response_model=RemovalJob)
async def undo_removal(site: CurrentSite, undoing: Undoing) -> ResultResponse:
    """Restore the files of a removal, as a job."""
    site.check_writable()

    def work(job: Job) -> dict[str, Any]:
        job.report(0, 0, "reading the log")
        try:
            actions = Removals(site.index.place).undo(undoing.name, paths=undoing.paths)
        finally:
            job.report_quietly("updating the groups")
            site.groups.regroup()
        return _result(actions, undoing.name)

    return accepted(site.jobs.start("removal", "Restore files", work))


@router.get("/api/duplicates/removals", response_model=list[RemovalModel])
async def list_removals(site: CurrentSite) -> ResultResponse:
    """What was removed from this page and by `vidkin apply`, newest first, and where it is."""
    return ResultResponse(await site.lists.run(lambda: removal_values(site)))


def _choose(site: Site, paths: Collection[str]) -> list[DuplicateGroup]:
    """The groups that contain these files.

    Raises:
        InvalidArgumentError: A file is not a spare file of a group.
    """
    chosen, wanted = [], set(paths)
    for group in current_groups(site):
        spare = {member.path for member in group.members if member.path in wanted and member.is_spare}
        if spare:
            wanted -= spare
            chosen.append(group)
    if wanted:
        raise InvalidArgumentError(
            f"{printable(min(wanted))}: no better copy in its group is known to show all of it; confirm it as a copy "
            "first, or keep another file of the group"
        )
    return chosen


def _prove(site: Site, job: Job, groups: list[DuplicateGroup], chosen: Collection[str] | None) -> list[DuplicateGroup]:
    """Prove which files of groups can be removed; after a stop, proofs made so far are kept."""
    spare = [member.path for group in groups for member in group.members if member.is_spare]
    count = len(spare if chosen is None else chosen)

    def report(done: int, total: int) -> None:
        file = min(1 + done * count // max(total, 1), count)
        job.report(done, total, f"decoding {file} of {number(count, 'file')} to prove that nothing is lost")

    return site.groups.prove(groups, chosen, report)


def _list_kept(
    groups: list[DuplicateGroup], chosen: Collection[str], actions: Sequence[FileAction] = ()
) -> dict[str, dict[str, Any]]:
    """The chosen files that are not proven to be contained in a kept file, by path, with causes.

    Args:
        groups: The groups after the proof.
        chosen: Paths of the files to remove.
        actions: Actions of the removal, whose causes, such as a changed file, take precedence over doubts.
    """
    causes = {action.path: action.cause for action in actions}
    staying = {}
    for member in (member for group in groups for member in group.members):
        if member.path not in chosen or member.is_proven:
            continue
        cause = causes.get(member.path, "")
        if not cause or member.doubt in cause:
            cause = "; ".join(describe_findings(member.findings, MAX_REASONS)) or member.doubt
        if member.best:
            cause = "it contains most of the others"
        staying[member.path] = {
            "path": printable(member.path),
            "cause": printable(cause),
            "findings": [finding.to_dict() for finding in member.findings],
        }
    return staying


def check_folder(name: str) -> str:
    """Check that the path of a folder is absolute; the folder need not exist.

    Raises:
        InvalidArgumentError: The path is not absolute.
    """
    path = os.path.expanduser(name.strip())
    try:
        os.fsencode(path)
        is_file = "\0" not in path and os.path.lexists(path) and not os.path.isdir(path)
    except (ValueError, UnicodeError):
        is_file = True
    if "\0" in path or is_file or not os.path.isabs(path):
        raise InvalidArgumentError(f"{name}: enter the absolute path of a folder, for example /home/me/Copies")
    return path


def _result(
    actions: list[FileAction],
    name: str,
    folder: str | None = None,
    staying: Mapping[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    staying = staying or {}
    # Companion files of a video are not counted separately.
    done = [action for action in actions if action.outcome != "skipped" and not action.video]
    skipped = [
        {"path": printable(action.path), "cause": printable(action.cause), "findings": []}
        for action in actions
        if action.outcome == "skipped" and action.path not in staying
    ]
    return {
        "name": name,
        "folder": folder,
        "done": len(done),
        "bytes": sum(action.size for action in done),
        "proven": None,
        "skipped": [*skipped, *staying.values()],
    }
