"""The page of one video: its player, copies, similar videos, coverage and recurring segments."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from vidkin._base.values import parse_json
from vidkin.index import Coverage, CoverStep, SharedStretch, VideoRecord, is_gone
from vidkin.rendering.coverage import describe_coverage, strip_of
from vidkin.rendering.duplicates import describe_member
from vidkin.rendering.players import find_player
from vidkin.rendering.text import json_text
from vidkin.web.duplicates import bring_up_to_date
from vidkin.web.files import open_record
from vidkin.web.library import VideoModel, video_values
from vidkin.web.media import source_item
from vidkin.web.parameters import Body, Prefer, VideoNumber, wants_job
from vidkin.web.shots import known_shots
from vidkin.web.site import (
    CurrentSite,
    Page,
    ResultResponse,
    Site,
    accepted,
    answer_model,
    base_name,
    job_model,
    or_job,
    result_model,
    thumbnail_address,
    work_of,
)

router = APIRouter(tags=["library"])
video_page = Page(router)

# Maximum number of similar videos, and the addresses of this computer.
_MAX_NEIGHBORS = 6
_LOCAL_ADDRESSES = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1", "testclient"})


SimilarVideo: Any = answer_model("SimilarVideo", "A similar video.", score=float, at=float | None, video=VideoModel)
RecurringPart: Any = answer_model(
    "RecurringPart",
    "A part of a video that other videos also show; ``others``: names of some of them.",
    kind=str,
    start=float,
    end=float,
    files=int,
    others=list[str],
)


# ``words``: the coverage in sentences; ``strip``: parts of the video in order, with start and end as shares of its
# length, and whether another video also shows the part.
CoverageModel: Any = result_model(
    Coverage,
    share=float,
    elsewhere=list[tuple[float, float]],
    only_here=list[tuple[float, float]],
    sources=list[SharedStretch],
    fewest=list[CoverStep],
    words=list[str],
    strip=list[tuple[float, float, bool]],
)


@router.get("/api/videos/{video}", response_model=VideoModel)
async def get_video(site: CurrentSite, video: VideoNumber) -> ResultResponse:
    """Get a video of the index."""
    return ResultResponse(await site.lists.run(lambda: video_values(site.index.record(video))))


CoverageJob = job_model("coverage", CoverageModel)
NeighborsJob = job_model("neighbors", list[SimilarVideo])


@router.get("/api/videos/{video}/coverage", response_model=CoverageModel, responses=or_job(CoverageJob))
async def get_coverage(site: CurrentSite, video: VideoNumber, prefer: Prefer = "") -> ResultResponse:
    """Compute which parts of a video other videos also show and which are unique; reads the file."""

    def work() -> dict[str, Any]:
        path = site.index.record(video).path
        with site.index.reader() as index:
            found = index.coverage(path)
        return {**found.to_dict(), "words": describe_coverage(found), "strip": strip_of(found)}

    if wants_job(prefer):
        return accepted(site.jobs.start("coverage", "Coverage", work_of(work), video=video, turns=site.turns))
    return ResultResponse(await site.searches.run(work))


@router.get("/videos/{video}", response_class=HTMLResponse, include_in_schema=False)
async def show_video(request: Request, site: CurrentSite, video: VideoNumber) -> HTMLResponse:
    """Page of one video: its player and everything known about it."""
    await bring_up_to_date(site)

    def find() -> dict[str, Any]:
        record = site.index.record(video)
        found = site.groups.found
        return {
            "video": video_values(record),
            "source": source_item(site, video=video),
            "folder": os.path.dirname(record.path),
            "can_open": _is_local(request) and not site.settings.read_only,
            "copies": _copies(site, record),
            "compared": None if found is None or not site.groups.is_current() else not found.uncompared,
            "neighbors": _known_neighbors(site, record),
            "recurring": _recurring_parts(site, record),
            "shots": known_shots(site, record),
        }

    return site.page("video.html", request, await site.lists.run(find))


def _copies(site: Site, record: VideoRecord) -> list[dict[str, Any]]:
    """The other files in the video's group of duplicates with their roles, if groups are known."""
    groups = () if site.groups.found is None else site.groups.found.groups
    group = next((each for each in groups if any(member.path == record.path for member in each.members)), None)
    if group is None:
        return []
    records = {each.path: each for each in site.index.listing().records}
    copies = []
    for member in group.members:
        other = records.get(member.path)
        if member.path == record.path:
            continue
        is_there = other is not None and not is_gone(member.path)
        copies.append(
            {
                "id": other.id if other is not None and is_there else None,
                "name": base_name(member.path),
                "words": describe_member(member, group),
                "picture": thumbnail_address(other) if other is not None and is_there else None,
            }
        )
    return copies


@router.get("/api/videos/{video}/neighbors", response_model=list[SimilarVideo] | None)
async def get_neighbors(site: CurrentSite, video: VideoNumber) -> ResultResponse:
    """The most similar videos, if they were looked for since the index changed last; null otherwise."""
    return ResultResponse(await site.lists.run(lambda: _known_neighbors(site, site.index.record(video))))


def _known_neighbors(site: Site, record: VideoRecord) -> list[dict[str, Any]] | None:
    try:
        return site.cache.parse(_neighbors_key(site, record), ".json", _refuse, partial(_neighbor_values, site))
    except FileNotFoundError:
        return None


@router.post("/api/videos/{video}/neighbors", response_model=list[SimilarVideo], responses=or_job(NeighborsJob))
async def find_neighbors(site: CurrentSite, video: VideoNumber, prefer: Prefer = "") -> ResultResponse:
    """Find the most similar videos, best first; reads the file and caches the answer until the index changes."""

    def work() -> list[dict[str, Any]]:
        record = site.index.record(video)

        def make(path: Path) -> None:
            open_record(record).close()
            with site.index.reader() as index:
                matches = index.search(record.path, limit=_MAX_NEIGHBORS + 1)
            rows = [
                (match.video_id, match.score, match.segments[0].target_start if match.segments else None)
                for match in matches
                if match.video_id != record.id
            ]
            path.write_text(json_text(rows), encoding="utf-8")

        return site.cache.parse(_neighbors_key(site, record), ".json", make, partial(_neighbor_values, site))

    if wants_job(prefer):
        return accepted(site.jobs.start("neighbors", "Similar videos", work_of(work), video=video, turns=site.turns))
    return ResultResponse(await site.searches.run(work))


def _neighbors_key(site: Site, record: VideoRecord) -> str:
    """The cache key of the answer, which depends on the video and on all videos of the index."""
    records = site.index.listing().records
    newest = max(each.id for each in records)
    return f"neighbors\0{record.content_hash}\0{record.path}\0{len(records)}\0{newest}"


def _refuse(path: Path) -> None:
    raise FileNotFoundError(f"{path} has not been computed")


def _neighbor_values(site: Site, content: bytes) -> list[dict[str, Any]]:
    by_id = site.index.listing().by_id
    return [
        {"score": score, "at": at, "video": video_values(by_id[number])}
        for number, score, at in parse_json(content)[:_MAX_NEIGHBORS]
        if number in by_id
    ]


@router.get("/api/videos/{video}/recurring", response_model=list[RecurringPart] | None)
async def get_recurring(site: CurrentSite, video: VideoNumber) -> ResultResponse:
    """What of a video other videos show, too, such as an opening; null if nobody looked (`POST /api/recurring`) since
    the index changed."""
    return ResultResponse(await site.lists.run(lambda: _recurring_parts(site, site.index.record(video))))


def _recurring_parts(site: Site, record: VideoRecord) -> list[dict[str, Any]] | None:
    found = site.recurring.found
    if found is None or not site.recurring.is_current:
        return None
    return [
        {
            "kind": group.kind,
            "start": occurrence.start,
            "end": occurrence.end,
            "files": len(group.paths),
            "others": [base_name(path) for path in group.paths if path != record.path][:3],
        }
        for group in found.groups
        for occurrence in group.occurrences
        if occurrence.path == record.path
    ]


class PlayerMoment(Body):
    """A time in a video."""

    time: float = Field(0.0, ge=0, le=1e6, description="Seconds.")


class OpenedVideo(BaseModel):
    """The player that was started."""

    player: str = Field(description="Name of the player.")


@router.post("/api/videos/{video}/open")
async def open_video(request: Request, site: CurrentSite, video: VideoNumber, moment: PlayerMoment) -> OpenedVideo:
    """Open a video in the system's player on the server's computer; only for pages open on that computer."""
    site.check_writable()
    if not _is_local(request):
        raise HTTPException(403, "a player can only be opened on the server's computer; open the page there")

    def work() -> OpenedVideo:
        record = site.index.record(video)
        open_record(record).close()
        player = find_player()
        player.show(record.path, moment.time)
        return OpenedVideo(player=player.name)

    return await site.lists.run(work)


def _is_local(request: Request) -> bool:
    """Whether the page is open on the server's computer."""
    return request.client is not None and request.client.host in _LOCAL_ADDRESSES
