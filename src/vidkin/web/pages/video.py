"""One video: its player and what is known of it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from vidkin.web.pages.library import video_item
from vidkin.web.site import CurrentSite, Page

__all__ = ["page"]

router = APIRouter(tags=["library"])
page = Page(router)


@router.get("/videos/{video}", response_class=HTMLResponse, include_in_schema=False)
async def show_video(request: Request, site: CurrentSite, video: int) -> HTMLResponse:
    """The page."""
    item = await site.lists.run(lambda: video_item(site.collection.record(video)))
    return site.page("video.html", request, {"video": item})
