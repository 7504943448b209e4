"""Actions on several videos: keep them in lists, find their copies, remove their records from the index."""

from __future__ import annotations

import io
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from vidkin._base.values import write_csv_rows
from vidkin.errors import CollectionMismatchError, InvalidArgumentError, MediaError, NotIndexedError
from vidkin.index import VideoRecord
from vidkin.index.storage.lists import change_saved_list, rename_saved_list
from vidkin.rendering.text import json_text, number, printable
from vidkin.similarity import SURE
from vidkin.web.files import open_record, record_values
from vidkin.web.jobs import Job
from vidkin.web.parameters import Body, VideoId
from vidkin.web.shots import FailedVideo
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
    safe_stem,
)

router = APIRouter(tags=["lists"])
selection_page = Page(router)

# Maximum number of videos in a request, and in a search for copies, which reads every one.
_MAX_VIDEOS, _MAX_QUERIES = 100_000, 1000
# Maximum number of copies reported for a video.
_MAX_COPIES = 20

ListSummary: Any = answer_model(
    "ListSummary",
    "A list of videos; ``absent``: number of its entries without a file in the index.",
    name=str,
    videos=list[int],
    absent=int,
)


ListName = Annotated[str, Query(max_length=200, description="Name of the list.", examples=["favorites"])]


class CopyFound(BaseModel):
    """A copy of a video."""

    id: int = Field(description="Number of the copy.")
    name: str = Field(description="Name of its file.")
    score: float = Field(description="Score in [0, 1].")


class CopiesFound(BaseModel):
    """A video that has copies."""

    id: int = Field(description="Number of the video.")
    name: str = Field(description="Name of its file.")
    copies: list[CopyFound] = Field(description="The copies, best first.")


CopiesJob = job_model(
    "copies",
    answer_model(
        "CopiesResult",
        "Copies of the chosen videos.",
        videos=int,
        found=list[CopiesFound],
        failed=list[FailedVideo],
    ),
)
RemoveJob = job_model("remove", answer_model("RemoveResult", "The removed records.", removed=int, paths=list[str]))


class ListChange(Body):
    """Videos to add to a list and to remove from it."""

    name: str = Field(max_length=200, description="Name of the list; created if it does not exist.")
    add: list[VideoId] = Field(default_factory=list, max_length=_MAX_VIDEOS, description="Numbers of videos.")
    remove: list[VideoId] = Field(default_factory=list, max_length=_MAX_VIDEOS, description="Numbers of videos.")


class NewName(Body):
    """A new name for a list."""

    name: str = Field(max_length=200, description="Name of the list.")
    new_name: str | None = Field(max_length=200, description="Its new name; null deletes the list.")


class SomeVideos(Body):
    """Videos of the index."""

    videos: list[VideoId] = Field(min_length=1, max_length=_MAX_VIDEOS, description="Numbers of the videos.")


@router.get("/api/lists", response_model=list[ListSummary])
async def list_lists(site: CurrentSite) -> ResultResponse:
    """List the lists of the index, by name."""
    return ResultResponse(await site.lists.run(partial(_summaries, site)))


@router.post("/api/lists", response_model=list[ListSummary])
async def change_list(site: CurrentSite, change: ListChange) -> ResultResponse:
    """Add videos to a list and remove others; answers with all lists."""
    site.check_writable()

    def work() -> list[dict[str, Any]]:
        add, remove = ([_content(site, video) for video in videos] for videos in (change.add, change.remove))
        change_saved_list(site.index.place, change.name.strip(), add=add, remove=remove)
        return _summaries(site)

    return ResultResponse(await site.lists.run(work))


@router.post("/api/lists/rename", response_model=list[ListSummary])
async def rename_list(site: CurrentSite, name: NewName) -> ResultResponse:
    """Rename or delete a list; its videos stay."""
    site.check_writable()

    def work() -> list[dict[str, Any]]:
        rename_saved_list(site.index.place, name.name, None if name.new_name is None else name.new_name.strip())
        return _summaries(site)

    return ResultResponse(await site.lists.run(work))


@router.get("/api/lists.json", response_class=Response, responses=download("application/json"))
async def export_list(site: CurrentSite, name: ListName) -> Response:
    """Download the videos of a list, with all data that the index has on them."""

    def work() -> bytes:
        records, absent = _listed(site, name)
        document = {"name": name, "videos": list(map(record_values, records)), "absent": absent}
        return json_text(document, indent=1).encode("ascii")

    return _download(await site.lists.run(work), name, "json", "application/json")


@router.get("/api/lists.csv", response_class=Response, responses=download("text/csv"))
async def export_list_table(site: CurrentSite, name: ListName) -> Response:
    """Download the videos of a list as a table: path, seconds, bytes, width, height, codec, content hash."""

    def work() -> bytes:
        records, _ = _listed(site, name)
        table = io.StringIO(newline="")
        columns = ("path", "duration", "size", "width", "height", "codec", "content_hash")
        write_csv_rows(table, [columns, *([getattr(record, each) for each in columns] for record in records)])
        return table.getvalue().encode("utf-8", "surrogateescape")

    return _download(await site.lists.run(work), name, "csv", "text/csv")


@router.post("/api/videos/copies", status_code=202, response_model=CopiesJob)
async def find_copies(site: CurrentSite, chosen: SomeVideos) -> ResultResponse:
    """Find copies of chosen videos in the index, as a job; its result has the matches of each, best first."""
    if not site.index.has_segments:
        raise CollectionMismatchError(
            "the scores of this index order kinds of videos and cannot identify copies; serve another index"
        )
    if len(chosen.videos) > _MAX_QUERIES:
        raise InvalidArgumentError(
            f"copies of at most {_MAX_QUERIES:,} videos can be sought at a time, got {len(chosen.videos):,}; the page "
            "Duplicates compares all videos"
        )
    records = await site.lists.run(lambda: [site.index.record(video) for video in chosen.videos])
    title = f"Find copies of {number(len(records), 'video')}"
    return accepted(site.jobs.start("copies", title, partial(_find_copies, site, records)))


@router.post("/api/videos/remove", status_code=202, response_model=RemoveJob)
async def remove_videos(site: CurrentSite, chosen: SomeVideos) -> ResultResponse:
    """Remove videos from the index, as a job; their files are not touched. Adding a file by its path restores it;
    adding its folder does not."""
    site.check_writable()
    records = await site.lists.run(lambda: [site.index.record(video) for video in chosen.videos])

    def work(job: Job) -> dict[str, Any]:
        job.report(0, 0, "removing records")
        with site.index.writer() as index:
            removed = index.remove([record.path for record in records])
        return {"removed": removed, "paths": [printable(record.path) for record in records[:100]]}

    return accepted(site.jobs.start("remove", f"Remove {number(len(records), 'video')} from the index", work))


def _find_copies(site: Site, records: list[VideoRecord], job: Job) -> dict[str, Any]:
    found, failed = [], []
    for done, record in enumerate(records):
        job.report(done, len(records), base_name(record.path))
        try:
            open_record(record).close()
            with site.index.reader() as index:
                matches = index.search(record.path, limit=_MAX_COPIES + 1, threshold=SURE)
        except MediaError as error:
            failed.append({"path": printable(record.path), "cause": printable(error.cause)})
            continue
        others = [match for match in matches if match.video_id != record.id]
        if others:
            copies = [
                {"id": match.video_id, "name": base_name(match.path), "score": round(match.score, 3)}
                for match in others[:_MAX_COPIES]
            ]
            found.append({"id": record.id, "name": base_name(record.path), "copies": copies})
    return {"videos": len(records), "found": found, "failed": failed}


def _content(site: Site, video: int) -> str:
    record = site.index.record(video)
    if not record.content_hash:
        raise NotIndexedError(f"{printable(record.path)} changed while it was being read; index it again")
    return record.content_hash


def _summaries(site: Site) -> list[dict[str, Any]]:
    numbers: dict[str, list[int]] = {}
    for record in site.index.listing().records:
        numbers.setdefault(record.content_hash, []).append(record.id)
    return [
        {
            "name": name,
            "videos": [video for content in listed for video in numbers.get(content, ())],
            "absent": sum(content not in numbers for content in listed),
        }
        for name, listed in sorted(site.lists_of_videos().contents.items())
    ]


def _listed(site: Site, name: str) -> tuple[list[VideoRecord], int]:
    """The records of a list, and the number of its entries without a record."""
    listed = site.lists_of_videos().contents.get(name)
    if listed is None:
        raise NotIndexedError(f"there is no list {printable(name)!r}")
    records = [record for record in site.index.listing().records if record.content_hash in listed]
    return records, len(listed.keys() - {record.content_hash for record in records})


def _download(content: bytes, name: str, ending: str, kind: str) -> Response:
    disposition = f'attachment; filename="{safe_stem(name)}.{ending}"'
    return Response(content, headers={"Content-Disposition": disposition}, media_type=kind)
