"""Two videos side by side: where they match, and the map of frame similarities."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import Field

from vidkin.errors import InvalidArgumentError
from vidkin.rendering.pictures import pool_map
from vidkin.web.pages.search import SearchQuery, SegmentItem, segment_item
from vidkin.web.site import CurrentSite, Page, Site
from vidkin.web.sources import open_source, source_item

__all__ = ["page"]

router = APIRouter(tags=["search"])
page = Page(router)


class Pair(SearchQuery):
    """A query without a rectangle, and the video that it is compared with."""

    target: int = Field(description="Number of a video of the index.")
    mirrored: bool = Field(True, description="Also compare either one flipped left to right.")


@dataclass(frozen=True, slots=True)
class FrameMap:
    """Similarity of every frame with every frame, pooled to at most 1,000 cells per side.

    Attributes:
        rows, columns: Number of cells.
        query_times, target_times: When rows and columns start, seconds.
        cells: Base64 of one byte a cell, row by row: 255 is 1.0.
    """

    rows: int
    columns: int
    query_times: list[float]
    target_times: list[float]
    cells: str


@dataclass(frozen=True, slots=True)
class MatchResult:
    """Score in [0, 1], where two videos match (best first), and their frame map."""

    score: float
    has_segments: bool
    segments: list[SegmentItem]
    map: FrameMap


@router.get("/match", response_class=HTMLResponse, include_in_schema=False)
async def show_match(
    request: Request,
    site: CurrentSite,
    target: Annotated[int, Query()],
    video: int | None = None,
    upload: str | None = None,
) -> HTMLResponse:
    """The page; its script asks for the map."""
    query = await site.lists.run(partial(source_item, site, video=video, upload=upload))
    other = await site.lists.run(partial(source_item, site, video=target))
    return site.page("match.html", request, {"query": query, "target": other})


@router.post("/api/match")
async def match(site: CurrentSite, wanted: Pair) -> MatchResult:
    """One video (or dropped file) against one video of the index."""
    wanted.check()
    if wanted.box is not None:
        raise InvalidArgumentError("a match is of whole pictures; leave out box, or search with it")
    return await site.searches.run(partial(_match, site, wanted))


def _match(site: Site, wanted: Pair) -> MatchResult:
    query = open_source(site, video=wanted.video, upload=wanted.upload)
    target = open_source(site, video=wanted.target)
    for source in (query, target):
        source.open().close()  # what is not the file that was indexed is not looked at
    with site.collection.reader() as index:
        comparison = index.match(
            query.path, target.path, start=wanted.start, end=wanted.end, mirrored=wanted.mirrored
        )
    values, rows, columns = pool_map(comparison)
    cells = np.clip(values * 255 + 0.5, 0, 255).astype(np.uint8).tobytes()
    return MatchResult(
        comparison.score,
        comparison.has_segments,
        [segment_item(segment) for segment in comparison.segments],
        FrameMap(
            len(rows), len(columns), rows.tolist(), columns.tolist(), base64.b64encode(cells).decode("ascii")
        ),
    )
