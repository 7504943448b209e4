"""Results in answers of the API: the fields that ``--json`` prints, and those that only a page needs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, create_model

from vidkin._base.docstrings import describe_settings
from vidkin.rendering.json_values import json_text

__all__ = ["ResultResponse", "answer_model", "result_model"]


class ResultResponse(JSONResponse):
    """Plain values or results of the library, written as ``--json`` writes them."""

    def render(self, content: Any) -> bytes:
        """The document; a number that JSON lacks becomes null, a name that is not valid Unicode is escaped."""
        return json_text(content).encode("ascii")


def answer_model(name: str, about: str, **fields: Any) -> type[BaseModel]:
    """Description of an answer for ``/api/openapi.json``.

    Args:
        name: Name in the description.
        about: What it is.
        fields: Type of each field.
    """
    return _model(name, about, fields, {})


def result_model(result: type, *, leave_out: Sequence[str] = (), **fields: Any) -> type[BaseModel]:
    """Description of a result of the library, field by field as its ``to_dict`` gives it.

    Args:
        result: The dataclass.
        leave_out: Fields that are not in the answer.
        fields: Types of the properties that ``to_dict`` adds, of what the page adds, and of fields that differ.
    """
    types = get_type_hints(result)
    own = {each.name: types[each.name] for each in dataclasses.fields(result) if each.name not in leave_out}
    about = inspect.getdoc(result) or ""
    return _model(result.__name__, about.partition("\n")[0], {**own, **fields}, describe_settings(result))


def _model(name: str, about: str, types: Mapping[str, Any], texts: Mapping[str, str]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        field: (kind, Field(description=texts.get(field))) for field, kind in types.items()
    }
    return create_model(name, __doc__=about, **fields)
