"""The site built by `make docs` has every page and every public package, and loads nothing from other hosts."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import vidkin
from tests.web.browser import new_page, open_browser

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built in strict mode: warnings, such as broken links, are errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def start(address: str) -> Iterator[Page]:
    """A browser on the first page of the site."""
    with open_browser() as browser, new_page(browser) as page:
        page.goto(f"{address}/index.html", wait_until="networkidle")
        yield page


class _Resources(HTMLParser):
    """Collects the resources that a browser loads without a click."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}.get(tag)
        self.addresses += [value for key, value in attrs if key == name and value]


def test_every_document_and_every_public_name_is_included(site: Path) -> None:
    documents = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    pages = {path.relative_to(site) for path in site.rglob("*.html")}
    index = {path.with_name("index") if path.stem == "README" else path.with_suffix("") for path in documents}
    assert index <= {page.with_suffix("") for page in pages}
    surface = (site / "api" / "index.html").read_text(encoding="utf-8")
    for name in set(vidkin.__all__) - {"__version__"}:
        assert f"vidkin.{name}</code></a>" in surface, name
    search = (site / "api" / "vidkin.index.html").read_text(encoding="utf-8")
    for phrase in (
        'id="vidkin.index.Index.search"',
        "Maximum number of matches",
        "0.2 drops nearly all",
    ):
        assert phrase in search


def test_no_page_loads_resources_from_another_host(site: Path) -> None:
    foreign = set()
    for page in site.rglob("*.html"):
        resources = _Resources()
        resources.feed(page.read_text(encoding="utf-8"))
        foreign |= {found for found in resources.addresses if "//" in found}
    for style in site.rglob("*.css"):
        foreign |= {style.name for scheme in ("url(http", "url(//", "@import") if scheme in style.read_text()}
    assert foreign == set()


def find(page: Page, address: str, words: str) -> list[str]:
    """Search the site; return the pages found, best first, without anchors."""
    search, results = page.get_by_role("textbox", name="Search"), page.locator(".md-search-result__link")
    for _ in range(40):
        # Input typed before the search index has loaded is ignored, and nothing signals when it has.
        search.fill("")
        search.press_sequentially(words)
        page.wait_for_timeout(500)
        if results.count():
            break
    links = results.evaluate_all("links => links.map(link => link.href)")
    return list(dict.fromkeys(link.removeprefix(f"{address}/").partition("?")[0].partition("#")[0] for link in links))


def test_browser_contacts_no_other_host_and_finds_a_name(address: str) -> None:
    with open_browser() as browser, new_page(browser) as page:
        asked: set[str] = set()
        page.on("request", lambda request: asked.add(request.url))
        for name in ("index", "start", "research/results/index", "api/vidkin.metric.losses"):
            page.goto(f"{address}/{name}.html", wait_until="networkidle")
        assert find(page, address, "detect_shots") != []
        assert {url for url in asked if not url.startswith((address, "data:", "blob:"))} == set()


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ("import DaVinci Resolve", {"editors.html", "questions.html"}),
        ("premiere", {"editors.html", "questions.html"}),
        ("1,000 hours", {"files.html", "questions.html"}),
        ("unplugged drive", {"find.html", "questions.html"}),
        ("Czkawka", {"coming_from.html", "questions.html"}),
        ("undo removed files", {"copies.html", "questions.html"}),
        ("network", {"questions.html"}),
        ("macOS", {"start.html", "copies.html", "questions.html"}),
        ("GPU", {"files.html", "questions.html"}),
        ("search photograph", {"find.html", "questions.html"}),
        ("sound only", {"sound.html", "find.html", "questions.html"}),
        ("duplicates", {"copies.html", "questions.html"}),
    ],
)
def test_search_ranks_guides_before_the_api(start: Page, address: str, words: str, answers: set[str]) -> None:
    found = find(start, address, words)
    assert answers & {*found[:3]}, found
    assert not found[0].startswith(("api/", "research/")), found
