"""The map of the collection: all videos by similarity, computed in the background and kept until the index changes."""

from __future__ import annotations

import os
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from vidkin._base.values import LONG_JSON_LIMITS, read_json
from vidkin.index.overview import MapMethod, map_collection
from vidkin.index.storage.manifest import Manifest
from vidkin.rendering.text import json_text, printable
from vidkin.web.jobs import Job, JobState
from vidkin.web.site import CurrentSite, Page, ResultResponse, Site, answer_model

router = APIRouter(tags=["map"])
map_page = Page(router, "Map", "/map")

# Folders that have a color of their own; the others share one.
_MOST_FOLDERS = 100
_KEY = "map of videos"

# ``videos``, ``x``, ``y``, ``cluster``, ``folder``: of each video its number, its place in [0, 1], the number of its
# cluster, and the position of its folder in ``folders``, -1 for the smaller ones; ``central``: typical videos of each
# cluster.
MapOfVideos: Any = answer_model(
    "MapOfVideos",
    "The videos of the index as points, similar ones near to each other.",
    method=str,
    videos=list[int],
    x=list[float],
    y=list[float],
    cluster=list[int],
    central=list[list[int]],
    folder=list[int],
    folders=list[str],
    is_current=bool,
)


class MapWish(BaseModel):
    """How to place the videos."""

    method: MapMethod = Field("auto", description="auto: umap where it is installed, else pca.")


@router.get("/map", response_class=HTMLResponse, include_in_schema=False)
async def show_map(request: Request, site: CurrentSite) -> HTMLResponse:
    """Page of the map; its script asks for the points."""
    return site.page("map.html", request, {"is_empty": await site.lists.run(site.is_empty)})


@router.get("/api/map", response_model=MapOfVideos | None)
async def get_map(site: CurrentSite) -> ResultResponse:
    """The map as it was computed last; null before that."""
    return ResultResponse(await site.lists.run(lambda: _stored(site)))


@router.post("/api/map", status_code=202)
async def compute_map(site: CurrentSite, wish: MapWish) -> JobState:
    """Place all videos, as a job; the result is kept in the cache of the index."""

    def work(job: Job) -> dict[str, Any]:
        state = _state_of(site)
        job.report(0, 0, "reading features")
        with site.index.reader() as index:
            made = map_collection(
                index, method=wish.method, on_progress=lambda done, total: job.report(done, total, "reading features")
            )
        rows = {
            "state": state,
            "method": made.method,
            "videos": made.videos,
            "x": made.points[:, 0].round(4),
            "y": made.points[:, 1].round(4),
            "cluster": made.clusters,
            "central": made.central,
        }
        site.cache.put(_KEY, ".json", json_text(rows).encode("ascii"))
        return {"videos": len(made.videos), "method": made.method}

    return site.jobs.start("map", "Map of the collection", work).state()


def _state_of(site: Site) -> list[Any]:
    """What a map depends on."""
    records = site.index.listing().records
    newest = max((record.id for record in records), default=0)
    return [len(records), newest, Manifest.read(site.index.place).fingerprint]


def _stored(site: Site) -> dict[str, Any] | None:
    path = site.cache.find(_KEY, ".json")
    if path is None:
        return None
    try:
        table = read_json(path, LONG_JSON_LIMITS)
        columns = {name: table[name] for name in ("videos", "x", "y", "cluster")}
        central, method, state = table["central"], table["method"], table["state"]
    except (ValueError, TypeError, LookupError):
        path.unlink(missing_ok=True)  # damaged from outside; it can be made again
        return None
    by_id = site.index.listing().by_id
    kept = [position for position, video in enumerate(columns["videos"]) if video in by_id]
    answer: dict[str, Any] = {name: [values[position] for position in kept] for name, values in columns.items()}
    paths = [os.path.dirname(by_id[video].path) for video in answer["videos"]]
    sizes: dict[str, int] = {}
    for folder in paths:
        sizes[folder] = sizes.get(folder, 0) + 1
    folders = sorted(sizes, key=lambda folder: (-sizes[folder], folder))[:_MOST_FOLDERS]
    position_of = {folder: position for position, folder in enumerate(folders)}
    return {
        **answer,
        "method": method,
        "central": [[video for video in videos if video in by_id] for videos in central],
        "folder": [position_of.get(folder, -1) for folder in paths],
        "folders": [printable(folder) for folder in folders],
        "is_current": state == _state_of(site),
    }
