"""The map of the index: videos or shots arranged by similarity, computed by a job and cached."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Query

from vidkin.errors import InvalidArgumentError, VidkinError
from vidkin.index import VideoRecord
from vidkin.index.overview import CollectionMap, MapMethod, map_collection, map_shots
from vidkin.index.storage.manifest import Manifest
from vidkin.rendering.text import printable
from vidkin.review import corrections_version
from vidkin.web.jobs import Job, process_each
from vidkin.web.routes import Body, Page
from vidkin.web.shots import detect_shots_of, stored_shots
from vidkin.web.site import CurrentSite, Site

router = Page("map", "Map", "/map")

# Maximum number of folders with their own color; the others share one.
_MAX_FOLDERS = 100
Points = Literal["videos", "shots"]
_TITLES: dict[Points, str] = {"videos": "Map of the collection", "shots": "Map of the shots"}


@dataclass(frozen=True, slots=True)
class MapOfVideos:
    """The videos of the index, or their shots, as points; similar ones are close together.

    Attributes:
        of: Kind of the points.
        method: How the points were placed.
        videos: Number of the video of each point.
        x: Horizontal position of each point, in [0, 1].
        y: Vertical position of each point, in [0, 1].
        starts: Start of each shot, seconds; empty for a map of videos.
        ends: End of each shot, seconds; empty for a map of videos.
        cluster: Number of the cluster of each point.
        central: Positions of typical points of each cluster.
        folder: Position in `folders` of the folder of each point's video; -1 for smaller folders.
        folders: The largest folders.
        total: Number of videos or shots; larger than the number of points if shots were sampled.
        is_current: Whether it reflects the current state of the index.
    """

    of: Points
    method: str
    videos: list[int]
    x: list[float]
    y: list[float]
    starts: list[float]
    ends: list[float]
    cluster: list[int]
    central: list[list[int]]
    folder: list[int]
    folders: list[str]
    total: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class MapResult:
    """Summary of the map.

    Attributes:
        videos: Number of videos.
        points: Number of points.
        method: How the points were placed.
    """

    videos: int
    points: int
    method: str


MapOf = Annotated[Points, Query(description="Kind of the points.")]


class MapWish(Body):
    """Settings of a map.

    Attributes:
        of: `videos` or their `shots`.
        method: `auto`: umap if installed, otherwise pacmap if installed, otherwise tsne.
        find_shots: For shots: first detect the shots of videos whose shots are not known yet.
    """

    of: Points = "videos"
    method: MapMethod = "auto"
    find_shots: bool = True


@dataclass(frozen=True, slots=True)
class KnownShots:
    """Number of videos with known shots.

    Attributes:
        known: Number of videos whose shots are known.
        unknown: Number of videos whose shots have not been detected yet.
    """

    known: int
    unknown: int


@router.page("/map", "map.html")
def show_map(site: CurrentSite, of: Points = "videos") -> dict[str, Any]:
    """Page of the map; its script requests the points."""
    return {"of": of}


@router.get("/api/map")
def get_map(site: CurrentSite, of: MapOf = "videos") -> MapOfVideos | None:
    """Get the map computed last; null if there is none."""
    stored = site.cache.load(_key(of), lambda values: (values["state"], CollectionMap.from_dict(values["map"])))
    return None if stored is None else _describe(site, of, *stored)


@router.get("/api/map/shots")
def count_known_shots(site: CurrentSite) -> KnownShots:
    """Count the videos with and without known shots. A map of shots shows the former and can detect the rest first."""
    known, unknown = _split_by_shots(site)
    return KnownShots(len(known), len(unknown))


@router.job("/api/map", "map", MapResult)
def compute_map(site: CurrentSite, wish: MapWish) -> Job:
    """Compute a map of all videos or shots, as a job; the result is cached with the index."""

    def work(job: Job) -> MapResult:
        make = _make_of_shots if wish.of == "shots" else _make_of_videos
        state, made = make(site, wish, job)
        site.cache.store(_key(wish.of), {"state": state, "map": made})
        return MapResult(len(np.unique(made.videos)), len(made.videos), made.method)

    return site.jobs.start("map", _TITLES[wish.of], work)


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
    if wish.find_shots:
        process_each(job, unknown, partial(detect_shots_of, site))
        known, _ = _split_by_shots(site)
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


def _describe(site: Site, of: Points, state: list[Any], made: CollectionMap) -> MapOfVideos:
    """A stored map, without videos that are no longer in the index."""
    by_id = site.index.listing().by_id
    kept = np.flatnonzero([int(video) in by_id for video in made.videos])
    position_of = {int(position): new for new, position in enumerate(kept)}
    videos = made.videos[kept].tolist()
    paths = [os.path.dirname(by_id[video].path) for video in videos]
    sizes = Counter(paths)
    folders = sorted(sizes, key=lambda folder: (-sizes[folder], folder))[:_MAX_FOLDERS]
    color_of = {folder: position for position, folder in enumerate(folders)}
    x, y = made.points[kept].T.astype(float).round(4).tolist()
    starts, ends = ([], []) if made.spans is None else made.spans[kept].T.round(3).tolist()
    return MapOfVideos(
        of=of,
        method=made.method,
        videos=videos,
        x=x,
        y=y,
        starts=starts,
        ends=ends,
        cluster=made.clusters[kept].tolist(),
        central=[[position_of[each] for each in some if each in position_of] for some in made.central],
        folder=[color_of.get(folder, -1) for folder in paths],
        folders=[printable(folder) for folder in folders],
        total=made.total - len(made.videos) + len(kept),
        is_current=state == _state_of(site, of),
    )
