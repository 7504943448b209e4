"""Remove duplicates: proofs, moves to the trash or a folder, undo, and the history.

Removals work as in ``vidkin apply``: with a plan, its log, and the same functions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from vidkin.errors import InvalidArgumentError
from vidkin.files import FileAction, Finding
from vidkin.index import DuplicateGroup, Removal, Removals, RemovedFile
from vidkin.rendering.duplicates import describe_findings
from vidkin.rendering.text import number, printable
from vidkin.web.duplicates import MAX_REASONS, GroupedSite, current_groups, removal_values
from vidkin.web.files import absolute_path
from vidkin.web.jobs import Job
from vidkin.web.routes import Body, Page, VideoId, extends
from vidkin.web.site import CurrentSite, Site, WritableSite, check_writable

router = Page("duplicates")

# Maximum number of files in a request.
_MAX_FILES = 100_000


@extends(RemovedFile)
class RemovedFileModel:
    """A file of a removal.

    Attributes:
        name: Name of the file in printable form.
    """

    name: str


@extends(Removal)
class RemovalModel:
    """A removal.

    Attributes:
        files: The files.
    """

    files: list[RemovedFileModel]


class Removing(Body):
    """Spare files to remove, and their destination.

    Attributes:
        videos: Numbers of spare files of the groups.
        folder: Folder on the server's computer to move them to; null for the trash.
    """

    videos: list[VideoId] = Field(min_length=1, max_length=_MAX_FILES)
    folder: str | None = Field(None, max_length=4096)


class Undoing(Body):
    """Files to restore.

    Attributes:
        name: Name of the removal.
        paths: Only these files; null for all.
    """

    name: str = Field(max_length=100)
    paths: list[str] | None = Field(None, max_length=_MAX_FILES)


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was kept.

    Attributes:
        path: Path of the file.
        cause: Why it was kept.
        findings: Content that no other file has.
    """

    path: str
    cause: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class RemovalResult:
    """Summary of a removal or its undoing.

    Attributes:
        name: Name of the removal, for `POST /api/duplicates/undo`; empty if nothing was moved.
        folder: Folder to which they were moved; null for the trash.
        done: Number of files that were moved or restored.
        bytes: Size of the files that were moved or restored.
        proven: Number of files that can be removed without loss; null if nothing was to be proven.
        skipped: Files that were kept, and why.
    """

    name: str
    folder: str | None
    done: int
    bytes: int
    proven: int | None
    skipped: tuple[SkippedFile, ...]


@router.job("/api/duplicates/remove", "removal", RemovalResult)
def remove_files(site: GroupedSite, removing: Removing) -> Job:
    """Move spare files to the trash or a folder, as a job, after proving by decoding that nothing is lost without them;
    nothing is deleted. The result lists files that were kept, with content that no other file has."""
    check_writable(site)
    paths = {record.path for record in site.index.records(removing.videos)}
    groups = _choose(site, paths)
    folder = None if removing.folder is None else check_folder(removing.folder)

    def work(job: Job) -> RemovalResult:
        proven = _prove(site, job, groups, paths)
        removal, actions = Removals(site.index.place).carry_out(
            proven, folder=folder, records=site.index.listing().records, on_progress=job.report
        )
        actions = [action for action in actions if action.path in paths or action.video in paths]
        return _result(actions, "" if removal is None else removal.name, folder, _list_kept(proven, paths, actions))

    title = f"Move {number(len(paths), 'file')} to {'the trash' if folder is None else folder}"
    return _start(site, title, work)


@router.job("/api/duplicates/prove", "removal", RemovalResult)
def prove_groups(site: GroupedSite) -> Job:
    """Start a job that decodes the spare files to prove which can be removed without loss. Nothing is moved, and the
    proofs are stored. The result gives the number of proven files and lists the rest, along with the content found in
    no other file.
    """
    groups = [group for group in current_groups(site) if any(member.is_spare for member in group.members)]

    def work(job: Job) -> RemovalResult:
        proven = _prove(site, job, groups, None)
        spare = {member.path for group in groups for member in group.members if member.is_spare}
        count = sum(member.is_proven for group in proven for member in group.members)
        return replace(_result([], ""), proven=count, skipped=tuple(_list_kept(proven, spare).values()))

    return _start(site, "Prove what can be removed", work)


@router.job("/api/duplicates/undo", "removal", RemovalResult)
def undo_removal(site: WritableSite, undoing: Undoing) -> Job:
    """Restore the files of a removal, as a job."""

    def work(job: Job) -> RemovalResult:
        job.report(0, 0, "reading the log")
        return _result(Removals(site.index.place).undo(undoing.name, paths=undoing.paths), undoing.name)

    return _start(site, "Restore files", work)


@router.get("/api/duplicates/removals", response_model=list[RemovalModel])
def list_removals(site: CurrentSite) -> object:
    """What was removed from this page and by `vidkin apply`, newest first, and where it is."""
    return removal_values(site)


def _start(site: Site, title: str, work: Callable[[Job], RemovalResult]) -> Job:
    """Start a job that brings the groups up to date at its end, however it ends."""

    def work_and_regroup(job: Job) -> RemovalResult:
        try:
            return work(job)
        finally:
            job.report_quietly("updating the groups")
            site.groups.regroup()

    return site.jobs.start("removal", title, work_and_regroup)


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
) -> dict[str, SkippedFile]:
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
        staying[member.path] = SkippedFile(printable(member.path), printable(cause), member.findings)
    return staying


def check_folder(name: str) -> str:
    """Check that the path of a folder is absolute; the folder need not exist.

    Raises:
        InvalidArgumentError: The path is not absolute, or is a file.
    """
    path = absolute_path(name)
    if os.path.lexists(path) and not os.path.isdir(path):
        raise InvalidArgumentError(f"{name}: is not a folder; enter the path of a folder")
    return path


def _result(
    actions: list[FileAction], name: str, folder: str | None = None, staying: Mapping[str, SkippedFile] | None = None
) -> RemovalResult:
    staying = staying or {}
    # Companion files of a video are not counted separately.
    done = [action for action in actions if action.outcome != "skipped" and not action.video]
    skipped = [
        SkippedFile(printable(action.path), printable(action.cause), ())
        for action in actions
        if action.outcome == "skipped" and action.path not in staying
    ]
    size = sum(action.size for action in done)
    return RemovalResult(name, folder, len(done), size, None, (*skipped, *staying.values()))
