"""Jobs: how far work has come that outlives a request, as one answer or as events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import APIRouter, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter

from vidkin.web.jobs import Job, JobState
from vidkin.web.site import CurrentSite, Page, Site

__all__ = ["page"]

router = APIRouter(tags=["jobs"])
page = Page(router)

_LOOK_EVERY = 0.2
# Some browsers and proxies close silent streams.
_ALIVE_EVERY = 15.0
_STATE = TypeAdapter(JobState)


@router.get("/api/jobs")
async def list_jobs(site: CurrentSite) -> list[JobState]:
    """All jobs of this server, newest first."""
    return [job.state() for job in site.jobs.all()]


@router.get("/api/jobs/{number}")
async def get_job(site: CurrentSite, number: int) -> JobState:
    """How far a job has come."""
    return _find(site, number).state()


@router.post("/api/jobs/{number}/stop")
async def stop_job(site: CurrentSite, number: int) -> JobState:
    """Ask a job to stop; finished work is kept."""
    job = _find(site, number)
    job.stop()
    return job.state()


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
            yield b"data: " + _STATE.dump_json(state) + b"\n\n"
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
