"""The API's description and its answers agree: checked in the document, and with requests generated from it."""

from __future__ import annotations

import logging
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from starlette.testclient import TestClient

from tests.support.seasons import write_season
from tests.web.browser import served
from tests.web.conftest import Connect, Library, finish_job, make_library
from vidkin.index import Index, SerialExecutor

schemathesis = pytest.importorskip("schemathesis")

LARGEST = 2**53 - 1
PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
# Its player would open on this computer.
LEFT_OUT = "openVideo"


@pytest.fixture(scope="module")
def document(library: Library) -> dict[str, Any]:
    from vidkin.web import Settings, create_app

    with TestClient(create_app(library.index, Settings()), base_url="http://127.0.0.1:8800") as client:
        found: dict[str, Any] = client.get("/api/openapi.json").json()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(child)


def test_every_operation_declares_its_problems_and_has_a_verb_name(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(names)) == len(names) > 70
    assert [name for name in names if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)+", name)] == []
    assert {"searchVideos", "listVideos", "uploadFile", "getJob", "stopJob", "watchJob"} <= set(names)
    responses = document["components"]["responses"]
    assert all(response["content"] == PROBLEM for response in responses.values())
    for name, operation in operations(document):
        errors = {status for status in operation["responses"] if status >= "400"}
        assert {"400", "401", "403", "404", "409", "422", "500", "503"} <= errors, name
        assert all("$ref" in operation["responses"][status] for status in errors), name
        assert ("413" in errors) == ("requestBody" in operation), name
    assert document["security"] == [{"token": []}]
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_every_answer_declares_exactly_its_media_type(document: dict[str, Any]) -> None:
    kinds = {
        name: [*operation["responses"].get("200", operation["responses"].get("201", {})).get("content", {})]
        for name, operation in operations(document)
    }
    assert kinds["get /videos/{video}/thumbnail"] == ["image/webp"]
    assert kinds["get /videos/{video}/preview"] == ["video/mp4"]
    assert kinds["get /videos/{video}/file"][0] == "video/*"
    assert kinds["get /api/jobs/{id}/events"] == ["text/event-stream"]
    assert kinds["get /api/duplicates.csv"] == ["text/csv"]
    body = document["paths"]["/api/uploads"]["post"]["requestBody"]["content"]
    assert list(body) == ["application/octet-stream", "multipart/form-data"]


def test_every_field_and_parameter_has_a_description_and_a_valid_example(document: dict[str, Any]) -> None:
    import jsonschema_rs

    described = [
        (f"{model}.{name}", field, field)
        for model, schema in document["components"]["schemas"].items()
        for name, field in schema.get("properties", {}).items()
    ]
    described += [
        (f"{operation}: {parameter['name']}", parameter, parameter["schema"])
        for operation, about in operations(document)
        for parameter in about.get("parameters", ())
    ]
    assert len(described) > 500
    assert [name for name, about, _ in described if not about.get("description")] == []
    assert [name for name, _, schema in described if not schema.get("examples")] == []
    unfit = []
    for name, _, schema in described:
        check = jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]})
        unfit += [(name, example) for example in schema["examples"] if not check.is_valid(example)]
    assert unfit == []


def test_integers_are_bounded_for_every_json_reader(document: dict[str, Any]) -> None:
    integers = [node for node in nodes(document) if node.get("type") == "integer"]
    assert len(integers) > 100
    for node in integers:
        assert node.get("minimum", node.get("exclusiveMinimum", -LARGEST - 1)) >= -LARGEST, node
        assert node["maximum"] <= LARGEST, node


def test_equal_values_share_one_enumeration(document: dict[str, Any]) -> None:
    lists = Counter(tuple(node["enum"]) for node in nodes(document) if isinstance(node.get("enum"), list))
    # Verdicts, transitions and formats are listed where they are used.
    assert {values: count for values, count in lists.items() if count > 2} == {}
    assert {"JobStatus", "ScoreBasis", "VideoSort", "GroupFilter"} <= document["components"]["schemas"].keys()


def test_unknown_parameters_and_fields_are_refused(client: TestClient) -> None:
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: client.get("/api/videos", params={"limt": 3}), "limt"),
        (lambda: client.get("/api/review", params={"x": 1}), "x"),
        (lambda: client.post("/api/search", json={"video": 1, "limt": 3}), "limt"),
        (lambda: client.post("/api/search", json={"video": "1"}), "video"),
        (lambda: client.post("/api/sync", json={"target": 1, "parts": [{"start": 0, "end": 1, "at": 0, "x": 1}]}), "x"),
        (lambda: client.get(f"/api/videos/{2**60}"), "video"),
    ]
    for ask, field in cases:
        answer = ask()
        problem = answer.json()
        assert answer.status_code == problem["status"] == 422, problem
        assert answer.headers["content-type"] == "application/problem+json"
        assert problem["code"] == "invalid-request", problem
        assert problem["field"].split(".")[-1] == field, problem
    assert "accepted are added_days, copies," in client.get("/api/videos?limt=3").json()["detail"]


def test_every_error_is_a_problem_document(client: TestClient, library: Library, connect: Connect) -> None:
    closed = connect(library.index, token="secret")
    answers = {
        401: closed.get("/api/videos"),
        403: client.get("/api/videos", headers={"Origin": "https://example.org"}),
        404: client.get("/api/nothing"),
        405: client.delete("/api/videos"),
        400: client.get("/api/videos", headers={"Host": "example.org"}),
        416: client.get(f"/videos/{first_video(client)}/file", headers={"Range": "bytes=999999999-"}),
        422: client.post("/api/search", content=b"{", headers={"Content-Type": "application/json"}),
    }
    for status, answer in answers.items():
        problem = answer.json()
        assert (answer.status_code, problem["status"]) == (status, status), problem
        assert answer.headers["content-type"] == "application/problem+json", problem
        assert problem.keys() == {"type", "title", "status", "detail", "code", "field"}
        assert problem["detail"], problem
    assert answers[401].headers["www-authenticate"] == "Bearer"
    assert answers[404].json()["detail"] == "there is no address /api/nothing in the API; GET /api lists them"
    assert answers[405].headers["allow"] == "GET"
    assert client.delete("/api/search").headers["allow"] == "POST"
    assert answers[416].headers["content-range"].startswith("bytes */")


def first_video(client: TestClient) -> int:
    number: int = client.get("/api/videos", params={"state": "ok"}).json()["videos"][0]["id"]
    return number


def prepare(root: Path) -> Path:
    """An index with content for every kind of answer: groups, recurring segments, shots, lists and verdicts."""
    library = make_library(root)
    write_season(root / "season")
    with Index.open(library.index) as index:
        index.add(root / "season", executor=SerialExecutor(index.worker_spec))
    from vidkin.web import Settings, create_app

    with TestClient(create_app(library.index, Settings()), base_url="http://127.0.0.1:8800") as client:
        videos = client.get("/api/videos?state=ok").json()["videos"]
        ids = [video["id"] for video in videos]
        for path, body in (
            ("/api/duplicates", {}),
            ("/api/recurring", {}),
            ("/api/shots", {"videos": ids}),
            ("/api/map", {"method": "pca"}),
            ("/api/videos/copies", {"videos": ids}),
            (f"/api/videos/{ids[0]}/clips", {}),
        ):
            assert finish_job(client, client.post(path, json=body).json())["state"] == "done", path
        client.post("/api/lists", json={"name": "favorites", "add": ids[:2]})
        client.post("/api/review/pairs", json={"first": ids[0], "second": ids[1], "verdict": "same"})
    return library.index


@pytest.mark.parametrize("each", [pytest.param(3, marks=pytest.mark.process), pytest.param(84, marks=pytest.mark.slow)])
@pytest.mark.timeout(1200)
def test_generated_requests_and_answers_match_the_description(tmp_path: Path, each: int) -> None:
    """Requests that fit the description and such that do not, ``each`` of both for every operation."""
    contradictions: list[str] = []
    statuses: Counter[int] = Counter()
    with served(prepare(tmp_path), token="") as opened:
        address, _, token = opened.partition("/?token=")
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {token}"
        schema = schemathesis.openapi.from_dict(session.get(f"{address}/api/openapi.json").json())
        schema.config.generation.update(with_security_parameters=False)
        ids = [video["id"] for video in session.get(f"{address}/api/videos").json()["videos"]]
        chooser = random.Random(1)

        def ask(case: Any) -> None:
            if "video" in case.path_parameters and chooser.random() < 0.7 and is_number(case.path_parameters["video"]):
                case.path_parameters["video"] = chooser.choice(ids)
            answer = case.call(base_url=address, session=session, timeout=300)
            statuses[answer.status_code] += 1
            code = answer.json().get("code") if answer.status_code >= 400 else ""
            if code == "invalid-request" and case.meta.generation.mode.is_positive:
                contradictions.append(f"{case.as_curl_command()}: refused: {answer.text}")
            try:
                case.validate_response(
                    answer, headers=dict(session.headers), excluded_checks=[positive_data_acceptance]
                )
            except schemathesis.errors.SchemathesisError as error:
                contradictions.append(f"{case.as_curl_command()}: {error}")
            except Exception as error:  # noqa: BLE001 - a group of failures
                contradictions.append(f"{case.as_curl_command()}: {error!r} {getattr(error, 'exceptions', '')}")

        from schemathesis.specs.openapi.checks import positive_data_acceptance

        began = time.monotonic()
        for operation in (found.ok() for found in schema.get_all_operations()):
            if operation.definition.raw["operationId"] == LEFT_OUT:
                continue
            for mode in schemathesis.GenerationMode:
                run = settings(
                    max_examples=each,
                    database=None,
                    deadline=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
                with suppress(Unsatisfiable):  # nothing about a request without parameters can be wrong
                    seed(1)(run(given(case=operation.as_strategy(generation_mode=mode))(ask)))()
        seconds = time.monotonic() - began
        logging.getLogger(__name__).info("%d requests in %.0f s: %s", statuses.total(), seconds, statuses)
        assert not contradictions, "\n".join([f"{len(contradictions)} of {statuses.total()} requests", *contradictions])
        assert statuses.total() >= 115 * each, (statuses, seconds)
        assert min(statuses[200], statuses[404], statuses[422]) > 10, statuses
        assert statuses[500] == 0, statuses


def is_number(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= LARGEST
