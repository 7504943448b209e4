"""Search by example with a video, an upload, or a clip or rectangle of either; and compare two videos side by side."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Depends, Header, HTTPException, Query, Request
from fastapi import Path as PathPart
from fastapi.responses import Response
from numpy.typing import NDArray
from pydantic import Field

from vidkin.errors import InvalidArgumentError
from vidkin.features import find_content_boxes
from vidkin.index import Match, VideoRecord
from vidkin.index.query.exact_times import refine_segment
from vidkin.media import thumbnail
from vidkin.rendering.matches import pool_map
from vidkin.rendering.text import describe_parts, match_as_json
from vidkin.similarity import SURE, UNRELATED, Box, Segment
from vidkin.web import routes
from vidkin.web.library import VideoModel, video_values
from vidkin.web.media import Source, open_source
from vidkin.web.site import CurrentSite, Site

router = routes.Page("search", "Search", "/search")

# Minimum side of a rectangle, pixels; smaller ones show nothing recognizable.
_MIN_SIDE = 16
# Maximum length of the names that a page gives itself and its searches.
_MAX_TICKET = 64
# Minimum probability of a suggested rectangle in an image; low, because the user chooses.
_SUGGESTED = 0.02


class SearchQuery(routes.Body):
    """A query: a `video` or an `upload`, and optionally a part of it.

    Attributes:
        video: Number of a video of the index.
        upload: Id of an uploaded file.
        start: Start of a clip, seconds.
        end: End of a clip, seconds.
        time: Time of the frame that `box` refers to, seconds.
        box: Rectangle: left, top, right, bottom, as shares of the frame.
    """

    video: routes.VideoId | None = None
    upload: str | None = Field(None, max_length=100)
    start: float | None = Field(None, ge=0, le=1e6)
    end: float | None = Field(None, gt=0, le=1e6)
    time: float = Field(0.0, ge=0, le=1e6)
    box: routes.BodyBox | None = None

    def check(self) -> None:
        """Raise InvalidArgumentError unless the query has one source and at most one part."""
        if (self.video is None) == (self.upload is None):
            raise InvalidArgumentError("a search must name either a video or an upload")
        if self.box is not None:
            left, top, right, bottom = self.box
            if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
                raise InvalidArgumentError(f"box must be left < right and top < bottom in [0, 1], got {list(self.box)}")
            if self.start is not None or self.end is not None:
                raise InvalidArgumentError("a search must have a box or a clip (start, end), not both")


@dataclass(frozen=True, slots=True)
class PlaceInLine:
    """Position of a search in the queue.

    Attributes:
        position: 1 is the next; 0 has started.
    """

    position: int


def _turn(
    request: Request,
    tab: Annotated[str, Header(alias="X-Vidkin-Tab", max_length=_MAX_TICKET, examples=["17"])] = "",
    ticket: Annotated[str, Header(alias="X-Vidkin-Ticket", max_length=_MAX_TICKET, examples=["17.1"])] = "",
) -> dict[str, str]:
    """Arguments of `Lane.run`: the client of a request, and its ticket.

    Args:
        request: The request.
        tab: Any name of the client; clients take turns.
        ticket: Any name of this request, for asking its position in the queue.
    """
    return {"client": f"{request.client.host if request.client else ''} {tab}", "ticket": ticket}


_Turn = Annotated[dict[str, str], Depends(_turn)]


class Search(SearchQuery):
    """A query with options of the search.

    Attributes:
        limit: Maximum number of matches.
        offset: Number of matches to skip.
        threshold: Lowest score.
        by: Basis of the score.
    """

    limit: int = Field(20, ge=1, le=200)
    offset: int = Field(0, ge=0, le=10_000)
    threshold: float = Field(0.0, ge=0, le=1)
    by: Literal["picture", "sound", "either", "both"] = "picture"


@routes.extends(Segment)
class SegmentModel:
    """A matching segment.

    Attributes:
        part: Which part of the frame matches, in words; empty for all of it.
    """

    part: str


@routes.extends(Match)
class MatchModel:
    """A match.

    Attributes:
        rank: Position among all matches, from 1.
        segments: Matching segments, best first.
        sound_segments: Matching segments of the sound.
        video: The video.
    """

    rank: int
    segments: list[SegmentModel]
    sound_segments: list[SegmentModel]
    video: VideoModel


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The matches of a search, best first.

    Attributes:
        matches: The matches, best first.
        has_segments: False if scores only order kinds of videos, without segments.
        seconds: Elapsed time in seconds.
    """

    matches: list[MatchModel]
    has_segments: bool
    seconds: float


def segment_values(segment: Segment) -> Any:
    """The values of a :class:`SegmentModel`."""
    return {**segment.to_dict(), "part": describe_parts(segment)}


def _in_frame(segment: Segment, box: Box, moment: float) -> Segment:
    """Convert a segment of a query box to the frame and time of the whole video."""
    left, top, right, bottom = box
    origin, size = (left, top) * 2, (right - left, bottom - top) * 2
    x, y, far_x, far_y = (at + share * side for at, share, side in zip(origin, segment.query_box, size, strict=True))
    start, end = segment.query_start + moment, segment.query_end + moment
    return replace(segment, query_start=start, query_end=end, query_box=(x, y, far_x, far_y))


@router.page("/search", "search.html")
def show_search(site: CurrentSite, video: int | None = None, upload: str | None = None) -> dict[str, Any]:
    """Page of searches; its script runs the search in the address."""
    has_source = video is not None or upload is not None
    return {
        "source": open_source(site, video=video, upload=upload).item if has_source else None,
        "unrelated": UNRELATED,
        "sure": SURE,
    }


@router.post("/api/search", **routes.either("search", SearchResult))
async def search_videos(site: CurrentSite, query: Search, turn: _Turn, prefer: routes.Prefer = "") -> object:
    """Search the index; matches are sorted best first and exclude the query video itself."""
    query.check()
    work = partial(_search, site, query)
    return await routes.answer_or_start(site, prefer, "search", "Search", work, video=query.video, **turn)


@router.get(
    "/api/searches/{ticket}",
    response_model=PlaceInLine,
    responses={204: {"description": "It is not in the queue: it has not arrived or has ended."}},
)
async def get_place_in_line(
    site: CurrentSite, ticket: Annotated[str, PathPart(max_length=_MAX_TICKET)]
) -> PlaceInLine | Response:
    """Get the position in the queue of the search or match sent with this `X-Vidkin-Ticket`.

    Args:
        site: The site.
        ticket: `X-Vidkin-Ticket` of the search.
    """
    position = site.searches.position(ticket)
    # Not an error: the search may have just ended.
    return Response(status_code=204) if position is None else PlaceInLine(position)


def _search(site: Site, query: Search) -> SearchResult:
    began = time.monotonic()
    source = open_source(site, video=query.video, upload=query.upload)
    source.check()
    last = query.offset + query.limit
    with site.index.reader() as index:
        matches = index.search(
            source.path if query.box is None else cut_out(source, query.time, query.box),
            start=query.start,
            end=query.end,
            # One more, because the query video itself is removed from the matches and not counted.
            limit=last + 1,
            threshold=query.threshold,
            by=None if query.by == "picture" else query.by,  # also reports the sound score
        )
    others = [match for match in matches if match.video_id != query.video]
    records = site.index.listing().by_id
    shown = [
        _match_values(match, rank, records[match.video_id], query)
        for rank, match in enumerate(others[query.offset : last], start=query.offset + 1)
        if match.video_id in records  # not removed in the meantime
    ]
    return SearchResult(shown, site.index.has_segments, round(time.monotonic() - began, 2))


def _match_values(match: Match, rank: int, record: VideoRecord, query: SearchQuery) -> Any:
    segments = match.segments
    if query.box is not None:
        segments = tuple(_in_frame(segment, query.box, query.time) for segment in segments)
    return {
        **match_as_json(match, rank),
        "segments": [segment_values(segment) for segment in segments],
        "sound_segments": [segment_values(segment) for segment in match.sound_segments],
        "video": video_values(record),
    }


def cut_out(source: Source, seconds: float, box: Box) -> NDArray[np.uint8]:
    """A part of the frame at a time, [H, W, 3].

    Raises:
        InvalidArgumentError: The part is too small to show anything.
    """
    frame = thumbnail(source.path, seconds, short_side=None, threads=1)
    height, width = frame.shape[:2]
    left, top, right, bottom = (round(share * side) for share, side in zip(box, (width, height) * 2, strict=True))
    if min(right - left, bottom - top) < _MIN_SIDE:
        raise InvalidArgumentError(
            f"a rectangle must have at least {_MIN_SIDE} pixels a side, got {right - left}x{bottom - top}"
        )
    return np.ascontiguousarray(frame[top:bottom, left:right])


@router.get("/api/rectangles")
@routes.in_lane("pictures")
def list_rectangles(
    site: CurrentSite,
    video: Annotated[int | None, Query(ge=0, le=routes.MAX_NUMBER, examples=[1])] = None,
    upload: Annotated[str | None, Query(max_length=100)] = None,
    time: Annotated[float, Query(ge=0, le=1e6)] = 0.0,
) -> list[Box]:
    """List the largest rectangles in an image, as suggestions for searches: left, top, right, bottom, as shares.

    Args:
        site: The site.
        video: Number of a video of the index.
        upload: Id of an uploaded file.
        time: Seconds.
    """
    SearchQuery(video=video, upload=upload, start=None, end=None, time=time, box=None).check()
    source = open_source(site, video=video, upload=upload)
    source.check()
    frame = thumbnail(source.path, min(time, max(source.item.duration - 0.1, 0.0)), short_side=360, threads=1)
    boxes = find_content_boxes(np.stack([frame, frame]), least=_SUGGESTED).tolist()
    return [(left, top, right, bottom) for left, top, right, bottom in boxes]


class Pair(SearchQuery):
    """A query without a rectangle, and the video to compare it with.

    Attributes:
        target: Number of a video of the index.
    """

    target: routes.VideoId


@dataclass(frozen=True, slots=True)
class FrameMap:
    """Similarity of every frame with every frame, pooled to at most 1,000 cells per side.

    Attributes:
        rows, columns: Number of cells.
        query_times, target_times: Start of each row and column, seconds.
        cells: Base64 of one byte per cell, row by row; 255 is 1.0.
    """

    rows: int
    columns: int
    query_times: list[float]
    target_times: list[float]
    cells: str


@dataclass(frozen=True, slots=True)
class MatchResult:
    """Score in [0, 1], matching segments (best first) and frame map of two videos.

    Attributes:
        score: Score in [0, 1].
        has_segments: False if scores only order kinds of videos, without segments.
        segments: Matching segments, best first.
        map: Similarity of every frame with every frame.
    """

    score: float
    has_segments: bool
    segments: list[SegmentModel]
    map: FrameMap


@router.page("/match", "match.html")
def show_match(
    site: CurrentSite, target: int | None = None, video: int | None = None, upload: str | None = None
) -> dict[str, Any]:
    """Page of two videos side by side; its script requests the map."""
    if target is None or (video is None and upload is None):
        raise HTTPException(422, "a match needs two videos; search with one, then open the frame map of a match")
    query, other = open_source(site, video=video, upload=upload), open_source(site, video=target)
    return {"query": query.item, "target": other.item}


@router.post("/api/match", **routes.either("match", MatchResult))
async def match_videos(site: CurrentSite, pair: Pair, turn: _Turn, prefer: routes.Prefer = "") -> object:
    """Compare a video or uploaded file with a video of the index."""
    pair.check()
    if pair.box is not None:
        raise InvalidArgumentError("a match compares whole frames; remove box, or search with it")
    work = partial(_match, site, pair)
    return await routes.answer_or_start(site, prefer, "match", "Compare two videos", work, video=pair.video, **turn)


def _match(site: Site, pair: Pair) -> MatchResult:
    source, target = _open_pair(site, pair.video, pair.upload, pair.target)
    with site.index.reader() as index:
        comparison = index.match(source.path, target.path, start=pair.start, end=pair.end)
    values, rows, columns = pool_map(comparison)
    cells = base64.b64encode(np.clip(values * 255 + 0.5, 0, 255).astype(np.uint8).tobytes()).decode("ascii")
    frame_map = FrameMap(len(rows), len(columns), rows.tolist(), columns.tolist(), cells)
    segments = [segment_values(segment) for segment in comparison.segments]
    return MatchResult(comparison.score, comparison.has_segments, segments, frame_map)


def _open_pair(site: Site, video: int | None, upload: str | None, target: int) -> tuple[Source, Source]:
    """A video or upload, and a video, both checked."""
    pair = open_source(site, video=video, upload=upload), open_source(site, video=target)
    for source in pair:
        source.check()
    return pair


class SyncPart(routes.Body):
    """A matching part of two files: time t of the leader in [start, end] is at `at + (t - start) * rate`.

    Attributes:
        start: Start in the leader, seconds.
        end: End in the leader, seconds.
        at: Start in the follower, seconds.
        rate: Seconds of the follower per second of the leader; negative where it runs backwards.
        mirrored: Whether one of the two is flipped left to right.
        leader_box: Part of the leader's frame, shares.
        box: Part of the follower's frame, shares.
    """

    start: float = Field(ge=0, le=1e6)
    end: float = Field(ge=0, le=1e6)
    at: float = Field(ge=0, le=1e6)
    rate: float = Field(1.0, gt=-100, lt=100)
    mirrored: bool = False
    leader_box: routes.BodyBox = (0.0, 0.0, 1.0, 1.0)
    box: routes.BodyBox = (0.0, 0.0, 1.0, 1.0)


class SyncQuery(routes.Body):
    """Two files to play in sync, and approximately where they match.

    Attributes:
        video: Number of the leader.
        upload: Id of the leader, an uploaded file.
        target: Number of the follower.
        parts: Matching parts, exact to three quarters of a second.
    """

    video: routes.VideoId | None = None
    upload: str | None = Field(None, max_length=100)
    target: routes.VideoId
    parts: list[SyncPart] = Field(max_length=8)


@router.post("/api/sync", response_model=list[SyncPart])
async def refine_times(site: CurrentSite, query: SyncQuery, turn: _Turn) -> list[dict[str, Any]]:
    """Refine the times of parts by decoding both files around them, for players that show both frame by frame."""

    def work() -> list[dict[str, Any]]:
        leader, follower = _open_pair(site, query.video, query.upload, query.target)
        return [_exact(site, leader, follower, part).model_dump() for part in query.parts]

    return await site.searches.run(work, **turn)


def _exact(site: Site, leader: Source, follower: Source, part: SyncPart) -> SyncPart:
    """Refine a part; the result is cached, because it takes decoding some seconds of both files."""

    def make() -> dict[str, Any]:
        try:
            segment = refine_segment(leader.path, follower.path, _segment(part))
        except ValueError as error:
            raise InvalidArgumentError(f"a part must lie inside both files, got {part}: {error}") from error
        exact = {
            "start": segment.query_start,
            "end": segment.query_end,
            "at": segment.target_time(segment.query_start),
            "rate": -segment.speed if segment.backwards else segment.speed,
        }
        return {**part.model_dump(), **exact}

    key = f"sync\0{leader.key}\0{follower.key}\0{part.model_dump_json()}"
    return site.cache.compute(key, make, SyncPart.model_validate)


def _segment(part: SyncPart) -> Segment:
    start, end = sorted((part.at, part.at + (part.end - part.start) * part.rate))
    boxes = part.leader_box, part.box
    backwards = part.rate < 0
    return Segment(part.start, part.end, start, end, 1.0, abs(part.rate), part.mirrored, *boxes, backwards=backwards)
