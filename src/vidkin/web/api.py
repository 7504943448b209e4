"""The parts of the app, the page that describes them, and the endpoints that list, watch and stop jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Union

from fastapi import Path as PathPart
from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import Field, RootModel, create_model

from vidkin.rendering.text import json_text
from vidkin.web import (
    clips,
    duplicates,
    experiments,
    library,
    map,
    media,
    recurring,
    removals,
    review,
    search,
    selection,
    shots,
    video,
)
from vidkin.web.jobs import JobKind, JobState, JobStatus
from vidkin.web.problems import RefusedError
from vidkin.web.routes import JOB_MODELS, MAX_NUMBER, Page
from vidkin.web.site import CurrentSite, Site

router = Page("jobs", "API", "/api")
_LINKED = (library, search, duplicates, recurring, shots, map, review, experiments)
ROUTERS: list[Page] = [
    *(part.router for part in _LINKED),
    router,
    *(part.router for part in (media, removals, selection, video, clips)),
]
"""The parts of the app; those with a title come first, in the order of the navigation."""

RULES: dict[str, str] = {
    "Token": "Every request needs the token that `vidkin serve` prints, as `Authorization: Bearer TOKEN`.",
    "Videos": "A video has a number, its `id`; `GET /api/videos?path=/videos/holiday.mp4` finds it by path. An "
    "uploaded file has the key `upload`. Times are seconds, and whole numbers are within 2^53.",
    "Jobs": "Long-running work is answered with 202 and a job, whose address is in `Location`. `GET` it until its "
    "`state` is no longer `running`, or read its events: it is `done` with a `result`, `failed` with an `error`, or "
    "`stopped`. Most kinds run one job at a time and refuse another with `job-running`. A finished job can be "
    "read until 50 later ones have finished, also after a restart; a job whose server ended first is `failed`.",
    "Errors": "A status of 400 or more has a `Problem` (RFC 9457) as its body: act on its `code`, and show its "
    "`detail`. Only a browser that opens an address outside of `/api/` (`Accept: text/html`) gets a page or a line of "
    "text instead.",
}
"""Conventions of the whole API: headings and paragraphs."""

_MODELS: Any = tuple(model for _, model in sorted(JOB_MODELS.items()))
AnyJob: Any = create_model(
    "Job",
    __base__=RootModel[Annotated[Union[_MODELS], Field(discriminator="kind")]],  # noqa: UP007
    __doc__="A job; its kind determines the type of its result.",
)
JobNumber = Annotated[
    int, PathPart(alias="id", ge=0, le=MAX_NUMBER, description="Number of the job.", examples=[1764412800123])
]
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events until the job ends.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}
# Seconds between polls of a job that a page watches.
_POLL_SECONDS = 0.2
# Seconds between keep-alive lines: some browsers and proxies close silent streams.
_KEEP_ALIVE_SECONDS = 15.0


@router.page("/api", "api.html")
def show_api(request: Request, site: CurrentSite) -> dict[str, Any]:
    """Page with every endpoint of the API and its parameters."""
    document: dict[str, Any] = request.app.openapi()
    schemas = document["components"]["schemas"]
    rows = []
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            content = about.get("requestBody", {}).get("content", {}).get("application/json", {})
            body = schemas.get(content.get("schema", {}).get("$ref", "").rpartition("/")[2], {})
            required = body.get("required", [])
            rows.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "about": about["description"].replace("`", ""),
                    "words": [part["name"] for part in about.get("parameters", []) if part["in"] == "query"],
                    "body": [f"{name} (required)" if name in required else name for name in body.get("properties", {})],
                }
            )
    rules = {title: text.replace("`", "") for title, text in RULES.items()}
    return {"rows": rows, "rules": rules}


@router.get("/api/jobs", response_model=list[AnyJob])
def list_jobs(
    site: CurrentSite,
    kind: Annotated[JobKind | None, Query(description="Only jobs of this kind.", examples=["index"])] = None,
    state: Annotated[JobStatus | None, Query(description="Only jobs in this state.", examples=["running"])] = None,
) -> list[JobState]:
    """List jobs, newest first: all that are running, and the last 50 finished ones, including jobs of earlier
    servers."""
    return [job for job in site.jobs.states() if kind in (None, job.kind) and state in (None, job.state)]


@router.get("/api/jobs/{id}", response_model=AnyJob)
def get_job(site: CurrentSite, number: JobNumber) -> JobState:
    """Get the progress of a job, and its result when it is done."""
    state = site.jobs.state(number)
    if state is None:
        raise RefusedError(404, "not-found", f"there is no job {number}, or it was deleted")
    return state


@router.post("/api/jobs/{id}/stop", response_model=AnyJob)
def stop_job(site: CurrentSite, number: JobNumber) -> JobState:
    """Ask a job to stop. Finished work is kept; a job that has already ended is unchanged."""
    job = site.jobs.get(number)
    if job is not None:
        job.stop()
    return get_job(site, number)


@router.get("/api/jobs/{id}/events", response_class=Response, responses=_EVENTS)
def watch_job(site: CurrentSite, number: JobNumber) -> StreamingResponse:
    """Stream the state of a job as server-sent events, one at every change until it ends, each a job as JSON."""
    events = _events(site, get_job(site, number))
    return StreamingResponse(events, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def _events(site: Site, state: JobState) -> AsyncIterator[bytes]:
    seen, silent = -1, 0.0
    job = site.jobs.get(state.id)
    while True:
        state = state if job is None else job.state()
        if state.version != seen:
            seen, silent = state.version, 0.0
            yield f"data: {json_text(state)}\n\n".encode("ascii")
            if state.state != "running":
                return
        elif silent >= _KEEP_ALIVE_SECONDS:
            silent = 0.0
            yield b": still here\n\n"
        await asyncio.sleep(_POLL_SECONDS)
        silent += _POLL_SECONDS
