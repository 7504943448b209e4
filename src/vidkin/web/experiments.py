"""Experiments: stored trainings and benchmarks side by side, with curves that grow while a training runs."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from vidkin._base.files import open_regular_file
from vidkin.review.stored_runs import Curves, FigureTable, StoredRun, find_runs, read_curves, read_tables
from vidkin.web.site import CurrentSite, Page, Site

router = APIRouter(tags=["experiments"])
experiments_page = Page(router, "Experiments", "/experiments")


@router.get("/experiments", response_class=HTMLResponse, include_in_schema=False)
async def show_experiments(request: Request, site: CurrentSite) -> HTMLResponse:
    """Page of trainings and benchmarks; its script asks for the curves."""
    folders = [str(folder) for folder in site.settings.experiments]
    return site.page("experiments.html", request, {"folders": folders})


@router.get("/api/experiments")
async def list_runs(site: CurrentSite) -> list[StoredRun]:
    """Trainings and benchmarks below the folders of ``vidkin serve --experiments``, newest first."""
    return await site.lists.run(lambda: find_runs(site.settings.experiments))


@router.get("/api/experiments/{run}/curves")
async def get_curves(site: CurrentSite, run: str) -> Curves:
    """What a training logged so far."""
    return await site.lists.run(lambda: read_curves(Path(_find(site, run, "training").path)))


@router.get("/api/experiments/{run}/tables")
async def get_tables(site: CurrentSite, run: str) -> tuple[FigureTable, ...]:
    """The figures of a benchmark."""
    return await site.lists.run(lambda: read_tables(Path(_find(site, run, "benchmark").path)))


@router.get("/api/experiments/{run}/pictures/{name}", responses={200: {"content": {"image/png": {}}}})
async def get_picture(site: CurrentSite, run: str, name: str) -> Response:
    """A picture that a training drew, for example its retrieval rows."""

    def work() -> bytes:
        stored = _find(site, run, "training")
        if name not in stored.pictures:
            raise HTTPException(404, f"this training has no picture {name!r}")
        with open_regular_file(Path(stored.path, name)) as file:
            return file.read()

    return Response(await site.lists.run(work), media_type="image/png")


def _find(site: Site, run: str, kind: str) -> StoredRun:
    for stored in find_runs(site.settings.experiments):
        if stored.id == run and stored.kind == kind:
            return stored
    raise HTTPException(404, f"there is no {kind} {run!r} (any more)")
