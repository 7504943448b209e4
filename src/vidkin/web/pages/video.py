"""One video: its player and what is known of it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from vidkin.web.pages.library import VideoItem, video_item
from vidkin.web.site import CurrentSite, Page
from vidkin.web.sources import SourceItem, source_item

__all__ = ["page"]

router = APIRouter(tags=["library"])
page = Page(router)


@router.get("/videos/{video}", response_class=HTMLResponse, include_in_schema=False)
async def show_video(request: Request, site: CurrentSite, video: int) -> HTMLResponse:
    """The page."""

    def find() -> tuple[VideoItem, SourceItem]:
        return video_item(site.collection.record(video)), source_item(site, video=video)

    item, source = await site.lists.run(find)
    return site.page("video.html", request, {"video": item, "source": source})
