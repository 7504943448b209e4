"""Experiments: stored trainings and benchmarks side by side, with live curves of running trainings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from fastapi import HTTPException, Query, Request
from fastapi import Path as PathPart
from fastapi.responses import HTMLResponse, Response

from vidkin._base.files import read_regular_file
from vidkin.review.stored_runs import Curves, FigureTable, StoredRun, find_runs, read_curves, read_tables
from vidkin.web.answers import download
from vidkin.web.routes import Page
from vidkin.web.site import CurrentSite, Site

_MAX_IMAGE_BYTES = 64_000_000

router = Page("experiments", "Experiments", "/experiments")
RunId = Annotated[str, PathPart(description="Id of the run, as listed.", examples=["8d969eef6ecad3c2"])]
ImageName = Annotated[str, PathPart(description="Name of the image, as listed.", examples=["rows.png"])]


@router.page("/experiments")
def show_experiments(
    request: Request, site: CurrentSite, run: Annotated[list[str] | None, Query()] = None, series: str = ""
) -> HTMLResponse:
    """Page of trainings and benchmarks, with the curves and tables of the chosen ones; its script asks again."""
    runs = list_experiments(site)
    chosen = [each for each in runs if each.id in (run or ())]
    curves = [(each, _read_series(each)) for each in chosen if each.kind == "training"]
    names = sorted({name for _, curve in curves for name in curve})
    shown = series if series in names else "loss" if "loss" in names else next(iter(names), "")
    points = [point for _, curve in curves for point in curve.get(shown, ())]
    values = {
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
    return site.page("experiments.html", request, values)


def _read_series(run: StoredRun) -> Mapping[str, tuple[tuple[int, float], ...]]:
    try:
        return read_curves(Path(run.path)).series
    except OSError:
        return {}


@router.get("/api/experiments")
def list_experiments(site: CurrentSite) -> list[StoredRun]:
    """List trainings and benchmarks below the folders of `vidkin serve --experiments`, newest first."""
    return find_runs(site.settings.experiments)


@router.get("/api/experiments/{run}/curves")
def get_curves(site: CurrentSite, run: RunId) -> Curves:
    """Get the curves that a training has logged so far."""
    stored = _find(site, run, "training")
    try:
        return read_curves(Path(stored.path))
    except OSError as error:
        raise HTTPException(404, f"the log of {stored.name} can no longer be read: {error.strerror}") from error


@router.get("/api/experiments/{run}/tables")
def get_tables(site: CurrentSite, run: RunId) -> tuple[FigureTable, ...]:
    """Get the figures of a benchmark as tables."""
    return read_tables(Path(_find(site, run, "benchmark").path))


@router.get("/api/experiments/{run}/pictures/{name}", response_class=Response, responses=download("image/png"))
def get_experiment_image(site: CurrentSite, run: RunId, name: ImageName) -> Response:
    """Get an image drawn by a training, for example its retrieval rows."""
    stored = _find(site, run, "training")
    if name not in stored.pictures:
        raise HTTPException(404, f"this training has no image {name!r}")
    try:
        return Response(read_regular_file(Path(stored.path, name), _MAX_IMAGE_BYTES), media_type="image/png")
    except (OSError, ValueError) as error:
        raise HTTPException(404, f"the image {name!r} cannot be read: {error}") from error


def _find(site: Site, run: str, kind: str) -> StoredRun:
    for stored in find_runs(site.settings.experiments):
        if stored.id == run and stored.kind == kind:
            return stored
    raise HTTPException(404, f"there is no {kind} {run!r}, or it was deleted")
