"""Experiments: stored trainings and benchmarks side by side, with live curves of running trainings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi import Path as PathPart
from fastapi.responses import HTMLResponse, Response

from vidkin._base.files import read_regular_file
from vidkin.review.stored_runs import Curves, FigureTable, StoredRun, find_runs, read_curves, read_tables
from vidkin.web.site import CurrentSite, Page, Site, download

_MAX_IMAGE_BYTES = 64_000_000

router = APIRouter(tags=["experiments"])
experiments_page = Page(router, "Experiments", "/experiments")
RunId = Annotated[str, PathPart(description="Id of the run, as listed.", examples=["8d969eef6ecad3c2"])]
ImageName = Annotated[str, PathPart(description="Name of the image, as listed.", examples=["rows.png"])]


@router.get("/experiments", response_class=HTMLResponse, include_in_schema=False)
async def show_experiments(
    request: Request, site: CurrentSite, run: Annotated[list[str] | None, Query()] = None, series: str = ""
) -> HTMLResponse:
    """Page of trainings and benchmarks, with the curves and tables of the chosen ones; its script asks again."""

    def find() -> dict[str, Any]:
        runs = find_runs(site.settings.experiments)
        chosen = [each for each in runs if each.id in (run or ())]
        curves = [(each, _read_series(each)) for each in chosen if each.kind == "training"]
        names = sorted({name for _, curve in curves for name in curve})
        shown = series if series in names else "loss" if "loss" in names else next(iter(names), "")
        points = [point for _, curve in curves for point in curve.get(shown, ())]
        return {
            "folders": [str(folder) for folder in site.settings.experiments],
            "runs": runs,
            "chosen": chosen,
            "curves": curves,
            "names": names,
            "series": shown,
            "last": max([1, *(step for step, _ in points)]),
            "low": min((value for _, value in points), default=0.0),
            "high": max((value for _, value in points), default=1.0),
            "tables": [(each, read_tables(Path(each.path))) for each in chosen if each.kind == "benchmark"],
        }

    return site.page("experiments.html", request, await site.lists.run(find))


def _read_series(run: StoredRun) -> Mapping[str, tuple[tuple[int, float], ...]]:
    try:
        return read_curves(Path(run.path)).series
    except OSError:
        return {}


@router.get("/api/experiments")
async def list_experiments(site: CurrentSite) -> list[StoredRun]:
    """List trainings and benchmarks below the folders of `vidkin serve --experiments`, newest first."""
    return await site.lists.run(lambda: find_runs(site.settings.experiments))


@router.get("/api/experiments/{run}/curves")
async def get_curves(site: CurrentSite, run: RunId) -> Curves:
    """Get the curves that a training has logged so far."""

    def work() -> Curves:
        stored = _find(site, run, "training")
        try:
            return read_curves(Path(stored.path))
        except OSError as error:
            raise HTTPException(404, f"the log of {stored.name} can no longer be read: {error.strerror}") from error

    return await site.lists.run(work)


@router.get("/api/experiments/{run}/tables")
async def get_tables(site: CurrentSite, run: RunId) -> tuple[FigureTable, ...]:
    """Get the figures of a benchmark as tables."""
    return await site.lists.run(lambda: read_tables(Path(_find(site, run, "benchmark").path)))


@router.get("/api/experiments/{run}/pictures/{name}", response_class=Response, responses=download("image/png"))
async def get_experiment_image(site: CurrentSite, run: RunId, name: ImageName) -> Response:
    """Get an image drawn by a training, for example its retrieval rows."""

    def work() -> bytes:
        stored = _find(site, run, "training")
        if name not in stored.pictures:
            raise HTTPException(404, f"this training has no image {name!r}")
        try:
            return read_regular_file(Path(stored.path, name), _MAX_IMAGE_BYTES)
        except (OSError, ValueError) as error:
            raise HTTPException(404, f"the image {name!r} cannot be read: {error}") from error

    return Response(await site.lists.run(work), media_type="image/png")


def _find(site: Site, run: str, kind: str) -> StoredRun:
    for stored in find_runs(site.settings.experiments):
        if stored.id == run and stored.kind == kind:
            return stored
    raise HTTPException(404, f"there is no {kind} {run!r}, or it was deleted")
