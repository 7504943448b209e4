"""Routes of the app: their parameters and bodies, the lanes in which they run, and their answers."""

from __future__ import annotations

import dataclasses
import inspect
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints
from urllib.parse import urlencode

from fastapi import APIRouter, Header, Query, Request
from fastapi import Path as PathPart
from fastapi.dependencies.models import Dependant
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from vidkin._base.values import Result, describe_settings, write_csv_rows
from vidkin.rendering.text import json_text
from vidkin.similarity import Box
from vidkin.web.jobs import Job, JobKind, JobState
from vidkin.web.problems import RefusedError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Function = TypeVar("_Function", bound=Callable[..., Any])
JOB_MODELS: dict[JobKind, type[BaseModel]] = {}
"""OpenAPI model of each kind of job."""

MAX_NUMBER = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""


def _as_whole(value: Any) -> Any:
    """Convert whole floats to integers: in JSON 2.0 and 2 are the same number."""
    if isinstance(value, list):
        return [_as_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Body(BaseModel):
    """A JSON body; unknown fields and numbers written as text are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _read_whole_numbers(cls, values: Any) -> Any:
        return {name: _as_whole(value) for name, value in values.items()} if isinstance(values, dict) else values


VideoId = Annotated[int, Field(ge=0, le=MAX_NUMBER, examples=[1])]
"""Number of a video in a request body."""

VideoNumber = Annotated[int, PathPart(ge=0, le=MAX_NUMBER, description="Number of the video.", examples=[1])]

# Not strict, because JSON has lists but no tuples.
BodyBox = Annotated[Box, Field(strict=False, examples=[[0.1, 0.1, 0.6, 0.5]])]
"""A rectangle in a request body: left, top, right, bottom, as shares of the frame."""

PageNumber = Annotated[int, Query(ge=1)]

Offset = Annotated[int, Query(ge=0, le=MAX_NUMBER, description="Number of items to skip.", examples=[0])]


def address_of(path: str, view: DataclassInstance, page: int) -> str:
    """The address of a page with the fields of a filter that are set.

    Args:
        path: Path of the page.
        view: The filter; its fields are parameters of the page.
        page: Number of the page.
    """
    values = {field.name: getattr(view, field.name) for field in dataclasses.fields(view)}
    chosen = {
        field.name: _as_text(values[field.name])
        for field in dataclasses.fields(view)
        if values[field.name] != field.default
    }
    rest = urlencode(chosen | ({"page": str(page)} if page > 1 else {}))
    return f"{path}?{rest}" if rest else path


def _as_text(value: object) -> str:
    return "yes" if value is True else f"{value:g}" if isinstance(value, float) else str(value)


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse query parameters that an API endpoint does not accept.

    Raises:
        RefusedError: There is an unknown parameter.
    """
    route = request.scope["route"]
    if not route.include_in_schema:  # a page, whose scripts read further parameters
        return
    known = _names_of(route.dependant)
    for name in request.query_params:
        if name not in known:
            accepted = f"accepted are {', '.join(known)}" if known else "this address has none"
            raise RefusedError(422, "invalid-request", f"{name}: there is no such parameter; {accepted}", field=name)


def _names_of(dependant: Dependant) -> tuple[str, ...]:
    own = {field.alias for field in dependant.query_params}
    return tuple(sorted(own.union(*map(_names_of, dependant.dependencies))))


class ResultResponse(JSONResponse):
    """Plain values or results as JSON, as in ``--format json``."""

    def render(self, content: Any) -> bytes:
        """Encode as JSON: NaN and infinity become null, names that are not valid Unicode are escaped."""
        return json_text(content).encode("ascii")


def attachment(content: bytes | str, name: str, kind: str) -> Response:
    """The answer with a file to download.

    Args:
        content: Content of the file; text is encoded so that file names survive.
        name: Name of the file.
        kind: Its media type.
    """
    content = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
    return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def attached_table(rows: Iterable[Iterable[object]], name: str) -> Response:
    """The answer with a table to download, as CSV."""
    text = io.StringIO(newline="")
    write_csv_rows(text, rows)
    return attachment(text.getvalue(), name, "text/csv")


def safe_stem(name: str) -> str:
    """Make a name safe as the stem of a downloaded file on every system."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in name)[:120]


def _schema_of(kind: str) -> dict[str, str]:
    return {"type": "string"} if kind.startswith("text/") else {"type": "string", "format": "binary"}


def extends(result: type, *, called: str = "", leave_out: Sequence[str] = ()) -> Callable[[type], Any]:
    """Decorate a class of the fields that an answer adds to a result, or that have a different type in it; the class
    becomes the OpenAPI model of the answer, with all fields of the result's ``to_dict``.

    Args:
        result: The dataclass.
        called: Name of the model, if another model of the same result exists.
        leave_out: Fields omitted from the answer.
    """

    def make(added: type) -> Any:
        texts = describe_settings(result) | describe_settings(added)
        return _make_model(called or result.__name__, result, leave_out, get_type_hints(added), texts)

    return make


def job_model(kind: JobKind, result: Any) -> type[BaseModel]:
    """OpenAPI model of the jobs of a kind, whose results have a type; :data:`JOB_MODELS` has all of them."""
    if kind not in JOB_MODELS:
        own = {"kind": Literal[kind], "result": result | None}
        JOB_MODELS[kind] = _make_model(f"{kind.title()}Job", JobState, (), own, describe_settings(JobState))
    return JOB_MODELS[kind]


def either(kind: JobKind, result: Any) -> dict[str, Any]:
    """OpenAPI description of a route of :func:`answer_or_start`: its result, or a job."""
    job = {"model": job_model(kind, result), "description": "A job, for `Prefer: respond-async`."}
    return {"response_model": result, "responses": {202: job}}


def _make_model(
    name: str, result: type, leave_out: Sequence[str], own: Mapping[str, Any], texts: Mapping[str, str]
) -> type[BaseModel]:
    hints = get_type_hints(result)
    types = {field.name: hints[field.name] for field in dataclasses.fields(result) if field.name not in leave_out}
    texts = dict(texts)
    if issubclass(result, Result):
        for derived in result.derived:
            types[derived] = result.plain_types()[derived]
            about = inspect.getdoc(getattr(result, derived)) or ""
            texts.setdefault(derived, about.partition("\n\n")[0].replace("\n", " "))
    fields: dict[str, Any] = {
        field: (kind, Field(description=texts.get(field))) for field, kind in {**types, **own}.items()
    }
    return create_model(name, __doc__=(inspect.getdoc(result) or "").partition("\n")[0], **fields)


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

    def page(self, path: str, template: str) -> Callable[[_Function], _Function]:
        """Decorate the function that returns the values of a page of HTML, which is rendered from a template."""

        def add(function: _Function) -> _Function:
            @wraps(function)
            def render(**values: Any) -> Response:
                answer: Response = values["site"].page(template, path, function(**values))
                return answer

            self.get(path, response_class=HTMLResponse, include_in_schema=False)(render)
            return function

        return add

    def file(self, path: str, *kinds: str, in_ranges: bool = False) -> Callable[[_Function], _Function]:
        """Decorate the function that answers with a file of one of these media types."""
        schemas = {kind: {"schema": {} if kind == "application/json" else _schema_of(kind)} for kind in kinds}
        responses: dict[int | str, dict[str, Any]] = {200: {"description": "The file.", "content": schemas}}
        if in_ranges:
            responses[206] = {"description": "The requested range."}
        return self.get(path, response_class=Response, responses=responses)

    def job(self, path: str, kind: JobKind, result: Any) -> Callable[[_Function], _Function]:
        """Decorate the function that starts a job of a kind at a ``POST`` request."""
        return self.post(path, status_code=202, response_model=job_model(kind, result))

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        """Add a route whose function runs in its lane; below ``Args:`` its docstring describes the parameters."""
        text = (inspect.getdoc(endpoint) or "").partition("\n\nArgs:")[0]
        super().add_api_route(path, _answering(endpoint), **{**settings, "description": text})


async def answer_or_start(
    site: Any, prefer: str, kind: JobKind, title: str, work: Callable[[], object], *, video: int | None, **turn: str
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
        site = values["site"]
        work = partial(function, **values)
        value = await (work() if is_coroutine else getattr(site, lane).run(work))
        if isinstance(value, Job):
            return ResultResponse(value.state(), 202, {"Location": f"/api/jobs/{value.id}"})
        return value if isinstance(value, Response) else ResultResponse(value)

    # Older versions of FastAPI would evaluate the annotations among the names of this module.
    answer.__signature__ = inspect.signature(function, eval_str=True)  # type: ignore[attr-defined]
    return answer
