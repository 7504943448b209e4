"""The app, assembled: pages, static files, errors as answers, and the guard in front."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from vidkin._version import __version__
from vidkin.errors import (
    CollectionLockedError,
    InvalidArgumentError,
    MediaError,
    NotIndexedError,
    VidkinError,
)
from vidkin.index.storage.opening import open_place
from vidkin.rendering.text import printable
from vidkin.web.api import api_page
from vidkin.web.clips import clips_page
from vidkin.web.duplicates import duplicates_page
from vidkin.web.experiments import experiments_page
from vidkin.web.guard import Guard, Settings
from vidkin.web.jobs import JobRunningError
from vidkin.web.lanes import BusyError, StuckError
from vidkin.web.library import library_page
from vidkin.web.map import map_page
from vidkin.web.media import media_page
from vidkin.web.recurring import recurring_page
from vidkin.web.removals import removals_page
from vidkin.web.review import review_page
from vidkin.web.search import search_page
from vidkin.web.selection import selection_page
from vidkin.web.shots import shots_page
from vidkin.web.site import Site
from vidkin.web.video import video_page

# In the order of the navigation.
_PAGES = (
    library_page,
    search_page,
    map_page,
    duplicates_page,
    recurring_page,
    shots_page,
    review_page,
    experiments_page,
    media_page,
    removals_page,
    selection_page,
    video_page,
    clips_page,
    api_page,
)
# Seconds between looks for dropped files that nobody uses any more.
_CLEAN_EVERY = 30.0
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotIndexedError, 404),
    (MediaError, 422),
    (InvalidArgumentError, 422),
    (CollectionLockedError, 409),
    (JobRunningError, 409),
    (VidkinError, 500),
    (BusyError, 503),
    (StuckError, 504),
)
# Headings of pages that say what is wrong; the message says what to do.
_TITLES = {
    404: "Not found",
    409: "Not now",
    422: "That cannot be done",
    503: "Too much at once",
    504: "That took too long",
}


def create_app(index: str | os.PathLike[str], settings: Settings | None = None) -> ASGIApp:
    """The web app of an index, as an ASGI application.

    Args:
        index: Folder of the index, or its address on object storage, which can only be shown.
        settings: Limits, and the token that requests must carry.

    Raises:
        CollectionNotFoundError: There is no index.
        InvalidArgumentError: An index on object storage is not to be read only.
    """
    settings = settings or Settings()
    place = open_place(index)
    if place.folder is None and not settings.read_only:
        raise InvalidArgumentError(
            f"{os.fspath(index)} is on object storage, where verdicts and corrected shots cannot be stored; show it "
            "with --read-only, or copy the index into a folder"
        )
    site = Site(place, settings, _PAGES)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        cleaning = asyncio.create_task(_clean(site))
        yield
        cleaning.cancel()
        site.close()

    app = FastAPI(
        title="vidkin",
        version=__version__,
        summary="What the pages of `vidkin serve` do, as an HTTP API.",
        lifespan=lifespan,
        # The documentation page of FastAPI loads its scripts from another host; ours is /api.
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.site = site
    for page in _PAGES:
        app.include_router(page.router)
    app.mount("/static", StaticFiles(packages=[("vidkin.web", "static")]), name="static")
    for kind, _ in _STATUS:
        app.add_exception_handler(kind, _answer_error)
    app.add_exception_handler(HTTPException, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_error)
    return Guard(app, token=settings.token, hosts=settings.hosts)


async def _clean(site: Site) -> None:
    """Delete old dropped files on time, even without requests."""
    while True:
        await asyncio.sleep(_CLEAN_EVERY)
        site.uploads.clean()


async def _answer_error(request: Request, error: Exception) -> Response:
    """The error as a page for a person who opened an address, otherwise as JSON."""
    headers = {"Retry-After": "2"} if isinstance(error, BusyError) else None
    if isinstance(error, HTTPException):
        status, message = error.status_code, str(error.detail)
        if message == HTTPStatus.NOT_FOUND.phrase:  # of the router, which found no function for the address
            message = f"there is no page at {request.url.path}; go to the library"
    elif isinstance(error, RequestValidationError):
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"][1:])
        status, message = 422, f"{name}: {first['msg']}"
    else:
        status = next(status for kind, status in _STATUS if isinstance(error, kind))
        message = str(error)
    message = printable(message)
    if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/"):
        site: Site = request.app.state.site
        if message.split(" ")[0].isalpha():  # a sentence, not the name of a file
            message = message[0].upper() + message[1:]
        answer = site.page(
            "error.html", request, {"title": _TITLES.get(status, "That did not work"), "message": message}
        )
        answer.status_code = status
        return answer
    return JSONResponse({"detail": message}, status, headers)
