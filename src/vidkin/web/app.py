"""Assemble the app: pages, static files, error handling, and the guard in front."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus

from fastapi import Depends, FastAPI, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from vidkin._base.arguments import check_arguments
from vidkin._base.memory import give_back_memory
from vidkin._version import __version__
from vidkin.errors import InvalidArgumentError
from vidkin.index.storage.opening import open_place
from vidkin.web.api import ROUTERS, RULES
from vidkin.web.guard import Guard, Settings
from vidkin.web.lanes import BusyError
from vidkin.web.problems import HANDLED, ProblemResponse, problem_of
from vidkin.web.routes import refuse_unknown_parameters
from vidkin.web.schema import DescribedApp
from vidkin.web.site import Site

# Seconds between deletions of unused uploads.
_CLEAN_SECONDS = 30.0
# Seconds between returns of free memory to the system.
_TRIM_SECONDS = 2.0


@check_arguments
def create_app(index: str | os.PathLike[str], settings: Settings | None = None) -> ASGIApp:
    """Create the web app of an index, an ASGI application.

    Args:
        index: Folder of the index, or its address on object storage, which is read-only.
        settings: Limits, and the token that requests must carry.

    Raises:
        CollectionNotFoundError: There is no index.
        InvalidArgumentError: The index is on object storage and ``read_only`` is not set.
    """
    settings = settings or Settings()
    place = open_place(index)
    if place.folder is None and not settings.read_only:
        raise InvalidArgumentError(
            f"{os.fspath(index)} is on object storage, where verdicts and corrected shots cannot be stored; show it "
            "with --read-only, or copy the index into a folder"
        )
    links = {page.title: page.path for page in ROUTERS if page.title}
    if not settings.experiments:
        del links["Experiments"]
    site = Site(place, settings, links)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        cleaning = asyncio.create_task(_clean(site))
        yield
        cleaning.cancel()
        site.close()

    app = DescribedApp(
        ROUTERS,
        title="vidkin",
        version=__version__,
        summary="HTTP API with all functions of the pages of `vidkin serve`.",
        description="\n\n".join(f"**{title}.** {text}" for title, text in RULES.items()),
        dependencies=[Depends(refuse_unknown_parameters)],
        generate_unique_id_function=_operation_id,
        lifespan=lifespan,
        # FastAPI's documentation page loads scripts from another host; /api replaces it.
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.site = site
    app.mount("/static", StaticFiles(packages=[("vidkin.web", "static")]), name="static")
    for kind in HANDLED:
        app.add_exception_handler(kind, _answer_error)
    return Guard(app, token=settings.token, hosts=settings.hosts, origins=settings.origins)


def _operation_id(route: APIRoute) -> str:
    """The name of a function in generated clients."""
    first, *rest = route.name.split("_")
    return first + "".join(word.title() for word in rest)


async def _clean(site: Site) -> None:
    """Delete expired uploads even without requests, and return freed memory to the system."""
    cleaned, calls = time.monotonic(), 0
    while True:
        await asyncio.sleep(_TRIM_SECONDS)
        if site.calls() != calls:
            calls = site.calls()
            await asyncio.to_thread(give_back_memory)
        if time.monotonic() - cleaned > _CLEAN_SECONDS:
            cleaned = time.monotonic()
            site.uploads.clean()


async def _answer_error(request: Request, error: Exception) -> Response:
    """Answer with an error page in a browser, otherwise with a problem document."""
    site: Site = request.app.state.site
    problem = problem_of(error)
    detail = problem.detail
    headers = dict(getattr(error, "headers", None) or {})
    if isinstance(error, BusyError):
        headers["Retry-After"] = "2"
    if detail == HTTPStatus.NOT_FOUND.phrase:  # from the router, which knows no such address
        is_api = request.url.path.startswith("/api/")
        advice = "address {} in the API; GET /api lists them" if is_api else "page at {}; go to the library"
        detail = f"there is no {advice.format(request.url.path)}"
    elif isinstance(error, HTTPException) and error.status_code == 405:
        headers["Allow"] = _allowed(request)
        detail = f"{request.method} is not accepted here; accepted are {headers['Allow']}"
    problem = replace(problem, detail=site.uploads.shown(detail))
    if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/"):
        message = problem.detail
        if message.split(" ")[0].isalpha():  # the message does not begin with a file name
            message = message[0].upper() + message[1:]
        answer = site.page("error.html", request.url.path, {"status": problem.status, "message": message})
        answer.status_code = problem.status
        return answer
    return ProblemResponse(problem, headers)


def _allowed(request: Request) -> str:
    """All methods of an address, for the header ``Allow``; the router lists only the methods of its first function."""
    app: DescribedApp = request.app
    found = [route.methods or () for route in app.functions if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for methods in found for method in methods} or {"GET", "HEAD"}))  # static files
