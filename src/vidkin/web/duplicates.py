"""Duplicates: groups of copies side by side, verdicts on them, and a plan of what can be removed."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import Field

from vidkin._base.values import write_csv_rows
from vidkin.errors import CollectionMismatchError
from vidkin.index import DuplicateGroup, DuplicateMember, plan_removal, sign_plan, write_plan
from vidkin.rendering.duplicates import describe_member, duplicate_cells
from vidkin.rendering.text import clock, printable
from vidkin.web.jobs import Job, JobState
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

router = APIRouter(tags=["duplicates"])
duplicates_page = Page(router, "Duplicates", "/duplicates")

Rule = Literal["best", "oldest", "newest", "largest", "longest"]
# Shares of a video at which its pictures are from.
_MOMENTS = (0.15, 0.5, 0.85)
_OUTDATED = "verdicts changed since the groups were found; find them again"


@dataclass(frozen=True, slots=True)
class Wish:
    """What to look for.

    Attributes:
        threshold: Score from which on two videos belong together, above 0 and at most 1.
        parts: Also group excerpts with the video that they are from.
        rule: Which copy to keep.
    """

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.7
    parts: bool = False
    rule: Rule = "best"


@dataclass(frozen=True, slots=True)
class FoundGroups:
    """What the last search for duplicates of this server found.

    Attributes:
        wish: Settings of the search.
        groups: Groups in the order of the paths of their best copies.
        verdicts: Number of verdicts that had been given here when the search began.
    """

    wish: Wish = Wish()
    groups: tuple[DuplicateGroup, ...] = ()
    verdicts: int = 0


# Besides the fields of the member: ``id``, ``compared_with_id``: numbers of the videos, None where one has left the
# index; ``name``, ``folder``: as they can be shown; ``words``: the role of the file; ``spare``: as ``is_spare``;
# ``pictures``: addresses of pictures of it, at the same shares of each file; ``moments``: their times, as text.
MemberModel: Any = result_model(
    DuplicateMember,
    is_spare=bool,
    id=int | None,
    compared_with_id=int | None,
    name=str,
    folder=str,
    words=str,
    spare=bool,
    pictures=list[str],
    moments=list[str],
)
GroupModel: Any = result_model(DuplicateGroup, savings=int, members=list[MemberModel])
# ``searched``: there was a search since the server began; ``outdated``: verdicts changed since; ``total``: groups;
# ``copies``: files besides the best ones; ``spare``: files that a plan moves; ``savings``: their bytes.
DuplicateList: Any = answer_model(
    "DuplicateList",
    "Some groups of the last search, and figures of all of them.",
    searched=bool,
    outdated=bool,
    wish=Wish,
    total=int,
    copies=int,
    spare=int,
    savings=int,
    groups=list[GroupModel],
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict on two videos of the index.

    Attributes:
        first, second: Numbers of the two videos.
        verdict: ``forget`` takes an earlier one back.
    """

    first: int
    second: int
    verdict: Literal["match", "not a match", "forget"]


@dataclass(frozen=True, slots=True)
class Keeper:
    """Which copy of a group to keep.

    Attributes:
        video: Number of the video.
        instead_of: Numbers of the other ones.
    """

    video: int
    instead_of: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """How many verdicts on pairs the index remembers."""

    count: int


@router.get("/duplicates", response_class=HTMLResponse, include_in_schema=False)
async def show_duplicates(
    request: Request, site: CurrentSite, number: Annotated[int, Query(alias="page", ge=1)] = 1
) -> HTMLResponse:
    """Page of the groups that were found last, some at a time."""
    size = site.settings.groups_a_page
    duplicates = await site.lists.run(lambda: _list(site, (number - 1) * size, size))
    values = {
        "duplicates": duplicates,
        "page": number,
        "pages": max(-(-duplicates["total"] // size), 1),
        "is_empty": await site.lists.run(site.is_empty),
        "able": site.index.has_segments,
        "first": (number - 1) * size,
    }
    return site.page("duplicates.html", request, values)


@router.get("/api/duplicates", response_model=DuplicateList)
async def list_duplicates(
    site: CurrentSite,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ResultResponse:
    """Groups that the last search of this server found."""
    return ResultResponse(await site.lists.run(lambda: _list(site, offset, limit)))


@router.post("/api/duplicates")
async def find_duplicates(site: CurrentSite, wish: Wish) -> JobState:
    """Search for duplicates, as a job; the result replaces the last one. Comparisons are stored for the next
    search."""
    if not site.index.has_segments:
        raise CollectionMismatchError(
            "the scores of this index order kinds of videos and do not tell copies; serve another index"
        )

    def work(job: Job) -> dict[str, int]:
        began = site.verdicts
        with site.index.reader() as index:
            groups = index.duplicates(
                threshold=wish.threshold,
                parts=wish.parts,
                keep=wish.rule,
                on_progress=lambda done, total: job.report(done, total, "comparing"),
            )
        site.found_groups = FoundGroups(wish, tuple(groups), began)
        return {"groups": len(groups)}

    return site.jobs.start("duplicates", "Find duplicates", work).state()


@router.post("/api/duplicates/verdict")
async def decide(site: CurrentSite, verdict: Verdict) -> Verdicts:
    """Remember that two videos are duplicates, or not; the groups follow when they are found again."""
    site.check_writable()

    def work() -> Verdicts:
        first, second = (site.index.record(video).path for video in (verdict.first, verdict.second))
        with site.index.writer() as index:
            change = {
                "match": index.confirm,
                "not a match": index.reject,
                "forget": index.forget_decision,
            }[verdict.verdict]
            change(first, second)
            site.verdicts += 1
            return Verdicts(len(index.decisions()))

    return await site.lists.run(work)


@router.post("/api/duplicates/keep")
async def keep_another(site: CurrentSite, keeper: Keeper) -> Verdicts:
    """Remember which copy is to be kept; the groups follow when they are found again."""
    site.check_writable()

    def work() -> Verdicts:
        path = site.index.record(keeper.video).path
        others = [site.index.record(video).path for video in keeper.instead_of]
        with site.index.writer() as index:
            index.prefer(path, instead_of=others)
            site.verdicts += 1
            return Verdicts(len(index.decisions()))

    return await site.lists.run(work)


@router.get("/api/duplicates.csv", responses={200: {"content": {"text/csv": {}}}})
async def export_groups(site: CurrentSite) -> Response:
    """The groups as a table, one line a file, as ``vidkin duplicates --csv`` writes it."""

    def work() -> bytes:
        text = io.StringIO()
        write_csv_rows(text, duplicate_cells(_current(site)))
        return text.getvalue().encode("utf-8", "surrogateescape")

    return _download(await site.lists.run(work), "duplicates.csv", "text/csv")


@router.get("/api/duplicates/plan.json", responses={200: {"content": {"application/json": {}}}})
async def export_plan(site: CurrentSite) -> Response:
    """What can be moved to the trash, for ``vidkin apply plan.json``; nothing happens until that command is run."""

    def work() -> bytes:
        plan = plan_removal(_current(site))
        plan = sign_plan(plan, site.index.place, create=not site.settings.read_only)
        with tempfile.TemporaryDirectory(prefix="vidkin-") as folder:
            path = Path(folder, "plan.json")
            write_plan(plan, path)
            return path.read_bytes()

    return _download(await site.searches.run(work), "plan.json", "application/json")


def _download(content: bytes, name: str, kind: str) -> Response:
    return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _current(site: Site) -> tuple[DuplicateGroup, ...]:
    """The groups, if they are those of the verdicts."""
    if site.found_groups is None:
        raise HTTPException(409, "no search for duplicates has run since the server started; run one first")
    found: FoundGroups = site.found_groups
    if found.verdicts != site.verdicts:
        raise HTTPException(409, _OUTDATED)
    return found.groups


def _list(site: Site, offset: int, limit: int) -> dict[str, Any]:
    found: FoundGroups = site.found_groups or FoundGroups()
    ids = {record.path: record.id for record in site.index.listing().records}
    members = [member for group in found.groups for member in group.members]
    return {
        "searched": site.found_groups is not None,
        "outdated": site.found_groups is not None and found.verdicts != site.verdicts,
        "wish": found.wish,
        "total": len(found.groups),
        "copies": len(members) - len(found.groups),
        "spare": sum(member.is_spare for member in members),
        "savings": sum(group.savings for group in found.groups),
        "groups": [
            {
                **group.to_dict(),
                "members": [_member_values(site, member, group, ids) for member in group.members],
            }
            for group in found.groups[offset : offset + limit]
        ],
    }


def _member_values(
    site: Site, member: DuplicateMember, group: DuplicateGroup, ids: Mapping[str, int]
) -> dict[str, Any]:
    video = ids.get(member.path)
    times = [share * member.duration for share in _MOMENTS]
    return {
        **member.to_dict(),
        "id": video,
        "compared_with_id": None if member.compared_with is None else ids.get(member.compared_with),
        "name": base_name(member.path),
        "folder": printable(os.path.dirname(member.path)),
        "words": describe_member(member, group),
        "spare": member.is_spare,
        "pictures": [] if video is None else [thumbnail_address(site.index.record(video), time) for time in times],
        "moments": [clock(time) for time in times],
    }
