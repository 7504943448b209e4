"""Pictures and bytes of the videos: thumbnails, and files in ranges for players."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from vidkin.index import VideoRecord
from vidkin.media import write_thumbnail
from vidkin.web.files import media_type, open_record, stream_file
from vidkin.web.site import CurrentSite, Page, Site

__all__ = ["page"]

router = APIRouter(tags=["media"])
page = Page(router)

# Where in a video its picture is from, as a share: the begin is often black.
_SHARE = 1 / 3
# Pictures are made for every tenth of a second at most, so that sliding does not fill the disk.
_STEPS_A_SECOND = 10
_FOR_A_DAY = {"Cache-Control": "private, max-age=86400"}


@router.get("/videos/{video}/thumbnail", responses={200: {"content": {"image/webp": {}}}})
async def get_thumbnail(
    site: CurrentSite,
    video: int,
    time: Annotated[float | None, Query(ge=0, le=1e6, description="Seconds; default a third of it.")] = None,
    side: Annotated[int, Query(ge=90, le=720, description="Pixels at the shorter side.")] = 180,
) -> Response:
    """A picture of a video."""
    content = await site.pictures.run(
        lambda: _thumbnail(site, site.collection.record(video), time, 180 if side <= 180 else 720)
    )
    return Response(content, headers=_FOR_A_DAY, media_type="image/webp")


@router.get("/videos/{video}/file", responses={206: {"description": "The range that was asked for."}})
@router.head("/videos/{video}/file", include_in_schema=False)
async def get_file(request: Request, site: CurrentSite, video: int) -> Response:
    """The bytes of a video, whole or a range of them."""
    record = await site.lists.run(lambda: site.collection.record(video))
    file = await site.streams.run(partial(open_record, record))
    return await stream_file(request, site.streams, file, media_type(record.path))


def _thumbnail(site: Site, record: VideoRecord, time: float | None, side: int) -> bytes:
    # Opened before it is decoded: what is not the file that was indexed is not shown either.
    open_record(record).close()
    seconds = record.duration * _SHARE if time is None else min(time, max(record.duration - 0.1, 0.0))
    seconds = int(seconds * _STEPS_A_SECOND) / _STEPS_A_SECOND
    name = f"{record.path}\0{record.size}\0{record.mtime_ns}\0{seconds}\0{side}"
    path = site.cache.get(
        name,
        ".webp",
        lambda partial_file: write_thumbnail(record.path, partial_file, seconds, short_side=side, threads=1),
    )
    return path.read_bytes()
