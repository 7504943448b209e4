"""Duplicates: groups of copies with frames of the same moments, verdicts, and exports of tables and plans."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, HTTPException, Query, Request
from fastapi.responses import Response
from pydantic import Field

from vidkin.files import plan_text
from vidkin.index import DuplicateGroup, DuplicateMember, Index, Removals, VideoRecord, plan_removal
from vidkin.rendering import duplicates as words
from vidkin.rendering.moments import SHARES, AlignedPart, align_group, matching_moments
from vidkin.rendering.text import clock, number, printable
from vidkin.similarity import Segment
from vidkin.web import routes
from vidkin.web.collection import Listing
from vidkin.web.groups import FoundGroups, Wish
from vidkin.web.jobs import Job, JobRunningError
from vidkin.web.site import CurrentSite, Site, WritableSite, base_name, cut_page, thumbnail_address

router = routes.Page("duplicates", "Duplicates", "/duplicates")

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
    "reason": lambda member, group: words.describe_member(member, group, most_findings=0),
}
# Seconds the page waits for stored groups to be put together, and between polls.
_MAX_WAIT, _POLL_SECONDS = 3.0, 0.02
# Maximum number of copies of one video in a request.
_MAX_COPIES = 100_000
# Maximum number of removals that the history shows.
_MAX_REMOVALS = 100
MAX_REASONS = 3
"""Maximum number of findings shown for a file; the others are counted."""


@routes.extends(Segment, called="SegmentOfCopy")
class _SegmentModel:
    """A segment that a copy shares with the best file."""


@routes.extends(AlignedPart)
class _PartModel:
    """A part of the best file, for players."""


@dataclass(frozen=True, slots=True)
class EvidenceOfFinding:
    """A finding with a time, and the frames of both files at that time.

    Attributes:
        text: The finding, in words.
        moment: Time in this file.
        picture: Address of the frame of this file.
        kept_picture: Address of the frame of the best file; null if it does not show that moment.
    """

    text: str
    moment: str
    picture: str
    kept_picture: str | None


@routes.extends(DuplicateMember)
class MemberModel:
    """A file of a group.

    Attributes:
        id: Number of the video; null if it is no longer in the index.
        compared_with_id: Number of the video it was compared with; null if that video is no longer in the index.
        name: Name of the file in printable form.
        folder: Folder of the file in printable form.
        words: The role of the file, in words.
        reasons: At most three findings in words, and the number of further ones.
        details: Traits in which the files of the group differ, in words.
        spare: Whether the file may be removable.
        pictures: Addresses of images at the same moments; null where the file lacks one.
        moments: Times of the images, as text.
        aligned: Whether the images are known to show the same moments.
        parts: Parts of the best file that it shows.
        evidence: Findings with a time, and the frames of both files at that time.
    """

    id: int | None
    compared_with_id: int | None
    name: str
    folder: str
    words: str
    reasons: list[str]
    details: list[str]
    spare: bool
    pictures: list[str | None]
    moments: list[str]
    aligned: bool
    segments: list[_SegmentModel]
    parts: list[_PartModel]
    evidence: list[EvidenceOfFinding]


@routes.extends(DuplicateGroup)
class GroupModel:
    """A group of copies.

    Attributes:
        key: Identifies the group as long as it is unchanged.
        number: Position among all groups.
        removable: Size of the removable files, in words.
    """

    members: list[MemberModel]
    key: str
    number: int
    removable: str


@dataclass(frozen=True, slots=True)
class DuplicateList:
    """A page of the groups of duplicates, and totals of all groups that pass the filter.

    Attributes:
        searched: Whether videos were compared.
        is_preview: Whether a search is still running and roles may change.
        uncompared: Number of videos that have not been compared yet.
        videos: Number of videos.
        wish: Settings of the search.
        total: Number of all matching items.
        of_all: Number of all groups, regardless of the filter.
        copies: Number of files besides the best ones.
        spare: Number of files that may be removable.
        savings: Size of the files that may be removable, bytes.
        proven: Number of files that can be removed without loss.
        proven_bytes: Size of the files that can be removed without loss, bytes.
        groups: The groups.
    """

    searched: bool
    is_preview: bool
    uncompared: int
    videos: int
    wish: Wish
    total: int
    of_all: int
    copies: int
    spare: int
    savings: int
    proven: int
    proven_bytes: int
    groups: list[GroupModel]


class Verdict(routes.Body):
    """A verdict on two videos of the index.

    Attributes:
        first: Number of the first video.
        second: Number of the second video.
        verdict: `forget` undoes an earlier verdict.
    """

    first: routes.VideoId
    second: routes.VideoId = Field(examples=[2])
    verdict: Literal["match", "not a match", "forget"]


class Keeper(routes.Body):
    """The copy of a group to keep.

    Attributes:
        video: Number of the video.
        instead_of: Numbers of the others.
    """

    video: routes.VideoId
    instead_of: list[routes.VideoId] = Field(max_length=_MAX_COPIES, examples=[[2]])


@dataclass(frozen=True, slots=True)
class DuplicatesResult:
    """Result of the search.

    Attributes:
        groups: Number of groups.
    """

    groups: int


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Number of verdicts on pairs that the index stores.

    Attributes:
        count: Number of verdicts that the index remembers.
    """

    count: int


@dataclass(frozen=True, slots=True)
class GroupView:
    """Filter and order of the groups to show.

    Attributes:
        q: Words that must all occur in the path of a file of the group.
        show: Groups to list: ``spare`` with removable files, ``doubtful``, or ``other`` than whole copies.
        sort: Sort order.
        descending: Whether the largest values come first.
    """

    q: str = ""
    show: GroupFilter = "all"
    sort: GroupSort = "path"
    descending: bool = False

    def choose(self, groups: Sequence[DuplicateGroup]) -> list[DuplicateGroup]:
        wanted = self.q.casefold().split()
        chosen = [group for group in groups if self._fits(group) and _has_words(group, wanted)]
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
        return routes.address_of("/duplicates", self, page)


ChosenView = Annotated[GroupView, Depends()]


async def bring_up_to_date(site: Site, *, wait: bool = False) -> None:
    """Group stored comparisons, as a job; wait for it briefly, or until it ends."""
    is_page_of_nothing = not wait and await site.lists.run(site.is_empty)
    if not site.index.has_segments or is_page_of_nothing or await site.lists.run(site.groups.is_current):
        return

    def work(job: Job) -> DuplicatesResult:
        found = site.groups.regroup(lambda done, total: job.report(done, total, "reading stored comparisons"))
        return DuplicatesResult(len(found.groups))

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


async def bring_site_up_to_date(request: Request, site: CurrentSite) -> Site:
    """The site, after :func:`bring_up_to_date`; a page does not wait long."""
    await bring_up_to_date(site, wait=request.url.path.startswith("/api/"))
    return site


GroupedSite = Annotated[Site, Depends(bring_site_up_to_date)]
"""Function parameter that receives the :class:`Site`, whose groups reflect everything stored so far; for a page, they
may still be updated in the background."""


@router.page("/duplicates", "duplicates.html")
def show_duplicates(site: GroupedSite, view: ChosenView, page: routes.PageNumber = 1) -> dict[str, Any]:
    """Page of the groups, including changes made by commands and other pages."""
    groups, size = view.choose(_found(site).groups), site.settings.groups_a_page
    _, pager = cut_page(groups, page, size)
    return {
        "duplicates": _describe(site, groups, (pager["page"] - 1) * size, size),
        **pager,
        "is_behind": site.index.has_segments and not site.is_empty() and not site.groups.is_current(),
        "view": view,
        "folders": _folders(site),
        "removals": removal_values(site),
    }


def removal_values(site: Site) -> list[dict[str, Any]]:
    """The removals, newest first, with printable file names."""
    if site.index.place.folder is None:
        return []
    return [
        {**removal.to_dict(), "files": [{**file.to_dict(), "name": base_name(file.path)} for file in removal.files]}
        for removal in Removals(site.index.place).all(limit=_MAX_REMOVALS)
    ]


@router.get("/api/duplicates", response_model=DuplicateList)
def list_duplicates(
    site: GroupedSite,
    view: ChosenView,
    offset: routes.Offset = 0,
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of groups.", examples=[50])] = 50,
) -> dict[str, Any]:
    """List the groups of duplicates of the last search by this server or a command, updated by verdicts and
    removals."""
    return _describe(site, view.choose(_found(site).groups), offset, limit)


@router.job("/api/duplicates", "duplicates", DuplicatesResult)
def find_duplicates(site: CurrentSite, wish: Wish) -> Job:
    """Search for duplicates, as a job. Groups can be listed as they are found; comparisons are stored for the next
    search."""
    site.index.check_segments()

    def work(job: Job) -> DuplicatesResult:
        def report(done: int, total: int, groups: int) -> None:
            job.report(done, total, f"comparing; {number(groups, 'group')} so far")

        return DuplicatesResult(len(site.groups.search(wish, report).groups))

    return site.jobs.start("duplicates", "Find duplicates", work)


@router.post("/api/duplicates/verdict")
async def decide_pair(site: WritableSite, verdict: Verdict) -> Verdicts:
    """Store whether two videos are duplicates; the groups are updated at once."""

    def decide(index: Index) -> None:
        change = {"match": index.confirm, "not a match": index.reject, "forget": index.forget_decision}
        first, second = site.index.records([verdict.first, verdict.second])
        change[verdict.verdict](first.path, second.path)

    return await _decide(site, decide)


@router.post("/api/duplicates/keep")
async def keep_copy(site: WritableSite, keeper: Keeper) -> Verdicts:
    """Store which copy to keep; the groups are updated at once."""

    def decide(index: Index) -> None:
        kept, *others = site.index.records([keeper.video, *keeper.instead_of])
        index.prefer(kept.path, instead_of=[other.path for other in others])

    return await _decide(site, decide)


async def _decide(site: Site, decide: Callable[[Index], None]) -> Verdicts:
    # Not a job: even keeping a copy takes only 0.3 s in an index of 67 videos.
    def work() -> Verdicts:
        with site.index.writer() as index:
            decide(index)
            return Verdicts(len(index.decisions()))

    count = await site.lists.run(work)
    await bring_up_to_date(site, wait=True)
    return count


@router.get("/api/duplicates/spare")
def list_spare_files(
    site: GroupedSite,
    view: ChosenView,
    folder: str = "",
    below: Annotated[int | None, Query(ge=0, le=routes.MAX_NUMBER, examples=[1000000])] = None,
) -> dict[str, int]:
    """List the numbers and sizes of all videos that may be removable in the groups that pass the filter.

    Args:
        site: The site.
        view: The filter.
        folder: Only files in this folder and below it.
        below: Only files smaller than this, bytes.
    """
    records = site.index.listing().by_path
    under = os.path.join(folder, "") if folder else ""
    return {
        str(records[member.path].id): member.size
        for group in view.choose(_found(site).groups)
        for member in group.members
        if member.is_spare
        and member.path in records
        and member.path.startswith(under)
        and (below is None or member.size < below)
    }


@router.file("/api/duplicates.csv", "text/csv")
def export_groups(site: GroupedSite) -> Response:
    """Download the groups as a table with one line per file, as written by `vidkin duplicates -o FILE.csv`."""
    return routes.attached_table(words.duplicate_cells(current_groups(site)), "duplicates.csv")


@router.file("/api/duplicates/plan.json", "application/json")
@routes.in_lane("searches")
def export_plan(site: GroupedSite) -> Response:
    """Download a plan of the files that can be removed without loss, for `vidkin apply plan.json`; nothing is removed
    until that command runs.

    `POST /api/duplicates/prove` comes first.
    """
    groups = current_groups(site)
    left = sum(member.is_spare and not member.is_proven for group in groups for member in group.members)
    if left:
        raise HTTPException(
            409, f"{number(left, 'file')} may be removable and must be proven first; POST /api/duplicates/prove"
        )
    plan = plan_text(plan_removal(groups, records=site.index.listing().records))
    return routes.attachment(plan, "plan.json", "application/json")


def current_groups(site: Site) -> tuple[DuplicateGroup, ...]:
    """The groups, if they are up to date.

    Raises:
        HTTPException: They are not up to date, or a search is running.
    """
    if not site.index.has_segments or not site.groups.is_current() or site.groups.found is None:
        raise HTTPException(409, "the groups are being updated; wait until that has finished")
    groups: tuple[DuplicateGroup, ...] = site.groups.found.groups
    return groups


def _found(site: Site) -> FoundGroups:
    return site.groups.found or FoundGroups()


def _has_words(group: DuplicateGroup, wanted: Sequence[str]) -> bool:
    return any(all(word in member.path.casefold() for word in wanted) for member in group.members)


def _folders(site: Site) -> list[str]:
    """Folders of the groups, offered as suggestions where a folder is entered."""
    found = _found(site)
    return sorted({os.path.dirname(member.path) for group in found.groups for member in group.members})[:50]


def _describe(site: Site, groups: Sequence[DuplicateGroup], offset: int, limit: int) -> dict[str, Any]:
    """The values of a :class:`DuplicateList`: totals of the groups, and some of them."""
    found = _found(site)
    listing = site.index.listing()
    members = [member for group in groups for member in group.members]
    return {
        "searched": bool(found.groups) or found.uncompared < found.videos,
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
            _group_values(group, position, listing)
            for position, group in enumerate(groups[offset : offset + limit], start=offset + 1)
        ],
    }


def _group_values(group: DuplicateGroup, position: int, listing: Listing) -> dict[str, Any]:
    moments, aligned = matching_moments(group), align_group(group)
    names = "\0".join(sorted(member.path for member in group.members)).encode("utf-8", "surrogateescape")
    return {
        **group.to_dict(),
        "key": hashlib.blake2b(names, digest_size=8).hexdigest(),
        "number": position,
        "removable": words.describe_removable([group]),
        "members": [
            _member_values(member, group, listing, times, aligned[member.path])
            for member, times in zip(group.members, moments, strict=True)
        ],
    }


def _member_values(
    member: DuplicateMember,
    group: DuplicateGroup,
    listing: Listing,
    times: Sequence[float | None],
    parts: Sequence[AlignedPart],
) -> dict[str, Any]:
    record, other = listing.find(member.path), listing.by_path.get(member.compared_with or "")
    is_aligned = any(time is not None for time in times)
    if not is_aligned:
        times = [share * member.duration for share in SHARES]
    pictures = [None if time is None else thumbnail_address(record, time) for time in times] if record else []
    return {
        **member.to_dict(),
        "id": record and record.id,
        "compared_with_id": other and other.id,
        "name": base_name(member.path),
        "folder": printable(os.path.dirname(member.path)),
        "words": words.describe_member(member, group, most_findings=0),
        "reasons": words.describe_findings(member.findings, MAX_REASONS),
        "details": words.describe_traits(member, group),
        "spare": member.is_spare,
        "pictures": pictures,
        "moments": ["" if time is None else clock(time) for time in times],
        "aligned": is_aligned,
        "parts": [part.to_dict() for part in parts],
        "evidence": _evidence(member, parts, record, listing.by_path.get(group.best.path)) if record else [],
    }


def _evidence(
    member: DuplicateMember, parts: Sequence[AlignedPart], record: VideoRecord, kept: VideoRecord | None
) -> list[EvidenceOfFinding]:
    """Findings with a time, each with frames of both files at its middle."""
    rows = []
    for finding in member.findings:
        if finding.start is None or finding.end is None:
            continue
        time = (finding.start + finding.end) / 2
        shown = ((part, part.start + (time - part.at) / part.rate) for part in parts)
        moment = next((at for part, at in shown if part.start <= at <= part.end), None)
        kept_picture = None if moment is None or kept is None else thumbnail_address(kept, moment)
        picture = thumbnail_address(record, time)
        rows.append(EvidenceOfFinding(printable(finding.text), clock(time), picture, kept_picture))
    return rows
