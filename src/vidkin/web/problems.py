"""API errors as problem documents (RFC 9457) with stable codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException as RoutingError
from starlette.responses import Response

from vidkin import errors
from vidkin.rendering.text import json_text
from vidkin.web.jobs import JobRunningError, describe_failure, is_disk_full
from vidkin.web.lanes import BusyError, StuckError

PROBLEM_TYPE = "application/problem+json"

ProblemCode = Literal[
    "bad-request",
    "busy",
    "conflict",
    "disk-full",
    "forbidden",
    "index-damaged",
    "index-gone",
    "index-locked",
    "index-mismatch",
    "internal-error",
    "invalid-argument",
    "invalid-request",
    "job-running",
    "method-not-allowed",
    "not-found",
    "not-indexed",
    "range-not-satisfiable",
    "read-only",
    "request-timeout",
    "system-error",
    "timeout",
    "too-large",
    "unauthorized",
    "unreadable-file",
    "unsupported-media-type",
]

# Status and code of each error; the first matching row applies.
_ERRORS: tuple[tuple[type[Exception], int, ProblemCode], ...] = (
    (errors.NotIndexedError, 404, "not-indexed"),
    (errors.CollectionNotFoundError, 410, "index-gone"),
    (errors.MediaError, 422, "unreadable-file"),
    (errors.InvalidArgumentError, 422, "invalid-argument"),
    (errors.CollectionLockedError, 409, "index-locked"),
    (errors.CollectionDamagedError, 409, "index-damaged"),
    (errors.CollectionMismatchError, 409, "index-mismatch"),
    (errors.CollectionError, 503, "system-error"),
    (JobRunningError, 409, "job-running"),
    (errors.VidkinError, 500, "internal-error"),
    (OSError, 503, "system-error"),
    (BusyError, 503, "busy"),
    (StuckError, 504, "timeout"),
)
HANDLED: tuple[type[Exception], ...] = (
    *(kind for kind, _, _ in _ERRORS),
    RoutingError,
    RequestValidationError,
    Exception,
)
"""Errors that become problems; the last kind is a bug, whose traceback the server logs."""

CODES: dict[int, ProblemCode] = {
    400: "bad-request",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    408: "request-timeout",
    409: "conflict",
    410: "index-gone",
    413: "too-large",
    415: "unsupported-media-type",
    416: "range-not-satisfiable",
    422: "invalid-argument",
    500: "internal-error",
    503: "busy",
    504: "timeout",
    507: "disk-full",
}
"""Default code of each status, for errors of the router and for HTTPException."""

STATUSES = tuple(sorted(CODES))
"""All statuses that a problem can have."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why a request failed, following RFC 9457; `code` and `field` are for programs.

    Attributes:
        type: Always `about:blank`; see `code`.
        title: Name of the status.
        status: Status of the answer.
        detail: What is wrong, what is accepted and what to do, as text for people.
        code: Stable code for programs. `invalid-request`: the request does not match this description;
            `invalid-argument`: it does, but cannot be fulfilled.
        field: Invalid parameter or body field, such as `videos.0`; null if there is not exactly one.
    """

    type: Literal["about:blank"]
    title: Annotated[str, Field(examples=["Not Found"])]
    status: Annotated[int, Field(ge=400, le=599, examples=[404])]
    detail: str
    code: ProblemCode
    field: str | None


class RefusedError(HTTPException):
    """A request refused with a specific code.

    Args:
        status: Status of the answer.
        code: Code of the problem.
        detail: Message for users.
        field: Invalid parameter or field.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        code: ProblemCode,
        detail: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.code, self.field = code, field


class ProblemResponse(Response):
    """A problem as an answer.

    Args:
        problem: The problem.
        headers: Further headers.
    """

    media_type = PROBLEM_TYPE

    def __init__(self, problem: Problem, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(json_text(problem).encode("ascii"), problem.status, headers)


def make_problem(status: int, code: ProblemCode, detail: str, field: str | None = None) -> Problem:
    """Create a problem with a status and a code."""
    return Problem("about:blank", HTTPStatus(status).phrase, status, detail, code, field)


def problem_of(error: Exception) -> Problem:
    """Convert an error that ended a request to a problem."""
    if isinstance(error, RefusedError):
        return make_problem(error.status_code, error.code, str(error.detail), error.field)
    if isinstance(error, RoutingError):
        code = CODES.get(error.status_code, "bad-request" if error.status_code < 500 else "internal-error")
        return make_problem(error.status_code, code, str(error.detail))
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        # For invalid JSON the location is a position in the text, not a field.
        field = None if first["type"] == "json_invalid" else ".".join(str(part) for part in first["loc"][1:]) or None
        detail = _describe(first)
        return make_problem(422, "invalid-request", f"{field}: {detail}" if field else detail, field)
    if is_disk_full(error):
        return make_problem(507, "disk-full", describe_failure(error))
    for kind, status, code in _ERRORS:
        if isinstance(error, kind):
            return make_problem(status, code, describe_failure(error))
    return make_problem(500, "internal-error", "an internal error; the log of the server has its cause")


def _describe(error: Mapping[str, object]) -> str:
    if error["type"] == "extra_forbidden":
        return "there is no such field; /api lists all fields"
    if error["type"] == "json_invalid":
        return "the body is not JSON"
    return str(error["msg"])
