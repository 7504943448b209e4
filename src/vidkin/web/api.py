"""The HTTP API on one page, every address with what it takes; and jobs, which outlive a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from vidkin.rendering.text import json_text
from vidkin.web.jobs import Job, JobState
from vidkin.web.site import CurrentSite, Page, ResultResponse, Site

router = APIRouter(tags=["jobs"])
api_page = Page(router, "API", "/api")

# Seconds between looks at a job that a page watches.
_LOOK_EVERY = 0.2
# Some browsers and proxies close silent streams.
_ALIVE_EVERY = 15.0


@router.get("/api", response_class=HTMLResponse, include_in_schema=False)
async def show_api(request: Request, site: CurrentSite) -> HTMLResponse:
    """Page with every address of the API and what it takes."""
    document: dict[str, Any] = request.app.openapi()
    schemas = document["components"]["schemas"]
    rows = []
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            content = about.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            body = schemas.get(name, {}).get("properties", {})
            required = schemas.get(name, {}).get("required", [])
            rows.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "about": about["description"].replace("``", ""),
                    "words": [part["name"] for part in about.get("parameters", []) if part["in"] == "query"],
                    "body": [f"{field} (required)" if field in required else field for field in body],
                }
            )
    return site.page("api.html", request, {"rows": rows})


@router.get("/api/jobs", response_model=list[JobState])
async def list_jobs(site: CurrentSite) -> ResultResponse:
    """All jobs of this server, newest first."""
    return ResultResponse([job.state() for job in site.jobs.all()])


@router.get("/api/jobs/{number}", response_model=JobState)
async def get_job(site: CurrentSite, number: int) -> ResultResponse:
    """How far a job has come."""
    return ResultResponse(_find(site, number).state())


@router.post("/api/jobs/{number}/stop", response_model=JobState)
async def stop_job(site: CurrentSite, number: int) -> ResultResponse:
    """Ask a job to stop; finished work is kept."""
    job = _find(site, number)
    job.stop()
    return ResultResponse(job.state())


@router.get("/api/jobs/{number}/events", response_class=StreamingResponse)
async def watch_job(site: CurrentSite, number: int) -> StreamingResponse:
    """Server-sent events: the state of a job at every change, until it ends."""
    events = _events(_find(site, number))
    return StreamingResponse(events, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def _events(job: Job) -> AsyncIterator[bytes]:
    seen, silent = -1, 0.0
    while True:
        state = job.state()
        if state.version != seen:
            seen, silent = state.version, 0.0
            yield f"data: {json_text(state)}\n\n".encode("ascii")
            if state.state != "running":
                return
        elif silent >= _ALIVE_EVERY:
            silent = 0.0
            yield b": still here\n\n"
        await asyncio.sleep(_LOOK_EVERY)
        silent += _LOOK_EVERY


def _find(site: Site, number: int) -> Job:
    job = site.jobs.get(number)
    if job is None:
        raise HTTPException(404, f"there is no job {number}; the server may have been restarted")
    return job
