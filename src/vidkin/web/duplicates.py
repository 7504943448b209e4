"""Duplicates: groups of copies with frames of the same moments, verdicts, and exports of tables and plans."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import Field

from vidkin._base.values import write_csv_rows
from vidkin.errors import CollectionMismatchError
from vidkin.files import plan_text
from vidkin.index import DuplicateGroup, DuplicateMember, Removals, VideoRecord, is_gone, plan_removal
from vidkin.rendering.duplicates import (
    describe_findings,
    describe_member,
    describe_removable,
    describe_traits,
    duplicate_cells,
)
from vidkin.rendering.moments import SHARES, AlignedPart, align_group, matching_moments
from vidkin.rendering.text import clock, number, printable
from vidkin.similarity import Segment
from vidkin.web.groups import FoundGroups, Wish
from vidkin.web.jobs import Job, JobRunningError
from vidkin.web.parameters import MAX_NUMBER, Body, Offset, VideoId
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
    result_model,
    thumbnail_address,
)

router = APIRouter(tags=["duplicates"])
duplicates_page = Page(router, "Duplicates", "/duplicates")

GroupFilter = Literal["all", "spare", "doubtful", "other"]
GroupSort = Literal[
    "path", "savings", "copies", "size", "length", "pixels", "rate", "sound", "date", "folder", "reason"
]
_SORTS: dict[str, Callable[[DuplicateGroup], Any]] = {
    "path": lambda group: group.best.path,
    "savings": lambda group: (-group.savings, group.best.path),
    "copies": lambda group: (-len(group.members), group.best.path),
}
# Sort columns: the value of a copy. A group sorts by its smallest value, or in descending order by its largest.
_COLUMNS: dict[str, Callable[[DuplicateMember, DuplicateGroup], Any]] = {
    "size": lambda member, _: member.size,
    "length": lambda member, _: member.duration,
    "pixels": lambda member, _: member.width * member.height,
    "rate": lambda member, _: member.traits.frame_rate if member.traits else 0.0,
    "sound": lambda member, _: (len(member.traits.sounds), member.traits.channels) if member.traits else (0, 0),
    "date": lambda member, _: member.traits.date if member.traits else "",
    "folder": lambda member, _: os.path.dirname(member.path),
    "reason": lambda member, group: describe_member(member, group, most_findings=0),
}
# Seconds the page waits for stored groups to be put together, and between polls.
_MAX_WAIT, _POLL_SECONDS = 3.0, 0.02
# Maximum number of copies of one video in a request.
_MAX_COPIES = 100_000
# Removals that the history shows, and what became of a file of them.
_MAX_REMOVALS = 100
_FATES = {
    "removed": "moved",
    "restored": "restored",
    "unfinished": "not finished: undo it, or run `vidkin apply` with its plan",
    "stayed": "stayed",
}
MAX_REASONS = 3
"""Maximum number of findings shown for a file; the others are counted."""

_SegmentModel: Any = result_model(Segment, called="SegmentOfCopy")
_PartModel: Any = result_model(AlignedPart)
# Besides the fields of the member: ``id``, ``compared_with_id``: numbers of the videos, None if no longer in the index;
# ``name``, ``folder``: in printable form; ``words``: the role of the file; ``spare``: as ``is_spare``; ``reasons``: at
# most three findings in words, and the number of further ones; ``details``: traits in which the files of the group
# differ; ``pictures``: addresses of its frames at the same moments, None where it lacks one; ``moments``: their times,
# as text; ``aligned``: whether these moments are known to be the same; ``parts``: parts of the best file that it shows,
# for players; ``evidence``: findings with a time, with frames of this file and the best one, None where the best one
# lacks the moment.
EvidenceModel: Any = answer_model(
    "EvidenceOfFinding",
    "A finding with a time, and the frames of both files at that time.",
    text=str,
    moment=str,
    picture=str,
    kept_picture=str | None,
)
MemberModel: Any = result_model(
    DuplicateMember,
    is_spare=bool,
    is_proven=bool,
    id=int | None,
    compared_with_id=int | None,
    name=str,
    folder=str,
    words=str,
    reasons=list[str],
    details=list[str],
    spare=bool,
    pictures=list[str | None],
    moments=list[str],
    aligned=bool,
    segments=list[_SegmentModel],
    parts=list[_PartModel],
    evidence=list[EvidenceModel],
)
# ``key``: identifies the group as long as its files are the same; ``number``: its position among all groups;
# ``removable``: the bytes that can be removed, in words.
GroupModel: Any = result_model(
    DuplicateGroup, savings=int, members=list[MemberModel], key=str, number=int, removable=str
)
# ``searched``: videos were compared; ``is_preview``: a search is running; ``uncompared``: videos not compared yet;
# ``total``: groups that pass the filter; ``copies``: files besides the best ones; ``spare``: files that may be
# removable; ``savings``: their bytes; ``proven``, ``proven_bytes``: files that can be removed without loss, and their
# bytes; ``of_all``: all groups, regardless of the filter.
DuplicateList: Any = answer_model(
    "DuplicateList",
    "A page of the groups of duplicates, and totals of all groups that pass the filter.",
    searched=bool,
    is_preview=bool,
    uncompared=int,
    videos=int,
    wish=Wish,
    total=int,
    of_all=int,
    copies=int,
    spare=int,
    savings=int,
    proven=int,
    proven_bytes=int,
    groups=list[GroupModel],
)


class Verdict(Body):
    """A verdict on two videos of the index."""

    first: VideoId = Field(description="Number of the first video.")
    second: VideoId = Field(description="Number of the second video.", examples=[2])
    verdict: Literal["match", "not a match", "forget"] = Field(description="`forget` undoes an earlier verdict.")


class Keeper(Body):
    """The copy of a group to keep."""

    video: VideoId = Field(description="Number of the video.")
    instead_of: list[VideoId] = Field(max_length=_MAX_COPIES, description="Numbers of the others.", examples=[[2]])


DuplicatesJob = job_model("duplicates", answer_model("DuplicatesResult", "Result of the search.", groups=int))
WordsOfPath = Annotated[
    str, Query(description="Words that must all occur in the path of a file of the group.", examples=["holiday"])
]
GroupsShown = Annotated[
    GroupFilter,
    Query(description="Groups to list: `spare` with removable files, `doubtful`, or `other` than whole copies."),
]
Order = Annotated[GroupSort, Query(description="Sort order.")]
Descending = Annotated[bool, Query(description="Whether the largest values come first.")]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Number of verdicts on pairs that the index stores."""

    count: int


@dataclass(frozen=True, slots=True)
class _View:
    """Filter and order of the groups to show.

    Attributes:
        words: Words that must all occur in the path of one file.
        show: Kind of groups.
        sort: Sort order.
        descending: Whether the largest values come first.
    """

    words: str = ""
    show: GroupFilter = "all"
    sort: GroupSort = "path"
    descending: bool = False

    def choose(self, groups: Sequence[DuplicateGroup]) -> list[DuplicateGroup]:
        words = self.words.casefold().split()
        chosen = [group for group in groups if self._fits(group) and _has_words(group, words)]
        return sorted(chosen, key=_SORTS.get(self.sort, self._extreme), reverse=self.descending)

    def _extreme(self, group: DuplicateGroup) -> Any:
        values = (_COLUMNS[self.sort](member, group) for member in group.members if not member.best)
        return (max if self.descending else min)(values)

    def _fits(self, group: DuplicateGroup) -> bool:
        if self.show == "spare":
            return any(member.is_spare for member in group.members)
        if self.show == "doubtful":
            return any(member.doubt for member in group.members)
        return self.show == "all" or any(member.relation != "whole" for member in group.members)

    def address(self, page: int) -> str:
        descending = "yes" if self.descending else ""
        values = {"q": self.words, "show": self.show, "sort": self.sort, "descending": descending, "page": page}
        plain = {"q": "", "show": "all", "sort": "path", "descending": "", "page": 1}
        rest = urlencode({name: value for name, value in values.items() if value != plain[name]})
        return f"/duplicates?{rest}" if rest else "/duplicates"


@router.get("/duplicates", response_class=HTMLResponse, include_in_schema=False)
async def show_duplicates(
    request: Request,
    site: CurrentSite,
    q: str = "",
    show: GroupFilter = "all",
    sort: GroupSort = "path",
    descending: bool = False,
    number: Annotated[int, Query(alias="page", ge=1)] = 1,
) -> HTMLResponse:
    """Page of the groups, including changes made by commands and other pages."""
    size, view = site.settings.groups_a_page, _View(q, show, sort, descending)
    able = site.index.has_segments
    is_empty = await site.lists.run(site.is_empty)
    if able and not is_empty:
        await bring_up_to_date(site)
    duplicates = await site.lists.run(lambda: _list(site, view, (number - 1) * size, size))
    pages = max(-(-duplicates["total"] // size), 1)
    values = {
        "duplicates": duplicates,
        "page": min(number, pages),
        "pages": pages,
        "is_empty": is_empty,
        "able": able,
        "has_sound": site.index.has_sound,
        "is_behind": able and not is_empty and not site.groups.is_current(),
        "view": view,
        "folders": await site.lists.run(lambda: _folders(site)),
        "removals": await site.lists.run(lambda: removal_values(site)),
        "fates": _FATES,
    }
    return site.page("duplicates.html", request, values)


def removal_values(site: Site) -> list[dict[str, Any]]:
    """What was removed, the newest first, with the names of files as they can be shown."""
    if site.index.place.folder is None:
        return []
    return [
        {**removal.to_dict(), "files": [{**file.to_dict(), "name": base_name(file.path)} for file in removal.files]}
        for removal in Removals(site.index.place).all(limit=_MAX_REMOVALS)
    ]


@router.get("/api/duplicates", response_model=DuplicateList)
async def list_duplicates(
    site: CurrentSite,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of groups.", examples=[50])] = 50,
    q: WordsOfPath = "",
    show: GroupsShown = "all",
    sort: Order = "path",
    descending: Descending = False,
) -> ResultResponse:
    """List the groups of duplicates of the last search by this server or a command, updated by verdicts and
    removals."""
    await bring_up_to_date(site, wait=True)
    return ResultResponse(await site.lists.run(lambda: _list(site, _View(q, show, sort, descending), offset, limit)))


@router.post("/api/duplicates", status_code=202, response_model=DuplicatesJob)
async def find_duplicates(site: CurrentSite, wish: Wish) -> ResultResponse:
    """Search for duplicates, as a job. Groups can be listed as they are found; comparisons are stored for the next
    search."""
    if not site.index.has_segments:
        raise CollectionMismatchError(
            "the scores of this index order kinds of videos and cannot identify copies; serve another index"
        )

    def work(job: Job) -> dict[str, int]:
        def report(done: int, total: int, groups: int) -> None:
            job.report(done, total, f"comparing; {groups} {'group' if groups == 1 else 'groups'} so far")

        return {"groups": len(site.groups.search(wish, report).groups)}

    return accepted(site.jobs.start("duplicates", "Find duplicates", work))


@router.post("/api/duplicates/verdict")
async def decide_pair(site: CurrentSite, verdict: Verdict) -> Verdicts:
    """Store whether two videos are duplicates; the groups are updated at once."""
    site.check_writable()

    # Not a job: even keeping a copy takes only 0.3 s in an index of 67 videos.
    def work() -> Verdicts:
        first, second = (site.index.record(video).path for video in (verdict.first, verdict.second))
        with site.index.writer() as index:
            change = {
                "match": index.confirm,
                "not a match": index.reject,
                "forget": index.forget_decision,
            }[verdict.verdict]
            change(first, second)
            return Verdicts(len(index.decisions()))

    count = await site.lists.run(work)
    await bring_up_to_date(site, wait=True)
    return count


@router.post("/api/duplicates/keep")
async def keep_copy(site: CurrentSite, keeper: Keeper) -> Verdicts:
    """Store which copy to keep; the groups are updated at once."""
    site.check_writable()

    def work() -> Verdicts:
        path = site.index.record(keeper.video).path
        others = [site.index.record(video).path for video in keeper.instead_of]
        with site.index.writer() as index:
            index.prefer(path, instead_of=others)
            return Verdicts(len(index.decisions()))

    count = await site.lists.run(work)
    await bring_up_to_date(site, wait=True)
    return count


@router.get("/api/duplicates/spare")
async def list_spare_files(
    site: CurrentSite,
    q: WordsOfPath = "",
    show: GroupsShown = "all",
    folder: Annotated[str, Query(description="Only files in this folder and below it.")] = "",
    below: Annotated[
        int | None, Query(ge=0, le=MAX_NUMBER, description="Only files smaller than this, bytes.", examples=[1000000])
    ] = None,
) -> dict[str, int]:
    """List the numbers and sizes of all videos that may be removable in the groups that pass the filter."""
    await bring_up_to_date(site, wait=True)

    def work() -> dict[str, int]:
        found: FoundGroups = site.groups.found or FoundGroups()
        ids = _numbers(site)
        members = [member for group in _View(q, show).choose(found.groups) for member in group.members]
        under = os.path.join(folder, "") if folder else ""
        return {
            str(ids[member.path]): member.size
            for member in members
            if member.is_spare
            and member.path in ids
            and member.path.startswith(under)
            and (below is None or member.size < below)
        }

    return await site.lists.run(work)


@router.get("/api/duplicates.csv", response_class=Response, responses=download("text/csv"))
async def export_groups(site: CurrentSite) -> Response:
    """Download the groups as a table with one line per file, as written by `vidkin duplicates -o FILE.csv`."""
    await bring_up_to_date(site, wait=True)

    def work() -> bytes:
        text = io.StringIO()
        write_csv_rows(text, duplicate_cells(current_groups(site)))
        return text.getvalue().encode("utf-8", "surrogateescape")

    return _download(await site.lists.run(work), "duplicates.csv", "text/csv")


@router.get("/api/duplicates/plan.json", response_class=Response, responses=download("application/json"))
async def export_plan(site: CurrentSite) -> Response:
    """Download a plan of the files that can be removed without loss, for `vidkin apply plan.json`; nothing is removed
    until that command runs.

    `POST /api/duplicates/prove` comes first.
    """
    await bring_up_to_date(site, wait=True)

    def work() -> bytes:
        groups = current_groups(site)
        left = sum(member.is_spare and not member.is_proven for group in groups for member in group.members)
        if left:
            raise HTTPException(
                409, f"{number(left, 'file')} may be removable and must be proven first; POST /api/duplicates/prove"
            )
        return plan_text(plan_removal(groups, records=site.index.listing().records)).encode("ascii")

    return _download(await site.searches.run(work), "plan.json", "application/json")


def current_groups(site: Site) -> tuple[DuplicateGroup, ...]:
    """The groups, if they are up to date.

    Raises:
        HTTPException: They are not up to date, or a search is running.
    """
    if not site.index.has_segments or not site.groups.is_current() or site.groups.found is None:
        raise HTTPException(409, "the groups are being updated; wait until that has finished")
    groups: tuple[DuplicateGroup, ...] = site.groups.found.groups
    return groups


def _download(content: bytes, name: str, kind: str) -> Response:
    return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


async def bring_up_to_date(site: Site, *, wait: bool = False) -> None:
    """Group stored comparisons, as a job; wait for it briefly, or until it ends."""
    if not site.index.has_segments or await site.lists.run(site.groups.is_current):
        return

    def work(job: Job) -> dict[str, int]:
        found = site.groups.regroup(lambda done, total: job.report(done, total, "reading stored comparisons"))
        return {"groups": len(found.groups)}

    try:
        job = site.jobs.start("duplicates", "Group stored comparisons", work)
    except JobRunningError as error:
        # Either a search, which shows its own groups, or this very job; verdicts given in the meantime are applied
        # after it.
        job = error.job
    ended = asyncio.get_running_loop().time() + (site.settings.request_seconds if wait else _MAX_WAIT)
    while job.is_running and asyncio.get_running_loop().time() < ended:
        if wait and job.title == "Find duplicates":
            return
        await asyncio.sleep(_POLL_SECONDS)
    if wait and not job.is_running and job.state().state == "done" and not await site.lists.run(site.groups.is_current):
        await bring_up_to_date(site, wait=True)


def _has_words(group: DuplicateGroup, words: Sequence[str]) -> bool:
    return not words or any(all(word in member.path.casefold() for word in words) for member in group.members)


def _numbers(site: Site) -> dict[str, int]:
    return {record.path: record.id for record in site.index.listing().records}


def _folders(site: Site) -> list[str]:
    """Folders of the groups, offered as suggestions where a folder is entered."""
    found: FoundGroups = site.groups.found or FoundGroups()
    return sorted({os.path.dirname(member.path) for group in found.groups for member in group.members})[:50]


def _list(site: Site, view: _View, offset: int, limit: int) -> dict[str, Any]:
    found: FoundGroups = site.groups.found or FoundGroups()
    records = {record.path: record for record in site.index.listing().records}
    groups = view.choose(found.groups)
    members = [member for group in groups for member in group.members]
    is_searched = bool(found.groups) or found.uncompared < found.videos
    return {
        "searched": is_searched,
        "is_preview": found.is_preview,
        "uncompared": found.uncompared,
        "videos": found.videos,
        "wish": found.wish.model_dump(),
        "total": len(groups),
        "of_all": len(found.groups),
        "copies": len(members) - len(groups),
        "spare": sum(member.is_spare for member in members),
        "savings": sum(group.savings for group in groups),
        "proven": sum(member.is_proven for member in members),
        "proven_bytes": sum(member.size for member in members if member.is_proven),
        "groups": [
            _group_values(group, number, records)
            for number, group in enumerate(groups[offset : offset + limit], start=offset + 1)
        ],
    }


def _group_values(group: DuplicateGroup, number: int, records: Mapping[str, VideoRecord]) -> dict[str, Any]:
    moments, aligned = matching_moments(group), align_group(group)
    names = "\0".join(sorted(member.path for member in group.members)).encode("utf-8", "surrogateescape")
    values = partial(_member_values, group=group, records=records)
    return {
        **group.to_dict(),
        "key": hashlib.blake2b(names, digest_size=8).hexdigest(),
        "number": number,
        "removable": describe_removable([group]),
        "members": [
            values(member, times=times, parts=aligned[member.path])
            for member, times in zip(group.members, moments, strict=True)
        ],
    }


def _member_values(
    member: DuplicateMember,
    *,
    group: DuplicateGroup,
    records: Mapping[str, VideoRecord],
    times: Sequence[float | None],
    parts: Sequence[AlignedPart],
) -> dict[str, Any]:
    record = records.get(member.path)
    other = None if member.compared_with is None else records.get(member.compared_with)
    is_aligned = any(time is not None for time in times)
    if not is_aligned:
        times = [share * member.duration for share in SHARES]
    is_shown = record is not None and not is_gone(member.path)
    evidence = [] if record is None or not is_shown else _evidence(member, parts, record, records.get(group.best.path))
    return {
        **member.to_dict(),
        "id": None if record is None or not is_shown else record.id,
        "compared_with_id": None if other is None else other.id,
        "name": base_name(member.path),
        "folder": printable(os.path.dirname(member.path)),
        "words": describe_member(member, group, most_findings=0),
        "reasons": describe_findings(member.findings, MAX_REASONS),
        "details": describe_traits(member, group),
        "spare": member.is_spare,
        "pictures": []
        if record is None or not is_shown
        else [None if time is None else thumbnail_address(record, time) for time in times],
        "moments": ["" if time is None else clock(time) for time in times],
        "aligned": is_aligned,
        "parts": [part.to_dict() for part in parts],
        "evidence": evidence,
    }


def _evidence(
    member: DuplicateMember, parts: Sequence[AlignedPart], record: VideoRecord, kept: VideoRecord | None
) -> list[dict[str, Any]]:
    """Findings with a time, each with frames of both files at its middle."""
    rows = []
    for finding in member.findings:
        if finding.start is None or finding.end is None:
            continue
        time = (finding.start + finding.end) / 2
        shown = ((part, part.start + (time - part.at) / part.rate) for part in parts)
        moment = next((at for part, at in shown if part.start <= at <= part.end), None)
        rows.append(
            {
                "text": printable(finding.text),
                "moment": clock(time),
                "picture": thumbnail_address(record, time),
                "kept_picture": None if moment is None or kept is None else thumbnail_address(kept, moment),
            }
        )
    return rows
