"""The OpenAPI description: the one FastAPI derives from the functions, completed and corrected.

Every error is a problem document; every field and parameter has a description and an example; integers stay in the
range of every JSON reader; equal sets of values become one enumeration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, get_args, get_type_hints

from fastapi import APIRouter, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter

from vidkin._base.values import describe_settings
from vidkin.web.problems import CODES, PROBLEM_TYPE, STATUSES, Problem
from vidkin.web.routes import MAX_NUMBER

_REFERENCE = "#/components/schemas/"
_TOKEN = "token"
# Statuses only of requests with a body, and only of file downloads.
_OF_BODIES, _OF_FILES = frozenset({408, 413, 415}), frozenset({416})
_RANGE = {
    "name": "Range",
    "in": "header",
    "description": "Requested bytes, as one range; multiple ranges are answered with the whole file.",
    "schema": {"type": "string", "examples": ["bytes=0-1023"]},
}
# Names of enumerations by their values.
_ENUMERATIONS = {
    "FileFilter": ("all", "ok", "broken", "stale", "damaged"),
    "GroupFilter": ("all", "spare", "doubtful", "other"),
    "GroupSort": ("path", "savings", "copies"),
    "JobStatus": ("running", "done", "failed", "stopped"),
    "KnownFilter": ("", "yes", "no"),
    "MapMethod": ("auto", "pca", "tsne", "pacmap", "umap"),
    "MapPoints": ("videos", "shots"),
    "Preference": ("best", "age", "newest", "size", "longest"),
    "ScoreBasis": ("picture", "sound", "either", "both"),
    "Trained": ("measure", "cuts"),
    "VideoSort": ("name", "path", "duration", "shortest", "size", "smallest", "newest", "oldest"),
}
# Examples by name; one that does not fit the type of the field is replaced by a generic one.
_EXAMPLES: dict[str, Any] = {
    "added": 12,
    "address": "/videos/1",
    "added_at": 1764412800.5,
    "bytes": 120_000_000,
    "cause": "no video in it",
    "code": "not-indexed",
    "codec": "h264",
    "confidence": 0.97,
    "content_hash": "blake2b:0a1b2c3d4e5f60718293a4b5",
    "damage": "",
    "detail": "video 99 is not in the index; reload the library",
    "detector": "cuts",
    "duration": 61.2,
    "end": 9.0,
    "error": "",
    "field": "limit",
    "folder": "/videos",
    "form": "csv",
    "frame_rate": 25.0,
    "height": 1080,
    "id": 1,
    "key": "a1b2c3d4e5f60718",
    "limit": 20,
    "name": "holiday.mp4",
    "new_name": "seen",
    "path": "/videos/holiday.mp4",
    "player": "mpv",
    "q": "holiday",
    "rate": 3.2,
    "run": "8d969eef6ecad3c2",
    "score": 0.93,
    "seconds": 1.5,
    "seconds_left": 12.0,
    "size": 12_345_678,
    "start": 4.0,
    "state": "done",
    "status": "ok",
    "text": "has a subtitle that no other file has",
    "thumbnail": "/videos/1/thumbnail?v=0a1b2c3d4e5f",
    "threshold": 0.5,
    "ticket": "17.1",
    "time": 2.5,
    "title": "Add videos",
    "under": "/videos",
    "upload": "q3VtYm9sZSBpZA",
    "video": 1,
    "videos": [1, 2],
    "width": 1920,
    "words": "shows all of it, smaller",
    "x": [0.1, 0.9],
    "y": [0.4, 0.2],
}


class DescribedApp(FastAPI):
    """An app with an OpenAPI description made by :func:`describe`.

    Attributes:
        functions: Functions of all addresses.

    Args:
        routers: Routers of the app.
        settings: Arguments of FastAPI.
    """

    def __init__(self, routers: Iterable[APIRouter], **settings: Any) -> None:
        super().__init__(**settings)
        self.functions: list[APIRoute] = []
        for router in routers:
            self.include_router(router)
            self.functions += [route for route in router.routes if isinstance(route, APIRoute)]

    def openapi(self) -> dict[str, Any]:
        """The description, made on first request."""
        if self.openapi_schema is None:
            self.openapi_schema = describe(super().openapi(), self.functions)
        return self.openapi_schema


def describe(document: dict[str, Any], routes: Sequence[APIRoute]) -> dict[str, Any]:
    """Complete FastAPI's description.

    Args:
        document: FastAPI's description, changed in place.
        routes: The routes, whose types document their fields.
    """
    components = document["components"]
    schemas: dict[str, Any] = components["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = TypeAdapter(Problem).json_schema(ref_template=_REFERENCE + "{model}")
    components["responses"] = {_name_of(status): _answer(status) for status in STATUSES}
    components["securitySchemes"] = {
        _TOKEN: {"type": "http", "scheme": "bearer", "description": "The token that `vidkin serve` prints."}
    }
    document["security"] = [{_TOKEN: []}]
    for route in (route for route in routes if route.include_in_schema):
        for method in route.methods or ():
            _complete(document["paths"][route.path_format][method.lower()], _texts_of_parameters(route.dependant))
    texts = {kind.__name__: _texts_of_fields(kind) for kind in {Problem, *_types_of(routes)}}
    for name, schema in schemas.items():
        if "description" in schema:
            schema["description"] = schema["description"].partition("\n\n")[0]
        for field, about in schema.get("properties", {}).items():
            if not about.get("description"):
                about["description"] = texts.get(name, {}).get(field, "")
    _bound_numbers(document)
    _simplify_tuples(document)
    _name_enumerations(document, schemas)
    _add_examples(document, schemas)
    document["components"] = {**components, "schemas": dict(sorted(schemas.items()))}
    return document


def _name_of(status: int) -> str:
    """The component name of the response for a status; Python's phrases differ between versions."""
    return "".join(word.title() for word in CODES[status].split("-"))


def _answer(status: int) -> dict[str, Any]:
    """The response component for a status."""
    answer: dict[str, Any] = {
        "description": HTTPStatus(status).phrase,
        "content": {PROBLEM_TYPE: {"schema": {"$ref": f"{_REFERENCE}Problem"}}},
    }
    if status == 401:
        answer["headers"] = {"WWW-Authenticate": _header("`Bearer`", "Bearer")}
    if status == 503:
        answer["headers"] = {"Retry-After": _header("Seconds after which to try again.", "2")}
    return answer


def _header(text: str, example: str) -> dict[str, Any]:
    return {"description": text, "schema": {"type": "string", "examples": [example]}}


def _texts_of_parameters(dependant: Dependant) -> dict[str, str]:
    """Descriptions of the parameters of a function, a dataclass that groups parameters, and their dependencies."""
    inner = {name: text for part in dependant.dependencies for name, text in _texts_of_parameters(part).items()}
    texts = describe_settings(dependant.call) if dependant.call else {}
    own = (*dependant.path_params, *dependant.query_params, *dependant.header_params)
    return inner | {part.alias: texts[part.name] for part in own if part.name in texts}


def _operations(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in document["paths"].values():
        yield from methods.values()


def _complete(operation: dict[str, Any], texts: Mapping[str, str]) -> None:
    """Declare the problems of an operation and the location of a job, and make optional parameters non-null."""
    answers: dict[str, Any] = operation["responses"]
    answers.pop("422", None)
    for status in STATUSES:
        if (status in _OF_BODIES and "requestBody" not in operation) or (status in _OF_FILES and "206" not in answers):
            continue
        if status == 405:  # never returned by an existing operation
            continue
        answers[str(status)] = {"$ref": f"#/components/responses/{_name_of(status)}"}
    if "202" in answers:
        answers["202"]["headers"] = {"Location": _header("Address of the job.", "/api/jobs/1764412800123")}
    if "206" in answers:
        answers["206"]["content"] = answers["200"]["content"]
        operation.setdefault("parameters", []).append(dict(_RANGE))
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
        if len(kinds) == 1:
            del schema["anyOf"]
            schema.update(kinds[0])
        elif kinds:
            schema["anyOf"] = kinds
        schema.pop("title", None)
        own = parameter.get("description") or schema.get("description")
        parameter["description"] = own or texts.get(parameter["name"], "")


def _types_of(routes: Iterable[APIRoute]) -> set[type]:
    """The dataclasses and models in answers and bodies, whose docstrings document their fields."""
    found: set[Any] = set()
    waiting: list[Any] = [route.response_model for route in routes]
    waiting += [body.field_info.annotation for route in routes for body in route.dependant.body_params]
    while waiting:
        kind = waiting.pop()
        waiting += get_args(kind)
        if not isinstance(kind, type) or kind in found:
            continue
        if issubclass(kind, BaseModel):
            waiting += [field.annotation for field in kind.model_fields.values()]
        elif dataclasses.is_dataclass(kind):
            waiting += get_type_hints(kind).values()
        else:
            continue
        found.add(kind)
    return found


def _texts_of_fields(kind: type) -> dict[str, str]:
    """Descriptions of the fields of a class and of the classes that it extends."""
    return {name: text for base in reversed(kind.__mro__) for name, text in describe_settings(base).items()}


def _schemas_in(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema in a document that has a type or values, innermost first."""
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _schemas_in(child)
    if isinstance(node, dict) and isinstance(node.get("type", node.get("enum")), str | list):
        yield node


def _bound_numbers(document: dict[str, Any]) -> None:
    for schema in _schemas_in(document):
        if schema.get("type") == "integer" and "enum" not in schema and "const" not in schema:
            if "exclusiveMinimum" not in schema:
                schema.setdefault("minimum", -MAX_NUMBER)
            schema.setdefault("maximum", MAX_NUMBER)


def _simplify_tuples(document: dict[str, Any]) -> None:
    """Describe tuples as arrays of fixed length, because many client generators support no other form."""
    for schema in _schemas_in(document):
        kinds: list[Any] = schema.pop("prefixItems", [])
        if kinds:
            different = [kind for position, kind in enumerate(kinds) if kind not in kinds[:position]]
            schema["items"] = different[0] if len(different) == 1 else {"anyOf": different}


def _name_enumerations(document: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Replace repeated sets of values with a reference to one enumeration."""
    names = {values: name for name, values in _ENUMERATIONS.items()}
    used: dict[str, Any] = {}
    for schema in list(_schemas_in(document)):
        name = names.get(tuple(schema.get("enum", ())))
        if name is not None:
            used[name] = {"type": "string", "enum": schema.pop("enum"), "title": name}
            schema.pop("type", None)
            schema["$ref"] = _REFERENCE + name
    schemas.update(used)


def _add_examples(document: dict[str, Any], schemas: dict[str, Any]) -> None:
    maker = _Examples(schemas)
    described = [
        (parameter["name"], parameter["schema"])
        for operation in _operations(document)
        for parameter in operation.get("parameters", ())
    ]
    for schema in schemas.values():
        described += schema.get("properties", {}).items()
    for name, about in described:
        about.setdefault("examples", [maker.make(about, name)])


class _Examples:
    """Examples for schemas: by name if one fits, otherwise the simplest value of the type."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas

    def make(self, schema: Mapping[str, Any], name: str = "", depth: int = 0) -> Any:
        """Create an example that fits a schema."""
        if "examples" in schema:
            return schema["examples"][0]
        for word in ("anyOf", "oneOf", "allOf"):
            if word in schema:
                return self.make(schema[word][0], name, depth)
        if "$ref" in schema:
            return self.make(self._schemas[schema["$ref"].removeprefix(_REFERENCE)], name, depth + 1)
        named = _EXAMPLES.get(name)
        if "enum" in schema:
            return named if named in schema["enum"] else next(value for value in schema["enum"] if value)
        made = schema.get("const", schema.get("default"))
        if made is None:
            made = self._of_type(schema, depth)
        return named if _is_alike(named, made) and "const" not in schema else made

    def _of_type(self, schema: Mapping[str, Any], depth: int) -> Any:
        kind = schema.get("type")
        if kind == "object":
            fields, required = schema.get("properties", {}), schema.get("required", ())
            return {field: self.make(fields[field], field, depth + 1) for field in fields if field in required}
        if kind == "array":
            if depth > 3 and not schema.get("minItems"):  # recursive schemas, such as a folder of folders
                return []
            return [self.make(schema.get("items", {}), "", depth + 1)] * max(schema.get("minItems", 1), 1)
        if kind in ("integer", "number"):
            least = schema.get("minimum", schema.get("exclusiveMinimum", 0))
            value = min(max(least + ("exclusiveMinimum" in schema), 1), schema.get("maximum", least + 1))
            return value if kind == "integer" else float(value)
        return {"boolean": True, "string": "text"}.get(str(kind))


def _is_alike(named: Any, made: Any) -> bool:
    """Whether an example has the type of a value that fits."""
    if isinstance(named, list) and isinstance(made, list):
        return bool(made) and _is_alike(named[0], made[0])
    return type(named) is type(made)
