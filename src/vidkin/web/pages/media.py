"""Pictures and bytes of videos and dropped files: thumbnails, files in ranges, converted pieces."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi import Path as PathPart
from fastapi.responses import Response

from vidkin.web.files import media_type, stream_file, stream_path
from vidkin.web.site import CurrentSite, Page, Site
from vidkin.web.sources import Source, SourceItem, make_preview, make_thumbnail, open_source, source_item

__all__ = ["media_page"]

router = APIRouter(tags=["media"])
media_page = Page(router)

_FOR_A_DAY = {"Cache-Control": "private, max-age=86400"}
_IMAGE: dict[int | str, dict[str, Any]] = {200: {"content": {"image/webp": {}}}}
_RANGES: dict[int | str, dict[str, Any]] = {206: {"description": "The range that was asked for."}}
# A day of video in pieces of ten seconds is less.
_MOST_PIECES = 10_000

VideoNumber = Annotated[int, PathPart(description="Number of the video.")]
UploadId = Annotated[str, PathPart(description="Id of the dropped file.")]
Moment = Annotated[float | None, Query(ge=0, le=1e6, description="Seconds; default a third of it.")]
Side = Annotated[int, Query(ge=90, le=720, description="Pixels at the shorter side.")]
PieceNumber = Annotated[
    int, Query(ge=0, le=_MOST_PIECES, description="Number of the piece, each of ten seconds.")
]


@router.get("/videos/{video}/thumbnail", responses=_IMAGE)
async def get_thumbnail(
    site: CurrentSite, video: VideoNumber, time: Moment = None, side: Side = 180
) -> Response:
    """A picture of a video."""
    return await _thumbnail(site, partial(open_source, site, video=video), time, side)


@router.get("/uploads/{upload}/thumbnail", responses=_IMAGE)
async def get_upload_thumbnail(
    site: CurrentSite, upload: UploadId, time: Moment = None, side: Side = 180
) -> Response:
    """A picture of a dropped file."""
    return await _thumbnail(site, partial(open_source, site, upload=upload), time, side)


@router.get("/videos/{video}/file", responses=_RANGES)
@router.head("/videos/{video}/file", include_in_schema=False)
async def get_file(request: Request, site: CurrentSite, video: VideoNumber) -> Response:
    """The bytes of a video, whole or a range of them."""
    return await _file(request, site, await site.lists.run(partial(open_source, site, video=video)))


@router.get("/uploads/{upload}/file", responses=_RANGES)
async def get_upload_file(request: Request, site: CurrentSite, upload: UploadId) -> Response:
    """The bytes of a dropped file, whole or a range of them."""
    return await _file(request, site, open_source(site, upload=upload))


@router.get("/videos/{video}/preview", responses=_RANGES)
async def get_preview(
    request: Request, site: CurrentSite, video: VideoNumber, piece: PieceNumber = 0
) -> Response:
    """Ten seconds of a video, converted to what every browser plays; small and without sound."""
    return await _preview(request, site, partial(open_source, site, video=video), piece)


@router.get("/uploads/{upload}/preview", responses=_RANGES)
async def get_upload_preview(
    request: Request, site: CurrentSite, upload: UploadId, piece: PieceNumber = 0
) -> Response:
    """Ten seconds of a dropped file, converted in the same way."""
    return await _preview(request, site, partial(open_source, site, upload=upload), piece)


@router.post("/api/uploads", status_code=201)
async def drop_file(
    request: Request,
    site: CurrentSite,
    name: Annotated[str, Query(max_length=500, description="Name of the file.")] = "file",
) -> SourceItem:
    """Keep a file for searches; its bytes are the body. It is deleted when nobody uses it any more."""
    announced = request.headers.get("content-length", "")
    size = int(announced) if announced.isdecimal() else None
    upload = await site.uploads.receive(name, size, aiter(request.stream()), site.streams)
    return source_item(site, upload=upload.id)


@router.delete("/api/uploads/{upload}", status_code=204)
async def delete_upload(site: CurrentSite, upload: UploadId) -> None:
    """Delete a dropped file now."""
    await site.lists.run(partial(site.uploads.remove, upload))


@router.get("/api/videos/{video}/source")
async def get_source(site: CurrentSite, video: VideoNumber) -> SourceItem:
    """What a player needs to show a video."""
    return await site.lists.run(partial(source_item, site, video=video))


async def _thumbnail(site: Site, find: partial[Source], time: float | None, side: int) -> Response:
    content = await site.pictures.run(lambda: make_thumbnail(site, find(), time, side))
    return Response(content, headers=_FOR_A_DAY, media_type="image/webp")


async def _file(request: Request, site: Site, source: Source) -> Response:
    file = await site.streams.run(source.open)
    return await stream_file(request, site.streams, file, media_type(source.path))


async def _preview(request: Request, site: Site, find: partial[Source], piece: int) -> Response:
    path = await site.conversions.run(lambda: make_preview(site, find(), piece))
    return await stream_path(request, site.streams, path)
