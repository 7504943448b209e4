"""Errors as answers, and the parts of the app."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.web.conftest import Connect, Library
from tests.web.synthetic import fill
from vidkin.index import Index
from vidkin.web.lanes import BusyError, StuckError

ROOT = Path(__file__).resolve().parents[2]


def test_errors_are_pages_in_browsers_and_json_for_programs(client: TestClient) -> None:
    person = {"Accept": "text/html,application/xhtml+xml"}
    for address in ("/nothing", "/videos/999/file", "/?page=0"):
        page = client.get(address, headers=person)
        assert page.status_code in (404, 422)
        assert f"<h1>{'Not found' if page.status_code == 404 else 'Not possible'}</h1>" in page.text
        assert 'href="/">Go to the library</a>' in page.text
        assert "detail" in client.get(address).json()
    assert "detail" in client.get("/api/videos/999", headers=person).json()
    assert "There is no page at /&lt;b&gt;; go to the library" in client.get("/<b>", headers=person).text


@pytest.mark.parametrize(
    ("address", "section"),
    [
        *(
            ("/", "Library"),
            ("/search", "Search"),
            ("/duplicates", "Duplicates"),
            ("/recurring", "Recurring"),
            ("/shots", "Shots"),
        ),
        *(("/review", "Review"), ("/api", "API")),
        *(("/videos/{}", "Library"), ("/videos/{}/shots", "Shots"), ("/match?video={}&target={}", "Search")),
    ],
)
def test_navigation_marks_the_current_section(client: TestClient, address: str, section: str) -> None:
    video = client.get("/api/videos").json()["videos"][1]["id"]
    page = client.get(address.replace("{}", str(video))).text
    assert re.findall(r'aria-current="page">([^<]+)</a>', page) == [section]
    assert 'aria-keyshortcuts="?"' in page


@pytest.mark.large
def test_pages_of_a_large_index_are_fast(tmp_path: Path, connect: Connect) -> None:
    """Processor time, because other work on the machine must not count."""
    fill(tmp_path / "many.vidkin", 10_000)
    client = connect(tmp_path / "many.vidkin")
    addresses = ("/", "/?q=0001", "/?sort=size", "/duplicates", "/shots", "/shots?q=00", "/review", "/videos/5")
    for address in addresses:
        client.get(address)  # the first page of a server reads the records and compiles its template
    for address in addresses:
        began = time.process_time()
        assert client.get(address).status_code == 200
        assert time.process_time() - began < 0.3, address


@pytest.mark.parametrize("read_only", [False, True])
def test_pages_of_an_empty_index_say_what_to_do(tmp_path: Path, connect: Connect, read_only: bool) -> None:
    Index.open(tmp_path / "i.vidkin", extractor="classical", create=True).close()
    client = connect(tmp_path / "i.vidkin", read_only=read_only)
    for address in ("/", "/search", "/duplicates", "/shots", "/review"):
        text = client.get(address).text
        assert "The index is empty." in text, address
        assert "<code>vidkin index PATH</code>" in text, address
        assert ("Add a folder" in text) is not read_only, address


@pytest.mark.parametrize(("error", "status"), [(BusyError("full"), 503), (StuckError("slow"), 504)])
def test_overloaded_server_says_so(
    library: Library, client: TestClient, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    async def refuse(self: object, work: object) -> None:
        raise error

    monkeypatch.setattr("vidkin.web.lanes.Lane.run", refuse)
    answer = client.get("/api/videos")
    assert (answer.status_code, answer.json()["detail"]) == (status, str(error))
    assert ("retry-after" in answer.headers) == (status == 503)


def test_every_api_address_is_documented(client: TestClient) -> None:
    document = client.get("/api/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            assert about["description"], f"{method} {path}"
    assert "/videos/{video}/file" in document["paths"]
    page = client.get("/api").text
    for path in document["paths"]:
        assert f"<code>{path}</code>" in page
    for title, words in (("Token", "Authorization: Bearer"), ("Jobs", "Location"), ("Errors", "RFC 9457")):
        assert re.search(rf"\*\*{title}\.\*\* .*{words}", document["info"]["description"])
        assert re.search(rf"<strong>{title}\.</strong> .*{words}", page)


def test_pages_load_nothing_from_other_hosts(client: TestClient) -> None:
    web = ROOT / "src" / "vidkin" / "web"
    texts = {
        path: path.read_text(encoding="utf-8")
        for folder in ("static", "templates")
        for path in (web / folder).rglob("*.*")
    }
    assert len(texts) > 5
    for path, text in texts.items():
        for word in ("http://", "https://", "style=", "onclick=", "innerHTML"):
            assert word not in text.replace("http://www.w3.org/2000/svg", ""), f"{path.name} has {word}"
    for path in (path for path in texts if "static" in path.parts):
        assert client.get(f"/static/{path.relative_to(web / 'static').as_posix()}").status_code == 200


def test_neither_the_library_nor_the_help_loads_the_web() -> None:
    code = (
        "import sys, vidkin, vidkin.cli.app, vidkin.cli.serve; "
        "print([name for name in ('fastapi', 'uvicorn', 'jinja2', 'vidkin.web') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_web_extra_lists_every_imported_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = {line.partition(">=")[0] for line in project["optional-dependencies"]["web"]}
    assert extra == {"fastapi", "jinja2", "python-multipart", "uvicorn"}
    for name in extra:
        importlib.import_module(name.replace("-", "_"))
