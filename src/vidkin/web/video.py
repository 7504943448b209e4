"""The page of one video: its player, copies, similar videos, coverage and recurring segments."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from fastapi import HTTPException, Request
from pydantic import Field, TypeAdapter

from vidkin.index import Coverage, VideoRecord
from vidkin.rendering.coverage import describe_coverage, strip_of
from vidkin.rendering.duplicates import describe_member
from vidkin.rendering.players import find_player
from vidkin.web.duplicates import GroupedSite
from vidkin.web.files import open_record
from vidkin.web.library import VideoModel, video_values
from vidkin.web.media import open_source
from vidkin.web.routes import Body, Page, Prefer, VideoNumber, answer_or_start, either, extends
from vidkin.web.shots import get_shots
from vidkin.web.site import CurrentSite, Site, WritableSite, base_name, thumbnail_address

router = Page("library")

# Maximum number of similar videos, and the addresses of this computer.
_MAX_NEIGHBORS = 6
_LOCAL_ADDRESSES = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1", "testclient"})
# Number, score, and start of the match of each similar video.
_NEIGHBORS = TypeAdapter(list[tuple[int, float, float | None]])


@dataclass(frozen=True, slots=True)
class SimilarVideo:
    """A similar video.

    Attributes:
        score: Score in [0, 1].
        at: Start of the match in this video, seconds; null without segments.
        video: The video.
    """

    score: float
    at: float | None
    video: VideoModel


@dataclass(frozen=True, slots=True)
class RecurringPart:
    """A part of a video that other videos also show.

    Attributes:
        kind: Kind of the item.
        start: Start in seconds.
        end: End in seconds.
        files: Number of files that show it.
        others: Names of some of the other files.
    """

    kind: str
    start: float
    end: float
    files: int
    others: list[str]


@extends(Coverage)
class CoverageModel:
    """The parts of a video that other videos also show.

    Attributes:
        elsewhere: Stretches that other videos also show: start and end, seconds.
        only_here: Stretches that no other video shows: start and end, seconds.
        words: Description in sentences.
        strip: Parts in order: start and end as shares of the video, and whether other videos show the part.
    """

    elsewhere: list[tuple[float, float]]
    only_here: list[tuple[float, float]]
    words: list[str]
    strip: list[tuple[float, float, bool]]


@router.get("/api/videos/{video}", response_model=VideoModel)
def get_video(site: CurrentSite, video: VideoNumber) -> Any:
    """Get a video of the index."""
    return video_values(site.index.record(video))


@router.get("/api/videos/{video}/coverage", **either("coverage", CoverageModel))
async def get_coverage(site: CurrentSite, video: VideoNumber, prefer: Prefer = "") -> Any:
    """Compute which parts of a video other videos also show and which are unique; reads the file."""

    def work() -> dict[str, Any]:
        path = site.index.record(video).path
        with site.index.reader() as index:
            found = index.coverage(path)
        return {**found.to_dict(), "words": describe_coverage(found), "strip": strip_of(found)}

    return await answer_or_start(site, prefer, "coverage", "Coverage", work, video=video)


@router.page("/videos/{video}", "video.html")
def show_video(request: Request, site: GroupedSite, video: VideoNumber) -> dict[str, Any]:
    """Page of one video: its player and everything known about it."""
    record, found = site.index.record(video), site.groups.found
    return {
        "video": video_values(record),
        "source": open_source(site, video=video).item,
        "folder": os.path.dirname(record.path),
        "can_open": _is_local(request) and not site.settings.read_only,
        "copies": _copies(site, record),
        "uncompared": None if found is None or not site.groups.is_current() else found.uncompared,
        "neighbors": get_neighbors(site, video),
        "recurring": get_recurring(site, video),
        "shots": get_shots(site, video),
    }


def _copies(site: Site, record: VideoRecord) -> list[dict[str, Any]]:
    """The other files in the video's group of duplicates with their roles, if groups are known."""
    groups = () if site.groups.found is None else site.groups.found.groups
    group = next((each for each in groups if any(member.path == record.path for member in each.members)), None)
    if group is None:
        return []
    listing = site.index.listing()
    others = [(member, listing.find(member.path)) for member in group.members if member.path != record.path]
    return [
        {
            "id": other and other.id,
            "name": base_name(member.path),
            "words": describe_member(member, group),
            "picture": other and thumbnail_address(other),
        }
        for member, other in others
    ]


@router.get("/api/videos/{video}/neighbors")
def get_neighbors(site: CurrentSite, video: VideoNumber) -> list[SimilarVideo] | None:
    """The most similar videos, if they were searched for since the index last changed; null otherwise."""
    known = site.cache.load(_neighbors_key(site, video), _NEIGHBORS.validate_python)
    return None if known is None else _similar(site, known)


@router.post("/api/videos/{video}/neighbors", **either("neighbors", list[SimilarVideo]))
async def find_neighbors(site: CurrentSite, video: VideoNumber, prefer: Prefer = "") -> Any:
    """Find the most similar videos, best first; reads the file and caches the answer until the index changes."""

    def make() -> list[tuple[int, float, float | None]]:
        record = site.index.record(video)
        open_record(record).close()
        with site.index.reader() as index:
            matches = index.search(record.path, limit=_MAX_NEIGHBORS + 1)
        return [
            (match.video_id, match.score, match.segments[0].target_start if match.segments else None)
            for match in matches
            if match.video_id != video
        ]

    def work() -> list[SimilarVideo]:
        return _similar(site, site.cache.compute(_neighbors_key(site, video), make, _NEIGHBORS.validate_python))

    return await answer_or_start(site, prefer, "neighbors", "Similar videos", work, video=video)


def _neighbors_key(site: Site, video: int) -> str:
    """The cache key of the answer, which depends on the video and on all videos of the index."""
    record, records = site.index.record(video), site.index.listing().records
    newest = max(each.id for each in records)
    return f"neighbors\0{record.content_hash}\0{record.path}\0{len(records)}\0{newest}"


def _similar(site: Site, neighbors: list[tuple[int, float, float | None]]) -> list[SimilarVideo]:
    by_id = site.index.listing().by_id
    return [
        SimilarVideo(score, at, video_values(by_id[number]))
        for number, score, at in neighbors[:_MAX_NEIGHBORS]
        if number in by_id
    ]


@router.get("/api/videos/{video}/recurring")
def get_recurring(site: CurrentSite, video: VideoNumber) -> list[RecurringPart] | None:
    """Parts of a video that other videos also show, such as an opening; null if they were not searched for (`POST
    /api/recurring`) since the index changed."""
    path, found = site.index.record(video).path, site.recurring.found
    if found is None or not site.recurring.is_current:
        return None
    return [
        RecurringPart(
            kind=group.kind,
            start=occurrence.start,
            end=occurrence.end,
            files=len(group.paths),
            others=[base_name(each) for each in group.paths if each != path][:3],
        )
        for group in found.groups
        for occurrence in group.occurrences
        if occurrence.path == path
    ]


class PlayerMoment(Body):
    """A time in a video.

    Attributes:
        time: Seconds.
    """

    time: float = Field(0.0, ge=0, le=1e6)


@dataclass(frozen=True, slots=True)
class OpenedVideo:
    """The player that was started.

    Attributes:
        player: Name of the player.
    """

    player: str


@router.post("/api/videos/{video}/open")
def open_video(request: Request, site: WritableSite, video: VideoNumber, moment: PlayerMoment) -> OpenedVideo:
    """Open a video in the system's player on the server's computer; only for pages open on that computer."""
    if not _is_local(request):
        raise HTTPException(403, "a player can only be opened on the server's computer; open the page there")
    record = site.index.record(video)
    open_record(record).close()
    player = find_player()
    player.show(record.path, moment.time)
    return OpenedVideo(player.name)


def _is_local(request: Request) -> bool:
    """Whether the page is open on the server's computer."""
    return request.client is not None and request.client.host in _LOCAL_ADDRESSES
