"""Answers of the API: results as JSON, downloads, and their models in the OpenAPI description."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_type_hints

from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, create_model

from vidkin._base.values import Result, describe_settings
from vidkin.rendering.text import json_text
from vidkin.web.job_state import JobKind, JobState


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


def safe_stem(name: str) -> str:
    """Make a name safe as the stem of a downloaded file on every system."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in name)[:120]


def download(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """OpenAPI description of a file download of one of these media types."""
    schemas = {kind: {"schema": {} if kind == "application/json" else _schema_of(kind)} for kind in kinds}
    return {200: {"description": "The file.", "content": schemas}}


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
    """OpenAPI model of a job.

    Args:
        kind: Kind of the job.
        result: Type of its result.
    """
    own = {"kind": Literal[kind], "result": result | None}
    return _make_model(f"{kind.title()}Job", JobState, (), own, describe_settings(JobState))


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
