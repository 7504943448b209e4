"""Actions on several videos: keep them in lists, find their copies, remove their records from the index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import Query
from fastapi.responses import Response
from pydantic import Field

from vidkin.errors import InvalidArgumentError, NotIndexedError
from vidkin.index import VideoRecord
from vidkin.index.storage.lists import change_saved_list, rename_saved_list
from vidkin.rendering.text import json_text, number, printable
from vidkin.similarity import SURE
from vidkin.web.files import open_record, record_values
from vidkin.web.jobs import FailedVideo, Job, process_each
from vidkin.web.routes import Body, Page, VideoId, attached_table, attachment, safe_stem
from vidkin.web.site import CurrentSite, Site, WritableSite, base_name

router = Page("lists")

# Maximum number of videos in a request, and in a search for copies, which reads every one.
_MAX_VIDEOS, _MAX_QUERIES = 100_000, 1000
# Maximum number of copies reported for a video.
_MAX_COPIES = 20


@dataclass(frozen=True, slots=True)
class ListSummary:
    """A list of videos.

    Attributes:
        name: Name of the list.
        videos: Numbers of the videos on the list.
        absent: Number of list entries without a file in the index.
    """

    name: str
    videos: list[int]
    absent: int


ListName = Annotated[str, Query(max_length=200, description="Name of the list.", examples=["favorites"])]


@dataclass(frozen=True, slots=True)
class CopyFound:
    """A copy of a video.

    Attributes:
        id: Number of the copy.
        name: Name of its file.
        score: Score in [0, 1].
    """

    id: int
    name: str
    score: float


@dataclass(frozen=True, slots=True)
class CopiesFound:
    """A video that has copies.

    Attributes:
        id: Number of the video.
        name: Name of its file.
        copies: The copies, best first.
    """

    id: int
    name: str
    copies: list[CopyFound]


@dataclass(frozen=True, slots=True)
class CopiesResult:
    """Copies of the chosen videos.

    Attributes:
        videos: Number of videos.
        found: The videos that have copies.
        failed: Videos that could not be processed.
    """

    videos: int
    found: list[CopiesFound]
    failed: list[FailedVideo]


@dataclass(frozen=True, slots=True)
class RemoveResult:
    """The removed records.

    Attributes:
        removed: Number of records that were removed.
        paths: Paths of at most 100 removed videos.
    """

    removed: int
    paths: list[str]


class ListChange(Body):
    """Videos to add to a list and to remove from it.

    Attributes:
        name: Name of the list; created if it does not exist.
        add: Numbers of videos.
        remove: Numbers of videos.
    """

    name: str = Field(max_length=200)
    add: list[VideoId] = Field(default_factory=list, max_length=_MAX_VIDEOS)
    remove: list[VideoId] = Field(default_factory=list, max_length=_MAX_VIDEOS)


class NewName(Body):
    """A new name for a list.

    Attributes:
        name: Name of the list.
        new_name: Its new name; null deletes the list.
    """

    name: str = Field(max_length=200)
    new_name: str | None = Field(max_length=200)


class SomeVideos(Body):
    """Videos of the index.

    Attributes:
        videos: Numbers of the videos.
    """

    videos: list[VideoId] = Field(min_length=1, max_length=_MAX_VIDEOS)


@router.get("/api/lists")
def list_lists(site: CurrentSite) -> list[ListSummary]:
    """List the lists of the index, by name."""
    numbers: dict[str, list[int]] = {}
    for record in site.index.listing().records:
        numbers.setdefault(record.content_hash, []).append(record.id)
    return [
        ListSummary(
            name,
            [video for content in listed for video in numbers.get(content, ())],
            sum(content not in numbers for content in listed),
        )
        for name, listed in sorted(site.lists_of_videos().contents.items())
    ]


@router.post("/api/lists")
def change_list(site: WritableSite, change: ListChange) -> list[ListSummary]:
    """Add videos to a list and remove others; answers with all lists."""
    add, remove = ([_content(site, video) for video in videos] for videos in (change.add, change.remove))
    change_saved_list(site.index.place, change.name.strip(), add=add, remove=remove)
    return list_lists(site)


@router.post("/api/lists/rename")
def rename_list(site: WritableSite, name: NewName) -> list[ListSummary]:
    """Rename or delete a list; its videos stay."""
    rename_saved_list(site.index.place, name.name, None if name.new_name is None else name.new_name.strip())
    return list_lists(site)


@router.file("/api/lists.json", "application/json")
def export_list(site: CurrentSite, name: ListName) -> Response:
    """Download the videos of a list, with all data that the index has on them."""
    records, absent = _listed(site, name)
    document = {"name": name, "videos": list(map(record_values, records)), "absent": absent}
    return attachment(json_text(document, indent=1), f"{safe_stem(name)}.json", "application/json")


@router.file("/api/lists.csv", "text/csv")
def export_list_table(site: CurrentSite, name: ListName) -> Response:
    """Download the videos of a list as a table: path, seconds, bytes, width, height, codec, content hash."""
    records, _ = _listed(site, name)
    columns = ("path", "duration", "size", "width", "height", "codec", "content_hash")
    rows = ([getattr(record, each) for each in columns] for record in records)
    return attached_table([columns, *rows], f"{safe_stem(name)}.csv")


@router.job("/api/videos/copies", "copies", CopiesResult)
def find_copies(site: CurrentSite, chosen: SomeVideos) -> Job:
    """Find copies of chosen videos in the index, as a job; its result has the matches of each, best first."""
    site.index.check_segments()
    if len(chosen.videos) > _MAX_QUERIES:
        raise InvalidArgumentError(
            f"copies of at most {_MAX_QUERIES:,} videos can be sought at a time, got {len(chosen.videos):,}; the page "
            "Duplicates compares all videos"
        )
    records = site.index.records(chosen.videos)
    return site.jobs.start(
        "copies", f"Find copies of {number(len(records), 'video')}", partial(_find_copies, site, records)
    )


@router.job("/api/videos/remove", "remove", RemoveResult)
def remove_videos(site: WritableSite, chosen: SomeVideos) -> Job:
    """Remove videos from the index, as a job; their files are not touched. Adding a file by its path restores it;
    adding its folder does not."""
    records = site.index.records(chosen.videos)

    def work(job: Job) -> RemoveResult:
        job.report(0, 0, "removing records")
        with site.index.writer() as index:
            removed = index.remove([record.path for record in records])
        return RemoveResult(removed, [printable(record.path) for record in records[:100]])

    return site.jobs.start("remove", f"Remove {number(len(records), 'video')} from the index", work)


def _find_copies(site: Site, records: list[VideoRecord], job: Job) -> CopiesResult:
    found = []

    def find(record: VideoRecord, _: Callable[..., None]) -> None:
        open_record(record).close()
        with site.index.reader() as index:
            matches = index.search(record.path, limit=_MAX_COPIES + 1, threshold=SURE)
        others = [match for match in matches if match.video_id != record.id][:_MAX_COPIES]
        copies = [CopyFound(match.video_id, base_name(match.path), round(match.score, 3)) for match in others]
        if copies:
            found.append(CopiesFound(record.id, base_name(record.path), copies))

    failed = [
        FailedVideo(each.path, each.cause.removeprefix(f"{each.path}: ")) for each in process_each(job, records, find)
    ]
    return CopiesResult(len(records), found, failed)


def _content(site: Site, video: int) -> str:
    record = site.index.record(video)
    if not record.content_hash:
        raise NotIndexedError(f"{printable(record.path)} changed while it was being read; index it again")
    return record.content_hash


def _listed(site: Site, name: str) -> tuple[list[VideoRecord], int]:
    """The records of a list, and the number of its entries without a record."""
    listed = site.lists_of_videos().contents.get(name)
    if listed is None:
        raise NotIndexedError(f"there is no list {printable(name)!r}")
    records = [record for record in site.index.listing().records if record.content_hash in listed]
    return records, len(listed.keys() - {record.content_hash for record in records})
