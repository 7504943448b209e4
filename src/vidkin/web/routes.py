"""Routes of the app: functions that run in a lane of the site and return a result, a job or a response."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Header
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel

from vidkin.web.answers import ResultResponse
from vidkin.web.job_state import JobKind
from vidkin.web.jobs import Job
from vidkin.web.site import Site

_Function = TypeVar("_Function", bound=Callable[..., Any])
Prefer = Annotated[
    str,
    Header(
        alias="Prefer",
        max_length=200,
        description="`respond-async`: answer at once with 202 and a job instead of waiting for the result.",
        examples=["respond-async"],
    ),
]
LaneName = Literal["lists", "pictures", "searches", "conversions", "streams"]
_LANES: dict[Callable[..., Any], LaneName] = {}


def in_lane(name: LaneName) -> Callable[[_Function], _Function]:
    """Decorate the function of a route to run in this lane of the site instead of ``lists``."""

    def choose(function: _Function) -> _Function:
        _LANES[function] = name
        return function

    return choose


class Page(APIRouter):
    """A part of the app: its routes, and its link in the navigation.

    The function of a route has a parameter ``site`` and runs in a lane of it, unless it is a coroutine. A job that it
    returns is answered with its state and address, any other value as JSON.

    Attributes:
        title: Title in the navigation; empty for none.
        path: Target of the link in the navigation.

    Args:
        tag: Group of the routes in the description of the API.
    """

    def __init__(self, tag: str, title: str = "", path: str = "") -> None:
        super().__init__(tags=[tag])
        self.title, self.path = title, path

    def page(self, path: str) -> Callable[[_Function], _Function]:
        """Decorate the function that renders a page of HTML."""
        return self.get(path, response_class=HTMLResponse, include_in_schema=False)

    def job(self, path: str, model: Any) -> Callable[[_Function], _Function]:
        """Decorate the function that starts a job at a ``POST`` request; ``model`` describes the job."""
        return self.post(path, status_code=202, response_model=model)

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        """Add a route whose function runs in its lane."""
        super().add_api_route(path, _answering(endpoint), **settings)


def or_job(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The second answer of a route that can run as a job."""
    return {202: {"model": model, "description": "A job, for `Prefer: respond-async`."}}


async def answer_or_start(
    site: Site, prefer: str, kind: JobKind, title: str, work: Callable[[], object], *, video: int | None, **turn: str
) -> object:
    """Return the result of a search or comparison or, if the request prefers it, the job that was started for it.

    Args:
        site: The site.
        prefer: The ``Prefer`` header (RFC 7240).
        kind: Kind of the job.
        title: Title of the job.
        work: Function that does the work.
        video: Number of the video that the job is about.
        turn: The client and its ticket, see :meth:`vidkin.web.lanes.Lane.run`.
    """
    if any(part.partition(";")[0].strip().lower() == "respond-async" for part in prefer.split(",")):
        return site.jobs.start(kind, title, lambda _: work(), video=video, turns=site.turns)
    return await site.searches.run(work, **turn)


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    lane, is_coroutine = _LANES.get(function, "lists"), inspect.iscoroutinefunction(function)

    @wraps(function)
    async def answer(**values: Any) -> Response:
        site: Site = values["site"]
        work = partial(function, **values)
        value = await (work() if is_coroutine else getattr(site, lane).run(work))
        if isinstance(value, Job):
            return ResultResponse(value.state(), 202, {"Location": f"/api/jobs/{value.id}"})
        return value if isinstance(value, Response) else ResultResponse(value)

    # Older versions of FastAPI would evaluate the annotations among the names of this module.
    answer.__signature__ = inspect.signature(function, eval_str=True)  # type: ignore[attr-defined]
    return answer
