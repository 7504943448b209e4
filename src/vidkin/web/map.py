"""The map of the index: videos or shots arranged by similarity, computed by a job and cached."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import Field

from vidkin._base.values import LONG_JSON_LIMITS, read_json
from vidkin.errors import InvalidArgumentError, VidkinError
from vidkin.index import VideoRecord
from vidkin.index.overview import CollectionMap, MapMethod, map_collection, map_shots
from vidkin.index.storage.manifest import Manifest
from vidkin.rendering.text import json_text, printable
from vidkin.review import corrections_version
from vidkin.web.jobs import Job
from vidkin.web.parameters import Body
from vidkin.web.shots import detect_shots_of, stored_shots
from vidkin.web.site import CurrentSite, Page, ResultResponse, Site, accepted, answer_model, base_name, job_model

router = APIRouter(tags=["map"])
map_page = Page(router, "Map", "/map")

# Maximum number of folders with their own color; the others share one.
_MAX_FOLDERS = 100
Points = Literal["videos", "shots"]
_TITLES: dict[Points, str] = {"videos": "Map of the collection", "shots": "Map of the shots"}

# ``videos``, ``x``, ``y``, ``cluster``, ``folder``: for each point the number of its video, its coordinates in [0, 1],
# the number of its cluster, and the position of its folder in ``folders``, -1 for smaller folders; ``central``:
# positions of typical points of each cluster; ``starts``, ``ends``: of each shot in seconds, empty for videos;
# ``total``: number of videos or shots, larger than the number of points if shots were sampled.
MapOfVideos: Any = answer_model(
    "MapOfVideos",
    "The videos of the index, or their shots, as points; similar ones are close together.",
    of=Points,
    method=str,
    videos=list[int],
    x=list[float],
    y=list[float],
    starts=list[float],
    ends=list[float],
    cluster=list[int],
    central=list[list[int]],
    folder=list[int],
    folders=list[str],
    total=int,
    is_current=bool,
)


MapJob = job_model("map", answer_model("MapResult", "Summary of the map.", videos=int, points=int, method=str))
MapOf = Annotated[Points, Query(description="Kind of the points.")]


class MapWish(Body):
    """Settings of a map."""

    of: Points = Field("videos", description="`videos` or their `shots`.")
    method: MapMethod = Field(
        "auto", description="`auto`: umap if installed, otherwise pacmap if installed, otherwise tsne."
    )
    find_shots: bool = Field(
        True, description="For shots: first detect the shots of videos whose shots are not known yet."
    )


@dataclass(frozen=True, slots=True)
class KnownShots:
    """Number of videos with known shots.

    Attributes:
        known: Number of videos whose shots are known.
        unknown: Number of videos whose shots have not been detected yet.
    """

    known: int
    unknown: int


@router.get("/map", response_class=HTMLResponse, include_in_schema=False)
async def show_map(request: Request, site: CurrentSite, of: Points = "videos") -> HTMLResponse:
    """Page of the map; its script requests the points."""
    return site.page("map.html", request, {"is_empty": await site.lists.run(site.is_empty), "of": of})


@router.get("/api/map", response_model=MapOfVideos | None)
async def get_map(site: CurrentSite, of: MapOf = "videos") -> ResultResponse:
    """Get the map computed last; null if there is none."""
    return ResultResponse(await site.lists.run(lambda: _stored(site, of)))


@router.get("/api/map/shots")
async def count_known_shots(site: CurrentSite) -> KnownShots:
    """Count the videos with and without known shots. A map of shots shows the former and can detect the rest first."""

    def work() -> KnownShots:
        known, unknown = _split_by_shots(site)
        return KnownShots(len(known), len(unknown))

    return await site.lists.run(work)


@router.post("/api/map", status_code=202, response_model=MapJob)
async def compute_map(site: CurrentSite, wish: MapWish) -> ResultResponse:
    """Compute a map of all videos or shots, as a job; the result is cached with the index."""

    def work(job: Job) -> dict[str, Any]:
        make = _make_of_shots if wish.of == "shots" else _make_of_videos
        state, made = make(site, wish, job)
        rows = {
            "state": state,
            "of": wish.of,
            "method": made.method,
            "videos": made.videos,
            "x": made.points[:, 0].round(4),
            "y": made.points[:, 1].round(4),
            "spans": [] if made.spans is None else made.spans.round(3),
            "cluster": made.clusters,
            "central": made.central,
            "total": made.total,
        }
        site.cache.put(_key(wish.of), ".json", json_text(rows).encode("ascii"))
        return {"videos": len(set(made.videos.tolist())), "points": len(made.videos), "method": made.method}

    return accepted(site.jobs.start("map", _TITLES[wish.of], work))


def _key(of: Points) -> str:
    return f"map of {of}"


def _reading(job: Job) -> Callable[[int, int], None]:
    job.report(0, 0, "reading features")
    return lambda done, total: job.report(done, total, "reading features" if done < total else "placing points")


def _make_of_videos(site: Site, wish: MapWish, job: Job) -> tuple[list[Any], CollectionMap]:
    state = _state_of(site, "videos")
    with site.index.reader() as index:
        return state, map_collection(index, method=wish.method, on_progress=_reading(job))


def _make_of_shots(site: Site, wish: MapWish, job: Job) -> tuple[list[Any], CollectionMap]:
    known, unknown = _split_by_shots(site)
    for done, record in enumerate(unknown if wish.find_shots else ()):
        name = base_name(record.path)
        job.report(done, len(unknown), f"finding shots: {name}")
        try:
            # Reporting each frame allows the work to stop between frames.
            detect_shots_of(site, record, lambda *_, done=done, name=name: job.report(done, len(unknown), name))
            known.append(record)
        except VidkinError as error:
            job.note(f"{record.path}: {error}")
    state = _state_of(site, "shots")
    shots = {}
    for done, record in enumerate(known):
        job.report(done, len(known), "reading shots")
        with suppress(VidkinError):  # removed from the index or the cache in the meantime
            shots[record.id] = [(shot.start, shot.end) for shot in stored_shots(site, record).shots]
    if not shots:
        raise InvalidArgumentError("no shots are known yet; detect the shots of some videos first")
    with site.index.reader() as index:
        return state, map_shots(index, shots, method=wish.method, on_progress=_reading(job))


def _split_by_shots(site: Site) -> tuple[list[VideoRecord], list[VideoRecord]]:
    """Videos with known shots, and videos whose shots can be detected."""
    known: list[VideoRecord] = []
    unknown: list[VideoRecord] = []
    detector = site.detector()
    for record in site.index.listing().records:
        if record.status == "ok" and record.frames > 1:
            (known if site.has_shots(record, detector) else unknown).append(record)
    return known, unknown


def _state_of(site: Site, of: Points) -> list[Any]:
    """State of the index that a map depends on."""
    records = site.index.listing().records
    newest = max((record.id for record in records), default=0)
    state = [len(records), newest, Manifest.read(site.index.place).fingerprint]
    if of == "shots":
        state += [site.detector(), len(_split_by_shots(site)[0]), corrections_version(site.index.folder)]
    return state


def _stored(site: Site, of: Points) -> dict[str, Any] | None:
    path = site.cache.find(_key(of), ".json")
    if path is None:
        return None
    try:
        table = read_json(path, LONG_JSON_LIMITS)
        columns, central = _check_columns(table, of)
        method, state, total = str(table["method"]), table["state"], int(table["total"])
    except (OSError, ValueError, TypeError, LookupError):
        # The cached file is damaged, but can be made again.
        site.cache.discard(_key(of), ".json")
        return None
    by_id = site.index.listing().by_id
    kept = [position for position, video in enumerate(columns["videos"]) if video in by_id]
    place_of = {position: place for place, position in enumerate(kept)}
    answer: dict[str, Any] = {name: [values[position] for position in kept] for name, values in columns.items()}
    paths = [os.path.dirname(by_id[video].path) for video in answer["videos"]]
    sizes: dict[str, int] = {}
    for folder in paths:
        sizes[folder] = sizes.get(folder, 0) + 1
    folders = sorted(sizes, key=lambda folder: (-sizes[folder], folder))[:_MAX_FOLDERS]
    position_of = {folder: position for position, folder in enumerate(folders)}
    return {
        "starts": [],
        "ends": [],
        **answer,
        "of": of,
        "method": method,
        "central": [[place_of[position] for position in some if position in place_of] for some in central],
        "folder": [position_of.get(folder, -1) for folder in paths],
        "folders": [printable(folder) for folder in folders],
        "total": total - len(columns["videos"]) + len(kept),
        "is_current": state == _state_of(site, of),
    }


def _check_columns(table: Any, of: Points) -> tuple[dict[str, list[Any]], list[list[int]]]:
    """Check that the columns of a stored map have equal lengths; return them and the typical points of its clusters.

    Raises:
        ValueError, TypeError, LookupError: It is damaged.
    """
    columns: dict[str, list[Any]] = {name: list(map(int, table[name])) for name in ("videos", "cluster")}
    columns |= {name: list(map(float, table[name])) for name in ("x", "y")}
    if of == "shots":
        for end, name in enumerate(("starts", "ends")):
            columns[name] = [float(span[end]) for span in table["spans"]]
    if len({len(values) for values in columns.values()}) != 1:
        raise ValueError("columns must have the same length")
    return columns, [list(map(int, some)) for some in table["central"]]
