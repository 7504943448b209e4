"""The library: every video of the index with its picture, searched by name, sorted and filtered."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from vidkin._base.extensions import IMAGE_EXTENSIONS
from vidkin.index import VideoRecord, is_gone
from vidkin.rendering.text import printable
from vidkin.web.site import CurrentSite, Page, base_name, thumbnail_address

__all__ = ["VideoItem", "VideoList", "page", "video_item"]

router = APIRouter(tags=["library"])
page = Page(router, "Library", "/")

Sort = Literal["name", "path", "duration", "size", "newest"]
FileFilter = Literal["all", "ok", "broken", "stale"]
_A_PAGE = 60
_SORTS: dict[Sort, Callable[[VideoRecord], tuple[Any, ...]]] = {
    "name": lambda record: (os.path.basename(record.path).casefold(), record.path),
    "path": lambda record: (record.path,),
    "duration": lambda record: (-record.duration, record.path),
    "size": lambda record: (-record.size, record.path),
    "newest": lambda record: (-record.added_at, record.path),
}


@dataclass(frozen=True, slots=True)
class VideoItem:
    """A video of the index.

    Attributes:
        id: Number of the video, used in all addresses.
        name, path: Name and path of the file in printable form.
        status: ``ok``, ``broken`` or ``stale`` (to be indexed again).
        cause: Why it is broken or stale.
        damage: Description of unreadable parts of an ok video.
        duration: Duration in seconds.
        size: Bytes.
        width, height: Pixels as displayed.
        codec: Codec of the video.
        still: Whether it is a still image.
        missing: The file is gone.
        thumbnail: Address of its picture; add ``&time=SECONDS`` for another moment.
    """

    id: int
    name: str
    path: str
    status: str
    cause: str
    damage: str
    duration: float
    size: int
    width: int
    height: int
    codec: str
    still: bool
    missing: bool
    thumbnail: str


@dataclass(frozen=True, slots=True)
class VideoList:
    """Some videos of the index.

    Attributes:
        total: Number of videos that fit the filter.
        videos: Videos from ``offset`` on.
    """

    total: int
    videos: list[VideoItem]


def video_item(record: VideoRecord) -> VideoItem:
    """What pages show of a record; asks the disk whether the file is there."""
    return VideoItem(
        id=record.id,
        name=base_name(record.path),
        path=printable(record.path),
        status=record.status,
        cause=printable(record.cause),
        damage=printable(record.damage),
        duration=record.duration,
        size=record.size,
        width=record.width,
        height=record.height,
        codec=record.codec,
        still=os.path.splitext(record.path)[1].lower() in IMAGE_EXTENSIONS,
        missing=is_gone(record.path),
        thumbnail=thumbnail_address(record),
    )


def _choose(
    site: CurrentSite, query: str, sort: Sort, state: FileFilter, offset: int, limit: int
) -> tuple[VideoList, Sequence[VideoRecord]]:
    """The videos whose path holds every word of the query."""
    words = query.casefold().split()
    records = site.collection.listing().records
    chosen = [
        record
        for record in records
        if state in ("all", record.status) and all(word in record.path.casefold() for word in words)
    ]
    chosen.sort(key=_SORTS[sort])
    return VideoList(len(chosen), [video_item(record) for record in chosen[offset : offset + limit]]), records


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
async def show_library(
    request: Request,
    site: CurrentSite,
    q: str = "",
    sort: Sort = "name",
    state: FileFilter = "all",
    number: Annotated[int, Query(alias="page", ge=1)] = 1,
) -> HTMLResponse:
    """The page."""

    def prepare() -> dict[str, Any]:
        listed, records = _choose(site, q, sort, state, (number - 1) * _A_PAGE, _A_PAGE)
        pages = max(-(-listed.total // _A_PAGE), 1)

        def address(of_page: int) -> str:
            words = {"q": q, "sort": sort, "state": state, "page": of_page}
            plain = {"q": "", "sort": "name", "state": "all", "page": 1}
            rest = urlencode({name: value for name, value in words.items() if value != plain[name]})
            return f"/?{rest}" if rest else "/"

        return {
            "videos": listed,
            "count": len(records),
            "broken": sum(record.status == "broken" for record in records),
            "seconds": sum(record.duration for record in records),
            "bytes": sum(record.size for record in records),
            "query": q,
            "sort": sort,
            "state": state,
            "page": number,
            "pages": pages,
            "address": address,
            "folders": sorted({os.path.dirname(record.path) for record in records})[:50],
        }

    return site.page("library.html", request, await site.lists.run(prepare))


@router.get("/api/videos")
async def list_videos(
    site: CurrentSite,
    q: str = "",
    sort: Sort = "name",
    state: FileFilter = "all",
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 60,
) -> VideoList:
    """The videos of the index whose path holds every word of ``q``."""
    return (await site.lists.run(partial(_choose, site, q, sort, state, offset, limit)))[0]


@router.get("/api/videos/{video}")
async def get_video(site: CurrentSite, video: int) -> VideoItem:
    """One video of the index."""
    return await site.lists.run(lambda: video_item(site.collection.record(video)))
