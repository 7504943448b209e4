"""Experiments: stored trainings and benchmarks side by side, with live curves of running trainings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import HTTPException, Query
from fastapi import Path as PathPart
from fastapi.responses import Response

from vidkin._base.files import read_regular_file
from vidkin.review.stored_runs import StoredRun, find_runs, read_curves, read_tables
from vidkin.web.routes import Page
from vidkin.web.site import CurrentSite

_MAX_IMAGE_BYTES = 64_000_000

router = Page("experiments", "Experiments", "/experiments")


@router.page("/experiments", "experiments.html")
def show_experiments(
    site: CurrentSite, run: Annotated[list[str] | None, Query()] = None, series: str = ""
) -> dict[str, Any]:
    """Page of trainings and benchmarks, with the curves and tables of the chosen ones; its script asks again."""
    runs = list_experiments(site)
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


def _read_series(run: StoredRun) -> Mapping[str, tuple[tuple[int, float], ...]]:
    try:
        return read_curves(Path(run.path)).series
    except OSError:
        return {}


@router.get("/api/experiments")
def list_experiments(site: CurrentSite) -> list[StoredRun]:
    """List trainings and benchmarks below the folders of `vidkin serve --experiments`, newest first."""
    return find_runs(site.settings.experiments)


@router.file("/api/experiments/{run}/pictures/{name}", "image/png")
def get_experiment_image(
    site: CurrentSite, run: str, name: Annotated[str, PathPart(examples=["rows.png"])]
) -> Response:
    """Get an image drawn by a training, for example its retrieval rows.

    Args:
        site: The site.
        run: Id of the run, as listed.
        name: Name of the image, as listed.
    """
    stored = next((each for each in list_experiments(site) if each.id == run), None)
    if stored is None or name not in stored.pictures:
        raise HTTPException(404, f"there is no training {run!r} with an image {name!r}")
    try:
        return Response(read_regular_file(Path(stored.path, name), _MAX_IMAGE_BYTES), media_type="image/png")
    except (OSError, ValueError) as error:
        raise HTTPException(404, f"the image {name!r} cannot be read: {error}") from error
