"""Search by example: a video, a dropped file, a stretch of either, or a rectangle of one frame."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from vidkin.errors import InvalidArgumentError
from vidkin.index import Match
from vidkin.media import thumbnail
from vidkin.rendering.boxes import describe_parts
from vidkin.similarity import UNRELATED, WHOLE, Box, Segment
from vidkin.web.pages.library import VideoItem, video_item
from vidkin.web.site import CurrentSite, Page, Site
from vidkin.web.sources import Source, open_source, source_item

__all__ = ["SearchQuery", "SegmentItem", "page", "segment_item"]

router = APIRouter(tags=["search"])
page = Page(router, "Search", "/search")

# Pixels of a side below which a rectangle shows nothing.
_LEAST_SIDE = 16


class SearchQuery(BaseModel):
    """What is searched for: ``video`` or ``upload``, and which part of it."""

    video: int | None = Field(None, description="Number of a video of the index.")
    upload: str | None = Field(None, description="Id of a dropped file.")
    start: float | None = Field(None, ge=0, description="Begin of a stretch, seconds.")
    end: float | None = Field(None, gt=0, description="End of a stretch, seconds.")
    time: float = Field(0.0, ge=0, description="Moment of the frame on which a rectangle is, seconds.")
    box: Box | None = Field(
        None, description="Rectangle: left, top, right, bottom, as shares of the picture."
    )

    def check(self) -> None:
        """Raise InvalidArgumentError unless it names one thing, and one part of it."""
        if (self.video is None) == (self.upload is None):
            raise InvalidArgumentError("a search must name either a video or an upload")
        if self.box is not None:
            left, top, right, bottom = self.box
            if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
                raise InvalidArgumentError(
                    f"box must be left < right and top < bottom in [0, 1], got {list(self.box)}"
                )
            if self.start is not None or self.end is not None:
                raise InvalidArgumentError("a search must have a box or a stretch, not both")


class Search(SearchQuery):
    """A search."""

    limit: int = Field(20, ge=1, le=200, description="At most so many matches.")
    offset: int = Field(0, ge=0, le=10_000, description="Leave out so many of the best.")
    threshold: float = Field(0.0, ge=0, le=1, description="Lowest score.")
    mirrored: bool = Field(True, description="Also find copies that are flipped left to right.")


@dataclass(frozen=True, slots=True)
class SegmentItem:
    """Where a query and a video match; as :class:`vidkin.similarity.Segment`, and ``part`` in words."""

    query_start: float
    query_end: float
    target_start: float
    target_end: float
    score: float
    speed: float
    mirrored: bool
    query_box: Box
    target_box: Box
    part: str


@dataclass(frozen=True, slots=True)
class MatchItem:
    """A video that matches: its rank, score in [0, 1], and where."""

    rank: int
    score: float
    mirrored: bool
    video: VideoItem
    segments: list[SegmentItem]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The matches of a search, best first; ``has_segments`` is false where scores order kinds of videos."""

    matches: list[MatchItem]
    has_segments: bool
    seconds: float


def segment_item(segment: Segment, box: Box | None = None, moment: float = 0.0) -> SegmentItem:
    """A segment; ``box`` is the part of the query's picture that was searched for, at the time ``moment``."""
    left, top, right, bottom = box or WHOLE
    width, height = right - left, bottom - top
    inner = segment.query_box
    query_box = (
        left + inner[0] * width,
        top + inner[1] * height,
        left + inner[2] * width,
        top + inner[3] * height,
    )
    return SegmentItem(
        segment.query_start + moment,
        segment.query_end + moment,
        segment.target_start,
        segment.target_end,
        segment.score,
        segment.speed,
        segment.mirrored,
        query_box,
        segment.target_box,
        describe_parts(segment),
    )


@router.get("/search", response_class=HTMLResponse, include_in_schema=False)
async def show_search(
    request: Request, site: CurrentSite, video: int | None = None, upload: str | None = None
) -> HTMLResponse:
    """The page; its script runs the search that the address names."""
    source = None
    if video is not None or upload is not None:
        source = await site.lists.run(partial(source_item, site, video=video, upload=upload))
    values = {"source": source, "has_segments": site.collection.has_segments, "unrelated": UNRELATED}
    values["is_empty"] = await site.lists.run(site.is_empty)
    return site.page("search.html", request, values)


@router.post("/api/search")
async def search(site: CurrentSite, wanted: Search) -> SearchResult:
    """The videos of the index that match, best first; a video does not match itself."""
    wanted.check()
    return await site.searches.run(partial(_search, site, wanted))


def _search(site: Site, wanted: Search) -> SearchResult:
    began = time.monotonic()
    source = open_source(site, video=wanted.video, upload=wanted.upload)
    source.open().close()
    with site.collection.reader() as index:
        matches = index.search(
            source.path if wanted.box is None else cut_out(source, wanted.time, wanted.box),
            start=wanted.start,
            end=wanted.end,
            # One more: the video itself is left out.
            limit=wanted.limit + 1,
            offset=wanted.offset,
            threshold=wanted.threshold,
            mirrored=wanted.mirrored,
        )
    others = [match for match in matches if match.video_id != wanted.video]
    items = [
        item
        for rank, match in enumerate(others[: wanted.limit], start=wanted.offset + 1)
        if (item := _match_item(site, match, rank, wanted)) is not None
    ]
    return SearchResult(items, site.collection.has_segments, round(time.monotonic() - began, 2))


def _match_item(site: Site, match: Match, rank: int, wanted: SearchQuery) -> MatchItem | None:
    record = site.collection.listing().by_id.get(match.video_id)
    if record is None:
        return None  # removed meanwhile
    moment = wanted.time if wanted.box is not None else 0.0
    segments = [segment_item(segment, wanted.box, moment) for segment in match.segments]
    return MatchItem(rank, match.score, match.mirrored, video_item(record), segments)


def cut_out(source: Source, seconds: float, box: Box) -> NDArray[np.uint8]:
    """A part of the frame at a time, [H, W, 3].

    Raises:
        InvalidArgumentError: It is too small to show anything.
    """
    frame = thumbnail(source.path, seconds, short_side=None, threads=1)
    height, width = frame.shape[:2]
    left, top, right, bottom = (
        round(share * side) for share, side in zip(box, (width, height) * 2, strict=True)
    )
    if min(right - left, bottom - top) < _LEAST_SIDE:
        raise InvalidArgumentError(
            f"a rectangle must have at least {_LEAST_SIDE} pixels a side, got {right - left}x{bottom - top}"
        )
    return np.ascontiguousarray(frame[top:bottom, left:right])
