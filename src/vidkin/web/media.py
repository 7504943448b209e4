"""Media of indexed and uploaded videos: thumbnails, bytes and previews."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO

from fastapi import Path as PathPart
from fastapi import Query, Request
from fastapi.responses import Response

from vidkin._base.files import open_regular_file
from vidkin.index import VideoRecord
from vidkin.media import write_preview, write_thumbnail
from vidkin.media.decode import poster
from vidkin.web.files import media_type, open_record, stream_file, stream_path
from vidkin.web.routes import Page, ResultResponse, VideoNumber, in_lane
from vidkin.web.site import CurrentSite, Site, base_name, is_still

router = Page("media")

# Thumbnail times are rounded to tenths of a second, so that scrubbing does not fill the disk.
_THUMBNAILS_PER_SECOND = 10

_SMALL, _LARGE = 180, 720

_CRF = 27


@dataclass(frozen=True, slots=True)
class SourceItem:
    """Properties of a source that a player needs.

    Attributes:
        address: Base address; append `/file`, `/thumbnail` or `/preview`.
        key: Name in searches: ``{"video": 12}`` or ``{"upload": "..."}``.
        name: Name of the file in printable form.
        duration: Duration in seconds.
        width, height: Pixels as displayed.
        still: Whether it is a still image.
        frame_rate: Frames per second.
    """

    address: str
    key: dict[str, int | str]
    name: str
    duration: float
    width: int
    height: int
    still: bool
    frame_rate: float


@dataclass(frozen=True, slots=True)
class Source:
    """An indexed or uploaded file that pages show.

    Attributes:
        path: Path of the file.
        key: Identifies its content in the cache.
        item: Properties that a player needs.
        record: Record in the index; None for an uploaded file.
    """

    path: str
    key: str
    item: SourceItem
    record: VideoRecord | None = None

    def check(self) -> None:
        """Check that the file can be read and is the indexed one.

        Raises:
            MediaError: The file is gone or was replaced.
        """
        self.open().close()

    def open(self) -> BinaryIO:
        """Open the file for reading, unless it was replaced; raises as :meth:`check` does."""
        return open_regular_file(self.path) if self.record is None else open_record(self.record)


def open_source(site: Site, *, video: int | None = None, upload: str | None = None) -> Source:
    """The video with a number, or the upload with an id.

    Raises:
        NotIndexedError: There is no such video.
        RefusedError: There is no such upload.
    """
    if upload is not None:
        dropped = site.uploads.get(upload)
        info, key = dropped.info, dropped.id
        seconds = 0.0 if info.still else info.duration
        facts = seconds, info.width, info.height, info.still, info.frame_rate
        item = SourceItem(f"/uploads/{key}", {"upload": key}, dropped.name, *facts)
        return Source(str(dropped.path), f"upload\0{key}", item)
    record = site.index.record(-1 if video is None else video)
    facts = record.duration, record.width, record.height, is_still(record), record.frame_rate
    item = SourceItem(f"/videos/{record.id}", {"video": record.id}, base_name(record.path), *facts)
    return Source(record.path, f"{record.path}\0{record.size}\0{record.mtime_ns}", item, record)


def make_thumbnail(site: Site, source: Source, time: float | None, side: int) -> bytes:
    """Make a thumbnail in WebP.

    Args:
        site: Caches the result.
        source: The video or upload.
        time: Time in seconds; default: near a third of the duration, at a frame that is not blank.
        side: Pixels of the shorter side; rounded up to one of two sizes.

    Raises:
        MediaError: The file cannot be read.
    """
    from PIL import Image

    source.check()
    seconds = None
    if time is not None:
        seconds = int(min(time, max(source.item.duration - 0.1, 0.0)) * _THUMBNAILS_PER_SECOND) / _THUMBNAILS_PER_SECOND
    side = _SMALL if side <= _SMALL else _LARGE

    def write(partial: Path) -> None:
        if seconds is None:
            image = poster(source.path, source.item.duration, short_side=side, threads=1)
            Image.fromarray(image).save(partial, "WEBP")
        else:
            write_thumbnail(source.path, partial, seconds, short_side=side, threads=1)

    moment = "poster of nine" if seconds is None else seconds
    return site.cache.read(f"{source.key}\0{moment}\0{side}", ".webp", write)


def make_preview(site: Site, source: Source, piece: int) -> Path:
    """Convert a piece of a video to a small MP4 with H.264 and AAC, which any browser plays.

    Args:
        site: Caches the result.
        source: The video or upload.
        piece: Number of the piece, each ``preview_seconds`` long.

    Raises:
        MediaError: The file cannot be read, or ends before the piece.
    """
    source.check()
    seconds, side = site.settings.preview_seconds, site.settings.preview_side
    start = piece * seconds

    def write(partial: Path) -> None:
        end = start + seconds
        write_preview(source.path, partial, start=start, end=end, crf=_CRF, short_side=side, threads=1)

    return site.cache.get(f"{source.key}\0preview with sound\0{start}\0{seconds}\0{side}", ".mp4", write)


_FOR_A_DAY = {"Cache-Control": "private, max-age=86400"}

# Enough for a day of video in pieces of ten seconds.
_MAX_PIECES = 10_000

UploadId = Annotated[str, PathPart(max_length=100, description="Id of the uploaded file.", examples=["q3VtYm9sZSBpZA"])]

Moment = Annotated[float | None, Query(ge=0, le=1e6, examples=[2.5])]

Side = Annotated[int, Query(ge=90, le=720, description="Pixels of the shorter side.", examples=[180])]

PieceNumber = Annotated[int, Query(ge=0, le=_MAX_PIECES, description="Number of the piece, each of ten seconds.")]

_FILE_TYPES = ("video/*", "image/*", "application/octet-stream")

_RAW = {"schema": {"type": "string", "format": "binary"}}

_UPLOAD_BODY = {
    "requestBody": {
        "required": True,
        "description": "The file, as the body itself or as a part of a form.",
        "content": {
            "application/octet-stream": _RAW,
            "multipart/form-data": {
                "schema": {
                    "title": "UploadForm",
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {**_RAW["schema"], "description": "The file."}},
                }
            },
        },
    }
}


@router.file("/videos/{video}/thumbnail", "image/webp")
@in_lane("pictures")
def get_thumbnail(
    site: CurrentSite,
    video: VideoNumber,
    time: Moment = None,
    side: Side = 180,
    v: Annotated[str, Query(max_length=100, examples=["0a1b2c3d4e5f"])] = "",
) -> Response:
    """Get a thumbnail of a video.

    Args:
        site: The site.
        video: Number of the video.
        time: Seconds; default: a third of the duration.
        side: Pixels of the shorter side.
        v: Any version string, to bypass caches.
    """
    return _thumbnail(site, open_source(site, video=video), time, side)


@router.file("/uploads/{upload}/thumbnail", "image/webp")
@in_lane("pictures")
def get_upload_thumbnail(site: CurrentSite, upload: UploadId, time: Moment = None, side: Side = 180) -> Response:
    """Get a thumbnail of an uploaded file.

    Args:
        site: The site.
        upload: Id of the uploaded file.
        time: Seconds; default: a third of the duration.
        side: Pixels of the shorter side.
    """
    return _thumbnail(site, open_source(site, upload=upload), time, side)


@router.file("/videos/{video}/file", *_FILE_TYPES, in_ranges=True)
@router.head("/videos/{video}/file", include_in_schema=False)
@in_lane("streams")
def get_file(request: Request, site: CurrentSite, video: VideoNumber) -> Response:
    """Get the bytes of a video, whole or a range."""
    return _file(request, site, open_source(site, video=video))


@router.file("/uploads/{upload}/file", *_FILE_TYPES, in_ranges=True)
@in_lane("streams")
def get_upload_file(request: Request, site: CurrentSite, upload: UploadId) -> Response:
    """Get the bytes of an uploaded file, whole or a range."""
    return _file(request, site, open_source(site, upload=upload))


@router.file("/videos/{video}/preview", "video/mp4", in_ranges=True)
@in_lane("conversions")
def get_preview(request: Request, site: CurrentSite, video: VideoNumber, piece: PieceNumber = 0) -> Response:
    """Get ten seconds of a video, converted to a small format that every browser plays, with sound."""
    return _preview(request, site, open_source(site, video=video), piece)


@router.file("/uploads/{upload}/preview", "video/mp4", in_ranges=True)
@in_lane("conversions")
def get_upload_preview(request: Request, site: CurrentSite, upload: UploadId, piece: PieceNumber = 0) -> Response:
    """Get ten seconds of an uploaded file, converted in the same way."""
    return _preview(request, site, open_source(site, upload=upload), piece)


@router.post("/api/uploads", status_code=201, response_model=SourceItem, openapi_extra=_UPLOAD_BODY)
async def upload_file(
    request: Request,
    site: CurrentSite,
    name: Annotated[str | None, Query(max_length=500, examples=["holiday.mp4"])] = None,
) -> ResultResponse:
    """Upload a file for searches. It is deleted some time after its last use.

    Args:
        request: The request.
        site: The site.
        name: Name of the file; default: its name in the form.
    """
    announced = request.headers.get("content-length", "")
    size = int(announced) if announced.isdecimal() else None
    kind = request.headers.get("content-type", "")
    upload = await site.uploads.receive(name or "", size, request.stream(), site.streams, content_type=kind)
    return ResultResponse(open_source(site, upload=upload.id).item, 201)


@router.delete("/api/uploads/{upload}", status_code=204)
def delete_upload(site: CurrentSite, upload: UploadId) -> Response:
    """Delete an uploaded file now."""
    site.uploads.remove(upload)
    return Response(status_code=204)


@router.get("/api/videos/{video}/source")
def get_source(site: CurrentSite, video: VideoNumber) -> SourceItem:
    """Get the properties of a video that a player needs."""
    return open_source(site, video=video).item


def _thumbnail(site: Site, source: Source, time: float | None, side: int) -> Response:
    return Response(make_thumbnail(site, source, time, side), headers=_FOR_A_DAY, media_type="image/webp")


def _file(request: Request, site: Site, source: Source) -> Response:
    return stream_file(request, site.streams, source.open(), media_type(source.path))


def _preview(request: Request, site: Site, source: Source, piece: int) -> Response:
    return stream_path(request, site.streams, make_preview(site, source, piece))
