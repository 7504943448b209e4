"""Types for request bodies and parameters, which reject unknown fields and keep numbers readable for every client."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from fastapi import Path as PathPart
from fastapi import Query, Request
from fastapi.dependencies.models import Dependant
from pydantic import BaseModel, ConfigDict, Field, model_validator

from vidkin.similarity import Box
from vidkin.web.problems import RefusedError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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

OptionalVideo = Annotated[
    int | None, Query(ge=0, le=MAX_NUMBER, description="Number of a video of the index.", examples=[1])
]

OptionalUpload = Annotated[
    str | None, Query(max_length=100, description="Id of an uploaded file.", examples=["q3VtYm9sZSBpZA"])
]

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
    values = {field.name: getattr(view, field.name) for field in fields(view)}
    chosen = {field.name: _as_text(values[field.name]) for field in fields(view) if values[field.name] != field.default}
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
