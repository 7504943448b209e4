"""The library: the videos of the index, filtered and sorted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from vidkin._base.files import IMAGE_EXTENSIONS
from vidkin.index import VideoRecord, is_gone
from vidkin.index.storage.lists import FAVORITES
from vidkin.web.duplicates import bring_up_to_date
from vidkin.web.filters import SORTS, FolderNode, LibraryFilter, Wish, choose_records, folder_tree
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

router = APIRouter(tags=["library"])
library_page = Page(router, "Library", "/")

_A_PAGE = 60


# ``still``: a photograph; ``missing``: the file is gone; ``thumbnail``: address, ``&time=SECONDS`` for another moment.
VideoModel: Any = result_model(VideoRecord, name=str, still=bool, missing=bool, thumbnail=str)
VideoList: Any = answer_model(
    "VideoList", "Some videos of the index, and how many fit the filter.", total=int, videos=list[VideoModel]
)


def video_values(record: VideoRecord) -> dict[str, Any]:
    """A record with its name, as it can be shown, and its picture; asks the disk whether the file is there."""
    return {
        **record.to_dict(),
        "name": base_name(record.path),
        "still": os.path.splitext(record.path)[1].lower() in IMAGE_EXTENSIONS,
        "missing": is_gone(record.path),
        "thumbnail": thumbnail_address(record),
    }


def _choose(site: Site, wish: LibraryFilter, offset: int, limit: int) -> tuple[dict[str, Any], Sequence[VideoRecord]]:
    """The videos that fit, some of them with what a page shows, and all records."""
    chosen, records = choose_records(site, wish)
    videos = [video_values(record) for record in chosen[offset : offset + limit]]
    return {"total": len(chosen), "videos": videos}, records


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
async def show_library(
    request: Request,
    site: CurrentSite,
    wish: Wish,
    number: Annotated[int, Query(alias="page", ge=1)] = 1,
) -> HTMLResponse:
    """Page of the videos, some at a time, with filters, a tree of folders, and lists."""
    if wish.copies:
        await bring_up_to_date(site)

    def prepare() -> dict[str, Any]:
        listed, records = _choose(site, wish, (number - 1) * _A_PAGE, _A_PAGE)
        lists = site.lists_of_videos().contents
        return {
            "videos": listed,
            "count": sum(record.status == "ok" for record in records),
            "is_empty": not records,
            "broken": sum(record.status == "broken" for record in records),
            "stale": sum(record.status == "stale" for record in records),
            "seconds": sum(record.duration for record in records),
            "bytes": sum(record.size for record in records),
            "wish": wish,
            "sorts": SORTS,
            "page": number,
            "pages": max(-(-listed["total"] // _A_PAGE), 1),
            "address": wish.address,
            "knows_copies": site.groups.found is not None,
            "tree": folder_tree(records, open_to=wish.folder),
            "lists": {name: len(contents) for name, contents in sorted(lists.items())},
            "tags": _tags(lists, {video["content_hash"] for video in listed["videos"]}),
            "favorites": FAVORITES,
        }

    return site.page("library.html", request, await site.lists.run(prepare))


def _tags(lists: Mapping[str, Mapping[str, None]], contents: set[str]) -> dict[str, list[str]]:
    """The names of the lists that hold each of these contents."""
    return {content: [name for name, listed in sorted(lists.items()) if content in listed] for content in contents}


@router.get("/api/videos", response_model=VideoList)
async def list_videos(
    site: CurrentSite,
    wish: Wish,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 60,
) -> ResultResponse:
    """The videos of the index that fit."""
    if wish.copies:
        await bring_up_to_date(site, wait=True)
    listed, _ = await site.lists.run(partial(_choose, site, wish, offset, limit))
    return ResultResponse(listed)


@router.get("/api/videos/numbers", response_model=list[int])
async def list_numbers(site: CurrentSite, wish: Wish) -> ResultResponse:
    """The numbers of all videos that fit, in their order."""
    if wish.copies:
        await bring_up_to_date(site, wait=True)
    return ResultResponse(await site.lists.run(lambda: [record.id for record in choose_records(site, wish)[0]]))


@router.get("/api/library/folders", response_model=list[FolderNode])
async def list_folders(site: CurrentSite, under: str = "") -> ResultResponse:
    """The folders of the index directly below a folder, with the numbers of videos in and below them."""
    return ResultResponse(await site.lists.run(lambda: folder_tree(site.index.listing().records, under=under)))
